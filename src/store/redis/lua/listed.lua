-- Returns subjects of a list that begin with a text, in the order of their bytes, with what a hash has of them: letters
-- of moderated subjects.
--
-- KEYS  1-5 the partition (board.lua), 6 the list, 7 the hash by subject
-- ARGV  the partition's, `from`: the first subject, as the start of a range of ZRANGEBYLEX, `prefix`: beginning of the
--       subjects, `limit`: number of subjects to return, `texts`: 1 if the texts are returned, else 0
-- reply ok, now, reading, retiring, number of subjects of the list, then subject, …, each followed by its text if `texts`
--       is 1
-- cost  O(log subjects + subjects returned)
-- why a script: number, subjects and texts must be of one instant, and the generation is checked
--
--- @include enter
--- @arguments board.lua, from, prefix, limit, texts
--- @repeatable

local reply = ok()
reply[5] = call('ZCARD', KEYS[6])
for _, subject in ipairs(call('ZRANGEBYLEX', KEYS[6], ARGV.from, '+', 'LIMIT', 0, ARGV.limit)) do
  if string.sub(subject, 1, #ARGV.prefix) ~= ARGV.prefix then
    break
  end
  reply[#reply + 1] = subject
  if ARGV.texts == '1' then
    reply[#reply + 1] = call('HGET', KEYS[7], subject) or ''
  end
end
return reply
