-- Changes what is set for subjects of a partition, and moves their scores between the ranking and the scores of hidden
-- subjects, in all tracks.
--
-- KEYS  for each track, the main one first: 1-5 the board (board.lua); for the main one 6: the letters by subject, 7: the
--       list of the hidden subjects, 8: that of the frozen ones
-- ARGV  for each track: the board's (board.lua), those of the operation (operation.lua), which are not used, `sizes`
--       (tracks.lua), `version`: a new version, `most`: the largest number of subjects for which something is set,
--       `is_final`: 1 if the track is that of a period to which nothing is written, else 0; then
--       for the main track, for each subject, each once: subject; `v` to show it, `h` to hide it, `s` to shadow it, or ''
--       to leave that as it is; `1` to freeze it, `0` to end that, or ''
-- reply ok, now, reading, retiring, then 1 if it is done, or 0 if there would be too many subjects: then nothing was done
-- cost  3 us for each subject, and O(log subjects) for each of its scores
-- why a script: no write may come between the change and the move of the scores, and each counts in all tracks or none
--
--- @each_track operation
--- @include enter_all
--- @arguments board.lua, operation.lua, sizes, version, most, is_final
--- @repeatable

local MARKS, HIDDEN_LIST, FROZEN_LIST = KEYS[6], KEYS[7], KEYS[8]
local argv = main.argv
local first, last = FIXED_ARGUMENTS + 1, #argv
local reply = main.ok()
reply[5] = 1
if last < first then
  return reply
end

-- Lists of subjects: those whose scores move, those that enter and leave each list, and those without letters; and pairs
-- of subjects and letters.
local hidden, shown, held, without = {}, {}, {}, {}
local entering, leaving = {[HIDDEN_LIST] = {}, [FROZEN_LIST] = {}}, {[HIDDEN_LIST] = {}, [FROZEN_LIST] = {}}
local more, changed = 0, false
for at = first, last, 3 do
  local subject, visibility, frozen = argv[at], argv[at + 1], argv[at + 2]
  local before = call('HGET', MARKS, subject) or ''
  local was_hidden = before ~= '' and before ~= 'f'
  local was_frozen = string.sub(before, -1) == 'f'
  local seen = was_hidden and string.sub(before, 1, 1) or 'v'
  if visibility ~= '' then
    seen = visibility
  end
  local is_hidden, is_frozen = seen ~= 'v', was_frozen
  if frozen ~= '' then
    is_frozen = frozen == '1'
  end
  local after = (is_hidden and seen or '') .. (is_frozen and 'f' or '')
  changed = changed or after ~= before
  if is_hidden and not was_hidden then
    hidden[#hidden + 1] = subject
  elseif was_hidden and not is_hidden then
    shown[#shown + 1] = subject
  end
  for list, changes in pairs({[HIDDEN_LIST] = {was_hidden, is_hidden}, [FROZEN_LIST] = {was_frozen, is_frozen}}) do
    if changes[2] and not changes[1] then
      table.insert(entering[list], 0)
      table.insert(entering[list], subject)
    elseif changes[1] and not changes[2] then
      table.insert(leaving[list], subject)
    end
  end
  if after == '' then
    without[#without + 1] = subject
  else
    held[#held + 1], held[#held + 2] = subject, after
    more = more + (before == '' and 1 or 0)
  end
end
if not changed then
  return reply
end
if more > 0 and call('HLEN', MARKS) + more > tonumber(argv.most) then
  reply[5] = 0
  return reply
end
-- A value of another type must end the script before it writes.
for _, track in ipairs(tracks) do
  call('ZCARD', track.keys[3])
end

-- A server that is restarted may have kept only the first of these writes. Then a subject for which nothing is set is
-- missing in its ranking, which an audit repairs.
main.run_when_full()
for _, track in ipairs(tracks) do
  call('HSET', track.keys[1], 'marks', MARKS)
  track.hide(hidden)
end
for _, list in ipairs({HIDDEN_LIST, FROZEN_LIST}) do
  main.each_thousand('ZADD', list, entering[list])
  main.each_thousand('ZREM', list, leaving[list])
end
main.each_thousand('HSET', MARKS, held)
main.each_thousand('HDEL', MARKS, without)
local is_last = call('EXISTS', MARKS) == 0
for _, track in ipairs(tracks) do
  track.show(shown)
  if is_last then
    call('HDEL', track.keys[1], 'marks')
  end
  if track.argv.is_final == '1' and #hidden + #shown > 0 then
    -- For a walk over its ranking.
    call('HINCRBY', track.keys[1], 'upheavals', 1)
  end
  track.touch(main.argv.version)
end
return reply
