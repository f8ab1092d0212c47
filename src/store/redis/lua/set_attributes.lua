-- Changes the attributes of subjects of a partition, in the order of the changes.
--
-- KEYS  1-5 the partition (board.lua), 6 the attributes by subject, 7 the list of the subjects that have some
-- ARGV  the partition's, `most`: largest number of attributes of a subject, `most_bytes`: that of the bytes of its JSON
--       object; then for each change: subject, what becomes of what it has (`merge`: what is not named stays, `replace`:
--       it is removed, `begin`: if there is any, nothing is changed), and for each attribute its name, a zero byte, the
--       JSON text of its value or '' to remove it, and a zero byte
-- reply ok, now, reading, retiring, then for each change 'done', or 'many' or 'long' if it would exceed a bound, so it was
--       left out
-- cost  about 1 us for each attribute
-- why a script: an attribute is merged with the others of the subject, and no other change may come in between
--
-- The values are not parsed: numbers would change.
--
--- @include enter
--- @arguments board.lua, most, most_bytes
--- @repeatable

local ATTRIBUTES, LIST = KEYS[6], KEYS[7]
local MOST, MOST_BYTES = tonumber(ARGV.most), tonumber(ARGV.most_bytes)

-- Returns the attributes after a change, or nil and the bound that they would exceed. Attributes stay at their places, so
-- what changes nothing gives the same text.
local function changed(before, mode, text)
  if mode == 'begin' and before ~= '' then
    return before
  end
  local names, values = {}, {}
  local function take(attributes)
    for name, value in string.gmatch(attributes, '([^%z]+)%z([^%z]*)%z') do
      if not values[name] then
        names[#names + 1] = name
      end
      values[name] = value
    end
  end
  if mode == 'merge' then
    take(before)
  end
  take(text)
  local after, number, bytes = {}, 0, 1
  for _, name in ipairs(names) do
    local value = values[name]
    if value ~= '' then
      -- In the object there are two quotation marks, a colon and a comma beside them.
      number, bytes = number + 1, bytes + #name + #value + 4
      after[number] = name .. '\0' .. value .. '\0'
    end
  end
  if number > MOST then
    return nil, 'many'
  elseif bytes > MOST_BYTES then
    return nil, 'long'
  end
  return table.concat(after)
end

local reply = ok()
-- Each subject once, with what it has before and after all changes.
local subjects, before, after = {}, {}, {}
for at = FIXED_ARGUMENTS + 1, #ARGV, 3 do
  local subject = ARGV[at]
  if not before[subject] then
    subjects[#subjects + 1] = subject
    before[subject] = call('HGET', ATTRIBUTES, subject) or ''
    after[subject] = before[subject]
  end
  local text, bound = changed(after[subject], ARGV[at + 1], ARGV[at + 2])
  after[subject] = text or after[subject]
  reply[#reply + 1] = bound or 'done'
end
local listed, held, unlisted, without, grows = {}, {}, {}, {}, false
for _, subject in ipairs(subjects) do
  local from, to = before[subject], after[subject]
  if to == '' then
    -- It may be in the list without attributes.
    unlisted[#unlisted + 1] = subject
    if from ~= '' then
      without[#without + 1] = subject
    end
  elseif from ~= to then
    held[#held + 1], held[#held + 2] = subject, to
    grows = grows or #to > #from
    if from == '' then
      listed[#listed + 1], listed[#listed + 2] = 0, subject
    end
  end
end
if #held + #unlisted == 0 then
  return reply
end
-- A value of another type must end the script before it writes.
call('ZCARD', LIST)
if not grows then
  run_when_full()
end
-- A server that is restarted may have kept only the first of these writes. Then a subject is in the list without
-- attributes, and never the other way round.
each_thousand('ZADD', LIST, listed)
each_thousand('HSET', ATTRIBUTES, held)
each_thousand('HDEL', ATTRIBUTES, without)
each_thousand('ZREM', LIST, unlisted)
return reply
