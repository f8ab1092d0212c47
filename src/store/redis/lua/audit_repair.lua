-- Sets score and total of some subjects to the values computed from their slots, each only if nothing has changed since
-- the slots were read.
--
-- KEYS  1-5 the board (board.lua), then, to compare the cells, every slot that exists
-- ARGV  the board's, `version`: a new board version, `read_at`: the board version at which everything was read, or ''
--       to compare the cells, number of `subjects`, number of `slots`, then the start of each slot; then for each
--       subject: subject, score or '' and total or '' as they were read, score or '' and total or '' to set; and, to
--       compare the cells, their number, and for each the position of its slot, from 1, and the cell
-- reply ok, now, reading, retiring, then for each subject 1 if it is set, 0 if something has changed
-- cost  4 us per subject; to compare the cells 1 us per slot and 0.5 us per cell, 2 us per cell of 2,048 bytes
-- why a script: a write between the reading and this script would be lost
--
--- @include rankings, enter
--- @arguments board.lua, version, read_at, subjects, slots
--- @repeatable

local COUNT, SLOTS = tonumber(ARGV.subjects), tonumber(ARGV.slots)
local BY_CELLS = ARGV.read_at == ''

local names, wanted = {}, {}
local at = FIXED_ARGUMENTS + 1 + SLOTS
for i = 1, COUNT do
  local cells = {}
  names[i] = ARGV[at]
  wanted[i] = {
    was_score = ARGV[at + 1], was_total = ARGV[at + 2], score = ARGV[at + 3], total = ARGV[at + 4], cells = cells
  }
  at = at + 5
  if BY_CELLS then
    local last = at + 2 * tonumber(ARGV[at])
    for cell = at + 1, last, 2 do
      cells[tonumber(ARGV[cell])] = ARGV[cell + 1]
    end
    at = last + 1
  end
end

-- is_same: whether nothing has changed for any subject. differs: by subject, whether its cells have changed.
local is_same, differs = nil, {}
if BY_CELLS then
  is_same = names_all_slots(FIXED_ARGUMENTS + 1, SLOTS)
  for slot = 1, is_same and SLOTS or 0 do
    if tonumber(ARGV[FIXED_ARGUMENTS + slot]) >= dropped then
      local found = call('HMGET', KEYS[5 + slot], unpack(names))
      for i = 1, COUNT do
        differs[i] = differs[i] or (found[i] or nil) ~= wanted[i].cells[slot]
      end
    end
  end
else
  is_same = asked_field == ARGV.read_at
  if not asked_field then
    -- Give the board a version, by which the next reading can detect changes.
    touch(ARGV.version)
  end
end

local held, lines, without, unranked, done = {}, {}, {}, {}, {}
for i = 1, COUNT do
  local name, to = names[i], wanted[i]
  local score, total = held_score(name) or '', call('HGET', TOTALS, name) or ''
  if total == to.total and tonumber(score) == tonumber(to.score) then
    -- An earlier attempt of this call has set it.
    done[i] = 1
  elseif is_same and not differs[i] and score == to.was_score and total == to.was_total then
    done[i] = 1
    if to.total ~= '' then
      held[#held + 1], held[#held + 2] = name, to.total
    else
      without[#without + 1] = name
    end
    if to.score ~= '' then
      lines[#lines + 1], lines[#lines + 2] = to.score, name
    else
      unranked[#unranked + 1] = name
    end
  else
    done[i] = 0
  end
end
-- Deletions come last: if memory is full, the server refuses only the first write of a script.
each_thousand('HSET', TOTALS, held)
rank(lines)
each_thousand('HDEL', TOTALS, without)
unrank(unranked)
if #held + #lines + #without + #unranked > 0 then
  touch(ARGV.version)
end

local reply = ok()
for i = 1, COUNT do
  reply[#reply + 1] = done[i]
end
return reply
