-- Lists a board that has come, or takes one that has gone off the list, and says that the list is another now.
--
-- KEYS  1 the names of boards, 2 the version of that list
-- ARGV  1 name, 2 the new version; of a board that has gone: 3 the version at which it was seen to be none
-- reply done; or stale: other boards have come or gone since that version, and nothing was done
-- cost  O(1)
-- why a script: the name of a board that another instance has just defined anew must not go off the list, and there
--               must be no instant at which the list is another and its version still the old one

if not ARGV[3] then
  redis.call('SADD', KEYS[1], ARGV[1])
elseif ARGV[3] == (redis.call('GET', KEYS[2]) or '0') then
  redis.call('SREM', KEYS[1], ARGV[1])
else
  return {'stale'}
end
redis.call('SET', KEYS[2], ARGV[2])
return {'done'}
