-- Subtraction of cells from scores that are sums. Not a script of its own.

local scores = {}

-- Reads the scores of the subjects. Returns whether all are valid.
local function load_totals(subjects)
  for first = 1, #subjects, 1000 do
    local texts = call('ZMSCORE', RANKING, unpack(subjects, first, math.min(first + 999, #subjects)))
    for i = 1, #texts do
      -- A subject that is not ranked has the score 0: its cells add up to 0.
      scores[first + i - 1] = tonumber(texts[i] or 0)
    end
  end
  return true
end

-- Returns how many of the subjects were done, and how many of them left the ranking. The new scores are written, not
-- differences: if a server replays only a part of the script, an audit can repair it.
local function subtract(_, subjects, cells)
  local lines, gone = {}, {}
  for i = 1, #subjects do
    local score = scores[i] - tonumber(cells[i])
    if score ~= 0 then
      lines[#lines + 1] = string.format('%d', score)
      lines[#lines + 1] = subjects[i]
    else
      gone[#gone + 1] = subjects[i]
    end
  end
  each_thousand('ZADD', RANKING, lines)
  each_thousand('ZREM', RANKING, gone)
  return #subjects, #gone
end
