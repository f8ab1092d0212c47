-- The arguments of retiring (retire.lua), by name. Not a script of its own.

local FIRST_SLOT_KEY, FIRST_START = 9, 17
local SLOTS = #ARGV - FIRST_START
