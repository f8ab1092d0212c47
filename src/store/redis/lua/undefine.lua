-- Removes a board: its meta key, without which nothing else of it is ever read or written.
--
-- KEYS  1 meta
-- ARGV  1 generation
-- reply removed, or board_changed: that generation is gone
-- cost  O(fields of meta)
-- why a script: a board that another instance has just defined under the same name must not go

if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then
  return {'board_changed'}
end
redis.call('UNLINK', KEYS[1])
return {'removed'}
