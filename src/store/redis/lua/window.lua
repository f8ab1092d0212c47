-- One window of a board, with the keys and arguments of this window: what change.lua uses of the parts before this one.
-- Not a script of its own.

local window = {
  -- Filled by change.lua: the entries, and by slot the number of items that were counted.
  entries = {},
  counted = {},
  has_slots = SLOTS > 0,
  size = ENTRIES,
  ranking = RANKING,
  missing = missing,
  work = work,
  entry_at = entry_at,
  start_of = start_of,
  subject_of = subject_of,
  each_thousand = each_thousand,
  ok = ok,
  touch = touch,
  record = record,
  record_unchanged = record_unchanged,
  count_events = count_events,
  fetch = fetch,
  prepare = prepare,
  cell_of = cell_of,
  cell_from = cell_from,
  total_entry = total_entry,
  check = check,
  apply = apply,
  save = save,
  finish = finish,
  score_text = score_text,
}
