-- COUNT and SUM; also the cells and scores of COUNT_DISTINCT. Not a script of its own.
--
-- verbs  `add` a; `set` a
--
-- A cell is a whole number, never 0. The score is the sum of the cells. No total is stored: the score stands for it.

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

local function read_total(score)
  return {sum = tonumber(score)}
end

local function score_of(acc)
  if acc.sum ~= 0 then
    return string.format('%d', acc.sum)
  end
end

local function change_cell(before, entry, acc)
  if before and not sound(before) then
    return nil, 'damaged'
  end
  local held, sum = tonumber(before or 0), tonumber(entry.a)
  if entry.verb == 'add' then
    sum = held + sum
  end
  if sum > BOUND or sum < -BOUND then
    return nil, 'refused'
  end
  if acc then
    -- In this order every number is exact, also if the cell is all that there is.
    acc.sum = acc.sum - held + sum
  end
  return sum ~= 0 and string.format('%d', sum) or ''
end
