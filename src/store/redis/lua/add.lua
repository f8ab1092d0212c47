-- Adds amounts without ids to different subjects of one slot, exactly once, even if the reply is lost. It does the same
-- as write.lua for the most frequent case, in which nothing needs special handling.
--
-- KEYS  1 meta, 2 slot, 3 ranking
-- ARGV  1-8 the board (board.lua), 9 and 10 the operation (operation.lua), 11 bound of a (slot, subject), then the
--       subjects, then the amount of each
-- reply ok, now, reading, retiring: all were counted; or `unusual`: nothing was done, and write.lua must be called with
--       the same sequence number: the window has moved, the slot is new, a sum is 0 or out of range, or data is damaged
-- cost  O(log subjects) per entry: 1.5-3 us, and 15-20 us for the call with its socket. The script has no functions of
--       its own and names no key that it does not use, because each of these would cost as much as an entry
-- why a script: the reasons of write.lua

local redis_call, argv = redis.call, ARGV
local meta = redis_call('HMGET', KEYS[1], 'generation', 'head', 'retiring', 'o:' .. argv[10])
local now, reading = nil, nil
if argv[1] == 'system' then
  local time = redis_call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  reading = now
else
  now = tonumber(argv[3])
  reading = now
end
if meta[4] then
  local done, sequence = tonumber(string.match(meta[4], '^%d+')), tonumber(argv[9])
  if done == sequence then
    local at, packed = string.match(meta[4], '^%d+:(%d+):(.*)$')
    return packed ~= '' and cmsgpack.unpack(packed) or {'ok', tonumber(at), tonumber(at), tonumber(meta[3] or 0)}
  elseif not done or done > sequence then
    return {'unusual'}
  end
end
if meta[1] ~= argv[4] or meta[2] ~= argv[6] or not meta[3]
    or reading > tonumber(argv[2]) or now < tonumber(argv[7]) or now >= tonumber(argv[8]) then
  return {'unusual'}
end

local entries, bound, format = (#argv - 11) / 2, tonumber(argv[11]), string.format
local last = 11 + entries
local amounts = redis_call('HMGET', KEYS[2], unpack(argv, 12, last))
local scores = redis_call('ZMSCORE', KEYS[3], unpack(argv, 12, last))
local slot_pairs, rank_pairs, is_new = {}, {}, true
for i = 1, entries do
  local subject, sum = argv[11 + i], tonumber(argv[last + i])
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
  'HSET', KEYS[1], 'version', argv[10] .. ':' .. argv[9], 'o:' .. argv[10], argv[9] .. ':' .. format('%.0f', now) .. ':')
return {'ok', now, reading, tonumber(meta[3])}
