-- Merges a part of a piece of an import into one part of a board, exactly once, even if the reply is lost or the piece
-- is sent again.
--
-- KEYS  1-5 the board (board.lua), then on a ranked board one slot for each start in ARGV, then the keys of each
--       subject (none on a ranked board, except COUNT_DISTINCT), and last, if subjects have keys, the expiry periods
--       that exist and the subjects of the current period
-- ARGV  the board's, those of the operation (operation.lua), where the lane is that of the import and the number is
--       that of the piece, 12 bits for the part of it, those of the entries (entries.lua); `import`, `piece`: number of
--       the piece if this is its last part, else '', `expired` and `refused`: numbers of contents for which there is no
--       entry, number of `events`: pairs of a slot and its number of items; then slots, subjects and entries, with code
--       0 and no id; the events; last, the option of the kind (kind/)
-- reply ok, now, reading, retiring, numbers of contents that were merged, had expired, and were refused; then `new`,
--       unless an earlier attempt has merged them
-- errors  no_import, why: the import is not open, or an earlier piece is merged in part
--       superseded: a later part of the import was merged before, so this one was merged, or never will be
--       missing, now, reading, retiring, starts: one list of slots that the call must name too; nothing was done except
--       advancing
-- cost  5-15 us per entry, up to 600 us for a large sketch
-- why a script: the reasons of change.lua. The import must be open when something is merged. Unlike a write, an attempt
--       that does nothing is not recorded: the next attempt has the same number, so only one of them is done
--
--- @include entries, form
--- @arguments board.lua, operation.lua, entries.lua, import, piece, expired, refused, events

local FIRST_EVENT = FIRST_ENTRY + STRIDE * ENTRIES
-- The number of parts that a piece may have. The last one of each has the highest number.
local PARTS = 4096

local early = read_meta(FIELD)
if early then
  return early
end
if call('HGET', META, 'import') ~= ARGV.import then
  return {'no_import', 'the import is not open'}
end
local done, sequence = asked_field and tonumber(string.match(asked_field, '^%d+')), tonumber(SEQUENCE)
if done and done < sequence and done % PARTS ~= PARTS - 1
    and math.floor(done / PARTS) ~= math.floor(sequence / PARTS) then
  return {'no_import', 'an earlier piece is merged in part and must be sent again first'}
end
early = recorded() or advance()
if early then
  return early
end

-- There is no rollback. So everything that may fail, such as a key of a wrong type, is read before the first write.
call('ZCARD', RANKING)
local entries, faults = {}, {}
for i = 1, ENTRIES do
  entries[i] = entry_at(i)
  -- Unlike that of an event, the time stays as it is, also if the clock of the other store is ahead.
  entries[i].at = tonumber(ARGV[FIRST_ENTRY + (i - 1) * STRIDE + 5]) or now
end
fetch(entries)
for i, entry in ipairs(entries) do
  faults[i] = prepare(entry)
end
if #missing > 0 then
  local gave_up = ok()
  gave_up[1], gave_up[5] = 'missing', {missing}
  return gave_up
end

local merged, refused = 0, 0
for i, entry in ipairs(entries) do
  if faults[i] or check(entry) then
    refused = refused + 1
  else
    apply(entry)
    merged = merged + 1
  end
end
save()
finish()
for at = FIRST_EVENT, FIRST_EVENT + 2 * (ARGV.events - 1), 2 do
  count_events(ARGV[at], ARGV[at + 1])
end

local reply = ok()
reply[5], reply[6], reply[7] = merged, tonumber(ARGV.expired), refused + ARGV.refused
local fields = {FIELD, record_of(reply)}
if ARGV.piece ~= '' then
  fields[3], fields[4] = 'merged', ARGV.piece
end
if merged > 0 then
  -- A walk over the contents may return a subject twice whose contents have come to a later expiry period.
  call('HINCRBY', META, 'upheavals', 1)
  touch(WRITE_LANE .. ':' .. SEQUENCE, unpack(fields))
else
  call('HSET', META, unpack(fields))
end
reply[8] = 'new'
return reply
