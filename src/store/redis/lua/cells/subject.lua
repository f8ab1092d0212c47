-- What subjects have in slots, on an unranked board: a hash per subject, start of the slot to cell, and beside them
-- `f`, the oldest slot kept when it was last cleaned. Read once and kept here until `save_cells` writes what changed.
-- Not a script of its own.

local cells, changed = {}, {}

local function subject_key(who)
  return KEYS[FIRST_SUBJECT_KEY - 1 + who]
end

-- Answers the cell of a slot and a subject, by their positions; false where there is none.
local function cell(slot, who)
  cells[who] = cells[who] or {}
  local text = cells[who][slot]
  if text == nil then
    text = call('HGET', subject_key(who), start_of(slot))
    cells[who][slot] = text
  end
  return text
end

-- Sets it; nil for none.
local function set_cell(slot, who, text)
  cells[who][slot] = text or false
  changed[who] = changed[who] or {}
  changed[who][slot] = true
end

-- Removes slots no longer kept, not at every new slot but once a sixteenth of them has gone: finding them takes a
-- look at all there are.
local function clean(key)
  local last = tonumber(call('HGET', key, 'f') or nil)
  if last and OLDEST - last < (tonumber(ARGV[6]) - OLDEST) / 16 then
    return
  end
  local gone = {}
  if last then
    for _, start in ipairs(call('HKEYS', key)) do
      if start ~= 'f' and tonumber(start) < OLDEST then
        gone[#gone + 1] = start
      end
    end
  end
  call('HSET', key, 'f', format(OLDEST))
  each_thousand('HDEL', key, gone)
end

local function save_cells()
  for who, of in pairs(changed) do
    local key, held, gone = subject_key(who), {}, {}
    for slot in pairs(of) do
      local text = cells[who][slot]
      if text then
        held[#held + 1] = start_of(slot)
        held[#held + 1] = text
      else
        gone[#gone + 1] = start_of(slot)
      end
    end
    if #held > 0 then
      each_thousand('HSET', key, held)
      clean(key)
    end
    each_thousand('HDEL', key, gone)
    if call('HLEN', key) == 1 then
      -- Nothing but `f`.
      call('DEL', key)
    elseif TTL ~= '' then
      call('PEXPIRE', key, TTL)
    end
  end
end
