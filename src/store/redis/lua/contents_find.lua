-- Returns subjects that were written to in an expiry period and in no later one.
--
-- KEYS  1-5 the board (board.lua), 6 the periods that exist, then the subjects of some periods
-- ARGV  the board's, `from`: number of the first period, `cursor` within it, number of `subjects` to look at, then the
--       numbers of those periods: all that exist from the first one on, oldest first
-- reply ok, now, reading, retiring, `found`, cursor from which to continue, then the subjects; or `periods`, then the
--       numbers of the periods that exist from the first one on, if they are not those that the call names
-- cost  0.3 us per subject and period
-- why a script: a subject that moves to a later period in between would be found in none of them, or in both
--
--- @include enter
--- @arguments board.lua, from, cursor, subjects
--- @repeatable

local FIRST_NUMBER = FIXED_ARGUMENTS + 1
local PERIODS, NAMED = KEYS[6], #ARGV - FIXED_ARGUMENTS

local reply = ok()
local numbers = call('ZRANGEBYSCORE', PERIODS, ARGV.from, '+inf')
if not are_named(numbers, FIRST_NUMBER, NAMED) then
  reply[5] = 'periods'
  for i, number in ipairs(numbers) do
    reply[5 + i] = number
  end
  return reply
end
reply[5], reply[6] = 'found', '0'
if NAMED == 0 then
  return reply
end
local scanned = call('SSCAN', KEYS[7], ARGV.cursor, 'COUNT', ARGV.subjects)
local subjects = scanned[2]
reply[6] = scanned[1]
for period = 2, NAMED do
  local left = {}
  for i, is_later in ipairs(read_thousands('SMISMEMBER', KEYS[6 + period], subjects, 1, #subjects)) do
    if is_later == 0 then
      left[#left + 1] = subjects[i]
    end
  end
  subjects = left
end
for _, subject in ipairs(subjects) do
  reply[#reply + 1] = subject
end
return reply
