-- Returns a bounded number of subjects for an audit to compare.
--
-- KEYS  1-5 the board (board.lua), then the slots to look through, and perhaps one that is only named
-- ARGV  the board's, `place`: where to look: `totals`, `ranking`, `hidden` or `slots`, `key`: in rankings of several
--       keys, the one to continue with, or '' for the first, number of `subjects` to look at, `version`: a new board
--       version, to remove slots that do not exist from the index, or '', `from`: start of the first slot to look
--       through, or `-inf`, `slots`: the largest number of slots to name, `cursor` within the place, or within the first
--       of the slots, number of slots to `read`, then the start of each of those slots: all that exist from the first
--       one on, but no more than `slots`
-- reply ok, now, reading, retiring, cursor from which to continue, number of slots that were looked through completely,
--       number of slots that the index names and that do not exist, the key with which to continue or '', then the
--       subjects: of the totals all; of the ranking and of the hidden subjects those without a total; of a slot those
--       that have neither
-- errors  stale_keys: other slots exist
-- cost  1 us per subject looked at and 4 us per slot. A key in the compact form is always looked at completely: it has
--       a few hundred fields at most
-- why a script: ranking and totals must be of the same instant as the slots that are compared with them, and most of
--       the slots' data never leaves the server; a slot is missing only if index and key are read together
--
--- @include rankings, enter
--- @arguments board.lua, place, key, subjects, version, from, slots, cursor, read
--- @repeatable

local FIRST = FIXED_ARGUMENTS
local READ = tonumber(ARGV.read)
-- The largest number of rankings whose subjects are counted: 0.5 ms.
local MOST_COUNTED = 1000

if not names_slots_from(ARGV.from, ARGV.slots, FIRST + 1, #ARGV - FIRST) then
  return stale_keys()
end

local found, cursor, whole, missing, next_key = {}, ARGV.cursor, 0, 0, ''
local room = tonumber(ARGV.subjects)

local function take(subject)
  found[#found + 1] = subject
end

local function has_total(subject)
  return call('HEXISTS', TOTALS, subject) == 1
end

-- Looks at a part of a hash or sorted set, from the cursor on. Every second value is a subject, or the rest of one.
local function look(command, key, wanted, before)
  local scanned = call(command, key, cursor, 'COUNT', math.max(room, 1))
  for i = 1, #scanned[2], 2 do
    if not wanted or wanted(scanned[2][i]) then
      take(before and before .. scanned[2][i] or scanned[2][i])
    end
  end
  cursor = scanned[1]
  room = room - #scanned[2] / 2
end

if ARGV.place == 'totals' then
  look('HSCAN', TOTALS)
elseif ARGV.place == 'ranking' and HAS_KEYS then
  -- If there are few rankings, a repair counts their subjects, and so does an audit if the number is not known.
  local is_first, is_repair = ARGV.key == '' and cursor == '0', ARGV.version ~= ''
  if is_first and (is_repair or not ranked_number()) and call('ZCARD', key_list()) <= MOST_COUNTED then
    local number = 0
    for _, key in ipairs(call('ZRANGE', key_list(), 0, -1)) do
      number = number + call('ZCARD', ranking_of(key))
    end
    call('HSET', META, 'ranked', number)
  end
  -- A key costs as much as some subjects, so there are no more of them.
  local keys = call('ZRANGEBYLEX', key_list(), '[' .. ARGV.key, '+', 'LIMIT', 0, room)
  if #keys == 0 then
    cursor = '0'
  end
  for i, key in ipairs(keys) do
    if room <= 0 then
      next_key = key
      break
    end
    if key ~= ARGV.key then
      cursor = '0'
    end
    room = room - 4
    look('ZSCAN', ranking_of(key), function(name)
      return not has_total(key .. '\0' .. name)
    end, key .. '\0')
    if cursor ~= '0' then
      next_key = key
      break
    end
  end
elseif ARGV.place == 'hidden' then
  if marks then
    look('ZSCAN', hidden_ranking(), function(subject)
      return is_hidden(subject) and not has_total(subject)
    end)
  else
    cursor = '0'
  end
elseif ARGV.place == 'ranking' then
  look('ZSCAN', RANKING, function(subject)
    return not has_total(subject)
  end)
else
  local function is_unknown(subject)
    return not held_score(subject) and not has_total(subject)
  end
  local gone = {}
  -- A subject in a later slot may have been compared for an earlier slot already. So when a slot is continued at a
  -- cursor, only the rest of that slot is looked at: then the caller can recognize such a subject by its oldest slot.
  local last = cursor ~= '0' and 1 or READ
  while whole < last and room > 0 do
    local key, start = KEYS[6 + whole], ARGV[FIRST + 1 + whole]
    room = room - 4
    if tonumber(start) < dropped then
      cursor = '0'
    elseif call('EXISTS', key) == 0 then
      missing = missing + 1
      gone[#gone + 1] = start
      cursor = '0'
    else
      look('HSCAN', key, is_unknown)
    end
    if cursor ~= '0' then
      break
    end
    whole = whole + 1
  end
  if #gone > 0 and ARGV.version ~= '' then
    for _, start in ipairs(gone) do
      call('ZREM', INDEX, start)
    end
    recount()
    touch(ARGV.version)
  end
end

local reply = ok()
reply[5], reply[6], reply[7], reply[8] = cursor, whole, missing, next_key
for _, subject in ipairs(found) do
  reply[#reply + 1] = subject
end
return reply
