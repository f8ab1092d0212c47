-- Returns consecutive lines of a ranking: from a position on, next to a place, or around a subject; if requested, with
-- the subject's cells.
--
-- KEYS  1-5 the partition (board.lua), 6 the ranking, then, if `capped`, the companion of the subject's values
--       (COUNT_DISTINCT), then the slots to read
-- ARGV  the partition's, `order`: `desc` or `asc`; `key` of the ranking, or ''; `center`: `position`, `place`,
--       `after_line` (the place, after its line if it has one) or `subject`; `at`: the position from 0, or the score of
--       the place, or that of the subject if it is not ranked: '' to return no lines then; `subject`; number of lines
--       `before` the center, number of lines from there on (`after`), `capped` or '', `ties` or ''
-- reply ok, now, reading, retiring, total, lines before the first returned one (or before the center, if there is
--       none), lines with a better score than the first, the partition's version or '', with `ties`, if there are lines,
--       the number of lines whose score is not worse than that of the last one, otherwise nil; then, if the center is a
--       subject, a list: its score or '', its letters (hidden.lua) or '', the time of its latest value dropped because
--       of the limit or '', then position (from 1) and cell of every slot that has data; then subject, score, … of the
--       lines
-- cost  O(log subjects + lines + slots); for a place in a tie O(log²)
-- why a script: lines and counts must be of one instant, after the window was advanced; with several commands, a write
--       between them could change the position
--
--- @include hidden, ranking
--- @arguments board.lua, order, key, center, at, subject, before, after, capped, ties
--- @repeatable

local CENTER, CAPPED = ARGV.center, ARGV.capped == 'capped'
local COMPANION = 7
local FIRST_SLOT = CAPPED and COMPANION + 1 or COMPANION

local reply = ok()
local total = call('ZCARD', SORTED)
local center
if CENTER == 'position' then
  center = math.min(tonumber(ARGV.at), total)
else
  local score, has_line = ARGV.at
  if CENTER == 'subject' then
    local held, own = call('ZSCORE', SORTED, ARGV.subject), ''
    -- Of a ranking of a key only the neighbors are read, and a subject has others there if it is visible.
    if ARGV.key == '' and is_hidden(ARGV.subject) then
      held, own = call('ZSCORE', hidden_ranking(), ARGV.subject), letters(ARGV.subject)
    end
    local located = {held or '', own, CAPPED and call('ZSCORE', KEYS[COMPANION], 'c') or ''}
    for slot = FIRST_SLOT, #KEYS do
      local cell = call('HGET', KEYS[slot], ARGV.subject)
      if cell then
        located[#located + 1] = slot - FIRST_SLOT + 1
        located[#located + 1] = cell
      end
    end
    reply[10] = located
    if held and (own == '' or score ~= '') then
      score = held
    end
  end
  if score ~= '' then
    center, has_line = lines_before(score, ARGV.subject)
    if has_line and CENTER == 'after_line' then
      center = center + 1
    end
  end
end

local first, lines = 0, {}
if center then
  first = math.max(0, center - tonumber(ARGV.before))
  local last = center + tonumber(ARGV.after) - 1
  -- An empty range is not read: from 0 to -1 would be all lines.
  if first <= last then
    lines = call(LINES, SORTED, format(first), format(last), 'WITHSCORES')
  end
end
reply[5], reply[6] = total, first
reply[7] = first > 0 and lines[2] and better_than(lines[2]) or 0
reply[8] = asked_field or ''
reply[9] = ARGV.ties ~= '' and lines[1] ~= nil and not_worse_than(lines[#lines])
local size = #reply
for i = 1, #lines do
  reply[size + i] = lines[i]
end
return reply
