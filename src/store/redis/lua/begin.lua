-- Begins a write: checks that the operation was not done before, and then enters all tracks as enter.lua does: advances
-- them to one time, at or after the head of each. Not a script of its own.
--
-- ARGV  `fence`: '' or, for a step of a source: its number, what the partition must have reached of it (nothing if it must
--       not have joined), and what it has reached then, separated by spaces. Then the last key is the hash of what is
--       reached, and `sizes` is not ''
-- reply elsewhere, what: the partition has reached something else; nothing was done
--       halved: half of a step was applied, of whatever source; nothing was done
--
-- A server that is restarted may have kept only the first writes of a script, and may apply them much later, when other
-- steps have been made. So the field `n` of the hash gets 1 first and 1,023 last: otherwise it is no multiple of 1,024.
--
--- @include tracks
--- @arguments fence

-- What was done is known in every epoch: an attempt whose reply was lost may have come before the change.
local early = main.read_meta(main.field, main.recorded)
if early then
  return early
end
local source, reached_before, reached_after

-- Writes what the partition has reached.
local function set_reached()
  if source then
    call('HSET', KEYS[#KEYS], source, reached_after)
  end
end

-- Comes before the first write of a step, which may be refused.
local function begin_step()
  if source then
    call('HINCRBY', KEYS[#KEYS], 'n', 1)
  end
end

-- Comes after the last write of a step.
local function end_step()
  if source then
    set_reached()
    call('HINCRBY', KEYS[#KEYS], 'n', 1023)
  end
end

if ARGV.fence ~= '' then
  source, reached_before, reached_after = string.match(ARGV.fence, '^(%d+) (%S*) (%S+)$')
  local held = call('HMGET', KEYS[#KEYS], source, 'n')
  if (tonumber(held[2] or nil) or 0) % 1024 ~= 0 then
    return {'halved'}
  elseif (held[1] or '') ~= reached_before then
    return {'elsewhere', held[1] or ''}
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
