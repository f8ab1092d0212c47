-- Adds amounts to slots and ranking, once, whatever becomes of the reply.
--
-- KEYS  1-4 the board (board.lua), 5 operation, 6 the dedupe bucket of now, 7 the one before, 8 the one before
--       that, then one slot for each start in ARGV
-- ARGV  1-8 the board, 9 sequence number of this operation, 10 bound of a (slot, subject), 11 how many slots,
--       12 number of the dedupe bucket of now, 13 dedupe horizon in ms, 14 values per entry: 3, or 4 with ids,
--       then the start of each slot, then the entries: 4 x position of its slot from 0, plus 2 if it is a sum of
--       several items, plus 1 if its score is wanted; subject; amount; id or an empty text
-- reply ok, now, reading, retiring, then three values for each entry that is not simply counted: its position
--       from 0; `counted`, `duplicate`, `refused` (out of range), `behind` (not tried: it has an id, an earlier sum of
--       its subject was refused, and the items of that come first) or `damaged`; the subject's score after all
--       entries if wanted, else ''
-- errors  superseded: a later operation of this caller has been done, so this one never will be
-- cost  O(log subjects) per entry: 4-6 us
-- why a script: slot and ranking change together or not at all, the bound is checked on the sum, and the reply is
--       recorded by the step it tells of, which makes repeating it after a lost reply safe

local OPERATION, BUCKET = KEYS[5], KEYS[6]
local SEQUENCE, BOUND, SLOTS = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local HORIZON, WIDTH = tonumber(ARGV[13]), tonumber(ARGV[14])
local FIRST_SLOT, FIRST_START = 9, 15
local call, pcall = redis.call, redis.pcall

-- Repeats of ours end after seconds; five minutes outlive whatever a network may still deliver.
local function record(reply)
  call('SET', OPERATION, cmsgpack.pack({SEQUENCE, reply}), 'PX', 300000)
  return reply
end

local function negated(amount)
  if string.sub(amount, 1, 1) == '-' then
    return string.sub(amount, 2)
  end
  return '-' .. amount
end

local recorded = call('GET', OPERATION)
if recorded then
  local done = cmsgpack.unpack(recorded)
  if done[1] == SEQUENCE then
    return done[2]
  elseif done[1] > SEQUENCE then
    return {'superseded'}
  end
end

local early = enter()
if early then
  if early[1] == 'stale' then
    -- An earlier sending of this operation may still arrive; it must not count beside the one that replaces it.
    record(early)
  end
  return early
end

-- There is no rollback: each of these fails on a key of a wrong type before the first write.
call('ZCARD', RANKING)
call('ZCARD', INDEX)
local changed_existence = {}
for i = 0, SLOTS - 1 do
  if call('HLEN', KEYS[FIRST_SLOT + i]) == 0 then
    changed_existence[i] = true
  end
end
local bucket_is_new = false
if WIDTH == 4 then
  bucket_is_new = call('HLEN', BUCKET) == 0
  call('HLEN', KEYS[7])
  call('HLEN', KEYS[8])
  call('ZCARD', BUCKETS)
end

local function is_duplicate(field)
  for i = 6, 8 do
    local arrived = tonumber(call('HGET', KEYS[i], field))
    if arrived and now - arrived < HORIZON then
      return true
    end
  end
  return false
end

local reply = ok()
local asked, refused = {}, {}
local arrival = format(now)
local position = 0
for at = FIRST_START + SLOTS, #ARGV, WIDTH do
  local code, subject, amount = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2]
  local wanted = code % 2
  local is_sum = code % 4 >= 2
  local slot = math.floor(code / 4)
  local slot_key = KEYS[FIRST_SLOT + slot]
  local field = nil
  if WIDTH == 4 and ARGV[at + 3] ~= '' then
    field = subject .. '\0' .. ARGV[at + 3]
  end
  local outcome = 'counted'
  if field and refused[subject] then
    outcome = 'behind'
  elseif field and is_duplicate(field) then
    outcome = 'duplicate'
  else
    local sum = pcall('HINCRBY', slot_key, subject, amount)
    if type(sum) == 'table' then
      if string.sub(sum.err, 1, 4) ~= 'ERR ' then
        -- Memory is full, or the like: said of the first write only, so nothing was done.
        return sum
      end
      outcome = 'damaged'
    else
      if sum > BOUND or sum < -BOUND then
        outcome = 'refused'
        refused[subject] = is_sum or nil
        sum = call('HINCRBY', slot_key, subject, negated(amount))
      else
        if tonumber(call('ZINCRBY', RANKING, amount, subject)) == 0 then
          call('ZREM', RANKING, subject)
        end
        if field then
          call('HSET', BUCKET, field, arrival)
        end
      end
      if sum == 0 then
        call('HDEL', slot_key, subject)
        changed_existence[slot] = true
      end
    end
  end
  if wanted == 1 or outcome ~= 'counted' then
    local size = #reply
    reply[size + 1] = position
    reply[size + 2] = outcome
    reply[size + 3] = ''
    if wanted == 1 then
      asked[size + 3] = subject
    end
  end
  position = position + 1
end

for at, subject in pairs(asked) do
  reply[at] = call('ZSCORE', RANKING, subject) or '0'
end
for i in pairs(changed_existence) do
  local start = ARGV[FIRST_START + i]
  if call('HLEN', KEYS[FIRST_SLOT + i]) == 0 then
    call('ZREM', INDEX, start)
  else
    call('ZADD', INDEX, start, start)
  end
end
if bucket_is_new and call('HLEN', BUCKET) > 0 then
  call('ZADD', BUCKETS, ARGV[12], ARGV[12])
end
-- `retiring` counts sealed slots, which no write touches: the header still holds.
return record(reply)
