-- Defines a board unless there is one of its name; or a part of a board, of which the board's own meta key tells.
--
-- KEYS  1 meta
-- ARGV  1-3 the clock (clock.lua), 4 generation, 5 floor and 6 head of the window that the caller believes in,
--       7 and 8 the instants from which (included) until which (not) that window holds, 9 definition, '' of a part,
--       10 how the board is divided into parts that have meta keys of their own, or '' if it is not,
--       11 run id of the server, or '' if it is not known: what is new is whole, so no audit is due in this run
-- reply created, or exists, generation, definition, how it is divided if it is; or stale, now, reading: nothing was done
-- cost  O(1)
-- why a script: two instances that define the same board at once must agree on whose it is

local known = redis.call('HMGET', KEYS[1], 'generation', 'definition', 'parts')
if known[1] and known[2] then
  return {'exists', known[1], known[2], known[3]}
end
if ARGV[9] == '' and known[1] == ARGV[4] then
  return {'created'}
end
local now, reading = read_clock()
if now < tonumber(ARGV[7]) or now >= tonumber(ARGV[8]) then
  return {'stale', now, reading}
end
local fields = {'generation', ARGV[4]}
local function add(field, value)
  fields[#fields + 1], fields[#fields + 2] = field, value
end
if ARGV[9] ~= '' then
  add('definition', ARGV[9])
end
if ARGV[10] ~= '' then
  add('parts', ARGV[10])
else
  add('floor', ARGV[5])
  add('head', ARGV[6])
  add('dropped', ARGV[5])
  -- What is still empty has a version too, so that answers that tell it so can be kept; generations are never used again.
  add('version', 'n:' .. ARGV[4])
  add('retiring', '0')
end
if ARGV[11] ~= '' then
  add('run', ARGV[11])
end
redis.call('HSET', KEYS[1], unpack(fields))
return {'created'}
