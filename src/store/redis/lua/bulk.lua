-- Commands with more values than `unpack` takes at once. Not a script of its own.

local call = redis.call

-- Calls with an even number of the values at a time. Answers the sum of the replies.
local function each_thousand(command, key, values)
  local sum = 0
  for first = 1, #values, 1000 do
    sum = sum + call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
  return sum
end
