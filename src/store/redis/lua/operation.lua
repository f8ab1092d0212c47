-- What makes a repeated write harmless: the script records its reply under the operation's number. Not a script of
-- its own.
--
-- KEYS  6 the operation: the last one of this lane of this caller
-- ARGV  9 sequence number of this operation

local OPERATION, SEQUENCE = KEYS[6], ARGV[9]

-- Repeats of ours end after seconds; five minutes outlive whatever a network may still deliver.
local function record(reply)
  redis.call('SET', OPERATION, SEQUENCE .. ':' .. cmsgpack.pack(reply), 'PX', 300000)
  return reply
end

-- Answers the reply of this very operation where it was done before, or that a later one was.
local function recorded()
  local last = redis.call('GET', OPERATION)
  if last then
    local colon = string.find(last, ':', 1, true)
    local done, sequence = tonumber(string.sub(last, 1, colon - 1)), tonumber(SEQUENCE)
    if done == sequence then
      return cmsgpack.unpack(string.sub(last, colon + 1))
    elseif done > sequence then
      return {'superseded'}
    end
  end
end

-- What a write does first: makes sure that it is not one that was done before, then as every script. Answers nil, or the
-- reply to give up with.
local function begin()
  local repeated = recorded()
  if repeated then
    return repeated
  end
  local early = enter()
  if early and early[1] == 'stale' then
    -- An earlier sending of this operation may still arrive; it must not count beside the one that replaces it.
    record(early)
  end
  return early
end
