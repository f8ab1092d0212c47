//! An allocator of pieces of memory of many sizes, with 32-bit references, in chunks that are never reallocated.
//!
//! Every piece belongs to a size class: exact sizes from 1 to 16 units, above that 8 classes per doubling. A chunk has
//! pieces of one class. Freed pieces are used again before new ones. An empty chunk is freed.
//!
//! A reference counts units from the first chunk on, where each chunk counts as [`Unit::PER_CHUNK`] units however large
//! it is. Pieces larger than that have a chunk of their own.
//!
//! If less than half of a class is in use, [`begin_compaction`](Pool::begin_compaction) selects chunks to empty. The
//! caller then passes every reference that it holds to [`moved`](Pool::moved), in portions of any size.

use std::collections::BTreeSet;

/// The value for no reference.
pub(super) const NONE: u32 = u32::MAX;
/// The value for no piece of a chunk.
const NO_PIECE: u16 = u16::MAX;
/// The units of the first chunk of a class. Later chunks are larger.
const FIRST_CHUNK: usize = 64;

/// The element type of pieces.
pub(super) trait Unit: Copy {
    const ZERO: Self;
    /// The units of a chunk: about 64 KiB, and at most 32,768.
    const PER_CHUNK: usize;

    /// Creates a unit that holds a piece number, for pieces that are not in use.
    fn link(to: u16) -> Self;

    fn linked(self) -> u16;
}

impl Unit for [u8; 8] {
    const ZERO: Self = [0; 8];
    const PER_CHUNK: usize = 8_192;

    fn link(to: u16) -> Self {
        u64::from(to).to_le_bytes()
    }

    fn linked(self) -> u16 {
        u16::from_le_bytes([self[0], self[1]])
    }
}

impl Unit for i64 {
    const ZERO: Self = 0;
    const PER_CHUNK: usize = 8_192;

    fn link(to: u16) -> Self {
        i64::from(to)
    }

    fn linked(self) -> u16 {
        self as u16
    }
}

/// An allocator of pieces of `U`. See the [module](self).
#[derive(Debug)]
pub(super) struct Pool<U> {
    chunks: Vec<Option<Chunk<U>>>,
    /// The indexes of `chunks` that are `None`.
    free: Vec<u32>,
    classes: Vec<Class>,
    /// The number of units of all chunks.
    units: usize,
}

#[derive(Debug)]
struct Chunk<U> {
    units: Box<[U]>,
    class: u16,
    /// The number of pieces in use.
    live: u16,
    /// The first piece that was never in use. So are all pieces after it.
    fresh: u16,
    /// The first of the freed pieces.
    vacant: u16,
    /// Whether the chunk is being emptied. Then none of its pieces is allocated, because the ones in use are being
    /// moved.
    emptying: bool,
}

#[derive(Debug, Default)]
struct Class {
    /// The chunks with room for a piece, except those that are being emptied.
    open: BTreeSet<u32>,
    /// The number of pieces in the chunks, of which `live` are in use.
    pieces: usize,
    live: usize,
}

impl<U> Default for Pool<U> {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), classes: Vec::new(), units: 0 }
    }
}

impl<U: Unit> Pool<U> {
    /// Returns whether there are references left for some more pieces of any size.
    pub(super) fn has_room(&self) -> bool {
        self.chunks.len() + 64 < max_chunks::<U>()
    }

    /// Allocates a piece of `units` units, at least 1, with undefined content. Returns `None` if no references are
    /// left. O(log chunks), and occasionally the allocation of a chunk.
    pub(super) fn allocate(&mut self, units: usize) -> Option<u32> {
        let class = class_of(units);
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Class::default);
        }
        let at = match self.classes[class].open.first() {
            Some(at) => *at,
            None => self.add_chunk(class)?,
        };
        let chunk = self.chunks[at as usize].as_mut()?;
        let size = size_of_class(class);
        let piece = match chunk.vacant {
            NO_PIECE => {
                chunk.fresh += 1;
                chunk.fresh - 1
            }
            vacant => {
                chunk.vacant = chunk.units[usize::from(vacant) * size].linked();
                vacant
            }
        };
        chunk.live += 1;
        self.classes[class].live += 1;
        if usize::from(chunk.live) == chunk.units.len() / size {
            self.classes[class].open.remove(&at);
        }
        Some(reference::<U>(at, usize::from(piece) * size))
    }

    /// Frees a piece. `units` must belong to the same size class as the number with which it was allocated.
    pub(super) fn free(&mut self, reference: u32, units: usize) {
        let class = class_of(units);
        let size = size_of_class(class);
        let (at, unit) = split::<U>(reference);
        let Some(Some(chunk)) = self.chunks.get_mut(at as usize) else { return };
        debug_assert_eq!(usize::from(chunk.class), class);
        chunk.units[unit] = U::link(chunk.vacant);
        chunk.vacant = (unit / size) as u16;
        chunk.live -= 1;
        let held = &mut self.classes[class];
        held.live -= 1;
        let others = held.open.len() > usize::from(held.open.contains(&at));
        if chunk.live == 0 && (chunk.emptying || others || chunk.units.len() > U::PER_CHUNK) {
            held.pieces -= chunk.units.len() / size;
            self.units -= chunk.units.len();
            held.open.remove(&at);
            self.chunks[at as usize] = None;
            self.free.push(at);
        } else if !chunk.emptying {
            held.open.insert(at);
        }
    }

    /// Returns the units of a piece.
    pub(super) fn get(&self, reference: u32, units: usize) -> &[U] {
        let from = self.from(reference);
        from.get(..units).unwrap_or_default()
    }

    /// Returns the units of a piece and everything after it in its chunk, for pieces that store their own length.
    pub(super) fn from(&self, reference: u32) -> &[U] {
        let (at, unit) = split::<U>(reference);
        match self.chunks.get(at as usize) {
            Some(Some(chunk)) => chunk.units.get(unit..).unwrap_or_default(),
            _ => &[],
        }
    }

    pub(super) fn get_mut(&mut self, reference: u32, units: usize) -> &mut [U] {
        let (at, unit) = split::<U>(reference);
        match self.chunks.get_mut(at as usize) {
            Some(Some(chunk)) => chunk.units.get_mut(unit..unit + units).unwrap_or_default(),
            _ => &mut [],
        }
    }

    /// Moves a piece of `old_units` units to a new piece of `new_units` units, and frees the old one. Returns the new
    /// reference. O(units).
    pub(super) fn replace(&mut self, old: u32, old_units: usize, new_units: usize) -> Option<u32> {
        let new = self.allocate(new_units)?;
        let units = old_units.min(new_units);
        let ((old_at, old_unit), (new_at, new_unit)) = (split::<U>(old), split::<U>(new));
        if old_at == new_at {
            if let Some(Some(chunk)) = self.chunks.get_mut(old_at as usize) {
                chunk.units.copy_within(old_unit..old_unit + units, new_unit);
            }
        } else if let Ok([Some(from), Some(to)]) = self.chunks.get_disjoint_mut([old_at as usize, new_at as usize]) {
            to.units[new_unit..new_unit + units].copy_from_slice(&from.units[old_unit..old_unit + units]);
        }
        self.free(old, old_units);
        Some(new)
    }

    /// Returns whether so little is in use that a compaction would free enough memory to be worth its cost.
    pub(super) fn is_sparse(&self) -> bool {
        self.classes.iter().enumerate().any(|(class, held)| held.is_sparse::<U>(class))
    }

    /// Selects the chunks to empty: the emptier ones of each class of which less than half is in use. O(chunks).
    pub(super) fn begin_compaction(&mut self) {
        for (at, chunk) in self.chunks.iter_mut().enumerate() {
            let Some(chunk) = chunk else { continue };
            let class = usize::from(chunk.class);
            let held = &mut self.classes[class];
            let mostly_vacant = usize::from(chunk.live) * size_of_class(class) * 4 < chunk.units.len() * 3;
            if mostly_vacant && held.is_sparse::<U>(class) {
                chunk.emptying = true;
                held.open.remove(&(at as u32));
            }
        }
    }

    /// Moves a piece if its chunk is being emptied. Returns the new reference if so.
    pub(super) fn moved(&mut self, reference: u32, units: usize) -> Option<u32> {
        let (at, _) = split::<U>(reference);
        if !self.chunks.get(at as usize)?.as_ref()?.emptying {
            return None;
        }
        self.replace(reference, units, units)
    }

    /// Returns the bytes that the pool uses, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.units * size_of::<U>()
            + self.chunks.capacity() * size_of::<Option<Chunk<U>>>()
            + self.free.capacity() * size_of::<u32>()
            + self.classes.capacity() * size_of::<Class>()
    }

    fn add_chunk(&mut self, class: usize) -> Option<u32> {
        let size = size_of_class(class);
        let held = &mut self.classes[class];
        let wanted = (held.pieces * size / 4).clamp(FIRST_CHUNK, U::PER_CHUNK);
        let pieces = (wanted / size).max(1);
        let chunk = Chunk {
            units: vec![U::ZERO; pieces * size].into_boxed_slice(),
            class: class as u16,
            live: 0,
            fresh: 0,
            vacant: NO_PIECE,
            emptying: false,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.chunks[at as usize] = Some(chunk);
                at
            }
            None if self.chunks.len() < max_chunks::<U>() => {
                self.chunks.push(Some(chunk));
                self.chunks.len() as u32 - 1
            }
            None => return None,
        };
        held.pieces += pieces;
        held.open.insert(at);
        self.units += pieces * size;
        Some(at)
    }
}

impl Class {
    fn is_sparse<U: Unit>(&self, class: usize) -> bool {
        self.live * 2 < self.pieces && self.pieces * size_of_class(class) > 2 * U::PER_CHUNK
    }
}

/// Returns the number of chunks that references can address. No reference to the last one is [`NONE`].
fn max_chunks<U: Unit>() -> usize {
    (u32::MAX as usize) / U::PER_CHUNK
}

/// Returns the reference of a unit of a chunk.
fn reference<U: Unit>(chunk: u32, unit: usize) -> u32 {
    chunk * U::PER_CHUNK as u32 + unit as u32
}

/// Returns the chunk of a reference, and the unit in it.
fn split<U: Unit>(reference: u32) -> (u32, usize) {
    (reference / U::PER_CHUNK as u32, reference as usize % U::PER_CHUNK)
}

/// Returns the class of pieces that have room for this many units, at least 1.
pub(super) fn class_of(units: usize) -> usize {
    if units <= 16 {
        return units.max(1) - 1;
    }
    let octave = (units - 1).ilog2();
    let step = 1 << (octave - 3);
    16 + (octave as usize - 4) * 8 + units.div_ceil(step) - 9
}

/// Returns the number of units that a piece takes which has room for this many.
pub(super) fn rounded_units(units: usize) -> usize {
    size_of_class(class_of(units))
}

/// Returns the number of units of a class's pieces.
fn size_of_class(class: usize) -> usize {
    match class.checked_sub(16) {
        None => class + 1,
        Some(above) => (9 + above % 8) << (above / 8 + 1),
    }
}

/// Changes the number of units of a piece, and moves the piece if the new number belongs to a different size class.
/// Returns the reference.
pub(super) fn resize_piece<U: Unit>(pool: &mut Pool<U>, piece: u32, old: usize, new: usize) -> u32 {
    if class_of(old) == class_of(new) {
        return piece;
    }
    // Callers check for room before they change anything, so this allocation succeeds.
    pool.replace(piece, old, new).unwrap_or(piece)
}

#[cfg(test)]
mod tests;
