-- Returns a page of the ranking.
--
-- KEYS  1-5 the board (board.lua)
-- ARGV  the board's, `order`: `desc` or `asc`, `first` and `last` position, from 0
-- reply ok, now, reading, retiring, total, number of subjects with a better score than the first line, the board's
--       version or '', then subject, score, …
-- cost  O(log subjects + lines)
-- why a script: lines, total, rank and window must be of one instant, after the window was advanced

local early = enter()
if early then
  return early
end
local ascending = ARGV.order == 'asc'
local reply = ok()
local lines = call(ascending and 'ZRANGE' or 'ZREVRANGE', RANKING, ARGV.first, ARGV.last, 'WITHSCORES')
reply[5] = call('ZCARD', RANKING)
reply[6] = lines[2] and better_than(lines[2], ascending) or 0
reply[7] = call('HGET', META, 'version') or ''
for i = 1, #lines do
  reply[7 + i] = lines[i]
end
return reply
