-- COUNT and SUM; also the cells and scores of COUNT_DISTINCT. Not a script of its own.
--
-- ARGV  last: where a second key breaks ties, what a score is multiplied by to make room for it, and the greatest
--       magnitude of the key in a cell
-- verbs  `add` a, b: the margin that the sum must keep to the bound; `set` a
--
-- A cell is a whole number, never 0 (but for kind/capped.lua). The score is the sum of the cells. No total is stored: the score stands for it.

local HAS_TOTALS = false
local SCORES_ARE_TOTALS = false
local size, most_key = string.match(ARGV[#ARGV] or '', '^key:(%d+),(%d+)$')
local SIZE, MOST_KEY = tonumber(size), tonumber(most_key)

local function sound(cell)
  return string.match(cell, '^%-?%d+$') ~= nil
end

local function is_negative(cell)
  return string.byte(cell) == 45
end

local function new()
  return {sum = 0}
end

local function fold(acc, _, cell)
  acc.sum = acc.sum + tonumber(cell)
end

local function read_total(score)
  return {sum = tonumber(score)}
end

local function score_of(acc)
  if acc.sum ~= 0 then
    return string.format('%d', acc.sum)
  end
end

-- Returns the sum after the entry, and the sum before it.
local function sum_after(before, entry)
  local held, sum = tonumber(before or 0), tonumber(entry.a)
  if entry.verb == 'add' then
    sum = held + sum
  end
  return sum, held
end

local function exceeds(before, entry)
  local sum = sum_after(before, entry)
  local bound = entry.verb == 'add' and BOUND - entry.b or BOUND
  if SIZE then
    local key = sum - math.floor(sum / SIZE + 0.5) * SIZE
    if key > MOST_KEY or key < -MOST_KEY then
      return true
    end
  end
  return sum > bound or sum < -bound
end

local function change_cell(before, entry, acc)
  local sum, held = sum_after(before, entry)
  if acc then
    -- In this order every number is exact, also if the cell is all that there is.
    acc.sum = acc.sum - held + sum
  end
  return sum ~= 0 and string.format('%d', sum) or ''
end

-- The total changes as much as the slot. In this order every number is exact.
local function total_entry(total, before, entry)
  entry.a = tonumber(total or 0) + (tonumber(entry.a) - tonumber(before or 0))
  return true
end

local function filling(cells)
  local sum = 0
  for _, cell in ipairs(cells) do
    if not sound(cell) then
      return {}
    end
    sum = sum + tonumber(cell)
  end
  return {{'set', sum, 0}}
end
