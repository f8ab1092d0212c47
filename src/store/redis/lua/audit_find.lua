-- Subjects for an audit to compare, a bounded part of them.
--
-- KEYS  1-5 the board (board.lua), then the slots to look through
-- ARGV  1-8 the board, 9 where to look: `totals`, `ranking` or `slots`, 10 cursor within it, or within the first of the
--       slots, 11 how many subjects to look at, 12 a new version of what the board holds, to take slots off the index
--       that do not exist, or '', 13 start of the first slot to look through, or `-inf`, 14 the most slots, then the
--       start of each of those slots: all there are from the first one on, or as many as that
-- reply ok, now, reading, retiring, cursor to go on from, slots that were looked through whole, slots that the index
--       names and that do not exist, then the subjects: all with a total; of the ranking those without one; of a slot
--       those that have neither
-- errors  stale_keys: other slots exist
-- cost  1 us per subject looked at and 4 us per slot. A key in the compact form is looked at whole: that has a few
--       hundred fields at most
-- why a script: what a slot holds is judged by ranking and totals of the same instant, and most of it never leaves the
--       server; a slot is missing only if index and key are looked at together

local FIRST = 14
local SLOTS = #ARGV - FIRST
local call = redis.call

local early = enter()
if early then
  return early
end
if not names_slots_from(ARGV[13], ARGV[14], FIRST + 1, SLOTS) then
  return stale_keys()
end

local found, cursor, whole, missing = {}, ARGV[10], 0, 0
local room = tonumber(ARGV[11])

local function take(subject)
  found[#found + 1] = subject
end

local function has_total(subject)
  return call('HEXISTS', TOTALS, subject) == 1
end

-- Looks at a part of a hash or sorted set from the cursor on. Every second word is a subject.
local function look(command, key, wanted)
  local scanned = call(command, key, cursor, 'COUNT', math.max(room, 1))
  for i = 1, #scanned[2], 2 do
    if not wanted or wanted(scanned[2][i]) then
      take(scanned[2][i])
    end
  end
  cursor = scanned[1]
  room = room - #scanned[2] / 2
end

if ARGV[9] == 'totals' then
  look('HSCAN', TOTALS)
elseif ARGV[9] == 'ranking' then
  look('ZSCAN', RANKING, function(subject)
    return not has_total(subject)
  end)
else
  local function is_unknown(subject)
    return not call('ZSCORE', RANKING, subject) and not has_total(subject)
  end
  local gone = {}
  -- What is found later in a slot may have been compared for what an earlier one holds: of a slot that is gone on with
  -- nothing but its rest is looked at, so that the caller can tell by the oldest slot.
  local last = cursor ~= '0' and 1 or SLOTS
  while whole < last and room > 0 do
    local key, start = KEYS[6 + whole], ARGV[FIRST + 1 + whole]
    room = room - 4
    if tonumber(start) < dropped then
      cursor = '0'
    elseif call('EXISTS', key) == 0 then
      missing = missing + 1
      gone[#gone + 1] = start
      cursor = '0'
    else
      look('HSCAN', key, is_unknown)
    end
    if cursor ~= '0' then
      break
    end
    whole = whole + 1
  end
  if #gone > 0 and ARGV[12] ~= '' then
    for _, start in ipairs(gone) do
      call('ZREM', INDEX, start)
    end
    recount()
    touch(ARGV[12])
  end
end

local reply = ok()
reply[5], reply[6], reply[7] = cursor, whole, missing
for _, subject in ipairs(found) do
  reply[#reply + 1] = subject
end
return reply
