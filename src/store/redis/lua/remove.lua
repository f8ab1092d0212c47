-- Removes a subject from the ranking and from every slot.
--
-- KEYS  1-5 the board (board.lua), then every slot that exists, then the subject's own keys, if any
-- ARGV  the board's, `subject`, `version`: the new board version, `forget`: '1' if noted ranks no longer name the subject,
--       otherwise ''; then the start of each of those slots
-- reply ok, now, reading, retiring, its previous score or '', number of live slots and number of retiring slots that
--       had an amount, 1 if anything is set for the subject (hidden.lua), otherwise 0
-- errors  stale_keys: other slots exist
--       importing: an import is open; nothing was done
-- cost  O(log subjects + slots)
-- why a script: if a slot was left out, or a write came in between, score and slots would differ
--
--- @include rankings, enter_removing
--- @arguments board.lua, subject, version, forget

local slots = #ARGV - FIXED_ARGUMENTS
if not names_all_slots(FIXED_ARGUMENTS + 1, slots) then
  return stale_keys()
end
call('ZCARD', RANKING)
held_score(ARGV.subject)
call('HLEN', TOTALS)
for i = 1, slots do
  call('HLEN', KEYS[5 + i])
end
local ranks = ARGV.forget ~= '' and call('HGET', META, 'ranks') or ''
run_when_full()
if ranks ~= '' then
  local lines = cmsgpack.unpack(ranks)
  for i = 1, #lines, 2 do
    if lines[i] == ARGV.subject then
      lines[i] = ''
      call('HSET', META, 'ranks', cmsgpack.pack(lines))
      break
    end
  end
end
local score = held_score(ARGV.subject) or ''
unrank({ARGV.subject})
call('HDEL', TOTALS, ARGV.subject)
local live, retiring = 0, 0
for i = 1, slots do
  local start = tonumber(ARGV[FIXED_ARGUMENTS + i])
  if call('HDEL', KEYS[5 + i], ARGV.subject) == 1 then
    if start >= FLOOR then
      live = live + 1
    elseif start >= dropped then
      retiring = retiring + 1
    end
    if call('HLEN', KEYS[5 + i]) == 0 then
      call('ZREM', INDEX, ARGV[FIXED_ARGUMENTS + i])
    end
  end
end
for i = 6 + slots, #KEYS do
  call('UNLINK', KEYS[i])
end
recount()
call('HINCRBY', META, 'upheavals', 1)
touch(ARGV.version)
local reply = ok()
reply[5], reply[6], reply[7], reply[8] = score, live, retiring, marks and letters(ARGV.subject) and 1 or 0
return reply
