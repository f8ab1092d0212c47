-- Begins a call about several tracks that is no write operation: enters all of them as enter.lua does, at one time. Not
-- a script of its own.
--
--- @include tracks

local time, reading = main.read_clock()
for _, track in ipairs(tracks) do
  local early = track.read_meta()
  if early then
    return early
  end
  time = math.max(time, track.head())
end
for _, track in ipairs(tracks) do
  local early = track.advance(time, reading)
  if early then
    return early
  end
end
