//! The parts of one board: a list of them, and the part of each subject.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::keys::{BoardKeys, StoreKeys};
use super::part::Part;
use super::partition::Partition;
use crate::board::{BoardName, BoardTrack, Subject, TrackId};

/// The parts of a board. A board without shards has one.
#[derive(Debug)]
pub(super) struct Parts {
    partition: Partition,
    all: Box<[Arc<Part>]>,
    /// The index of the part with which the next step of retiring begins.
    turn: AtomicUsize,
}

/// Returns the number of parts in a stored value.
pub(super) fn count(stored: &str) -> u32 {
    u32::try_from(stored.split(',').count()).unwrap_or(u32::MAX)
}

/// Returns the keys of each part of a track. The only part of a board without shards has the board's own keys in the main
/// track.
pub(super) fn keys(
    store: &StoreKeys,
    name: &BoardName,
    track: TrackId,
    is_main: bool,
    partition: &Partition,
) -> Vec<BoardKeys> {
    match partition.numbers() {
        None if is_main => vec![store.board(name, track)],
        _ => partition.tags().map(|tag| store.part(tag, track)).collect(),
    }
}

impl Parts {
    /// Creates the parts of a track, each from its keys. Those of the main track, to which writes go, also get the keys of
    /// the same part in each other track.
    pub fn new(track: &BoardTrack, store: &StoreKeys, part: impl Fn(BoardKeys) -> Part) -> Self {
        let board = track.board();
        let partition = Partition::of(board.name(), board.partitions());
        let keys = |track: &BoardTrack| keys(store, board.name(), track.id(), track.is_main(), &partition);
        let others = board.each_track().skip(1).filter(|_| track.is_main());
        let mut others: Vec<_> = others.map(|other| keys(&other).into_iter()).collect();
        let all = keys(track).into_iter().map(|keys| {
            // The tracks have the same parts.
            let others = others.iter_mut().filter_map(Iterator::next).collect();
            Arc::new(part(keys).with_further(others))
        });
        let all = all.collect();
        Self { all, partition, turn: AtomicUsize::new(0) }
    }

    pub fn all(&self) -> &[Arc<Part>] {
        &self.all
    }

    pub fn count(&self) -> usize {
        self.partition.count()
    }

    /// Returns the first part. There is always one.
    pub fn first(&self) -> &Arc<Part> {
        &self.all[0]
    }

    /// Returns the only part, or `None` if there are several.
    pub fn only(&self) -> Option<&Arc<Part>> {
        match &*self.all {
            [part] => Some(part),
            _ => None,
        }
    }

    /// Returns the index of the part that has the subject.
    pub fn number_of(&self, subject: &Subject) -> usize {
        match self.all.len() {
            1 => 0,
            _ => self.partition.part_of(subject),
        }
    }

    /// Returns the part that has the subject.
    pub fn of(&self, subject: &Subject) -> &Arc<Part> {
        &self.all[self.number_of(subject)]
    }

    /// Returns all parts once, beginning with the one whose turn it is.
    pub fn in_turn(&self) -> impl Iterator<Item = &Arc<Part>> {
        let (count, turn) = (self.all.len(), self.turn.load(Ordering::Relaxed));
        (0..count).map(move |i| &self.all[(turn + i) % count])
    }

    /// Moves the turn forward by this many parts.
    pub fn pass_turn(&self, taken: usize) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store((turn + taken) % self.all.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, Definition, Generation, Partitions, Timestamp};
    use crate::store::redis::hash_slot::HashSlot;
    use crate::store::redis::store_clock::Start;

    #[test]
    fn tracks_of_a_part_have_one_hash_slot_and_no_key_in_common() {
        let text = r#"{"metric":"COUNT(2h, like, post)","slot":"1h","windows":["3m/1m","all"]}"#;
        let definition: Definition = serde_json::from_str(text).unwrap();
        for (numbers, meta) in [(None, "p:1:{b}:meta"), (Some([5, 0]), "p:1:{b/5}:0000000000000007:meta")] {
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(7), definition.clone()).unwrap();
            let board = Arc::new(board.with_partitions(numbers.map(Partitions::from)));
            let store = StoreKeys::new("p");
            let part = |track: &BoardTrack| {
                let part = |keys| Part::new(track.clone(), keys, true, Start::believed(Timestamp::EPOCH));
                Parts::new(track, &store, part).first().clone()
            };
            let main = part(&board.main());
            assert_eq!(main.keys.meta, meta);
            assert_eq!(main.further.len(), 2);
            let mut seen = vec![main.keys.meta.clone(), main.keys.index.clone()];
            for (track, keys) in board.each_track().skip(1).zip(&main.further) {
                // The track's own part has the same keys.
                let own = part(&track);
                assert_eq!((&own.keys.meta, &own.keys.index), (&keys.meta, &keys.index));
                assert!(own.further.is_empty());
                assert_eq!((own.slot(), HashSlot::of_key(keys.ranking.as_bytes())), (main.slot(), main.slot()));
                assert!(!seen.contains(&keys.meta) && !seen.contains(&keys.index));
                seen.extend([keys.meta.clone(), keys.index.clone()]);
            }
        }
    }
}
