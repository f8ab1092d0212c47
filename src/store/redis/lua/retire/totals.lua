-- Withdrawal of cells from totals, from which scores are computed. Not a script of its own.

-- The number of bytes of cells and totals that a step looks through, if that takes most of the time: about 2 ms.
local BUDGET = 60000

local totals = {}

-- Reads the totals of the subjects. Returns whether all are valid.
local function load_totals(subjects)
  for first = 1, #subjects, 1000 do
    local texts = call('HMGET', TOTALS, unpack(subjects, first, math.min(first + 999, #subjects)))
    for i = 1, #texts do
      -- A missing total may be an empty one, if the cells cancel each other out.
      local acc = not texts[i] and new() or read_total(texts[i])
      if not acc then
        return false
      end
      totals[first + i - 1] = acc
    end
  end
  return true
end

-- Returns how many of the subjects were done, and how many of them left the ranking.
local function subtract(start, subjects, cells)
  local done, work = 0, 0
  local subject
  -- Returns a function that returns the subject's cells in all other slots, one after the other.
  local function others()
    local slot = 0
    return function()
      while slot < SLOTS do
        slot = slot + 1
        local other = tonumber(ARGV[FIRST_START - 1 + slot])
        local cell = other >= dropped and other ~= start and call('HGET', KEYS[FIRST_SLOT_KEY - 1 + slot], subject)
        work = work + 64
        if cell and sound(cell) then
          work = work + #cell
          return cell
        end
      end
    end
  end
  while done < #subjects and work < BUDGET do
    done = done + 1
    subject = subjects[done]
    local acc = totals[done]
    if SLOTS > 0 then
      work = work + #cells[done] + 2048
    end
    if withdraw(acc, start, cells[done], others()) then
      gather(subject, acc)
    end
  end
  return done, save_gathered()
end
