-- Reads some of the slots of one subject of an unranked board.
--
-- KEYS  1-5 the board (board.lua), 6-7 those of the subject (subject_slots.lua)
-- ARGV  the board's, those of subject_slots.lua
-- reply that of subject_slots.lua
-- cost  that of subject_slots.lua
-- why a script: all slots must be of one instant, after the window was advanced
--
--- @include subject_slots, enter
--- @arguments board.lua, subject_slots.lua
--- @repeatable

return read_slots()
