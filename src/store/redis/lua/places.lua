-- Places in the order of a sorted set: a ranking, or the values of a subject. Not a script of its own.
--
-- KEYS  6 the sorted set; for a track with keys, ranking.lua chooses one of its rankings instead
-- ARGV  `order`: `desc` or `asc`
--
--- @include board

local SORTED = KEYS[6]
local ASCENDING = ARGV.order == 'asc'
local LINES = ASCENDING and 'ZRANGE' or 'ZREVRANGE'

-- Returns the number of lines with a strictly better score.
local function better_than(score)
  if ASCENDING then
    return call('ZCOUNT', SORTED, '-inf', '(' .. score)
  end
  return call('ZCOUNT', SORTED, '(' .. score, '+inf')
end

-- Returns the number of lines whose score is not worse.
local function not_worse_than(score)
  if ASCENDING then
    return call('ZCOUNT', SORTED, '-inf', score)
  end
  return call('ZCOUNT', SORTED, score, '+inf')
end

-- Returns whether the bytes of `a` come before those of `b`. The operator `<` would depend on the server's locale.
local function precedes(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- Returns how many lines come before the place of this score and subject, whether or not there is a line at that place,
-- and true if there is one. A tie is searched by bisection, because all lines may have the same score.
local function lines_before(score, subject)
  local held = call('ZSCORE', SORTED, subject)
  if held and tonumber(held) == tonumber(score) then
    return call(ASCENDING and 'ZRANK' or 'ZREVRANK', SORTED, subject), true
  end
  local first = better_than(score)
  local last = first + call('ZCOUNT', SORTED, score, score)
  while first < last do
    local middle = math.floor((first + last) / 2)
    local line = call(LINES, SORTED, format(middle), format(middle))[1]
    local is_before
    if ASCENDING then
      is_before = precedes(line, subject)
    else
      is_before = precedes(subject, line)
    end
    if is_before then
      first = middle + 1
    else
      last = middle
    end
  end
  return first
end
