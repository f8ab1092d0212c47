-- Ends a fill of one track from another one of the same partition: gives its slots the numbers of items.
--
-- KEYS  for each of the two tracks, first the one that has given, then the one that has received: 1-5 the board
--       (board.lua); for the first one 6: meta of the partition
-- ARGV  for each track: the board's (board.lua), those of the operation (operation.lua), which are not used, `sizes`
--       (tracks.lua), `run` id of the server or '' if it is not known, `ends`: not '' in the call about the last tracks
--       of the partition; then for the first track, for each slot of the second one that is to get a number: its start,
--       how many slots of the first track are in it, their starts
-- reply ok, now, reading, retiring
-- cost  1 us for each slot
-- why a script: no write may come between reading and setting a number, and each counts in both tracks
--
--- @each_track operation
--- @include enter_all
--- @arguments board.lua, operation.lua, sizes, run, ends
--- @repeatable

local from, to = tracks[1], tracks[2]
local PARTITION = KEYS[6]
local argv = from.argv
local at = FIXED_ARGUMENTS + 1
while argv[at] do
  local start, count, sum = argv[at], tonumber(argv[at + 1]), 0
  for first = at + 2, at + 1 + count, 1000 do
    local fields = {}
    for i = first, math.min(first + 999, at + 1 + count) do
      fields[#fields + 1] = 'e:' .. argv[i]
    end
    for _, items in ipairs(call('HMGET', from.keys[1], unpack(fields))) do
      sum = sum + (tonumber(items or nil) or 0)
    end
  end
  if sum > 0 then
    call('HSET', to.keys[1], 'e:' .. start, string.format('%.0f', sum))
  end
  at = at + 2 + count
end
local reply = from.ok()
if ARGV.ends ~= '' then
  call('HSET', PARTITION, 'n:filled', string.format('%.0f', reply[2]), 'n:run', ARGV.run)
end
return reply
