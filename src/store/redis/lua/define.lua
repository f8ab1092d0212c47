-- Defines a board unless there is one of its name.
--
-- KEYS  1 meta, last on a simulated clock: the clock
-- ARGV  1-3 the clock (clock.lua), 4 generation, 5 floor and 6 head of the window that the caller believes in,
--       7 and 8 the instants from which (included) until which (not) that window holds, 9 definition
-- reply created, or exists, generation, definition; or stale, now, reading: nothing was done; or damaged, what
-- cost  O(1)
-- why a script: two instances that define the same board at once must agree on whose it is

local known = redis.call('HMGET', KEYS[1], 'generation', 'definition')
if known[1] and known[2] then
  return {'exists', known[1], known[2]}
end
local now, reading = read_clock()
if not now then
  return {'damaged', 'a simulated clock without a time'}
end
if now < tonumber(ARGV[7]) or now >= tonumber(ARGV[8]) then
  return {'stale', now, reading}
end
redis.call(
  'HSET', KEYS[1], 'generation', ARGV[4], 'definition', ARGV[9], 'floor', ARGV[5], 'head', ARGV[6], 'dropped', ARGV[5])
return {'created'}
