//! The parts of the store together: `disk` on disks that crash and fail, `memory` for what a board's tables say.

mod disk;
mod memory;
