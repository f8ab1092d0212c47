-- What is set for subjects (moderate.lua), and where the scores of hidden ones are. Not a script of its own.
--
-- The field `marks` of meta names a hash of the partition: subject, with its key if it has one, to letters: `h` if it is
-- hidden or `s` if it is shadowed, then `f` if it is frozen. Without the field nothing is set, and nothing is looked for.
-- The scores of hidden subjects are in a sorted set of the track beside its ranking, which all reads leave out.
--
--- @include board

-- By subject, as far as they were read: its letters, or false.
local letters_of = {}

-- Reads the letters of subjects, which are every `step`th of the values.
local function read_letters(values, first, last, step)
  local unknown = {}
  for i = first, last, step do
    if letters_of[values[i]] == nil then
      unknown[#unknown + 1] = values[i]
    end
  end
  for from = 1, #unknown, 1000 do
    local found = call('HMGET', marks, unpack(unknown, from, math.min(from + 999, #unknown)))
    for i = 1, #found do
      letters_of[unknown[from + i - 1]] = found[i]
    end
  end
end

local function letters(subject)
  if letters_of[subject] == nil then
    letters_of[subject] = call('HGET', marks, subject)
  end
  return letters_of[subject]
end

-- Returns whether the ranking leaves a subject out.
local function is_hidden(subject)
  local own = marks and letters(subject)
  return own and own ~= 'f'
end

-- Returns whether items of a subject are rejected.
local function is_frozen(subject)
  local own = marks and letters(subject)
  return own and string.sub(own, -1) == 'f'
end
