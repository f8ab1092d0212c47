-- What every script about a board does first: make sure of the board, read the clock, advance. Not a script of
-- its own.
--
-- KEYS  1 meta, 2 index of slots, 3 ranking, 4 index of dedupe buckets, 5 totals; a script's own keys follow
-- ARGV  1-3 the clock (clock.lua), 4 generation, 5 floor and 6 head of the window that the caller believes in,
--       7 and 8 the instants from which (included) until which (not) the rest of the arguments holds;
--       a script's own arguments follow
-- reply of every script: a status, then
--       board_changed                                 that generation is gone; nothing was done
--       damaged, what                                 the store's data is not ours; nothing was done
--       stale, now, reading                           the arguments do not hold at `now`; nothing was done
--       stale_keys, now, reading, retiring, slots, buckets, head before
--                                                     (advanced only) the slots and buckets that exist
--       ok, now, reading, retiring, …                 done; retiring = slots not yet fully subtracted
-- Whatever changes ranking, slots or index ends with `touch`. Scripts that change slots below the floor call `recount`
-- before.
-- cost  O(log slots); dropping an expired ranking is left to the server's background

local META, INDEX, RANKING, BUCKETS, TOTALS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local FLOOR = tonumber(ARGV[5])
local now, reading, dropped, previous_head
-- How many slots retire, as meta says; nil where that must be counted. `is_recounted`: whether meta must be told.
local retiring, is_recounted
-- The value of the further field of meta that was asked for, or false.
local asked_field

-- Lets a script that frees memory, or that moves the window, run when memory is full: the server refuses the
-- first write of a script only, and never one that deletes.
local function run_when_full()
  redis.call('HDEL', META, '')
end

-- Makes sure of the board; `field` names a further field of meta to read. Answers nil, or the reply to give up with.
local function read_meta(field)
  local meta = redis.call('HMGET', META, 'generation', 'head', 'dropped', 'retiring', field or 'head')
  if meta[1] ~= ARGV[4] then
    return {'board_changed'}
  end
  previous_head, dropped = tonumber(meta[2]), tonumber(meta[3])
  if not previous_head or not dropped then
    return {'damaged', 'a board without a head'}
  end
  retiring, asked_field = tonumber(meta[4] or nil), meta[5]
end

-- Answers how many slots below the floor are not fully subtracted.
local function count_retiring()
  if not retiring then
    retiring = redis.call('ZCOUNT', INDEX, format(dropped), '(' .. ARGV[5])
    is_recounted = true
  end
  return retiring
end

-- To be called after a slot below the floor has come to exist or ceased to: what `retiring` said is over.
local function recount()
  retiring = nil
end

-- Advances the window to now. Answers nil, or the reply to give up with.
local function advance()
  now, reading = read_clock()
  if now < previous_head then
    now = previous_head
  end
  if now < tonumber(ARGV[7]) or now >= tonumber(ARGV[8]) then
    return {'stale', now, reading}
  end
  if tonumber(ARGV[6]) > previous_head then
    run_when_full()
    local fields = {'head', ARGV[6], 'floor', ARGV[5]}
    if FLOOR > previous_head then
      -- Every slot has expired: drop the ranking now, for a write may follow in this very script. Meta is told after
      -- that: where a restart loses the rest of this script, the next one drops the ranking again.
      dropped = FLOOR
      redis.call('UNLINK', RANKING, TOTALS)
      redis.call('HDEL', META, 'cursor')
      fields = {'head', ARGV[6], 'floor', ARGV[5], 'dropped', ARGV[5], 'version', 'd:' .. ARGV[6]}
    end
    recount()
    fields[#fields + 1], fields[#fields + 2] = 'retiring', count_retiring()
    redis.call('HSET', META, unpack(fields))
    is_recounted = false
  end
end

-- Makes sure of the board and advances the window to now. Answers nil, or the reply to give up with.
local function enter()
  return read_meta() or advance()
end

-- The last write of a script that changed the ranking, a slot or the index: sets the version of what the board holds to
-- `token`, unlike any before, and with it how many slots retire if that was counted, and further fields of meta.
-- Without a token the board has no version, so that nobody keeps an answer.
local function touch(token, ...)
  count_retiring()
  local fields = {...}
  if token then
    fields[#fields + 1], fields[#fields + 2] = 'version', token
  else
    redis.call('HDEL', META, 'version')
  end
  if is_recounted then
    fields[#fields + 1], fields[#fields + 2] = 'retiring', retiring
  end
  if #fields > 0 then
    redis.call('HSET', META, unpack(fields))
  end
end

local function ok()
  return {'ok', now, reading, count_retiring()}
end

local function stale_keys()
  local reply = ok()
  reply[1] = 'stale_keys'
  reply[5] = redis.call('ZRANGE', INDEX, 0, -1)
  reply[6] = redis.call('ZRANGE', BUCKETS, 0, -1)
  reply[7] = previous_head
  return reply
end

-- Whether `count` values of ARGV from `first` are exactly these slots.
local function are_named(slots, first, count)
  if #slots ~= count then
    return false
  end
  for i = 1, count do
    if slots[i] ~= ARGV[first + i - 1] then
      return false
    end
  end
  return true
end

-- Whether ARGV from `first` names exactly the slots that exist, oldest first.
local function names_all_slots(first, count)
  return are_named(redis.call('ZRANGE', INDEX, 0, -1), first, count)
end

-- Whether ARGV from `first` names exactly the slots that exist from the start `from` on, oldest first; `most` at most.
local function names_slots_from(from, most, first, count)
  return are_named(redis.call('ZRANGEBYSCORE', INDEX, from, '+inf', 'LIMIT', 0, most), first, count)
end

-- How many ranked subjects have a strictly better score.
local function better_than(score, ascending)
  if ascending then
    return redis.call('ZCOUNT', RANKING, '-inf', '(' .. score)
  end
  return redis.call('ZCOUNT', RANKING, '(' .. score, '+inf')
end
