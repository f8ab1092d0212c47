-- Where one subject stands, and what it has in each slot.
--
-- KEYS  1-5 the board (board.lua), 6 the companion of the subject's values (COUNT_DISTINCT), then the slots to read
-- ARGV  1-8 the board, 9 `desc` or `asc`, 10 subject, 11 how many slots, 12 `capped` to be told when a value was
--       dropped last, or ''
-- reply ok, now, reading, retiring, total, score or '', how many are better than that or 0, the time of the latest
--       value dropped for want of room or '', then the cell in each slot or ''
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
reply[8] = ARGV[12] == 'capped' and redis.call('ZSCORE', KEYS[6], 'c') or ''
for i = 1, tonumber(ARGV[11]) do
  reply[8 + i] = redis.call('HGET', KEYS[6 + i], ARGV[10]) or ''
end
return reply
