-- The windows of a board that has no further ones. Not a script of its own.

local windows = {window}
