//! The boards this instance knows, so that a request needs no look-up in the store.
//!
//! The cache may be stale: every store call carries the board's generation, and one that is gone answers
//! [`StoreError::BoardChanged`](crate::store::StoreError::BoardChanged), upon which the board is looked up again.
//! That is how a board removed or defined anew through one instance holds on all of them at once.
//!
//! An event names no board, so no board tells it of one that is missing here. The store's version of its list does
//! ([`Store::boards_version`]): a [`Listed`] that was read at the same version, or since, misses none.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{describe_gauge, gauge};
use parking_lot::RwLock;

use super::catalog::Catalog;
use super::configured::Configured;
use crate::board::{Board, BoardName};
use crate::store::{self, Listing, Store, Unreadable};

/// How many boards this version cannot read, as of the last list.
pub const UNREADABLE: &str = "rolltop_unreadable_boards";

/// Boards by name, filled from the store as they are asked for.
pub(super) struct Registry {
    store: Arc<dyn Store>,
    pub(super) configured: Configured,
    /// Read on every request, written when a board comes or goes; never held across an await.
    known: RwLock<Known>,
    /// Held by whoever reads the list, so that not all do who find it too old.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    boards: HashMap<BoardName, Entry>,
    /// Those boards by the type of their events; made when it is asked for.
    catalog: Option<Arc<Catalog>>,
    /// The list of all boards that those known contain: `None` before the first one, and where it is doubtful whether
    /// they still do.
    list: Option<List>,
    /// Grows with everything learned from the store.
    lessons: u64,
    /// What the last list said of boards that cannot be read.
    unreadable: Vec<Unreadable>,
}

/// A list of all boards, as the store had it.
#[derive(Clone, Copy, Debug)]
struct List {
    /// What the store said before it was asked for the boards.
    version: u64,
    /// When it was asked for the version.
    begun: Instant,
    /// When the version was last known to be the store's still.
    confirmed: Instant,
}

/// All boards by the type of their events.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub catalog: Arc<Catalog>,
    /// The version of the list that it has all boards of.
    pub version: u64,
}

struct Entry {
    board: Arc<Board>,
    /// What [`Known::lessons`] was when the store last confirmed it.
    lesson: u64,
}

impl Registry {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        describe_gauge!(UNREADABLE, "Boards whose definition this version cannot read, as of the last list");
        let configured = Configured::new(store.clone());
        Self { store, configured, known: RwLock::default(), listing: tokio::sync::Mutex::default() }
    }

    /// The boards of the last list that cannot be read. No store call.
    pub(super) fn unreadable(&self) -> Vec<Unreadable> {
        self.known.read().unreadable.clone()
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
        let mut found = self.store.board(name).await?;
        if found.is_none() && self.configured.contains(name) && self.configured.restore().await? {
            found = self.store.board(name).await?;
        }
        match &found {
            Some(board) => self.put(board.clone()),
            None => self.forget(name),
        }
        Ok(found)
    }

    /// All boards as the store has them now.
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
            known.catalog = None;
            // Whatever took it away may have put another in its place.
            known.list = None;
        }
    }

    /// The boards known here, without asking the store.
    pub(super) fn known(&self) -> Vec<Arc<Board>> {
        self.known.read().boards.values().map(|entry| entry.board.clone()).collect()
    }

    /// All boards as they were listed last; read from the store only where they have not been. Boards that came or
    /// went through this instance are right in it at once.
    pub(super) async fn listed(&self) -> store::Result<Listed> {
        self.listed_where(|_| true).await
    }

    /// All boards as of a version of the list that the store had after `since`.
    pub(super) async fn listed_at(&self, version: u64, since: Instant) -> store::Result<Listed> {
        self.listed_where(|list| list.version == version || list.begun > since).await
    }

    /// All boards as the store has them after `since`.
    pub(super) async fn listed_after(&self, since: Instant) -> store::Result<Listed> {
        self.listed_where(|list| list.begun > since).await
    }

    /// All boards as the store had them this long ago at most. A list that is older is not read again if the store says
    /// that it is still the same.
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

    /// All boards by a list that will do; one is read where the last one does not.
    async fn listed_where(&self, will_do: impl Fn(&List) -> bool) -> store::Result<Listed> {
        if let Some(listed) = self.last_listed(&will_do) {
            return Ok(listed);
        }
        let _turn = self.listing.lock().await;
        if let Some(listed) = self.last_listed(&will_do) {
            return Ok(listed);
        }
        Ok(self.read_list().await?.1)
    }

    fn last_listed(&self, will_do: impl Fn(&List) -> bool) -> Option<Listed> {
        {
            let known = self.known.read();
            let list = known.list.filter(&will_do)?;
            if let Some(catalog) = &known.catalog {
                return Some(Listed { catalog: catalog.clone(), version: list.version });
            }
        }
        let mut known = self.known.write();
        let list = known.list.filter(will_do)?;
        Some(Listed { catalog: known.catalog(), version: list.version })
    }

    /// Reads the list: the version first, so that whatever comes meanwhile makes it an old one.
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
        let catalog = match known.learn(&boards, lessons, List { version, begun, confirmed: begun }) {
            true => known.catalog(),
            false => Arc::new(Catalog::new(boards.iter().cloned())),
        };
        known.note_unreadable(unreadable);
        drop(known);
        Ok((boards, Listed { catalog, version }))
    }
}

impl Known {
    /// Takes in a list that was asked for after so many lessons: what has been learned since is newer than the list.
    /// `false` if it is at odds with that, so that not all its boards are among those known.
    fn learn(&mut self, boards: &[Arc<Board>], lessons: u64, list: List) -> bool {
        let is_newer = |entry: &Entry| entry.lesson > lessons;
        self.lessons += 1;
        let mut agrees = true;
        for board in boards {
            match self.boards.get(board.name()).filter(|entry| is_newer(entry)) {
                Some(entry) => agrees &= entry.board.generation() == board.generation(),
                None => self.keep(board),
            }
        }
        // Every board of the list has been confirmed just now, so what is older is not in it.
        let before = self.boards.len();
        self.boards.retain(|_, entry| is_newer(entry));
        if self.boards.len() < before {
            self.catalog = None;
        }
        if !agrees {
            // Of two boards of one name either may be the one that is there now.
            self.list = None;
        } else if self.list.is_none_or(|last| last.begun <= list.begun) {
            self.list = Some(list);
        }
        agrees
    }

    /// Notes which boards cannot be read, and logs each when it is met first.
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

    /// Notes a board that the store has just told of by itself. Where that is another than the one listed, the answer
    /// may have been overtaken by the list, which then has to be read again.
    fn put(&mut self, board: &Arc<Board>) {
        if self.boards.get(board.name()).is_some_and(|entry| entry.board.generation() != board.generation()) {
            self.list = None;
        }
        self.keep(board);
    }

    /// Keeps a board. One that is known stays in its place: it may hold what is dear to work out again.
    fn keep(&mut self, board: &Arc<Board>) {
        let lesson = self.lessons;
        match self.boards.get_mut(board.name()) {
            Some(entry) if entry.board.generation() == board.generation() => entry.lesson = lesson,
            _ => {
                self.boards.insert(board.name().clone(), Entry { board: board.clone(), lesson });
                self.catalog = None;
            }
        }
    }

    fn catalog(&mut self) -> Arc<Catalog> {
        let Known { boards, catalog, .. } = self;
        catalog.get_or_insert_with(|| Arc::new(Catalog::new(boards.values().map(|e| e.board.clone())))).clone()
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

    fn list(version: u64) -> List {
        List { version, begun: Instant::now(), confirmed: Instant::now() }
    }

    #[test]
    fn a_list_does_not_undo_what_was_learned_while_it_was_on_its_way() {
        let mut known = Known::default();
        assert!(known.learn(&[board("a", 1), board("b", 1), board("c", 1)], 0, list(1)));
        let asked_after = known.lessons;
        for new in [board("b", 2), board("d", 1)] {
            known.lessons += 1;
            known.put(&new);
        }
        // The list was made before b was defined anew and d was defined; c has gone since.
        assert!(!known.learn(&[board("a", 1), board("b", 1)], asked_after, list(2)));
        assert_eq!(seen(&known), [("a", 1), ("b", 2), ("d", 1)]);
        assert!(known.learn(&[board("a", 1)], known.lessons, list(3)));
        assert_eq!(seen(&known), [("a", 1)]);
    }

    #[test]
    fn boards_count_as_listed_only_while_all_of_the_list_are_known() {
        let version = |known: &Known| known.list.map(|list| list.version);
        let mut known = Known::default();
        known.learn(&[board("a", 2)], 0, list(1));
        // One more does no harm, nor does the same again.
        for more in [board("a", 2), board("b", 1)] {
            known.lessons += 1;
            known.put(&more);
            assert_eq!(version(&known), Some(1));
        }
        // An answer that was long on its way may tell of a board that the list has replaced.
        known.lessons += 1;
        known.put(&board("a", 1));
        assert_eq!(version(&known), None);
        // And a list may.
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
    fn the_catalog_is_made_anew_only_when_boards_come_or_go() {
        let mut known = Known::default();
        known.learn(&[board("a", 1)], 0, list(1));
        let first = known.boards.values().next().unwrap().board.clone();
        known.catalog = Some(Arc::default());
        known.learn(&[board("a", 1)], known.lessons, list(1));
        assert!(known.catalog.is_some() && Arc::ptr_eq(&known.boards.values().next().unwrap().board, &first));
        known.learn(&[], known.lessons, list(2));
        assert!(known.catalog.is_none() && known.boards.is_empty());
    }
}
