-- Returns a page of the ranking next to a place.
--
-- KEYS  1-5 the board (board.lua)
-- ARGV  the board's, `order`: `desc` or `asc`, `score` and `subject` of the place, `boundary`: whether the boundary is
--       `before` or `after` the line at the place, if there is one, `direction` from the boundary: `forward` or
--       `backward`, `limit`: number of lines
-- reply ok, now, reading, retiring, total, position of the first line from 0, number of subjects with a better score
--       than the first line, then subject, score, …
-- cost  O(log subjects + lines); for a place in a tie O(log²)
-- why a script: position and lines must be of one instant; with two commands, a write between them could change the
--       position

local early = enter()
if early then
  return early
end
local position, has_line = lines_before(ARGV.score, ARGV.subject)
if has_line and ARGV.boundary == 'after' then
  position = position + 1
end
local limit = tonumber(ARGV.limit)
local first, last = position, position + limit - 1
if ARGV.direction == 'backward' then
  first, last = math.max(0, position - limit), position - 1
end
-- An empty range is not read: from 0 to -1 would be all lines.
local lines = {}
if first <= last then
  lines = call(LINES, RANKING, format(first), format(last), 'WITHSCORES')
end
local reply = ok()
reply[5] = call('ZCARD', RANKING)
reply[6], reply[7] = first, lines[2] and better_than(lines[2], ASCENDING) or 0
for i = 1, #lines do
  reply[7 + i] = lines[i]
end
return reply
