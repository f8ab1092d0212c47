-- Sets the mode of the clock, or moves a simulated clock.
--
-- KEYS  1 the clock
-- ARGV  `action`: `open` or `set`, `mode`: `system` or `simulated`, `time` in ms, for a simulated clock
-- reply done, mode, now: opened or moved; refused, mode, now: the clock has the other mode, or is later already
-- cost  O(1)
-- why a script: instances that start at the same time must agree on the mode, and time must never move backward
--
--- @arguments action, mode, time
--- @repeatable

local clock = redis.call('HMGET', KEYS[1], 'mode', 'now')
local mode, now = clock[1], tonumber(clock[2])
local to = tonumber(ARGV.time)
if not mode and ARGV.action == 'open' then
  mode = ARGV.mode
  redis.call('HSET', KEYS[1], 'mode', mode)
end
if mode ~= ARGV.mode then
  return {'refused', mode or '', now or 0}
end
if mode == 'simulated' then
  if not now or to > now then
    now = to
    redis.call('HSET', KEYS[1], 'now', ARGV.time)
  elseif to < now and ARGV.action == 'set' then
    return {'refused', mode, now}
  end
end
return {'done', mode, now or 0}
