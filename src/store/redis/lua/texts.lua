-- Returns fields of a hash of a part: sheets of a track, or attributes of subjects.
--
-- KEYS  1-5 the part (board.lua), 6 the hash
-- ARGV  the part's, then the names of the fields, at least one
-- reply ok, now, reading, retiring, then the text of each field, or nil
-- cost  O(bytes of the texts)
-- why a script: generation and epoch of the part are checked
--
--- @include enter
--- @arguments board.lua
--- @repeatable

local reply = ok()
for i, text in ipairs(read_thousands('HMGET', KEYS[6], ARGV, FIXED_ARGUMENTS + 1, #ARGV)) do
  reply[4 + i] = text
end
return reply
