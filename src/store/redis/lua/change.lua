-- Applies entries one after the other, exactly once, even if the reply is lost: all changes except amounts added to a
-- ranked sum (write.lua).
--
-- KEYS  1-5 the board (board.lua), then on a ranked board one slot for each start in ARGV, then the keys of each
--       subject (none on a ranked board, except COUNT_DISTINCT), then, if there are ids, the current dedupe bucket, the
--       one before, and the one before that, and last, if subjects have keys, the expiry periods that exist and the
--       subjects of the current period
-- ARGV  the board's (board.lua), those of the operation (operation.lua), `bound` of a (slot, subject), number of
--       `slots`, number of `subjects`, number of `entries`, `bucket`: number of the current dedupe bucket if there are
--       ids, else '', dedupe `horizon` in ms, position of the `first_subject_key`, that of the `first_bucket_key`,
--       `oldest`: start of the oldest slot kept, `period`: number of the current expiry period, or ''; then the start
--       of each slot, oldest first; the subjects; then for each entry: position of its slot, position of its subject
--       (both from 1), verb, a, b, its time in ms or '' for now, code, id or ''; last, the option of the kind (kind/)
--       code: twice the number of items of the entry beyond one, plus 1 if its score is wanted. Verbs are those of the kind, and
--       `look`, which changes nothing
-- reply ok, now, reading, retiring, then three values for each entry that was not simply counted or whose score is
--       wanted: its position from 0; `counted`, `duplicate`, `refused` (out of range), `behind` (not tried: an earlier
--       sum of its subject was refused, and the items of that sum must be tried before it; or the entries before it
--       used up the script's time) or `damaged`; the subject's score after all entries if wanted and there is one, else
--       ''
-- errors  superseded: a later operation of this caller has been done, so this one never will be
--       missing, now, reading, retiring, starts: the call must name these slots too; nothing was done except advancing
-- cost  O(log n) per entry and command: 5-15 us per entry, and 25-40 us for the call with its socket
-- why a script: cell, total and score change together or not at all, the effect of each item depends on the items
--       before it, and the reply is recorded in the same atomic step, which makes it safe to send the operation again
--       after a lost reply

local early = begin()
if early then
  return early
end

-- There is no rollback. So everything that may fail, such as a key of a wrong type, is read before the first write.
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

-- By subject and id: true if the id arrived within the horizon.
local is_duplicate = {}
if #some > 0 then
  call('ZCARD', BUCKETS)
  for back = 0, 2 do
    local arrived = call('HMGET', KEYS[FIRST_BUCKET_KEY + back], unpack(some))
    for i = 1, #some do
      local at = tonumber(arrived[i] or nil)
      if at and now - at < tonumber(ARGV.horizon) then
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

local outcomes, arrivals, refused, counted = {}, {}, {}, {}
for i = 1, ENTRIES do
  local entry, field = entries[i], fields[i]
  if refused[entry.who] or looked_at > MOST_LOOKED_AT and entry.verb ~= 'look' then
    outcomes[i] = 'behind'
  elseif field and is_duplicate[field] then
    outcomes[i] = 'duplicate'
  elseif entry.verb ~= 'look' then
    outcomes[i] = faults[i] or apply(entry)
    if not outcomes[i] and SLOTS > 0 then
      counted[entry.slot] = (counted[entry.slot] or 0) + 1 + math.floor(entry.code / 2)
    end
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

-- If memory is full, the server refuses only the first write, so then nothing was done.
save()
finish()
for slot, items in pairs(counted) do
  count_events(start_of(slot), items)
end
if #arrivals > 0 then
  call('ZADD', BUCKETS, ARGV.bucket, ARGV.bucket)
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
