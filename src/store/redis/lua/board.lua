-- What every script about a board uses to check the board, read the clock and advance. Not a script of its own.
--
-- KEYS  1 meta, 2 index of slots, 3 ranking (rankings.lua), 4 index of dedupe buckets, 5 totals; a script's own keys
--       follow
-- ARGV  `clock`, `believable` and `time` (clock.lua), `generation` and `epoch` of the board, `floor` and `head` of the
--       window that the caller expects, `valid_from` (inclusive) and `valid_until` (exclusive): the instants at which
--       the rest of the arguments is valid; on a track that notes ranks (earlier.lua) the newest `boundary`, otherwise
--       '', and `noted_by`: the order of the ranking, and after a space the head with which the ranks are those at the
--       boundary, if there is one; a script's own arguments follow
-- reply of every script: a status, then
--       board_changed                                 the generation does not exist; nothing was done
--       stale_epoch                                   the board has another epoch; nothing was done
--       damaged, what                                 the data is not what this store writes; nothing was done
--       stale, now, reading                           the arguments are not valid at `now`; nothing was done
--       stale_keys, now, reading, retiring, slots, buckets, head before
--                                                     nothing was done except advancing; all existing slots and buckets
--       ok, now, reading, retiring, …                 done; retiring = slots not yet fully subtracted
-- A script that changes ranking, slots or index ends with `touch`. A script that changes slots below the floor calls
-- `recount` before that.
-- cost  O(log slots); an expired ranking is deleted in the server's background
--
--- @include clock
--- @arguments clock, believable, time, generation, epoch, floor, head, valid_from, valid_until, boundary, noted_by

local META, INDEX, RANKING, BUCKETS, TOTALS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local FLOOR = tonumber(ARGV.floor)
local now, reading, dropped, previous_head
-- retiring: the number of retiring slots, as stored in meta, or nil if they must be counted. is_recounted: whether the
-- number was counted and must be stored in meta.
local retiring, is_recounted
-- The value of the additional field of meta that was requested, or false.
local asked_field
-- The name of the hash of what is set for subjects (hidden.lua), or false if nothing is.
local marks

-- Returns what the names of all rankings of keys begin with, on a track with keys. They contain their epoch.
local function rankings_of(epoch)
  return string.sub(RANKING, 1, -2) .. 'r:' .. format(epoch) .. ':'
end

-- Returns the name of the sorted set that has the scores of hidden subjects (hidden.lua).
local function hidden_ranking()
  return string.sub(RANKING, 1, -2) .. 'h'
end

-- Lets a script that frees memory, or that moves the window, run when memory is full: the server refuses only the first
-- write of a script, and never one that deletes.
local function run_when_full()
  redis.call('HDEL', META, '')
end

-- Checks the board. `field` names an additional field of meta to read. `done`, if given, is called before the epoch is
-- checked: what it returns is the reply to an operation that was done, in whichever epoch. Returns nil, or the reply
-- with which to end the script.
local function read_meta(field, done)
  local meta = redis.call('HMGET', META, 'generation', 'head', 'dropped', 'retiring', field or 'head', 'epoch', 'marks')
  if meta[1] ~= ARGV.generation then
    return {'board_changed'}
  end
  previous_head, dropped = tonumber(meta[2]), tonumber(meta[3])
  if not previous_head or not dropped then
    return {'damaged', 'a board without a head'}
  end
  retiring, asked_field, marks = tonumber(meta[4] or nil), meta[5], meta[7]
  local early = done and done()
  if early then
    return early
  end
  if (meta[6] or '0') ~= ARGV.epoch then
    return {'stale_epoch'}
  end
end

-- Returns the number of slots below the floor that are not fully subtracted.
local function count_retiring()
  if not retiring then
    retiring = redis.call('ZCOUNT', INDEX, format(dropped), '(' .. ARGV.floor)
    is_recounted = true
  end
  return retiring
end

-- Makes the next use of `retiring` count again. Must be called after a slot below the floor was created or deleted.
local function recount()
  retiring = nil
end

-- Notes the ranks of the first lines, because a boundary has passed since `noted`. They are those at the boundary if
-- the head is still that before it, and nothing is retiring; over all time always. Of a new track they are not known.
local function note_ranks(noted)
  local order, before = string.match(ARGV.noted_by, '^(%a+) (%d*)$')
  local ranks = ''
  if noted and tonumber(before) == previous_head then
    local left = retiring
        or redis.call('ZCOUNT', INDEX, format(dropped), '(' .. (redis.call('HGET', META, 'floor') or 0))
    if left == 0 then
      local lines = order == 'asc' and 'ZRANGE' or 'ZREVRANGE'
      ranks = cmsgpack.pack(redis.call(lines, RANKING, 0, 999, 'WITHSCORES'))
    end
  end
  run_when_full()
  redis.call('HSET', META, 'boundary', ARGV.boundary, 'ranks', ranks)
end

-- Advances the window to now. Returns nil, or the reply with which to end the script. A script about several tracks
-- gives `time` and `read`, the time and the reading that all of them use.
local function advance(time, read)
  if time then
    now, reading = time, read
  else
    now, reading = read_clock()
  end
  if now < previous_head then
    now = previous_head
  end
  if now < tonumber(ARGV.valid_from) or now >= tonumber(ARGV.valid_until) then
    return {'stale', now, reading}
  end
  if ARGV.boundary ~= '' then
    local noted = redis.call('HGET', META, 'boundary')
    if not noted or noted ~= ARGV.boundary and tonumber(noted) < tonumber(ARGV.boundary) then
      note_ranks(noted)
    end
  end
  if tonumber(ARGV.head) > previous_head then
    run_when_full()
    local fields = {'head', ARGV.head, 'floor', ARGV.floor}
    if FLOOR > previous_head then
      -- Every slot has expired: drop the ranking now, because this script may write to it next. Meta is written after
      -- that: if a restart loses the rest of this script, the next script drops the ranking again.
      -- The names of the rankings of keys contain `dropped`, and retire.lua deletes those of earlier epochs.
      local has_keys = string.sub(RANKING, -2) == ':k'
      dropped = FLOOR
      redis.call('UNLINK', has_keys and TOTALS or RANKING, TOTALS, hidden_ranking())
      redis.call('HDEL', META, 'cursor')
      fields = {'head', ARGV.head, 'floor', ARGV.floor, 'dropped', ARGV.floor, 'version', 'd:' .. ARGV.head}
      if has_keys then
        fields[#fields + 1], fields[#fields + 2] = 'ranked', '0'
      end
    end
    recount()
    fields[#fields + 1], fields[#fields + 2] = 'retiring', count_retiring()
    redis.call('HSET', META, unpack(fields))
    is_recounted = false
  end
end

-- Makes the last write of a script that changed the ranking, a slot or the index: sets the board version to `token`,
-- which was never used before. Also stores the number of retiring slots if it was counted, and further fields of meta.
-- Without a token the board gets no version, so that no answer is cached.
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

-- Returns whether `count` values of ARGV from `first` on are exactly these slots.
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

-- Returns whether ARGV from `first` on names exactly the slots that exist, oldest first.
local function names_all_slots(first, count)
  return are_named(redis.call('ZRANGE', INDEX, 0, -1), first, count)
end

-- Returns whether ARGV from `first` on names exactly the slots that exist from the start `from` on, oldest first,
-- `most` at most.
local function names_slots_from(from, most, first, count)
  return are_named(redis.call('ZRANGEBYSCORE', INDEX, from, '+inf', 'LIMIT', 0, most), first, count)
end

-- Not used above, because a function that uses a local of the script costs more to create the longer ago the local was
-- declared, and every script creates the functions above.
local call = redis.call

-- Calls the command repeatedly, each time with at most 1,000 of the values, because `unpack` accepts some thousand. The
-- number is even, so that pairs stay together. Returns the sum of the replies.
local function each_thousand(command, key, values)
  local sum = 0
  for first = 1, #values, 1000 do
    sum = sum + call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
  return sum
end

-- Returns what the command returns for the values from one position to another one. It is called with 1,000 of them at
-- most.
local function read_thousands(command, key, values, first, last)
  local found = {}
  for from = first, last, 1000 do
    for i, value in ipairs(call(command, key, unpack(values, from, math.min(from + 999, last)))) do
      found[from - first + i] = value
    end
  end
  return found
end
