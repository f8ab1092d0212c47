-- Reads some subjects' slots of a ranked board and, if requested, their scores and ranks.
--
-- KEYS  1-5 the partition (board.lua), 6 the ranking, then, if `capped`, the companion of each subject's values
--       (COUNT_DISTINCT), then the slots to read
-- ARGV  the partition's, `order`: `desc` or `asc`, `key` of the ranking, or '', `ranks` to get scores and ranks, `ties` to
--       also count ties, or '', `rank_of`: `score`, or `line` if each line has a rank of its own, number of `subjects`,
--       `capped` to get the time of the latest dropped value, or ''; then the subjects, with their key if there are keys
-- reply ok, now, reading, retiring, total, then for each subject a list: score or '', number of subjects with a better
--       score, or of lines before it, or 0, with ties the number of subjects whose score is not worse, or nil, the
--       letters (hidden.lua) or '', the time of the latest value dropped because of the limit or '', then position
--       (from 1) and cell of every slot that has data
-- cost  about 0.5 us for each slot and 0.3 us for each cell; O(log subjects) for each rank
-- why a script: score, rank and slots must be of one instant, after the window was advanced
--
--- @include hidden, ranking
--- @arguments board.lua, order, key, ranks, rank_of, subjects, capped
--- @repeatable

local FIRST, SUBJECTS, CAPPED = FIXED_ARGUMENTS + 1, tonumber(ARGV.subjects), ARGV.capped == 'capped'
-- Where the name of a subject begins, which a ranking has without the key.
local NAME = ARGV.key ~= '' and #ARGV.key + 2 or 1
local FIRST_SLOT = CAPPED and 7 + SUBJECTS or 7

local reply = ok()
reply[5] = call('ZCARD', SORTED)
for i = 1, SUBJECTS do
  local score, better, not_worse, own = '', 0, false, ''
  if ARGV.ranks ~= '' then
    local subject = ARGV[FIRST + i - 1]
    if is_hidden(subject) then
      own = letters(subject)
      score = call('ZSCORE', hidden_ranking(), subject) or ''
    else
      score = call('ZSCORE', SORTED, string.sub(subject, NAME)) or ''
    end
    if score ~= '' and ARGV.rank_of == 'line' then
      better = lines_before(score, string.sub(subject, NAME))
    else
      better = better_than(score == '' and '0' or score)
    end
    if ARGV.ranks == 'ties' and score ~= '' then
      not_worse = not_worse_than(score)
    end
  end
  reply[5 + i] = {score, better, not_worse, own, CAPPED and call('ZSCORE', KEYS[6 + i], 'c') or ''}
end
for slot = FIRST_SLOT, #KEYS do
  local cells = call('HMGET', KEYS[slot], unpack(ARGV, FIRST, FIRST + SUBJECTS - 1))
  for i = 1, SUBJECTS do
    if cells[i] then
      local held = reply[5 + i]
      held[#held + 1] = slot - FIRST_SLOT + 1
      held[#held + 1] = cells[i]
    end
  end
end
return reply
