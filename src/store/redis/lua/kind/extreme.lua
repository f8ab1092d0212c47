-- MIN and MAX. Not a script of its own.
--
-- ARGV  last: `min` or `max`, and the steps of times where they order equal scores (entries.lua)
-- verbs  `add` a; `set` a
--
-- A cell is the slot's own extreme, a whole number. The total is a staircase: only those slots whose extreme beats that
-- of every later slot, oldest first. Each of them is a step of 16 bytes: start and extreme as big-endian doubles. So
-- the first step is the score, and the next one takes its place when its slot retires. A write looks at steps from the
-- end and removes those that it beats. Each step is added once, so the cost of removals is bounded by that of
-- additions.

local HAS_TOTALS = true
local SCORES_ARE_TOTALS = false
local BEST = string.match(ARGV[#ARGV], '^%a+')
local STEP = 16

local function beats(a, b)
  if BEST == 'max' then
    return a > b
  end
  return a < b
end

local function step(stairs, number)
  return struct.unpack('>dd', stairs, (number - 1) * STEP + 1)
end

local function sound(cell)
  return string.match(cell, '^%-?%d+$') ~= nil
end

local function new()
  return {stairs = ''}
end

-- Sets the extreme of a slot to one that is no worse than the previous one.
local function put(acc, start, extreme)
  local stairs = acc.stairs
  local steps = #stairs / STEP
  -- The last step whose slot is not later.
  local before = steps
  while before > 0 and step(stairs, before) > start do
    before = before - 1
  end
  if before < steps then
    local _, later = step(stairs, before + 1)
    if not beats(extreme, later) then
      return
    end
  end
  local kept = before
  while kept > 0 do
    local at, value = step(stairs, kept)
    if at ~= start and beats(value, extreme) then
      break
    end
    kept = kept - 1
  end
  acc.stairs = string.sub(stairs, 1, kept * STEP) .. struct.pack('>dd', start, extreme)
    .. string.sub(stairs, before * STEP + 1)
end

-- Returns whether the slot is one of the steps.
local function is_step(acc, start)
  for number = #acc.stairs / STEP, 1, -1 do
    local at = step(acc.stairs, number)
    if at <= start then
      return at == start
    end
  end
  return false
end

local function fold(acc, start, cell)
  put(acc, start, tonumber(cell))
end

local function read_total(text)
  return #text > 0 and #text % STEP == 0 and {stairs = text} or nil
end

local function total_of(acc)
  return acc.stairs ~= '' and acc.stairs or nil
end

local function score_of(acc)
  if acc.stairs ~= '' then
    local _, extreme = step(acc.stairs, 1)
    return string.format('%d', extreme)
  end
end

-- Removes the oldest slot from the total. Returns whether that changed the total.
local function withdraw(acc, start)
  local changed = false
  while acc.stairs ~= '' and step(acc.stairs, 1) <= start do
    acc.stairs = string.sub(acc.stairs, STEP + 1)
    changed = true
  end
  return changed
end

local function change_cell(before, entry, acc)
  local held, extreme = before and tonumber(before), tonumber(entry.a)
  local better = not held or beats(extreme, held)
  if held == extreme or not better and entry.verb == 'add' then
    return
  end
  local total = nil
  if acc then
    local start = tonumber(start_of(entry.slot))
    if better then
      put(acc, start, extreme)
    elseif is_step(acc, start) then
      -- The sample is worse than the slot's previous extreme: earlier slots may become steps again.
      total = 'lost'
    end
  end
  return string.format('%d', extreme), total
end

local function filling(cells)
  local changes = {}
  for i, cell in ipairs(cells) do
    if not sound(cell) then
      return {}
    end
    changes[i] = {'add', cell}
  end
  return changes
end
