//! The partitions of a board, and the parts of each of its tracks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::division::Division;
use super::keys::{BoardKeys, StoreKeys};
use super::part::Part;
use super::partition::Partition;
use super::partition_clock::PartitionClock;
use crate::board::{Board, BoardName, BoardTrack, Generation, RankingKey, Subject, TrackId};

/// The partitions of a board. A board without shards has one.
#[derive(Debug)]
pub(super) struct Partitions {
    all: Box<[Arc<Partition>]>,
    /// The parts of each track, the main one first.
    tracks: Box<[Arc<Parts>]>,
}

/// The parts of one track, one in each partition.
#[derive(Debug)]
pub(super) struct Parts {
    division: Arc<Division>,
    all: Box<[Arc<Part>]>,
    /// The index of the part with which the next step of retiring begins.
    turn: AtomicUsize,
}

/// Returns the number of partitions in a stored value.
pub(super) fn count(stored: &str) -> u32 {
    u32::try_from(stored.split(',').count()).unwrap_or(u32::MAX)
}

/// Returns the keys of the main track of the current edition in each partition. The only partition of a board without
/// shards has the board's own meta key.
pub(super) fn main_keys(
    store: &StoreKeys,
    name: &BoardName,
    generation: Generation,
    track: TrackId,
    division: &Division,
) -> Vec<BoardKeys> {
    match division.numbers() {
        None => vec![store.board(name, generation, track)],
        Some(_) => division.tags().map(|tag| store.partition(tag, generation, track)).collect(),
    }
}

/// Returns the keys of a track in each partition.
fn keys(store: &StoreKeys, track: &BoardTrack, division: &Division) -> Vec<BoardKeys> {
    let (board, id) = (track.board(), track.id());
    match (track.is_main(), track.is_main_of_edition()) {
        (true, _) => main_keys(store, board.name(), board.generation(), id, division),
        (false, true) => division.tags().map(|tag| store.other(tag, id)).collect(),
        (false, false) => division.tags().map(|tag| store.further(tag, id)).collect(),
    }
}

impl Partitions {
    /// Creates the partitions of a board, each with a clock that `clock` returns.
    pub fn new(board: &Arc<Board>, store: &StoreKeys, clock: impl Fn() -> PartitionClock) -> Self {
        let division = Arc::new(Division::of_board(board));
        let mut of_tracks: Vec<_> =
            board.each_track().map(|track| keys(store, &track, &division).into_iter()).collect();
        let partition = |number| {
            // Every track has keys in every partition.
            let keys = of_tracks.iter_mut().filter_map(Iterator::next).collect();
            Arc::new(Partition::new(board, number, keys, clock()))
        };
        let all: Box<[Arc<Partition>]> = (0..division.count()).map(partition).collect();
        let track = |number: usize| {
            let all = all.iter().map(|partition| partition.parts()[number].clone()).collect();
            Arc::new(Parts { division: division.clone(), all, turn: AtomicUsize::new(0) })
        };
        Self { tracks: (0..board.tracks().len()).map(track).collect(), all }
    }

    pub fn all(&self) -> &[Arc<Partition>] {
        &self.all
    }

    /// Returns the first partition. There is always one.
    pub fn first(&self) -> &Arc<Partition> {
        &self.all[0]
    }

    /// Returns the parts of the track with this number.
    pub fn of_track(&self, number: usize) -> &Arc<Parts> {
        &self.tracks[number]
    }

    /// Returns the parts of all tracks, track by track.
    pub fn parts(&self) -> impl Iterator<Item = &Arc<Part>> {
        self.tracks.iter().flat_map(|parts| parts.all())
    }
}

impl Parts {
    pub fn all(&self) -> &[Arc<Part>] {
        &self.all
    }

    pub fn count(&self) -> usize {
        self.all.len()
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
            _ => self.division.partition_of(subject),
        }
    }

    /// Returns the part that has the subject.
    pub fn of(&self, subject: &Subject) -> &Arc<Part> {
        &self.all[self.number_of(subject)]
    }

    /// Returns the part that has the ranking of the key.
    pub fn of_key(&self, key: &RankingKey) -> &Arc<Part> {
        match &*self.all {
            [part] => part,
            all => &all[self.division.partition_of_key(key)],
        }
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
    use crate::board::{Definition, PartitionNumbers, Timestamp};
    use crate::store::redis::hash_slot::HashSlot;
    use crate::store::redis::store_clock::Start;

    #[test]
    fn tracks_of_a_partition_have_one_hash_slot_and_no_key_in_common() {
        let text = r#"{"metric":"COUNT(2h, like, post)","slot":"1h","windows":["3m/1m","all"]}"#;
        let definition: Definition = serde_json::from_str(text).unwrap();
        for (numbers, meta) in [(None, "p:1:{b}:meta"), (Some([5, 0]), "p:1:{b/5}:0000000000000007:meta")] {
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(7), definition.clone()).unwrap();
            let board = Arc::new(board.with_partitions(numbers.map(PartitionNumbers::from)));
            let clock = || PartitionClock::new(&board, true, |_| Start::believed(Timestamp::EPOCH));
            let partitions = Partitions::new(&board, &StoreKeys::new("p"), clock);
            assert_eq!(partitions.parts().count(), 3 * numbers.map_or(1, |numbers| numbers.len()));
            let first = partitions.first();
            assert_eq!((first.main().keys.meta.as_str(), first.parts().len()), (meta, 3));
            let mut seen = Vec::new();
            for (number, part) in first.parts().iter().enumerate() {
                assert_eq!(part.track.number(), number);
                assert!(Arc::ptr_eq(part, partitions.of_track(number).first()));
                assert_eq!((part.slot(), HashSlot::of_key(part.keys.ranking.as_bytes())), (first.slot(), first.slot()));
                assert!(!seen.contains(&part.keys.meta) && !seen.contains(&part.keys.index));
                seen.extend([part.keys.meta.clone(), part.keys.index.clone()]);
            }
        }
    }
}
