-- Defines a board, unless there is one of its name; or creates a part of a board, which the board's own meta key names.
--
-- KEYS  1 meta
-- ARGV  1-3 the clock (clock.lua), 4 generation, 5 floor and 6 head of the window that the caller expects, 7 and 8 the
--       instants from which (inclusive) to which (exclusive) that window is valid, 9 definition, '' for a part, 10 the
--       division of the board into parts that have meta keys of their own, or '' if it is not divided, 11 run id of the
--       server, or '' if it is not known: a new board is complete, so no audit is needed in this run
-- reply created, or exists, generation, definition, the division if it is divided; or stale, now, reading: nothing was
--       done
-- cost  O(1)
-- why a script: if two instances define the same board at the same time, both must get the same board

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
  -- An empty board has a version too, so that answers about it can be cached. A generation is never used again.
  add('version', 'n:' .. ARGV[4])
  add('retiring', '0')
end
if ARGV[11] ~= '' then
  add('run', ARGV[11])
end
redis.call('HSET', KEYS[1], unpack(fields))
return {'created'}
