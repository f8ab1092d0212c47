-- Enters the board: checks it and advances the window to now, or ends the script with a reply of board.lua. The
-- additional field of meta is the version of the partition. Not a script of its own.
--
--- @include board

local early = read_meta('version') or advance()
if early then
  return early
end
