//! A sequence of operations, drawn from a seed. Operations are plain data and relative to whatever state they
//! meet, so that any of them can be left out when a failing sequence is made smaller.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rolltop::board::{Board, Cover, Decimals, Definition, Order, Subject, Timestamp, Window};

use crate::given::{definition, subject, t};

/// Who may be counted: few, so that they meet often; in an order that only bytes agree on.
const SUBJECTS: [&str; 9] = ["a", "b", "B", "a b", "日本", "🎉", "{x}:y", "\u{ffee}", "zz"];

/// Besides them a crowd, so that retiring a slot takes several steps.
const CROWD: usize = 700;

const STARTS: [&str; 7] = [
    "2026-01-01T09:30:00Z",
    "2026-03-28T21:59:59.999Z",
    "2026-10-24T20:00:00Z",
    "2024-02-28T23:00:00Z",
    "2025-11-02T03:30:00Z",
    "2026-02-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
];

const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Havana"];

#[derive(Clone, Debug)]
pub struct Sequence {
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
    /// Finish retiring, then compare all there is to read.
    Check {
        board: usize,
    },
}

#[derive(Clone, Debug)]
pub struct Item {
    pub who: usize,
    pub amount: Size,
    pub at: Option<When>,
    pub id: Option<u8>,
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
    Count { who: usize, slots: u32 },
    CountFrom { who: usize, from: When },
    Status,
}

/// One of the few, or of the crowd after them.
pub fn who(nth: usize) -> Subject {
    match SUBJECTS.get(nth) {
        Some(who) => subject(who),
        None => subject(&format!("c{nth}")),
    }
}

/// What the first so many of the crowd are sent: mostly little, some of it negative, some nothing.
pub fn crowd(first: usize, at: Option<When>) -> Vec<Item> {
    let units = |nth: usize| (nth * 7 % 11) as i64 - 4;
    let members = SUBJECTS.len()..SUBJECTS.len() + first;
    members.map(|who| Item { who, amount: Size::Units(units(who)), at, id: None }).collect()
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

impl Sequence {
    pub fn from_seed(seed: u64) -> Sequence {
        let mut rng = StdRng::seed_from_u64(seed);
        let boards: Vec<Definition> = (0..rng.random_range(1..=2)).map(|_| any_definition(&mut rng)).collect();
        let length = rng.random_range(15..=35);
        let steps = (0..length).map(|_| any_step(&mut rng, &boards)).collect();
        Sequence { start: t(pick(&mut rng, &STARTS)), boards, steps }
    }

    /// The same without one item of one step; `None` if that has no such item, or no other.
    pub fn without_item(&self, step: usize, item: usize) -> Option<Sequence> {
        let mut shorter = self.clone();
        match shorter.steps.get_mut(step)? {
            Step::Add { items, .. } | Step::RetireTogether { items, .. } if items.len() > 1 && item < items.len() => {
                items.remove(item);
            }
            _ => return None,
        }
        Some(shorter)
    }
}

fn pick<T: Copy>(rng: &mut StdRng, from: &[T]) -> T {
    *from.choose(rng).expect("a list with something in it")
}

fn any_definition(rng: &mut StdRng) -> Definition {
    let slot = pick(rng, &["1s", "10s", "1m", "15m", "1h", "6h", "1d", "1w", "1mo"]);
    let slots = pick(rng, &[1, 1, 2, 3, 3, 5, 8, 12, 30]);
    let (count, unit) = slot.split_at(slot.bytes().take_while(u8::is_ascii_digit).count());
    let window = format!("{}{unit}", slots * count.parse::<u32>().expect("a number"));
    let mut wanted = definition(&format!("SUM({window}, sale, amount, seller)"), slot);
    wanted.timezone = pick(rng, &ZONES).parse().expect("a zone");
    wanted.order = pick(rng, &[Order::Desc, Order::Desc, Order::Asc]);
    wanted.cover = pick(rng, &[Cover::Current, Cover::Current, Cover::Full]);
    wanted.decimals = pick(rng, &[Decimals::default(), Decimals::new(2).expect("few enough")]);
    wanted
}

fn any_step(rng: &mut StdRng, boards: &[Definition]) -> Step {
    let board = rng.random_range(0..boards.len());
    let through = rng.random_range(0..2);
    match rng.random_range(0..100) {
        0..2 => {
            let at = rng.random_bool(0.6).then(|| any_when(rng));
            Step::Crowd { board, first: rng.random_range(150..=CROWD), at, through }
        }
        2..38 => Step::Add { board, items: any_items(rng), scores: rng.random_bool(0.5), through },
        38..56 => Step::Clock(any_leap(rng, board)),
        56..63 => Step::Retire { board, steps: rng.random_range(1..=3), through },
        63..67 => Step::RetireTogether { board, items: any_items(rng) },
        67..71 => Step::Remove { board, who: any_subject(rng), through },
        71..73 => {
            let same = rng.random_bool(0.5);
            let definition = if same { boards[board].clone() } else { any_definition(rng) };
            Step::Redefine { board, definition, through }
        }
        73..75 => Step::Stale { board, through },
        75..80 => Step::Audit { board },
        80..83 => Step::Reopen { close: rng.random_bool(0.5), through },
        83..95 => Step::Look { board, at: any_look(rng), through },
        _ => Step::Check { board },
    }
}

fn any_items(rng: &mut StdRng) -> Vec<Item> {
    let most = pick(rng, &[1, 3, 6, 12]);
    (0..rng.random_range(1..=most)).map(|_| any_item(rng)).collect()
}

fn any_item(rng: &mut StdRng) -> Item {
    let amount = match rng.random_range(0..20) {
        0 => Size::Units(0),
        1 => Size::Units(pick(rng, &[i64::MAX, i64::MIN, 1 << 53, -(1 << 53)])),
        2..4 => Size::Bound { sign: pick(rng, &[1, -1]), off: rng.random_range(-2..=2) },
        4..9 => Size::Units(-rng.random_range(1..=3)),
        _ => Size::Units(rng.random_range(1..=4)),
    };
    let at = rng.random_bool(0.6).then(|| any_when(rng));
    let id = rng.random_bool(0.35).then(|| rng.random_range(0..4));
    Item { who: any_subject(rng), amount, at, id }
}

fn any_when(rng: &mut StdRng) -> When {
    let off = pick(rng, &[-1, 0, 0, 1, 500]);
    match rng.random_range(0..10) {
        0 => When::Now(pick(rng, &[0, 1, 4_999, 5_000, 5_001, 3_600_000])),
        1..3 => When::Now(-rng.random_range(0..=7_200_000)),
        3..5 => When::Floor(off),
        5 => When::Head(off),
        _ => When::Back { slots: rng.random_range(0..=12), off: off.max(0) },
    }
}

fn any_leap(rng: &mut StdRng, board: usize) -> Leap {
    let off = pick(rng, &[-1, 0, 0, 1, 700]);
    match rng.random_range(0..20) {
        0..3 => Leap::By(rng.random_range(0..=2_000)),
        3..6 => Leap::By(rng.random_range(0..=7_200_000)),
        6..15 => Leap::Slots { board, slots: pick(rng, &[0, 0, 0, 0, 1, 2, 5]), off },
        15..19 => Leap::Windows { board, windows: 1, off },
        _ => Leap::Windows { board, windows: rng.random_range(2..=400), off },
    }
}

/// Mostly one of the few.
fn any_subject(rng: &mut StdRng) -> usize {
    let most = if rng.random_bool(0.1) { SUBJECTS.len() + CROWD } else { SUBJECTS.len() };
    rng.random_range(0..most)
}

fn any_look(rng: &mut StdRng) -> Look {
    let who = any_subject(rng);
    match rng.random_range(0..8) {
        0 => Look::Page { offset: pick(rng, &[0, 1, 3, 8, 100, 500]), limit: pick(rng, &[0, 1, 2, 5, 100]) },
        1 => Look::Neighbors { who, radius: pick(rng, &[0, 1, 2, 20]) },
        2 => Look::Lookup { who: [who, any_subject(rng), any_subject(rng)] },
        3..5 => Look::Standing { who },
        5 => Look::Count { who, slots: rng.random_range(1..=31) },
        6 => Look::CountFrom { who, from: any_when_up_to_now(rng) },
        _ => Look::Status,
    }
}

/// What a shorter window may begin with.
fn any_when_up_to_now(rng: &mut StdRng) -> When {
    match rng.random_range(0..4) {
        0 => When::Now(-rng.random_range(0..=7_200_000)),
        1 => When::Floor(pick(rng, &[-1, 0])),
        2 => When::Back { slots: rng.random_range(1..=12), off: pick(rng, &[-1, 0, 1]) },
        _ => When::Head(pick(rng, &[-1, 0])),
    }
}
