-- Begins a write: checks that the operation was not done before, and then enters all tracks as enter.lua does: advances
-- them to one time, at or after the head of each. Not a script of its own.
--
-- ARGV  `fence`: '' or, for a step of a source: its number, what the partition must have reached of it (nothing if it must
--       not have joined), and what it has reached then, separated by spaces. Then the last key is the hash of what is
--       reached, and `sizes` is not ''
-- reply elsewhere, what: the partition has reached something else; nothing was done
--
--- @include tracks
--- @arguments fence

-- What was done is known in every epoch: an attempt whose reply was lost may have come before the change.
local early = main.read_meta(main.field, main.recorded)
if early then
  return early
end
local source, reached_before, reached_after
if ARGV.fence ~= '' then
  source, reached_before, reached_after = string.match(ARGV.fence, '^(%d+) (%S*) (%S+)$')
  local reached = call('HGET', KEYS[#KEYS], source) or ''
  if reached ~= reached_before then
    return {'elsewhere', reached}
  end
end
local time, reading = main.read_clock()
time = math.max(time, main.head())
for number = 2, #tracks do
  early = tracks[number].read_meta()
  if early then
    -- The board exists in this epoch, because its own meta does. A track of another one is brought to it, and then the
    -- same operation is sent again.
    return early[1] == 'stale_epoch' and early or {'damaged', 'the meta data of another track is missing'}
  end
  time = math.max(time, tracks[number].head())
end
for _, track in ipairs(tracks) do
  early = track.advance(time, reading)
  if early then
    -- The arguments of all tracks are valid at the same times, so this is the main track, and nothing was done. An
    -- earlier attempt of this operation may still arrive. It must not count in addition to the operation that replaces
    -- it.
    return main.record_unchanged(early)
  end
end
