-- The effect of an entry on a MIN or MAX board. Not a script of its own.
--
-- verbs  `add` a; `set` a

local function prepare() end

-- Computes the total from all slots again. Needs a call that names all slots.
local function rebuild(acc, who)
  local own = cells_of(who)
  if own then
    acc.stairs = ''
    for _, held in ipairs(own) do
      if sound(held[2]) then
        fold(acc, held[1], held[2])
      end
    end
  end
end

local function apply(entry)
  local slot, who = entry.slot, entry.who
  local before, acc = cell(slot, who), acc_of(who)
  if before and not sound(before) or acc == false then
    return 'damaged'
  end
  local held, extreme = before and tonumber(before), tonumber(entry.a)
  local better = not held or beats(extreme, held)
  if held == extreme or not better and entry.verb == 'add' then
    return
  end
  set_cell(slot, who, string.format('%d', extreme))
  if acc then
    local start = tonumber(start_of(slot))
    if better then
      put(acc, start, extreme)
    elseif is_step(acc, start) then
      -- A sample that is worse than the slot's previous extreme: earlier slots may become steps again.
      rebuild(acc, who)
    end
    move(who)
  end
end

local function finish() end
