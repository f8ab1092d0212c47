-- Removes a subject of an unranked board, and returns what it had in some of the slots.
--
-- KEYS  1-5 the board (board.lua), 6-7 those of the subject (subject_slots.lua), 8 the subjects of the current expiry
--       period
-- ARGV  the board's, those of subject_slots.lua, the `subject`; then the starts
-- reply that of subject_slots.lua
-- errors  importing: an import is open; nothing was done
-- cost  that of subject_slots.lua; the memory of removed keys is freed in the server's background
-- why a script: exactly the data that is returned may be removed, after the window was advanced
--
--- @include subject_slots, enter_removing
--- @arguments board.lua, subject_slots.lua, subject

local reply = read_slots()
call('UNLINK', KEYS[6], KEYS[7])
call('SREM', KEYS[8], ARGV.subject)
call('HINCRBY', META, 'upheavals', 1)
return reply
