-- The store's clock, for every script that needs the time. Not a script of its own.
--
-- ARGV  1 `system` or `simulated`
--       2 on a system clock: the latest reading the caller believes; one beyond it is not believed
--       3 what the caller takes for now: on a system clock where it does not believe the reading

local function format(number)
  return string.format('%.0f', number)
end

-- Answers the time to go by and the reading itself, in milliseconds. A simulated clock may be on another server, so the
-- caller has read it.
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
