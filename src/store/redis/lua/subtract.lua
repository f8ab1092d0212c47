-- Subtracting cells of expired slots from scores and totals. Not a script of its own.
--
--- @include scores

-- What the cells of each subject come to: a number if the score stands for it.
local accs = {}

-- Reads what the cells of the subjects come to. Returns whether all of it is valid.
local function load_accumulated(subjects)
  for first = 1, #subjects, 1000 do
    local last = math.min(first + 999, #subjects)
    local texts = stored_of(subjects, first, last)
    for i = 1, #texts do
      if HAS_TOTALS then
        accs[first + i - 1] = accumulated(texts[i])
      else
        accs[first + i - 1] = tonumber(texts[i] or 0)
      end
      if not accs[first + i - 1] then
        return false
      end
    end
  end
  return true
end

-- Subtracts the cells from scores that are sums. Returns how many of the subjects were done, and how many of them left
-- the ranking. The new scores are written, not differences: if a server replays only a part of the script, an audit can
-- repair it.
local function subtract_from_scores(subjects, cells)
  local lines, gone, size = {}, {}, 0
  for i = 1, #subjects do
    local score = accs[i] - tonumber(cells[i])
    if score ~= 0 then
      lines[size + 1], lines[size + 2] = string.format('%d', score), subjects[i]
      size = size + 2
    else
      gone[#gone + 1] = subjects[i]
    end
  end
  rank(lines)
  return #subjects, unrank(gone)
end

-- Returns two functions. The first returns the next of the subject's cells in the slots after `start`, of those that
-- the call names last, or nil. The second returns about how many bytes it has looked through.
local function others_of(subject, start, first_key, first_start)
  local looked, slots, work = 0, #ARGV - first_start, 0
  local function next_other()
    while looked < slots do
      looked = looked + 1
      local other = tonumber(ARGV[first_start - 1 + looked])
      local cell = other >= dropped and other > start and call('HGET', KEYS[first_key - 1 + looked], subject)
      work = work + 64
      if cell and sound(cell) then
        work = work + #cell
        return cell
      end
    end
  end
  return next_other, function()
    return work
  end
end
