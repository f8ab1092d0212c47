-- One bounded step of an audit: compares scores with the sums of their slots, and sets them right if asked to.
--
-- KEYS  1-4 the board (board.lua), then every slot that exists
-- ARGV  1-8 the board, 9 where to go on: `ranking` or the position from 0 of the slot whose subjects are compared,
--       (there may be none left), 10 cursor within it, 11 how many subjects, 12 `repair` or '', then the start of each of those slots
-- reply ok, now, reading, retiring, cursor to go on from, subjects compared, subjects repaired, then for each
--       difference: subject, score, sum of its slots
-- errors  stale_keys: other slots exist
-- cost  1 us per subject and slot
-- why a script: score and slots are compared, and repaired, at one instant, while writes and retiring go on

local FIRST = 12
local SLOTS = #ARGV - FIRST
local call = redis.call

local early = enter()
if early then
  return early
end
if not names_all_slots(FIRST + 1, SLOTS) then
  return stale_keys()
end

local repairing = ARGV[12] == 'repair'
local checked, repaired, differences = 0, 0, {}

-- Answers the sum of each subject's live and unsubtracted retiring slots, and the oldest slot that has it.
local function sums_of(subjects)
  local sums, oldest = {}, {}
  for i = 1, #subjects do
    sums[i] = 0
  end
  for slot = 1, SLOTS do
    if tonumber(ARGV[FIRST + slot]) >= dropped then
      for first = 1, #subjects, 1000 do
        local last = math.min(first + 999, #subjects)
        local amounts = call('HMGET', KEYS[4 + slot], unpack(subjects, first, last))
        for i = 1, #amounts do
          local at = first + i - 1
          if amounts[i] then
            sums[at] = sums[at] + (tonumber(amounts[i]) or 0)
            oldest[at] = oldest[at] or slot
          end
        end
      end
    end
  end
  return sums, oldest
end

local function compare(subject, score, sum)
  checked = checked + 1
  if score == sum then
    return
  end
  differences[#differences + 1] = {subject, score, sum}
end

local cursor
if ARGV[9] == 'ranking' then
  local scanned = call('ZSCAN', RANKING, ARGV[10], 'COUNT', ARGV[11])
  cursor = scanned[1]
  local subjects, scores, seen = {}, {}, {}
  for i = 1, #scanned[2], 2 do
    local subject = scanned[2][i]
    if not seen[subject] then
      seen[subject] = true
      subjects[#subjects + 1] = subject
      scores[#scores + 1] = tonumber(scanned[2][i + 1])
    end
  end
  local sums = sums_of(subjects)
  for i = 1, #subjects do
    compare(subjects[i], scores[i], sums[i])
  end
elseif tonumber(ARGV[9]) >= SLOTS then
  cursor = '0'
else
  -- Subjects that a slot has and the ranking has not. Each is compared where its oldest slot is read.
  local slot = tonumber(ARGV[9]) + 1
  local scanned = call('HSCAN', KEYS[4 + slot], ARGV[10], 'COUNT', ARGV[11])
  cursor = scanned[1]
  local subjects, seen = {}, {}
  for i = 1, #scanned[2], 2 do
    local subject = scanned[2][i]
    if not seen[subject] then
      seen[subject] = true
      if not call('ZSCORE', RANKING, subject) then
        subjects[#subjects + 1] = subject
      end
    end
  end
  local sums, oldest = sums_of(subjects)
  for i = 1, #subjects do
    if oldest[i] == slot then
      compare(subjects[i], 0, sums[i])
    end
  end
end

if repairing then
  for _, difference in ipairs(differences) do
    if difference[3] == 0 then
      call('ZREM', RANKING, difference[1])
    else
      call('ZADD', RANKING, format(difference[3]), difference[1])
    end
    repaired = repaired + 1
  end
end

local reply = ok()
reply[5], reply[6], reply[7] = cursor, checked, repaired
for _, difference in ipairs(differences) do
  reply[#reply + 1] = difference[1]
  reply[#reply + 1] = format(difference[2])
  reply[#reply + 1] = format(difference[3])
end
return reply
