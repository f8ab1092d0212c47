-- Scores of unranked COUNT_DISTINCT boards: none are stored. The value of a window is the number of values last seen in
-- it. Not a script of its own.

local IS_RANKED = false

local function score_text(who)
  return format(call('ZCOUNT', KEYS[FIRST_SUBJECT_KEY + 2 * (who - 1)], ARGV[5], '+inf'))
end

local function save_standing() end
