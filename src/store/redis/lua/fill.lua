-- Gives subjects what they have in one track in another track of the same partition, which counts the same items.
--
-- KEYS  for each of the two tracks as for change.lua, without ids: first the one that gives, then the one that receives
-- ARGV  for each track those of change.lua, where the lane is the new version of the track. The first one has no
--       entries. The entries of the second one: position of its slot, position of its subject (both from 1), `fill`,
--       positions of the slots of the first track, separated by commas; or `seen`, `gone` or `dropped` with a value, as
--       the first track has it, and its time (kind/distinct.lua)
-- reply ok, now, reading, retiring
-- errors  missing, now, reading, retiring, starts: for each track a list of slots that the call must name too; nothing
--       was done except advancing
-- cost  that of change.lua for each entry, and 1 us for each slot of the first track
-- why a script: what a subject has in a slot is read and given in one step, between two writes, so that each write
--       counts in both tracks or is given
--
--- @each_track entries, form, steps
--- @include enter_all
--- @arguments change.lua

local from, to = tracks[1], tracks[2]

-- There is no rollback. So everything that may fail, such as a key of a wrong type, is read before the first write.
call('ZCARD', to.ranking)
local entries = {}
for i = 1, to.size do
  local entry = to.entry_at(i)
  if entry.verb == 'fill' then
    local cells = {}
    for position in string.gmatch(entry.a, '%d+') do
      local cell = from.cell_of({slot = tonumber(position), who = entry.who})
      if cell then
        cells[#cells + 1] = cell
      end
    end
    for _, change in ipairs(to.filling(cells)) do
      entries[#entries + 1] = {
        slot = entry.slot, who = entry.who, verb = change[1], a = change[2], b = change[3] or 0, at = change[4] or 0,
        is_timed = true, code = 0, id = '',
      }
    end
  elseif from.holds(entry) then
    entries[#entries + 1] = entry
  end
end
to.fetch(entries)
local faults = {}
for i, entry in ipairs(entries) do
  faults[i] = to.prepare(entry)
end
local reply = to.ok()
reply[1], reply[5] = 'missing', {{}, to.missing}
if #to.missing > 0 then
  return reply
end
for i, entry in ipairs(entries) do
  if not faults[i] and not to.check(entry) then
    to.apply(entry)
  end
end
if #to.missing > 0 then
  return reply
end
if #entries > 0 then
  to.save()
  to.finish()
  to.touch(ARGV.write_lane)
end
return to.ok()
