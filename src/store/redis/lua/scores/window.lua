-- Scores of unranked boards: none are stored. The value of a window is computed when it is requested. Not a script of
-- its own.

local IS_RANKED = false

local function acc_of() end

local function move() end

local function save_standing() end

-- Returns the value of the window, after the changes were saved.
local function score_text(who)
  local acc, held = new(), call('HGETALL', subject_key(who))
  for i = 1, #held, 2 do
    local start = tonumber(held[i])
    if start and start >= FLOOR and start <= tonumber(ARGV[6]) and sound(held[i + 1]) then
      fold(acc, start, held[i + 1])
    end
  end
  return score_of(acc) or ''
end
