-- Subtracts cells from scores that are their sums. Not a script of its own.

-- Answers how many of the subjects were done and how many of them left the ranking.
local function subtract(_, subjects, cells)
  local gone = {}
  for i = 1, #subjects do
    local cell = cells[i]
    local negated = string.sub(cell, 1, 1) == '-' and string.sub(cell, 2) or '-' .. cell
    if tonumber(call('ZINCRBY', RANKING, negated, subjects[i])) == 0 then
      gone[#gone + 1] = subjects[i]
    end
  end
  each_thousand('ZREM', RANKING, gone)
  return #subjects, #gone
end

local function load_totals()
  return true
end
