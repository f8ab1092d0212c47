//! The texts of a subject that has many values, each with its time.

use super::{LastSeen, decode, encode};
use crate::store::embedded::ranking;

/// The bytes of a block. Texts are appended to the newest block.
const BLOCK: usize = 16 << 10;
/// The bytes of a unit. References count units, so that 32 bits address 16 GB.
const UNIT: usize = 4;
/// The number of bits by which a block's number is shifted in a reference.
const SHIFT: u32 = (BLOCK / UNIT).ilog2();
/// The bytes of a value before its text: the time with `retracted`, the length, and whether it is dead.
const HEAD: usize = 12;
/// The highest bit of a length, which is set once nothing refers to the text.
const DEAD: u32 = 1 << 31;

/// Texts in blocks. Blocks that are less than half in use are listed, and their texts are moved out one by one: see
/// [`next_to_move`](Self::next_to_move).
#[derive(Debug, Default)]
pub(super) struct ValueTexts {
    blocks: Vec<Block>,
    /// The empty blocks, which are used again.
    vacant: Vec<u32>,
    /// The block that texts are appended to.
    newest: u32,
    /// The blocks less than half in use. The last one is being emptied.
    sparse: Vec<u32>,
    /// The position up to which the last of `sparse` was scanned.
    scanned: usize,
    /// The bytes for which the blocks have memory.
    capacity: usize,
}

#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// The bytes in use.
    live: usize,
    /// Whether the block is listed as sparse.
    sparse: bool,
}

impl ranking::TextSource for ValueTexts {
    fn text(&self, id: u32) -> &str {
        self.text(id)
    }
}

impl ValueTexts {
    /// Appends a text and returns its reference. O(length), and moves the content of a block that is still small.
    pub(super) fn push(&mut self, text: &str, last_seen: LastSeen) -> u32 {
        let size = size(text.len());
        if self.blocks.get(self.newest as usize).is_none_or(|newest| newest.bytes.len() + size > BLOCK) {
            self.begin_block();
        }
        let block = &mut self.blocks[self.newest as usize];
        let start = block.bytes.len();
        if block.bytes.capacity() < start + size {
            // Few texts should take few bytes, so a block grows by a quarter at a time up to its full size.
            let capacity = (start + (start / 4).max(size)).min(BLOCK.max(size));
            let before = block.bytes.capacity();
            block.bytes.reserve_exact(capacity - start);
            self.capacity += block.bytes.capacity() - before;
        }
        block.bytes.extend_from_slice(&encode(last_seen));
        // Values have at most 512 bytes.
        block.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        block.bytes.extend_from_slice(text.as_bytes());
        block.bytes.resize(start + size, 0);
        block.live += size;
        self.newest << SHIFT | (start / UNIT) as u32
    }

    pub(super) fn text(&self, reference: u32) -> &str {
        let (block, start) = position(reference);
        let block = &self.blocks[block];
        let (length, _) = block.length(start);
        // Only valid UTF-8 is written.
        std::str::from_utf8(&block.bytes[start + HEAD..start + HEAD + length]).unwrap_or_default()
    }

    /// Returns the time of the value.
    pub(super) fn last_seen(&self, reference: u32) -> LastSeen {
        let (block, start) = position(reference);
        decode(self.blocks[block].array(start))
    }

    pub(super) fn set_last_seen(&mut self, reference: u32, last_seen: LastSeen) {
        let (block, start) = position(reference);
        self.blocks[block].bytes[start..start + 8].copy_from_slice(&encode(last_seen));
    }

    /// Records that nothing refers to a text. Returns its size.
    pub(super) fn free(&mut self, reference: u32) -> usize {
        let (at, start) = position(reference);
        let block = &mut self.blocks[at];
        let (length, _) = block.length(start);
        block.bytes[start + 8..start + HEAD].copy_from_slice(&(length as u32 | DEAD).to_le_bytes());
        block.live -= size(length);
        if at != self.newest as usize {
            self.list_if_sparse(at as u32);
        }
        size(length)
    }

    /// Returns the next text to move out of a block that is less than half in use, and the number of bytes scanned. The
    /// text is `None` if only a dead text was scanned or the block was empty. Returns `None` if no block is to be
    /// emptied.
    pub(super) fn next_to_move(&mut self) -> Option<(Option<u32>, usize)> {
        let &at = self.sparse.last()?;
        let block = &mut self.blocks[at as usize];
        if block.live == 0 {
            self.capacity -= block.bytes.capacity();
            *block = Block::default();
            self.vacant.push(at);
            self.sparse.pop();
            self.scanned = 0;
            return Some((None, HEAD));
        }
        let start = self.scanned;
        let (length, dead) = block.length(start);
        self.scanned += size(length);
        let reference = at << SHIFT | (start / UNIT) as u32;
        Some(((!dead).then_some(reference), size(length)))
    }

    fn begin_block(&mut self) {
        let full = self.newest;
        self.newest = self.vacant.pop().unwrap_or_else(|| {
            self.blocks.push(Block::default());
            self.blocks.len() as u32 - 1
        });
        if full != self.newest {
            self.list_if_sparse(full);
        }
    }

    /// Lists a block if it is sparse, and frees its memory if it is not used at all.
    fn list_if_sparse(&mut self, at: u32) {
        let block = &mut self.blocks[at as usize];
        if block.sparse || block.live * 2 >= BLOCK {
            return;
        }
        if block.live == 0 {
            self.capacity -= block.bytes.capacity();
            *block = Block::default();
            self.vacant.push(at);
        } else {
            block.sparse = true;
            // Inserted before the block that is being emptied.
            self.sparse.insert(self.sparse.len().saturating_sub(1), at);
        }
    }

    /// Returns the bytes that texts use, including dead texts and spare capacity. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.capacity
            + self.blocks.capacity() * size_of::<Block>()
            + (self.vacant.capacity() + self.sparse.capacity()) * size_of::<u32>()
    }

    /// Returns the bytes for which the blocks have memory, counted block by block.
    #[cfg(test)]
    pub(super) fn counted_capacity(&self) -> (usize, usize) {
        (self.capacity, self.blocks.iter().map(|block| block.bytes.capacity()).sum())
    }
}

impl Block {
    fn array<const N: usize>(&self, start: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[start..start + N]);
        bytes
    }

    /// Returns the length of the text that begins here, and whether it is dead.
    fn length(&self, start: usize) -> (usize, bool) {
        let length = u32::from_le_bytes(self.array(start + 8));
        ((length & !DEAD) as usize, length & DEAD != 0)
    }
}

/// Returns the bytes that a text of this length takes.
pub(super) fn size(length: usize) -> usize {
    (HEAD + length).next_multiple_of(UNIT)
}

/// Returns the block of a reference, and the byte in it.
fn position(reference: u32) -> (usize, usize) {
    ((reference >> SHIFT) as usize, (reference & ((1 << SHIFT) - 1)) as usize * UNIT)
}
