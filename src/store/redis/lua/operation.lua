-- The records that make it safe to send a write again: the script stores its reply under the number of the operation.
-- Last, the table of one track. Not a script of its own.
--
-- ARGV  `sequence` number of this operation, its `write_lane`: `<writer>:<lane>`
--
-- The field `o:<writer>:<lane>` of meta contains the last operation of a lane: `<sequence>:<now>:<reply, packed>`. A
-- reply of `ok` and the header alone is left out. An instance stops sending an operation again after some seconds.
-- Housekeeping removes the field after five minutes, which is longer than a network may take to deliver a late request.
-- The writer of an import is `import-<import>`, and its field stays until the import has ended.
--
--- @include rankings
--- @arguments sequence, write_lane

local SEQUENCE, WRITE_LANE = ARGV.sequence, ARGV.write_lane
local FIELD = 'o:' .. WRITE_LANE

local function record_of(reply)
  return SEQUENCE .. ':' .. format(now) .. ':' .. (#reply > 4 and cmsgpack.pack(reply) or '')
end

-- Records the reply and a new board version, for an operation that has changed the board.
local function record(reply)
  touch(WRITE_LANE .. ':' .. SEQUENCE, FIELD, record_of(reply))
  return reply
end

-- Records the reply of an operation that changed nothing. From then on the same operation can no longer change
-- anything.
local function record_unchanged(reply)
  call('HSET', META, FIELD, SEQUENCE .. ':' .. format(now) .. ':' .. cmsgpack.pack(reply))
  return reply
end

-- Returns the recorded reply if this operation was done before, or `superseded` if a later one was.
local function recorded()
  if not asked_field then
    return
  end
  local done, at, packed = string.match(asked_field, '^(%d+):(%d+):(.*)$')
  local sequence = tonumber(SEQUENCE)
  done = tonumber(done)
  if not done then
    return {'damaged', 'the record of an operation'}
  elseif done == sequence then
    return packed ~= '' and cmsgpack.unpack(packed) or {'ok', tonumber(at), tonumber(at), count_retiring()}
  elseif done > sequence then
    return {'superseded'}
  end
end

-- Counts items of the slot with this start. The numbers of all slots are in meta, in fields `e:<start>`. Housekeeping
-- removes those of slots that are no longer kept. A field that is not a number stays as it is: this comes after other
-- writes, so it must not fail.
local function count_events(start, items)
  redis.pcall('HINCRBY', META, 'e:' .. start, items)
end

-- What a script uses of one track (tracks.lua).
local track = {
  keys = KEYS,
  argv = ARGV,
  field = FIELD,
  read_meta = read_meta,
  recorded = recorded,
  read_clock = read_clock,
  advance = advance,
  ok = ok,
  touch = touch,
  record = record,
  record_unchanged = record_unchanged,
  count_events = count_events,
  each_thousand = each_thousand,
  scores_of = scores_of,
  rank = rank,
  unrank = unrank,
  hide = hide,
  show = show,
  is_frozen = is_frozen,
  is_hidden = is_hidden,
  run_when_full = run_when_full,
  note_negative = note_negative,
  count_keys = count_keys,
  is_key_ranked = is_key_ranked,
  note_ranked = note_ranked,
}

-- Returns the head before this script.
function track.head()
  return previous_head
end
