-- What makes a repeated write harmless: the script records its reply under the operation's number. Not a script of
-- its own.
--
-- ARGV  9 sequence number of this operation, 10 the lane it belongs to: `<writer>:<lane>`
--
-- The field `o:<writer>:<lane>` of meta holds the last operation of a lane: `<sequence>:<now>:<reply, packed>`; a reply
-- of `ok` and nothing more is left out. Repeats of ours end after seconds; five minutes outlive whatever a network may
-- still deliver, and then housekeeping removes the field.

local SEQUENCE, LANE = ARGV[9], ARGV[10]
local FIELD = 'o:' .. LANE

local function record_of(reply)
  return SEQUENCE .. ':' .. format(now) .. ':' .. (#reply > 4 and cmsgpack.pack(reply) or '')
end

-- Records the reply, with the version of the board, where the operation has changed it.
local function record(reply)
  touch(LANE .. ':' .. SEQUENCE, FIELD, record_of(reply))
  return reply
end

-- Records the reply of an operation that changed nothing, and now never will.
local function record_unchanged(reply)
  redis.call('HSET', META, FIELD, SEQUENCE .. ':' .. format(now) .. ':' .. cmsgpack.pack(reply))
  return reply
end

-- Answers the reply of this very operation where it was done before, or that a later one was.
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

-- What a write does first: makes sure that it is not one that was done before, then as every script. Answers nil, or the
-- reply to give up with.
local function begin()
  local early = read_meta(FIELD) or recorded()
  if early then
    return early
  end
  early = advance()
  if early and early[1] == 'stale' then
    -- An earlier sending of this operation may still arrive; it must not count beside the one that replaces it.
    record_unchanged(early)
  end
  return early
end
