-- One window of a board, with the keys and arguments of this window: what change.lua does with each of them. Not a
-- script of its own.

-- The entries, and by slot the number of items that were counted.
local entries, counted = {}, {}

local window = {
  entries = entries,
  missing = missing,
  is_duplicate = is_duplicate,
  field_of = field_of,
  read_ids = read_ids,
  note_arrival = note_arrival,
  save_ids = save_ids,
  read_clock = read_clock,
  advance = advance,
  ok = ok,
  record = record,
  record_unchanged = record_unchanged,
  prepare = prepare,
  check = check,
  apply = apply,
  score_text = score_text,
}

-- Checks the window's meta. Returns nil, or the reply with which to end the script.
function window.enter()
  return read_meta(FIELD)
end

function window.recorded()
  return recorded()
end

-- Returns the head before this script.
function window.head()
  return previous_head
end

-- Reads what all entries need.
function window.open()
  -- There is no rollback. So everything that may fail, such as a key of a wrong type, is read before the first write.
  call('ZCARD', RANKING)
  for i = 1, ENTRIES do
    entries[i] = entry_at(i)
  end
  fetch(entries)
end

-- Returns the number of further cells that the entries have looked at.
function window.looked_at()
  return looked_at
end

-- Counts the items of an entry that is applied.
function window.count(entry)
  if SLOTS > 0 then
    counted[entry.slot] = (counted[entry.slot] or 0) + 1 + math.floor(entry.code / 2)
  end
end

function window.save()
  save()
  finish()
  for slot, items in pairs(counted) do
    count_events(start_of(slot), items)
  end
end

-- Sets the window's version. The main window gets it when the reply is recorded.
function window.touch()
  touch(WRITE_LANE .. ':' .. SEQUENCE)
end
