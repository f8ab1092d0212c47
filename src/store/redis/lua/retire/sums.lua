-- Subtracts cells from scores that are their sums. Not a script of its own.

local scores = {}

-- Reads the scores of the subjects. Answers whether all are ours.
local function load_totals(subjects)
  for first = 1, #subjects, 1000 do
    local texts = call('ZMSCORE', RANKING, unpack(subjects, first, math.min(first + 999, #subjects)))
    for i = 1, #texts do
      -- Who is not ranked has 0: cells that cancel each other out.
      scores[first + i - 1] = tonumber(texts[i] or 0)
    end
  end
  return true
end

-- Answers how many of the subjects were done and how many of them left the ranking. Scores are written as they are to
-- be, not as differences: what a server replays by half is set right by an audit.
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
