-- COUNT_DISTINCT: what an entry does, by the last-seen scheme. Not a script of its own.
--
-- KEYS  of each subject two: the values by the time each was last seen; tombstones, `t` and the value by the time of
--       the retraction, and `c` by the latest time of a value dropped for want of room
-- ARGV  last: the most values to remember, or ''
-- verbs  `seen` a; `gone` a: its retraction
--
-- A time below the floor is as none. On a ranked board every remembered value counts 1 in the slot of its time.

local MOST = tonumber(ARGV[#ARGV])
-- How many forgotten times a write removes at most.
local SWEPT = 16

-- What is known of each subject: read before the first write, and kept true by each.
local memories = {}

local function seen_key(who)
  return KEYS[FIRST_SUBJECT_KEY + 2 * (who - 1)]
end

local function gone_key(who)
  return KEYS[FIRST_SUBJECT_KEY + 2 * (who - 1) + 1]
end

-- `states`: by value what it is (`seen`, `gone` or neither) and since when; `slots`: by value the position of the slot
-- that counts it; `live`: how many are seen, where there is a limit; `entries`: how many were prepared; `located`: of
-- how many of the values seen longest ago the slot is known.
local function memory_of(who)
  local memory = memories[who]
  if not memory then
    memory = {states = {}, slots = {}, entries = 0, located = 0, has_gone = call('ZCARD', gone_key(who)) > 0}
    memory.live = MOST and call('ZCOUNT', seen_key(who), ARGV[5], '+inf')
    memories[who] = memory
  end
  return memory
end

-- Answers `seen` or `gone` with the time; nil of a value that is neither.
local function state(who, value)
  local memory = memory_of(who)
  local known = memory.states[value]
  if not known then
    local seen = tonumber(call('ZSCORE', seen_key(who), value) or nil)
    local gone = memory.has_gone and tonumber(call('ZSCORE', gone_key(who), 't' .. value) or nil)
    if seen and seen >= FLOOR then
      known = {'seen', seen}
    elseif gone and gone >= FLOOR then
      known = {'gone', gone}
    else
      known = {}
    end
    memory.states[value] = known
  end
  return known[1], known[2]
end

-- Reads what the slot holds that counts a value last seen at this time. Answers whether that is ours.
local function locate(who, value, time)
  local slots = memory_of(who).slots
  if slots[value] then
    return true
  end
  local start = call('ZREVRANGEBYSCORE', INDEX, time, '-inf', 'LIMIT', 0, 1)[1]
  local slot = start and position(start)
  if not slot then
    -- Either the slot is missing from the call, or from the board.
    return start ~= nil
  end
  local held = cell(slot, who)
  if not held or not sound(held) then
    return false
  end
  slots[value] = slot
  return true
end

-- Reads all that applying the entry may need. Answers what is wrong with it.
local function prepare(entry)
  if entry.verb == 'look' then
    return
  end
  local who, memory = entry.who, memory_of(entry.who)
  local known, time = state(who, entry.a)
  if not IS_RANKED then
    return
  end
  acc_of(who)
  memory.entries = memory.entries + 1
  local held = cell(entry.slot, who)
  local is_sound = not held or sound(held)
  -- What is older than remembered changes nothing.
  if known == 'seen' and entry.at >= time then
    if held and is_sound and time >= tonumber(start_of(entry.slot)) then
      memory.slots[entry.a] = entry.slot
    end
    is_sound = locate(who, entry.a, format(time)) and is_sound
  end
  if MOST and memory.live + memory.entries > MOST then
    -- Those that may be dropped: no more than there are entries.
    local more = memory.entries - memory.located
    local oldest =
      call('ZRANGEBYSCORE', seen_key(who), ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', memory.located, more)
    for i = 1, #oldest, 2 do
      memory.is_damaged = not locate(who, oldest[i], oldest[i + 1]) or memory.is_damaged
    end
    memory.located = memory.entries
  end
  return (memory.is_damaged or not is_sound) and 'damaged' or nil
end

-- Counts a value in the slot, or no longer.
local function count(who, slot, by)
  if IS_RANKED and slot then
    local sum = tonumber(cell(slot, who) or 0) + by
    set_cell(slot, who, sum ~= 0 and string.format('%d', sum) or nil)
    local acc = acc_of(who)
    acc.sum = acc.sum + by
    move(who)
  end
end

-- The value is no longer seen.
local function leave(who, value)
  local memory = memories[who]
  count(who, memory.slots[value], -1)
  memory.slots[value] = nil
  memory.live = MOST and memory.live - 1
end

local function drop_oldest_seen(who)
  local memory = memories[who]
  while MOST and memory.live > MOST do
    local oldest = call('ZRANGEBYSCORE', seen_key(who), ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    call('ZREM', seen_key(who), oldest[1])
    call('ZADD', gone_key(who), 'GT', oldest[2], 'c')
    memory.has_gone = true
    memory.states[oldest[1]] = {}
    leave(who, oldest[1])
  end
end

local function drop_oldest_gone(who)
  local key = gone_key(who)
  local live = MOST and call('ZCOUNT', key, ARGV[5], '+inf') or 0
  local capped = live > 0 and tonumber(call('ZSCORE', key, 'c') or nil)
  if capped and capped >= FLOOR then
    live = live - 1
  end
  while MOST and live > MOST do
    local oldest = call('ZRANGEBYSCORE', key, ARGV[5], '+inf', 'LIMIT', 0, 2)
    local tombstone = oldest[1] ~= 'c' and oldest[1] or oldest[2]
    call('ZREM', key, tombstone)
    memories[who].states[string.sub(tombstone, 2)] = {}
    live = live - 1
  end
end

local function see(who, value, at, slot)
  local memory, known, time = memories[who], state(who, value)
  if known and at <= time then
    return
  end
  call('ZADD', seen_key(who), format(at), value)
  memory.states[value] = {'seen', at}
  if known == 'seen' then
    if memory.slots[value] ~= slot then
      count(who, memory.slots[value], -1)
      count(who, slot, 1)
      memory.slots[value] = slot
    end
    return
  end
  if memory.has_gone then
    call('ZREM', gone_key(who), 't' .. value)
  end
  count(who, slot, 1)
  memory.slots[value] = slot
  memory.live = MOST and memory.live + 1
  drop_oldest_seen(who)
end

local function retract(who, value, at)
  local memory, known, time = memories[who], state(who, value)
  if known == 'seen' and at < time or known == 'gone' and at <= time then
    return
  end
  call('ZADD', gone_key(who), format(at), 't' .. value)
  memory.has_gone = true
  memory.states[value] = {'gone', at}
  if known ~= 'gone' then
    call('ZREM', seen_key(who), value)
    if known == 'seen' then
      leave(who, value)
    end
    drop_oldest_gone(who)
  end
end

local touched = {}

local function apply(entry)
  if not next(touched) then
    -- All at once, before the first write.
    local subjects, keys = {}, {}
    for who in pairs(memories) do
      subjects[#subjects + 1] = subject_of(who)
      keys[#keys + 1], keys[#keys + 2] = seen_key(who), gone_key(who)
    end
    note_written(subjects, keys)
  end
  touched[entry.who] = true
  if entry.verb == 'seen' then
    see(entry.who, entry.a, entry.at, entry.slot)
  else
    retract(entry.who, entry.a, entry.at)
  end
end

-- Removes some of what is below the floor.
local function keep_up(key)
  local old = call('ZRANGEBYSCORE', key, '-inf', '(' .. ARGV[5], 'LIMIT', 0, SWEPT)
  if #old > 0 then
    call('ZREM', key, unpack(old))
  end
end

local function finish()
  for who in pairs(touched) do
    keep_up(seen_key(who))
    if memories[who].has_gone then
      keep_up(gone_key(who))
    end
  end
end
