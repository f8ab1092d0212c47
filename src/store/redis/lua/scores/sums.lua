-- Scores of a ranked board whose scores are sums: no other data is stored. Not a script of its own.

local IS_RANKED = true
local accs, moved = {}, {}

-- Returns the sum of the subject's cells so far. After changing it in place, call `move`.
local function acc_of(who)
  if not accs[who] then
    accs[who] = {sum = tonumber(call('ZSCORE', RANKING, subject_of(who)) or 0)}
  end
  return accs[who]
end

local function move(who)
  moved[who] = true
end

local function score_text(who)
  return score_of(acc_of(who)) or ''
end

local function save_standing()
  local lines, gone = {}, {}
  for who in pairs(moved) do
    local score = score_of(accs[who])
    if score then
      lines[#lines + 1] = score
      lines[#lines + 1] = subject_of(who)
    else
      gone[#gone + 1] = subject_of(who)
    end
  end
  each_thousand('ZADD', RANKING, lines)
  each_thousand('ZREM', RANKING, gone)
end
