-- What the beginning of a script uses of each window of a board that has further windows. Not a script of its own.

window.field = FIELD
window.read_meta, window.recorded, window.read_clock, window.advance = read_meta, recorded, read_clock, advance

-- Returns the head before this script.
function window.head()
  return previous_head
end
