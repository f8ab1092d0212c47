-- Returns consecutive lines of one of several parts: from its start, around a place, or around a subject; if requested,
-- with the subject's cells.
--
-- KEYS  1-5 the part (board.lua), then, if `capped`, the companion of the subject's values (COUNT_DISTINCT), then the
--       slots to read
-- ARGV  the part's, `order`: `desc` or `asc`, `from`: `start`, `place` or `subject`, `score` of the place; or of the
--       subject, if it is not ranked, `subject`, number of lines `before`, number of lines from there on (`after`),
--       `capped` or ''
-- reply ok, now, reading, retiring, total, lines before the first returned one, lines with a better score than it, the
--       part's version or '', then a list: the subject's score or '', the time of its latest value dropped because of
--       the limit or '', then position (from 1) and cell of every slot that has data; then subject, score, … of the
--       lines
-- cost  O(log subjects + lines + slots); for a place in a tie O(log²)
-- why a script: lines and counts must be of one instant, after the window was advanced

local early = enter_with_version()
if early then
  return early
end
local CAPPED = ARGV.capped == 'capped'
local COMPANION = 6
local FIRST_SLOT = CAPPED and COMPANION + 1 or COMPANION

local center, located = 0, {'', ''}
if ARGV.from ~= 'start' then
  local score = ARGV.score
  if ARGV.from == 'subject' then
    located[1] = call('ZSCORE', RANKING, ARGV.subject) or ''
    if located[1] ~= '' then
      score = located[1]
    end
  end
  center = lines_before(score, ARGV.subject)
end
if CAPPED then
  located[2] = call('ZSCORE', KEYS[COMPANION], 'c') or ''
end
for slot = FIRST_SLOT, #KEYS do
  local cell = call('HGET', KEYS[slot], ARGV.subject)
  if cell then
    located[#located + 1] = slot - FIRST_SLOT + 1
    located[#located + 1] = cell
  end
end

local first = math.max(0, center - tonumber(ARGV.before))
local lines = call(LINES, RANKING, format(first), format(center + tonumber(ARGV.after) - 1), 'WITHSCORES')
local reply = ok()
reply[5] = call('ZCARD', RANKING)
reply[6], reply[7] = first, lines[2] and better_than(lines[2], ASCENDING) or 0
reply[8], reply[9] = asked_field or '', located
for i = 1, #lines do
  reply[9 + i] = lines[i]
end
return reply
