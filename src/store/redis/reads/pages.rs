//! A cache of pages that were read.
//!
//! A cached page is correct if the board's generation, version and head are what they were when the page was read.
//! Every script that changes a ranking or a slot gives the board a new version in the same atomic step, and head and
//! floor only move forward. So one `HMGET` of these three values shows which cached pages of the board are correct at
//! that instant, which is between request and answer. Only the time may differ. It is read just before, and must be in
//! the page's window, whose head is the stored one.
//!
//! A server that restarts, or a different one that replaces it, may have lost the newest writes with their versions,
//! even a part of a script. Both end the connections, which changes the epoch of the node. So a page is correct only in
//! the epoch in which it was read, and the epoch must not change from before the question is sent until after it is
//! answered. A version with the epoch in which it was read is a [`Stamp`].
//!
//! For a board of several parts two things are cached. First, the first lines of each part, like a page of a board
//! without shards: if one part has changed, only that part is read again. Second, the merged page, with the stamp of
//! each part, which is read together with the lines of that part. The merged page is correct if all parts answer with
//! these stamps and the same head, each within the current round (`merge::Known`), because the content of the parts
//! determines the lines of a page.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::question::{Answer, What};
use super::share::Stamp;
use crate::board::Timestamp;
use crate::store::redis::merge::{Center, Near};
use crate::store::redis::part::Part;
use crate::store::{Place, Ranked};

/// The largest size of all cached pages in bytes: some thousand pages of 50 lines, and little compared with the other
/// needs of a service.
const MAX_BYTES: usize = 32 << 20;
/// The size of a page without its lines and stamps, in bytes.
const BESIDE: usize = 512;
/// The size of the stamp of each of its parts, in bytes.
const STAMP: usize = 96;

/// A cached answer, with the stamps and the head with which it was read.
#[derive(Debug)]
pub(super) struct CachedPage {
    /// A page, or the first lines of a part.
    pub answer: Answer,
    /// The head of its window.
    pub head: Timestamp,
    /// The stamp of each part that it was read from. In a cached answer, none of them is `None`.
    pub stamps: Vec<Option<Stamp>>,
    /// Whether the part had changed when this was read, and no look has found it unchanged since. Then it has probably
    /// changed again, and reading the lines at once saves the look.
    pub keeps_changing: AtomicBool,
}

/// The cached pages.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<Halves>);

/// The cached pages in two halves. Pages that were requested recently are in the young half. When these fill half of
/// the space, they become the old half, and the pages that remained in the old half are dropped.
#[derive(Debug, Default)]
struct Halves {
    young: Half,
    /// The size of the young half in bytes.
    bytes: usize,
    old: Half,
}

/// The pages of one half, by part (the first one if there are several) and question. Parts are identified by their
/// address. They are kept alive, so that no other part can get the same address.
type Half = HashMap<Key, (Arc<Part>, Arc<CachedPage>), rapidhash::fast::RandomState>;
type Key = (usize, Arc<What>);

/// Returns whether the answer to this question is cached: a page, or the first lines of a part.
pub(super) fn is_kept(what: &What) -> bool {
    matches!(
        what,
        What::Page { .. } | What::Lines { near: Near { center: Center::Start, before: 0, .. }, with_slots: false }
    )
}

impl CachedPage {
    pub fn new(answer: Answer, head: Timestamp, stamps: Vec<Option<Stamp>>) -> Self {
        Self { answer, head, stamps, keeps_changing: AtomicBool::new(false) }
    }

    /// Returns whether a look at the part's version is likely to be sufficient. Reading a whole page by a script is so
    /// much more expensive that a look is always worthwhile.
    pub fn is_worth_a_look(&self) -> bool {
        matches!(self.answer, Answer::Page(_)) || !self.keeps_changing.load(Ordering::Relaxed)
    }

    /// Returns whether the answer is correct if its only part has this version and head, in this epoch of its node.
    pub fn is_right(&self, epoch: Option<u64>, version: &str, head: Timestamp) -> bool {
        let [Some(stamp)] = &*self.stamps else { return false };
        Some(stamp.epoch) == epoch && *stamp.version == *version && self.head == head
    }

    /// Returns the size in bytes, including everything that is computed from its lines.
    fn bytes(&self) -> usize {
        let lines = match &self.answer {
            Answer::Page(page) => {
                let line = |line: &Ranked| 3 * (size_of::<Ranked>() + line.subject.as_str().len());
                page.items.iter().map(line).sum()
            }
            Answer::Lines(share) => {
                let line = |line: &Place| size_of::<Place>() + line.subject.as_str().len();
                share.said.lines.iter().map(line).sum()
            }
            _ => 0,
        };
        BESIDE + STAMP * self.stamps.len() + lines
    }
}

impl Pages {
    pub fn get(&self, part: &Arc<Part>, what: &Arc<What>) -> Option<Arc<CachedPage>> {
        let key = (Arc::as_ptr(part).addr(), what.clone());
        let mut halves = self.0.lock();
        if let Some((_, held)) = halves.young.get(&key) {
            return Some(held.clone());
        }
        let (part, held) = halves.old.remove(&key)?;
        halves.keep(key, part, held.clone());
        Some(held)
    }

    pub fn put(&self, part: &Arc<Part>, what: &Arc<What>, held: CachedPage) {
        let key = (Arc::as_ptr(part).addr(), what.clone());
        let mut halves = self.0.lock();
        let old = halves.old.remove(&key);
        let before = halves.young.get(&key).or(old.as_ref());
        let has_changed = before.is_some_and(|(_, before)| before.stamps != held.stamps);
        held.keeps_changing.store(has_changed, Ordering::Relaxed);
        halves.keep(key, part.clone(), held.into());
    }
}

impl Halves {
    fn keep(&mut self, key: Key, part: Arc<Part>, held: Arc<CachedPage>) {
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
    use crate::store::Page;
    use crate::store::redis::merge::Lines;
    use crate::store::redis::reads::share::Share;

    fn held(part: &Part, lines: usize) -> CachedPage {
        let line = |i: usize| Ranked {
            rank: i as u64 + 1,
            subject: Subject::parse(&format!("subject-{i}")).unwrap(),
            score: Value::Exact(Amount(1)),
        };
        let as_of = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        let frame = Frame { window: part.board.window_at(as_of), as_of, retiring: 0 };
        let page = Page { frame, total: 1, first: 0, items: (0..lines).map(line).collect() };
        CachedPage::new(Answer::Page(page), frame.window.head, vec![Stamp::new("one", Some(7))])
    }

    fn page(offset: u64, limit: u32) -> Arc<What> {
        Arc::new(What::Page { offset, limit })
    }

    #[test]
    fn a_cached_page_is_valid_for_its_version_head_and_epoch() {
        let held = held(&part("COUNT(2h, e, s)", "1h", true), 1);
        let head = held.head;
        assert!(held.is_right(Some(7), "one", head));
        assert!(!held.is_right(Some(8), "one", head) && !held.is_right(None, "one", head));
        assert!(!held.is_right(Some(7), "two", head) && !held.is_right(Some(7), "", head));
        assert!(!held.is_right(Some(7), "one", head.plus_millis(3_600_000)));
        // A page of several parts cannot be checked with the version of a single part.
        let stamps = vec![Stamp::new("one", Some(7)); 2];
        assert!(!CachedPage { stamps, ..held }.is_right(Some(7), "one", head));
    }

    #[test]
    fn a_stamp_requires_a_version_and_an_epoch() {
        assert_eq!((Stamp::new("", Some(7)), Stamp::new("one", None)), (None, None));
        assert_ne!(Stamp::new("one", Some(7)), Stamp::new("one", Some(8)));
    }

    #[test]
    fn only_pages_and_first_lines_are_cached() {
        let lines = |center, before, with_slots| What::Lines { near: Near { center, before, after: 9 }, with_slots };
        assert!(is_kept(&page(3, 5)) && is_kept(&lines(Center::Start, 0, false)));
        assert!(!is_kept(&lines(Center::Start, 0, true)) && !is_kept(&lines(Center::Start, 1, false)));
        let subject = Subject::parse("a").unwrap();
        let place = Place { score: Value::ZERO, subject: subject.clone() };
        assert!(!is_kept(&lines(Center::Place(place), 0, false)) && !is_kept(&What::Standing(subject)));
    }

    #[test]
    fn a_page_that_had_changed_is_read_without_a_look() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let near = Near::first(9);
        let what = Arc::new(What::Lines { near, with_slots: false });
        let pages = Pages::default();
        let read = |version: &str| {
            let page = held(&part, 1);
            let Answer::Page(Page { frame, .. }) = page.answer else { panic!("it is a page") };
            let said = Lines { total: 0, first: 0, better: 0, lines: Vec::new(), subject: None };
            let stamp = Stamp::new(version, Some(1));
            let answer = Answer::Lines(Share { frame, version: stamp.clone(), said });
            pages.put(&part, &what, CachedPage::new(answer, page.head, vec![stamp]));
            pages.get(&part, &what).unwrap().is_worth_a_look()
        };
        assert_eq!(["one", "one", "two", "three", "three"].map(read), [true, true, false, false, true]);
    }

    #[test]
    fn the_page_cache_is_bounded_and_keeps_requested_pages() {
        let (part, other) = (part("COUNT(2h, e, s)", "1h", true), part("COUNT(2h, e, s)", "1h", true));
        let pages = Pages::default();
        let bytes = held(&part, 1_000).bytes();
        let room = MAX_BYTES / bytes;
        for offset in 0..3 * room as u64 {
            pages.put(&part, &page(offset, 1_000), held(&part, 1_000));
            assert!(pages.get(&part, &page(0, 1_000)).is_some(), "{offset}");
        }
        let halves = pages.0.lock();
        assert!(halves.young.len() + halves.old.len() <= room);
        assert_eq!(halves.young.values().map(|(_, held)| held.bytes()).sum::<usize>(), halves.bytes);
        drop(halves);
        assert!(pages.get(&part, &page(1, 1_000)).is_none());
        assert!(pages.get(&other, &page(0, 1_000)).is_none() && pages.get(&part, &page(0, 999)).is_none());
    }
}
