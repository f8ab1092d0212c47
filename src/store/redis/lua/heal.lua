-- Who finds out whether a board is whole after a restart of its server, and what came of it.
--
-- KEYS  1 meta
-- ARGV  1 generation, 2 `claim`; `finish`, `hold` or `release`, of a claim; or `whole`, whoever has the claim, 3 this
--       instance, 4 run id of the server or '' if it is not known, 5 for how long a claim holds in ms, 6 hold: why
-- reply gone: the board is another; whole; held, why: a person has to decide; busy: another instance has the claim;
--       yours: so has this one, for as long as a claim holds from now on
-- cost  O(1)
-- why a script: of several instances that notice a restart at once only one may audit the board; the meta key of a board
--       that was removed meanwhile must not come back

local META, ACTION, OWN, RUN, LEASE = KEYS[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local call = redis.call

local meta = call('HMGET', META, 'generation', 'run', 'held', 'healer')
if meta[1] ~= ARGV[1] then
  return {'gone'}
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
  -- One that holds for longer than claims do was made before the clock was set back.
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
  call('HSET', META, 'held', ARGV[6])
  return {'held', ARGV[6]}
end
return {'busy'}
