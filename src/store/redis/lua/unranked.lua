-- The data of an unranked board: its cells in one hash per subject, start of the slot to cell. The field `f` is the
-- oldest slot that was kept when the hash was last cleaned. Each cell is read once and kept in memory until `save`
-- writes the changes. Scores are not stored: the value of a window is computed when it is requested. Not a script of
-- its own.
--
--- @include entries

-- The number of fields in which one call looks for slots that are no longer kept, unless a single subject has more:
-- about 1 ms. A call with 200 subjects, each of which is written to once per slot, has to look at 3,200.
local LOOKED_AT = 4000

local cells, changed = {}, {}
-- By subject: the oldest slot that was kept when its hash was last cleaned, or false if it never was.
local cleaned = {}

local function subject_key(who)
  return KEYS[FIRST_SUBJECT_KEY - 1 + who]
end

-- Returns the cell of a slot and a subject, given by their positions, or false if there is none.
local function cell(slot, who)
  cells[who] = cells[who] or {}
  local text = cells[who][slot]
  if text == nil then
    if cleaned[who] == nil then
      local held = call('HMGET', subject_key(who), start_of(slot), 'f')
      text, cleaned[who] = held[1], tonumber(held[2] or nil) or false
    else
      text = call('HGET', subject_key(who), start_of(slot))
    end
    cells[who][slot] = text
  end
  return text
end

function cell_of(entry)
  return cell(entry.slot, entry.who)
end

-- Another edition may write before the first entry of this one is applied.
function prepare(entry)
  if entry.verb ~= 'look' then
    cell_of(entry)
  end
end

function cell_from(start, who)
  for slot = 1, SLOTS do
    if start_of(slot) == start then
      return cell(slot, who)
    end
  end
  return call('HGET', subject_key(who), start)
end

function check(entry)
  local before = cell(entry.slot, entry.who)
  if before and not sound(before) then
    return 'damaged'
  end
  return exceeds(before, entry) and 'refused' or nil
end

function apply(entry)
  local slot, who = entry.slot, entry.who
  local after = change_cell(cell(slot, who), entry)
  if after then
    cells[who][slot] = after ~= '' and after
    changed[who] = changed[who] or {}
    changed[who][slot] = true
  end
end

local room = LOOKED_AT

-- Removes slots that are no longer kept. This needs a look at all fields, so it is done only after a sixteenth of the
-- kept slots has expired. If the call has looked at too many fields already, the subject is left for a later call.
local function clean(who)
  if OLDEST <= cleaned[who] or OLDEST - cleaned[who] < (tonumber(ARGV.head) - OLDEST) / 16 or room <= 0 then
    return
  end
  local key, gone = subject_key(who), {}
  local starts = call('HKEYS', key)
  for _, start in ipairs(starts) do
    local at = tonumber(start)
    if at and at < OLDEST then
      gone[#gone + 1] = start
    end
  end
  room = room - #starts
  call('HSET', key, 'f', format(OLDEST))
  each_thousand('HDEL', key, gone)
end

function save()
  local subjects, keys = {}, {}
  for who in pairs(changed) do
    subjects[#subjects + 1], keys[#keys + 1] = subject_of(who), subject_key(who)
  end
  if #subjects > 0 then
    note_written(subjects, keys)
  end
  for who, of in pairs(changed) do
    local key, held, gone = subject_key(who), {}, {}
    for slot in pairs(of) do
      local text = cells[who][slot]
      if text then
        held[#held + 1] = start_of(slot)
        held[#held + 1] = text
      else
        gone[#gone + 1] = start_of(slot)
      end
    end
    if #held > 0 then
      if not cleaned[who] then
        held[#held + 1], held[#held + 2] = 'f', format(OLDEST)
        cleaned[who] = OLDEST
      end
      each_thousand('HSET', key, held)
      clean(who)
    end
    each_thousand('HDEL', key, gone)
    if #gone > 0 and call('HLEN', key) == 1 then
      -- Only `f` is left. Without data the subject need not be found any more.
      call('DEL', key)
      call('SREM', WRITTEN, subject_of(who))
    end
  end
end

-- Returns the value of the window, after the changes were saved.
function score_text(who)
  local acc, held = new(), call('HGETALL', subject_key(who))
  for i = 1, #held, 2 do
    local start = tonumber(held[i])
    if start and start >= FLOOR and start <= tonumber(ARGV.head) and sound(held[i + 1]) then
      fold(acc, start, held[i + 1])
    end
  end
  return score_of(acc) or ''
end
