-- Returns the state of the board as a whole.
--
-- KEYS  1-5 the board (board.lua), then every slot that exists
-- ARGV  the board's, number of `slots`, then the start of each of those slots
-- reply ok, now, reading, retiring, total or nil if it is not known, number of keys or nil, the start below which slots
--       were dropped, the number of upheavals, then the number of subjects of each slot, then, in any order, start and
--       number of items of each slot in which items were counted
-- errors  stale_keys: other slots exist
-- cost  O(slots)
-- why a script: sizes and window must be of one instant
--
--- @include rankings
--- @arguments board.lua, slots
--- @repeatable

local early = read_meta('upheavals') or advance()
if early then
  return early
end
local slots = tonumber(ARGV.slots)
if not names_all_slots(FIXED_ARGUMENTS + 1, slots) then
  return stale_keys()
end
local reply = ok()
if HAS_KEYS then
  reply[5], reply[6] = ranked_number() or false, call('ZCARD', key_list())
else
  reply[5], reply[6] = call('ZCARD', RANKING), false
end
reply[7] = format(dropped)
reply[8] = tonumber(asked_field or 0) or 0
for i = 1, slots do
  reply[8 + i] = call('HLEN', KEYS[5 + i])
end
-- A slot may have items and no subject, so these are all slots, also of a board without an index of slots.
local fields = {}
for _, field in ipairs(call('HKEYS', META)) do
  if string.match(field, '^e:%-?%d+$') then
    fields[#fields + 1] = field
  end
end
for i, items in ipairs(read_thousands('HMGET', META, fields, 1, #fields)) do
  reply[#reply + 1] = string.sub(fields[i], 3)
  reply[#reply + 1] = format(tonumber(items) or 0)
end
return reply
