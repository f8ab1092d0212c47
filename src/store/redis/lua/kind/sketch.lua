-- APPROX_COUNT_DISTINCT: how what a subject has in its slots combines. Not a script of its own.
--
-- A cell is a sketch in the form of board/sketch.rs: entries of 3 bytes (register, high byte first, and rank) by
-- register while there are 682 at most, then all 2,048 ranks of a byte each. The total is the sketch of all cells
-- merged, in the same form, and the score its estimate. The arithmetic is that of board/sketch.rs to the last unit:
-- keep both alike.

local HAS_TOTALS = true
local REGISTERS, HIGHEST, ALPHA = 2048, 54, 0.7213475204444817
local ENTRY = 3
local byte, char, sub = string.byte, string.char, string.sub

local function sound(cell)
  return #cell == REGISTERS or #cell < REGISTERS and #cell % ENTRY == 0 and cell ~= ''
end

-- Ranks by register from 0, those that are not 0.
local function ranks_of(text)
  local ranks = {}
  if #text == REGISTERS then
    for i, rank in ipairs({byte(text, 1, REGISTERS)}) do
      if rank > 0 then
        ranks[i - 1] = rank
      end
    end
  else
    for at = 1, #text, ENTRY do
      local high, low, rank = byte(text, at, at + 2)
      ranks[high * 256 + low] = rank
    end
  end
  return ranks
end

local function print_ranks(ranks)
  local registers = {}
  for register in pairs(ranks) do
    registers[#registers + 1] = register
  end
  local parts = {}
  if #registers * ENTRY <= REGISTERS then
    table.sort(registers)
    for i, register in ipairs(registers) do
      parts[i] = char(math.floor(register / 256), register % 256, ranks[register])
    end
    return table.concat(parts)
  end
  for i = 1, REGISTERS do
    parts[i] = ranks[i - 1] or 0
  end
  return char(unpack(parts))
end

-- Answers the sketch with the register raised to the rank; nil where it is no lower already.
local function mark(text, register, rank)
  if #text == REGISTERS then
    if byte(text, register + 1) >= rank then
      return nil
    end
    return sub(text, 1, register) .. char(rank) .. sub(text, register + 2)
  end
  -- The first entry whose register is not lower.
  local first, last = 1, #text / ENTRY + 1
  while first < last do
    local middle = math.floor((first + last) / 2)
    local high, low = byte(text, middle * ENTRY - 2, middle * ENTRY - 1)
    if high * 256 + low < register then
      first = middle + 1
    else
      last = middle
    end
  end
  local at = first * ENTRY - 2
  local high, low, held = byte(text, at, at + 2)
  if high and high * 256 + low == register then
    if held >= rank then
      return nil
    end
    return sub(text, 1, at + 1) .. char(rank) .. sub(text, at + ENTRY)
  end
  if #text + ENTRY > REGISTERS then
    local ranks = ranks_of(text)
    ranks[register] = rank
    return print_ranks(ranks)
  end
  return sub(text, 1, at - 1) .. char(math.floor(register / 256), register % 256, rank) .. sub(text, at)
end

local function sigma(x)
  if x == 1 then
    return math.huge
  end
  local y, z = 1, x
  while true do
    x = x * x
    local before = z
    z = z + x * y
    y = y + y
    if z == before then
      return z
    end
  end
end

local function tau(x)
  if x == 0 or x == 1 then
    return 0
  end
  local y, z = 1, 1 - x
  while true do
    x = math.sqrt(x)
    local before = z
    y = y * 0.5
    z = z - (1 - x) * (1 - x) * y
    if z == before then
      return z / 3
    end
  end
end

local function estimate(text)
  local counts = {}
  for rank = 0, 255 do
    counts[rank] = 0
  end
  if #text == REGISTERS then
    for _, rank in ipairs({byte(text, 1, REGISTERS)}) do
      counts[rank] = counts[rank] + 1
    end
  else
    counts[0] = REGISTERS - #text / ENTRY
    for at = ENTRY, #text, ENTRY do
      local rank = byte(text, at)
      counts[rank] = counts[rank] + 1
    end
  end
  local m = REGISTERS
  local z = m * tau(1 - counts[HIGHEST] / m)
  for rank = HIGHEST - 1, 1, -1 do
    z = 0.5 * (z + counts[rank])
  end
  z = z + m * sigma(counts[0] / m)
  return math.floor(ALPHA * m * m / z + 0.5)
end

-- An accumulated sketch is either its text or, while cells are folded, its ranks.
local function new()
  return {ranks = {}}
end

local function fold(acc, _, cell)
  local ranks = acc.ranks
  for register, rank in pairs(ranks_of(cell)) do
    if rank > (ranks[register] or 0) then
      ranks[register] = rank
    end
  end
end

local function read_total(text)
  return sound(text) and {text = text} or nil
end

local function total_of(acc)
  acc.text = acc.text or print_ranks(acc.ranks)
  return acc.text ~= '' and acc.text or nil
end

local function score_of(acc)
  local total = total_of(acc)
  if acc.estimated ~= total then
    acc.estimated, acc.about = total, total and estimate(total)
  end
  if total and acc.about > 0 then
    return string.format('%d', acc.about)
  end
end

-- Takes a cell away from the total. `others` answers the cells that stay, and is asked only where one of the total's
-- ranks may have been this cell's. Answers whether that changed the total.
local function withdraw(acc, _, cell, others)
  local total, doubtful, is_doubtful = ranks_of(total_of(acc) or ''), {}, false
  for register, rank in pairs(ranks_of(cell)) do
    if total[register] == rank then
      doubtful[register], is_doubtful = 0, true
    end
  end
  if not is_doubtful then
    return false
  end
  for _, other in ipairs(others()) do
    if #other == REGISTERS then
      for register, rank in pairs(doubtful) do
        doubtful[register] = math.max(rank, byte(other, register + 1))
      end
    else
      for at = 1, #other, ENTRY do
        local high, low, rank = byte(other, at, at + 2)
        local register = high * 256 + low
        if doubtful[register] then
          doubtful[register] = math.max(doubtful[register], rank)
        end
      end
    end
  end
  local changed = false
  for register, rank in pairs(doubtful) do
    if rank ~= total[register] then
      total[register] = rank > 0 and rank or nil
      changed = true
    end
  end
  if changed then
    acc.text = print_ranks(total)
  end
  return changed
end
