-- Returns the scores of given subjects and, if requested, their ranks. Counts the subjects that are better than given
-- scores.
--
-- KEYS  1-5 the board (board.lua)
-- ARGV  the board's, `order`: `desc` or `asc`, `ranks` to get the subjects' ranks, or '', number of `subjects`; then
--       the subjects, then any number of scores
-- reply ok, now, reading, retiring, total, then each subject's score, '' if it is not ranked; then, with ranks, for
--       each subject the number of subjects with a better score, 0 if it is not ranked; then for each given score the
--       number of subjects with a better one
-- cost  O(1) per subject; O(log subjects) for each different score of a rank, and for each given score. With a million
--       subjects about 9 us for each of these
-- why a script: all scores and ranks must be of one instant, after the window was advanced

local early = enter()
if early then
  return early
end
local ascending = ARGV.order == 'asc'
local SUBJECTS = tonumber(ARGV.subjects)
local LAST = FIXED_ARGUMENTS + SUBJECTS
local reply = ok()
reply[5] = call('ZCARD', RANKING)
-- `unpack` fails with about 8,000 values.
for first = FIXED_ARGUMENTS + 1, LAST, 1000 do
  local scores = call('ZMSCORE', RANKING, unpack(ARGV, first, math.min(first + 999, LAST)))
  for i = 1, #scores do
    reply[#reply + 1] = scores[i] or ''
  end
end
if ARGV.ranks == 'ranks' then
  -- Subjects with equal scores share a rank, which is counted once.
  local better = {[''] = 0}
  for i = 6, 5 + SUBJECTS do
    local score = reply[i]
    better[score] = better[score] or better_than(score, ascending)
    reply[SUBJECTS + i] = better[score]
  end
end
for i = LAST + 1, #ARGV do
  reply[#reply + 1] = better_than(ARGV[i], ascending)
end
return reply
