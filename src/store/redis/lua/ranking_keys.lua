-- Returns keys of a partition that have a ranking and begin with a text, in the order of their bytes.
--
-- KEYS  1-5 the partition (board.lua)
-- ARGV  the partition's, `from`: the first key, as the start of a range of ZRANGEBYLEX, `prefix`: beginning of the keys,
--       `limit`: number of keys to return
-- reply ok, now, reading, retiring, number of keys, then the keys
-- cost  O(log keys + keys returned)
-- why a script: number and keys must be of one instant, after the window was advanced
--
--- @include rankings, enter
--- @arguments board.lua, from, prefix, limit
--- @repeatable

local reply = ok()
reply[5] = call('ZCARD', key_list())
for i, key in ipairs(call('ZRANGEBYLEX', key_list(), ARGV.from, '+', 'LIMIT', 0, ARGV.limit)) do
  if string.sub(key, 1, #ARGV.prefix) ~= ARGV.prefix then
    break
  end
  reply[5 + i] = key
end
return reply
