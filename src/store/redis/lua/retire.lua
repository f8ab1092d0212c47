-- One bounded step of retiring: subtracts a part of the oldest slot below the floor from the ranking.
--
-- KEYS  1-4 the board (board.lua), 5 the oldest slot, 6 the oldest dedupe bucket
-- ARGV  1-8 the board, 9 start of that slot or '', 10 number of that bucket or '', 11 oldest bucket still needed,
--       12 how many subjects to subtract, 13 this instance, 14 pause in ms between steps of two instances
-- reply ok, now, reading, retiring, head before, slots retired, subjects touched, subjects removed,
--       1 if nothing below the floor remains, 1 if the step was skipped
-- errors  stale_keys: the oldest slot or bucket is another
-- cost  5-9 us per subject; the server may hand out somewhat more than asked for
-- why a script: an amount leaves slot and ranking together, so it is subtracted once, whoever steps, crashes or
--       repeats. The cursor stays in the meta key, for starting each step at 0 finds nothing among what was
--       deleted; the slot is sealed, so nothing is ever added behind the cursor.

local SLOT, BUCKET = KEYS[5], KEYS[6]
local call = redis.call

local early = enter()
if early then
  return early
end
local oldest = call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. ARGV[5], 'LIMIT', 0, 1)[1]
local bucket = call('ZRANGEBYSCORE', BUCKETS, '-inf', '(' .. ARGV[11], 'LIMIT', 0, 1)[1]
if (oldest or '') ~= ARGV[9] or (bucket or '') ~= ARGV[10] then
  return stale_keys()
end
if bucket then
  call('UNLINK', BUCKET)
  call('ZREM', BUCKETS, bucket)
end

local retired, touched, removed, skipped = 0, 0, 0, 0

-- Answers the subjects and amounts to subtract now, with the cursor to go on from.
local function next_part()
  local cursor = call('HGET', META, 'cursor') or '0'
  local scanned = call('HSCAN', SLOT, cursor, 'COUNT', ARGV[12])
  local subjects, amounts, seen = {}, {}, {}
  for i = 1, #scanned[2], 2 do
    local subject, amount = scanned[2][i], scanned[2][i + 1]
    -- The server may name a subject twice in one reply.
    if not seen[subject] then
      if not string.match(amount, '^%-?%d+$') then
        return nil
      end
      seen[subject] = true
      subjects[#subjects + 1] = subject
      amounts[#amounts + 1] = amount
    end
  end
  return subjects, amounts, scanned[1]
end

local function each_thousand(command, key, values)
  for first = 1, #values, 1000 do
    call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
end

if oldest then
  local time = call('TIME')
  local clock = time[1] * 1000 + math.floor(time[2] / 1000)
  local last = call('HMGET', META, 'stepper', 'stepped')
  local since = clock - (tonumber(last[2]) or 0)
  if last[1] and last[1] ~= ARGV[13] and since >= 0 and since < tonumber(ARGV[14]) then
    skipped = 1
  elseif tonumber(oldest) < dropped then
    -- It went with the ranking: nothing is left to subtract it from.
    call('UNLINK', SLOT)
    call('ZREM', INDEX, oldest)
    retired = 1
  else
    call('ZCARD', RANKING)
    local subjects, amounts, cursor = next_part()
    if not subjects then
      return {'damaged', 'an amount in a slot is not a whole number'}
    end
    run_when_full()
    local gone = {}
    for i = 1, #subjects do
      local amount = amounts[i]
      local negated = string.sub(amount, 1, 1) == '-' and string.sub(amount, 2) or '-' .. amount
      if tonumber(call('ZINCRBY', RANKING, negated, subjects[i])) == 0 then
        gone[#gone + 1] = subjects[i]
      end
    end
    each_thousand('HDEL', SLOT, subjects)
    each_thousand('ZREM', RANKING, gone)
    touched, removed = #subjects, #gone
    if call('HLEN', SLOT) == 0 then
      call('ZREM', INDEX, oldest)
      call('HDEL', META, 'cursor')
      retired = 1
    else
      call('HSET', META, 'cursor', cursor)
    end
    call('HSET', META, 'stepper', ARGV[13], 'stepped', format(clock))
  end
end

local reply = ok()
local remaining = call('ZCOUNT', INDEX, '-inf', '(' .. ARGV[5])
reply[5], reply[6], reply[7], reply[8] = previous_head, retired, touched, removed
reply[9], reply[10] = remaining == 0 and 1 or 0, skipped
return reply
