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

-- By subject, then by value: the position of the slot that counts it. By subject: how many entries it has.
local slot_of, entries_of = {}, {}

local function seen_key(who)
  return KEYS[FIRST_SUBJECT_KEY + 2 * (who - 1)]
end

local function gone_key(who)
  return KEYS[FIRST_SUBJECT_KEY + 2 * (who - 1) + 1]
end

-- Answers `seen` or `gone` with the time; nil of a value that is neither.
local function state(who, value)
  local seen = tonumber(call('ZSCORE', seen_key(who), value) or nil)
  if seen and seen >= FLOOR then
    return 'seen', seen
  end
  local gone = tonumber(call('ZSCORE', gone_key(who), 't' .. value) or nil)
  if gone and gone >= FLOOR then
    return 'gone', gone
  end
end

-- Finds the slot that counts a value last seen at this time, and reads what it holds. Answers whether that is ours.
local function locate(who, value, time)
  if slot_of[who][value] then
    return true
  end
  local start = call('ZREVRANGEBYSCORE', INDEX, time, '-inf', 'LIMIT', 0, 1)[1]
  local slot = start and position(start)
  if not slot then
    -- Either the slot is missing from the call, or from the board.
    return start ~= nil
  end
  slot_of[who][value] = slot
  local held = cell(slot, who)
  return held and sound(held)
end

-- Reads all that applying the entry may need. Answers what is wrong with it.
local function prepare(entry)
  local who, is_sound = entry.who, true
  if entry.verb == 'look' then
    return
  end
  call('ZCARD', gone_key(who))
  local known, time = state(who, entry.a)
  if not IS_RANKED then
    return
  end
  acc_of(who)
  if not entries_of[who] then
    slot_of[who], entries_of[who] = {}, 0
  end
  entries_of[who] = entries_of[who] + 1
  local held = cell(entry.slot, who)
  if held and not sound(held) then
    is_sound = false
  end
  if known == 'seen' then
    is_sound = locate(who, entry.a, format(time)) and is_sound
  end
  if MOST and call('ZCOUNT', seen_key(who), ARGV[5], '+inf') + entries_of[who] > MOST then
    -- Those that may be dropped.
    local oldest =
      call('ZRANGEBYSCORE', seen_key(who), ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', 0, entries_of[who])
    for i = 1, #oldest, 2 do
      is_sound = locate(who, oldest[i], oldest[i + 1]) and is_sound
    end
  end
  return not is_sound and 'damaged' or nil
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

local function located(who, value)
  return IS_RANKED and slot_of[who][value]
end

local function locate_at(who, value, slot)
  if IS_RANKED then
    slot_of[who][value] = slot
  end
end

local function drop_oldest_seen(who)
  local live = MOST and call('ZCOUNT', seen_key(who), ARGV[5], '+inf') or 0
  while MOST and live > MOST do
    local oldest = call('ZRANGEBYSCORE', seen_key(who), ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    call('ZREM', seen_key(who), oldest[1])
    call('ZADD', gone_key(who), 'GT', oldest[2], 'c')
    count(who, located(who, oldest[1]), -1)
    locate_at(who, oldest[1], nil)
    live = live - 1
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
    call('ZREM', key, oldest[1] ~= 'c' and oldest[1] or oldest[2])
    live = live - 1
  end
end

local function see(who, value, at, slot)
  local known, time = state(who, value)
  if known and at <= time then
    return
  end
  call('ZADD', seen_key(who), format(at), value)
  if known == 'seen' then
    if located(who, value) ~= slot then
      count(who, located(who, value), -1)
      count(who, slot, 1)
    end
    locate_at(who, value, slot)
    return
  end
  call('ZREM', gone_key(who), 't' .. value)
  count(who, slot, 1)
  locate_at(who, value, slot)
  drop_oldest_seen(who)
end

local function retract(who, value, at)
  local known, time = state(who, value)
  if known == 'seen' and at < time or known == 'gone' and at <= time then
    return
  end
  call('ZADD', gone_key(who), format(at), 't' .. value)
  if known ~= 'gone' then
    call('ZREM', seen_key(who), value)
    if known == 'seen' then
      count(who, located(who, value), -1)
      locate_at(who, value, nil)
    end
    drop_oldest_gone(who)
  end
end

local touched = {}

local function apply(entry)
  touched[entry.who] = true
  if entry.verb == 'seen' then
    see(entry.who, entry.a, entry.at, entry.slot)
  else
    retract(entry.who, entry.a, entry.at)
  end
end

-- Removes some of what is below the floor, and puts off the day on which idle keys go by themselves.
local function keep_up(key)
  local old = call('ZRANGEBYSCORE', key, '-inf', '(' .. ARGV[5], 'LIMIT', 0, SWEPT)
  if #old > 0 then
    call('ZREM', key, unpack(old))
  end
  if TTL ~= '' then
    call('PEXPIRE', key, TTL)
  end
end

local function finish()
  for who in pairs(touched) do
    keep_up(seen_key(who))
    keep_up(gone_key(who))
  end
end
