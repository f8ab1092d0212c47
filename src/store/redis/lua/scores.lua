-- The scores of a ranked board, and the totals from which some kinds compute them. Changed ones are collected and then
-- written together. Not a script of its own.
--
--- @include rankings

local held, lines, without, unranked = {}, {}, {}, {}

-- Returns the texts from which the scores of some subjects, a thousand at most, are computed: the scores themselves if
-- the kind has no totals, or if only subjects without a score have one. False for a subject that has none.
local function stored_of(subjects, first, last)
  if not HAS_TOTALS then
    return scores_of(subjects, first, last)
  end
  local texts = call('HMGET', TOTALS, unpack(subjects, first, last))
  if SCORES_ARE_TOTALS then
    for i, score in ipairs(scores_of(subjects, first, last)) do
      texts[i] = score or texts[i]
    end
  end
  return texts
end

-- Returns what such a text, or false, says of a subject's cells; or false if it is not valid.
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
  rank(lines)
  each_thousand('HDEL', TOTALS, without)
  return unrank(unranked)
end
