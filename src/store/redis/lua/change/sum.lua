-- The effect of an entry on a COUNT or SUM board. Not a script of its own.
--
-- verbs  `add` a; `set` a

local function prepare() end

local function apply(entry)
  local slot, who = entry.slot, entry.who
  local before, acc = cell(slot, who), acc_of(who)
  if before and not sound(before) or acc == false then
    return 'damaged'
  end
  local held = tonumber(before or 0)
  local sum = tonumber(entry.a)
  if entry.verb == 'add' then
    sum = held + sum
  end
  if sum > BOUND or sum < -BOUND then
    return 'refused'
  end
  set_cell(slot, who, sum ~= 0 and string.format('%d', sum) or nil)
  if acc then
    acc.sum = acc.sum + (sum - held)
    move(who)
  end
end

local function finish() end
