-- COUNT and SUM on boards whose windows begin with the subject's first event. Not a script of its own.
--
-- KEYS  one for each subject: a hash, `s` the time at which its window began, `a` the amount
-- ARGV  last: the duration of a window, in ms
-- verbs  `add` a; `undo` a: the amount of a retraction, with the opposite sign of the amount that it reverses
--
--- @include entries

local LIFE = tonumber(ARGV[#ARGV])
-- By subject: its counter, and whether that changed.
local counters, changed = {}, {}

-- Returns the subject's counter if its window has not ended, and whether the stored data is valid.
local function counter_of(who)
  local counter = counters[who]
  if not counter then
    local held = call('HMGET', KEYS[FIRST_SUBJECT_KEY - 1 + who], 's', 'a')
    counter = {start = tonumber(held[1] or nil), amount = tonumber(held[2] or nil)}
    counter.damaged = (held[1] or held[2]) and not (counter.start and counter.amount)
    counters[who] = counter
  end
  local lives = counter.start and now < counter.start + LIFE
  return lives and counter or nil, not counter.damaged
end

-- Returns the counter after the entry, or nil if the entry changes nothing.
local function counter_after(entry)
  local counter = counter_of(entry.who)
  if not counter and entry.verb == 'undo' then
    return nil
  end
  -- The start of a counter never moves, even for an event that happened before it.
  counter = counter or {start = entry.at, amount = 0}
  return {start = counter.start, amount = counter.amount + tonumber(entry.a)}
end

-- Another edition may write before the first entry of this one is applied.
function prepare(entry)
  if entry.verb ~= 'look' then
    counter_of(entry.who)
  end
end

function check(entry)
  local _, is_sound = counter_of(entry.who)
  if not is_sound then
    return 'damaged'
  end
  local after = counter_after(entry)
  if after and (after.amount > BOUND or after.amount < -BOUND) then
    return 'refused'
  end
end

function apply(entry)
  local after = counter_after(entry)
  if after then
    counters[entry.who] = after
    changed[entry.who] = true
  end
end

function save()
  local subjects, keys = {}, {}
  for who in pairs(changed) do
    subjects[#subjects + 1], keys[#keys + 1] = subject_of(who), KEYS[FIRST_SUBJECT_KEY - 1 + who]
  end
  if #subjects > 0 then
    note_written(subjects, keys)
  end
  for who in pairs(changed) do
    local key, counter = KEYS[FIRST_SUBJECT_KEY - 1 + who], counters[who]
    call('HSET', key, 's', format(counter.start), 'a', string.format('%d', counter.amount))
  end
end

function score_text(who)
  local counter = counter_of(who)
  return counter and string.format('%d', counter.amount) or '0'
end
