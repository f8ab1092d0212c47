//! The parts of one board: a list of them, and the part of each subject.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::keys::{BoardKeys, StoreKeys};
use super::part::Part;
use super::partition::Partition;
use crate::board::{Board, BoardName, Generation, Subject};

/// The parts of a board. A board without shards has one.
#[derive(Debug)]
pub(super) struct Parts {
    partition: Partition,
    all: Box<[Arc<Part>]>,
    /// The index of the part with which the next step of retiring begins.
    turn: AtomicUsize,
}

/// Returns how a board is divided, given the stored value. Without a stored value the board is not divided. A stored
/// value is readable, which was checked when the board was read.
pub(super) fn partition(name: &BoardName, stored: Option<&str>) -> Partition {
    let read = stored.and_then(|stored| Partition::read(name, count(stored), stored).ok());
    read.unwrap_or_else(|| Partition::unsharded(name))
}

/// Returns the number of parts in a stored value.
pub(super) fn count(stored: &str) -> u32 {
    u32::try_from(stored.split(',').count()).unwrap_or(u32::MAX)
}

/// Returns the keys of each part of one window of a board. The only part of a board without shards has the board's own
/// keys in the main window. `generation` is that of the window.
pub(super) fn keys(
    store: &StoreKeys,
    name: &BoardName,
    generation: Generation,
    is_further: bool,
    partition: &Partition,
) -> Vec<BoardKeys> {
    match partition.stored() {
        None if !is_further => vec![store.board(name, generation)],
        _ => partition.tags().map(|tag| store.part(tag, generation)).collect(),
    }
}

impl Parts {
    /// Creates the parts, each from its keys.
    pub fn new(board: &Arc<Board>, store: &StoreKeys, part: impl Fn(BoardKeys) -> Part) -> Self {
        let partition = partition(board.name(), board.parts());
        let keys = |window: &Board| keys(store, window.name(), window.generation(), window.is_further(), &partition);
        let mut further: Vec<_> = board.further().iter().map(|window| keys(window).into_iter()).collect();
        let all = keys(board).into_iter().map(|keys| {
            // The windows have the same parts.
            let further = further.iter_mut().filter_map(Iterator::next).collect();
            Arc::new(part(keys).with_further(further))
        });
        Self { all: all.collect(), partition: partition.clone(), turn: AtomicUsize::new(0) }
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
    use crate::board::{Definition, Timestamp};
    use crate::store::redis::hash_slot::HashSlot;
    use crate::store::redis::store_clock::Start;

    #[test]
    fn windows_of_a_part_have_one_hash_slot_and_no_key_in_common() {
        let text = r#"{"metric":"COUNT(2h, like, post)","slot":"1h","windows":["3m/1m","all"]}"#;
        let definition: Definition = serde_json::from_str(text).unwrap();
        for (divided, meta) in [(None, "p:1:{b}:meta"), (Some("5,0"), "p:1:{b/5}:0000000000000007:meta")] {
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(7), definition.clone()).unwrap();
            let board = Arc::new(board.with_parts(divided.map(Box::from)));
            let store = StoreKeys::new("p");
            let part = |board: &Arc<Board>| {
                let part = |keys| Part::new(board.clone(), keys, true, Start::believed(Timestamp::EPOCH));
                Parts::new(board, &store, part).first().clone()
            };
            let main = part(&board);
            assert_eq!(main.keys.meta, meta);
            assert_eq!(main.further.len(), 2);
            let mut seen = vec![main.keys.meta.clone(), main.keys.index.clone()];
            for (window, keys) in board.further().iter().zip(&main.further) {
                // The window's own part has the same keys.
                let own = part(window);
                assert_eq!((&own.keys.meta, &own.keys.index), (&keys.meta, &keys.index));
                assert!(own.further.is_empty());
                assert_eq!((own.slot(), HashSlot::of_key(keys.ranking.as_bytes())), (main.slot(), main.slot()));
                assert!(!seen.contains(&keys.meta) && !seen.contains(&keys.index));
                seen.extend([keys.meta.clone(), keys.index.clone()]);
            }
        }
    }
}
