-- Adds amounts without ids to different subjects of one slot, exactly once, even if the reply is lost. It does the same
-- as write.lua for the most frequent case, in which nothing needs special handling.
--
-- KEYS  1 meta, 2 slot, 3 ranking
-- ARGV  the board's (board.lua), those of the operation (operation.lua), `bound` of a (slot, subject), start of the
--       `slot`, number of `items` that the amounts come from; then the subjects, then the amount of each
-- reply ok, now, reading, retiring: all were counted; or `unusual`: nothing was done, and write.lua must be called with
--       the same sequence number: the window has moved, the slot is new, a sum is 0 or out of range, or data is damaged
-- cost  O(log subjects) per entry: 1.5-3 us, and 15-20 us for the call with its socket. The script has no functions of
--       its own and names no key that it does not use, because each of these would cost as much as an entry
-- why a script: the reasons of write.lua

local redis_call, argv = redis.call, ARGV
local EVENTS = 'e:' .. argv.slot
local meta = redis_call('HMGET', KEYS[1], 'generation', 'head', 'retiring', 'o:' .. argv.write_lane, EVENTS)
local now, reading = nil, nil
if argv.clock == 'system' then
  local time = redis_call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  reading = now
else
  now = tonumber(argv.time)
  reading = now
end
if meta[4] then
  local done, sequence = tonumber(string.match(meta[4], '^%d+')), tonumber(argv.sequence)
  if done == sequence then
    local at, packed = string.match(meta[4], '^%d+:(%d+):(.*)$')
    return packed ~= '' and cmsgpack.unpack(packed) or {'ok', tonumber(at), tonumber(at), tonumber(meta[3] or 0)}
  elseif not done or done > sequence then
    return {'unusual'}
  end
end
if meta[1] ~= argv.generation or meta[2] ~= argv.head or not meta[3]
    or reading > tonumber(argv.believable) or now < tonumber(argv.valid_from) or now >= tonumber(argv.valid_until) then
  return {'unusual'}
end

local entries, bound, format = (#argv - FIXED_ARGUMENTS) / 2, tonumber(argv.bound), string.format
local last = FIXED_ARGUMENTS + entries
local amounts = redis_call('HMGET', KEYS[2], unpack(argv, FIXED_ARGUMENTS + 1, last))
local scores = redis_call('ZMSCORE', KEYS[3], unpack(argv, FIXED_ARGUMENTS + 1, last))
local slot_pairs, rank_pairs, is_new = {}, {}, true
for i = 1, entries do
  local subject, sum = argv[FIXED_ARGUMENTS + i], tonumber(argv[last + i])
  local score, before = sum, amounts[i]
  if before then
    is_new = false
    before = tonumber(before)
    if not before or before % 1 ~= 0 then
      return {'unusual'}
    end
    sum = sum + before
  end
  if scores[i] then
    score = score + scores[i]
  end
  if sum == 0 or score == 0 or sum > bound or sum < -bound then
    return {'unusual'}
  end
  local at = i * 2
  slot_pairs[at - 1], slot_pairs[at] = subject, format('%d', sum)
  rank_pairs[at - 1], rank_pairs[at] = format('%d', score), subject
end
-- The index of slots must name a slot before the slot has data. So a new slot is left to write.lua.
if is_new and redis_call('EXISTS', KEYS[2]) == 0 then
  return {'unusual'}
end
redis_call('HSET', KEYS[2], unpack(slot_pairs))
redis_call('ZADD', KEYS[3], unpack(rank_pairs))
redis_call(
  'HSET', KEYS[1], EVENTS, format('%.0f', (tonumber(meta[5]) or 0) + argv.items), 'version', argv.write_lane .. ':' .. argv.sequence,
  'o:' .. argv.write_lane, argv.sequence .. ':' .. format('%.0f', now) .. ':')
return {'ok', now, reading, tonumber(meta[3])}
