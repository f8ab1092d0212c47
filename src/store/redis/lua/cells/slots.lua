-- What subjects have in slots, on a ranked board: a hash per slot, subject to cell. Read once and kept here until
-- `save_cells` writes what changed, so that nothing is written before all is read. Not a script of its own.

local cells, changed = {}, {}

-- Answers the cell of a slot and a subject, by their positions; false where there is none.
local function cell(slot, who)
  cells[slot] = cells[slot] or {}
  local text = cells[slot][who]
  if text == nil then
    text = call('HGET', KEYS[FIRST_SLOT_KEY - 1 + slot], subject_of(who))
    cells[slot][who] = text
  end
  return text
end

-- Sets it; nil for none.
local function set_cell(slot, who, text)
  cells[slot][who] = text or false
  changed[slot] = changed[slot] or {}
  changed[slot][who] = true
end

-- Answers start and cell of every slot the subject has that is not subtracted yet, oldest first; nil where the call
-- does not name all slots.
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
      -- A slot that no index names would never retire, should a restart lose what follows.
      call('ZADD', INDEX, start_of(slot), start_of(slot))
      each_thousand('HSET', KEYS[FIRST_SLOT_KEY - 1 + slot], held)
    end
    if #gone > 0 then
      emptied[slot] = gone
    end
  end
  -- Deletions last: the server refuses only a first write for want of memory.
  for slot, gone in pairs(emptied) do
    local key = KEYS[FIRST_SLOT_KEY - 1 + slot]
    each_thousand('HDEL', key, gone)
    if call('EXISTS', key) == 0 then
      call('ZREM', INDEX, start_of(slot))
    end
  end
end
