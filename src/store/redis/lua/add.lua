-- Adds amounts without ids to different subjects, in one slot of each track of a board, exactly once, even if the reply
-- is lost. It does the same as write.lua for the most frequent case, in which nothing needs special handling.
--
-- KEYS  for each track, the main one first: meta, slot, ranking; then, for a step of a source, the hash of what is reached
-- ARGV  the board's (board.lua), those of the operation (operation.lua), number of `items` that the amounts come from,
--       number of `tracks`, number of `keys` of the subjects, 0 on a board without keys, `fence` as in begin.lua; then for each track:
--       generation, head, bound of a (slot, subject), start of its slot; then the subjects, then the amount of each;
--       then, on a board with keys, where subjects of one key come one after the other: the name of each subject, then
--       each key with the number of its subjects
-- reply ok, now, reading, retiring of the main track: all were counted in all tracks; or `unusual`: nothing was done,
--       and write.lua must be called with the same sequence number: generation, epoch or head differ, the arguments are
--       not valid now, the clock is not believed, a slot or a key is new, a sum or a score is 0 or out of range, data
--       is damaged, something is set for a subject (hidden.lua), or a later operation of this lane was done
-- cost  O(log subjects) per entry and track: 1.5-3 us, and 15-20 us for the call with its socket, and 6-9 us for each
--       further track. The script has no functions of its own and names no key that it does not use, because each of
--       these would cost as much as an entry
-- why a script: the reasons of write.lua
--
--- @arguments board.lua, operation.lua, items, tracks, keys, fence

local redis_call, argv, keys, format = redis.call, ARGV, KEYS, string.format
local now = tonumber(argv.time)
if argv.clock == 'system' then
  local time = redis_call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
-- As in rankings.lua.
local CHANGING = 2 ^ 40
local is_valid = now <= tonumber(argv.believable)
    and now >= tonumber(argv.valid_from) and now < tonumber(argv.valid_until)
local tracks, record = tonumber(argv.tracks), 'o:' .. argv.write_lane
local first, of_keys = FIXED_ARGUMENTS + 4 * tracks + 1, tonumber(argv.keys)
local entries = (#argv - first + 1 - 2 * of_keys) / (of_keys > 0 and 3 or 2)
local last = first + entries - 1
-- The position of the first member of a ranking: a subject, or its name; and that of the first key.
local first_member = of_keys > 0 and last + entries + 1 or first
local first_key = first_member + entries
-- By track: its meta data, the pairs to write, and if there are several rankings, how their names begin, and the number
-- of subjects that are new to them.
local metas, slot_pairs, rank_pairs, prefixes, added = {}, {}, {}, {}, {}
for t = 1, tracks do
  local at, slot = FIXED_ARGUMENTS + 4 * (t - 1), keys[3 * t - 1]
  local bound = tonumber(argv[at + 3])
  -- Only the main track has a record of the operation.
  local meta = redis_call('HMGET', keys[3 * t - 2], 'generation', 'head', 'retiring', 'e:' .. argv[at + 4], 'epoch', record, 'marks')
  if meta[6] then
    local done, sequence = tonumber(string.match(meta[6], '^%d+')), tonumber(argv.sequence)
    if done == sequence then
      local at_time, packed = string.match(meta[6], '^%d+:(%d+):(.*)$')
      return packed ~= '' and cmsgpack.unpack(packed)
          or {'ok', tonumber(at_time), tonumber(at_time), tonumber(meta[3] or 0)}
    elseif not done or done > sequence then
      return {'unusual'}
    end
  end
  -- Ranks that are due are noted by write.lua. A track without a boundary notes none, or none that are known.
  local noted = argv.boundary ~= '' and redis_call('HGET', keys[3 * t - 2], 'boundary')
  if noted and noted ~= argv.boundary then
    return {'unusual'}
  end
  if not is_valid or meta[1] ~= argv[at + 1] or (meta[5] or '0') ~= argv.epoch or meta[2] ~= argv[at + 2]
      or not meta[3] then
    return {'unusual'}
  end
  -- A subject for which something is set is left to write.lua.
  if meta[7] then
    local letters = redis_call('HMGET', meta[7], unpack(argv, first, last))
    for i = 1, entries do
      if letters[i] then
        return {'unusual'}
      end
    end
  end
  local amounts = redis_call('HMGET', slot, unpack(argv, first, last))
  local scores
  if of_keys == 0 then
    scores = redis_call('ZMSCORE', keys[3 * t], unpack(argv, first, last))
  else
    -- The names are those of board.lua and rankings.lua.
    local epoch, member = redis_call('HGET', keys[3 * t - 2], 'dropped'), first_member
    prefixes[t] = string.sub(keys[3 * t], 1, -2) .. 'r:' .. epoch .. ':'
    scores, added[t] = {}, 0
    for at = first_key, #argv, 2 do
      local next_member, is_first = member + argv[at + 1], false
      local found = redis_call('ZMSCORE', prefixes[t] .. argv[at], unpack(argv, member, next_member - 1))
      for i = 1, #found do
        scores[member - first_member + i] = found[i]
        if not found[i] then
          added[t], is_first = added[t] + 1, true
        end
      end
      -- The list of keys must name a key before it has a ranking. So a new key is left to write.lua.
      if is_first and not redis_call('ZSCORE', keys[3 * t] .. ':' .. epoch, argv[at]) then
        return {'unusual'}
      end
      member = next_member
    end
  end
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
    if sum == 0 or score == 0 or sum > bound or sum < -bound or of_keys > 0 and sum < 0 then
      return {'unusual'}
    end
    local pair = i * 2
    cells[pair - 1], cells[pair] = subject, format('%d', sum)
    ranks[pair - 1], ranks[pair] = format('%d', score), argv[first_member - 1 + i]
  end
  -- The index of slots must name a slot before the slot has data. So a new slot is left to write.lua.
  if is_new and redis_call('EXISTS', slot) == 0 then
    return {'unusual'}
  end
  metas[t], slot_pairs[t], rank_pairs[t] = meta, cells, ranks
end

local source, reached, reached_after
if argv.fence ~= '' then
  source, reached, reached_after = string.match(argv.fence, '^(%d+) (%S*) (%S+)$')
  local held = redis_call('HMGET', keys[#keys], source, 'n')
  if (held[1] or '') ~= reached or (tonumber(held[2] or nil) or 0) % 1024 ~= 0 then
    return {'unusual'}
  end
end

if source then
  redis_call('HINCRBY', keys[#keys], 'n', 1)
end
local version = argv.write_lane .. ':' .. argv.sequence
-- The main track comes last, because its meta has the record of the operation.
for t = tracks, 1, -1 do
  redis_call('HSET', keys[3 * t - 1], unpack(slot_pairs[t]))
  if of_keys == 0 then
    redis_call('ZADD', keys[3 * t], unpack(rank_pairs[t]))
  else
    if added[t] > 0 then
      redis.pcall('HINCRBY', keys[3 * t - 2], 'ranked', CHANGING)
    end
    local pair = 1
    for at = first_key, #argv, 2 do
      local next_pair = pair + 2 * argv[at + 1]
      redis_call('ZADD', prefixes[t] .. argv[at], unpack(rank_pairs[t], pair, next_pair - 1))
      pair = next_pair
    end
    if added[t] > 0 then
      redis.pcall('HINCRBY', keys[3 * t - 2], 'ranked', added[t] - CHANGING)
    end
  end
  local events = 'e:' .. argv[FIXED_ARGUMENTS + 4 * t]
  local counted = format('%.0f', (tonumber(metas[t][4]) or 0) + argv.items)
  if t > 1 then
    redis_call('HSET', keys[3 * t - 2], events, counted, 'version', version)
  else
    if source then
      redis_call('HSET', keys[#keys], source, reached_after)
      redis_call('HINCRBY', keys[#keys], 'n', 1023)
    end
    redis_call(
      'HSET', KEYS[1], events, counted, 'version', version, record, argv.sequence .. ':' .. format('%.0f', now) .. ':')
  end
end
return {'ok', now, now, tonumber(metas[1][3])}
