-- Makes one bounded step of expiry: looks at some subjects that were noted as written to in an old expiry period, and
-- removes data that is no longer kept.
--
-- KEYS  1-5 the board (board.lua), 6 the subjects of that period, 7 the periods that exist, 8 the subjects of the
--       current period, then the keys of each subject: two on a `seen` board, else one
-- ARGV  the board's, `stored`: how the board stores subjects: `subject`, `seen`, `seen_forever` (over all time) or
--       `counter`; `due`: number of that period, `current`: number of the current period, `kept`: start of the oldest
--       slot kept, or in ms the duration of a counter's window or the time for which tombstones are kept over all time,
--       number of `cells` to look at; then the subjects
-- reply ok, now, reading, retiring, number of subjects looked at, number of them that have no data now, 1 if the period
--       was removed, microseconds of work (stopwatch.lua)
-- cost  5 us per subject and 0.2 us per cell; the memory of keys is freed in the server's background
-- why a script: whether a key is deleted depends on its content at that instant, and writes may go on
--
--- @include stopwatch, enter
--- @arguments board.lua, stored, due, current, kept, cells

local PERIOD, PERIODS, CURRENT = KEYS[6], KEYS[7], KEYS[8]
local FIRST_KEY, FIRST_SUBJECT = 9, FIXED_ARGUMENTS + 1
local KEPT, OWN = tonumber(ARGV.kept), string.sub(ARGV.stored, 1, 4) == 'seen' and 2 or 1
local room = tonumber(ARGV.cells)

call('SCARD', PERIOD)
call('SCARD', CURRENT)
run_when_full()

-- Each function receives the position of a subject's first key and removes data that is no longer kept. Returns whether
-- data is left, or nil if there is more to remove than this step may look at.
local sweep = {}

function sweep.subject(at)
  local starts = redis.pcall('HKEYS', KEYS[at])
  if starts.err then
    return false
  end
  room = room - #starts
  local gone, kept = {}, false
  for _, start in ipairs(starts) do
    local time = tonumber(start)
    if time and time < KEPT then
      gone[#gone + 1] = start
    end
    kept = kept or time and time >= KEPT
  end
  if not kept then
    call('UNLINK', KEYS[at])
    return false
  end
  call('HSET', KEYS[at], 'f', format(KEPT))
  each_thousand('HDEL', KEYS[at], gone)
  return true
end

function sweep.counter(at)
  local start = redis.pcall('HGET', KEYS[at], 's')
  start = type(start) == 'string' and tonumber(start)
  if start and now < start + KEPT then
    return true
  end
  call('UNLINK', KEYS[at])
  return false
end

function sweep.seen(at)
  local kept, is_more = false, false
  for key = at, at + 1 do
    local newest = redis.pcall('ZRANGE', KEYS[key], -1, -1, 'WITHSCORES')
    if newest[2] and tonumber(newest[2]) >= FLOOR then
      kept = true
      local old = call('ZCOUNT', KEYS[key], '-inf', '(' .. ARGV.floor)
      local some = math.min(old, math.max(room, 1))
      if some > 0 then
        call('ZREMRANGEBYRANK', KEYS[key], 0, some - 1)
        room = room - some
      end
      is_more = is_more or some < old
    elseif newest[2] then
      call('UNLINK', KEYS[key])
    end
  end
  if is_more then
    return nil
  end
  return kept
end

-- Over all time only tombstones expire. The member `c` of their key stays, because dropped values never come back. A
-- subject with data is looked at again and again, because a tombstone may follow at any time.
function sweep.seen_forever(at)
  local old = redis.pcall('ZRANGEBYSCORE', KEYS[at + 1], '-inf', '(' .. format(now - KEPT), 'LIMIT', 0, math.max(room, 2))
  if old.err then
    return false
  end
  room = room - #old
  local gone = {}
  for _, member in ipairs(old) do
    if member ~= 'c' then
      gone[#gone + 1] = member
    end
  end
  if each_thousand('ZREM', KEYS[at + 1], gone) > 0 and room <= 0 then
    return nil
  end
  return call('EXISTS', KEYS[at], KEYS[at + 1]) > 0
end

local looked, emptied, finished, moved = 0, 0, {}, {}
while looked < #ARGV - FIRST_SUBJECT + 1 and room > 0 do
  local subject = ARGV[FIRST_SUBJECT + looked]
  local kept = sweep[ARGV.stored](FIRST_KEY + looked * OWN)
  looked, room = looked + 1, room - 10
  if kept ~= nil then
    finished[#finished + 1] = subject
  end
  if kept then
    moved[#moved + 1] = subject
  elseif kept == false then
    emptied = emptied + 1
  end
end
if #moved > 0 then
  -- They were written to after the period, or an earlier step moved them.
  call('ZADD', PERIODS, ARGV.current, ARGV.current)
  local added = each_thousand('SADD', CURRENT, moved)
  -- A walk over the contents may return these subjects twice, and also others if it reads a set that shrinks. It reads
  -- no period that is due, except on a board whose values never expire.
  if added > 0 or ARGV.stored == 'seen_forever' then
    call('HINCRBY', META, 'upheavals', 1)
  end
end
each_thousand('SREM', PERIOD, finished)
local gone = call('EXISTS', PERIOD) == 0
if gone then
  call('ZREM', PERIODS, ARGV.due)
end
local reply = ok()
reply[5], reply[6], reply[7], reply[8] = looked, emptied, gone and 1 or 0, worked()
return reply
