-- Reads some of the slots of one subject of an unranked board, or removes the subject and returns what it had there.
--
-- KEYS  1-5 the board (board.lua), 6 the subject's own key and 7 its companion, on boards that have one; last, to
--       remove the subject, the subjects of the current expiry period
-- ARGV  the board's, `stored`: how the board stores the subject: `subject`, `seen` or `counter`; `from`: start of the
--       oldest slot to read, or the duration of a counter's window in ms; `till`: end of the newest slot; `capped` to
--       get the time of the latest dropped value, or ''; `action`: `read` or `remove`; the `subject` to remove; then
--       the start of each slot, oldest first; on a `subject` board none, to read all slots between `from` and `till`
-- reply ok, now, reading, retiring, the time of the latest value dropped because of the limit or '', then start and
--       cell of every slot that has data, in any order; on a `counter` board the start and amount of the counter if its
--       window has not ended
-- errors  importing: an import is open, and the subject was to be removed; nothing was done
-- cost  O(slots), or O(log values) for each slot on a `seen` board; the memory of removed keys is freed in the server's
--       background
-- why a script: all slots must be of one instant, after the window was advanced, and exactly the data that is returned
--       may be removed

local FIRST_START = FIXED_ARGUMENTS + 1
local SLOTS = #ARGV - FIRST_START + 1

local REMOVES = ARGV.action == 'remove'

local early = read_meta(REMOVES and 'import')
if early then
  return early
end
if REMOVES and asked_field then
  return {'importing'}
end
early = advance()
if early then
  return early
end

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

local reply = ok()
reply[5] = ARGV.capped == 'capped' and call('ZSCORE', KEYS[7], 'c') or ''
read_by[ARGV.stored](function(start, cell)
  reply[#reply + 1] = start
  reply[#reply + 1] = cell
end)
if REMOVES then
  call('UNLINK', KEYS[6], KEYS[7])
  call('SREM', KEYS[#KEYS], ARGV.subject)
  call('HINCRBY', META, 'upheavals', 1)
end
return reply
