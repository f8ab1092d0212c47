-- Returns those of some subjects that have no data in the slots before the one in which an audit has found them.
--
-- KEYS  1-5 the board (board.lua), then the slots to check
-- ARGV  the board's, `below`: the start before which these slots are, `slots`: the largest number of slots to check,
--       number of `subjects`, then the subjects, then the start of each of those slots, newest first: all that exist
--       before that start, but no more than that number
-- reply ok, now, reading, retiring, then the position, from 1, of each subject that none of these slots has
-- errors  stale_keys: other slots exist
-- cost  0.6 us for each check; a subject that was found in a slot is not checked in further slots; the caller limits
--       their number
-- why a script: it checks whether cells exist without returning them, because some are large
--
--- @include enter
--- @arguments board.lua, below, slots, subjects
--- @repeatable

local COUNT = tonumber(ARGV.subjects)
local FIRST = FIXED_ARGUMENTS + COUNT
local SLOTS = #ARGV - FIRST

local newest = call('ZREVRANGEBYSCORE', INDEX, '(' .. ARGV.below, '-inf', 'LIMIT', 0, ARGV.slots)
if not are_named(newest, FIRST + 1, SLOTS) then
  return stale_keys()
end

local left = {}
for i = 1, COUNT do
  left[i] = i
end
for slot = 1, SLOTS do
  if tonumber(ARGV[FIRST + slot]) >= dropped then
    local still = {}
    for _, i in ipairs(left) do
      if call('HEXISTS', KEYS[5 + slot], ARGV[FIXED_ARGUMENTS + i]) == 0 then
        still[#still + 1] = i
      end
    end
    left = still
  end
end

local reply = ok()
for _, i in ipairs(left) do
  reply[#reply + 1] = i
end
return reply
