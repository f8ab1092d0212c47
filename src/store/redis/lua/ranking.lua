-- The ranking that a read is about. Not a script of its own.
--
-- ARGV  `key` of the ranking, or '' on a track without keys

-- Checks the partition, advances, and chooses the ranking. `field` names an additional field of meta to read, in the
-- same command as the rest. If advancing drops the ranking, `version` is the one before that, which the partition will
-- never have again.
local function enter_ranking(field)
  local early = read_meta(field) or advance()
  if ARGV.key ~= '' and not early then
    SORTED = rankings_of(dropped) .. ARGV.key
  end
  return early
end
