-- Decides which instance audits a board after a restart of its server, and records the result.
--
-- KEYS  1 meta
-- ARGV  `generation`, `epoch`, `action`: `claim`; `finish`, `hold` or `release` to end a claim; or `whole`, which needs
--       no claim, this `instance`, `run` id of the server or '' if it is not known, `duration` of a claim in ms,
--       `reason` for `hold`
-- reply gone: the generation does not exist; stale_epoch: it has another epoch; whole: the board needs no audit; held,
--       reason: an operator has to decide; busy: a different instance has the claim, or this one has none any more;
--       yours: this instance has the claim, for its full duration from now on
-- cost  O(1)
-- why a script: if several instances notice a restart at the same time, only one may audit the board; the meta key of a
--       board that was removed in the meantime must not be created again
--
--- @arguments generation, epoch, action, instance, run, duration, reason
--- @repeatable

local META, ACTION, OWN, RUN, LEASE = KEYS[1], ARGV.action, ARGV.instance, ARGV.run, tonumber(ARGV.duration)
local call = redis.call

local meta = call('HMGET', META, 'generation', 'run', 'held', 'healer', 'epoch')
if meta[1] ~= ARGV.generation then
  return {'gone'}
elseif (meta[5] or '0') ~= ARGV.epoch then
  return {'stale_epoch'}
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if ACTION == 'whole' then
  if RUN ~= '' then
    call('HSET', META, 'run', RUN)
  end
  call('HDEL', META, 'held', 'healer')
  return {'whole'}
end
if meta[3] then
  return {'held', meta[3]}
end

local healer, till = string.match(meta[4] or '', '^(%S+) (%d+)$')
if ACTION == 'claim' then
  if meta[2] == RUN then
    return {'whole'}
  end
  local left = healer and healer ~= OWN and tonumber(till) - now or 0
  -- A claim that is valid for longer than the duration of claims was made before the clock was set back.
  if left > 0 and left <= LEASE then
    return {'busy'}
  end
  call('HSET', META, 'healer', OWN .. ' ' .. string.format('%.0f', now + LEASE))
  return {'yours'}
end

if healer ~= OWN then
  return {'busy'}
end
call('HDEL', META, 'healer')
if ACTION == 'finish' then
  call('HSET', META, 'run', RUN)
  return {'whole'}
elseif ACTION == 'hold' then
  call('HSET', META, 'held', ARGV.reason)
  return {'held', ARGV.reason}
end
return {'busy'}
