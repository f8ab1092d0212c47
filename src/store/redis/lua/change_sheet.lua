-- Replaces a sheet of a track, if it is as the caller expects.
--
-- KEYS  1-5 the part (board.lua), 6 the sheets
-- ARGV  the part's, `id`: the name of the sheet, `from`: '=' and its text, or '' if there is no such sheet, `to`: the new
--       text
-- reply ok, now, reading, retiring, 1 if the sheet was `from`, otherwise 0 and nothing was done
-- cost  O(bytes of the texts)
-- why a script: no other change may come between the comparison and the replacement
--
--- @include enter
--- @arguments board.lua, id, from, to

local text = call('HGET', KEYS[6], ARGV.id)
local reply = ok()
if (text and '=' .. text or '') == ARGV.from then
  -- A subject is removed also when memory is full. The number of removals may be longer by some digits.
  if text and #ARGV.to <= #text + 16 then
    run_when_full()
  end
  call('HSET', KEYS[6], ARGV.id, ARGV.to)
  reply[5] = 1
else
  reply[5] = 0
end
return reply
