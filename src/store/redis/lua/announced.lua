-- Records in a board's meta key that the list version was changed for this board.
--
-- KEYS  1 meta
-- ARGV  `generation`, `epoch`
-- reply done; or gone: a board of this name, generation and epoch does not exist, and nothing was done
-- cost  O(1)
-- why a script: the meta key of a board that was removed in the meantime must not be created again
--
--- @arguments generation, epoch
--- @repeatable

local meta = redis.call('HMGET', KEYS[1], 'generation', 'epoch')
if meta[1] ~= ARGV.generation or (meta[2] or '0') ~= ARGV.epoch then
  return {'gone'}
end
redis.call('HSET', KEYS[1], 'announced', '1')
return {'done'}
