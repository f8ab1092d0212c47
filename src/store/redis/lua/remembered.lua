-- What kinds remember of a subject by time: values, or counters of persons. Not a script of its own.
--
-- KEYS  two for each subject: the texts, each at its time; the companion, with `c` by the latest time of a text dropped
--       because of the limit
--
--- @include entries

-- The largest number of expired times that a write removes from a key.
local SWEPT = 16

-- The known state of each subject. It is read before the first write, and each write updates it. Of each kind it has `slots`:
-- by text, the position of the slot that counts it; `live`: the number of texts, if there is a limit; `entries`: the number
-- of prepared entries; `located`: of how many of the oldest texts the slot is known.
local memories = {}

local function seen_key(who)
  return KEYS[FIRST_SUBJECT_KEY + 2 * (who - 1)]
end

local function gone_key(who)
  return KEYS[FIRST_SUBJECT_KEY + 2 * (who - 1) + 1]
end

-- Reads the cell that counts a text of this time. Returns whether the cell is valid.
local function locate(who, text, time)
  local slots = memories[who].slots
  if slots[text] then
    return true
  end
  local start = call('ZREVRANGEBYSCORE', INDEX, time, '-inf', 'LIMIT', 0, 1)[1]
  local slot = start and position(start)
  if not slot then
    -- If the index has such a slot, the call does not name it, which is not damage. Otherwise the board has lost the
    -- slot.
    return start ~= nil
  end
  local held = cell(slot, who)
  if not held or not sound(held) then
    return false
  end
  slots[text] = slot
  return true
end

-- Locates the texts that may be dropped, if there are more than `most` after the prepared entries: no more than there are
-- entries. `learn` is told each text and its time.
local function locate_oldest(who, most, learn)
  local memory = memories[who]
  if not most or memory.live + memory.entries <= most then
    return
  end
  local more = memory.entries - memory.located
  local oldest =
    call('ZRANGEBYSCORE', seen_key(who), ARGV.floor, '+inf', 'WITHSCORES', 'LIMIT', memory.located, more)
  for i = 1, #oldest, 2 do
    if learn then
      learn(who, oldest[i], oldest[i + 1])
    end
    memory.is_damaged = not locate(who, oldest[i], oldest[i + 1]) or memory.is_damaged
  end
  memory.located = memory.entries
end

-- Drops the oldest texts until there are `most`. `leave` is told each.
local function drop_oldest(who, most, leave)
  local memory = memories[who]
  while most and memory.live > most do
    local oldest = call('ZRANGEBYSCORE', seen_key(who), ARGV.floor, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    call('ZREM', seen_key(who), oldest[1])
    call('ZADD', gone_key(who), 'GT', oldest[2], 'c')
    leave(who, oldest[1])
  end
end

-- The subjects that are written to.
local touched = {}

-- Notes that a subject is written to. All of them are noted as written at once, before the first write.
local function note_touched(who)
  if not next(touched) then
    local subjects, keys = {}, {}
    for other in pairs(memories) do
      subjects[#subjects + 1] = subject_of(other)
      keys[#keys + 1], keys[#keys + 2] = seen_key(other), gone_key(other)
    end
    note_written(subjects, keys)
  end
  touched[who] = true
end
