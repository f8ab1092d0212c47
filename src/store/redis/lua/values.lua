-- Returns a page of the values that a subject was seen with, the latest first.
--
-- KEYS  1-5 the board (board.lua), 6 the values by time, 7 their companion (kind/distinct.lua)
-- ARGV  the board's, `offset`: number of values to skip, `limit`: number of values to return
-- reply ok, now, reading, retiring, the time of the latest value dropped because of the limit or '', number of values
--       in the window, then value, time, …
-- cost  O(log values + values returned)
-- why a script: total and page must be of one instant, after the window was advanced

local early = enter()
if early then
  return early
end
local reply = ok()
reply[5] = call('ZSCORE', KEYS[7], 'c') or ''
reply[6] = call('ZCOUNT', KEYS[6], ARGV.floor, '+inf')
-- Read by position: a read by time would walk over the skipped values. The values of the window come before all others.
local first, last = tonumber(ARGV.offset), math.min(ARGV.offset + ARGV.limit, reply[6]) - 1
if first <= last then
  local page = call('ZREVRANGE', KEYS[6], format(first), format(last), 'WITHSCORES')
  for i = 1, #page do
    reply[6 + i] = page[i]
  end
end
return reply
