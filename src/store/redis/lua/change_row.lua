-- Replaces a row of a table, if it is as the caller expects.
--
-- KEYS  1 the table
-- ARGV  `id`, `from`, `to`: the row and its texts, each '=' and the text, or '' for no row; `version`: the version of
--       the table after the change; `earlier`: if this is a repetition, the version of the first attempt, else '';
--       `most_rows`, `most_bytes`: the bounds of the table
-- reply done: the row was `from`, or the first attempt has just replaced it; differs; full; or damaged. Nothing was
--       done after the last three.
-- cost  O(1)
-- why a script: no other change may come between the comparison and the replacement, and the rows must never change
--       without their version
--
--- @arguments id, from, to, version, earlier, most_rows, most_bytes

local found = redis.call('HMGET', KEYS[1], ARGV.id, '')
local text, state = found[1], found[2]
local version, bytes
if state then
  version, bytes = string.match(state, '^(%d+),(%d+)$')
end
if not version then
  if state or redis.call('EXISTS', KEYS[1]) == 1 then
    return {'damaged'}
  end
  bytes = 0
elseif version == ARGV.earlier then
  return {'done'}
end

local from = ARGV.from ~= '' and string.sub(ARGV.from, 2)
local to = ARGV.to ~= '' and string.sub(ARGV.to, 2)
if text ~= from then
  return {'differs'}
elseif from == to then
  return {'done'}
end

local function size(row)
  return row and #ARGV.id + #row or 0
end
local grows = size(to) - size(from)
bytes = bytes + grows
if not from and redis.call('HLEN', KEYS[1]) > tonumber(ARGV.most_rows) or
    grows > 0 and bytes > tonumber(ARGV.most_bytes) then
  return {'full'}
end
state = ARGV.version .. ',' .. string.format('%.0f', bytes)
if to then
  redis.call('HSET', KEYS[1], ARGV.id, to, '', state)
else
  redis.call('HDEL', KEYS[1], ARGV.id)
  redis.call('HSET', KEYS[1], '', state)
end
return {'done'}
