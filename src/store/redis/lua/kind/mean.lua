-- AVG: how what a subject has in its slots combines. Not a script of its own.
--
-- ARGV  last: how often a subject must have been measured to be ranked, 1 at least
--
-- A cell is `sum,count`, never `0,0`, and so is the total of all cells. The score is the one divided by the other.

local HAS_TOTALS = true
local MIN_SAMPLES = tonumber(ARGV[#ARGV])

-- Answers sum and count, or nil where they are not ours.
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
    return string.format('%.17g', acc.sum / acc.count)
  end
end

-- Takes a cell away from the total. Answers whether that changed it.
local function withdraw(acc, _, cell)
  local sum, count = parse(cell)
  acc.sum, acc.count = acc.sum - sum, acc.count - count
  return true
end
