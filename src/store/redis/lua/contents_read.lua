-- Returns what some subjects have in keys of their own, until a bounded number of cells or values was read.
--
-- KEYS  1-5 the board (board.lua), then the keys of each subject: two on a `seen` board, else one
-- ARGV  the board's, `stored`: how the board stores subjects: `subject`, `seen` or `counter`; `kept`: start of the
--       oldest slot kept, time below which tombstones have expired, or duration of a counter's window in ms; `most`:
--       the largest number of cells or values of a subject, and approximately of all subjects together
-- reply ok, now, reading, retiring, then for each of the first subjects a list: `large` alone if it has more than that
--       number; or start, cell, …; or start and amount of the counter, if its window has not ended; or the number of
--       values, then value, time, … and after them, in the same form, the members of its companion (kind/distinct.lua)
-- cost  2 us per subject and 0.2 us per cell or value
-- why a script: how much is returned depends on how much there is, and expired data must not be, after the window was
--       advanced
--
--- @include enter
--- @arguments board.lua, stored, kept, most
--- @repeatable

local KEPT, MOST = tonumber(ARGV.kept), tonumber(ARGV.most)
local FIRST_KEY, OWN = 6, ARGV.stored == 'seen' and 2 or 1
local LARGE = {'large'}

-- Each function receives the position of a subject's first key, and returns what to return about it and its size.
local read = {}

function read.subject(at)
  local size = call('HLEN', KEYS[at])
  if size > MOST then
    return LARGE, MOST
  end
  local held, cells = call('HGETALL', KEYS[at]), {}
  for i = 1, #held, 2 do
    local start = tonumber(held[i])
    if start and start >= KEPT then
      cells[#cells + 1] = held[i]
      cells[#cells + 1] = held[i + 1]
    end
  end
  return cells, size
end

function read.seen(at)
  local size = call('ZCARD', KEYS[at]) + call('ZCARD', KEYS[at + 1])
  if size > MOST then
    return LARGE, MOST
  end
  local values = call('ZRANGEBYSCORE', KEYS[at], ARGV.floor, '+inf', 'WITHSCORES')
  local cells = {#values / 2}
  for i = 1, #values do
    cells[i + 1] = values[i]
  end
  -- The caller leaves out expired tombstones, because the member `c` may be kept for longer.
  for _, gone in ipairs(call('ZRANGEBYSCORE', KEYS[at + 1], ARGV.floor, '+inf', 'WITHSCORES')) do
    cells[#cells + 1] = gone
  end
  return cells, size
end

function read.counter(at)
  local held = call('HMGET', KEYS[at], 's', 'a')
  local start = tonumber(held[1] or nil)
  if start and held[2] and now < start + KEPT then
    return {held[1], held[2]}, 1
  end
  return {}, 1
end

local reply = ok()
local room = MOST
for at = FIRST_KEY, #KEYS, OWN do
  local cells, size = read[ARGV.stored](at)
  room = room - size - 1
  reply[#reply + 1] = cells
  if room <= 0 then
    break
  end
end
return reply
