-- COUNT, SUM and COUNT_DISTINCT: how what a subject has in its slots combines. Not a script of its own.
--
-- A cell, what a subject has in a slot, is a whole number, never 0. The score is their sum; no total is kept beside it.

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
