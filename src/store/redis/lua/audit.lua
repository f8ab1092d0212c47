-- What an audit compares: score and total of some subjects, and what they have in each slot.
--
-- KEYS  1-5 the board (board.lua), then the slots to read
-- ARGV  1-8 the board, 9 start of the first slot to read, or `-inf`, 10 the most slots that may be read, 11 how many
--       subjects, then the subjects, then the start of each of those slots: all there are from the first one on, or as
--       many as may be read
-- reply ok, now, reading, retiring, version of what the board holds or '', then for each subject: score or '', total or
--       '', how many cells, and each cell after the place of its slot, from 1
-- errors  stale_keys: other slots exist
-- cost  1 us per slot and 0.5 us per cell, 2 us per cell of 2,048 bytes: the caller names few enough
-- why a script: score, total and cells are of one instant, while writes and retiring go on

local early = read_meta('version') or advance()
if early then
  return early
end
local COUNT = tonumber(ARGV[11])
local FIRST = 11 + COUNT
local SLOTS = #ARGV - FIRST
local call = redis.call

if not names_slots_from(ARGV[9], ARGV[10], FIRST + 1, SLOTS) then
  return stale_keys()
end

local cells = {}
for i = 1, COUNT do
  cells[i] = {}
end
for slot = 1, SLOTS do
  if tonumber(ARGV[FIRST + slot]) >= dropped then
    for first = 1, COUNT, 1000 do
      local found = call('HMGET', KEYS[5 + slot], unpack(ARGV, 11 + first, 11 + math.min(first + 999, COUNT)))
      for i = 1, #found do
        if found[i] then
          local own = cells[first + i - 1]
          own[#own + 1], own[#own + 2] = slot, found[i]
        end
      end
    end
  end
end

local reply = ok()
reply[5] = asked_field or ''
for i = 1, COUNT do
  local subject = ARGV[11 + i]
  reply[#reply + 1] = call('ZSCORE', RANKING, subject) or ''
  reply[#reply + 1] = call('HGET', TOTALS, subject) or ''
  reply[#reply + 1] = #cells[i] / 2
  for j = 1, #cells[i] do
    reply[#reply + 1] = cells[i][j]
  end
end
return reply
