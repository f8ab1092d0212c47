//! Pages that were read, kept for as long as they are right.
//!
//! A page is right if the board's generation, its version and its head are what they were when the page was read: every
//! script that changes a ranking or a slot gives the board a version it never had before, in the same atomic step, and
//! head and floor move forward only. So what one `HMGET` says of the three holds for all pages of the board at that
//! instant, and the instant lies between request and answer. What may differ is the time, which is read just before: it
//! must lie in the page's window, whose head is the stored one.
//!
//! A server that restarts, or another that takes its place, may have lost the newest writes with their versions, even
//! half a script. Both end connections and with them the servers' epoch, so a page is right only in the epoch it was
//! read in, which must not have changed from before the question was sent until after it was answered. A version with
//! the epoch it was read in is a [`Stamp`].
//!
//! Of a board of several parts two things are kept. The first lines of each part are, just as a page of a board without
//! parts: where one part has changed only that part is read again. And the merged page is, with the stamp of each part:
//! the stamp of the same script that answered the lines. It is right where all parts answer with these stamps and the
//! same head, each within the present round (`merge::Known`), for the lines of a page follow from what the parts hold.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::question::{Answer, What};
use crate::board::Timestamp;
use crate::store::Ranked;
use crate::store::redis::merge::{Center, Near, Place};
use crate::store::redis::part::Part;

/// What the pages of all boards take: some thousands of 50 lines, and little beside what a service needs anyway.
const MOST: usize = 32 << 20;
/// What a page takes beside its lines.
const BESIDE: usize = 512;
/// What a page takes for each part it is of.
const STAMP: usize = 96;

/// What a part held when something of it was read. Equal stamps and equal heads: equal rankings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The part's version.
    pub version: Arc<str>,
    /// That of the servers.
    pub epoch: u64,
}

impl Stamp {
    /// `None` if what was read must not be kept: the part has no version, or the epoch changed meanwhile.
    pub fn new(version: &str, epoch: Option<u64>) -> Option<Self> {
        let epoch = epoch.filter(|_| !version.is_empty())?;
        Some(Self { version: version.into(), epoch })
    }
}

/// An answer with what it was read under.
#[derive(Debug)]
pub(super) struct Held {
    /// A page, or the first lines of a part.
    pub answer: Answer,
    /// The head of its window.
    pub head: Timestamp,
    /// Of each part that it is of: always there.
    pub stamps: Vec<Option<Stamp>>,
    /// Whether the part had changed when this was read, and a look has not found it unchanged since: then it may well
    /// have changed again, and reading what is asked for spares the look.
    pub restless: AtomicBool,
}

/// The pages held.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<Halves>);

/// Pages asked for lately are among the young; when these fill half of the room, what was not asked for since the last
/// time goes.
#[derive(Debug, Default)]
struct Halves {
    young: Half,
    /// What the young take.
    bytes: usize,
    old: Half,
}

/// By part, of several the first, and question. Parts are told apart by their address, and kept so that no other takes
/// it.
type Half = HashMap<Key, (Arc<Part>, Arc<Held>), rapidhash::fast::RandomState>;
type Key = (usize, Arc<What>);

/// Whether the answer to such a question is kept: a page, and the first lines of a part.
pub(super) fn is_kept(what: &What) -> bool {
    matches!(
        what,
        What::Page { .. } | What::Lines { near: Near { center: Center::Start, before: 0, .. }, with_slots: false }
    )
}

impl Held {
    pub fn new(answer: Answer, head: Timestamp, stamps: Vec<Option<Stamp>>) -> Self {
        Self { answer, head, stamps, restless: AtomicBool::new(false) }
    }

    /// Whether a look at the part's version is likely to be enough. Reading a whole page by a script costs so much more
    /// that the look is always worth its while.
    pub fn is_worth_a_look(&self) -> bool {
        matches!(self.answer, Answer::Page(_)) || !self.restless.load(Ordering::Relaxed)
    }

    /// Whether it is right where its only part has this version and head, asked in this epoch of the servers.
    pub fn is_right(&self, epoch: Option<u64>, version: &str, head: Timestamp) -> bool {
        let [Some(stamp)] = &*self.stamps else { return false };
        Some(stamp.epoch) == epoch && *stamp.version == *version && self.head == head
    }

    /// What it takes, with what is made of its lines.
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
    pub fn get(&self, part: &Arc<Part>, what: &Arc<What>) -> Option<Arc<Held>> {
        let key = (Arc::as_ptr(part).addr(), what.clone());
        let mut halves = self.0.lock();
        if let Some((_, held)) = halves.young.get(&key) {
            return Some(held.clone());
        }
        let (part, held) = halves.old.remove(&key)?;
        halves.keep(key, part, held.clone());
        Some(held)
    }

    pub fn put(&self, part: &Arc<Part>, what: &Arc<What>, held: Held) {
        let key = (Arc::as_ptr(part).addr(), what.clone());
        let mut halves = self.0.lock();
        let old = halves.old.remove(&key);
        let before = halves.young.get(&key).or(old.as_ref());
        let has_changed = before.is_some_and(|(_, before)| before.stamps != held.stamps);
        held.restless.store(has_changed, Ordering::Relaxed);
        halves.keep(key, part.clone(), held.into());
    }
}

impl Halves {
    fn keep(&mut self, key: Key, part: Arc<Part>, held: Arc<Held>) {
        let bytes = held.bytes();
        if self.bytes + bytes > MOST / 2 {
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
    use crate::store::redis::reads::spread::Share;

    fn held(part: &Part, lines: usize) -> Held {
        let line = |i: usize| Ranked {
            rank: i as u64 + 1,
            subject: Subject::parse(&format!("subject-{i}")).unwrap(),
            score: Value::Exact(Amount(1)),
        };
        let as_of = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        let frame = Frame { window: part.board.window_at(as_of), as_of, retiring: 0 };
        let page = Page { frame, total: 1, items: (0..lines).map(line).collect() };
        Held::new(Answer::Page(page), frame.window.head, vec![Stamp::new("one", Some(7))])
    }

    fn page(offset: u64, limit: u32) -> Arc<What> {
        Arc::new(What::Page { offset, limit })
    }

    #[test]
    fn a_page_is_right_for_its_version_head_and_epoch() {
        let held = held(&part("COUNT(2h, e, s)", "1h", true), 1);
        let head = held.head;
        assert!(held.is_right(Some(7), "one", head));
        assert!(!held.is_right(Some(8), "one", head) && !held.is_right(None, "one", head));
        assert!(!held.is_right(Some(7), "two", head) && !held.is_right(Some(7), "", head));
        assert!(!held.is_right(Some(7), "one", head.plus_millis(3_600_000)));
        // One of several parts says nothing about the page of all.
        let stamps = vec![Stamp::new("one", Some(7)); 2];
        assert!(!Held { stamps, ..held }.is_right(Some(7), "one", head));
    }

    #[test]
    fn without_version_or_epoch_there_is_no_stamp() {
        assert_eq!((Stamp::new("", Some(7)), Stamp::new("one", None)), (None, None));
        assert_ne!(Stamp::new("one", Some(7)), Stamp::new("one", Some(8)));
    }

    #[test]
    fn pages_and_first_lines_are_kept() {
        let lines = |center, before, with_slots| What::Lines { near: Near { center, before, after: 9 }, with_slots };
        assert!(is_kept(&page(3, 5)) && is_kept(&lines(Center::Start, 0, false)));
        assert!(!is_kept(&lines(Center::Start, 0, true)) && !is_kept(&lines(Center::Start, 1, false)));
        let subject = Subject::parse("a").unwrap();
        let place = Place { score: Value::ZERO, subject: subject.clone() };
        assert!(!is_kept(&lines(Center::Place(place), 0, false)) && !is_kept(&What::Standing(subject)));
    }

    #[test]
    fn what_had_changed_is_not_looked_at_before_it_is_read() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let near = Near { center: Center::Start, before: 0, after: 9 };
        let what = Arc::new(What::Lines { near, with_slots: false });
        let pages = Pages::default();
        let read = |version: &str| {
            let page = held(&part, 1);
            let Answer::Page(Page { frame, .. }) = page.answer else { panic!("it is a page") };
            let said = Lines { total: 0, first: 0, better: 0, lines: Vec::new(), subject: None };
            let stamp = Stamp::new(version, Some(1));
            let answer = Answer::Lines(Share { frame, version: stamp.clone(), said });
            pages.put(&part, &what, Held::new(answer, page.head, vec![stamp]));
            pages.get(&part, &what).unwrap().is_worth_a_look()
        };
        assert_eq!(["one", "one", "two", "three", "three"].map(read), [true, true, false, false, true]);
    }

    #[test]
    fn pages_are_bounded_and_those_asked_for_stay() {
        let (part, other) = (part("COUNT(2h, e, s)", "1h", true), part("COUNT(2h, e, s)", "1h", true));
        let pages = Pages::default();
        let bytes = held(&part, 1_000).bytes();
        let room = MOST / bytes;
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
