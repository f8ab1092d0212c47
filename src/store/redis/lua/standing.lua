-- Where one subject stands, and its amount in each slot.
--
-- KEYS  1-4 the board (board.lua), then the slots to read
-- ARGV  1-8 the board, 9 `desc` or `asc`, 10 subject, 11 how many slots
-- reply ok, now, reading, retiring, total, score or '', how many are better than that or 0, then the amount in each slot or ''
-- cost  O(log subjects + slots)
-- why a script: score, rank and slots are of one instant

local early = enter()
if early then
  return early
end
local reply = ok()
local score = redis.call('ZSCORE', RANKING, ARGV[10])
reply[5] = redis.call('ZCARD', RANKING)
reply[6] = score or ''
reply[7] = better_than(score or '0', ARGV[9] == 'asc')
for i = 1, tonumber(ARGV[11]) do
  reply[7 + i] = redis.call('HGET', KEYS[4 + i], ARGV[10]) or ''
end
return reply
