-- Sets the mode of the clock, or moves a simulated clock.
--
-- KEYS  1 the clock
-- ARGV  1 `open` or `set`, 2 `system` or `simulated`, 3 time in ms, for a simulated clock
-- reply done, mode, now: opened or moved; refused, mode, now: the clock has the other mode, or is later already
-- cost  O(1)
-- why a script: instances that start at the same time must agree on the mode, and time must never move backward

local clock = redis.call('HMGET', KEYS[1], 'mode', 'now')
local mode, now = clock[1], tonumber(clock[2])
local to = tonumber(ARGV[3])
if not mode and ARGV[1] == 'open' then
  mode = ARGV[2]
  redis.call('HSET', KEYS[1], 'mode', mode)
end
if mode ~= ARGV[2] then
  return {'refused', mode or '', now or 0}
end
if mode == 'simulated' then
  if not now or to > now then
    now = to
    redis.call('HSET', KEYS[1], 'now', ARGV[3])
  elseif to < now and ARGV[1] == 'set' then
    return {'refused', mode, now}
  end
end
return {'done', mode, now or 0}
