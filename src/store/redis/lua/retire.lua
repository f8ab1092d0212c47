-- One bounded step of retiring: subtracts a part of the oldest slot below the floor from the ranking.
--
-- KEYS  1-5 the board (board.lua), 6 the oldest slot, 7 the oldest dedupe bucket, then, where the kind withdraws by
--       looking at what stays (APPROX_COUNT_DISTINCT), every slot that exists
-- ARGV  1-8 the board, 9 start of that slot or '', 10 number of that bucket or '', 11 oldest bucket still needed,
--       12 how many subjects to subtract, 13 this instance, 14 pause in ms between steps of two instances, then the
--       start of each of those slots; last, the kind's own (kind/)
-- reply ok, now, reading, retiring, head before, slots retired, subjects touched, subjects removed,
--       1 if nothing below the floor remains, 1 if the step was skipped
-- errors  stale_keys: the oldest slot or bucket is another, or other slots exist
-- cost  5-9 us per subject; the server may hand out somewhat more than asked for. APPROX_COUNT_DISTINCT: up to 100 us
--       and 10 us per slot
-- why a script: an amount leaves slot and ranking together, so it is subtracted once, whoever steps, crashes or
--       repeats. The cursor stays in the meta key, for starting each step at 0 finds nothing among what was
--       deleted; the slot is sealed, so nothing is ever added behind the cursor.

local SLOT, BUCKET = KEYS[6], KEYS[7]

local early = enter()
if early then
  return early
end
local oldest = call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. ARGV[5], 'LIMIT', 0, 1)[1]
local bucket = call('ZRANGEBYSCORE', BUCKETS, '-inf', '(' .. ARGV[11], 'LIMIT', 0, 1)[1]
if (oldest or '') ~= ARGV[9] or (bucket or '') ~= ARGV[10]
    or SLOTS > 0 and not names_all_slots(FIRST_START, SLOTS) then
  return stale_keys()
end
if bucket then
  call('UNLINK', BUCKET)
  call('ZREM', BUCKETS, bucket)
end

local retired, touched, removed, skipped = 0, 0, 0, 0

-- Answers the subjects and cells to subtract now, with the cursor to go on from.
local function next_part()
  local cursor = call('HGET', META, 'cursor') or '0'
  local scanned = call('HSCAN', SLOT, cursor, 'COUNT', ARGV[12])
  local subjects, cells, seen = {}, {}, {}
  for i = 1, #scanned[2], 2 do
    local subject, cell = scanned[2][i], scanned[2][i + 1]
    -- The server may name a subject twice in one reply.
    if not seen[subject] then
      if not sound(cell) then
        return nil
      end
      seen[subject] = true
      subjects[#subjects + 1] = subject
      cells[#cells + 1] = cell
    end
  end
  return subjects, cells, scanned[1]
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
    local subjects, cells, cursor = next_part()
    if not subjects then
      return {'damaged', 'what a subject has in a slot is not what the metric writes'}
    end
    if not load_totals(subjects) then
      return {'damaged', 'a total is not what the metric writes'}
    end
    run_when_full()
    local found = #subjects
    touched, removed = subtract(tonumber(oldest), subjects, cells)
    for i = touched + 1, found do
      subjects[i] = nil
    end
    each_thousand('HDEL', SLOT, subjects)
    if call('HLEN', SLOT) == 0 then
      call('ZREM', INDEX, oldest)
      call('HDEL', META, 'cursor')
      retired = 1
    elseif touched == found then
      -- Where some were left, the next step finds them at the same place.
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
