-- Enters the board: checks it and advances the window to now, or ends the script with a reply of board.lua. Not a
-- script of its own.
--
--- @include board

local early = read_meta() or advance()
if early then
  return early
end
