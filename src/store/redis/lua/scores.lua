-- The scores of a ranked board, and the totals from which some kinds compute them. Changed ones are collected and then
-- written together. Not a script of its own.

-- Where the state is stored from which scores are computed: the score itself if the kind has no totals.
local ACCUMULATED = HAS_TOTALS and TOTALS or RANKING
local held, lines, without, unranked = {}, {}, {}, {}

-- Returns what a text in ACCUMULATED, or false, says of a subject's cells; or false if it is not valid.
local function accumulated(text)
  -- A subject that is not there may have cells that cancel each other out.
  return not text and new() or read_total(text) or false
end

local function gather(subject, acc)
  local score = score_of(acc)
  if score then
    local size = #lines
    lines[size + 1], lines[size + 2] = score, subject
  else
    unranked[#unranked + 1] = subject
  end
  local total = HAS_TOTALS and total_of(acc)
  if total then
    local size = #held
    held[size + 1], held[size + 2] = subject, total
  elseif HAS_TOTALS then
    without[#without + 1] = subject
  end
end

-- Returns how many subjects left the ranking.
local function save_gathered()
  each_thousand('HSET', TOTALS, held)
  each_thousand('ZADD', RANKING, lines)
  each_thousand('HDEL', TOTALS, without)
  return each_thousand('ZREM', RANKING, unranked)
end
