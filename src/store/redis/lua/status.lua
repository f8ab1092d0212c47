-- Returns the state of the board as a whole.
--
-- KEYS  1-5 the board (board.lua), then every slot that exists
-- ARGV  the board's, then the start of each of those slots
-- reply ok, now, reading, retiring, total, the start below which slots were dropped, then the number of subjects of
--       each slot
-- errors  stale_keys: other slots exist
-- cost  O(slots)
-- why a script: sizes and window must be of one instant

local early = enter()
if early then
  return early
end
local slots = #ARGV - FIXED_ARGUMENTS
if not names_all_slots(FIXED_ARGUMENTS + 1, slots) then
  return stale_keys()
end
local reply = ok()
reply[5] = call('ZCARD', RANKING)
reply[6] = format(dropped)
for i = 1, slots do
  reply[6 + i] = call('HLEN', KEYS[5 + i])
end
return reply
