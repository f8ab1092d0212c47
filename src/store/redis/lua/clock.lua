-- The store's clock, for every script that needs the time. Not a script of its own.
--
-- ARGV  1 `system` or `simulated`
--       2 on a system clock: the latest reading that the caller believes; a later one is not believed
--       3 the time to use on a simulated clock, and on a system clock if the reading is not believed

local function format(number)
  return string.format('%.0f', number)
end

-- Returns the time to use and the reading itself, in milliseconds. A simulated clock may be on a different server, so
-- the caller has read it.
local function read_clock()
  if ARGV[1] == 'simulated' then
    local now = tonumber(ARGV[3])
    return now, now
  end
  local time = redis.call('TIME')
  local reading = time[1] * 1000 + math.floor(time[2] / 1000)
  if reading > tonumber(ARGV[2]) then
    return tonumber(ARGV[3]), reading
  end
  return reading, reading
end
