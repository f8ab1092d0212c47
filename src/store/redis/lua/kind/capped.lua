-- COUNT with a cap for each person. Not a script of its own.
--
-- KEYS  two for each subject, as of kind/distinct.lua: its counters, each at a time that tells its count; the companion, of
--       which only `c` is used, the latest time of a counter dropped because of the limit
-- ARGV  last: `cap:`, the most that a person adds in a day, a comma, the largest number of counters to keep, or '', and over
--       all time `,all`
-- verbs  `seen` a, b: an item of the person a in the day that begins at b; `gone` a, b: one that is taken back; `merge` a:
--        a counter of another board, which is added; `put` a: a counter of another edition, which replaces; `forget` a:
--        nothing of the counter stays; `dropped`: a counter of the time of the entry was dropped elsewhere
--
-- A counter is a text, the start of the day, a space and the person, with the time `start + ZERO + count`. It adds its
-- count, but not more than the cap, to the cell of the slot of its day: cells and scores are those of kind/sum.lua. A slot
-- has a cell as long as it has a counter, also if that adds 0.
--
--- @include remembered

local most_each, most = string.match(ARGV[#ARGV], '^cap:(%d+),(%d*)')
local MOST_EACH, MOST = tonumber(most_each), tonumber(most)
local IS_ETERNAL = string.sub(ARGV[#ARGV], -4) == ',all'
-- The time of a count of 0 within its day, in ms, which is also the greatest count.
local ZERO = 1000000

-- Returns the known state of a subject, with `counts`: by counter, its count, or false.
local function memory_of(who)
  local memory = memories[who]
  if not memory then
    memory = {counts = {}, slots = {}, entries = 0, located = 0}
    memory.live = MOST and call('ZCOUNT', seen_key(who), ARGV.floor, '+inf')
    memories[who] = memory
  end
  return memory
end

-- Returns the start of the day of a counter, or nil for a text that is none.
local function day_of(counter)
  return tonumber(string.match(counter, '^(%-?%d+) '))
end

local function time_of(counter, count)
  return format(day_of(counter) + ZERO + count)
end

local function count_of(who, counter)
  local counts = memory_of(who).counts
  if counts[counter] == nil then
    local time = tonumber(call('ZSCORE', seen_key(who), counter) or nil)
    counts[counter] = time and time >= FLOOR and time - day_of(counter) - ZERO or false
  end
  return counts[counter]
end

local function added_by(count)
  return count and math.min(count, MOST_EACH) or 0
end

-- Notes the count of a counter that was read with its time.
local function learn(who, counter, time)
  local counts = memories[who].counts
  if counts[counter] == nil then
    counts[counter] = tonumber(time) - day_of(counter) - ZERO
  end
end

-- Reads all data that applying the entry may need. Returns `damaged` if this data is not valid.
function prepare(entry)
  if entry.verb == 'look' then
    return
  end
  local who, memory = entry.who, memory_of(entry.who)
  if entry.verb == 'dropped' then
    return
  end
  if entry.verb == 'seen' or entry.verb == 'gone' then
    entry.a = entry.b .. ' ' .. entry.a
  end
  if not day_of(entry.a) then
    -- A value that is no counter is stored nowhere.
    return entry.verb ~= 'forget' and 'damaged' or nil
  end
  acc_of(who)
  memory.entries = memory.entries + 1
  local count, held = count_of(who, entry.a), cell(entry.slot, who)
  local is_sound = not held or sound(held)
  if entry.verb == 'forget' then
    is_sound = not count or locate(who, entry.a, time_of(entry.a, count))
  else
    is_sound = is_sound and (held or not count)
    memory.slots[entry.a] = entry.slot
  end
  locate_oldest(who, MOST, learn)
  return (memory.is_damaged or not is_sound) and 'damaged' or nil
end

-- Returns the count after the entry, and that before it, or false.
local function counts_of(entry)
  local count = count_of(entry.who, entry.a)
  local held = count or 0
  if entry.verb == 'seen' then
    return held + 1, count
  elseif entry.verb == 'gone' then
    return held - 1, count
  end
  local given = entry.at - day_of(entry.a) - ZERO
  return entry.verb == 'merge' and held + given or given, count
end

function check(entry)
  if entry.verb == 'forget' or entry.verb == 'dropped' then
    return
  end
  local more, count = counts_of(entry)
  local sum = tonumber(cell(entry.slot, entry.who) or 0) + added_by(more) - added_by(count)
  return (math.abs(more) > ZERO or math.abs(sum) > BOUND) and 'refused' or nil
end

-- Adds to the cell of a slot, which stays if it is 0.
local function add(who, slot, by)
  set_cell(slot, who, string.format('%d', tonumber(cell(slot, who) or 0) + by))
  local acc = acc_of(who)
  acc.sum = acc.sum + by
  move(who)
end

-- Returns whether a slot has a counter of the subject. The one of the earliest time from its start on is in it, unless a
-- later slot begins before that time.
local function has_counters(who, slot)
  local start = start_of(slot)
  local next_one = call('ZRANGEBYSCORE', seen_key(who), start, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not next_one[1] then
    return false
  end
  local time = tonumber(next_one[2])
  if slot < SLOTS and tonumber(start_of(slot + 1)) <= time then
    return false
  end
  local later = call('ZRANGEBYSCORE', INDEX, '(' .. start, '+inf', 'LIMIT', 0, 1)[1]
  return not later or tonumber(later) > time
end

-- Subtracts what a counter that was removed had added.
local function leave(who, counter)
  local memory = memories[who]
  local slot = memory.slots[counter]
  add(who, slot, -added_by(memory.counts[counter]))
  memory.counts[counter], memory.slots[counter] = false, nil
  memory.live = MOST and memory.live - 1
  if cell(slot, who) == '0' and not has_counters(who, slot) then
    set_cell(slot, who, '')
  end
end

-- Returns whether a counter with which another track is filled is still stored here, and gives the entry the count that
-- it has now: items may have come since it was read, which the other track has counted too.
function holds(entry)
  if entry.verb == 'dropped' then
    return true
  end
  local time = call('ZSCORE', seen_key(entry.who), entry.a)
  entry.at = tonumber(time or nil)
  return time
end

writes_at_once = true

function apply(entry)
  local who, counter = entry.who, entry.a
  note_touched(who)
  if entry.verb == 'forget' then
    -- What has expired goes too.
    call('ZREM', seen_key(who), counter)
    if count_of(who, counter) then
      leave(who, counter)
    end
  elseif entry.verb == 'dropped' then
    call('ZADD', gone_key(who), 'GT', format(entry.at), 'c')
  else
    local memory, more, count = memories[who], counts_of(entry)
    if more ~= count then
      call('ZADD', seen_key(who), time_of(counter, more), counter)
      memory.counts[counter], memory.slots[counter] = more, entry.slot
      add(who, entry.slot, added_by(more) - added_by(count))
      if not count then
        memory.live = MOST and memory.live + 1
        drop_oldest(who, MOST, leave)
      end
    end
  end
end

function finish()
  for who in pairs(touched) do
    -- Over all time nothing expires.
    if not IS_ETERNAL then
      for _, key in ipairs({seen_key(who), gone_key(who)}) do
        local old = call('ZRANGEBYSCORE', key, '-inf', '(' .. ARGV.floor, 'LIMIT', 0, SWEPT)
        if #old > 0 then
          call('ZREM', key, unpack(old))
        end
      end
    end
  end
end
