-- The arguments of a change (change.lua) by name, and the functions that ranked.lua, unranked.lua or the kind defines.
-- Not a script of its own.
--
-- ARGV  `bound` of a (slot, subject), number of `slots`, number of `subjects`, number of `entries`, position of the
--       `first_subject_key`, `oldest`: start of the oldest slot kept, `period`: number of the current expiry period, or
--       ''; after all arguments with a name the start of each slot, oldest first; the subjects; then for each entry:
--       position of its slot, position of its subject (both from 1), verb, a, b, its time in ms or '' for now, code, id
--       or ''
--
--- @include operation
--- @arguments bound, slots, subjects, entries, first_subject_key, oldest, period

local BOUND = tonumber(ARGV.bound)
local SLOTS, SUBJECTS, ENTRIES = tonumber(ARGV.slots), tonumber(ARGV.subjects), tonumber(ARGV.entries)
local FIRST_SLOT_KEY = 6
local FIRST_SUBJECT_KEY = tonumber(ARGV.first_subject_key)
local OLDEST, PERIOD = tonumber(ARGV.oldest), ARGV.period
-- Valid only if subjects have keys of their own.
local PERIODS, WRITTEN = KEYS[#KEYS - 1], KEYS[#KEYS]
local FIRST_START = FIXED_ARGUMENTS + 1
local FIRST_SUBJECT = FIRST_START + SLOTS
local FIRST_ENTRY, STRIDE = FIRST_SUBJECT + SUBJECTS, 8

-- Return the start of a slot, or a subject, at a position from 1.
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
    -- An event cannot have happened later than now. Without a time, it happened now.
    at = time and time < now and time or now,
    is_timed = time ~= nil,
    code = tonumber(ARGV[at + 6]),
    id = ARGV[at + 7],
  }
end

-- Adds the time of an item to its number. Nil unless times order equal scores: then the option of the kind ends with
-- `time:`, the length of a step of time in ms, 1 or -1 if later times are smaller numbers, and the last step. A
-- retraction takes back a number and no time, and what is no item has its time already. A time that is no step is 0,
-- which stands for no time. `Steps` in the service knows the same.
local add_time
local step, sign, last_step = string.match(ARGV[#ARGV] or '', 'time:(%d+),(%-?1),(%d+)$')
if step then
  local FIRST, LAST = 1577836800000, tonumber(last_step)
  function add_time(entry)
    if entry.verb == 'add' or entry.verb == 'set' or entry.verb == 'follow' then
      local at = math.floor((entry.at - FIRST) / step)
      entry.a = tonumber(entry.a) + (at >= 1 and at <= LAST and sign * at or 0)
    end
  end
end

-- The number of cells that entries have looked at in addition to their own.
local work = {looked_at = 0}

-- Slots that the call must name and does not. If there are any, the script ends before its first write.
local missing = {}

local is_period_noted = false

-- Adds subjects to the current expiry period, before any of their data is written. The period is used to find them once
-- they have no data any more. Their keys must not expire, but an earlier version gave them a time to live, so that is
-- removed.
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

-- Returns whether the cell after the entry would be beyond its bound. Kinds with a bound define it.
local function exceeds()
  return false
end

-- Returns whether a cell can cancel others. Kinds with such cells define it.
local function is_negative()
  return false
end

-- Turns a sample of a slot that is kept beside this total into a change of the total. Kinds that take such samples
-- define it: total_entry(total, before, entry, next_cell) gets the texts of the total and of the slot, and a function
-- that for LAST returns the text of the next slot. It returns whether the total changes.
local function total_entry() end

-- Returns the entries that give a track what the cells of another one come to (fill.lua): for each verb, a, b and time.
-- None if a cell is not valid. Kinds whose data is in cells define it.
local function filling()
  return {}
end

-- The steps of a change. They are defined by ranked.lua or unranked.lua, and by kinds that store other data than cells.

-- Reads the data of all entries at once, where that saves commands.
local function fetch() end

-- Reads all data that applying the entry may need, if it cannot be read while entries are applied. Returns nil, or the
-- outcome of the entry.
local function prepare() end

-- Returns the cell of the entry, or false if there is none.
local function cell_of() end

-- Returns the cell of a subject in the slot with this start, which the call need not name. Only of unranked boards.
local function cell_from() end

-- Returns nil if the entry can be applied after those before it, or its outcome if it cannot. Changes nothing.
local function check() end

-- Returns whether the value of an entry, which is read of this track to be given to another one, is still stored. Only of
-- kinds that store values.
local function holds() end

-- Records the slots that applying samples may turn out to need as missing, if the call does not name them. Only of ranked
-- boards with totals.
local function name_slots() end

-- Applies the entry in memory, after `check` has returned nil. Kinds that store values write at once.
local apply
local writes_at_once = false

-- Writes what the entries have changed.
local function save() end

-- Removes data that is no longer needed, after everything was saved.
local function finish() end

-- Returns the subject's score, or '' if there is none.
local score_text

-- Whether the board has a ranking.
local is_ranked = false
