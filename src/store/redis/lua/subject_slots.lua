-- Reading some of the slots of one subject of an unranked board. Not a script of its own.
--
-- KEYS  6 the subject's own key and 7 its companion, on boards that have one
-- ARGV  `stored`: how the board stores the subject: `subject`, `seen` or `counter`; `from`: start of the oldest slot to
--       read, or the duration of a counter's window in ms; `till`: end of the newest slot; `capped` to get the time of
--       the latest dropped value, or ''; after the script's own arguments the start of each slot, oldest first; on a
--       `subject` board none, to read all slots between `from` and `till`
-- reply ok, now, reading, retiring, the time of the latest value dropped because of the limit or '', then start and
--       cell of every slot that has data, in any order; on a `counter` board the start and amount of the counter if its
--       window has not ended
-- cost  O(slots), or O(log values) for each slot on a `seen` board
--
--- @include board
--- @arguments stored, from, till, capped

local FIRST_START = FIXED_ARGUMENTS + 1
local SLOTS = #ARGV - FIRST_START + 1

-- Each function calls `add` with start and cell of every slot that has data.
local read_by = {}

function read_by.subject(add)
  if SLOTS > 0 and call('HLEN', KEYS[6]) > 2 * SLOTS then
    local held = call('HMGET', KEYS[6], unpack(ARGV, FIRST_START))
    for i = 1, SLOTS do
      if held[i] then
        add(ARGV[FIRST_START - 1 + i], held[i])
      end
    end
    return
  end
  local first, last, held = tonumber(ARGV.from), tonumber(ARGV.till), call('HGETALL', KEYS[6])
  for i = 1, #held, 2 do
    local start = tonumber(held[i])
    if start and start >= first and start < last then
      add(held[i], held[i + 1])
    end
  end
end

function read_by.seen(add)
  local total = call('ZCOUNT', KEYS[6], ARGV.from, '(' .. ARGV.till)
  if total == 0 then
    return
  end
  if total > SLOTS then
    for i = 1, SLOTS do
      local next_start = i < SLOTS and ARGV[FIRST_START + i] or ARGV.till
      local count = call('ZCOUNT', KEYS[6], ARGV[FIRST_START - 1 + i], '(' .. next_start)
      if count > 0 then
        add(ARGV[FIRST_START - 1 + i], format(count))
      end
    end
    return
  end
  -- There are fewer values than slots, so look at each value instead.
  local seen = call('ZRANGEBYSCORE', KEYS[6], ARGV.from, '(' .. ARGV.till, 'WITHSCORES')
  local slot, count = 1, 0
  for i = 2, #seen, 2 do
    local time = tonumber(seen[i])
    while slot < SLOTS and time >= tonumber(ARGV[FIRST_START + slot]) do
      if count > 0 then
        add(ARGV[FIRST_START - 1 + slot], format(count))
      end
      slot, count = slot + 1, 0
    end
    count = count + 1
  end
  add(ARGV[FIRST_START - 1 + slot], format(count))
end

function read_by.counter(add)
  local held = call('HMGET', KEYS[6], 's', 'a')
  local start = tonumber(held[1] or nil)
  if start and held[2] and now < start + tonumber(ARGV.from) then
    add(held[1], held[2])
  end
end

-- Returns the reply with the slots.
local function read_slots()
  local reply = ok()
  reply[5] = ARGV.capped == 'capped' and call('ZSCORE', KEYS[7], 'c') or ''
  read_by[ARGV.stored](function(start, cell)
    reply[#reply + 1] = start
    reply[#reply + 1] = cell
  end)
  return reply
end
