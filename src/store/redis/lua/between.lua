-- Counts the lines that one of several partitions has before two places, and returns all lines between them or samples.
--
-- KEYS  1-5 the partition (board.lua), 6 the ranking
-- ARGV  the partition's, `order`: `desc` or `asc`, `key` of the ranking, or '', `from_score` and `from_subject` of the
--       first place, `till_score` and `till_subject` of the second; '' is the start or the end of the ranking, number
--       of `samples`, `all_up_to`: the largest number of lines that are all returned
-- reply ok, now, reading, retiring, total, lines before the first place, lines with a better score than it, lines
--       before the second place, the partition's version or '', then for each line or sample: number of lines before
--       it, subject, score
-- cost  O(log² subjects), O(log subjects) for each sample, O(lines) if all are returned
-- why a script: counts and lines must be of one instant, after the window was advanced
--
--- @include ranking
--- @arguments board.lua, order, key, from_score, from_subject, till_score, till_subject, samples, all_up_to
--- @repeatable

local total = call('ZCARD', SORTED)
local from, better, till = 0, 0, total
if ARGV.from_score ~= '' then
  from, better = lines_before(ARGV.from_score, ARGV.from_subject), better_than(ARGV.from_score)
end
if ARGV.till_score ~= '' then
  till = lines_before(ARGV.till_score, ARGV.till_subject)
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

if till - from <= tonumber(ARGV.all_up_to) then
  -- An empty range is not read: `till` may be before `from`.
  if till > from then
    add(from, call(LINES, SORTED, format(from), format(till - 1), 'WITHSCORES'))
  end
else
  local samples = tonumber(ARGV.samples)
  for i = 1, samples do
    local position = from + math.floor((till - from) * i / (samples + 1))
    add(position, call(LINES, SORTED, format(position), format(position), 'WITHSCORES'))
  end
end
return reply
