-- Reads some of the slots of one subject.
--
-- KEYS  1-5 the board (board.lua), then those of slices.lua
-- ARGV  1-8 the board, then those of slices.lua
-- reply ok, now, reading, retiring, the time of the latest value dropped because of the limit or '', then start and
--       cell of every slot that has data, in any order; on a `counter` board the start and amount of the counter if its
--       window has not ended
-- cost  O(slots), or O(log values) for each slot on a `seen` board
-- why a script: all slots must be of one instant, after the window was advanced

local early = enter()
if early then
  return early
end
return add_slices(ok())
