-- Removes a board with everything it holds.
--
-- KEYS  1-5 the board (board.lua), then every slot and every dedupe bucket that exists
-- ARGV  1-8 the board, 9 how many slots, then their starts, then the numbers of the buckets
-- reply ok, now, reading, retiring
-- errors  stale_keys: other slots or buckets exist
-- cost  O(slots); what they hold is freed in the server's background
-- why a script: meta goes together with the keys it stands for, so that none is left behind

local early = enter()
if early then
  return early
end
local slots = tonumber(ARGV[9])
local buckets = redis.call('ZRANGE', BUCKETS, 0, -1)
local current = names_all_slots(10, slots) and #buckets == #ARGV - 9 - slots
for i = 1, #buckets do
  current = current and buckets[i] == ARGV[9 + slots + i]
end
if not current then
  return stale_keys()
end
local reply = ok()
for i = 1, #ARGV - 9 + 5 do
  redis.call('UNLINK', KEYS[i])
end
return reply
