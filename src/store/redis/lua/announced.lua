-- Notes in a board's meta key that the list of boards was made another one for it.
--
-- KEYS  1 meta
-- ARGV  1 generation
-- reply done; or gone: another board has this name, or none, and nothing was done
-- cost  O(1)
-- why a script: the meta key of a board that was removed meanwhile must not come back

if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then
  return {'gone'}
end
redis.call('HSET', KEYS[1], 'announced', '1')
return {'done'}
