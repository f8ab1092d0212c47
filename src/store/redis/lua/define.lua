-- Defines a board, unless there is one of its name; or creates the meta key of a part, which the board's own names.
--
-- KEYS  1 meta
-- ARGV  the board's (board.lua), for the window with which the board begins; `definition`, '' for a part; `parts`: the
--       numbers of the board's partitions, which have meta keys of their own, or '' if it is not divided; `run` id of
--       the server, or '' if it is not known: a new board is complete, so no audit is needed in this run; `current`:
--       for a part of a board that is in a later epoch than the first, id of the first track with the number of the
--       others, else ''
-- reply created, time; or exists, generation, definition, those numbers or '', the time when the board was defined or
--       '' if it is not known, its epoch or '', its editions or ''; or stale, now, reading: nothing was done
-- cost  O(1)
-- why a script: if two instances define the same board at the same time, both must get the same board
--
--- @include clock
--- @arguments board.lua, definition, parts, run, current
--- @repeatable

local known = redis.call('HMGET', KEYS[1], 'generation', 'definition', 'parts', 'defined_at', 'epoch', 'editions')
if known[1] and known[2] then
  return {'exists', known[1], known[2], known[3] or '', known[4] or '', known[5] or '', known[6] or ''}
end
if ARGV.definition == '' and known[1] == ARGV.generation and (known[5] or '0') == ARGV.epoch then
  return {'created', ''}
end
local now, reading = read_clock()
if now < tonumber(ARGV.valid_from) or now >= tonumber(ARGV.valid_until) then
  return {'stale', now, reading}
end
local fields = {'generation', ARGV.generation}
local function add(field, value)
  fields[#fields + 1], fields[#fields + 2] = field, value
end
if ARGV.definition ~= '' then
  add('definition', ARGV.definition)
  add('defined_at', format(now))
end
if ARGV.parts ~= '' then
  add('parts', ARGV.parts)
else
  add('floor', ARGV.floor)
  add('head', ARGV.head)
  add('dropped', ARGV.floor)
  -- An empty board has a version too, so that answers about it can be cached. A generation is never used again.
  add('version', 'n:' .. ARGV.generation)
  add('retiring', '0')
  -- Known to have received no samples, so that an import may begin.
  add('samples', '0')
end
if ARGV.current ~= '' then
  add('epoch', ARGV.epoch)
  add('current', ARGV.current)
end
if ARGV.run ~= '' then
  add('run', ARGV.run)
end
redis.call('HSET', KEYS[1], unpack(fields))
return {'created', format(now)}
