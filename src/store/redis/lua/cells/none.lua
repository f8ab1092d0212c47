-- Cells of unranked COUNT_DISTINCT boards: they have none, because the times of the values are sufficient. Not a script
-- of its own.

local function save_cells() end
