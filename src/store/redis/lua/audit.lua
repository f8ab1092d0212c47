-- Reads the data that an audit compares: score and total of some subjects, and their cells.
--
-- KEYS  1-5 the board (board.lua), then the slots to read
-- ARGV  the board's, `from`: start of the first slot to read, or `-inf`, `slots`: the largest number of slots to read,
--       number of `subjects`, then the subjects, then the start of each of those slots: all that exist from the first
--       one on, but no more than that number
-- reply ok, now, reading, retiring, the board's version or '', then for each subject: score or '', total or '', number
--       of cells, and for each cell the position of its slot, from 1, and the cell
-- errors  stale_keys: other slots exist
-- cost  1 us per slot and 0.5 us per cell, 2 us per cell of 2,048 bytes; the caller limits their number
-- why a script: score, total and cells must be of one instant, while writes and retiring go on
--
--- @include rankings, enter
--- @arguments board.lua, from, slots, subjects
--- @repeatable

local COUNT = tonumber(ARGV.subjects)
local FIRST = FIXED_ARGUMENTS + COUNT
local SLOTS = #ARGV - FIRST

if not names_slots_from(ARGV.from, ARGV.slots, FIRST + 1, SLOTS) then
  return stale_keys()
end

local cells = {}
for i = 1, COUNT do
  cells[i] = {}
end
for slot = 1, SLOTS do
  if tonumber(ARGV[FIRST + slot]) >= dropped then
    for i, cell in ipairs(read_thousands('HMGET', KEYS[5 + slot], ARGV, FIXED_ARGUMENTS + 1, FIRST)) do
      if cell then
        local own = cells[i]
        own[#own + 1], own[#own + 2] = slot, cell
      end
    end
  end
end

local reply = ok()
reply[5] = asked_field or ''
for i = 1, COUNT do
  local subject = ARGV[FIXED_ARGUMENTS + i]
  reply[#reply + 1] = held_score(subject) or ''
  reply[#reply + 1] = call('HGET', TOTALS, subject) or ''
  reply[#reply + 1] = #cells[i] / 2
  for j = 1, #cells[i] do
    reply[#reply + 1] = cells[i][j]
  end
end
return reply
