-- Adds a board that was created to the list of boards, or removes one that no longer exists, and changes the list
-- version.
--
-- KEYS  1 the names of boards, 2 the list version
-- ARGV  1 name, 2 the new list version; to remove a board: 3 the list version at which the board was seen not to exist
-- reply done; or stale: the list version has changed since, and nothing was done
-- cost  O(1)
-- why a script: the name of a board that a different instance has just defined again must not be removed, and the list
--       must never change without its version

if not ARGV[3] then
  redis.call('SADD', KEYS[1], ARGV[1])
elseif ARGV[3] == (redis.call('GET', KEYS[2]) or '0') then
  redis.call('SREM', KEYS[1], ARGV[1])
else
  return {'stale'}
end
redis.call('SET', KEYS[2], ARGV[2])
return {'done'}
