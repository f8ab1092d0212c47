-- The arguments of retiring (retire.lua), by name. Not a script of its own.

local call = redis.call
local FIRST_SLOT_KEY, FIRST_START = 8, 15
local SLOTS = #ARGV - FIRST_START

-- Calls with so many values that `unpack` would fail on all of them at once; an even number at a time. Answers the
-- sum of the replies.
local function each_thousand(command, key, values)
  local sum = 0
  for first = 1, #values, 1000 do
    sum = sum + call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
  return sum
end
