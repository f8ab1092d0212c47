-- Measures how long a script runs on the server, so that the caller can choose the size of the next step. Not a script
-- of its own.
--
-- Some servers reply to TIME within a script with the time at its start (Redis from 7.2 on, Valkey). These have
-- `os.clock`, the processor time of the process. On the others, TIME moves on during a script.

local os_library = rawget(_G, 'os')

local function microseconds()
  if os_library and os_library.clock then
    return os_library.clock() * 1000000
  end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local started = microseconds()

-- Returns the microseconds since the script began, or -1 if no measurement is possible.
local function worked()
  local passed = microseconds() - started
  return passed > 0 and math.ceil(passed) or -1
end
