-- The lease of the instance that copies the data of a board to other partitions. If it ends, the next instance that
-- notices lets the board go on as before.
--
-- KEYS  1 the board's own meta
-- ARGV  `generation`, `epoch`, `action`: `renew`, or `look`; `duration` of the lease in ms, numbers of `contents` and
--       `ids` that are copied
-- reply board_changed: the generation does not exist; stale_epoch: it has another epoch; held, contents,
--       ids; or ended
-- cost  O(1)
-- why a script: the time is that of the server, and the meta key of a board that was removed must not be created again
--
--- @arguments generation, epoch, action, duration, contents, ids
--- @repeatable

local META = KEYS[1]
local call = redis.call

local meta = call('HMGET', META, 'generation', 'epoch', 'lease')
if meta[1] ~= ARGV.generation then
  return {'board_changed'}
elseif (meta[2] or '0') ~= ARGV.epoch then
  return {'stale_epoch'}
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV.action == 'renew' then
  local till = string.format('%.0f', now + ARGV.duration)
  call('HSET', META, 'lease', till .. ' ' .. ARGV.contents .. ' ' .. ARGV.ids)
  return {'held', tonumber(ARGV.contents), tonumber(ARGV.ids)}
end
local till, contents, ids = string.match(meta[3] or '', '^(%d+) (%d+) (%d+)$')
if not till or tonumber(till) <= now then
  return {'ended'}
end
return {'held', tonumber(contents), tonumber(ids)}
