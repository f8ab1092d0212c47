-- Returns scores at given percentiles of a ranking, and the numbers of subjects around given scores.
--
-- KEYS  1-5 the partition (board.lua), 6 the ranking
-- ARGV  the partition's, `order`: `desc` or `asc`, `key` of the ranking, or '', number of `percentiles`; then these, in
--       thousandths of a percent; then any number of scores
-- reply ok, now, reading, retiring, total, then for each percentile the score there, or '' if nobody is ranked, then for
--       each score the number of subjects with a better one, and the number of those that have it
-- cost  O(log subjects) for each percentile and score: 3-9 us
-- why a script: all numbers must be of one instant, after the window was advanced
--
--- @include ranking
--- @arguments board.lua, order, key, percentiles
--- @repeatable

local LAST = FIXED_ARGUMENTS + tonumber(ARGV.percentiles)
local reply = ok()
local total = call('ZCARD', SORTED)
reply[5] = total
for i = FIXED_ARGUMENTS + 1, LAST do
  -- The product is below 2^53 with fewer than 90 billion subjects.
  local position = math.min(math.floor(total * (100000 - tonumber(ARGV[i])) / 100000), total - 1)
  local line = total > 0 and call(LINES, SORTED, format(position), format(position), 'WITHSCORES')
  reply[#reply + 1] = line and line[2] or ''
end
for i = LAST + 1, #ARGV do
  reply[#reply + 1] = better_than(ARGV[i])
  reply[#reply + 1] = call('ZCOUNT', SORTED, ARGV[i], ARGV[i])
end
return reply
