-- The tracks of a board: its windows, or its total and its kept slots; on a board with two editions those of both, the
-- current one first. Before this part comes the list `forms`, with two functions for each edition: for its main track
-- and for each further one. Both take the keys and arguments of one track, and return the table `track` of
-- operation.lua. Not a script of its own.
--
-- ARGV  `sizes`: for each track, the number of its keys and that of its arguments, with `;` after the last track of an
--       edition that another one follows; or '' if there is only one track

-- Returns this many values after a position.
local function slice(values, after, count)
  local own = {}
  for i = 1, count do
    own[i] = values[after + i]
  end
  return own
end

local call = redis.call
local tracks = {}
-- The tracks of each edition.
local editions = {{}}
if ARGV.sizes == '' then
  tracks[1] = forms[1].main(KEYS, ARGV)
  editions[1][1] = tracks[1]
end
local keys_read, arguments_read = 0, 0
for keys, arguments, ends in string.gmatch(ARGV.sizes, '(%d+),(%d+)(;?)') do
  keys, arguments = tonumber(keys), tonumber(arguments)
  -- Scripts for which all tracks have one form list it once.
  local form, own = forms[#editions] or forms[1], editions[#editions]
  local of = #own == 0 and form.main or form.further
  local track = of(slice(KEYS, keys_read, keys), slice(ARGV, arguments_read, arguments))
  tracks[#tracks + 1], own[#own + 1] = track, track
  keys_read, arguments_read = keys_read + keys, arguments_read + arguments
  if ends ~= '' then
    editions[#editions + 1] = {}
  end
end
local main = tracks[1]

-- Returns whether the key of a subject has no ranking in any of these tracks, which an entry of it changes, while one
-- of them has as many keys as it may have. Tracks without such a limit do not count. A hidden subject goes on counting,
-- whatever others have counted for keys meanwhile: it is in no ranking.
local function has_too_many_keys(changed, subject)
  if main.is_hidden(subject) then
    return false
  end
  local is_full = false
  for _, track in ipairs(changed) do
    if track.most_keys then
      is_full = is_full or track.count_keys() >= track.most_keys
      if track.is_key_ranked(subject) then
        return false
      end
    end
  end
  return is_full
end
