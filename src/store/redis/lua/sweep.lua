-- One bounded step of expiry: looks at some subjects that were last noted as written to in an expiry period long ago,
-- and removes what is not kept any more.
--
-- KEYS  1-5 the board (board.lua), 6 the subjects of that period, 7 the periods that exist, 8 the subjects of the period
--       of now, then the keys of each subject: two where the board remembers values, else one
-- ARGV  1-8 the board, 9 how the board keeps subjects: `subject`, `seen` or `counter`; 10 number of that period,
--       11 number of the period of now, 12 start of the oldest slot kept, or how long a counter lives in ms,
--       13 how many cells to look at; then the subjects
-- reply ok, now, reading, retiring, how many subjects were looked at, how many of them hold nothing now, 1 if the
--       period has gone, microseconds of work (stopwatch.lua)
-- cost  5 us per subject and 0.2 us per cell; what keys hold is freed in the server's background
-- why a script: a key is judged by what it holds at the instant at which it goes, whatever is written meanwhile

local PERIOD, PERIODS, CURRENT = KEYS[6], KEYS[7], KEYS[8]
local FIRST_KEY, FIRST_SUBJECT = 9, 14
local KEPT, OWN = tonumber(ARGV[12]), ARGV[9] == 'seen' and 2 or 1
local room = tonumber(ARGV[13])

local early = enter()
if early then
  return early
end
call('SCARD', PERIOD)
call('SCARD', CURRENT)
run_when_full()

-- Each is given the position of a subject's first key, removes what is not kept and answers whether something is;
-- nil where more is left than there is room for.
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
      local old = call('ZCOUNT', KEYS[key], '-inf', '(' .. ARGV[5])
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

local looked, emptied, finished, moved = 0, 0, {}, {}
while looked < #ARGV - FIRST_SUBJECT + 1 and room > 0 do
  local subject = ARGV[FIRST_SUBJECT + looked]
  local kept = sweep[ARGV[9]](FIRST_KEY + looked * OWN)
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
  -- Written to since, or moved here by this script before.
  call('ZADD', PERIODS, ARGV[11], ARGV[11])
  each_thousand('SADD', CURRENT, moved)
end
each_thousand('SREM', PERIOD, finished)
local gone = call('EXISTS', PERIOD) == 0
if gone then
  call('ZREM', PERIODS, ARGV[10])
end
local reply = ok()
reply[5], reply[6], reply[7], reply[8] = looked, emptied, gone and 1 or 0, worked()
return reply
