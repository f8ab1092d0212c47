-- How long a script takes the server, for the caller to choose how much to ask for. Not a script of its own.
--
-- Some servers answer TIME within a script with the time at its start (Redis from 7.2 on, Valkey); these have
-- `os.clock`, the processor time of the process. Others have only a TIME that goes on.

local os_library = rawget(_G, 'os')

local function microseconds()
  if os_library and os_library.clock then
    return os_library.clock() * 1000000
  end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local started = microseconds()

-- Answers the microseconds since the script began; -1 where nothing tells.
local function worked()
  local passed = microseconds() - started
  return passed > 0 and math.ceil(passed) or -1
end
