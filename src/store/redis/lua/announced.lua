-- Records in a board's meta key that the list version was changed for this board.
--
-- KEYS  1 meta
-- ARGV  `generation`
-- reply done; or gone: a board of this name and generation does not exist, and nothing was done
-- cost  O(1)
-- why a script: the meta key of a board that was removed in the meantime must not be created again

if redis.call('HGET', KEYS[1], 'generation') ~= ARGV.generation then
  return {'gone'}
end
redis.call('HSET', KEYS[1], 'announced', '1')
return {'done'}
