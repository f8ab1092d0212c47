-- Cells of a ranked board: one hash per slot, subject to cell. Each cell is read once and kept in memory until
-- `save_cells` writes the changes, so that nothing is written before everything is read. Not a script of its own.

local cells, changed = {}, {}

-- Returns the cell of a slot and a subject, given by their positions, or false if there is none.
local function cell(slot, who)
  cells[slot] = cells[slot] or {}
  local text = cells[slot][who]
  if text == nil then
    text = call('HGET', KEYS[FIRST_SLOT_KEY - 1 + slot], subject_of(who))
    cells[slot][who] = text
  end
  return text
end

-- Sets the cell, or removes it if `text` is nil.
local function set_cell(slot, who, text)
  cells[slot][who] = text or false
  changed[slot] = changed[slot] or {}
  changed[slot][who] = true
end

-- Returns start and cell of every slot in which the subject has data that is not subtracted yet, oldest first. Returns
-- nil if the call does not name all slots.
local function cells_of(who)
  for _, start in ipairs(call('ZRANGEBYSCORE', INDEX, format(dropped), '+inf')) do
    position(start)
  end
  if #missing > 0 then
    return nil
  end
  looked_at = looked_at + SLOTS
  local own = {}
  for slot = 1, SLOTS do
    local start = tonumber(start_of(slot))
    local text = start >= dropped and cell(slot, who)
    if text then
      own[#own + 1] = {start, text}
    end
  end
  return own
end

local function save_cells()
  local emptied = {}
  for slot, of in pairs(changed) do
    local held, gone = {}, {}
    for who in pairs(of) do
      local text = cells[slot][who]
      if text then
        held[#held + 1] = subject_of(who)
        held[#held + 1] = text
      else
        gone[#gone + 1] = subject_of(who)
      end
    end
    if #held > 0 then
      -- The index is written first: if a restart loses the rest, a slot that the index does not name would never
      -- retire.
      call('ZADD', INDEX, start_of(slot), start_of(slot))
      each_thousand('HSET', KEYS[FIRST_SLOT_KEY - 1 + slot], held)
    end
    if #gone > 0 then
      emptied[slot] = gone
    end
  end
  -- Deletions come last: if memory is full, the server refuses only the first write of a script.
  for slot, gone in pairs(emptied) do
    local key = KEYS[FIRST_SLOT_KEY - 1 + slot]
    each_thousand('HDEL', key, gone)
    if call('EXISTS', key) == 0 then
      call('ZREM', INDEX, start_of(slot))
    end
  end
end
