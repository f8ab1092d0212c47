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
-- cost  O(log slots); dropping an expired ranking is left to the server's background

local META, INDEX, RANKING, BUCKETS, TOTALS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local FLOOR = tonumber(ARGV[5])
local now, reading, dropped, previous_head

-- Lets a script that frees memory, or that moves the window, run when memory is full: the server refuses the
-- first write of a script only, and never one that deletes.
local function run_when_full()
  redis.call('HDEL', META, '')
end

-- Advances the window to now. Answers nil, or the reply to give up with.
local function enter()
  local meta = redis.call('HMGET', META, 'generation', 'head', 'dropped')
  if meta[1] ~= ARGV[4] then
    return {'board_changed'}
  end
  previous_head, dropped = tonumber(meta[2]), tonumber(meta[3])
  if not previous_head or not dropped then
    return {'damaged', 'a board without a head'}
  end
  now, reading = read_clock()
  if not now then
    return {'damaged', 'a simulated clock without a time'}
  end
  if now < previous_head then
    now = previous_head
  end
  if now < tonumber(ARGV[7]) or now >= tonumber(ARGV[8]) then
    return {'stale', now, reading}
  end
  if tonumber(ARGV[6]) > previous_head then
    run_when_full()
    redis.call('HSET', META, 'head', ARGV[6], 'floor', ARGV[5])
    if FLOOR > previous_head then
      -- Every slot has expired: drop the ranking now, for a write may follow in this very script.
      dropped = FLOOR
      redis.call('UNLINK', RANKING, TOTALS)
      redis.call('HSET', META, 'dropped', ARGV[5])
      redis.call('HDEL', META, 'cursor')
    end
  end
end

local function ok()
  return {'ok', now, reading, redis.call('ZCOUNT', INDEX, format(dropped), '(' .. ARGV[5])}
end

local function stale_keys()
  local reply = ok()
  reply[1] = 'stale_keys'
  reply[5] = redis.call('ZRANGE', INDEX, 0, -1)
  reply[6] = redis.call('ZRANGE', BUCKETS, 0, -1)
  reply[7] = previous_head
  return reply
end

-- Whether ARGV from `first` names exactly the slots that exist, oldest first.
local function names_all_slots(first, count)
  local slots = redis.call('ZRANGE', INDEX, 0, -1)
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

-- How many ranked subjects have a strictly better score.
local function better_than(score, ascending)
  if ascending then
    return redis.call('ZCOUNT', RANKING, '-inf', '(' .. score)
  end
  return redis.call('ZCOUNT', RANKING, '(' .. score, '+inf')
end
