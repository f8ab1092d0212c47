//! A cache of pages that were read.
//!
//! A cached page is correct if the board's generation, version and head are what they were when the page was read.
//! Every script that changes a ranking or a slot gives the board a new version in the same atomic step, and head and
//! floor only move forward. So one `HMGET` of these three values shows which cached pages of the board are correct at
//! that instant, which is between request and answer. Only the time may differ. It is read just before, and must be in
//! the page's window, whose head is the stored one.
//!
//! A server that restarts, or a different one that replaces it, may have lost the newest writes with their versions,
//! even a part of a script. Both end the connections, which changes the incarnation of the node. So a page is correct
//! only in the incarnation in which it was read, and the incarnation must not change from before the question is sent
//! until after it is answered. A version with the incarnation in which it was read is a [`Stamp`].
//!
//! For a board of several partitions two things are cached. First, the first lines of each part, like a page of a board
//! without shards: if one part has changed, only that one is read again. Second, the merged page, with the stamp of each
//! part, which is read together with the lines of that part. The merged page is correct if all parts answer with these
//! stamps and the same head, each within the current round (`merge::KnownPage`), because the content of the parts determines
//! the lines of a page.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::share::Stamp;
use crate::board::{RankingKey, Timestamp};
use crate::store::redis::merge::Near;
use crate::store::redis::part::Part;
use crate::store::{Page, Ranked};

/// The largest size of all cached pages in bytes: some thousand pages of 50 lines, and little compared with the other
/// needs of a service.
const MAX_BYTES: usize = 32 << 20;
/// The size of a page without its lines and stamps, in bytes.
const BESIDE: usize = 512;
/// The size of the stamp of each of its parts, in bytes.
const STAMP: usize = 96;
/// The number of lines from which reading them costs so much more than a look that a look is always worthwhile.
const MANY: usize = 32;

/// Lines that were read, of a part or of a whole board, with the stamps with which they were read.
#[derive(Debug)]
pub(super) struct CachedPage {
    pub page: Page,
    /// The stamp of each part that it was read from. In a cached page, none of them is `None`.
    pub stamps: Vec<Option<Stamp>>,
    /// Whether the part had changed when this was read, and no look has found it unchanged since. Then it has
    /// probably changed again, and reading the lines at once saves the look.
    keeps_changing: AtomicBool,
}

/// The cached pages.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<Halves>);

/// The lines that a page has: those of one part, of the ranking of one key in it, or of a whole board of several,
/// which its first part identifies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Extent {
    Part,
    Key(RankingKey),
    Board,
}

/// The cached pages in two halves. Pages that were requested recently are in the young half. When these fill half of
/// the space, they become the old half, and the pages that remained in the old half are dropped.
#[derive(Debug, Default)]
struct Halves {
    young: Half,
    /// The size of the young half in bytes.
    bytes: usize,
    old: Half,
}

/// The pages of one half, by part and question. Parts are identified by their address. They are kept alive,
/// so that no other part can get the same address.
type Half = HashMap<PageKey, (Arc<Part>, Arc<CachedPage>), rapidhash::fast::RandomState>;
type PageKey = (usize, Extent, Near);

impl Extent {
    /// Returns the lines of one part, or of one key.
    pub fn of(key: Option<&RankingKey>) -> Self {
        key.map_or(Self::Part, |key| Self::Key(key.clone()))
    }
}

impl CachedPage {
    pub fn new(page: Page, stamps: Vec<Option<Stamp>>) -> Self {
        Self { page, stamps, keeps_changing: AtomicBool::new(false) }
    }

    pub fn head(&self) -> Timestamp {
        self.page.frame.window.head
    }

    /// Returns whether a look at the part's version is likely to be sufficient, or costs little compared with
    /// reading the lines.
    pub fn is_worth_a_look(&self) -> bool {
        self.page.items.len() > MANY || !self.keeps_changing.load(Ordering::Relaxed)
    }

    /// Returns whether the page is correct if its only part has this version and head, in this incarnation of its
    /// node.
    pub fn is_right(&self, incarnation: Option<u64>, version: &str, head: Timestamp) -> bool {
        let [Some(stamp)] = &*self.stamps else { return false };
        Some(stamp.incarnation) == incarnation && *stamp.version == *version && self.head() == head
    }

    /// Returns the size in bytes, including everything that is computed from its lines.
    fn bytes(&self) -> usize {
        let line = |line: &Ranked| 3 * (size_of::<Ranked>() + line.subject.as_str().len());
        BESIDE + STAMP * self.stamps.len() + self.page.items.iter().map(line).sum::<usize>()
    }
}

impl Pages {
    pub fn get(&self, part: &Arc<Part>, extent: &Extent, near: &Near) -> Option<Arc<CachedPage>> {
        let key = (Arc::as_ptr(part).addr(), extent.clone(), near.clone());
        let mut halves = self.0.lock();
        if let Some((_, held)) = halves.young.get(&key) {
            return Some(held.clone());
        }
        let (part, held) = halves.old.remove(&key)?;
        halves.keep(key, part, held.clone());
        Some(held)
    }

    /// Caches a page. If the cached one has the same stamps and head, its lines are kept, with everything that was
    /// computed from them. Returns the page.
    pub fn put(&self, part: &Arc<Part>, extent: Extent, near: &Near, mut held: CachedPage) -> Page {
        let key = (Arc::as_ptr(part).addr(), extent, near.clone());
        let mut halves = self.0.lock();
        let old = halves.old.remove(&key);
        if let Some((_, before)) = halves.young.get(&key).or(old.as_ref()) {
            if before.stamps != held.stamps {
                held.keeps_changing = AtomicBool::new(true);
            } else if before.head() == held.head() {
                held.page.items = before.page.items.clone();
            }
        }
        let page = held.page.clone();
        halves.keep(key, part.clone(), held.into());
        page
    }
}

impl Halves {
    fn keep(&mut self, key: PageKey, part: Arc<Part>, held: Arc<CachedPage>) {
        let bytes = held.bytes();
        if self.bytes + bytes > MAX_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, before)) = self.young.insert(key, (part, held)) {
            self.bytes -= before.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::tests::part;
    use super::*;
    use crate::board::{Amount, Frame, Subject, Value};
    use crate::store::redis::merge::Center;

    fn held(part: &Part, lines: usize, version: &str) -> CachedPage {
        let line = |i: usize| Ranked {
            rank: i as u64 + 1,
            subject: Subject::parse(&format!("subject-{i}")).unwrap(),
            score: Value::Exact(Amount(1)),
        };
        let as_of = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        let frame = Frame { window: part.track.window_at(as_of), as_of, retiring: 0 };
        let page = Page { frame, total: 1, first: 0, items: (0..lines).map(line).collect(), not_worse: None };
        CachedPage::new(page, vec![Stamp::new(version, Some(7))])
    }

    fn page(offset: u64, limit: u64) -> Near {
        Near { center: Center::Position(offset), ..Near::first(limit) }
    }

    #[test]
    fn a_cached_page_is_valid_for_its_version_head_and_incarnation() {
        let held = held(&part("COUNT(2h, e, s)", "1h", true), 1, "one");
        let head = held.head();
        assert!(held.is_right(Some(7), "one", head));
        assert!(!held.is_right(Some(8), "one", head) && !held.is_right(None, "one", head));
        assert!(!held.is_right(Some(7), "two", head) && !held.is_right(Some(7), "", head));
        assert!(!held.is_right(Some(7), "one", head.plus_millis(3_600_000)));
        // A page of several parts cannot be checked with the version of a single one.
        let stamps = vec![Stamp::new("one", Some(7)); 2];
        assert!(!CachedPage { stamps, ..held }.is_right(Some(7), "one", head));
    }

    #[test]
    fn a_stamp_requires_a_version_and_an_incarnation() {
        assert_eq!((Stamp::new("", Some(7)), Stamp::new("one", None)), (None, None));
        assert_ne!(Stamp::new("one", Some(7)), Stamp::new("one", Some(8)));
    }

    #[test]
    fn few_lines_that_had_changed_are_read_without_a_look() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        for (lines, without_a_look) in [(1, false), (MANY + 1, true)] {
            let pages = Pages::default();
            let read = |version: &str| {
                pages.put(&part, Extent::Part, &page(0, 9), held(&part, lines, version));
                pages.get(&part, &Extent::Part, &page(0, 9)).unwrap().is_worth_a_look()
            };
            let worth = ["one", "one", "two", "three", "three"].map(read);
            assert_eq!(worth, [true, true, without_a_look, without_a_look, true]);
        }
    }

    #[test]
    fn lines_that_did_not_change_are_kept_with_what_was_computed_from_them() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let pages = Pages::default();
        let put = |version: &str| {
            let page = pages.put(&part, Extent::Part, &page(0, 9), held(&part, 3, version));
            *page.items.made(|_| version.to_owned()).unwrap() == version
        };
        assert_eq!([put("one"), put("two"), put("two")], [true, true, true]);
        let read_again = pages.put(&part, Extent::Part, &page(0, 9), held(&part, 3, "two"));
        assert_eq!(read_again.items.made(|_| "computed again".to_owned()).unwrap(), "two");
        // The merged page of a board that begins with this part is a different one.
        assert!(pages.get(&part, &Extent::Board, &page(0, 9)).is_none());
    }

    #[test]
    fn the_page_cache_is_bounded_and_keeps_requested_pages() {
        let (part, other) = (part("COUNT(2h, e, s)", "1h", true), part("COUNT(2h, e, s)", "1h", true));
        let pages = Pages::default();
        let bytes = held(&part, 1_000, "one").bytes();
        let room = MAX_BYTES / bytes;
        let get = |part: &Arc<Part>, near: Near| pages.get(part, &Extent::Part, &near);
        for offset in 0..3 * room as u64 {
            pages.put(&part, Extent::Part, &page(offset, 1_000), held(&part, 1_000, "one"));
            assert!(get(&part, page(0, 1_000)).is_some(), "{offset}");
        }
        let halves = pages.0.lock();
        assert!(halves.young.len() + halves.old.len() <= room);
        assert_eq!(halves.young.values().map(|(_, held)| held.bytes()).sum::<usize>(), halves.bytes);
        drop(halves);
        assert!(get(&part, page(1, 1_000)).is_none());
        assert!(get(&other, page(0, 1_000)).is_none() && get(&part, page(0, 999)).is_none());
    }
}
