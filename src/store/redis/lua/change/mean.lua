-- The effect of an entry on an AVG board. Not a script of its own.
--
-- verbs  `add` a: one measurement; `undo` a: its retraction; `set` a, b: sum and count

local function prepare() end

local function apply(entry)
  local slot, who = entry.slot, entry.who
  local before, acc = cell(slot, who), acc_of(who)
  local held_sum, held_count = 0, 0
  if before then
    held_sum, held_count = parse(before)
  end
  if not held_sum or acc == false then
    return 'damaged'
  end
  local sum, count = tonumber(entry.a), tonumber(entry.b)
  if entry.verb == 'add' then
    sum, count = held_sum + sum, held_count + 1
  elseif entry.verb == 'undo' then
    sum, count = held_sum - sum, held_count - 1
  end
  if sum > BOUND or sum < -BOUND or count > BOUND or count < -BOUND then
    return 'refused'
  end
  set_cell(slot, who, print_mean(sum, count))
  if acc then
    acc.sum, acc.count = acc.sum + (sum - held_sum), acc.count + (count - held_count)
    move(who)
  end
end

local function finish() end
