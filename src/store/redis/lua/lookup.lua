-- Returns the scores of given subjects.
--
-- KEYS  1-5 the board (board.lua)
-- ARGV  the board's, then the subjects
-- reply ok, now, reading, retiring, total, then each subject's score, '' if it is not ranked
-- cost  O(1) per subject
-- why a script: all scores must be of one instant, after the window was advanced

local early = enter()
if early then
  return early
end
local reply = ok()
reply[5] = call('ZCARD', RANKING)
-- `unpack` fails with about 8,000 values.
for first = FIXED_ARGUMENTS + 1, #ARGV, 1000 do
  local scores = call('ZMSCORE', RANKING, unpack(ARGV, first, math.min(first + 999, #ARGV)))
  for i = 1, #scores do
    reply[#reply + 1] = scores[i] or ''
  end
end
return reply
