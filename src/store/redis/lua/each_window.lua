-- The windows of a board that has further ones, or kept slots. Before this part come two functions: `window_of` for the
-- main window and `further_of` for each further one. Both take the keys and arguments of one window, and return the table
-- of window.lua. Not a script of its own.
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

local call = redis.call
local windows = {}
local keys_read, arguments_read = 0, 0
for keys, arguments in string.gmatch(ARGV[#ARGV], '(%d+),(%d+)') do
  keys, arguments = tonumber(keys), tonumber(arguments)
  local of = #windows == 0 and window_of or further_of
  windows[#windows + 1] = of(slice(KEYS, keys_read, keys), slice(ARGV, arguments_read, arguments))
  keys_read, arguments_read = keys_read + keys, arguments_read + arguments
end

-- Does the same as `begin` of operation.lua, for all windows: advances them to one time, at or after the head of each.
-- Returns nil, or the reply with which to end the script.
local function begin()
  local main = windows[1]
  local early = main.read_meta(main.field) or main.recorded()
  if early then
    return early
  end
  local time, reading = main.read_clock()
  time = math.max(time, main.head())
  for number = 2, #windows do
    if windows[number].read_meta() then
      -- The board exists, because its own meta does.
      return {'damaged', 'a further window without its meta data'}
    end
    time = math.max(time, windows[number].head())
  end
  for _, window in ipairs(windows) do
    early = window.advance(time, reading)
    if early then
      -- The arguments of all windows are valid at the same times, so this is the main window, and nothing was done.
      return main.record_unchanged(early)
    end
  end
end
