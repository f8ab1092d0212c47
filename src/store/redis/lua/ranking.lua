-- Enters the partition, and chooses the ranking that a read is about. If advancing drops the ranking, it is the one
-- before that, which the partition will never have again. Not a script of its own.
--
-- ARGV  `key` of the ranking, or '' on a track without keys
--
--- @include places, enter

if ARGV.key ~= '' then
  SORTED = rankings_of(dropped) .. ARGV.key
end
