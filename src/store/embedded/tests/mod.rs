//! Tests of the parts of the store together: `disk` on disks that crash and fail, `memory` for the contents of a
//! board's tables.

mod disk;
mod memory;
