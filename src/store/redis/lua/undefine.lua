-- Removes a board: deletes its meta key, without which no other data of it is read or written.
--
-- KEYS  1 meta
-- ARGV  `generation`
-- reply removed, or board_changed: the generation does not exist
-- cost  O(fields of meta)
-- why a script: a board that a different instance has just defined under the same name must not be removed

if redis.call('HGET', KEYS[1], 'generation') ~= ARGV.generation then
  return {'board_changed'}
end
redis.call('UNLINK', KEYS[1])
return {'removed'}
