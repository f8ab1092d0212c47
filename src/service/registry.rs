//! The boards this instance knows, so that a request needs no look-up in the store.
//!
//! The cache may be stale: every store call carries the board's generation, and one that is gone answers
//! [`StoreError::BoardChanged`](crate::store::StoreError::BoardChanged), upon which the board is looked up again.
//! That is how a board removed or defined anew through one instance holds on all of them at once.
//!
//! An event names no board, so nothing tells it of one that is missing here: the [`Catalog`] that events are looked
//! up in is read from the store again when it is older than they allow.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::catalog::Catalog;
use crate::board::{Board, BoardName};
use crate::store::{self, Store};

/// Boards by name, filled from the store as they are asked for.
pub(super) struct Registry {
    store: Arc<dyn Store>,
    /// Read on every request, written when a board comes or goes; never held across an await.
    known: RwLock<Known>,
    /// Held by whoever reads the list for the catalog, so that not all do who find it too old.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    boards: HashMap<BoardName, Entry>,
    /// Those boards by the type of their events; made when it is asked for.
    catalog: Option<Arc<Catalog>>,
    /// When the store was last asked for all boards; `None` before the first time.
    listed: Option<Instant>,
    /// Grows with everything learned from the store.
    lessons: u64,
}

struct Entry {
    board: Arc<Board>,
    /// What [`Known::lessons`] was when the store last confirmed it.
    lesson: u64,
}

impl Registry {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: RwLock::default(), listing: tokio::sync::Mutex::default() }
    }

    /// The board, from the cache if it is there. A store call only for a name not known here.
    pub(super) async fn get(&self, name: &BoardName) -> store::Result<Option<Arc<Board>>> {
        let known = self.known.read().boards.get(name).map(|entry| entry.board.clone());
        match known {
            Some(board) => Ok(Some(board)),
            None => self.refresh(name).await,
        }
    }

    /// The board as the store has it now. One store call.
    pub(super) async fn refresh(&self, name: &BoardName) -> store::Result<Option<Arc<Board>>> {
        let found = self.store.board(name).await?;
        match &found {
            Some(board) => self.put(board.clone()),
            None => self.forget(name),
        }
        Ok(found)
    }

    /// All boards as the store has them now.
    pub(super) async fn refresh_all(&self) -> store::Result<Vec<Arc<Board>>> {
        let (asked, lessons) = (Instant::now(), self.known.read().lessons);
        let boards = self.store.boards().await?;
        self.known.write().learn(&boards, lessons, asked);
        Ok(boards)
    }

    pub(super) fn put(&self, board: Arc<Board>) {
        let mut known = self.known.write();
        known.lessons += 1;
        known.put(&board);
    }

    pub(super) fn forget(&self, name: &BoardName) {
        let mut known = self.known.write();
        known.lessons += 1;
        if known.boards.remove(name).is_some() {
            known.catalog = None;
            // Whatever took it away may have put another in its place.
            known.listed = None;
        }
    }

    /// The boards known here, without asking the store.
    pub(super) fn known(&self) -> Vec<Arc<Board>> {
        self.known.read().boards.values().map(|entry| entry.board.clone()).collect()
    }

    /// All boards by type, from a list that is at most `age` old, or twice as old while somebody is reading it
    /// again. A board that came or went through this instance is right in it at once.
    pub(super) async fn catalog(&self, age: Duration) -> store::Result<Arc<Catalog>> {
        if self.is_listed_within(age) {
            return Ok(self.current_catalog());
        }
        let _turn = match self.listing.try_lock() {
            Ok(turn) => turn,
            Err(_) if self.is_listed_within(2 * age) => return Ok(self.current_catalog()),
            Err(_) => {
                let turn = self.listing.lock().await;
                if self.is_listed_within(age) {
                    return Ok(self.current_catalog());
                }
                turn
            }
        };
        self.refresh_all().await?;
        Ok(self.current_catalog())
    }

    fn is_listed_within(&self, age: Duration) -> bool {
        self.known.read().listed.is_some_and(|listed| listed.elapsed() < age)
    }

    fn current_catalog(&self) -> Arc<Catalog> {
        if let Some(catalog) = &self.known.read().catalog {
            return catalog.clone();
        }
        let mut known = self.known.write();
        let Known { boards, catalog, .. } = &mut *known;
        catalog.get_or_insert_with(|| Arc::new(Catalog::new(boards.values().map(|e| e.board.clone())))).clone()
    }
}

impl Known {
    /// Takes in a list that was asked for after so many lessons: what has been learned since is newer than the list.
    fn learn(&mut self, boards: &[Arc<Board>], lessons: u64, asked: Instant) {
        let is_newer = |entry: &Entry| entry.lesson > lessons;
        self.lessons += 1;
        for board in boards {
            if !self.boards.get(board.name()).is_some_and(is_newer) {
                self.put(board);
            }
        }
        // Every board of the list has been confirmed just now, so what is older is not in it.
        let before = self.boards.len();
        self.boards.retain(|_, entry| is_newer(entry));
        if self.boards.len() < before {
            self.catalog = None;
        }
        self.listed = self.listed.max(Some(asked));
    }

    /// Notes a board. One that is known keeps its place: it may hold what is dear to work out again.
    fn put(&mut self, board: &Arc<Board>) {
        let lesson = self.lessons;
        match self.boards.get_mut(board.name()) {
            Some(entry) if entry.board.generation() == board.generation() => entry.lesson = lesson,
            _ => {
                self.boards.insert(board.name().clone(), Entry { board: board.clone(), lesson });
                self.catalog = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Definition, Generation};

    fn board(name: &str, generation: u64) -> Arc<Board> {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        Arc::new(Board::new(BoardName::parse(name).unwrap(), Generation(generation), definition).unwrap())
    }

    fn seen(known: &Known) -> Vec<(&str, u64)> {
        let mut seen: Vec<_> = known.boards.iter().map(|(name, e)| (name.as_str(), e.board.generation().0)).collect();
        seen.sort_unstable();
        seen
    }

    #[test]
    fn a_list_does_not_undo_what_was_learned_while_it_was_on_its_way() {
        let mut known = Known::default();
        let now = Instant::now();
        known.learn(&[board("a", 1), board("b", 1), board("c", 1)], 0, now);
        let asked_after = known.lessons;
        for new in [board("b", 2), board("d", 1)] {
            known.lessons += 1;
            known.put(&new);
        }
        // The list was made before b was defined anew and d was defined; c has gone since.
        known.learn(&[board("a", 1), board("b", 1)], asked_after, now);
        assert_eq!(seen(&known), [("a", 1), ("b", 2), ("d", 1)]);
        known.learn(&[board("a", 1)], known.lessons, now);
        assert_eq!(seen(&known), [("a", 1)]);
    }

    #[test]
    fn the_catalog_is_made_anew_only_when_boards_come_or_go() {
        let mut known = Known::default();
        known.learn(&[board("a", 1)], 0, Instant::now());
        let first = known.boards.values().next().unwrap().board.clone();
        known.catalog = Some(Arc::default());
        known.learn(&[board("a", 1)], known.lessons, Instant::now());
        assert!(known.catalog.is_some() && Arc::ptr_eq(&known.boards.values().next().unwrap().board, &first));
        known.learn(&[], known.lessons, Instant::now());
        assert!(known.catalog.is_none() && known.boards.is_empty());
    }
}
