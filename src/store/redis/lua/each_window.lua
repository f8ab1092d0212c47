-- The windows of a board that has further ones. The parts before this one are the text of the function `window_of`,
-- which has the keys and the arguments of one window as parameters of the usual names, and returns the window. Not a
-- script of its own.
--
-- ARGV  last: for each window, the number of its keys and that of its arguments

-- Returns this many values after a position.
local function slice(values, after, count)
  local own = {}
  for i = 1, count do
    own[i] = values[after + i]
  end
  return own
end

local windows = {}
local keys_read, arguments_read = 0, 0
for keys, arguments in string.gmatch(ARGV[#ARGV], '(%d+),(%d+)') do
  keys, arguments = tonumber(keys), tonumber(arguments)
  windows[#windows + 1] = window_of(slice(KEYS, keys_read, keys), slice(ARGV, arguments_read, arguments))
  keys_read, arguments_read = keys_read + keys, arguments_read + arguments
end
