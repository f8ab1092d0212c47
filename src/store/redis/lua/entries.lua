-- The arguments of a change (change.lua), by name. Not a script of its own.

local BOUND = tonumber(ARGV[11])
local SLOTS, SUBJECTS, ENTRIES = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local FIRST_SLOT_KEY, FIRST_SUBJECT_KEY, FIRST_BUCKET_KEY = 6, tonumber(ARGV[17]), tonumber(ARGV[18])
local OLDEST, PERIOD = tonumber(ARGV[19]), ARGV[20]
-- Only where subjects have keys of their own.
local PERIODS, WRITTEN = KEYS[#KEYS - 1], KEYS[#KEYS]
local FIRST_START = 21
local FIRST_SUBJECT = FIRST_START + SLOTS
local FIRST_ENTRY, STRIDE = FIRST_SUBJECT + SUBJECTS, 8

-- Of the slot, or the subject, at a position from 1.
local function start_of(slot)
  return ARGV[FIRST_START - 1 + slot]
end

local function subject_of(who)
  return ARGV[FIRST_SUBJECT - 1 + who]
end

local function entry_at(number)
  local at = FIRST_ENTRY + (number - 1) * STRIDE
  local time = tonumber(ARGV[at + 5])
  return {
    slot = tonumber(ARGV[at]),
    who = tonumber(ARGV[at + 1]),
    verb = ARGV[at + 2],
    a = ARGV[at + 3],
    b = ARGV[at + 4],
    -- Nothing happens later than now, nor at a time that nobody named but now.
    at = time and time < now and time or now,
    code = tonumber(ARGV[at + 6]),
    id = ARGV[at + 7],
  }
end

-- How many cells entries have looked at beyond their own, and past how many the rest is left to the next script.
local looked_at, MOST_LOOKED_AT = 0, 3000

-- Slots that the call must name and does not: with any, it is given up before its first write.
local missing = {}
local position_of

-- The position of the slot that starts here; nil, and noted as missing, where the call does not name it.
local function position(start)
  if not position_of then
    position_of = {}
    for slot = 1, SLOTS do
      position_of[start_of(slot)] = slot
    end
  end
  if not position_of[start] then
    missing[#missing + 1] = start
  end
  return position_of[start]
end

local is_period_noted = false

-- Notes subjects, before anything of theirs is written, in the expiry period of now, by which they are found once they
-- hold nothing any more. Each key of theirs must not go by itself: an earlier version gave it a time to live.
local function note_written(subjects, keys)
  if not is_period_noted then
    call('ZADD', PERIODS, PERIOD, PERIOD)
    is_period_noted = true
  end
  if each_thousand('SADD', WRITTEN, subjects) > 0 then
    for _, key in ipairs(keys) do
      call('PERSIST', key)
    end
  end
end
