-- Enters the board as enter.lua does, for a removal: while an import is open, it ends the script with `importing`. Not a
-- script of its own.
--
--- @include board

local early = read_meta('import')
if early then
  return early
end
if asked_field then
  return {'importing'}
end
early = advance()
if early then
  return early
end
