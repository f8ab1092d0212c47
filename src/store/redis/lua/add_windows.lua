-- Adds amounts without ids to different subjects, in one slot of each window of a board with further windows, exactly
-- once, even if the reply is lost. It does the same as change.lua for the most frequent case, in which nothing needs
-- special handling.
--
-- KEYS  for each window, the main window first: 1 meta, 2 slot, 3 ranking
-- ARGV  the board's (board.lua), those of the operation (operation.lua), `bound` of a (slot, subject) of the main window,
--       start of its `slot`, number of `items` that the amounts come from, number of `further` windows; then for each
--       further window: generation, head, bound, start of its slot; then the subjects, then the amount of each
-- reply ok, now, reading, retiring of the main window: all were counted in all windows; or `unusual`: nothing was done,
--       and change.lua must be called with the same sequence number: a window has moved, a slot is new, a sum is 0 or out
--       of range, or data is damaged
-- cost  O(log subjects) per entry and window: 1.5-3 us, and 15-20 us for the call with its socket, and 6-9 us for each
--       further window. The script has no functions of its own, because each of these would cost as much as an entry
-- why a script: the reasons of change.lua

local redis_call, argv, keys = redis.call, ARGV, KEYS
local meta = redis_call(
  'HMGET', KEYS[1], 'generation', 'head', 'retiring', 'e:' .. argv.slot, 'o:' .. argv.write_lane)
local now, reading = nil, nil
if argv.clock == 'system' then
  local time = redis_call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  reading = now
else
  now = tonumber(argv.time)
  reading = now
end
if meta[5] then
  local done, sequence = tonumber(string.match(meta[5], '^%d+')), tonumber(argv.sequence)
  if done == sequence then
    local at, packed = string.match(meta[5], '^%d+:(%d+):(.*)$')
    return packed ~= '' and cmsgpack.unpack(packed) or {'ok', tonumber(at), tonumber(at), tonumber(meta[3] or 0)}
  elseif not done or done > sequence then
    return {'unusual'}
  end
end
if reading > tonumber(argv.believable) or now < tonumber(argv.valid_from) or now >= tonumber(argv.valid_until) then
  return {'unusual'}
end

local windows, format = tonumber(argv.further) + 1, string.format
local first = FIXED_ARGUMENTS + 4 * (windows - 1) + 1
local entries = (#argv - first + 1) / 2
local last = first + entries - 1
-- By window: the number of events of its slot, and the pairs to write.
local events, slot_pairs, rank_pairs = {}, {}, {}
for w = 1, windows do
  local generation, head, bound, start = argv.generation, argv.head, argv.bound, argv.slot
  local slot = keys[3 * w - 1]
  if w > 1 then
    local at = FIXED_ARGUMENTS + 4 * (w - 2)
    generation, head, bound, start = argv[at + 1], argv[at + 2], argv[at + 3], argv[at + 4]
    meta = redis_call('HMGET', keys[3 * w - 2], 'generation', 'head', 'retiring', 'e:' .. start)
  end
  if meta[1] ~= generation or meta[2] ~= head or not meta[3] then
    return {'unusual'}
  end
  bound = tonumber(bound)
  events[w] = {'e:' .. start, format('%.0f', (tonumber(meta[4]) or 0) + argv.items), meta[3]}
  local amounts = redis_call('HMGET', slot, unpack(argv, first, last))
  local scores = redis_call('ZMSCORE', keys[3 * w], unpack(argv, first, last))
  local cells, ranks, is_new = {}, {}, true
  for i = 1, entries do
    local subject, sum = argv[first - 1 + i], tonumber(argv[last + i])
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
    cells[at - 1], cells[at] = subject, format('%d', sum)
    ranks[at - 1], ranks[at] = format('%d', score), subject
  end
  -- The index of slots must name a slot before the slot has data. So a new slot is left to change.lua.
  if is_new and redis_call('EXISTS', slot) == 0 then
    return {'unusual'}
  end
  slot_pairs[w], rank_pairs[w] = cells, ranks
end

local version = argv.write_lane .. ':' .. argv.sequence
-- The main window comes last, because its meta has the record of the operation.
for w = windows, 1, -1 do
  redis_call('HSET', keys[3 * w - 1], unpack(slot_pairs[w]))
  redis_call('ZADD', keys[3 * w], unpack(rank_pairs[w]))
  if w > 1 then
    redis_call('HSET', keys[3 * w - 2], events[w][1], events[w][2], 'version', version)
  end
end
redis_call(
  'HSET', KEYS[1], events[1][1], events[1][2], 'version', version, 'o:' .. argv.write_lane,
  argv.sequence .. ':' .. format('%.0f', now) .. ':')
return {'ok', now, reading, tonumber(events[1][3])}
