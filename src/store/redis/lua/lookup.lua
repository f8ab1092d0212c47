-- Returns the scores of given subjects and, if requested, their ranks. Counts the subjects that are better than given
-- scores, or the lines before given places.
--
-- KEYS  1-5 the partition (board.lua), 6 the ranking
-- ARGV  the partition's, `order`: `desc` or `asc`, `key` of the ranking, or '', `ranks` to get the subjects' ranks,
--       `ties` to also count ties, or '', `rank_of`: `score`, or `line` if each line has a rank of its own, `near`:
--       number of lines to return on each side of each given score, or `places`, number of `subjects`; then the
--       subjects, then any number of scores; with `places` then the subject of each of these
-- reply ok, now, reading, retiring, total, then each subject's score, '' if it is not ranked; then, with ranks, for
--       each subject the number of subjects with a better score, or of lines before it, 0 if it is not ranked; then,
--       with ties, for each subject the number of subjects whose score is not worse, 0 if it is not ranked; then for
--       each given score the number of subjects with a better one, or of lines before its place, and, if `near` is not
--       0, a list: number of lines before the first returned one, lines with a better score than it, then the scores of
--       the lines
-- cost  O(1) per subject; O(log subjects) for each different score of a rank, and O(log subjects + near) for each given
--       score. Counting takes about 3 us with 100,000 subjects, and 9 us with a million
-- why a script: all scores and ranks must be of one instant, after the window was advanced
--
--- @include ranking
--- @arguments board.lua, order, key, ranks, rank_of, near, subjects
--- @repeatable

local SUBJECTS = tonumber(ARGV.subjects)
local LAST = FIXED_ARGUMENTS + SUBJECTS
local reply = ok()
reply[5] = call('ZCARD', SORTED)
-- `unpack` fails with about 8,000 values.
for first = FIXED_ARGUMENTS + 1, LAST, 1000 do
  local scores = call('ZMSCORE', SORTED, unpack(ARGV, first, math.min(first + 999, LAST)))
  for i = 1, #scores do
    reply[#reply + 1] = scores[i] or ''
  end
end
-- Adds a count for the score of each subject. Subjects with equal scores share it, and it is counted once.
local function add_counts(of_score)
  local counts = {[''] = 0}
  for i = 6, 5 + SUBJECTS do
    local score = reply[i]
    counts[score] = counts[score] or of_score(score)
    reply[#reply + 1] = counts[score]
  end
end
if ARGV.ranks ~= '' and ARGV.rank_of == 'line' then
  for i = 1, SUBJECTS do
    reply[#reply + 1] = call(ASCENDING and 'ZRANK' or 'ZREVRANK', SORTED, ARGV[FIXED_ARGUMENTS + i]) or 0
  end
elseif ARGV.ranks ~= '' then
  add_counts(better_than)
end
if ARGV.ranks == 'ties' then
  add_counts(not_worse_than)
end
if ARGV.near == 'places' then
  local places = (#ARGV - LAST) / 2
  for i = LAST + 1, LAST + places do
    reply[#reply + 1] = lines_before(ARGV[i], ARGV[i + places])
  end
  return reply
end
local near = tonumber(ARGV.near)
for i = LAST + 1, #ARGV do
  local better = better_than(ARGV[i])
  reply[#reply + 1] = better
  if near > 0 then
    local first = math.max(0, better - near)
    local lines = call(LINES, SORTED, format(first), format(better + near - 1), 'WITHSCORES')
    local scores = {first, lines[2] and better_than(lines[2]) or 0}
    for line = 2, #lines, 2 do
      scores[#scores + 1] = lines[line]
    end
    reply[#reply + 1] = scores
  end
end
return reply
