-- Removes a board: deletes its meta key, without which no other data of it is read or written.
--
-- KEYS  1 meta
-- ARGV  `generation`, `epoch`
-- reply removed, or gone: the generation does not exist, or stale_epoch: it has another epoch
-- cost  O(fields of meta)
-- why a script: a board that a different instance has just defined under the same name must not be removed, nor
--       one whose tracks this instance does not know
--
--- @arguments generation, epoch

local meta = redis.call('HMGET', KEYS[1], 'generation', 'epoch')
if meta[1] ~= ARGV.generation then
  return {'gone'}
elseif (meta[2] or '0') ~= ARGV.epoch then
  return {'stale_epoch'}
end
redis.call('UNLINK', KEYS[1])
return {'removed'}
