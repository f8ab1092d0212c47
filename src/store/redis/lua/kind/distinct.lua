-- COUNT_DISTINCT, where each value is stored with the time when it was last seen. Not a script of its own.
--
-- KEYS  two for each subject: the values by the time each was last seen; the companion: tombstones, `t` and the value
--       by the time of the retraction, and `c` by the latest time of a value dropped because of the limit
-- ARGV  last: the largest number of values to remember, or ''; over all time followed by a comma and the time for which
--       tombstones are kept, in ms
-- verbs  `seen` a; `gone` a: its retraction; `forget` a: nothing of the value stays, no tombstone either; `dropped`: a
--        value of the time of the entry was dropped elsewhere
--
-- A value whose time is below the floor counts as absent, and so does a tombstone. Over all time, where the floor never
-- moves, tombstones have a floor of their own, and `c` is kept. On a ranked board every remembered value counts 1 in
-- the slot of its time: cells and scores are those of kind/sum.lua. An unranked board has no cells, because the times
-- of the values are sufficient.
--
--- @include remembered

local most, tombstone_life = string.match(ARGV[#ARGV], '^(%d*),?(%d*)$')
local MOST, TOMBSTONE_LIFE = tonumber(most), tonumber(tombstone_life)

-- Returns the time below which tombstones have expired.
local function gone_floor()
  return TOMBSTONE_LIFE and now - TOMBSTONE_LIFE or FLOOR
end

-- Returns the known state of a subject, with `states`: by value, its state (`seen`, `gone` or neither) and the time of that.
local function memory_of(who)
  local memory = memories[who]
  if not memory then
    memory = {states = {}, slots = {}, entries = 0, located = 0, has_gone = call('ZCARD', gone_key(who)) > 0}
    memory.live = MOST and call('ZCOUNT', seen_key(who), ARGV.floor, '+inf')
    memories[who] = memory
  end
  return memory
end

-- Returns `seen` or `gone` with the time, or nil for a value that is neither.
local function state(who, value)
  local memory = memory_of(who)
  local known = memory.states[value]
  if not known then
    local seen = tonumber(call('ZSCORE', seen_key(who), value) or nil)
    local gone = memory.has_gone and tonumber(call('ZSCORE', gone_key(who), 't' .. value) or nil)
    if seen and seen >= FLOOR then
      known = {'seen', seen}
    elseif gone and gone >= gone_floor() then
      known = {'gone', gone}
    else
      known = {}
    end
    memory.states[value] = known
  end
  return known[1], known[2]
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
  local known, time = state(who, entry.a)
  if not is_ranked then
    return
  end
  acc_of(who)
  memory.entries = memory.entries + 1
  local held = cell(entry.slot, who)
  local is_sound = not held or sound(held)
  -- An entry older than the remembered time changes nothing.
  if known == 'seen' and (entry.at >= time or entry.verb == 'forget') then
    if held and is_sound and time >= tonumber(start_of(entry.slot)) then
      memory.slots[entry.a] = entry.slot
    end
    is_sound = locate(who, entry.a, format(time)) and is_sound
  end
  locate_oldest(who, MOST)
  return (memory.is_damaged or not is_sound) and 'damaged' or nil
end

-- `prepare` has found all damage, and nothing is refused.
function check() end

-- Adds `by`, 1 or -1, to the number of values that the slot counts.
local function count(who, slot, by)
  if is_ranked and slot then
    local sum = tonumber(cell(slot, who) or 0) + by
    set_cell(slot, who, sum ~= 0 and string.format('%d', sum) or '')
    local acc = acc_of(who)
    acc.sum = acc.sum + by
    move(who)
  end
end

-- Stops counting a value that is no longer seen.
local function leave(who, value)
  local memory = memories[who]
  count(who, memory.slots[value], -1)
  memory.slots[value] = nil
  memory.live = MOST and memory.live - 1
end

local function leave_dropped(who, value)
  local memory = memories[who]
  memory.has_gone = true
  memory.states[value] = {}
  leave(who, value)
end

local function drop_oldest_gone(who)
  local key = gone_key(who)
  local floor = gone_floor()
  local live = MOST and call('ZCOUNT', key, format(floor), '+inf') or 0
  local capped = live > 0 and tonumber(call('ZSCORE', key, 'c') or nil)
  if capped and capped >= floor then
    live = live - 1
  end
  while MOST and live > MOST do
    local oldest = call('ZRANGEBYSCORE', key, format(floor), '+inf', 'LIMIT', 0, 2)
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
  drop_oldest(who, MOST, leave_dropped)
end

local function retract(who, value, at)
  local memory, known, time = memories[who], state(who, value)
  if known == 'seen' and at < time or known == 'gone' and at <= time then
    return
  end
  call('ZADD', gone_key(who), format(at), 't' .. value)
  memory.has_gone = true
  -- A tombstone may have expired already.
  memory.states[value] = at >= gone_floor() and {'gone', at} or {}
  if known ~= 'gone' then
    call('ZREM', seen_key(who), value)
    if known == 'seen' then
      leave(who, value)
    end
    drop_oldest_gone(who)
  end
end

local function forget(who, value)
  local memory, known = memories[who], state(who, value)
  -- What has expired goes too.
  call('ZREM', seen_key(who), value)
  call('ZREM', gone_key(who), 't' .. value)
  memory.states[value] = {}
  if known == 'seen' then
    leave(who, value)
  end
end

-- Returns whether a value with which another track is filled is still stored here: it may have been forgotten since it
-- was read.
function holds(entry)
  return entry.verb == 'dropped' or call('ZSCORE', seen_key(entry.who), entry.a)
    or call('ZSCORE', gone_key(entry.who), 't' .. entry.a)
end

writes_at_once = true

function apply(entry)
  note_touched(entry.who)
  if entry.verb == 'seen' then
    see(entry.who, entry.a, entry.at, entry.slot)
  elseif entry.verb == 'forget' then
    forget(entry.who, entry.a)
  elseif entry.verb == 'dropped' then
    call('ZADD', gone_key(entry.who), 'GT', format(entry.at), 'c')
    memories[entry.who].has_gone = true
  else
    retract(entry.who, entry.a, entry.at)
  end
end

-- Removes some of the members below a floor.
local function keep_up(key, floor)
  local old = call('ZRANGEBYSCORE', key, '-inf', '(' .. format(floor), 'LIMIT', 0, SWEPT)
  for i = #old, 1, -1 do
    if TOMBSTONE_LIFE and old[i] == 'c' then
      table.remove(old, i)
    end
  end
  if #old > 0 then
    call('ZREM', key, unpack(old))
  end
end

function finish()
  for who in pairs(touched) do
    -- Over all time no value expires, and one of them may be called `c`.
    if not TOMBSTONE_LIFE then
      keep_up(seen_key(who), FLOOR)
    end
    if memories[who].has_gone then
      keep_up(gone_key(who), gone_floor())
    end
  end
end

if not is_ranked then
  function score_text(who)
    return format(call('ZCOUNT', seen_key(who), ARGV.floor, '+inf'))
  end
end
