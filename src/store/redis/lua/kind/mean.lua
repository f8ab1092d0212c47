-- AVG. Not a script of its own.
--
-- ARGV  last: the number of measurements from which a subject is ranked, at least 1; sum and count of the prior, the
--       measurements that each subject has beside its own
-- verbs  `add` a: one measurement; `undo` a: its retraction; `set` a, b: sum and count; `merge`
--       a, b: sum and count to add
--
-- A cell is `sum,count`, never `0,0`, and so is the total of all cells, both without the prior. The score is sum divided
-- by count, each with that of the prior.

local HAS_TOTALS = true
local SCORES_ARE_TOTALS = false
local min_samples, prior_sum, prior_count = string.match(ARGV[#ARGV], '^(%d+),(%-?%d+),(%d+)$')
local MIN_SAMPLES, PRIOR_SUM, PRIOR_COUNT = tonumber(min_samples), tonumber(prior_sum), tonumber(prior_count)

-- Returns sum and count, or nil if the text is not valid.
local function parse(text)
  local sum, count = string.match(text, '^(%-?%d+),(%-?%d+)$')
  return tonumber(sum), tonumber(count)
end

local function print_mean(sum, count)
  if sum ~= 0 or count ~= 0 then
    return string.format('%d,%d', sum, count)
  end
end

local function sound(cell)
  return parse(cell) ~= nil
end

local function is_negative(cell)
  return string.find(cell, ',-', 1, true) ~= nil
end

local function new()
  return {sum = 0, count = 0}
end

local function fold(acc, _, cell)
  local sum, count = parse(cell)
  acc.sum, acc.count = acc.sum + sum, acc.count + count
end

local function read_total(text)
  local sum, count = parse(text)
  return sum and {sum = sum, count = count}
end

local function total_of(acc)
  return print_mean(acc.sum, acc.count)
end

local function score_of(acc)
  if acc.count >= MIN_SAMPLES and acc.count > 0 then
    return string.format('%.17g', (acc.sum + PRIOR_SUM) / (acc.count + PRIOR_COUNT))
  end
end

-- Subtracts a cell from the total. Returns whether that changed the total.
local function withdraw(acc, _, cell)
  local sum, count = parse(cell)
  acc.sum, acc.count = acc.sum - sum, acc.count - count
  return true
end

-- Returns sum and count after the entry, and those before it.
local function mean_after(before, entry)
  local held_sum, held_count = 0, 0
  if before then
    held_sum, held_count = parse(before)
  end
  local sum, count = tonumber(entry.a), tonumber(entry.b)
  if entry.verb == 'add' then
    sum, count = held_sum + sum, held_count + 1
  elseif entry.verb == 'merge' then
    sum, count = held_sum + sum, held_count + count
  elseif entry.verb == 'undo' then
    sum, count = held_sum - sum, held_count - 1
  end
  return sum, count, held_sum, held_count
end

local function exceeds(before, entry)
  local sum, count = mean_after(before, entry)
  return sum > BOUND or sum < -BOUND or count > BOUND or count < -BOUND
end

local function change_cell(before, entry, acc)
  local sum, count, held_sum, held_count = mean_after(before, entry)
  if acc then
    -- In this order every number is exact, also if the cell is all that there is.
    acc.sum, acc.count = acc.sum - held_sum + sum, acc.count - held_count + count
  end
  return print_mean(sum, count) or ''
end

-- The total changes as much as the slot. In this order every number is exact.
local function total_entry(total, before, entry)
  local sum, count, held_sum, held_count = 0, 0, 0, 0
  if total then
    sum, count = parse(total)
  end
  if before then
    held_sum, held_count = parse(before)
  end
  entry.a, entry.b = sum + (tonumber(entry.a) - held_sum), count + (tonumber(entry.b) - held_count)
  return true
end

local function filling(cells)
  local sum, count = 0, 0
  for _, cell in ipairs(cells) do
    local more, measured = parse(cell)
    if not more then
      return {}
    end
    sum, count = sum + more, count + measured
  end
  return {{'set', sum, count}}
end
