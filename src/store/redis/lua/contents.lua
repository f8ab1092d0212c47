-- Returns what subjects have in live slots of a ranked board, a bounded part of it.
--
-- KEYS  1-5 the board (board.lua), then the slots to read
-- ARGV  the board's, `from`: start of the first slot to read, `slots`: the largest number of slots to read, `cursor`
--       within the first of them, number of `cells` to read, then the start of each of those slots: all that exist from
--       the first one on, but no more than that number
-- reply ok, now, reading, retiring, cursor from which to continue, number of slots that were read completely, then for
--       each slot that was read, also in part, a list: subject, cell, …
-- errors  stale_keys: other slots exist
-- cost  0.3 us per cell and 1 us per slot. A key in the compact form is always read completely: it has a few hundred
--       fields at most
-- why a script: the slots must be live when they are read, after the window was advanced

local FIRST = FIXED_ARGUMENTS
local SLOTS = #ARGV - FIRST

local early = enter()
if early then
  return early
end
if not names_slots_from(ARGV.from, ARGV.slots, FIRST + 1, SLOTS) then
  return stale_keys()
end

local reply = ok()
local cursor, whole, room = ARGV.cursor, 0, tonumber(ARGV.cells)
while whole < SLOTS and room > 0 do
  local scanned = call('HSCAN', KEYS[6 + whole], cursor, 'COUNT', room)
  reply[7 + whole] = scanned[2]
  cursor = scanned[1]
  room = room - #scanned[2] / 2 - 4
  if cursor ~= '0' then
    break
  end
  whole = whole + 1
end
reply[5], reply[6] = cursor, whole
return reply
