//! HyperLogLog: the approximate number of distinct values, in bounded space.
//!
//! Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm"
//! (2007). The estimate is the improved one of Ertl, "New cardinality estimation algorithms for HyperLogLog sketches"
//! (2017), algorithm 6, which needs no bias tables. It uses only +, −, x, / and square roots, which every IEEE machine
//! rounds in the same way, so stores that compute it in Rust and in Lua agree to the last unit.

use xxhash_rust::xxh3::xxh3_64;

/// The number of registers of a sketch: 2^11.
pub const REGISTERS: usize = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 11;
/// The bits of a hash that are not the index: the largest number of leading zeros that is counted.
const REST_BITS: u32 = 64 - INDEX_BITS;
/// The bytes of an entry of a sparse sketch: two for the index, high byte first, and one for the register.
const ENTRY: usize = 3;
/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// A sketch in its stored form. While it is small, it is a list of 3-byte entries ordered by index. From 683 registers
/// on, it is all 2,048 registers of one byte each. So the length tells the two forms apart, and a sketch has at most
/// 2,048 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch(Vec<u8>);

/// The effect of a value on a sketch: it raises one register to `rank`, if the register is lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The index of the register: 0 to 2,047.
    pub register: u16,
    /// The new rank of the register: 1 to 54.
    pub rank: u8,
}

impl Mark {
    /// Returns the mark of a value. The hash (XXH3, 64 bits) is part of the stored form and must never change.
    pub fn of(value: &str) -> Self {
        let hash = xxh3_64(value.as_bytes());
        let rest = hash << INDEX_BITS;
        let rank = rest.leading_zeros().min(REST_BITS) + 1;
        Mark { register: (hash >> REST_BITS) as u16, rank: rank as u8 }
    }
}

impl Sketch {
    /// The relative standard error of an estimate: 1.04 / √2048.
    pub const STANDARD_ERROR: f64 = 0.023;

    /// The largest size of a sketch, in bytes.
    pub const MAX_BYTES: usize = REGISTERS;

    /// Reads the stored form. Returns `None` if it is not valid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let highest = REST_BITS as u8 + 1;
        let sound = if bytes.len() == REGISTERS {
            bytes.iter().all(|rank| *rank <= highest)
        } else {
            let entries = bytes.chunks_exact(ENTRY);
            entries.remainder().is_empty()
                && bytes.len() < REGISTERS
                && entries.clone().all(|e| index(e) < REGISTERS && (1..=highest).contains(&e[2]))
                && entries.clone().zip(entries.skip(1)).all(|(a, b)| index(a) < index(b))
        };
        sound.then(|| Self(bytes.to_vec()))
    }

    /// Returns the stored form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether the sketch has no marks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn is_dense(&self) -> bool {
        self.0.len() == REGISTERS
    }

    /// Raises a register and returns whether it was lower. O(log registers), plus a shift of entries while the sketch
    /// is sparse.
    pub fn mark(&mut self, mark: Mark) -> bool {
        let register = usize::from(mark.register);
        if self.is_dense() {
            let raised = self.0[register] < mark.rank;
            self.0[register] = self.0[register].max(mark.rank);
            return raised;
        }
        let (entries, _) = self.0.as_chunks::<ENTRY>();
        match entries.binary_search_by_key(&register, |entry| index(entry)) {
            Ok(at) => {
                let held = &mut self.0[at * ENTRY + 2];
                let raised = *held < mark.rank;
                *held = (*held).max(mark.rank);
                raised
            }
            Err(_) if self.0.len() + ENTRY > REGISTERS => {
                self.make_dense();
                self.mark(mark)
            }
            Err(at) => {
                let [high, low] = mark.register.to_be_bytes();
                self.0.splice(at * ENTRY..at * ENTRY, [high, low, mark.rank]);
                true
            }
        }
    }

    /// Returns whether a mark changes the sketch without taking more memory, or does not change it.
    pub(crate) fn has_register(&self, mark: Mark) -> bool {
        let register = usize::from(mark.register);
        let entries = self.0.as_chunks::<ENTRY>().0;
        self.is_dense() || entries.binary_search_by_key(&register, |entry| index(entry)).is_ok()
    }

    fn make_dense(&mut self) {
        let mut registers = vec![0; REGISTERS];
        for entry in self.0.as_chunks::<ENTRY>().0 {
            registers[index(entry)] = entry[2];
        }
        self.0 = registers;
    }

    /// Merges `other` into this sketch. O(registers).
    pub fn merge(&mut self, other: &Sketch) {
        if other.is_dense() {
            if !self.is_dense() {
                self.make_dense();
            }
            for (own, other) in self.0.iter_mut().zip(&other.0) {
                *own = (*own).max(*other);
            }
            return;
        }
        for entry in other.0.as_chunks::<ENTRY>().0 {
            self.mark(Mark { register: u16::from_be_bytes([entry[0], entry[1]]), rank: entry[2] });
        }
    }

    /// Returns the approximate number of distinct values marked, rounded to a whole number. O(registers).
    pub fn estimate(&self) -> i64 {
        const HIGHEST: usize = REST_BITS as usize + 1;
        let mut counts = [0u32; HIGHEST + 1];
        if self.is_dense() {
            for rank in &self.0 {
                counts[usize::from(*rank)] += 1;
            }
        } else {
            let (entries, _) = self.0.as_chunks::<ENTRY>();
            counts[0] = (REGISTERS - entries.len()) as u32;
            for entry in entries {
                counts[usize::from(entry[2])] += 1;
            }
        }
        let m = REGISTERS as f64;
        let mut z = m * tau(1.0 - f64::from(counts[HIGHEST]) / m);
        for rank in (1..HIGHEST).rev() {
            z = 0.5 * (z + f64::from(counts[rank]));
        }
        z += m * sigma(f64::from(counts[0]) / m);
        (ALPHA * m * m / z + 0.5).floor() as i64
    }
}

fn index(entry: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([entry[0], entry[1]]))
}

/// Corrects for registers that are still 0. Ertl 2017, algorithm 6.
fn sigma(x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut x, mut y, mut z) = (x, 1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Corrects for registers that have the highest rank. Ertl 2017, algorithm 6.
fn tau(x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut x, mut y, mut z) = (x, 1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: std::ops::Range<u32>) -> Sketch {
        let mut sketch = Sketch::default();
        for value in values {
            sketch.mark(Mark::of(&format!("value-{value}")));
        }
        sketch
    }

    /// Checks, at every size, that each estimate is within three standard errors, the root mean square within one, and
    /// the mean error close to zero. With few values an estimate may be off by two at most: of ten values, two that
    /// share a register make an error of a fifth.
    #[test]
    fn estimates_stay_within_their_standard_error() {
        let sizes = [(10u32, 200), (100, 200), (1_000, 100), (5_000, 50), (10_000, 30), (100_000, 5), (1_000_000, 2)];
        for (size, repeats) in sizes {
            let errors: Vec<f64> = (0..repeats)
                .map(|repeat| {
                    of(repeat * 2_000_000..repeat * 2_000_000 + size).estimate() as f64 / f64::from(size) - 1.0
                })
                .collect();
            let worst = (3.0 * Sketch::STANDARD_ERROR).max(2.0 / f64::from(size));
            assert!(errors.iter().all(|error| error.abs() <= worst), "{size} values: {errors:?}");
            let of_all = |of: fn(&f64) -> f64| errors.iter().map(of).sum::<f64>() / f64::from(repeats);
            let (mean, square) = (of_all(|error| *error), of_all(|error| error * error));
            let leeway = 1.0 + 3.0 / f64::from(repeats).sqrt();
            assert!(square.sqrt() <= Sketch::STANDARD_ERROR * leeway, "{size} values: off by {}", square.sqrt());
            assert!(mean.abs() <= 3.0 * Sketch::STANDARD_ERROR / f64::from(repeats).sqrt(), "{size}: biased by {mean}");
        }
        assert_eq!(Sketch::default().estimate(), 0);
        assert_eq!(of(0..1).estimate(), 1);
    }

    #[test]
    fn merged_sketches_equal_sketches_of_all_values() {
        for (a, b) in [(0..50, 25..90), (0..2_000, 0..10), (0..10, 5..3_000), (0..5_000, 4_000..9_000)] {
            let all = of(a.start.min(b.start)..a.end.max(b.end));
            let mut merged = of(a);
            merged.merge(&of(b));
            assert_eq!(merged.estimate(), all.estimate());
            assert!(merged.as_bytes().len() <= Sketch::MAX_BYTES);
            assert_eq!(Sketch::from_bytes(merged.as_bytes()), Some(merged));
        }
    }

    #[test]
    fn invalid_sketch_bytes_are_refused() {
        assert!(Sketch::from_bytes(&[]).is_some());
        for bad in
            [&[0, 1][..], &[8, 0, 1], &[0, 1, 0], &[0, 1, 55], &[0, 2, 1, 0, 1, 1], &[0, 1, 1, 0, 1, 1], &[60; 2048]]
        {
            assert!(Sketch::from_bytes(bad).is_none());
        }
    }

    /// Checks that the hash stays the same: stored sketches depend on it.
    #[test]
    fn the_hash_is_stable() {
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(
            Mark::of("user-1"),
            Mark {
                register: (xxh3_64(b"user-1") >> 53) as u16,
                rank: ((xxh3_64(b"user-1") << 11).leading_zeros() + 1) as u8
            }
        );
    }
}
