-- Returns what subjects have in live slots of a ranked board, a bounded part of it.
--
-- KEYS  1-5 the board (board.lua), then the slots to read, and perhaps one that is only named
-- ARGV  the board's, number of `cells` to read, `from`: start of the first slot to read, `slots`: the largest number of
--       slots to name, `cursor` within the first of them, number of slots to `read`, then the start of each of those
--       slots: all that exist from the first one on, but no more than `slots`
-- reply ok, now, reading, retiring, cursor from which to continue, number of slots that were read completely, then for
--       each slot that was read, also in part, a list: subject, cell, …
-- errors  stale_keys: other slots exist
-- cost  0.3 us per cell and 1 us per slot. A key in the compact form is always read completely: it has a few hundred
--       fields at most
-- why a script: the slots must be live when they are read, after the window was advanced
--
--- @include enter
--- @arguments board.lua, cells, from, slots, cursor, read
--- @repeatable

local FIRST = FIXED_ARGUMENTS
local READ = tonumber(ARGV.read)

if not names_slots_from(ARGV.from, ARGV.slots, FIRST + 1, #ARGV - FIRST) then
  return stale_keys()
end

local reply = ok()
local cursor, whole, room = ARGV.cursor, 0, tonumber(ARGV.cells)
while whole < READ and room > 0 do
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
