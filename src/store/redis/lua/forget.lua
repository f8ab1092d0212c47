-- Removes a subject from an unranked board.
--
-- KEYS  1-5 the board (board.lua), then those of slices.lua
-- ARGV  1-8 the board, then those of slices.lua
-- reply as read.lua, with the data that was removed
-- cost  as read.lua; the memory of the keys is freed in the server's background
-- why a script: the reply must be exactly the data that is removed

local early = enter()
if early then
  return early
end
local reply = add_slices(ok())
call('UNLINK', KEYS[6], KEYS[7])
return reply
