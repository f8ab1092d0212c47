-- What change.lua uses of the parts before this one, for one track. Not a script of its own.
--
--- @include entries

-- Filled by change.lua: the entries, and by slot the number of items that were counted.
track.entries, track.counted = {}, {}
track.has_slots, track.size, track.ranking, track.missing, track.work = SLOTS > 0, ENTRIES, RANKING, missing, work
track.entry_at, track.add_time, track.start_of, track.subject_of = entry_at, add_time, start_of, subject_of
track.fetch, track.prepare, track.cell_of, track.cell_from = fetch, prepare, cell_of, cell_from
track.total_entry, track.check, track.apply = total_entry, check, apply
track.name_slots, track.writes_at_once = name_slots, writes_at_once
track.save, track.finish, track.score_text = save, finish, score_text
track.filling, track.holds = filling, holds
-- The largest number of keys, if the track limits them.
track.most_keys = tonumber(ARGV.most_keys)
-- The id of the track's edition, if the board has two.
track.edition = ARGV.edition
