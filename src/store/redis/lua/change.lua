-- Applies entries one after the other, once, whatever becomes of the reply: all that is not an amount to be added to
-- a ranked sum (write.lua).
--
-- KEYS  1-5 the board (board.lua), then on a ranked board one slot for each start in ARGV, then the keys of each subject
--       (none on a ranked board, but for COUNT_DISTINCT), then, where there are ids, the dedupe bucket of now, the one
--       before, and the one before that, and last, where subjects have keys, the expiry periods that exist and the
--       subjects of the period of now
-- ARGV  1-8 the board, 9 and 10 the operation (operation.lua), 11 bound of a (slot, subject), 12 how many slots,
--       13 how many subjects, 14 how many entries, 15 number of the dedupe bucket of now where they have ids, else
--       '', 16 dedupe horizon in ms, 17 position of the first subject's key, 18 that of the first bucket, 19 start of
--       the oldest slot kept, 20 number of the expiry period of now, or ''; then the start of
--       each slot, oldest first; the subjects; then for each entry: position of its slot, position of its subject
--       (both from 1), verb, a, b, its time in ms or '' for now, code, id or ''; last, the kind's own (kind/)
--       code: 2 if it is a sum of several items, plus 1 if its score is wanted. Verbs are those of the kind
--       (change/), and `look`, which changes nothing
-- reply ok, now, reading, retiring, then three values for each entry that is not simply counted: its position
--       from 0; `counted`, `duplicate`, `refused` (out of range), `behind` (not tried: an earlier sum of its subject
--       was refused, and the items of that come first, or those before it took the script's time) or `damaged`; the subject's score after all entries if wanted
--       and there is one, else ''
-- errors  superseded: a later operation of this caller has been done, so this one never will be
--       missing, now, reading, retiring, starts: the call must name these slots as well; nothing was done
-- cost  O(log n) per entry and command: 5-15 us an entry, and 25-40 us for the call with its socket
-- why a script: cell, total and score change together or not at all, each item is judged by what those before it
--       left, and the reply is recorded by the step it tells of, which makes repeating it after a lost reply safe

local early = begin()
if early then
  return early
end

-- There is no rollback: whatever may fail, a key of a wrong type among it, is read before the first write.
local reply = ok()
call('ZCARD', RANKING)
local entries, fields, some = {}, {}, {}
for i = 1, ENTRIES do
  local entry = entry_at(i)
  entries[i] = entry
  if entry.id ~= '' then
    fields[i] = subject_of(entry.who) .. '\0' .. entry.id
    some[#some + 1] = fields[i]
  end
end

-- By subject and id: true where it arrived within the horizon.
local is_duplicate = {}
if #some > 0 then
  call('ZCARD', BUCKETS)
  for back = 0, 2 do
    local arrived = call('HMGET', KEYS[FIRST_BUCKET_KEY + back], unpack(some))
    for i = 1, #some do
      local at = tonumber(arrived[i] or nil)
      if at and now - at < tonumber(ARGV[16]) then
        is_duplicate[some[i]] = true
      end
    end
  end
end

local function give_up()
  local gave_up = ok()
  gave_up[1], gave_up[5] = 'missing', missing
  return record_unchanged(gave_up)
end

local faults = {}
for i = 1, ENTRIES do
  faults[i] = prepare(entries[i])
end
if #missing > 0 then
  return give_up()
end

local outcomes, arrivals, refused = {}, {}, {}
for i = 1, ENTRIES do
  local entry, field = entries[i], fields[i]
  if refused[entry.who] or looked_at > MOST_LOOKED_AT and entry.verb ~= 'look' then
    outcomes[i] = 'behind'
  elseif field and is_duplicate[field] then
    outcomes[i] = 'duplicate'
  elseif entry.verb ~= 'look' then
    outcomes[i] = faults[i] or apply(entry)
    if outcomes[i] == 'refused' and entry.code >= 2 then
      refused[entry.who] = true
    elseif field and not outcomes[i] then
      is_duplicate[field] = true
      arrivals[#arrivals + 1] = field
      arrivals[#arrivals + 1] = format(now)
    end
  end
end
if #missing > 0 then
  return give_up()
end

-- A refusal for want of memory can only be that of the first write, so then nothing was done.
save_cells()
save_standing()
finish()
if #arrivals > 0 then
  call('ZADD', BUCKETS, ARGV[15], ARGV[15])
  each_thousand('HSET', KEYS[FIRST_BUCKET_KEY], arrivals)
end

local scores = {}
for i = 1, ENTRIES do
  local entry = entries[i]
  local wanted = entry.code % 2 == 1
  if wanted or outcomes[i] then
    if wanted and not scores[entry.who] then
      scores[entry.who] = score_text(entry.who)
    end
    local size = #reply
    reply[size + 1], reply[size + 2] = i - 1, outcomes[i] or 'counted'
    reply[size + 3] = wanted and scores[entry.who] or ''
  end
end
return record(reply)
