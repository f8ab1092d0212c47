-- Returns a page of the values that a subject was seen with, the latest first.
--
-- KEYS  1-5 the board (board.lua), 6 the values by time, 7 their companion (kind/distinct.lua)
-- ARGV  the board's, `order`: `desc` (places.lua), `offset`: number of values to skip, `last_seen` and `value`: the
--       place after which the page begins, or '' and '' for the offset, `limit`: number of values to return
-- reply ok, now, reading, retiring, the time of the latest value dropped because of the limit or '', number of values
--       in the window, number of them before the page, then value, time, …
-- cost  O(log values + values returned), and O(log² values) to find a place among values of the same time
-- why a script: total and page must be of one instant, after the window was advanced
--
--- @include places, enter
--- @arguments board.lua, order, offset, last_seen, value, limit
--- @repeatable

local reply = ok()
reply[5] = call('ZSCORE', KEYS[7], 'c') or ''
local total = call('ZCOUNT', SORTED, ARGV.floor, '+inf')
local first = tonumber(ARGV.offset)
if ARGV.last_seen ~= '' then
  local before, is_held = lines_before(ARGV.last_seen, ARGV.value)
  first = is_held and before + 1 or before
end
first = math.min(first, total)
reply[6], reply[7] = total, first
-- Read by position: a read by time would walk over the skipped values. The values of the window come before all others.
local last = math.min(first + ARGV.limit, total) - 1
if first <= last then
  local page = call(LINES, SORTED, format(first), format(last), 'WITHSCORES')
  for i = 1, #page do
    reply[7 + i] = page[i]
  end
end
return reply
