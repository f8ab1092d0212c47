-- The data of a ranked board: its cells in one hash per slot, subject to cell, and its scores (scores.lua). Each cell
-- and score is read once and kept in memory until `save` writes the changes, so that nothing is written before
-- everything is read. Not a script of its own.
--
--- @include entries, scores

is_ranked = true
-- By slot and subject: the cell, or false if there is none; and whether it must be written.
local cells, changed = {}, {}
-- Whether a cell is written that says less than 0, or a number of samples that is less.
local has_negative = false
-- By subject: what its cells come to, or false if the stored data is not valid; and whether it must be written.
local accs, moved = {}, {}

-- Returns the cell of a slot and a subject, given by their positions, or false if there is none.
local function cell(slot, who)
  cells[slot] = cells[slot] or {}
  local text = cells[slot][who]
  if text == nil then
    text = call('HGET', KEYS[FIRST_SLOT_KEY - 1 + slot], subject_of(who))
    cells[slot][who] = text
  end
  return text
end

-- Sets the cell, or removes it if `text` is ''.
local function set_cell(slot, who, text)
  cells[slot][who] = text ~= '' and text
  changed[slot] = changed[slot] or {}
  changed[slot][who] = true
  has_negative = has_negative or is_negative(text)
end

-- Returns what the subject's cells come to so far, or false if it is not valid. After changing it in place, call
-- `move`.
local function acc_of(who)
  if accs[who] == nil then
    accs[who] = accumulated(stored_of({subject_of(who)})[1])
  end
  return accs[who]
end

local function move(who)
  moved[who] = true
end

local position_of

-- Returns the position of the slot with this start. If the call does not name it, records it as missing and returns
-- nil.
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

-- Records the slots of all cells that are not subtracted yet as missing, if the call does not name them.
local function name_all()
  for _, start in ipairs(call('ZRANGEBYSCORE', INDEX, format(dropped), '+inf')) do
    position(start)
  end
end

if HAS_TOTALS then
  name_slots = name_all
end

-- Computes the total again from every cell that is not subtracted yet, oldest first, unless slots are missing.
local function recompute(who)
  name_all()
  if #missing > 0 then
    return
  end
  work.looked_at = work.looked_at + SLOTS
  accs[who] = new()
  for slot = 1, SLOTS do
    local start = tonumber(start_of(slot))
    local text = start >= dropped and cell(slot, who)
    if text and sound(text) then
      fold(accs[who], start, text)
    end
  end
end

-- Each command costs as much as its work for an entry, so the cells and totals of all entries are read together.
function fetch(entries)
  local of_slot, some, subjects = {}, {}, {}
  for _, entry in ipairs(entries) do
    local slot, who = entry.slot, entry.who
    if entry.verb ~= 'look' then
      if accs[who] == nil then
        accs[who] = false
        some[#some + 1], subjects[#subjects + 1] = who, subject_of(who)
      end
      cells[slot] = cells[slot] or {}
      if cells[slot][who] == nil then
        cells[slot][who] = false
        of_slot[slot] = of_slot[slot] or {}
        of_slot[slot][#of_slot[slot] + 1] = who
      end
    end
  end
  if #some == 0 then
    return
  end
  local texts = stored_of(subjects)
  for i, who in ipairs(some) do
    accs[who] = accumulated(texts[i])
  end
  for slot, of in pairs(of_slot) do
    local names = {}
    for i, who in ipairs(of) do
      names[i] = subject_of(who)
    end
    local held = call('HMGET', KEYS[FIRST_SLOT_KEY - 1 + slot], unpack(names))
    for i, who in ipairs(of) do
      cells[slot][who] = held[i]
    end
  end
end

function cell_of(entry)
  return cell(entry.slot, entry.who)
end

function check(entry)
  local before = cell(entry.slot, entry.who)
  if not acc_of(entry.who) or before and not sound(before) then
    return 'damaged'
  end
  return exceeds(before, entry) and 'refused' or nil
end

function apply(entry)
  local slot, who = entry.slot, entry.who
  local after, total = change_cell(cell(slot, who), entry, acc_of(who))
  if not after then
    return
  end
  set_cell(slot, who, after)
  if total == 'lost' then
    recompute(who)
  end
  if total ~= 'same' then
    move(who)
  end
end

function score_text(who)
  local acc = acc_of(who)
  return acc and score_of(acc) or ''
end

local function save_cells()
  local emptied = {}
  if has_negative then
    note_negative()
  end
  for slot, of in pairs(changed) do
    local held, gone = {}, {}
    for who in pairs(of) do
      local text = cells[slot][who]
      if text then
        held[#held + 1] = subject_of(who)
        held[#held + 1] = text
      else
        gone[#gone + 1] = subject_of(who)
      end
    end
    if #held > 0 then
      -- The index is written first: if a restart loses the rest, a slot that the index does not name would never
      -- retire.
      call('ZADD', INDEX, start_of(slot), start_of(slot))
      each_thousand('HSET', KEYS[FIRST_SLOT_KEY - 1 + slot], held)
    end
    if #gone > 0 then
      emptied[slot] = gone
    end
  end
  -- Deletions come last: if memory is full, the server refuses only the first write of a script.
  for slot, gone in pairs(emptied) do
    local key = KEYS[FIRST_SLOT_KEY - 1 + slot]
    each_thousand('HDEL', key, gone)
    if call('EXISTS', key) == 0 then
      call('ZREM', INDEX, start_of(slot))
    end
  end
end

function save()
  save_cells()
  for who in pairs(moved) do
    gather(subject_of(who), accs[who])
  end
  save_gathered()
end
