-- Returns the rows of a table, unless the table still has the version that the caller knows.
--
-- KEYS  1 the table
-- ARGV  `known`: the version that the caller knows, or ''
-- reply unchanged; rows, version, then a list of id and text of each row, in which the id '' is not a row; or damaged
-- cost  O(rows), O(1) if the version is known
-- why a script: version and rows must be of one instant, and a large table must not be sent if it has not changed
--
--- @arguments known
--- @repeatable

local state = redis.call('HGET', KEYS[1], '')
local version = state and string.match(state, '^(%d+),%d+$')
if not version then
  if state or redis.call('EXISTS', KEYS[1]) == 1 then
    return {'damaged'}
  end
  version = '0'
end
if version == ARGV.known then
  return {'unchanged'}
end
return {'rows', version, redis.call('HGETALL', KEYS[1])}
