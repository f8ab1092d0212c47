-- Adds amounts to slots and ranking, exactly once, even if the reply is lost.
--
-- KEYS  1-5 the board (board.lua), then one slot for each start in ARGV, then, if there are ids, the current dedupe
--       bucket and those before it that may have ids of the horizon, newest first
-- ARGV  the board's (board.lua), those of the operation (operation.lua), `bound` of a (slot, subject), number of
--       `slots`, number of `entries`, `coded`: not '' if the entries have codes, which are required if a subject may
--       occur twice or if the number of slots is not one, `bucket`: number of the current dedupe bucket if there are
--       ids, else '', dedupe `horizon` in ms, `items`: number of items that each entry stands for, separated by
--       commas, or '' if each is one item, `margins`: how far from the bound each sum must stay, or '' if none must;
--       then the start of each slot; then, each for all entries in their order: subjects; amounts; codes, if any:
--       4 x position of its slot from 0, plus 2 if it is a sum of several items and there are ids, plus 1 if its score
--       is wanted; ids, if there are any, with an empty text for an entry that has none
-- reply ok, now, reading, retiring, then three values for each entry that was not simply counted or whose score is
--       wanted: its position from 0; `counted`, `duplicate`, `refused` (out of range), `behind` (not tried: an earlier
--       sum of its subject was refused, and the items of that sum must be tried before it) or `damaged`; the subject's
--       score after all entries if wanted, else ''
-- errors  superseded: a later operation of this caller has been done, so this one never will be
-- cost  O(log subjects) per entry: 1.5-3 us, and 25-40 us for the call with its socket. All data is read at once and
--       written at once, because each command costs as much as its work for an entry
-- why a script: slot and ranking change together or not at all, the bound is checked on the sum, and the reply is
--       recorded in the same atomic step, which makes it safe to send the operation again after a lost reply

local BOUND, SLOTS, ENTRIES = tonumber(ARGV.bound), tonumber(ARGV.slots), tonumber(ARGV.entries)
local CODED, HAS_IDS = ARGV.coded ~= '', ARGV.bucket ~= ''
local FIRST_SLOT, FIRST_START = 6, FIXED_ARGUMENTS + 1
local FIRST_SUBJECT = FIRST_START + SLOTS
local LAST_SUBJECT = FIRST_SUBJECT + ENTRIES - 1
-- Formatting in Lua is much cheaper than letting the server print a number, and as exact, because sums are below 2^53.
local tonumber, whole = tonumber, string.format

local early = begin()
if early then
  return early
end

local reply = ok()
if ENTRIES == 0 then
  return reply
end

local subjects = {unpack(ARGV, FIRST_SUBJECT, LAST_SUBJECT)}
-- The content of slots and ranking, first as read, then as it will be written: texts as read, numbers once changed,
-- false if absent. is_new: by slot, whether none of the subjects was found in it.
local amounts, scores, is_new = {}, {}, {}
-- By entry: its subject and id, if it has one. By subject and id: true if the id arrived within the horizon.
local fields, is_duplicate, bucket_is_new = {}, {}, false

-- The pairs to write, in order, so that of several pairs for one subject the last one wins; and the subjects whose
-- amount or score may become 0.
local slot_pairs, rank_pairs, arrivals = {}, {}, {}
local zero_amounts, zero_scores = {}, {}
-- By slot: the number of items that were counted.
local counted = {}

-- Returns the position of an entry's slot, from 0.
local function slot_of(entry)
  return CODED and math.floor(tonumber(ARGV[LAST_SUBJECT + ENTRIES + entry]) / 4) or 0
end

-- Reads the amounts that the entries' subjects have in their slots, and their scores.
local function read_amounts_and_scores()
  local by_slot = {[0] = subjects}
  if SLOTS > 1 then
    for slot = 0, SLOTS - 1 do
      by_slot[slot] = {}
    end
    for i = 1, ENTRIES do
      local own = by_slot[slot_of(i)]
      own[#own + 1] = subjects[i]
    end
  end
  for slot = 0, SLOTS - 1 do
    local own = by_slot[slot]
    local held = call('HMGET', KEYS[FIRST_SLOT + slot], unpack(own))
    local of, found = {}, false
    for i = 1, #own do
      of[own[i]] = held[i]
      found = found or held[i]
    end
    amounts[slot], is_new[slot] = of, not found
    slot_pairs[slot], zero_amounts[slot] = {}, {}
  end
  local held = call('ZMSCORE', RANKING, unpack(subjects))
  for i = 1, ENTRIES do
    scores[subjects[i]] = held[i]
  end
end

-- Reads which of the ids arrived within the horizon.
local function read_ids()
  call('ZCARD', BUCKETS)
  local some = {}
  for i = 1, ENTRIES do
    local id = ARGV[LAST_SUBJECT + 2 * ENTRIES + i]
    if id ~= '' then
      fields[i] = subjects[i] .. '\0' .. id
      some[#some + 1] = fields[i]
    end
  end
  local current = FIRST_SLOT + SLOTS
  for bucket = current, #KEYS do
    local arrived = call('HMGET', KEYS[bucket], unpack(some))
    local found = false
    for i = 1, #some do
      local at = tonumber(arrived[i] or nil)
      found = found or at
      if at and now - at < tonumber(ARGV.horizon) then
        is_duplicate[some[i]] = true
      end
    end
    bucket_is_new = bucket_is_new or bucket == current and not found
  end
end

-- Judges each entry, adds its amount in memory if it counts, and adds to the reply what was not simply counted and the
-- scores that are wanted.
local function judge_entries()
  -- asked: by position in the reply, the subject whose score is wanted. refused: by subject, whether a sum was refused
  -- whose items must be tried before later entries.
  local asked, refused = {}, {}
  local arrival = format(now)
  local slot, code, ranked = 0, 0, 0
  local next_items = ARGV.items ~= '' and string.gmatch(ARGV.items, '%d+')
  local next_margin = ARGV.margins ~= '' and string.gmatch(ARGV.margins, '%d+')
  local of, pairs_of = amounts[0], slot_pairs[0]
  for i = 1, ENTRIES do
    if CODED then
      code, slot = tonumber(ARGV[LAST_SUBJECT + ENTRIES + i]), slot_of(i)
      of, pairs_of = amounts[slot], slot_pairs[slot]
    end
    local subject, field, items = subjects[i], fields[i], next_items and next_items() or 1
    local bound = next_margin and BOUND - next_margin() or BOUND
    local outcome = nil
    if refused[subject] then
      outcome = 'behind'
    elseif field and is_duplicate[field] then
      outcome = 'duplicate'
    else
      local amount, before = tonumber(ARGV[LAST_SUBJECT + i]), tonumber(of[subject] or 0)
      local sum = before and before + amount
      -- A number that is not whole was not written by this store.
      if not before or before % 1 ~= 0 then
        outcome = 'damaged'
      elseif sum > bound or sum < -bound then
        outcome = 'refused'
        refused[subject] = code % 4 >= 2 or nil
      else
        local score = (scores[subject] or 0) + amount
        of[subject], scores[subject] = sum, score
        counted[slot] = (counted[slot] or 0) + items
        if sum == 0 then
          zero_amounts[slot][#zero_amounts[slot] + 1] = subject
        else
          local size = #pairs_of
          pairs_of[size + 1], pairs_of[size + 2] = subject, whole('%d', sum)
        end
        if score == 0 then
          zero_scores[#zero_scores + 1] = subject
        else
          rank_pairs[ranked + 1], rank_pairs[ranked + 2] = whole('%d', score), subject
          ranked = ranked + 2
        end
        if field then
          is_duplicate[field] = true
          local size = #arrivals
          arrivals[size + 1], arrivals[size + 2] = field, arrival
        end
      end
    end
    local wanted = code % 2 == 1
    if wanted or outcome then
      local size = #reply
      reply[size + 1] = i - 1
      reply[size + 2] = outcome or 'counted'
      reply[size + 3] = ''
      if wanted then
        asked[size + 3] = subject
      end
    end
  end
  for at, subject in pairs(asked) do
    reply[at] = format(scores[subject] or 0)
  end
end

-- Returns those of `subjects` whose final value is 0.
local function still_zero(subjects, values)
  local zero = {}
  for i = 1, #subjects do
    if values[subjects[i]] == 0 then
      zero[#zero + 1] = subjects[i]
    end
  end
  return zero
end

-- Writes slots, scores and ids. A server that is restarted may have kept only the first of these writes. So the index
-- is written first: an entry without a slot does no harm, but a slot that the index does not name would never retire.
local function save()
  for slot = 0, SLOTS - 1 do
    local key, start = KEYS[FIRST_SLOT + slot], ARGV[FIRST_START + slot]
    if #slot_pairs[slot] > 0 then
      if is_new[slot] then
        call('ZADD', INDEX, start, start)
      end
      call('HSET', key, unpack(slot_pairs[slot]))
    end
    local zero = still_zero(zero_amounts[slot], amounts[slot])
    if #zero > 0 then
      call('HDEL', key, unpack(zero))
      if call('HLEN', key) == 0 then
        call('ZREM', INDEX, start)
      end
    end
  end
  if #rank_pairs > 0 then
    call('ZADD', RANKING, unpack(rank_pairs))
  end
  local zero = still_zero(zero_scores, scores)
  if #zero > 0 then
    call('ZREM', RANKING, unpack(zero))
  end
  if #arrivals > 0 then
    if bucket_is_new then
      call('ZADD', BUCKETS, ARGV.bucket, ARGV.bucket)
    end
    call('HSET', KEYS[FIRST_SLOT + SLOTS], unpack(arrivals))
  end
  for slot, items in pairs(counted) do
    count_events(ARGV[FIRST_START + slot], items)
  end
end

-- There is no rollback. So everything that may fail, such as a key of a wrong type, is read before the first write. If
-- memory is full, the server refuses only the first write, so then nothing was done.
read_amounts_and_scores()
if HAS_IDS then
  read_ids()
end
judge_entries()
save()
-- `retiring` counts sealed slots, to which no write is made, so the header is still correct.
return record(reply)
