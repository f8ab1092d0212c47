-- Returns the ranking around one subject.
--
-- KEYS  1-5 the board (board.lua)
-- ARGV  the board's, `order`: `desc` or `asc`, `subject`, `radius`: number of lines on each side
-- reply ok, now, reading, retiring, total, position of the first line from 0, number of subjects with a better score
--       than the first line, then subject, score, …; no lines if the subject is not ranked
-- cost  O(log subjects + lines)
-- why a script: position and lines must be of one instant; with two commands, a write between them could change the
--       position

local early = enter()
if early then
  return early
end
local ascending = ARGV.order == 'asc'
local reply = ok()
reply[5] = call('ZCARD', RANKING)
reply[6], reply[7] = 0, 0
local place = call(ascending and 'ZRANK' or 'ZREVRANK', RANKING, ARGV.subject)
if place then
  local radius = tonumber(ARGV.radius)
  local first = math.max(0, place - radius)
  local lines = call(
    ascending and 'ZRANGE' or 'ZREVRANGE', RANKING, format(first), format(place + radius), 'WITHSCORES')
  reply[6], reply[7] = first, better_than(lines[2], ascending)
  for i = 1, #lines do
    reply[7 + i] = lines[i]
  end
end
return reply
