-- The effect of an entry on an APPROX_COUNT_DISTINCT board. Not a script of its own.
--
-- verbs  `mark` a, b: register and rank

local function prepare() end

local function apply(entry)
  local slot, who = entry.slot, entry.who
  local before, acc = cell(slot, who), acc_of(who)
  if before and not sound(before) or acc == false then
    return 'damaged'
  end
  local register, rank = tonumber(entry.a), tonumber(entry.b)
  local marked = mark(before or '', register, rank)
  if not marked then
    return
  end
  set_cell(slot, who, marked)
  if acc then
    local total = mark(total_of(acc) or '', register, rank)
    if total then
      acc.text = total
      move(who)
    end
  end
end

local function finish() end
