-- Which of some subjects have nothing in slots before those that an audit has found them in.
--
-- KEYS  1-5 the board (board.lua), then the slots to look in
-- ARGV  1-8 the board, 9 start that these slots are before, 10 the most slots that may be looked in, 11 how many
--       subjects, then the subjects, then the start of each of those slots, newest first: all there are before that
--       start, or as many as may be looked in
-- reply ok, now, reading, retiring, then the place of each subject, from 1, that none of these slots has
-- errors  stale_keys: other slots exist
-- cost  0.6 us for each look; a subject is not looked for any more once a slot has it: the caller names few enough
-- why a script: what of the cells is there is told without the cells, some of which are large

local early = enter()
if early then
  return early
end
local COUNT = tonumber(ARGV[11])
local FIRST = 11 + COUNT
local SLOTS = #ARGV - FIRST
local call = redis.call

local newest = call('ZREVRANGEBYSCORE', INDEX, '(' .. ARGV[9], '-inf', 'LIMIT', 0, ARGV[10])
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
      if call('HEXISTS', KEYS[5 + slot], ARGV[11 + i]) == 0 then
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
