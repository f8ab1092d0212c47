-- One bounded step of an audit: compares scores and totals with what the cells of their slots come to, and sets them
-- right if asked to.
--
-- KEYS  1-5 the board (board.lua), then every slot that exists
-- ARGV  1-8 the board, 9 where to go on: `ranking`, `totals`, or the position from 0 of the slot whose subjects are
--       compared (there may be none left), 10 cursor within it, 11 how many subjects, 12 `repair` or '', then the start
--       of each of those slots; last, the kind's own (kind/)
-- reply ok, now, reading, retiring, cursor to go on from, subjects compared, subjects repaired, then for each
--       difference: subject, score or '', what its slots come to or ''
-- errors  stale_keys: other slots exist
-- cost  1 us per subject and slot; APPROX_COUNT_DISTINCT up to 100 us
-- why a script: score and slots are compared, and repaired, at one instant, while writes and retiring go on

local FIRST = 12
local SLOTS = #ARGV - FIRST - 1
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

-- Answers what each subject's live and unsubtracted retiring slots come to, and the oldest slot that has it.
local function fold_slots(subjects)
  local accs, oldest = {}, {}
  for i = 1, #subjects do
    accs[i] = new()
  end
  for slot = 1, SLOTS do
    local start = tonumber(ARGV[FIRST + slot])
    if start >= dropped then
      for first = 1, #subjects, 1000 do
        local last = math.min(first + 999, #subjects)
        local cells = call('HMGET', KEYS[5 + slot], unpack(subjects, first, last))
        for i = 1, #cells do
          local at = first + i - 1
          if cells[i] then
            if sound(cells[i]) then
              fold(accs[at], start, cells[i])
            end
            oldest[at] = oldest[at] or slot
          end
        end
      end
    end
  end
  return accs, oldest
end

local function compare(subject, acc)
  checked = checked + 1
  local score, right = call('ZSCORE', RANKING, subject) or nil, score_of(acc)
  local is_right = tonumber(score) == tonumber(right)
  local total = nil
  if HAS_TOTALS then
    total = total_of(acc)
    is_right = is_right and (call('HGET', TOTALS, subject) or nil) == total
  end
  if not is_right then
    differences[#differences + 1] = {subject = subject, score = score, right = right, total = total}
  end
end

-- Answers subjects of what a scan found, each once, and the cursor to go on from. Every second word is a subject.
local function subjects_of(scanned, wanted)
  local subjects, seen = {}, {}
  for i = 1, #scanned[2], 2 do
    local subject = scanned[2][i]
    if not seen[subject] and wanted(subject) then
      seen[subject] = true
      subjects[#subjects + 1] = subject
    end
  end
  return subjects, scanned[1]
end

local function is_unranked(subject)
  return not call('ZSCORE', RANKING, subject)
end

local cursor = '0'
if ARGV[9] == 'ranking' then
  local subjects
  subjects, cursor = subjects_of(call('ZSCAN', RANKING, ARGV[10], 'COUNT', ARGV[11]), function() return true end)
  local accs = fold_slots(subjects)
  for i = 1, #subjects do
    compare(subjects[i], accs[i])
  end
elseif ARGV[9] == 'totals' then
  -- Subjects that nothing else knows.
  local subjects
  subjects, cursor = subjects_of(call('HSCAN', TOTALS, ARGV[10], 'COUNT', ARGV[11]), is_unranked)
  local accs, oldest = fold_slots(subjects)
  for i = 1, #subjects do
    if not oldest[i] then
      compare(subjects[i], accs[i])
    end
  end
elseif tonumber(ARGV[9]) < SLOTS then
  -- Subjects that a slot has and the ranking has not. Each is compared where its oldest slot is read.
  local slot = tonumber(ARGV[9]) + 1
  local subjects
  subjects, cursor = subjects_of(call('HSCAN', KEYS[5 + slot], ARGV[10], 'COUNT', ARGV[11]), is_unranked)
  local accs, oldest = fold_slots(subjects)
  for i = 1, #subjects do
    if oldest[i] == slot then
      compare(subjects[i], accs[i])
    end
  end
end

if repairing then
  for _, difference in ipairs(differences) do
    if difference.total then
      call('HSET', TOTALS, difference.subject, difference.total)
    elseif HAS_TOTALS then
      call('HDEL', TOTALS, difference.subject)
    end
    if difference.right then
      call('ZADD', RANKING, difference.right, difference.subject)
    else
      call('ZREM', RANKING, difference.subject)
    end
    repaired = repaired + 1
  end
end

local reply = ok()
reply[5], reply[6], reply[7] = cursor, checked, repaired
for _, difference in ipairs(differences) do
  reply[#reply + 1] = difference.subject
  reply[#reply + 1] = difference.score or ''
  reply[#reply + 1] = difference.right or ''
end
return reply
