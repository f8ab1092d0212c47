//! The boards that this instance knows, so that a request needs no look-up in the store.
//!
//! The cache may be stale. Every store call carries the board's generation, and a call for a generation that no longer
//! exists returns [`StoreError::BoardChanged`](crate::store::StoreError::BoardChanged). The caller then looks the board
//! up again. So the removal of a board, and its new definition, take effect on all instances at once.
//!
//! An event names no board, so no store call reveals that a board is missing from the cache. The version of the store's
//! list does ([`Store::boards_version`]): a [`Listed`] that was read at the same version, or later, is complete.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use metrics::{describe_gauge, gauge};
use parking_lot::RwLock;

use super::configured::Configured;
use super::event_index::EventIndex;
use crate::board::{Board, BoardName, Timestamp};
use crate::store::{self, Listing, Store, Unreadable};

/// The number of boards in the last list that this version cannot read.
pub const UNREADABLE: &str = "rolltop_unreadable_boards";

/// The boards by name, read from the store when they are first requested.
pub(super) struct Registry {
    store: Arc<dyn Store>,
    pub(super) configured: Configured,
    /// Read on every request, written when a board is created or removed. Never held across an await.
    known: RwLock<Known>,
    /// Held while the list is read, so that concurrent calls that find it too old read it only once.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    boards: HashMap<BoardName, ListedBoard>,
    /// The index of the known boards by event type. Built when it is first needed.
    event_index: Option<Arc<EventIndex>>,
    /// A list whose boards are all known. `None` before the first list, and whenever it is uncertain that all its
    /// boards are still known.
    list: Option<BoardList>,
    /// A counter that grows with everything learned from the store.
    lessons: u64,
    /// A counter that grows with each board that is added or removed.
    changes: u64,
    /// The boards of the last list that cannot be read.
    unreadable: Vec<Unreadable>,
}

/// A list of all boards, as the store had it.
#[derive(Clone, Copy, Debug)]
struct BoardList {
    /// The version that the store returned before it was asked for the boards.
    version: u64,
    /// The time when the store was asked for the version.
    begun: Instant,
    /// The latest time at which the version was known to be the store's current one.
    confirmed: Instant,
}

/// All boards, indexed by event type.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub event_index: Arc<EventIndex>,
    /// The version of a list whose boards are all included.
    pub version: u64,
}

struct ListedBoard {
    board: Arc<Board>,
    /// The value of [`Known::lessons`] when the store last confirmed the board.
    lesson: u64,
}

impl Registry {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        describe_gauge!(UNREADABLE, "Boards whose definition this version cannot read, as of the last list");
        let configured = Configured::new(store.clone());
        Self { store, configured, known: RwLock::default(), listing: tokio::sync::Mutex::default() }
    }

    /// Returns the boards of the last list that cannot be read. No store call.
    pub(super) fn unreadable(&self) -> Vec<Unreadable> {
        self.known.read().unreadable.clone()
    }

    /// Returns the board, from the cache if it is there. Makes a store call only for a name that is not known here.
    pub(super) async fn get(&self, name: &BoardName) -> store::Result<Option<Arc<Board>>> {
        let known = self.known.read().boards.get(name).map(|entry| entry.board.clone());
        match known {
            Some(board) => Ok(Some(board)),
            None => self.refresh(name).await,
        }
    }

    /// Reads the board from the store. One store call.
    ///
    /// Boxed, because every call about a board would have room for what is needed only if this instance does not know it.
    pub(super) fn refresh<'a>(&'a self, name: &'a BoardName) -> BoxFuture<'a, store::Result<Option<Arc<Board>>>> {
        Box::pin(async move {
            let mut found = self.store.board(name).await?;
            if found.is_none() && self.configured.contains(name) && self.configured.restore().await? {
                found = self.store.board(name).await?;
            }
            match &found {
                Some(board) => self.put(board.clone()),
                None => self.forget(name),
            }
            Ok(found)
        })
    }

    /// Reads all boards from the store.
    pub(super) async fn refresh_all(&self) -> store::Result<Vec<Arc<Board>>> {
        Ok(self.read_list().await?.0)
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
            known.note_change();
            // The board may have been replaced by another one with the same name.
            known.list = None;
        }
    }

    /// Returns the boards known here, and a number that is the same as long as they are, unless it is `seen`. No store
    /// call.
    pub(super) fn known_since(&self, seen: Option<u64>) -> Option<(Vec<Arc<Board>>, u64)> {
        let known = self.known.read();
        let boards = || known.boards.values().map(|entry| entry.board.clone()).collect();
        (seen != Some(known.changes)).then(|| (boards(), known.changes))
    }

    /// Returns the boards known here with this property. No store call.
    fn known_where(&self, is_wanted: impl Fn(&Board) -> bool) -> Vec<Arc<Board>> {
        let known = self.known.read();
        known.boards.values().map(|entry| &entry.board).filter(|board| is_wanted(board)).cloned().collect()
    }

    /// Returns the boards known here that have two editions, which are not periods of a season. No store call.
    pub(super) fn with_two_editions(&self) -> Vec<Arc<Board>> {
        self.known_where(|board| board.other().is_some() && board.season().is_none())
    }

    /// Returns whether a board known here has a season. No store call.
    pub(super) fn has_seasons(&self) -> bool {
        self.known.read().boards.values().any(|entry| entry.board.season().is_some())
    }

    /// Returns the boards known here of whose season a step is due at `now`. No store call.
    pub(super) fn with_due_season(&self, now: Timestamp) -> Vec<Arc<Board>> {
        self.known_where(|board| board.season_step_at().is_some_and(|at| at <= now))
    }

    /// Returns the boards known here with ended periods that are not packed yet. No store call.
    pub(super) fn with_periods_to_pack(&self) -> Vec<Arc<Board>> {
        self.known_where(|board| {
            board.definition().packs_periods() && board.archive().iter().any(|period| period.packed().is_none())
        })
    }

    /// Returns the boards known here. No store call.
    pub(super) fn known(&self) -> Vec<Arc<Board>> {
        self.known.read().boards.values().map(|entry| entry.board.clone()).collect()
    }

    /// Returns all boards as of the last list. Reads the store only if there is no list. Boards that were created or
    /// removed through this instance are always up to date.
    pub(super) async fn listed(&self) -> store::Result<Listed> {
        self.listed_where(|_| true).await
    }

    /// Returns all boards as of this version of the list, or as of a list that was read after `since`.
    pub(super) async fn listed_at(&self, version: u64, since: Instant) -> store::Result<Listed> {
        self.listed_where(|list| list.version == version || list.begun > since).await
    }

    /// Returns all boards as the store has them after `since`.
    pub(super) async fn listed_after(&self, since: Instant) -> store::Result<Listed> {
        self.listed_where(|list| list.begun > since).await
    }

    /// Returns all boards as the store had them at most `age` ago. An older list is not read again if the store still
    /// reports its version.
    pub(super) async fn listed_within(&self, age: Duration) -> store::Result<Listed> {
        let known = self.known.read().list;
        if known.is_some_and(|list| list.confirmed.elapsed() >= age) {
            let since = Instant::now();
            let version = self.store.boards_version().await?;
            let listed = self.listed_at(version, since).await?;
            if let Some(list) = self.known.write().list.as_mut().filter(|list| list.version == version) {
                list.confirmed = list.confirmed.max(since);
            }
            return Ok(listed);
        }
        self.listed().await
    }

    /// Returns all boards as of a list that `will_do` accepts. If the last list is not accepted, reads a new one.
    async fn listed_where(&self, will_do: impl Fn(&BoardList) -> bool) -> store::Result<Listed> {
        if let Some(listed) = self.last_listed(&will_do) {
            return Ok(listed);
        }
        // Boxed, because every event would have room for what only one needs that waits for the list.
        Box::pin(async {
            let _turn = self.listing.lock().await;
            match self.last_listed(&will_do) {
                Some(listed) => Ok(listed),
                None => Ok(self.read_list().await?.1),
            }
        })
        .await
    }

    fn last_listed(&self, will_do: impl Fn(&BoardList) -> bool) -> Option<Listed> {
        {
            let known = self.known.read();
            let list = known.list.filter(&will_do)?;
            if let Some(event_index) = &known.event_index {
                return Some(Listed { event_index: event_index.clone(), version: list.version });
            }
        }
        let mut known = self.known.write();
        let list = known.list.filter(will_do)?;
        Some(Listed { event_index: known.event_index(), version: list.version })
    }

    /// Reads the list. Reads its version first, so that a change made in between makes the list outdated.
    async fn read_list(&self) -> store::Result<(Vec<Arc<Board>>, Listed)> {
        let (mut begun, mut lessons) = (Instant::now(), self.known.read().lessons);
        let mut version = self.store.boards_version().await?;
        let mut listing = self.store.boards().await?;
        if listing.boards.is_empty() && !self.configured.is_empty() && self.configured.restore().await? {
            (begun, lessons) = (Instant::now(), self.known.read().lessons);
            version = self.store.boards_version().await?;
            listing = self.store.boards().await?;
        }
        let Listing { boards, unreadable } = listing;
        let mut known = self.known.write();
        let event_index = match known.learn(&boards, lessons, BoardList { version, begun, confirmed: begun }) {
            true => known.event_index(),
            false => Arc::new(EventIndex::new(boards.iter().cloned())),
        };
        known.note_unreadable(unreadable);
        drop(known);
        Ok((boards, Listed { event_index, version }))
    }
}

impl Known {
    /// Merges a list into the known boards. `lessons` is the counter when the list was requested: whatever was learned
    /// after that is newer than the list. Returns `false` if the list contradicts it, so that not all boards of the
    /// list are known.
    fn learn(&mut self, boards: &[Arc<Board>], lessons: u64, list: BoardList) -> bool {
        let is_newer = |entry: &ListedBoard| entry.lesson > lessons;
        self.lessons += 1;
        let mut agrees = true;
        for board in boards {
            match self.boards.get(board.name()).filter(|entry| is_newer(entry)) {
                Some(entry) => agrees &= entry.board.is_same_as(board),
                None => self.keep(board),
            }
        }
        // Every board of the list has just been confirmed, so an older entry is not in the list.
        let before = self.boards.len();
        self.boards.retain(|_, entry| is_newer(entry));
        if self.boards.len() < before {
            self.note_change();
        }
        if !agrees {
            // Either of two boards with the same name may be the current one.
            self.list = None;
        } else if self.list.is_none_or(|last| last.begun <= list.begun) {
            self.list = Some(list);
        }
        agrees
    }

    /// Stores the boards that cannot be read. Logs each of them the first time.
    fn note_unreadable(&mut self, unreadable: Vec<Unreadable>) {
        for board in &unreadable {
            let is_known = self
                .unreadable
                .iter()
                .any(|known| (&known.name, &known.generation) == (&board.name, &board.generation));
            if !is_known {
                tracing::error!(
                    board = %board.name, generation = %board.generation, reason = %board.reason,
                    "the definition of a board cannot be read; the other boards are served"
                );
            }
        }
        gauge!(UNREADABLE).set(unreadable.len() as f64);
        self.unreadable = unreadable;
    }

    /// Stores a board that the store has just returned on its own. If it is not the same as the known one, the result
    /// may be older than the list, so the list has to be read again.
    fn put(&mut self, board: &Arc<Board>) {
        if self.boards.get(board.name()).is_some_and(|entry| !entry.board.is_same_as(board)) {
            self.list = None;
        }
        self.keep(board);
    }

    /// Stores a board. The existing object is kept if it is the same board, because it may hold what is expensive
    /// to recompute.
    fn keep(&mut self, board: &Arc<Board>) {
        let lesson = self.lessons;
        match self.boards.get_mut(board.name()) {
            Some(entry) if entry.board.is_same_as(board) => entry.lesson = lesson,
            // A write that ended late may have found editions that have changed again since.
            Some(entry) if entry.board.generation() == board.generation() && entry.board.epoch() > board.epoch() => {}
            _ => {
                self.boards.insert(board.name().clone(), ListedBoard { board: board.clone(), lesson });
                self.note_change();
            }
        }
    }

    /// Notes that a board was added or removed.
    fn note_change(&mut self) {
        self.event_index = None;
        self.changes += 1;
    }

    fn event_index(&mut self) -> Arc<EventIndex> {
        let Known { boards, event_index, .. } = self;
        event_index.get_or_insert_with(|| Arc::new(EventIndex::new(boards.values().map(|e| e.board.clone())))).clone()
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

    fn list(version: u64) -> BoardList {
        BoardList { version, begun: Instant::now(), confirmed: Instant::now() }
    }

    #[test]
    fn a_list_does_not_undo_changes_made_while_it_was_read() {
        let mut known = Known::default();
        assert!(known.learn(&[board("a", 1), board("b", 1), board("c", 1)], 0, list(1)));
        let asked_after = known.lessons;
        for new in [board("b", 2), board("d", 1)] {
            known.lessons += 1;
            known.put(&new);
        }
        // The list was made before b was defined again and d was defined. c was removed in the meantime.
        assert!(!known.learn(&[board("a", 1), board("b", 1)], asked_after, list(2)));
        assert_eq!(seen(&known), [("a", 1), ("b", 2), ("d", 1)]);
        assert!(known.learn(&[board("a", 1)], known.lessons, list(3)));
        assert_eq!(seen(&known), [("a", 1)]);
    }

    #[test]
    fn the_list_version_is_valid_only_while_all_its_boards_are_known() {
        let version = |known: &Known| known.list.map(|list| list.version);
        let mut known = Known::default();
        known.learn(&[board("a", 2)], 0, list(1));
        // An additional board, or the same board again, keeps the list valid.
        for more in [board("a", 2), board("b", 1)] {
            known.lessons += 1;
            known.put(&more);
            assert_eq!(version(&known), Some(1));
        }
        // A delayed result may contain a board that the list has replaced.
        known.lessons += 1;
        known.put(&board("a", 1));
        assert_eq!(version(&known), None);
        // So may a delayed list.
        let asked_after = known.lessons;
        known.lessons += 1;
        known.put(&board("a", 3));
        assert!(!known.learn(&[board("a", 2)], asked_after, list(2)));
        assert_eq!(version(&known), None);
        let (earlier, later) = (list(3), list(4));
        known.learn(&[board("a", 3)], known.lessons, later);
        known.learn(&[board("a", 3)], known.lessons, earlier);
        assert_eq!(version(&known), Some(4), "the list asked for last counts");
    }

    #[test]
    fn the_event_index_is_rebuilt_only_when_boards_are_added_or_removed() {
        let mut known = Known::default();
        known.learn(&[board("a", 1)], 0, list(1));
        let first = known.boards.values().next().unwrap().board.clone();
        known.event_index = Some(Arc::default());
        known.learn(&[board("a", 1)], known.lessons, list(1));
        assert!(known.event_index.is_some() && Arc::ptr_eq(&known.boards.values().next().unwrap().board, &first));
        known.learn(&[], known.lessons, list(2));
        assert!(known.event_index.is_none() && known.boards.is_empty());
    }
}
