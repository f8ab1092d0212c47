-- Returns sheets of a track.
--
-- KEYS  1-5 the part (board.lua), 6 the sheets
-- ARGV  the part's, then the names of the sheets, at least one
-- reply ok, now, reading, retiring, then the text of each sheet, or nil
-- cost  O(bytes of the sheets)
-- why a script: generation and epoch of the part are checked

local early = enter()
if early then
  return early
end
local reply = ok()
for first = FIXED_ARGUMENTS + 1, #ARGV, 1000 do
  local last = math.min(first + 999, #ARGV)
  for i, text in ipairs(call('HMGET', KEYS[6], unpack(ARGV, first, last))) do
    reply[4 + first - FIXED_ARGUMENTS + i - 1] = text
  end
end
return reply
