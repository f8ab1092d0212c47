-- Returns the ranks at the newest boundary, as board.lua has noted them.
--
-- KEYS  1-5 the partition (board.lua)
-- ARGV  the partition's
-- reply ok, now, reading, retiring, the boundary or '', '1' if the ranks then are known, otherwise ''; then the lines,
--       best first: a subject, or '' if it was removed since, and its score, …
-- cost  O(lines): about 200 us for a thousand
-- why a script: ranks that are due must be noted first, before anything that comes later
--
--- @include enter
--- @arguments board.lua
--- @repeatable

local noted = call('HMGET', META, 'boundary', 'ranks')
local reply = ok()
reply[5], reply[6] = noted[1] or '', (noted[2] or '') ~= '' and '1' or ''
for _, text in ipairs(reply[6] ~= '' and cmsgpack.unpack(noted[2]) or {}) do
  reply[#reply + 1] = text
end
return reply
