//! HyperLogLog: about how many distinct values there were, in bounded space.
//!
//! Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation
//! algorithm" (2007); the estimate is Ertl's improved one, "New cardinality estimation algorithms for HyperLogLog
//! sketches" (2017), algorithm 6, which needs no tables of bias. It uses nothing but +, −, x, / and square roots,
//! which every IEEE machine rounds alike, so that stores computing it in Rust and in Lua agree to the last unit.

use xxhash_rust::xxh3::xxh3_64;

/// Registers of a sketch: 2^11.
pub const REGISTERS: usize = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 11;
/// Bits of a hash that are not the index: the most leading zeros counted.
const REST_BITS: u32 = 64 - INDEX_BITS;
/// Bytes of an entry of a sparse sketch: the index, high byte first, and the register.
const ENTRY: usize = 3;
/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// A sketch in the form stores keep it: while short, entries of 3 bytes by index; from 683 registers on, all 2,048
/// registers of a byte each. So the length tells the forms apart, and 2,048 bytes are the most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch(Vec<u8>);

/// What a value does to a sketch: raises one register, if it is lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// 0 to 2,047.
    pub register: u16,
    /// 1 to 54.
    pub rank: u8,
}

impl Mark {
    /// The mark of a value. The hash (XXH3, 64 bits) is part of the stored form and must never change.
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

    /// The most bytes a sketch has.
    pub const MOST_BYTES: usize = REGISTERS;

    /// Reads the stored form; `None` if it is not one.
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

    /// The stored form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether nothing was ever marked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_dense(&self) -> bool {
        self.0.len() == REGISTERS
    }

    /// Raises a register; answers whether it was lower. O(log registers), and a shift while the sketch is sparse.
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

    fn make_dense(&mut self) {
        let mut registers = vec![0; REGISTERS];
        for entry in self.0.as_chunks::<ENTRY>().0 {
            registers[index(entry)] = entry[2];
        }
        self.0 = registers;
    }

    /// Makes this the sketch of both. O(registers).
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

    /// About how many distinct values were marked, to the nearest whole number. O(registers).
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

/// Ertl 2017, algorithm 6: corrects for registers that are still 0.
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

/// Ertl 2017, algorithm 6: corrects for registers that can rise no further.
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

    /// At every size: each within three standard errors (of few values, off by two at most: two that share a register
    /// are a fifth of ten), all together within one, and their mean close to none.
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
    fn merging_is_marking_all_and_the_form_stays_small() {
        for (a, b) in [(0..50, 25..90), (0..2_000, 0..10), (0..10, 5..3_000), (0..5_000, 4_000..9_000)] {
            let all = of(a.start.min(b.start)..a.end.max(b.end));
            let mut merged = of(a);
            merged.merge(&of(b));
            assert_eq!(merged.estimate(), all.estimate());
            assert!(merged.as_bytes().len() <= Sketch::MOST_BYTES);
            assert_eq!(Sketch::from_bytes(merged.as_bytes()), Some(merged));
        }
    }

    #[test]
    fn only_its_own_forms_are_read() {
        assert!(Sketch::from_bytes(&[]).is_some());
        for bad in
            [&[0, 1][..], &[8, 0, 1], &[0, 1, 0], &[0, 1, 55], &[0, 2, 1, 0, 1, 1], &[0, 1, 1, 0, 1, 1], &[60; 2048]]
        {
            assert!(Sketch::from_bytes(bad).is_none());
        }
    }

    /// Stored sketches depend on it.
    #[test]
    fn the_hash_stays_what_it_is() {
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
