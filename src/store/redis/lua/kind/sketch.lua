-- APPROX_COUNT_DISTINCT. Not a script of its own.
--
-- verbs  `mark` a, b: register and rank; `merge` a: a sketch
--
-- A cell is a sketch in the form of board/sketch.rs. Up to 682 marked registers: entries of 3 bytes (register, high
-- byte first, and rank), ordered by register. More: all 2,048 ranks, one byte each. The total is the merged sketch of
-- all cells, in the same form, and the score is its estimate. The arithmetic gives exactly the results of
-- board/sketch.rs: keep both equal.

local HAS_TOTALS = true
local SCORES_ARE_TOTALS = false
local REGISTERS, HIGHEST, ALPHA = 2048, 54, 0.7213475204444817
local ENTRY = 3
local byte, char, sub = string.byte, string.char, string.sub

local function sound(cell)
  return #cell == REGISTERS or #cell < REGISTERS and #cell % ENTRY == 0 and cell ~= ''
end

-- Returns the ranks by register, counted from 1. Missing ranks are 0.
local function ranks_of(text)
  if #text == REGISTERS then
    return {byte(text, 1, REGISTERS)}
  end
  local ranks = {}
  for at = 1, #text, ENTRY do
    local high, low, rank = byte(text, at, at + 2)
    ranks[high * 256 + low + 1] = rank
  end
  return ranks
end

local function print_ranks(ranks)
  local marked = 0
  for _, rank in pairs(ranks) do
    if rank > 0 then
      marked = marked + 1
    end
  end
  local parts = {}
  if marked * ENTRY <= REGISTERS then
    local places = {}
    for place, rank in pairs(ranks) do
      if rank > 0 then
        places[#places + 1] = place
      end
    end
    table.sort(places)
    for i, place in ipairs(places) do
      parts[i] = char(math.floor((place - 1) / 256), (place - 1) % 256, ranks[place])
    end
    return table.concat(parts)
  end
  for place = 1, REGISTERS do
    parts[place] = ranks[place] or 0
  end
  return char(unpack(parts))
end

-- Returns the sketch with the register raised to the rank, or nil if the register is not lower.
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
    ranks[register + 1] = rank
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
    for at = 1, REGISTERS, 4 do
      local i, j, k, l = byte(text, at, at + 3)
      counts[i] = counts[i] + 1
      counts[j] = counts[j] + 1
      counts[k] = counts[k] + 1
      counts[l] = counts[l] + 1
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

-- An accumulated sketch has either its text or, while cells are folded, its ranks.
local function new()
  return {ranks = {}}
end

local function fold(acc, _, cell)
  local ranks = acc.ranks
  for place, rank in pairs(ranks_of(cell)) do
    if rank > (ranks[place] or 0) then
      ranks[place] = rank
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

-- Removes a cell from the total. Each call of `next_other` returns one of the remaining cells, then nil. It is called
-- only while some rank of the total may come from the removed cell alone. Returns whether that changed the total.
local function withdraw(acc, _, cell, next_other)
  local total = ranks_of(total_of(acc) or '')
  -- By register: the highest rank that the other cells have there.
  local doubtful, left = {}, 0
  for place, rank in pairs(ranks_of(cell)) do
    if rank > 0 and total[place] == rank then
      doubtful[place], left = 0, left + 1
    end
  end
  while left > 0 do
    local other = next_other()
    if not other then
      break
    end
    local ranks = #other ~= REGISTERS and ranks_of(other)
    for place, highest in pairs(doubtful) do
      local rank = ranks and ranks[place] or not ranks and byte(other, place) or 0
      if rank >= total[place] then
        doubtful[place], left = nil, left - 1
      elseif rank > highest then
        doubtful[place] = rank
      end
    end
  end
  if left == 0 then
    return false
  end
  for place, highest in pairs(doubtful) do
    total[place] = highest
  end
  acc.text = print_ranks(total)
  return true
end

-- Returns the sketch united with the ranks, or nil if they raise none of its registers.
local function unite(text, ranks)
  local own, is_raised = ranks_of(text), false
  for place, rank in pairs(ranks) do
    if rank > (own[place] or 0) then
      own[place], is_raised = rank, true
    end
  end
  return is_raised and print_ranks(own) or nil
end

local function change_cell(before, entry, acc)
  if entry.verb == 'merge' then
    local ranks = ranks_of(entry.a)
    local united = unite(before or '', ranks)
    local total = united and acc and unite(total_of(acc) or '', ranks)
    if total then
      acc.text = total
    end
    return united, not total and 'same' or nil
  end
  local register, rank = tonumber(entry.a), tonumber(entry.b)
  local marked = mark(before or '', register, rank)
  local total = marked and acc and mark(total_of(acc) or '', register, rank)
  if total then
    acc.text = total
  end
  return marked, not total and 'same' or nil
end

local function filling(cells)
  local changes = {}
  for i, cell in ipairs(cells) do
    if not sound(cell) then
      return {}
    end
    changes[i] = {'merge', cell}
  end
  return changes
end
