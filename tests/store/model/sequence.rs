//! A sequence of operations. Operations are plain data and relative to whatever state and board they meet, so that
//! any of them can be left out when a failing sequence is made smaller.

use rolltop::board::{
    Amount, Board, Change, Counted, Definition, EXACT_MAX, EventId, Kind, Subject, Timestamp, Window,
};
use rolltop::store::Increment;

use crate::given::{subject, value};

/// Who may be counted: few, so that they meet often; in an order that only bytes agree on.
pub const SUBJECTS: [&str; 9] = ["a", "b", "B", "a b", "日本", "🎉", "{x}:y", "\u{ffee}", "zz"];

/// Besides them a crowd, so that retiring a slot takes several steps.
pub const CROWD: usize = 700;

/// The values subjects are seen with: few too, and some that a store might take for its own.
const VALUES: [&str; 8] = ["u", "v", "V", "é", "日本", "c", "t", "u v"];

#[derive(Clone, Debug)]
pub struct Sequence {
    /// What it was drawn from.
    pub seed: u64,
    pub start: Timestamp,
    pub boards: Vec<Definition>,
    pub steps: Vec<Step>,
}

/// One operation; `through` says which instance, where a store has several.
#[derive(Clone, Debug)]
pub enum Step {
    Add {
        board: usize,
        items: Vec<Item>,
        scores: bool,
        through: usize,
    },
    /// The first so many of the crowd, each with an amount of its own.
    Crowd {
        board: usize,
        first: usize,
        at: Option<When>,
        through: usize,
    },
    /// One subject, seen with so many values at once.
    Flood {
        board: usize,
        who: usize,
        values: usize,
        at: Option<When>,
        through: usize,
    },
    /// Adds to several boards at once.
    AddAll {
        batches: Vec<(usize, Vec<Item>)>,
        through: usize,
    },
    Clock(Leap),
    /// So many retire steps, whether or not that finishes anything.
    Retire {
        board: usize,
        steps: usize,
        through: usize,
    },
    /// Two instances retire until done while a third party writes.
    RetireTogether {
        board: usize,
        items: Vec<Item>,
    },
    Remove {
        board: usize,
        who: usize,
        through: usize,
    },
    /// Undefine, and define as something else or the same.
    Redefine {
        board: usize,
        definition: Definition,
        through: usize,
    },
    /// Call with the handle from before the last redefinition.
    Stale {
        board: usize,
        through: usize,
    },
    Audit {
        board: usize,
    },
    Reopen {
        close: bool,
        through: usize,
    },
    Look {
        board: usize,
        at: Look,
        through: usize,
    },
    /// Several questions at once.
    Ask {
        questions: Vec<(usize, Question)>,
        through: usize,
    },
    /// Finish retiring, then compare all there is to read.
    Check {
        board: usize,
    },
}

/// What is done to one subject, in whatever way the board's metric takes it.
#[derive(Clone, Debug)]
pub struct Item {
    pub who: usize,
    pub act: Act,
    /// Where the board takes amounts.
    pub amount: Size,
    /// Where it takes values.
    pub value: usize,
    pub at: Option<When>,
    pub id: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Count,
    /// Counts where the board cannot retract.
    Retract,
    /// A sample of so many measurements; counts where the board takes no samples.
    Sample {
        count: i64,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Size {
    Units(i64),
    /// The slot bound times a sign, and a little off.
    Bound {
        sign: i64,
        off: i64,
    },
}

/// A time, in milliseconds from something of the board's window.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Now(i64),
    Floor(i64),
    Head(i64),
    Back { slots: u32, off: i64 },
}

#[derive(Clone, Copy, Debug)]
pub enum Leap {
    By(i64),
    /// To the end of the head slot of a board, and so many slots on.
    Slots {
        board: usize,
        slots: u32,
        off: i64,
    },
    /// So many times the board's window.
    Windows {
        board: usize,
        windows: i64,
        off: i64,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Look {
    Page { offset: u64, limit: u32 },
    Neighbors { who: usize, radius: u32 },
    Lookup { who: [usize; 3] },
    Standing { who: usize },
    Read(Question),
    Values { who: usize, offset: u64, limit: u32 },
    Status,
}

/// What a subject has in some slots.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub who: usize,
    pub reach: Span,
    /// Where the board can look back.
    pub as_of: Option<When>,
}

#[derive(Clone, Copy, Debug)]
pub enum Span {
    Slots(u32),
    From(When),
    /// As many slots as the window has, less so many.
    AllBut(u32),
}

/// One of the few, or of the crowd after them.
pub fn who(nth: usize) -> Subject {
    match SUBJECTS.get(nth) {
        Some(who) => subject(who),
        None => subject(&format!("c{nth}")),
    }
}

/// One of the few values, or one more after them.
fn what(nth: usize) -> Counted {
    match VALUES.get(nth) {
        Some(text) => value(text),
        None => value(&format!("v{nth}")),
    }
}

/// What the first so many of the crowd are sent: mostly little, some of it negative, some nothing.
pub fn crowd(first: usize, at: Option<When>) -> Vec<Item> {
    let units = |nth: usize| Size::Units((nth * 7 % 11) as i64 - 4);
    let members = SUBJECTS.len()..SUBJECTS.len() + first;
    members.map(|who| Item { who, act: Act::Count, amount: units(who), value: who % 5, at, id: None }).collect()
}

/// One subject with so many values.
pub fn flood(who: usize, values: usize, at: Option<When>) -> Vec<Item> {
    (0..values).map(|value| Item { who, act: Act::Count, amount: Size::Units(1), value, at, id: None }).collect()
}

pub fn everyone() -> impl Iterator<Item = Subject> {
    (0..SUBJECTS.len()).map(who)
}

impl When {
    pub fn resolve(self, board: &Board, window: &Window, now: Timestamp) -> Timestamp {
        match self {
            When::Now(off) => now.plus_millis(off),
            When::Floor(off) => window.floor.plus_millis(off),
            When::Head(off) => window.head.plus_millis(off),
            When::Back { slots, off } => {
                (0..slots).fold(window.head, |slot, _| board.calendar().previous(slot)).plus_millis(off)
            }
        }
    }
}

impl Leap {
    pub fn resolve(self, boards: &[std::sync::Arc<Board>], now: Timestamp) -> Timestamp {
        let to = match self {
            Leap::By(millis) => now.plus_millis(millis),
            Leap::Slots { board, slots, off } => {
                let calendar = boards[board].calendar();
                (0..=slots).fold(now, |at, _| calendar.next(at)).plus_millis(off)
            }
            Leap::Windows { board, windows, off } => {
                let window = boards[board].definition().metric.window.approximate_millis();
                now.plus_millis(window * windows + off)
            }
        };
        to.max(now)
    }
}

impl Item {
    /// The item as this board takes it. Samples and retractions have a time, and only sums are sent amounts that no
    /// store holds: the others are refused such before they come to one.
    pub fn resolve(&self, board: &Board, window: &Window, now: Timestamp) -> Increment {
        let units = match self.amount {
            Size::Units(units) => units,
            Size::Bound { sign, off } => sign * board.slot_bound().0 + off,
        };
        let within = Amount(units.clamp(-EXACT_MAX, EXACT_MAX));
        let retract = self.act == Act::Retract && board.takes_retractions();
        let sample = match self.act {
            Act::Sample { count } => {
                let sum = if count == 0 && board.kind() == Kind::Mean { Amount(0) } else { within };
                Some(Change::Set { sum, count }).filter(|set| board.takes(set))
            }
            _ => None,
        };
        let has_time = retract || sample.is_some();
        let change = match board.kind() {
            Kind::Distinct | Kind::Sketch => Change::Seen(what(self.value)),
            Kind::Sum if !retract => Change::Amount(Amount(units)),
            _ => Change::Amount(within),
        };
        Increment {
            subject: who(self.who),
            change: sample.unwrap_or(change),
            retract,
            at: self.at.or(has_time.then_some(When::Now(0))).map(|at| at.resolve(board, window, now)),
            id: self.id.and_then(|id| EventId::parse(&format!("id {id}")).ok()),
        }
    }
}

impl Sequence {
    /// The same without one item of one step; `None` if that has no such item, or no other.
    pub fn without_item(&self, step: usize, item: usize) -> Option<Sequence> {
        let mut shorter = self.clone();
        match shorter.steps.get_mut(step)? {
            Step::Add { items, .. } | Step::RetireTogether { items, .. } if items.len() > 1 && item < items.len() => {
                items.remove(item);
            }
            Step::AddAll { batches, .. } => {
                let nth = batches.iter().position(|(_, items)| items.len() > 1 && item < items.len())?;
                batches[nth].1.remove(item);
            }
            _ => return None,
        }
        Some(shorter)
    }
}
