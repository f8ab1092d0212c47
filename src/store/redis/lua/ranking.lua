-- Enters the partition as enter.lua, and chooses the ranking that a read is about. The additional field of meta is the
-- partition's version. If advancing drops the ranking, it is the one before that, which the partition will never have
-- again. Not a script of its own.
--
-- ARGV  `key` of the ranking, or '' on a track without keys
--
--- @include places

local early = read_meta('version') or advance()
if early then
  return early
end
if ARGV.key ~= '' then
  SORTED = rankings_of(dropped) .. ARGV.key
end
