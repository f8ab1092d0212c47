-- Reads what a subject has in some of its slots.
--
-- KEYS  1-5 the board (board.lua), then those of slices.lua
-- ARGV  1-8 the board, then those of slices.lua
-- reply ok, now, reading, retiring, the time of the latest value dropped for want of room or '', then start and cell of
--       every slot that holds anything, in any order; on a `counter` board its start and amount if it lives
-- cost  O(slots), or O(log values) for each slot where values are counted
-- why a script: all slots are of one instant, after the window was advanced

local early = enter()
if early then
  return early
end
return add_slices(ok())
