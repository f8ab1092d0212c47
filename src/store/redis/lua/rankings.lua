-- The rankings of a track: one, or on a track with keys one for each key; and beside them the scores of hidden subjects.
-- Not a script of its own.
--
-- KEYS  3 the ranking, subject by score; on a track with keys the epochs of its rankings, a key that ends with `:k`
--
-- With keys, a subject is its key, a zero byte and its name. The ranking of a key has names by score. A sorted set, in
-- which all scores are 0, is the list of the keys that have a ranking. The names of these sorted sets contain their
-- epoch, which is `dropped`: when that moves, all rankings are dropped at once, and retire.lua deletes those of earlier
-- epochs. The names are not in KEYS, because the caller does not know `dropped`. They have the hash tag of all keys of
-- the partition.
--
-- A server that is restarted may have kept only the first writes of a script. So keys are listed before they have a
-- ranking, and their epoch before that. And while rankings change, `ranked` in meta, the number of ranked subjects, is
-- larger by `CHANGING`: if it is so afterwards, the number is not known. Only differences are written, because the server
-- may have forgotten a part of a script and replay it at its next start, before the scripts that ran in between.
--
--- @include hidden

local CHANGING = 2 ^ 40
local HAS_KEYS = string.sub(RANKING, -2) == ':k'
-- held_score(subject): returns its score, or false. scores_of(subjects, first, last): returns those of some subjects,
-- of a thousand at most. rank(lines): sets scores, given as score, subject, … unrank(subjects): removes subjects, and
-- returns how many were ranked.
-- hide(subjects), show(subjects): move scores out of the ranking, and back.
-- note_negative(): says that a cell is about to be written that is below 0, or for AVG has a number of samples below 0.
local held_score, scores_of, rank, unrank, hide, show, note_negative
-- Only with keys. key_list(), ranking_of(key): return the names of sorted sets. ranked_number(): returns the number of
-- ranked subjects, or nil if it is not known. count_keys(): returns the number of keys. is_key_ranked(subject): returns
-- whether its key has a ranking. note_ranked(subject): has these two functions count the key of a subject that this
-- script ranks.
local key_list, ranking_of, ranked_number, count_keys, is_key_ranked, note_ranked

if not HAS_KEYS then
  function held_score(subject)
    return call('ZSCORE', RANKING, subject)
  end

  function scores_of(subjects, first, last)
    return call('ZMSCORE', RANKING, unpack(subjects, first, last))
  end

  function rank(lines)
    each_thousand('ZADD', RANKING, lines)
  end

  function unrank(subjects)
    return each_thousand('ZREM', RANKING, subjects)
  end

  function note_negative() end
else
  -- By subject, what it consists of.
  local keys, names = {}, {}
  -- By key: whether the list has it, if that is known; and whether this script ranks the first subject of it.
  local listed, added, number_added = {}, {}, 0
  local list, prefix, number_before

  function key_list()
    list = list or RANKING .. ':' .. format(dropped)
    return list
  end

  function ranking_of(key)
    prefix = prefix or rankings_of(dropped)
    return prefix .. key
  end

  local function divide(subject)
    local key = keys[subject]
    if key then
      return key, names[subject]
    end
    local zero = string.find(subject, '\0', 1, true) or #subject + 1
    key = string.sub(subject, 1, zero - 1)
    local name = string.sub(subject, zero + 1)
    keys[subject], names[subject] = key, name
    return key, name
  end

  function ranked_number()
    local number = tonumber(call('HGET', META, 'ranked') or 0)
    if call('EXISTS', key_list()) == 0 then
      return 0
    end
    return number and number < CHANGING and number or nil
  end

  -- Adds to the number of ranked subjects. Other writes were made, so it must not fail.
  local function count_ranked(by)
    redis.pcall('HINCRBY', META, 'ranked', by)
  end

  function held_score(subject)
    local key, name = divide(subject)
    return call('ZSCORE', ranking_of(key), name)
  end

  function scores_of(subjects, first, last)
    first, last = first or 1, last or #subjects
    local places, wanted, scores = {}, {}, {}
    for i = first, last do
      local key, name = divide(subjects[i])
      local own = wanted[key]
      if not own then
        wanted[key], places[key] = {name}, {i - first + 1}
      else
        own[#own + 1] = name
        places[key][#own] = i - first + 1
      end
    end
    for key, own in pairs(wanted) do
      local found, at = call('ZMSCORE', ranking_of(key), unpack(own)), places[key]
      for i = 1, #own do
        local score = found[i]
        scores[at[i]] = score
        if score then
          listed[key] = true
        end
      end
    end
    return scores
  end

  function rank(lines)
    if #lines == 0 then
      return
    end
    local of, unlisted = {}, {}
    for i = 1, #lines, 2 do
      local key, name = divide(lines[i + 1])
      local own = of[key]
      if not own then
        own = {}
        of[key] = own
        if not listed[key] then
          unlisted[#unlisted + 1], unlisted[#unlisted + 2] = 0, key
          listed[key] = true
        end
      end
      local size = #own
      own[size + 1], own[size + 2] = lines[i], name
    end
    if #unlisted > 0 then
      call('ZADD', RANKING, format(dropped), format(dropped))
      each_thousand('ZADD', key_list(), unlisted)
    end
    count_ranked(CHANGING)
    local more = 0
    for key, own in pairs(of) do
      more = more + each_thousand('ZADD', ranking_of(key), own)
    end
    count_ranked(more - CHANGING)
  end

  function unrank(subjects)
    if #subjects == 0 then
      return 0
    end
    local of, gone, fewer = {}, {}, 0
    count_ranked(CHANGING)
    for i = 1, #subjects do
      local key, name = divide(subjects[i])
      of[key] = of[key] or {}
      of[key][#of[key] + 1] = name
    end
    for key, own in pairs(of) do
      local removed = each_thousand('ZREM', ranking_of(key), own)
      fewer = fewer + removed
      if removed > 0 and call('EXISTS', ranking_of(key)) == 0 then
        gone[#gone + 1] = key
        listed[key] = nil
      end
    end
    if #gone > 0 then
      each_thousand('ZREM', key_list(), gone)
      if call('EXISTS', key_list()) == 0 then
        call('ZREM', RANKING, format(dropped))
      end
    end
    count_ranked(-fewer - CHANGING)
    return fewer
  end

  -- Only such a cell can cancel others, and a subject whose cells cancel each other is in no ranking: so retire_key.lua
  -- would not find it. No script writes to a slot after the head.
  function note_negative()
    call('HSET', META, 'negative', format(math.max(tonumber(ARGV.head), previous_head)))
  end

  function count_keys()
    number_before = number_before or call('ZCARD', key_list())
    return number_before + number_added
  end

  function is_key_ranked(subject)
    local key = divide(subject)
    if listed[key] == nil then
      listed[key] = call('ZSCORE', key_list(), key) ~= false
    end
    return listed[key] or added[key]
  end

  function note_ranked(subject)
    if not is_key_ranked(subject) then
      local key = divide(subject)
      added[key], number_added = true, number_added + 1
    end
  end
end

-- The functions above are about rankings. Those below are about all subjects, also those that rankings leave out.
local ranked_score, ranked_scores, add_ranked, remove_ranked = held_score, scores_of, rank, unrank

function held_score(subject)
  if is_hidden(subject) then
    return call('ZSCORE', hidden_ranking(), subject)
  end
  return ranked_score(subject)
end

function scores_of(subjects, first, last)
  local scores = ranked_scores(subjects, first, last)
  if marks then
    first, last = first or 1, last or #subjects
    read_letters(subjects, first, last, 1)
    for i = first, last do
      if is_hidden(subjects[i]) then
        scores[i - first + 1] = call('ZSCORE', hidden_ranking(), subjects[i])
      end
    end
  end
  return scores
end

function rank(lines)
  if not marks then
    return add_ranked(lines)
  end
  local visible, hidden = {}, {}
  read_letters(lines, 2, #lines, 2)
  for i = 1, #lines, 2 do
    local own = is_hidden(lines[i + 1]) and hidden or visible
    own[#own + 1], own[#own + 2] = lines[i], lines[i + 1]
  end
  each_thousand('ZADD', hidden_ranking(), hidden)
  add_ranked(visible)
end

function unrank(subjects)
  if not marks then
    return remove_ranked(subjects)
  end
  local visible, hidden = {}, {}
  read_letters(subjects, 1, #subjects, 1)
  for i = 1, #subjects do
    local own = is_hidden(subjects[i]) and hidden or visible
    own[#own + 1] = subjects[i]
  end
  return each_thousand('ZREM', hidden_ranking(), hidden) + remove_ranked(visible)
end

function hide(subjects)
  if #subjects == 0 then
    return
  end
  local scores, lines, found = ranked_scores(subjects), {}, {}
  for i = 1, #subjects do
    if scores[i] then
      lines[#lines + 1], lines[#lines + 2] = scores[i], subjects[i]
      found[#found + 1] = subjects[i]
    end
  end
  -- A part of an earlier script may have left a score.
  each_thousand('ZREM', hidden_ranking(), subjects)
  each_thousand('ZADD', hidden_ranking(), lines)
  remove_ranked(found)
end

function show(subjects)
  if #subjects == 0 then
    return
  end
  local scores, lines = call('ZMSCORE', hidden_ranking(), unpack(subjects)), {}
  for i = 1, #subjects do
    if scores[i] then
      lines[#lines + 1], lines[#lines + 2] = scores[i], subjects[i]
    end
  end
  add_ranked(lines)
  each_thousand('ZREM', hidden_ranking(), subjects)
end

if HAS_KEYS then
  local note_key = note_ranked
  function note_ranked(subject)
    if not is_hidden(subject) then
      note_key(subject)
    end
  end
end
