-- COUNT and SUM where equal scores are ordered by time. Not a script of its own.
--
-- ARGV  last: the steps of times (entries.lua)
-- verbs  `add` a: an amount with its time; `undo` a: an amount to take back; `merge` a: what another board has in the
--       slot; `set` a: a sample, or what the slots of another track come to
--
-- A cell is `score x SIZE + time`, where the time is negative if the later one is to be the smaller number; never 0. So is
-- what all cells come to: the sum of their scores, and the latest of their times. It is the score of the ranking, and a
-- total only while a subject has no score because the sum is 0.

local HAS_TOTALS = true
local SCORES_ARE_TOTALS = true
local sign, last_step = string.match(ARGV[#ARGV], 'time:%d+,(%-?1),(%d+)$')
local SIZE = last_step + 1
local BELOW = sign == '-1' and last_step or 0

-- Returns the score and the time of a number.
local function split(number)
  local score = math.floor((number + BELOW) / SIZE)
  return score, number - score * SIZE
end

-- Returns the sum of two scores with the later of two times.
local function joined(score, time, more, other)
  return (score + more) * SIZE + (math.abs(other) > math.abs(time) and other or time)
end

local function sound(cell)
  return string.match(cell, '^%-?%d+$') ~= nil
end

local function is_negative(cell)
  return cell ~= '' and split(tonumber(cell)) < 0
end

local function new()
  return {all = 0}
end

local function fold(acc, _, cell)
  local score, time = split(acc.all)
  acc.all = joined(score, time, split(tonumber(cell)))
end

local function read_total(text)
  return {all = tonumber(text)}
end

local function total_of(acc)
  return acc.all ~= 0 and split(acc.all) == 0 and string.format('%d', acc.all) or nil
end

local function score_of(acc)
  if split(acc.all) ~= 0 then
    return string.format('%d', acc.all)
  end
end

-- Subtracts the cell of the oldest slot. If it has the latest time, no other cell has one.
local function withdraw(acc, _, cell)
  local score, time = split(acc.all)
  local less, of_cell = split(tonumber(cell))
  acc.all = (score - less) * SIZE + (math.abs(of_cell) >= math.abs(time) and 0 or time)
  return true
end

-- Returns the number of the cell after the entry, and that before it.
local function number_after(before, entry)
  local held, number = tonumber(before or 0), tonumber(entry.a)
  if entry.verb == 'set' then
    return number, held
  end
  local score, time = split(held)
  local more, other = split(number)
  if entry.verb == 'undo' then
    more, other = -more, 0
  elseif entry.verb == 'add' and more == 0 then
    -- What adds nothing does not count for the time either.
    return held, held
  end
  return joined(score, time, more, other), held
end

local function exceeds(before, entry)
  local score = split(number_after(before, entry))
  return math.abs(score) > (BOUND - (SIZE - 1)) / SIZE
end

local function change_cell(before, entry, acc)
  local number, held = number_after(before, entry)
  if number == held then
    return
  end
  local total = nil
  if acc then
    local score, time = split(acc.all)
    local less, was = split(held)
    local more, becomes = split(number)
    acc.all = joined(score - less, time, more, becomes)
    -- If the latest time is replaced by an earlier one, another slot may have the latest one now.
    if math.abs(was) == math.abs(time) and math.abs(becomes) < math.abs(was) then
      total = 'lost'
    end
  end
  return number ~= 0 and string.format('%d', number) or '', total
end

local function filling(cells)
  local acc = new()
  for _, cell in ipairs(cells) do
    if not sound(cell) then
      return {}
    end
    fold(acc, nil, cell)
  end
  return {{'set', acc.all, 0}}
end
