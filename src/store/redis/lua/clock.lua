-- The store's clock, for every script that needs the time. Not a script of its own.
--
-- ARGV  `clock`: `system` or `simulated`
--       `believable`: on a system clock, the latest reading that the caller believes; a later one is not believed
--       `time` to use on a simulated clock, and on a system clock if the reading is not believed

local function format(number)
  return string.format('%.0f', number)
end

-- Returns the time to use and the reading itself, in milliseconds. A simulated clock may be on a different server, so
-- the caller has read it.
local function read_clock()
  if ARGV.clock == 'simulated' then
    local now = tonumber(ARGV.time)
    return now, now
  end
  local time = redis.call('TIME')
  local reading = time[1] * 1000 + math.floor(time[2] / 1000)
  if reading > tonumber(ARGV.believable) then
    return tonumber(ARGV.time), reading
  end
  return reading, reading
end
