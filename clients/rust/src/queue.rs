//! Items that wait to be sent to one place: a board, or all boards that count an event.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rand::RngCore;
use tokio::time::Instant;

use crate::item::Object;
use crate::sum::{self, Place};

/// The largest number of bytes of a batch with several items: half of what the service takes if it is not told
/// otherwise.
const MAX_BYTES: usize = 4 << 20;
/// The characters of ids, which stand for 6 bits each.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns an id that nobody else draws: 96 random bits in 16 characters, as short as that allows.
pub(crate) fn new_id() -> String {
    let mut bits = [0; 12];
    rand::rng().fill_bytes(&mut bits);
    let of_three = |three: &[u8]| three.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte));
    let characters = bits.chunks(3).map(of_three).flat_map(|bits| [18, 12, 6, 0].map(|by| CHARACTERS[bits >> by & 63]));
    characters.map(char::from).collect()
}

/// How items are gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batching {
    /// The largest number of items that wait.
    pub(crate) max_items: usize,
    /// A batch is sent when it has so many items, or when its first item has waited so long.
    pub(crate) items: usize,
    pub(crate) time: Duration,
    /// Whether amounts for equal subjects are added up.
    pub(crate) coalesces: bool,
}

impl Default for Batching {
    fn default() -> Self {
        Self { max_items: 10_000, items: 500, time: Duration::from_secs(1), coalesces: false }
    }
}

/// An item as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its place among all that were ever sent.
    pub(crate) number: u64,
    text: String,
    tag: Option<u64>,
    combined: u64,
}

impl Item {
    /// Returns the JSON object, with the id of the item. To send that again is safe, as long as the service remembers
    /// ids.
    pub fn as_json(&self) -> &str {
        &self.text
    }

    /// Returns the number that it was given with `tag`; if amounts were added up, that of the first.
    pub fn tag(&self) -> Option<u64> {
        self.tag
    }

    /// Returns how many items are in this one: more than 1 if their amounts were added up.
    pub fn combined(&self) -> u64 {
        self.combined
    }
}

/// An item that waits.
enum Waiting {
    Whole { text: String, tag: Option<u64>, combined: u64 },
    Sum { place: Place, units: i64, id: String, tag: Option<u64>, combined: u64 },
}

/// What is to do.
pub(crate) enum Next {
    Send(Vec<Item>),
    /// Nothing before this time.
    At(Instant),
    /// Nothing until something is added.
    Never,
    /// There will be nothing any more.
    Ended,
}

/// Holds items in the order in which they came.
pub(crate) struct Queue {
    batching: Batching,
    waiting: VecDeque<Waiting>,
    /// The time at which the first one began to wait.
    since: Instant,
    /// The numbers of items that were ever added, and that were ever taken.
    pub(crate) added: u64,
    taken: u64,
    /// The number of items whose amounts were added to others.
    pub(crate) combined: u64,
    /// The number of items that need not wait for more.
    hurried: u64,
    /// Whether nothing is added any more.
    pub(crate) is_closing: bool,
    /// The numbers of the items to which further amounts are added.
    sums: HashMap<Place, u64>,
}

impl Queue {
    pub(crate) fn new(batching: Batching) -> Self {
        Self {
            batching,
            waiting: VecDeque::new(),
            since: Instant::now(),
            added: 0,
            taken: 0,
            combined: 0,
            hurried: 0,
            is_closing: false,
            sums: HashMap::new(),
        }
    }

    /// Adds the amount to an item that waits, if it may be. Returns whether it was.
    pub(crate) fn combine(&mut self, item: &Object) -> bool {
        let Some((place, more)) = self.place(item) else { return false };
        let waiting = self.sums.get(&place).map(|number| (number - self.taken) as usize);
        let Some(Waiting::Sum { units, combined, .. }) = waiting.and_then(|at| self.waiting.get_mut(at)) else {
            return false;
        };
        let Some(sum) = sum::add(*units, more) else { return false };
        (*units, *combined) = (sum, *combined + 1);
        self.combined += 1;
        true
    }

    /// Adds an item, with an id unless it has one. Returns whether that made a batch due, or begun one.
    pub(crate) fn add(&mut self, mut item: Object, now: Instant) -> bool {
        if self.waiting.is_empty() {
            self.since = now;
        }
        let tag = item.tag;
        let waiting = match self.place(&item) {
            Some((place, units)) => {
                self.sums.insert(place.clone(), self.added);
                Waiting::Sum { place, units, id: new_id(), tag, combined: 1 }
            }
            None => {
                item.give_id(new_id);
                Waiting::Whole { text: item.to_string(), tag, combined: 1 }
            }
        };
        self.waiting.push_back(waiting);
        self.added += 1;
        self.waiting.len() == 1 || self.waiting.len() == self.batching.items
    }

    /// Lets all that was added be sent without waiting for more. Returns how many there were ever.
    pub(crate) fn hurry(&mut self) -> u64 {
        self.hurried = self.added;
        self.added
    }

    /// Returns the next batch, or when to ask again.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        if self.waiting.is_empty() {
            return if self.is_closing { Next::Ended } else { Next::Never };
        }
        let is_due = self.waiting.len() >= self.batching.items || self.taken < self.hurried || self.is_closing;
        // A time that no clock reaches is never.
        let due = if is_due { Some(now) } else { self.since.checked_add(self.batching.time) };
        match due {
            Some(due) if due <= now => Next::Send(self.take(now)),
            Some(due) => Next::At(due),
            None => Next::Never,
        }
    }

    fn take(&mut self, now: Instant) -> Vec<Item> {
        self.since = now;
        let (mut batch, mut size) = (Vec::new(), 0);
        while batch.len() < self.batching.items {
            let Some(first) = self.waiting.pop_front() else { break };
            let item = self.item(first);
            size += item.text.len();
            if size > MAX_BYTES && !batch.is_empty() {
                // It keeps the id that it has got.
                let Item { text, tag, combined, .. } = item;
                self.waiting.push_front(Waiting::Whole { text, tag, combined });
                break;
            }
            batch.push(item);
            self.taken += 1;
        }
        batch
    }

    /// Returns an item as it is sent. No amount is added to it any more.
    fn item(&mut self, waiting: Waiting) -> Item {
        let number = self.taken;
        match waiting {
            Waiting::Whole { text, tag, combined } => Item { number, text, tag, combined },
            Waiting::Sum { place, units, id, tag, combined } => {
                let text = place.item(units, &id);
                if self.sums.get(&place) == Some(&number) {
                    self.sums.remove(&place);
                }
                Item { number, text, tag, combined }
            }
        }
    }

    fn place(&self, item: &Object) -> Option<(Place, i64)> {
        self.batching.coalesces.then(|| sum::place(item)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::Increment;

    fn of(line: &str) -> Object {
        Increment::from_json(line).unwrap().0
    }

    fn taken(next: Next) -> Vec<Item> {
        let Next::Send(batch) = next else { panic!("no batch is due") };
        batch
    }

    fn queue(batching: Batching) -> (Queue, Instant) {
        (Queue::new(batching), Instant::now())
    }

    #[test]
    fn ids_differ_and_are_short() {
        let ids: HashSet<String> = (0..10_000).map(|_| new_id()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 16));
        let characters: HashSet<char> = ids.iter().flat_map(|id| id.chars()).collect();
        assert_eq!(characters.len(), 64);
    }

    #[test]
    fn a_batch_is_due_by_its_number_or_its_time() {
        let second = Duration::from_secs(1);
        let (mut queue, now) = queue(Batching { items: 3, ..Batching::default() });
        assert!(matches!(queue.next(now), Next::Never));
        assert!(queue.add(of("{\"subject\":\"a\"}"), now));
        assert!(!queue.add(of("{\"subject\":\"b\",\"id\":\"mine\"}"), now));
        assert!(matches!(queue.next(now), Next::At(due) if due == now + second));
        assert!(queue.add(of("{\"subject\":\"c\"}"), now));
        let batch = taken(queue.next(now));
        assert_eq!(batch.iter().map(|item| item.number).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(batch[1].as_json(), "{\"subject\":\"b\",\"id\":\"mine\"}");
        queue.add(of("{\"subject\":\"d\"}"), now + second);
        assert!(matches!(queue.next(now + second), Next::At(_)));
        assert_eq!(taken(queue.next(now + 2 * second)).len(), 1);
    }

    #[test]
    fn what_is_hurried_does_not_hurry_what_comes_later() {
        let (mut queue, now) = queue(Batching { items: 2, ..Batching::default() });
        for _ in 0..3 {
            queue.add(of("{\"subject\":\"a\"}"), now);
        }
        assert_eq!(queue.hurry(), 3);
        assert_eq!((taken(queue.next(now)).len(), taken(queue.next(now)).len()), (2, 1));
        queue.add(of("{\"subject\":\"a\"}"), now);
        assert!(matches!(queue.next(now), Next::At(_)));
        queue.is_closing = true;
        assert_eq!(taken(queue.next(now)).len(), 1);
        assert!(matches!(queue.next(now), Next::Ended));
    }

    #[test]
    fn amounts_are_added_up_until_they_are_taken() {
        let (mut queue, now) = queue(Batching { items: 2, coalesces: true, ..Batching::default() });
        let mut a = of("{\"subject\":\"a\",\"amount\":2}");
        a.tag = Some(7);
        assert!(!queue.combine(&a));
        queue.add(a, now);
        assert!(queue.combine(&of("{\"subject\":\"a\"}")));
        assert!(!queue.combine(&of("{\"subject\":\"a\",\"id\":\"i\"}")));
        assert!(!queue.combine(&of("{\"subject\":\"a\",\"amount\":999999999}")));
        queue.add(of("{\"subject\":\"a\",\"amount\":999999999}"), now);
        queue.add(of("{\"subject\":\"b\"}"), now);
        let batch = taken(queue.next(now));
        assert!(batch[0].as_json().starts_with("{\"subject\":\"a\",\"amount\":3,"), "{batch:?}");
        assert_eq!((batch[0].tag(), batch[0].combined()), (Some(7), 2));
        assert!(!queue.combine(&of("{\"subject\":\"a\"}")));
        assert!(queue.combine(&of("{\"subject\":\"b\"}")));
    }

    #[test]
    fn a_batch_has_a_bound_of_bytes() {
        let (mut queue, now) = queue(Batching { coalesces: true, ..Batching::default() });
        for i in 0..5 {
            queue.add(of(&format!("{{\"subject\":\"{i}{}\"}}", "x".repeat(MAX_BYTES / 2))), now);
        }
        queue.hurry();
        let first = taken(queue.next(now));
        assert_eq!(first.len(), 1);
        // What was left out cannot get more, as it has its text.
        assert!(!queue.combine(&of(&format!("{{\"subject\":\"1{}\"}}", "x".repeat(MAX_BYTES / 2)))));
        for number in 1..5 {
            assert_eq!(taken(queue.next(now))[0].number, number);
        }
    }

    #[test]
    fn a_time_without_end_is_never() {
        let (mut queue, now) = queue(Batching { time: Duration::MAX, ..Batching::default() });
        queue.add(of("{\"subject\":\"a\"}"), now);
        assert!(matches!(queue.next(now), Next::Never));
    }
}
