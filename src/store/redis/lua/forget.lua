-- Takes a subject off an unranked board.
--
-- KEYS  1-5 the board (board.lua), then those of slices.lua
-- ARGV  1-8 the board, then those of slices.lua
-- reply as read.lua, of what was there
-- cost  as read.lua; what the keys hold is freed in the server's background
-- why a script: nothing comes between what is answered and what is taken

local early = enter()
if early then
  return early
end
local reply = add_slices(ok())
call('UNLINK', KEYS[6], KEYS[7])
return reply
