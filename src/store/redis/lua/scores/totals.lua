-- Scores of a ranked board that are computed from totals, which are stored in a hash beside the ranking. Not a script
-- of its own.

local IS_RANKED = true
local accs, moved = {}, {}

-- Returns the total of the subject's cells so far, or false if it is not valid. After changing it in place, call
-- `move`.
local function acc_of(who)
  if accs[who] == nil then
    local text = call('HGET', TOTALS, subject_of(who))
    accs[who] = not text and new() or read_total(text) or false
  end
  return accs[who]
end

local function move(who)
  moved[who] = true
end

local function score_text(who)
  local acc = acc_of(who)
  return acc and score_of(acc) or ''
end

local function save_standing()
  for who in pairs(moved) do
    gather(subject_of(who), accs[who])
  end
  save_gathered()
end
