-- Counts the lines that one of several parts has before two places, and returns all lines between them or samples.
--
-- KEYS  1-5 the part (board.lua)
-- ARGV  1-8 the part, 9 `desc` or `asc`, 10 score and 11 subject of the first place, 12 and 13 of the second; '' is the
--       start or the end of the ranking, 14 number of samples, 15 the largest number of lines that are all returned
-- reply ok, now, reading, retiring, total, lines before the first place, lines with a better score than it, lines
--       before the second place, the part's version or '', then for each line or sample: number of lines before it,
--       subject, score
-- cost  O(log² subjects), O(log subjects) for each sample, O(lines) if all are returned
-- why a script: counts and lines must be of one instant, after the window was advanced

local early = enter_with_version()
if early then
  return early
end
local total = call('ZCARD', RANKING)
local from, better, till = 0, 0, total
if ARGV[10] ~= '' then
  from, better = lines_before(ARGV[10], ARGV[11]), better_than(ARGV[10], ASCENDING)
end
if ARGV[12] ~= '' then
  till = lines_before(ARGV[12], ARGV[13])
end
local reply = ok()
reply[5], reply[6], reply[7], reply[8], reply[9] = total, from, better, till, asked_field or ''

local function add(first, lines)
  for i = 1, #lines, 2 do
    reply[#reply + 1] = first + (i - 1) / 2
    reply[#reply + 1] = lines[i]
    reply[#reply + 1] = lines[i + 1]
  end
end

if till - from <= tonumber(ARGV[15]) then
  -- An empty range is not read: `till` may be before `from`.
  if till > from then
    add(from, call(LINES, RANKING, format(from), format(till - 1), 'WITHSCORES'))
  end
else
  local samples = tonumber(ARGV[14])
  for i = 1, samples do
    local position = from + math.floor((till - from) * i / (samples + 1))
    add(position, call(LINES, RANKING, format(position), format(position), 'WITHSCORES'))
  end
end
return reply
