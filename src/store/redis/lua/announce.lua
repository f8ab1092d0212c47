-- Adds a board that was created to the list of boards, or removes one that no longer exists, and changes the list
-- version.
--
-- KEYS  1 the names of boards, 2 the list version
-- ARGV  `name`, `version`: the new list version, `gone_at`: to remove a board, the list version at which the board was
--       seen not to exist, else ''
-- reply done; or stale: the list version has changed since, and nothing was done
-- cost  O(1)
-- why a script: the name of a board that a different instance has just defined again must not be removed, and the list
--       must never change without its version
--
--- @arguments name, version, gone_at

if ARGV.gone_at == '' then
  redis.call('SADD', KEYS[1], ARGV.name)
elseif ARGV.gone_at == (redis.call('GET', KEYS[2]) or '0') then
  redis.call('SREM', KEYS[1], ARGV.name)
else
  return {'stale'}
end
redis.call('SET', KEYS[2], ARGV.version)
return {'done'}
