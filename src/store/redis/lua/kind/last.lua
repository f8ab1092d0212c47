-- LAST. Not a script of its own.
--
-- ARGV  last: '', or the steps of times where they order equal scores (entries.lua)
-- verbs  `add` a; `set` a; `merge` a: as `add`, but of two values of the same time the present one stays
--
-- A cell is `time,value`: the newest value of the slot and its time in ms. The total is `start,value`: the newest slot
-- with a cell, and its value, which is the score.

local HAS_TOTALS = true
local SCORES_ARE_TOTALS = false

-- Returns the two numbers, or nil if the text is not valid.
local function parse(text)
  local first, value = string.match(text, '^(%d+),(%-?%d+)$')
  return tonumber(first), tonumber(value)
end

local function sound(cell)
  return parse(cell) ~= nil
end

local function new()
  return {}
end

-- The cells may come in any order.
local function fold(acc, start, cell)
  if not acc.start or start >= acc.start then
    local _, value = parse(cell)
    acc.start, acc.value = start, value
  end
end

local function read_total(text)
  local start, value = parse(text)
  return start and {start = start, value = value}
end

local function total_of(acc)
  return acc.start and string.format('%d,%d', acc.start, acc.value)
end

local function score_of(acc)
  if acc.start then
    return string.format('%d', acc.value)
  end
end

-- Removes the oldest slot from the total. Returns whether that changed the total: only if the slot is the newest too.
local function withdraw(acc, start)
  if acc.start and acc.start <= start then
    acc.start = nil
    return true
  end
  return false
end

local function change_cell(before, entry, acc)
  local held_at, held
  if before then
    held_at, held = parse(before)
  end
  local at, value = entry.at, tonumber(entry.a)
  if held_at and entry.verb == 'merge' and at <= held_at then
    return
  end
  if held_at and entry.verb == 'add' and at < held_at then
    if entry.is_timed then
      return
    end
    -- What arrives without a time is the newest, also if the server's clock was set back within the slot.
    at = held_at
  end
  if at == held_at and value == held then
    return
  end
  local total = 'same'
  if acc then
    local start = tonumber(start_of(entry.slot))
    if not acc.start or start >= acc.start then
      acc.start, acc.value = start, value
      total = nil
    end
  end
  return string.format('%d,%d', at, value), total
end

-- The sample is the newest value, unless that is of a later slot: b is the end of the slot. A value of just this
-- instant may be an event of the next slot, or a sample that is stamped with the end of this one.
local function total_entry(total, _, entry, next_cell)
  local at, ends = total and parse(total), tonumber(entry.b)
  if at == ends then
    return parse(next_cell() or '') ~= ends
  end
  return not (at and at > ends)
end

local function filling(cells)
  local changes = {}
  for i, cell in ipairs(cells) do
    local at, value = parse(cell)
    if not at then
      return {}
    end
    changes[i] = {'merge', value, 0, at}
  end
  return changes
end
