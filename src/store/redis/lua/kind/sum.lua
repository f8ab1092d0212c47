-- The combination of cells of COUNT, SUM and COUNT_DISTINCT. Not a script of its own.
--
-- A cell is a whole number, never 0. The score is the sum of the cells. No total is stored.

local HAS_TOTALS = false

local function sound(cell)
  return string.match(cell, '^%-?%d+$') ~= nil
end

local function new()
  return {sum = 0}
end

local function fold(acc, _, cell)
  acc.sum = acc.sum + tonumber(cell)
end

local function score_of(acc)
  if acc.sum ~= 0 then
    return string.format('%d', acc.sum)
  end
end
