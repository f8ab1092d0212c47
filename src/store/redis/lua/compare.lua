-- Reads what subjects have in two tracks of a partition, at one instant.
--
-- KEYS  for each of the two tracks: 1-5 the board (board.lua), then on an unranked track the key of each subject that
--       has its data
-- ARGV  for each track: the board's (board.lua), those of the operation (operation.lua), which are not used, `sizes`
--       (tracks.lua), `stored`: how the track stores subjects: `ranked`, `subject`, `seen` or `counter`; `life`:
--       duration of a counter's window in ms, or ''; then the subjects
-- reply ok, now, reading, retiring; then for each track the number of its retiring slots, and for each subject: its
--       score or '', if ranked; the number of its values, or ''; a list of start and amount of its counter, empty if
--       its window has ended; or a list of start and cell of each slot of the window
-- cost  O(1) for each subject and track, O(slots) if unranked
-- why a script: what a subject has in both tracks must be of one instant
--
--- @each_track operation
--- @include enter_all
--- @arguments board.lua, operation.lua, sizes, stored, life
--- @repeatable

local reply = main.ok()
local now = reply[2]

-- Each function receives a track, and the position of a subject from 1, and returns what it has.
local read = {}

function read.subject(track, number)
  local cells, held = {}, call('HGETALL', track.keys[5 + number])
  local floor, head = tonumber(track.argv.floor), tonumber(track.argv.head)
  for i = 1, #held, 2 do
    local start = tonumber(held[i])
    if start and start >= floor and start <= head then
      cells[#cells + 1], cells[#cells + 2] = held[i], held[i + 1]
    end
  end
  return cells
end

function read.seen(track, number)
  local count = call('ZCOUNT', track.keys[5 + number], track.argv.floor, '+inf')
  return count > 0 and string.format('%.0f', count) or ''
end

function read.counter(track, number)
  local held = call('HMGET', track.keys[5 + number], 's', 'a')
  local start = tonumber(held[1] or nil)
  local lives = start and held[2] and now < start + tonumber(track.argv.life)
  return lives and {held[1], held[2]} or {}
end

for _, track in ipairs(tracks) do
  reply[#reply + 1] = track.ok()[4]
  local subjects = #track.argv - FIXED_ARGUMENTS
  if track.argv.stored == 'ranked' then
    -- A call has few subjects.
    local scores = subjects > 0 and track.scores_of(track.argv, FIXED_ARGUMENTS + 1) or {}
    for i = 1, subjects do
      reply[#reply + 1] = scores[i] or ''
    end
  else
    for i = 1, subjects do
      reply[#reply + 1] = read[track.argv.stored](track, i)
    end
  end
end
return reply
