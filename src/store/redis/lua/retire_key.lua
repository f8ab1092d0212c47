-- Subtracts all slots below the floor from the small ranking of one key, so that a read of it is exact at once.
--
-- KEYS  1-5 the partition (board.lua), then the slots below the floor or, with `all`, every slot that exists
-- ARGV  the partition's, `key` of the ranking, `most`: the largest number of its subjects, `cells`: the largest number of
--       cells that they may have there, `all`: not '' if the kind needs the other cells to withdraw one, `version`: the
--       new version, then the start of each slot; last, the option of the kind (kind/)
-- reply ok, now, reading, retiring, `done` if the ranking has nothing of the slots below the floor, `more` if the script
--       must be called again, `unable` if it cannot be made so
-- errors  stale_keys: other slots exist
-- cost  0.3 us for each subject and slot below the floor, and about 1 us for each cell. APPROX_COUNT_DISTINCT: up to
--       100 us for each cell and 10 us for each other slot; then a call ends after about 2 ms
-- why a script: cells leave slot and ranking in one atomic step, so each is subtracted once, here or by a step of
--       retiring, which tolerates that cells are gone: a slot that becomes empty is left to it
--
--- @include rankings, cells, subtract, enter
--- @arguments board.lua, key, most, cells, all, version
--- @repeatable

local FIRST_SLOT_KEY, FIRST_START = 6, FIXED_ARGUMENTS + 1
local SLOTS = #ARGV - FIRST_START
-- The number of bytes after which a call ends.
local BUDGET = 60000

local last = ARGV.all ~= '' and '+inf' or '(' .. ARGV.floor
if not are_named(call('ZRANGEBYSCORE', INDEX, '-inf', last), FIRST_START, SLOTS) then
  return stale_keys()
end

local function reply_with(outcome)
  local reply = ok()
  reply[5] = outcome
  return reply
end

-- A cell below 0 may cancel others: then a subject that is not in the ranking may belong there once they are subtracted.
local negative = call('HGET', META, 'negative')
if negative and call('ZCOUNT', INDEX, format(dropped), negative) > 0 then
  return reply_with('unable')
end
local sealed = {}
for i = 1, SLOTS do
  local start = tonumber(ARGV[FIRST_START - 1 + i])
  if start >= dropped and start < FLOOR then
    sealed[#sealed + 1] = {start = start, key = KEYS[FIRST_SLOT_KEY - 1 + i], gone = {}}
  end
end
local ranking = ranking_of(ARGV.key)
-- A hidden subject sees what it has, so its score is exact too.
local hidden = {}
if marks then
  local from, till = '[' .. ARGV.key .. '\0', '(' .. ARGV.key .. '\1'
  hidden = call('ZRANGEBYLEX', marks .. 'h', from, till, 'LIMIT', 0, tonumber(ARGV.most) + 1)
end
local ranked = call('ZCARD', ranking)
local size = ranked + #hidden
if size > tonumber(ARGV.most) or size * #sealed > tonumber(ARGV.cells) then
  return reply_with('unable')
end
if size == 0 or #sealed == 0 then
  return reply_with('done')
end

local all = call('ZRANGE', ranking, 0, -1)
for i = 1, ranked do
  all[i] = ARGV.key .. '\0' .. all[i]
end
for i = 1, #hidden do
  all[ranked + i] = hidden[i]
end
-- Those that have a cell, and the cells of each, oldest first.
local subjects, cells, place = {}, {}, {}
for _, slot in ipairs(sealed) do
  local found = call('HMGET', slot.key, unpack(all))
  for i = 1, size do
    if found[i] then
      if not sound(found[i]) then
        return {'damaged', 'what a subject has in a slot is not what the metric writes'}
      end
      if not place[i] then
        place[i] = #subjects + 1
        subjects[place[i]], cells[place[i]] = all[i], {}
      end
      local own = cells[place[i]]
      own[#own + 1] = {slot = slot, text = found[i]}
    end
  end
end
if #subjects == 0 then
  return reply_with('done')
end
call('ZCARD', RANKING)
if not load_accumulated(subjects) then
  return {'damaged', 'a total is not what the metric writes'}
end

run_when_full()
local done, work, is_partial = 0, 0, false
local sums = {}
while done < #subjects and work < BUDGET do
  done = done + 1
  local is_changed = false
  sums[done] = 0
  for _, cell in ipairs(cells[done]) do
    -- The oldest cells of a subject may be withdrawn without the others.
    if work >= BUDGET then
      is_partial = true
      break
    end
    cell.slot.gone[#cell.slot.gone + 1] = subjects[done]
    if HAS_TOTALS then
      local next_other, looked_at = others_of(subjects[done], cell.slot.start, FIRST_SLOT_KEY, FIRST_START)
      is_changed = withdraw(accs[done], cell.slot.start, cell.text, next_other) or is_changed
      work = work + looked_at() + #cell.text
    else
      sums[done] = sums[done] + tonumber(cell.text)
    end
  end
  if is_changed then
    gather(subjects[done], accs[done])
  end
end
if HAS_TOTALS then
  save_gathered()
else
  subtract_from_scores(subjects, sums)
end
for _, slot in ipairs(sealed) do
  each_thousand('HDEL', slot.key, slot.gone)
end
touch(ARGV.version)
return reply_with(done == #subjects and not is_partial and 'done' or 'more')
