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
//! read in, which must not have changed from before the question was sent until after it was answered.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::board::Timestamp;
use crate::store::redis::part::Part;
use crate::store::{Page, Ranked};

/// What the pages of all boards take: some thousands of 50 lines, and little beside what a service needs anyway.
const MOST: usize = 32 << 20;
/// What a page takes beside its lines.
const BESIDE: usize = 512;

/// A page with what it was read under.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub page: Page,
    /// The board's version.
    pub version: Arc<str>,
    /// That of the servers.
    pub epoch: u64,
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

/// By part, offset and limit. Parts are told apart by their address, and kept so that no other takes it.
type Half = HashMap<Key, (Arc<Part>, Held), rapidhash::fast::RandomState>;
type Key = (usize, u64, u32);

impl Held {
    /// Whether it is right where the board has this version and head, asked in this epoch of the servers.
    pub fn is_right(&self, epoch: Option<u64>, version: &str, head: Timestamp) -> bool {
        Some(self.epoch) == epoch && *self.version == *version && self.page.frame.window.head == head
    }

    /// What it takes, with what is made of its lines.
    fn bytes(&self) -> usize {
        let line = |line: &Ranked| 3 * (size_of::<Ranked>() + line.subject.as_str().len());
        BESIDE + self.page.items.iter().map(line).sum::<usize>()
    }
}

impl Pages {
    pub fn get(&self, part: &Arc<Part>, offset: u64, limit: u32) -> Option<Held> {
        let key = (Arc::as_ptr(part).addr(), offset, limit);
        let mut halves = self.0.lock();
        if let Some((_, held)) = halves.young.get(&key) {
            return Some(held.clone());
        }
        let (part, held) = halves.old.remove(&key)?;
        halves.keep(key, part, held.clone());
        Some(held)
    }

    pub fn put(&self, part: &Arc<Part>, offset: u64, limit: u32, held: Held) {
        let key = (Arc::as_ptr(part).addr(), offset, limit);
        let mut halves = self.0.lock();
        halves.old.remove(&key);
        halves.keep(key, part.clone(), held);
    }
}

impl Halves {
    fn keep(&mut self, key: Key, part: Arc<Part>, held: Held) {
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

    fn held(part: &Part, lines: usize) -> Held {
        let line = |i: usize| Ranked {
            rank: i as u64 + 1,
            subject: Subject::parse(&format!("subject-{i}")).unwrap(),
            score: Value::Exact(Amount(1)),
        };
        let as_of = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        let frame = Frame { window: part.board.window_at(as_of), as_of, retiring: 0 };
        let page = Page { frame, total: 1, items: (0..lines).map(line).collect() };
        Held { page, version: "one".into(), epoch: 7 }
    }

    #[test]
    fn a_page_is_right_for_its_version_head_and_epoch() {
        let held = held(&part("COUNT(2h, e, s)", "1h", true), 1);
        let head = held.page.frame.window.head;
        assert!(held.is_right(Some(7), "one", head));
        assert!(!held.is_right(Some(8), "one", head) && !held.is_right(None, "one", head));
        assert!(!held.is_right(Some(7), "two", head) && !held.is_right(Some(7), "", head));
        assert!(!held.is_right(Some(7), "one", head.plus_millis(3_600_000)));
    }

    #[test]
    fn pages_are_bounded_and_those_asked_for_stay() {
        let (part, other) = (part("COUNT(2h, e, s)", "1h", true), part("COUNT(2h, e, s)", "1h", true));
        let pages = Pages::default();
        let page = held(&part, 1_000);
        let room = MOST / page.bytes();
        for offset in 0..3 * room as u64 {
            pages.put(&part, offset, 1_000, page.clone());
            assert!(pages.get(&part, 0, 1_000).is_some(), "{offset}");
        }
        let halves = pages.0.lock();
        assert!(halves.young.len() + halves.old.len() <= room);
        assert_eq!(halves.young.values().map(|(_, held)| held.bytes()).sum::<usize>(), halves.bytes);
        drop(halves);
        assert!(pages.get(&part, 1, 1_000).is_none());
        assert!(pages.get(&other, 0, 1_000).is_none() && pages.get(&part, 0, 999).is_none());
    }
}
