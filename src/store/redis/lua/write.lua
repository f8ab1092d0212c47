-- Adds amounts to the slots and rankings of a board, in all its tracks, exactly once, even if the reply is lost.
--
-- KEYS  for each track, the main one first, and those of the current edition before those of another: 1-5 the board
--       (board.lua), then one slot for each start in ARGV, then, in the main track only and if there are ids, the
--       current dedupe bucket and those before it that may have ids of the horizon, newest first
-- ARGV  for each track: the board's (board.lua), those of the operation (operation.lua), `sizes` (tracks.lua), `bound`
--       of a (slot, subject), `most_keys`: the largest number of keys, or '' if the track limits none, number of
--       `slots`, number of `entries`, `coded`: not '' if the entries have codes, which are required if a subject may
--       occur twice or if the number of slots is not one, `bucket`: number of the current dedupe bucket if there are
--       ids, else '', number of `buckets`, dedupe `horizon` in ms, `items`: number of items that each entry stands for,
--       separated by commas, or '' if each is one item, `margins`: how far from the bound each sum must stay, or '' if
--       none must, `edition`: id of the track's edition if there are two, else ''; then the start of each slot; then,
--       each for all entries in their order: in the main track subjects and amounts; codes, if any: 4 x position of its
--       slot from 0, or -4 if the entry does not change this track, or in the main track of an edition 4 x the position
--       of the reason in `REASONS` if there is one; in the main track plus 2 if later entries of the subject must wait
--       for the items of a refused sum, plus 1 if its score is wanted; in the main track ids, if there are any, with an
--       empty text for an entry that has none
-- reply ok, now, reading, retiring, then three values for each entry that was not simply counted or whose score is
--       wanted: its position from 0; `counted`, `duplicate`, `frozen`, `refused` (out of range), `too_many_keys`,
--       `behind` (not tried: an earlier sum of its subject was refused, and the items of that sum must be tried before
--       it) or `damaged`; the subject's score after all entries if wanted, else ''. All numbers are those of the main track. Or `unusual`: one of two
--       editions would refuse an entry. Nothing was done except advancing, and change.lua must be called with the same
--       sequence number. Or `singly`: an entry of several items of a step of a source would be refused; nothing was done
--       except advancing
-- errors  superseded: a later operation of this caller has been done, so this one never will be
-- cost  O(log subjects) per entry and track: 1.5-3 us, and 25-40 us for the call with its socket, and 8-12 us for each
--       further track. All data is read at once and written at once, because each command costs as much as its work for
--       an entry
-- why a script: slot and ranking change together or not at all, in all tracks, the bound is checked on the sum, and the
--       reply is recorded in the same atomic step, which makes it safe to send the operation again after a lost reply
--
--- @each_track operation
--- @include begin
--- @arguments board.lua, operation.lua, sizes, bound, most_keys, slots, entries, coded, bucket, buckets, horizon
--- @arguments items, edition, margins, begin.lua

local ENTRIES, SLOTS, HAS_IDS = tonumber(ARGV.entries), tonumber(ARGV.slots), ARGV.bucket ~= ''
local FIRST_SLOT, FIRST_START = 6, FIXED_ARGUMENTS + 1
local FIRST_SUBJECT = FIRST_START + SLOTS
local LAST_SUBJECT = FIRST_SUBJECT + ENTRIES - 1
-- The codes, if any, are between the amounts and the ids.
local CODES = LAST_SUBJECT + ENTRIES
local FIRST_ID = CODES + (ARGV.coded ~= '' and ENTRIES or 0) + 1
-- Why an edition does not take an entry that the other one may count.
local REASONS = {[-2] = 'filtered', [-3] = 'not_accepted'}
local BUCKETS, FIRST_BUCKET = KEYS[4], FIRST_SLOT + SLOTS
-- Formatting in Lua is much cheaper than letting the server print a number, and as exact, because sums are below 2^53.
local tonumber, floor, text_of = tonumber, math.floor, string.format

local reply = main.ok()
if ENTRIES == 0 then
  set_reached()
  return reply
end

local now = reply[2]
local subjects = {unpack(ARGV, FIRST_SUBJECT, LAST_SUBJECT)}
-- By entry: its subject and id, if it has one. By subject and id: true if the id arrived within the horizon.
local fields, is_duplicate, bucket_is_new, arrivals = {}, {}, false, {}

-- Reads what a track has of the subjects. Sets `slots` by position from 0, `scores` by subject, `codes`: the place of
-- the codes before the first, or nil, `bound`, and what judge_entries() adds to: among it `missed`, by position
-- below 0 the number of items that are not of this track. Amounts and scores are first as read, then as they will be
-- written: texts as read, numbers once changed, false if absent.
local function read(track)
  local keys, argv = track.keys, track.argv
  local count = tonumber(argv.slots)
  track.bound, track.index = tonumber(argv.bound), keys[2]
  track.most_keys = tonumber(argv.most_keys)
  if track.most_keys then
    track.count_keys()
  end
  track.codes = argv.coded ~= '' and (track == main and CODES or FIXED_ARGUMENTS + count) or nil
  local by_slot = {[0] = subjects}
  if track.codes and (count ~= 1 or #tracks > 1) then
    for slot = 0, count - 1 do
      by_slot[slot] = {}
    end
    for i = 1, ENTRIES do
      local own = by_slot[floor(argv[track.codes + i] / 4)]
      if own then
        own[#own + 1] = subjects[i]
      end
    end
  end
  track.slots = {}
  for slot = 0, count - 1 do
    local key, own = keys[FIRST_SLOT + slot], by_slot[slot]
    local held = call('HMGET', key, unpack(own))
    local amounts, found = {}, false
    for i = 1, #own do
      amounts[own[i]] = held[i]
      found = found or held[i]
    end
    -- is_new: whether none of the subjects was found. counted: the number of items. pairs: those to write, in order, so
    -- that of several pairs for one subject the last one wins. zero: the subjects whose amount may become 0.
    track.slots[slot] = {
      key = key, start = argv[FIRST_START + slot], amounts = amounts, is_new = not found, counted = 0, pairs = {},
      zero = {},
    }
  end
  local held = track.scores_of(subjects)
  local scores = {}
  for i = 1, ENTRIES do
    scores[subjects[i]] = held[i]
  end
  track.scores, track.pairs, track.zero, track.missed = scores, {}, {}, {}
end

-- Reads which of the ids arrived within the horizon.
local function read_ids()
  call('ZCARD', BUCKETS)
  local some, horizon = {}, tonumber(ARGV.horizon)
  for i = 1, ENTRIES do
    local id = ARGV[FIRST_ID - 1 + i]
    if id ~= '' then
      fields[i] = subjects[i] .. '\0' .. id
      some[#some + 1] = fields[i]
    end
  end
  for bucket = FIRST_BUCKET, FIRST_BUCKET + ARGV.buckets - 1 do
    local arrived = call('HMGET', KEYS[bucket], unpack(some))
    local found = false
    for i = 1, #some do
      local at = tonumber(arrived[i] or nil)
      found = found or at
      if at and now - at < horizon then
        is_duplicate[some[i]] = true
      end
    end
    bucket_is_new = bucket_is_new or bucket == FIRST_BUCKET and not found
  end
end

-- Returns the tracks that an entry changes.
local function changed_by(number)
  local changed = {}
  for _, track in ipairs(tracks) do
    local place = track.codes and floor(track.argv[track.codes + number] / 4) or 0
    if track.slots[place] then
      changed[#changed + 1] = track
    end
  end
  return changed
end

-- Judges each entry, adds its amount in memory in all its tracks if it counts, and adds to the reply what was not
-- simply counted and the scores that are wanted. Returns `all`, or the reply if nothing may be written: one of two editions
-- refuses an entry, or a step of a source has an entry that is damaged, or one of several items that is refused.
local function judge_entries()
  -- asked: by position in the reply, the subject whose score is wanted. refused: by subject, whether a sum was refused
  -- whose items must be tried before later entries. slots, sums, places: by track, the slot of the entry, or false, its
  -- sum, and the position of the slot or of a reason.
  local asked, refused, slots, sums, places = {}, {}, {}, {}, {}
  local arrival, count = text_of('%.0f', now), #tracks
  local codes = main.codes
  local next_items = ARGV.items ~= '' and string.gmatch(ARGV.items, '%d+')
  -- An entry that one of two editions refuses counts in the other one, which is left to change.lua.
  local has_two = #editions > 1
  local next_margin = ARGV.margins ~= '' and string.gmatch(ARGV.margins, '%d+')
  for i = 1, ENTRIES do
    local code = codes and tonumber(ARGV[codes + i]) or 0
    local subject, field, items = subjects[i], fields[i], next_items and next_items() or 1
    local margin = next_margin and next_margin() or 0
    local outcome = nil
    if refused[subject] then
      outcome = 'behind'
    elseif field and is_duplicate[field] then
      outcome = 'duplicate'
    elseif main.is_frozen(subject) then
      outcome = 'frozen'
    elseif main.most_keys and has_too_many_keys(changed_by(i), subject) then
      outcome = 'too_many_keys'
    else
      local amount = tonumber(ARGV[LAST_SUBJECT + i])
      for t = 1, count do
        local track = tracks[t]
        local place = track.codes and floor(track.argv[track.codes + i] / 4) or 0
        local slot = track.slots[place]
        slots[t], places[t] = slot or false, place
        if slot then
          local before, bound = tonumber(slot.amounts[subject] or 0), track.bound - margin
          local sum = before and before + amount
          -- A number that is not whole was not written by this store.
          if not before or before % 1 ~= 0 then
            if source then
              return {'damaged', 'the amount of ' .. subject}
            end
            outcome = 'damaged'
            break
          elseif sum > bound or sum < -bound then
            if has_two then
              return {'unusual'}
            end
            if source and tonumber(items) > 1 then
              return {'singly'}
            end
            outcome = 'refused'
            refused[subject] = code % 4 >= 2 or nil
            break
          end
          sums[t] = sum
        end
      end
      for t = 1, outcome and 0 or count do
        local track, slot, sum = tracks[t], slots[t], sums[t]
        if slot then
          local score = (track.scores[subject] or 0) + amount
          slot.amounts[subject], track.scores[subject] = sum, score
          track.has_negative = track.has_negative or sum < 0
          slot.counted = slot.counted + items
          local pairs_of, lines = slot.pairs, track.pairs
          if sum == 0 then
            slot.zero[#slot.zero + 1] = subject
          else
            local size = #pairs_of
            pairs_of[size + 1], pairs_of[size + 2] = subject, text_of('%d', sum)
          end
          if score == 0 then
            track.zero[#track.zero + 1] = subject
          else
            if track.most_keys then
              track.note_ranked(subject)
            end
            local size = #lines
            lines[size + 1], lines[size + 2] = text_of('%d', score), subject
          end
        else
          track.missed[places[t]] = (track.missed[places[t]] or 0) + items
        end
      end
      if field and not outcome then
        is_duplicate[field] = true
        local size = #arrivals
        arrivals[size + 1], arrivals[size + 2] = field, arrival
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
    reply[at] = text_of('%.0f', main.scores[subject] or 0)
  end
  return 'all'
end

-- Returns those of `some` whose final value is 0.
local function still_zero(some, values)
  local zero = {}
  for i = 1, #some do
    if values[some[i]] == 0 then
      zero[#zero + 1] = some[i]
    end
  end
  return zero
end

-- Writes the slots and scores of a track. A server that is restarted may have kept only the first of these writes. So
-- the index is written first: an entry without a slot does no harm, but a slot that the index does not name would never
-- retire.
local function save(track)
  if track.has_negative then
    track.note_negative()
  end
  for _, slot in pairs(track.slots) do
    if #slot.pairs > 0 then
      if slot.is_new then
        call('ZADD', track.index, slot.start, slot.start)
      end
      call('HSET', slot.key, unpack(slot.pairs))
    end
    local zero = still_zero(slot.zero, slot.amounts)
    if #zero > 0 then
      call('HDEL', slot.key, unpack(zero))
      if call('HLEN', slot.key) == 0 then
        call('ZREM', track.index, slot.start)
      end
    end
  end
  if #track.pairs > 0 then
    track.rank(track.pairs)
  end
  local zero = still_zero(track.zero, track.scores)
  if #zero > 0 then
    track.unrank(zero)
  end
  for _, slot in pairs(track.slots) do
    if slot.counted > 0 then
      track.count_events(slot.start, slot.counted)
    end
  end
end

-- There is no rollback. So everything that may fail, such as a key of a wrong type, is read before the first write. If
-- memory is full, the server refuses only the first write, so then nothing was done.
for t = 1, #tracks do
  read(tracks[t])
end
if HAS_IDS then
  read_ids()
end
local verdict = judge_entries()
if verdict ~= 'all' then
  return verdict
end
begin_step()
for t = 1, #tracks do
  save(tracks[t])
end
if #arrivals > 0 then
  if bucket_is_new then
    call('ZADD', BUCKETS, ARGV.bucket, ARGV.bucket)
  end
  call('HSET', KEYS[FIRST_BUCKET], unpack(arrivals))
end
for t = 1, #tracks do
  for place, items in pairs(tracks[t].missed) do
    if REASONS[place] then
      -- This comes after other writes, so it must not fail.
      redis.pcall('HINCRBY', KEYS[1], 'n:' .. tracks[t].argv.edition .. ':' .. REASONS[place], items)
    end
  end
end
for t = 2, #tracks do
  tracks[t].touch(ARGV.write_lane .. ':' .. ARGV.sequence)
end
end_step()
-- `retiring` counts sealed slots, to which no write is made, so the header is still correct.
return main.record(reply)
