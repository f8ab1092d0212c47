-- Commands with more values than `unpack` accepts. Not a script of its own.

local call = redis.call

-- Calls the command repeatedly, each time with at most 1,000 of the values. The number is even, so that pairs stay
-- together. Returns the sum of the replies.
local function each_thousand(command, key, values)
  local sum = 0
  for first = 1, #values, 1000 do
    sum = sum + call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
  return sum
end
