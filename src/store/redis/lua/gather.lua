-- Totals and scores that changed, collected and then written together. Not a script of its own.

local held, lines, without, unranked = {}, {}, {}, {}

local function gather(subject, acc)
  local total, score = total_of(acc), score_of(acc)
  if total then
    held[#held + 1] = subject
    held[#held + 1] = total
  else
    without[#without + 1] = subject
  end
  if score then
    lines[#lines + 1] = score
    lines[#lines + 1] = subject
  else
    unranked[#unranked + 1] = subject
  end
end

-- Returns how many subjects left the ranking.
local function save_gathered()
  each_thousand('HSET', TOTALS, held)
  each_thousand('ZADD', RANKING, lines)
  each_thousand('HDEL', TOTALS, without)
  return each_thousand('ZREM', RANKING, unranked)
end
