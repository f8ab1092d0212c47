//! What some metrics keep of a subject beside one number per slot.
//!
//! Sums and extremes are one number per slot, which their slices hold; boards of them have none of this.

use super::record::Slice;
use super::sightings::Sightings;
use crate::board::{Amount, Kind, Sketch, Tally};

/// The part of a subject's record that its slices do not hold.
#[derive(Debug)]
pub(super) enum Extra {
    Means(Box<Means>),
    Sketches(Box<Sketches>),
    Sightings(Box<Sightings>),
}

/// AVG: how often was measured, slice by slice, and what all slices add up to, so that no write looks at them all.
#[derive(Debug, Default)]
pub(super) struct Means {
    /// Of the slice at the same index, which holds the sum.
    pub counts: Vec<i64>,
    /// On a ranked board, as `count`.
    pub sum: i64,
    pub count: i64,
}

/// APPROX_COUNT_DISTINCT: a sketch for each slice, which holds no number of its own.
#[derive(Debug, Default)]
pub(super) struct Sketches {
    pub by_slice: Vec<Sketch>,
    /// All of them merged, on a ranked board: whether a mark changes the score is a look at one register.
    pub merged: Sketch,
}

impl Extra {
    /// What a new subject of a board has; `None` where slices hold everything.
    pub(super) fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Sum | Kind::Min | Kind::Max => None,
            Kind::Mean => Some(Extra::Means(Box::default())),
            Kind::Sketch => Some(Extra::Sketches(Box::default())),
            Kind::Distinct => Some(Extra::Sightings(Box::default())),
        }
    }

    /// A slice was made at this index.
    pub(super) fn opened(&mut self, at: usize) {
        match self {
            Extra::Means(means) => means.counts.insert(at, 0),
            Extra::Sketches(sketches) => sketches.by_slice.insert(at, Sketch::default()),
            Extra::Sightings(_) => {}
        }
    }

    /// The slice at this index, which held `amount`, is gone. What is cached of all sketches waits for
    /// [`settle`](Self::settle).
    pub(super) fn closed(&mut self, at: usize, amount: i64) {
        match self {
            Extra::Means(means) => {
                means.sum -= amount;
                means.count -= means.counts.remove(at);
            }
            Extra::Sketches(sketches) => drop(sketches.by_slice.remove(at)),
            Extra::Sightings(_) => {}
        }
    }

    /// Computes anew what is cached of all slices. O(slices), and of sketches O(slices x registers).
    pub(super) fn settle(&mut self, slices: &[Slice]) {
        match self {
            Extra::Means(means) => {
                means.sum = slices.iter().map(|slice| slice.amount).sum();
                means.count = means.counts.iter().sum();
            }
            Extra::Sketches(sketches) => sketches.merged = merged(&sketches.by_slice),
            Extra::Sightings(_) => {}
        }
    }

    /// Whether there is nothing beside the slices.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Extra::Means(_) | Extra::Sketches(_) => true,
            Extra::Sightings(sightings) => sightings.is_empty(),
        }
    }
}

/// The sketch of all.
pub(super) fn merged(sketches: &[Sketch]) -> Sketch {
    let Some((first, rest)) = sketches.split_first() else { return Sketch::default() };
    let mut merged = first.clone();
    rest.iter().for_each(|sketch| merged.merge(sketch));
    merged
}

/// What a slice, the one at this index, says.
pub(super) fn tally(kind: Kind, slice: &Slice, at: usize, extra: Option<&Extra>) -> Tally {
    match extra {
        Some(Extra::Means(means)) => Tally::Mean { sum: Amount(slice.amount), count: means.counts[at] },
        Some(Extra::Sketches(sketches)) => Tally::Sketch(sketches.by_slice[at].clone()),
        _ if matches!(kind, Kind::Min | Kind::Max) => Tally::Extreme(Amount(slice.amount)),
        _ => Tally::Sum(Amount(slice.amount)),
    }
}
