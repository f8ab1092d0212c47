-- The ids of a change (change.lua). Not a script of its own.

-- By subject and id: true if the id arrived within the horizon.
local is_duplicate = {}
-- The subjects and ids that must be stored, each followed by the time.
local arrivals = {}

-- Returns the field of a dedupe bucket that stands for an entry's subject and id, or nil if the entry has no id.
local function field_of(entry)
  return entry.id ~= '' and subject_of(entry.who) .. '\0' .. entry.id or nil
end

-- Reads which of these fields arrived within the horizon.
local function read_ids(some)
  if #some == 0 then
    return
  end
  call('ZCARD', BUCKETS)
  for back = 0, 2 do
    local arrived = call('HMGET', KEYS[FIRST_BUCKET_KEY + back], unpack(some))
    for i = 1, #some do
      local at = tonumber(arrived[i] or nil)
      if at and now - at < tonumber(ARGV.horizon) then
        is_duplicate[some[i]] = true
      end
    end
  end
end

local function note_arrival(field)
  is_duplicate[field] = true
  arrivals[#arrivals + 1] = field
  arrivals[#arrivals + 1] = format(now)
end

local function save_ids()
  if #arrivals > 0 then
    call('ZADD', BUCKETS, ARGV.bucket, ARGV.bucket)
    each_thousand('HSET', KEYS[FIRST_BUCKET_KEY], arrivals)
  end
end
