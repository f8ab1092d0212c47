-- Applies entries one after the other, exactly once, even if the reply is lost: all changes except amounts that are
-- added to ranked sums in all tracks alike (write.lua).
--
-- KEYS  for each track of the board, those of the current edition first, the main one of each edition first: 1-5 the
--       board (board.lua), then on a ranked board one slot for each start in ARGV, then the keys of each subject (none
--       on a ranked board, except COUNT_DISTINCT), then, if there are ids, in the first track only, the current dedupe
--       bucket and those before it, newest first, and last, if subjects have keys, the expiry periods that exist and
--       the subjects of the current period
-- ARGV  for each track: the board's (board.lua), those of the operation (operation.lua), `sizes` (tracks.lua), those of
--       the entries (entries.lua), `most_keys`: the largest number of keys, or '' if the track limits none, `bucket`:
--       number of the current dedupe bucket if there are ids, else '', dedupe `horizon` in ms, position of the
--       `first_bucket_key`, number of `buckets` that may have ids of the horizon, `edition`: id of the track's edition
--       if there are two, else ''; then slots, subjects and entries; last, the option of the kind (kind/). A code is
--       twice the number of items of the entry beyond one, plus 1 if its score is wanted. Verbs are those of the kind,
--       `look`, which changes nothing in this track, and `follow`: the main track is a total, and the next one has a
--       sample of a slot beside it. A retraction with an id whose slot has left all windows only looks. The tracks have
--       the same entries, but only the first track has their ids, and entries after all others that only look. If an
--       edition does not count an entry that the other one may count, its main track has `look` with the reason as a:
--       `unknown`, or a code, with the number of items to count under it as b; or '' if none is counted. With
--       `other_period` nothing is counted: the other edition, a period, decides the outcome
-- reply ok, now, reading, retiring, then three values for each entry that was not simply counted by the current
--       edition, or whose score is wanted: its position from 0; `counted`, `duplicate`, `refused` (out of range),
--       `frozen`, `too_many_keys`, `behind` (not tried: an earlier sum of its subject was refused, and the items of
--       that sum must be tried before it; or the entries before it used up the script's time), `importing` (a sample or
--       `forget`, while an import is open) or `damaged`; the subject's score after all entries if wanted and there is
--       one, else ''. All numbers are those of the first track. A sum of several items that one of the editions refuses
--       is `refused` in both
-- errors  superseded: a later operation of this caller has been done, so this one never will be
--       missing, now, reading, retiring, starts: for each track a list of slots that the call must name too; nothing
--       was done except advancing
--       singly: an entry of several items of a step of a source would be refused; nothing was done except advancing
--       waits, positions: a step of a source has these entries, samples or `forget`, while an import is open; nothing
--       was done except advancing
--       too_large: a step of a source would take longer than a script may; nothing was done except advancing
-- cost  O(log n) per entry, track and command: 5-15 us per entry, and 25-40 us for the call with its socket
-- why a script: cell, total and score change together or not at all, in all tracks, the effect of each item depends on
--       the items before it, and the reply is recorded in the same atomic step, which makes it safe to send the
--       operation again after a lost reply
--
--- @each_track entries, form, steps
--- @include begin
--- @arguments board.lua, operation.lua, sizes, entries.lua, most_keys, bucket, horizon, first_bucket_key, buckets
--- @arguments edition, begin.lua

-- The number of cells, in addition to those of the entries, after which the remaining entries are left to the next
-- script.
local MOST_LOOKED_AT = 3000

if source and main.size == 0 then
  set_reached()
  return main.ok()
end

-- There is no rollback. So everything that may fail, such as a key of a wrong type, is read before the first write.
for _, track in ipairs(tracks) do
  call('ZCARD', track.ranking)
  if track.most_keys then
    track.count_keys()
  end
  for i = 1, track.size do
    track.entries[i] = track.entry_at(i)
  end
  for i = 1, track.add_time and track.size or 0 do
    track.add_time(track.entries[i])
  end
  track.fetch(track.entries)
end
local reply, entries = main.ok(), main.entries
local now = reply[2]
local fields, some = {}, {}
for i, entry in ipairs(entries) do
  if entry.id ~= '' then
    fields[i] = main.subject_of(entry.who) .. '\0' .. entry.id
    some[#some + 1] = fields[i]
  end
end

-- The main track's keys and arguments come first, so those of the ids have the same positions with several tracks.
local MAIN_BUCKETS, FIRST_BUCKET = KEYS[4], tonumber(ARGV.first_bucket_key)
-- By subject and id: true if the id arrived within the horizon.
local is_duplicate, arrivals = {}, {}
if #some > 0 then
  call('ZCARD', MAIN_BUCKETS)
  for back = 0, tonumber(ARGV.buckets) - 1 do
    local arrived = call('HMGET', KEYS[FIRST_BUCKET + back], unpack(some))
    for i = 1, #some do
      local at = tonumber(arrived[i] or nil)
      if at and now - at < tonumber(ARGV.horizon) then
        is_duplicate[some[i]] = true
      end
    end
  end
end

-- Returns whether an entry is a sample.
local function is_sample(number)
  for _, own in ipairs(editions) do
    local entry = own[1].entries[number]
    if entry and (entry.verb == 'set' or entry.verb == 'follow') then
      return true
    end
  end
  return false
end

-- Returns whether an entry is a removal of a value.
local function is_forgetting(number)
  for _, own in ipairs(editions) do
    local entry = own[1].entries[number]
    if entry and entry.verb == 'forget' then
      return true
    end
  end
  return false
end

-- What the board has noted: whether an import is open, and whether there was a sample before. Read only if there is a
-- sample now, or a value to forget. has_sampled: whether one counts now.
local importing, had_samples, has_sampled = false, true, false
for i = 1, #entries do
  if is_sample(i) or is_forgetting(i) then
    local noted = call('HMGET', KEYS[1], 'import', 'samples')
    importing, had_samples = noted[1], noted[2] == '1'
    break
  end
end

if source and importing then
  local waiting = {}
  for i = 1, #entries do
    if (is_sample(i) or is_forgetting(i)) and not is_duplicate[fields[i] or ''] then
      waiting[#waiting + 1] = i - 1
    end
  end
  if #waiting > 0 then
    return {'waits', waiting}
  end
end

-- By entry: the tracks that it changes, and the same for each edition. None if it only looks.
local changes, changes_of = {}, {}
for i = 1, #entries do
  changes[i], changes_of[i] = {}, {}
  for number, own in ipairs(editions) do
    local changed = {}
    for _, track in ipairs(own) do
      if track.entries[i] and track.entries[i].verb ~= 'look' then
        changes[i][#changes[i] + 1], changed[#changed + 1] = track, track
      end
    end
    changes_of[i][number] = changed
  end
end

-- Returns the reply with the slots that the call must name, or nil if it names all of them.
local function give_up()
  local starts, is_complete = {}, true
  for number, track in ipairs(tracks) do
    starts[number] = track.missing
    is_complete = is_complete and #track.missing == 0
  end
  if is_complete then
    return nil
  end
  local gave_up = main.ok()
  gave_up[1], gave_up[5] = 'missing', starts
  return main.record_unchanged(gave_up)
end

local faults = {}
for i = 1, #entries do
  for _, track in ipairs(changes[i]) do
    faults[i] = track.prepare(track.entries[i]) or faults[i]
  end
  if source and faults[i] then
    return {'damaged', 'what the subject ' .. main.subject_of(entries[i].who) .. ' has'}
  end
end

-- There is no rollback. So if an edition writes while entries are applied, what samples of the other one may turn out to
-- need is asked for before.
local writes_at_once = false
for _, own in ipairs(editions) do
  writes_at_once = writes_at_once or own[1].writes_at_once
end
local function name_slots_of_samples()
  local sampled = {}
  for i = 1, writes_at_once and #entries or 0 do
    for _, track in ipairs(is_sample(i) and changes[i] or {}) do
      sampled[track] = true
    end
  end
  for _, track in ipairs(tracks) do
    if sampled[track] then
      track.name_slots()
    end
  end
end

if #editions > 1 then
  name_slots_of_samples()
end
local gave_up = give_up()
if gave_up then
  return gave_up
end

-- Prepares a sample of a slot that is kept beside a total: after it, the entry of the main track is what the total
-- becomes, or it has the verb `same` if the total does not change. Returns nil, or the outcome of the entry.
local function prepare_total(own, number)
  local total_of, slots_of = own[1], own[2]
  local sample = slots_of.entries[number]
  local entry = total_of.entries[number]
  local outcome = slots_of.check(sample) or total_of.check(entry)
  local function next_cell()
    return slots_of.cell_from(entry.b, sample.who)
  end
  if not outcome then
    local total, before = total_of.cell_of(entry), slots_of.cell_of(sample)
    entry.verb = total_of.total_entry(total, before, entry, next_cell) and 'set' or 'same'
  end
  return outcome
end

-- Returns nil if an edition can count an entry in all its tracks that the entry changes, or the outcome of the entry.
local function check_in(own, changed, number)
  local early = own[1].entries[number].verb == 'follow' and prepare_total(own, number)
  if early then
    return early
  end
  for _, track in ipairs(changed) do
    local outcome = track.check(track.entries[number])
    if outcome then
      return outcome
    end
  end
end

local function apply_in(changed, number)
  for _, track in ipairs(changed) do
    local entry, counted = track.entries[number], track.counted
    if entry.verb ~= 'same' then
      track.apply(entry)
      if track.most_keys and track.score_text(entry.who) ~= '' then
        track.note_ranked(track.subject_of(entry.who))
      end
    end
    if track.has_slots then
      counted[entry.slot] = (counted[entry.slot] or 0) + 1 + math.floor(entry.code / 2)
    end
  end
end

-- By field of meta: the number of items that only the other edition counted. is_blind: whether an item counted of which
-- the effect on one of the editions is not known.
local not_counted, is_blind = {}, false

-- Notes that this edition did not count an entry, which the other one did.
local function note_missed(own, number, was_refused)
  local entry = own[1].entries[number]
  local reason, items = entry.a, tonumber(entry.b)
  if was_refused then
    reason, items = 'out_of_range', 1
  end
  if reason == 'unknown' then
    is_blind = true
  elseif reason ~= '' and reason ~= 'other_period' then
    local field = 'n:' .. own[1].edition .. ':' .. reason
    not_counted[field] = (not_counted[field] or 0) + items
  end
end

-- Applies an entry in each edition that counts it: there in all tracks that it changes, or in none. Returns its outcome
-- in the current edition, nil if it is simply counted or is not for it, and whether any edition has counted it.
local function apply_to(number)
  local was_refused, counting = {}, 0
  for i, changed in ipairs(changes_of[number]) do
    local outcome = #changed > 0 and check_in(editions[i], changed, number)
    -- Damage, and a sum of which each item has to be tried by itself, concern both editions.
    if outcome and (outcome ~= 'refused' or entries[number].code >= 2) then
      return outcome, false
    end
    was_refused[i] = outcome or nil
    counting = counting + (#changed > 0 and not outcome and 1 or 0)
  end
  for i, changed in ipairs(changes_of[number]) do
    if #changed > 0 and not was_refused[i] then
      apply_in(changed, number)
    elseif counting > 0 then
      note_missed(editions[i], number, was_refused[i])
    end
  end
  local own = entries[number]
  local decides = own.verb == 'look' and own.a == 'other_period' and 2 or 1
  return was_refused[decides], counting > 0
end

if writes_at_once then
  begin_step()
end
local outcomes, refused = {}, {}
for i, entry in ipairs(entries) do
  local field, is_look, looked_at, sampling = fields[i], #changes[i] == 0, 0, is_sample(i)
  for _, track in ipairs(changes[i]) do
    looked_at = looked_at + track.work.looked_at
  end
  if source and looked_at > MOST_LOOKED_AT and i > 1 and not writes_at_once then
    return {'too_large'}
  elseif refused[entry.who] or looked_at > MOST_LOOKED_AT and not source then
    outcomes[i] = 'behind'
  elseif field and is_duplicate[field] then
    outcomes[i] = 'duplicate'
  elseif importing and (sampling or is_forgetting(i)) then
    outcomes[i] = 'importing'
  elseif not is_look and main.is_frozen(main.subject_of(entry.who)) and not is_forgetting(i) then
    outcomes[i] = 'frozen'
  elseif has_too_many_keys(changes[i], main.subject_of(entry.who)) and not is_forgetting(i) then
    outcomes[i] = 'too_many_keys'
  elseif not is_look then
    local is_counted = false
    outcomes[i] = faults[i]
    if not faults[i] then
      outcomes[i], is_counted = apply_to(i)
    end
    if source and outcomes[i] == 'damaged' then
      return {'damaged', 'what the subject ' .. main.subject_of(entry.who) .. ' has'}
    end
    has_sampled = has_sampled or sampling and is_counted
    if outcomes[i] == 'refused' and entry.code >= 2 then
      -- Nothing is written yet: where an edition writes at once, each item of a step is an entry.
      if source then
        return {'singly'}
      end
      refused[entry.who] = true
    elseif field and is_counted then
      is_duplicate[field] = true
      arrivals[#arrivals + 1] = field
      arrivals[#arrivals + 1] = string.format('%.0f', now)
    end
  end
end
gave_up = give_up()
if gave_up then
  return gave_up
end
if not writes_at_once then
  begin_step()
end

-- If memory is full, the server refuses only the first write, so then nothing was done.
if has_sampled and not had_samples then
  call('HSET', KEYS[1], 'samples', '1')
end
for _, track in ipairs(tracks) do
  track.save()
  track.finish()
  for slot, items in pairs(track.counted) do
    track.count_events(track.start_of(slot), items)
  end
end
for field, items in pairs(not_counted) do
  redis.pcall('HINCRBY', KEYS[1], field, items)
end
if is_blind then
  call('HSET', KEYS[1], 'n:since', string.format('%.0f', now))
end
if #arrivals > 0 then
  call('ZADD', MAIN_BUCKETS, ARGV.bucket, ARGV.bucket)
  main.each_thousand('HSET', KEYS[FIRST_BUCKET], arrivals)
end

local scores = {}
for i, entry in ipairs(entries) do
  local wanted = entry.code % 2 == 1
  if wanted or outcomes[i] then
    if wanted and not scores[entry.who] then
      scores[entry.who] = main.score_text(entry.who)
    end
    local size = #reply
    reply[size + 1], reply[size + 2] = i - 1, outcomes[i] or 'counted'
    reply[size + 3] = wanted and scores[entry.who] or ''
  end
end
for number = 2, #tracks do
  tracks[number].touch(ARGV.write_lane .. ':' .. ARGV.sequence)
end
end_step()
return main.record(reply)
