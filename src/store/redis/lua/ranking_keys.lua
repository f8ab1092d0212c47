-- Returns the keys of a partition that have a ranking, in the order of their bytes.
--
-- KEYS  1-5 the partition (board.lua)
-- ARGV  the partition's, `after`: the key after which to begin, or '', `limit`: number of keys to return
-- reply ok, now, reading, retiring, number of keys, then the keys
-- cost  O(log keys + keys returned)
-- why a script: number and keys must be of one instant, after the window was advanced

local early = enter()
if early then
  return early
end
local reply = ok()
reply[5] = call('ZCARD', key_list())
local after = ARGV.after == '' and '-' or '(' .. ARGV.after
local keys = call('ZRANGEBYLEX', key_list(), after, '+', 'LIMIT', 0, ARGV.limit)
for i = 1, #keys do
  reply[5 + i] = keys[i]
end
return reply
