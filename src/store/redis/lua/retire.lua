-- Makes one bounded step of retiring: subtracts a part of the oldest slot below the floor from the ranking.
--
-- KEYS  1-5 the board (board.lua), 6 the oldest slot, 7 the oldest dedupe bucket, 8 the expiry periods that exist,
--       then, if the kind needs the remaining cells to withdraw one (APPROX_COUNT_DISTINCT), every slot that exists
-- ARGV  the board's, `slot`: start of that slot or '', `bucket`: number of that bucket or '', `oldest_bucket` still
--       needed, number of `subjects` to subtract, this `instance`, `pause` in ms between steps of two instances,
--       `oldest_period`: oldest expiry period of which data may still be kept, `kept`: start of the oldest slot of
--       which data is kept, `version`: the new board version, then
--       the start of each of the slots named for withdrawing; last, the option of the kind (kind/)
-- reply ok, now, reading, retiring, head before, slots retired, subjects touched, subjects removed, 1 if no slot below
--       the floor, no bucket that is not needed and no dropped ranking remains, 1 if the step was skipped, the oldest
--       expiry period that is due or '', microseconds of work (stopwatch.lua)
-- errors  stale_keys: the oldest slot or bucket differs, or other slots exist
-- cost  5-9 us per subject; the server may return somewhat more subjects than requested. APPROX_COUNT_DISTINCT: up to
--       100 us and 10 us per slot
-- why a script: an amount is removed from slot and ranking in one atomic step, so it is subtracted once, even if
--       several instances make steps, or a step is repeated after a crash. The cursor is kept in the meta key: a step
--       that began at 0 would scan the deleted part again and find nothing. The slot is sealed, so nothing is added
--       behind the cursor.
--
--- @include stopwatch, rankings, cells, subtract, enter
--- @arguments board.lua, slot, bucket, oldest_bucket, subjects, instance, pause, oldest_period, kept, version

local SLOT, BUCKET, PERIODS = KEYS[6], KEYS[7], KEYS[8]
local FIRST_SLOT_KEY, FIRST_START = 9, FIXED_ARGUMENTS + 1
local SLOTS = #ARGV - FIRST_START
-- The number of bytes of cells and totals that a step looks through, if that takes most of the time: about 2 ms.
local BUDGET = 60000
-- The number of dropped rankings that a step deletes.
local MOST_DELETED = 500

local oldest = call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. ARGV.floor, 'LIMIT', 0, 1)[1]
local bucket = call('ZRANGEBYSCORE', BUCKETS, '-inf', '(' .. ARGV.oldest_bucket, 'LIMIT', 0, 1)[1]
if (oldest or '') ~= ARGV.slot or (bucket or '') ~= ARGV.bucket
    or SLOTS > 0 and not names_all_slots(FIRST_START, SLOTS) then
  return stale_keys()
end
if bucket then
  call('UNLINK', BUCKET)
  call('ZREM', BUCKETS, bucket)
end

local retired, touched, removed, skipped = 0, 0, 0, 0
-- The fields of meta to write last, with their values.
local fields = {}

-- Returns the subjects and cells to subtract now, and the cursor from which to continue.
local function next_part()
  local cursor = call('HGET', META, 'cursor') or '0'
  local scanned = call('HSCAN', SLOT, cursor, 'COUNT', ARGV.subjects)
  local subjects, cells, seen, size = {}, {}, {}, 0
  for i = 1, #scanned[2], 2 do
    local subject, cell = scanned[2][i], scanned[2][i + 1]
    -- The server may return a subject twice in one reply.
    if not seen[subject] then
      if not sound(cell) then
        return nil
      end
      seen[subject] = true
      size = size + 1
      subjects[size], cells[size] = subject, cell
    end
  end
  return subjects, cells, scanned[1]
end

-- Withdraws the cells from totals. Returns the same as `subtract_from_scores`.
local function withdraw_from_totals(start, subjects, cells)
  local done, work = 0, 0
  local subject, next_other, looked_at
  while done < #subjects and work < BUDGET do
    done = done + 1
    subject = subjects[done]
    if SLOTS > 0 then
      work = work + #cells[done] + 2048
    end
    next_other, looked_at = others_of(subject, start, FIRST_SLOT_KEY, FIRST_START)
    if withdraw(accs[done], start, cells[done], next_other) then
      gather(subject, accs[done])
    end
    work = work + looked_at()
  end
  return done, save_gathered()
end

-- Removes the records of write operations that no instance sends again: an instance stops after some seconds, and five
-- minutes are longer than a network may take to deliver a late request. The record of an import stays until that has
-- ended: a piece may be sent again at any time.
local function forget_operations()
  local fields, old = {}, {}
  for _, field in ipairs(call('HKEYS', META)) do
    if string.sub(field, 1, 2) == 'o:' and string.sub(field, 1, 9) ~= 'o:import-' then
      fields[#fields + 1] = field
    end
  end
  for i, record in ipairs(read_thousands('HMGET', META, fields, 1, #fields)) do
    local at = record and tonumber(string.match(record, '^%d+:(%d+):'))
    if at and now - at > 300000 then
      old[#old + 1] = fields[i]
    end
  end
  each_thousand('HDEL', META, old)
end

-- Removes the numbers of items of slots that are no longer kept, in the first step after the window has moved.
local function forget_events()
  if call('HGET', META, 'events_from') == ARGV.kept then
    return
  end
  local gone = {}
  for _, field in ipairs(call('HKEYS', META)) do
    local start = tonumber(string.match(field, '^e:(%-?%d+)$'))
    if start and start < tonumber(ARGV.kept) then
      gone[#gone + 1] = field
    end
  end
  run_when_full()
  each_thousand('HDEL', META, gone)
  call('HSET', META, 'events_from', ARGV.kept)
end

-- Deletes some of the rankings of the oldest epoch before the present one. Nothing reads them.
local function delete_dropped()
  local epoch = call('ZRANGE', RANKING, 0, 0)[1]
  if not epoch or tonumber(epoch) >= dropped then
    return
  end
  local list, prefix = RANKING .. ':' .. epoch, rankings_of(tonumber(epoch))
  local keys, rankings = call('ZRANGE', list, 0, MOST_DELETED - 1), {}
  for i, key in ipairs(keys) do
    rankings[i] = prefix .. key
  end
  if #keys > 0 then
    call('UNLINK', unpack(rankings))
    call('ZREM', list, unpack(keys))
  end
  if call('EXISTS', list) == 0 then
    call('ZREM', RANKING, epoch)
  end
end

if HAS_KEYS then
  delete_dropped()
end
forget_events()
if oldest then
  local time = call('TIME')
  local clock = time[1] * 1000 + math.floor(time[2] / 1000)
  local last = call('HMGET', META, 'stepper', 'stepped')
  local since = clock - (tonumber(last[2]) or 0)
  if last[1] and last[1] ~= ARGV.instance and since >= 0 and since < tonumber(ARGV.pause) then
    skipped = 1
  elseif tonumber(oldest) < dropped then
    -- The slot was dropped with the ranking, so there is nothing to subtract it from.
    call('UNLINK', SLOT)
    call('ZREM', INDEX, oldest)
    retired = 1
  else
    call('ZCARD', RANKING)
    local subjects, cells, cursor = next_part()
    if not subjects then
      return {'damaged', 'what a subject has in a slot is not what the metric writes'}
    end
    if not load_accumulated(subjects) then
      return {'damaged', 'a total is not what the metric writes'}
    end
    run_when_full()
    local found = #subjects
    if HAS_TOTALS then
      touched, removed = withdraw_from_totals(tonumber(oldest), subjects, cells)
    else
      touched, removed = subtract_from_scores(subjects, cells)
    end
    for i = touched + 1, found do
      subjects[i] = nil
    end
    each_thousand('HDEL', SLOT, subjects)
    if call('HLEN', SLOT) == 0 then
      call('ZREM', INDEX, oldest)
      call('HDEL', META, 'cursor')
      retired = 1
    elseif touched == found then
      -- If some subjects were left, the next step finds them at the same cursor.
      fields = {'cursor', cursor}
    end
    for _, text in ipairs({'stepper', ARGV.instance, 'stepped', format(clock)}) do
      fields[#fields + 1] = text
    end
  end
end

if retired > 0 or touched > 0 then
  if retired > 0 then
    recount()
  end
  touch(ARGV.version, unpack(fields))
elseif #fields > 0 then
  -- The server found nothing at this cursor. The next step continues after it.
  call('HSET', META, unpack(fields))
end
local reply = ok()
local remaining = call('ZCOUNT', INDEX, '-inf', '(' .. ARGV.floor)
  + call('ZCOUNT', BUCKETS, '-inf', '(' .. ARGV.oldest_bucket)
if HAS_KEYS then
  remaining = remaining + call('ZCOUNT', RANKING, '-inf', '(' .. format(dropped))
end
if remaining == 0 and retired + touched == 0 then
  forget_operations()
end
reply[5], reply[6], reply[7], reply[8] = previous_head, retired, touched, removed
reply[9], reply[10] = remaining == 0 and 1 or 0, skipped
reply[11] = call('ZRANGEBYSCORE', PERIODS, '-inf', '(' .. ARGV.oldest_period, 'LIMIT', 0, 1)[1] or ''
reply[12] = worked()
return reply
