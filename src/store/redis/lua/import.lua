-- Opens an import in one part of a board, or ends it there.
--
-- KEYS  1 meta
-- ARGV  `generation`, `epoch`, `action`: `open`; `end`; or `cancel`, to undo `open` before anything was merged; the
--       `import`, `samples`: `samples` if the board takes samples, else '', `most`: the number of imports that a board
--       may have
-- reply board_changed: the generation does not exist; stale_epoch: it has another epoch; open, number of the last piece
--       that is merged: the import is open; closed: it was open, and no longer is; ended: it was ended before; other,
--       import: that one is open; samples: the part may have samples; full: it has had too many imports; none: there is
--       nothing to end
-- cost  O(1)
-- why a script: of several imports that begin at the same time only one may be opened, and none after a sample; the
--       meta key of a board that was removed in the meantime must not be created again
--
--- @arguments generation, epoch, action, import, samples, most
--- @repeatable

local META, ID = KEYS[1], ARGV.import
local call = redis.call

local meta = call('HMGET', META, 'generation', 'epoch', 'import', 'imports', 'merged', 'samples')
if meta[1] ~= ARGV.generation then
  return {'board_changed'}
elseif (meta[2] or '0') ~= ARGV.epoch then
  return {'stale_epoch'}
end
local held, ended = meta[3], meta[4] or ''
local record = 'o:import-' .. ID .. ':0'

if ARGV.action ~= 'open' then
  if held ~= ID then
    return {string.find(ended, ID, 1, true) and 'ended' or 'none'}
  end
  if ARGV.action == 'end' then
    call('HSET', META, 'imports', ended == '' and ID or ended .. ',' .. ID)
  end
  call('HDEL', META, 'import', 'merged', record)
  return {'closed'}
end

local imports, is_ended = 0, false
for other in string.gmatch(ended, '%x+') do
  imports = imports + 1
  -- The first half of an id stands for the board that the contents are of.
  is_ended = is_ended or string.sub(other, 1, 8) == string.sub(ID, 1, 8)
end
if is_ended then
  return {'ended'}
elseif held == ID then
  return {'open', meta[5] or '0'}
elseif held then
  return {'other', held}
elseif ARGV.samples == 'samples' and meta[6] ~= '0' then
  return {'samples'}
elseif imports >= tonumber(ARGV.most) then
  return {'full'}
end
call('HSET', META, 'import', ID)
return {'open', '0'}
