-- Changes the editions of a board: in its own meta key, or in one of its partitions, which follow; in both at once if
-- the board is not divided.
--
-- KEYS  1 meta of the board or of the partition; then the meta keys of all other tracks that stay where they are, which
--       only get the epoch; then, to `attach` an edition, that of each of its tracks, the main one first; to `exchange`
--       the two, that of the main track that becomes the current one, and the one that the other main track gets; to
--       `detach` one, that of each of its tracks. To `seal` one, those of its tracks are among those that stay
-- ARGV  the board's (board.lua), where `epoch` is the present one of the key, and floor and head are not used; `next`:
--       the epoch after the change, `action`: `attach`, `exchange`, `detach`, `seal`, `epoch`: only the epoch changes, or
--       `none` in the own meta key of a
--       divided board, which has no tracks; `definition` and `editions`: the new values of these fields, or '' for a
--       partition of a divided board; `stay`: number of tracks that stay; `current` and `other`: id of the first track
--       of each edition after the change, with the number of its further tracks, or '' if there is none; `leaving`: id
--       of the main track that an exchange replaces; `run` id of the server, or '' if it is not known; `parts`: in the
--       own meta key, the numbers of the partitions after the change, or '' if there is one; `announced`: '1' if no other
--       instance has to know of the change before it sends something, else ''; then to attach an edition id, floor and
--       head of each of its tracks
-- reply done: this call or an earlier one has made the change, and the tracks that stay have its epoch; board_changed:
--       the generation does not exist; stale_epoch: it has another epoch; importing: an import is open; damaged, what;
--       stale, now, reading: the arguments are not valid now. Unless it is done, nothing was done
-- cost  O(tracks + fields of the meta keys)
-- why a script: a partition changes from one epoch to the next in one step, whoever brings it there, and of two changes
--       of a board only one is made
--
--- @include clock
--- @arguments board.lua, next, action, definition, editions, stay, current, other, leaving, run, parts, announced
--- @repeatable

local META, NEXT, ACTION, STAY = KEYS[1], ARGV.next, ARGV.action, tonumber(ARGV.stay)
local FIRST_KEY, FIRST_TRACK = STAY + 2, FIXED_ARGUMENTS + 1
local call = redis.call

-- Gives the tracks that stay the epoch. One that was lost must not be created again.
local function follow()
  for at = 2, STAY + 1 do
    if NEXT == '0' then
      call('HDEL', KEYS[at], 'epoch')
    elseif call('HEXISTS', KEYS[at], 'generation') == 1 then
      call('HSET', KEYS[at], 'epoch', NEXT)
    end
  end
end

local meta = call('HMGET', META, 'generation', 'epoch', 'import', 'editions', 'parts', 'marks')
local epoch, is_own = meta[2] or '0', ARGV.definition ~= ''
if meta[1] ~= ARGV.generation then
  return {'board_changed'}
elseif epoch == NEXT and (not is_own or meta[4] == ARGV.editions and (meta[5] or '') == ARGV.parts) then
  -- A server that died within the change may have kept a part of it, and earlier versions left tracks behind.
  follow()
  return {'done'}
elseif epoch ~= ARGV.epoch then
  return {'stale_epoch'}
elseif is_own and meta[3] then
  return {'importing'}
end

-- The fields that belong to the partition or the board, and not to the main track of the current edition. Those of
-- write operations and of the dual run, which begin with `o:` and `n:`, do too.
local STAYING = {
  generation = true, epoch = true, definition = true, editions = true, current = true, other = true, parts = true,
  announced = true, defined_at = true, import = true, merged = true, imports = true, samples = true,
  lease = true, marks = true,
}

local function is_of_track(field)
  return not STAYING[field] and not string.match(field, '^[on]:')
end

-- Sets fields of a hash, a thousand values at a time, because `unpack` accepts some thousand.
local function set(key, fields)
  for first = 1, #fields, 1000 do
    call('HSET', key, unpack(fields, first, math.min(first + 999, #fields)))
  end
end

-- What the meta key gets, last of all, and the fields that it loses after that.
local fields, lost = {}, {}
local function add(field, value)
  fields[#fields + 1], fields[#fields + 2] = field, value
end

-- Returns the reply if the arguments are not valid now, otherwise nil and the time.
local function late()
  local now, reading = read_clock()
  if now < tonumber(ARGV.valid_from) or now >= tonumber(ARGV.valid_until) then
    return {'stale', now, reading}
  end
  return nil, now
end

local function attach()
  local early, now = late()
  if early then
    return early
  end
  for at = FIRST_KEY, #KEYS do
    local argument = FIRST_TRACK + 3 * (at - FIRST_KEY)
    local id, floor, head = ARGV[argument], ARGV[argument + 1], ARGV[argument + 2]
    local own = {
      'generation', id, 'epoch', NEXT, 'floor', floor, 'head', head, 'dropped', floor, 'version', 'n:' .. id,
      'retiring', '0', 'samples', '0',
    }
    if ARGV.run ~= '' then
      own[#own + 1], own[#own + 2] = 'run', ARGV.run
    end
    if meta[6] then
      own[#own + 1], own[#own + 2] = 'marks', meta[6]
    end
    set(KEYS[at], own)
  end
  add('n:since', format(now))
  add('n:run', ARGV.run)
end

-- The fields of the tracks change places, and no data is moved: all other keys are named by their track.
local function exchange()
  local coming, leaving = call('HGETALL', KEYS[FIRST_KEY]), call('HGETALL', META)
  local is_there, kept, left = false, {}, {'generation', ARGV.leaving, 'epoch', NEXT}
  if meta[6] then
    left[#left + 1], left[#left + 2] = 'marks', meta[6]
  end
  for i = 1, #coming, 2 do
    is_there = is_there or coming[i] == 'head'
    if is_of_track(coming[i]) then
      add(coming[i], coming[i + 1])
      kept[coming[i]] = true
    end
  end
  if not is_there then
    return {'damaged', 'the meta data of the second edition is missing'}
  end
  for i = 1, #leaving, 2 do
    if is_of_track(leaving[i]) then
      left[#left + 1], left[#left + 2] = leaving[i], leaving[i + 1]
      if not kept[leaving[i]] then
        lost[#lost + 1] = leaving[i]
      end
    end
  end
  set(KEYS[FIRST_KEY + 1], left)
end

local function detach()
  for _, field in ipairs(call('HKEYS', META)) do
    if string.match(field, '^n:') then
      lost[#lost + 1] = field
    end
  end
end

local early = nil
if ACTION == 'attach' then
  early = attach()
elseif ACTION == 'exchange' then
  early = exchange()
elseif ACTION == 'epoch' then
  early = late()
elseif ACTION == 'detach' or ACTION == 'seal' then
  detach()
end
if early then
  return early
end
follow()
if is_own then
  add('definition', ARGV.definition)
  add('editions', ARGV.editions)
  if ARGV.parts ~= '' then
    add('parts', ARGV.parts)
  end
  -- Whoever looks the board up next announces it, if the instance that makes this change ends before it does.
  if ARGV.announced == '' then
    lost[#lost + 1] = 'announced'
  end
end
if ACTION ~= 'none' then
  add('current', ARGV.current)
  if ARGV.other ~= '' then
    add('other', ARGV.other)
  else
    lost[#lost + 1] = 'other'
  end
end
add('epoch', NEXT)
set(META, fields)
for first = 1, #lost, 1000 do
  call('HDEL', META, unpack(lost, first, math.min(first + 999, #lost)))
end
if ACTION == 'exchange' then
  call('UNLINK', KEYS[FIRST_KEY])
elseif ACTION == 'detach' then
  for at = FIRST_KEY, #KEYS do
    call('UNLINK', KEYS[at])
  end
end
return {'done'}
