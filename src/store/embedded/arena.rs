//! The texts of subjects, each identified by a 32-bit reference.
//!
//! A text takes a length of one byte (two bytes from 250 bytes on) and its bytes, rounded up to a multiple of 8: a text
//! of 14 bytes takes 16. References count units of 8 bytes, so they address 32 GiB.

use super::pool::Pool;

/// Lengths below this are stored in one byte.
const SHORT: usize = 250;

/// Texts of at most 1,785 bytes, by reference.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pool: Pool<[u8; 8]>,
}

impl Arena {
    /// Returns whether references are left.
    pub(super) fn has_room(&self) -> bool {
        self.pool.has_room()
    }

    /// Stores a text and returns its reference, or `None` if no references are left or the text is too long.
    pub(super) fn store(&mut self, text: &str) -> Option<u32> {
        let prefix = Prefix::of(text.len())?;
        let units = units(text.len());
        let reference = self.pool.allocate(units)?;
        let bytes = self.pool.get_mut(reference, units).as_flattened_mut();
        let (head, tail) = bytes.split_at_mut(prefix.len);
        head.copy_from_slice(&prefix.bytes[..prefix.len]);
        tail[..text.len()].copy_from_slice(text.as_bytes());
        Some(reference)
    }

    /// Returns the bytes of a text.
    pub(super) fn bytes(&self, reference: u32) -> &[u8] {
        let bytes = self.pool.from(reference).as_flattened();
        let (from, len) = match *bytes {
            [short, ..] if usize::from(short) < SHORT => (1, usize::from(short)),
            [high, low, ..] => (2, SHORT + (usize::from(high) - SHORT) * 256 + usize::from(low)),
            _ => (0, 0),
        };
        bytes.get(from..from + len).unwrap_or_default()
    }

    /// Returns a text.
    pub(super) fn get(&self, reference: u32) -> &str {
        std::str::from_utf8(self.bytes(reference)).unwrap_or_default()
    }

    /// Frees the space of a text.
    pub(super) fn free(&mut self, reference: u32) {
        let units = units(self.bytes(reference).len());
        self.pool.free(reference, units);
    }

    /// Returns whether a compaction would free enough memory to be worth its cost.
    pub(super) fn is_sparse(&self) -> bool {
        self.pool.is_sparse()
    }

    /// Starts a compaction, which empties sparse chunks. After this call, the caller must pass every reference to
    /// [`moved`](Self::moved).
    pub(super) fn begin_compaction(&mut self) {
        self.pool.begin_compaction();
    }

    /// Returns the new reference of a text if the compaction moved it.
    pub(super) fn moved(&mut self, reference: u32) -> Option<u32> {
        let units = units(self.bytes(reference).len());
        self.pool.moved(reference, units)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.pool.memory_bytes()
    }
}

/// Returns the number of 8-byte units that a text of this length takes.
fn units(len: usize) -> usize {
    (len + if len < SHORT { 1 } else { 2 }).div_ceil(8)
}

/// The encoded length that is stored before a text.
struct Prefix {
    bytes: [u8; 2],
    len: usize,
}

impl Prefix {
    fn of(length: usize) -> Option<Self> {
        match length.checked_sub(SHORT) {
            None => Some(Self { bytes: [length as u8, 0], len: 1 }),
            Some(rest) => {
                let high = u8::try_from(SHORT + rest / 256).ok()?;
                Some(Self { bytes: [high, (rest % 256) as u8], len: 2 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_of_every_length_round_trip_in_the_expected_size() {
        let mut arena = Arena::default();
        let texts: Vec<String> = (0..=1_785).map(|length| "x".repeat(length)).collect();
        let references: Vec<u32> = texts.iter().map(|text| arena.store(text).unwrap()).collect();
        for (text, reference) in texts.iter().zip(&references) {
            assert_eq!(arena.get(*reference), text);
        }
        assert!(arena.store(&"x".repeat(1_786)).is_none());
        assert_eq!([7, 8, 14, 15, 16, 249, 250, 512].map(units), [1, 2, 2, 2, 3, 32, 32, 65]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn behaves_like_a_vector(steps in prop::collection::vec((0u8..3, 0usize..1_000, 1usize..1_025), 1..600)) {
            let mut arena = Arena::default();
            let mut model: Vec<(u32, String)> = Vec::new();
            for (nth, (what, which, length)) in steps.into_iter().enumerate() {
                if what > 0 || model.is_empty() {
                    let text: String = format!("{nth}é").chars().cycle().take(length / 2 + 1).collect();
                    model.push((arena.store(&text).unwrap(), text));
                } else {
                    let (reference, text) = model.swap_remove(which % model.len());
                    prop_assert_eq!(arena.get(reference), text);
                    arena.free(reference);
                }
            }
            arena.begin_compaction();
            for (reference, text) in &mut model {
                *reference = arena.moved(*reference).unwrap_or(*reference);
                prop_assert_eq!(arena.get(*reference), text);
            }
        }
    }
}
