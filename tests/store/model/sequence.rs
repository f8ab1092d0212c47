//! A sequence of operations. Operations are plain data, and relative to the state and board on which they run, so that
//! any of them can be left out when a failing sequence is reduced.

use std::sync::Arc;

use rolltop::board::{
    Amount, Board, BoardTrack, Change, Counted, DayCount, Definition, EXACT_MAX, Edition, EventId, Kind,
    ModerationChange, NotCounted, RankingKey, Subject, Timestamp, Track, Window,
};
use rolltop::store::{Increment, TableName};

use crate::given::{subject, value};

/// The few subjects, which therefore occur often. Only a comparison by bytes gives them this order.
pub const SUBJECTS: [&str; 9] = ["a", "b", "B", "a b", "日本", "🎉", "{x}:y", "\u{ffee}", "zz"];

/// The keys of boards that have keys.
pub const KEYS: [&str; 2] = ["k}", "é {k}"];

/// The time beyond which no leap goes: the windows that begin then end before the last timestamp.
const LAST_DAY: Timestamp = Timestamp::from_millis(Timestamp::MAX.millis() - 100 * 366 * DAY);

/// The time for which a board over all time remembers that a value was taken back.
const DAY: i64 = 86_400_000;

/// A step of the clock where a board has no slots, in milliseconds.
const SIX_HOURS: i64 = 21_600_000;

/// The number of further subjects, so that retiring a slot takes several steps.
pub const CROWD: usize = 700;

/// The few values that subjects are seen with. Some could be confused with a store's internal names.
const VALUES: [&str; 8] = ["u", "v", "V", "é", "日本", "c", "t", "u v"];

#[derive(Clone, Debug)]
pub struct Sequence {
    /// The seed from which it was drawn.
    pub seed: u64,
    pub start: Timestamp,
    pub boards: Vec<Definition>,
    pub steps: Vec<Step>,
}

/// One operation. `through` is the instance, where a store has several, and `window` the window, where a board has
/// several: see [`window_of`].
#[derive(Clone, Debug)]
pub enum Step {
    Add {
        board: usize,
        items: Vec<Item>,
        scores: bool,
        through: usize,
    },
    /// Adds the first subjects of the crowd, each with a different amount.
    Crowd {
        board: usize,
        first: usize,
        at: Option<When>,
        through: usize,
    },
    /// Adds one subject with this many values at once.
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
    /// Makes this many retire steps, which need not finish a slot.
    Retire {
        board: usize,
        window: usize,
        steps: usize,
        through: usize,
    },
    /// Lets two instances retire until done while a third client writes.
    RetireTogether {
        board: usize,
        window: usize,
        items: Vec<Item>,
    },
    Remove {
        board: usize,
        who: usize,
        through: usize,
    },
    /// Changes what is set for a subject.
    Moderate {
        board: usize,
        who: usize,
        change: ModerationChange,
        through: usize,
    },
    /// Changes the attributes of a subject: a JSON object, and whether it replaces what there is.
    Describe {
        board: usize,
        who: usize,
        attributes: String,
        replaces: bool,
        through: usize,
    },
    /// Removes a board, and defines it with a different or the same definition.
    Redefine {
        board: usize,
        definition: Definition,
        through: usize,
    },
    /// Makes a call with the board from before the last redefinition.
    Stale {
        board: usize,
        through: usize,
    },
    /// Gives a board a second edition, if it has one. With `same` it counts the same items, if it is of the same kind.
    Attach {
        board: usize,
        definition: Definition,
        same: bool,
        through: usize,
    },
    /// Exchanges the two editions of a board.
    Exchange {
        board: usize,
        through: usize,
    },
    /// Removes the second edition of a board.
    Detach {
        board: usize,
        through: usize,
    },
    /// Ends the current period of a board whose periods are closed by hand, if it can be closed.
    Close {
        board: usize,
        through: usize,
    },
    /// Packs the periods of a board that are final.
    Pack {
        board: usize,
        through: usize,
    },
    /// Gives a track of the second edition what a track of the current one has, if it can be filled from it.
    Fill {
        board: usize,
        from: usize,
        to: usize,
        end: bool,
        through: usize,
    },
    /// Adds to a board, and makes other calls about it, as one who does not know this many changes of its editions.
    Behind {
        board: usize,
        changes: usize,
        items: Vec<Item>,
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
        window: usize,
        at: Look,
        through: usize,
    },
    /// Asks several questions at once, each about a board and a window.
    SlotQuery {
        questions: Vec<(usize, usize, Question)>,
        through: usize,
    },
    /// Walks over everything that a track has.
    Walk {
        board: usize,
        window: usize,
    },
    Import(Import),
    /// Replaces a row by a text if it is as it was last seen, or with `wrong` if it is different from that.
    ChangeRow {
        table: TableName,
        id: usize,
        to: Option<usize>,
        wrong: bool,
        through: usize,
    },
    /// Reads a table.
    Rows {
        table: TableName,
        through: usize,
    },
    /// Finishes retiring, then compares everything that can be read.
    Check {
        board: usize,
    },
}

/// Merges the contents of a board into one with the same definition, or else into itself.
#[derive(Clone, Debug)]
pub struct Import {
    pub from: usize,
    pub to: usize,
    /// One of a few ids. So an import may be continued, also with other contents.
    pub id: u64,
    /// The number of contents of a piece.
    pub size: usize,
    /// What the clock does between the walk and the import.
    pub leap: Option<Leap>,
    /// The times after which calls for a piece end, in microseconds, before one for it is completed.
    pub interruptions: Vec<u64>,
    /// Whether each piece is sent twice.
    pub twice: bool,
    pub end: bool,
    pub through: usize,
}

/// A change of one subject, in the form that the board's metric takes.
#[derive(Clone, Debug)]
pub struct Item {
    pub who: usize,
    /// The window that its time and its amount relate to.
    pub window: usize,
    pub act: Act,
    /// The amount, if the board takes amounts.
    pub amount: Size,
    /// The value, if the board takes values.
    pub value: usize,
    pub at: Option<When>,
    pub id: Option<u8>,
    pub by: By,
}

/// Which editions count an item, where a board has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Both,
    /// The other one does not, for this reason.
    Current(NotCounted),
    /// The current one does not, for this reason.
    Other(NotCounted),
    /// It is not said what the item is in the other one.
    Unsaid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Count,
    /// A retraction. Counts where the board does not support retractions.
    Retract,
    /// A sample of this many measurements. Counts where the board takes no samples.
    Sample {
        count: i64,
    },
    /// The removal of a value. Counts where no edition of the board stores values.
    Forget,
}

#[derive(Clone, Copy, Debug)]
pub enum Size {
    Units(i64),
    /// The bound of a slot with a sign, and a small difference.
    Bound {
        sign: i64,
        off: i64,
    },
}

/// A time, in milliseconds relative to the board's window.
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
    /// The end of a board's head slot, and this many slots more.
    Slots {
        board: usize,
        window: usize,
        slots: u32,
        off: i64,
    },
    /// The end of a board's period, or of the grace of the one before.
    Period {
        board: usize,
        off: i64,
    },
    /// This many times the board's window.
    Windows {
        board: usize,
        window: usize,
        windows: i64,
        off: i64,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Look {
    Page {
        offset: u64,
        limit: u32,
    },
    /// A page next to the place that a subject would have with this score.
    Place {
        who: usize,
        score: i64,
        is_forward: bool,
        inclusive: bool,
        limit: u32,
    },
    Neighbors {
        who: usize,
        radius: u32,
    },
    Lookup {
        who: [usize; 3],
    },
    Standing {
        who: usize,
    },
    /// Scores at percentiles, in thousandths, and numbers around scores.
    Distribution {
        percentiles: [u32; 3],
        scores: [i64; 2],
    },
    Read(Question),
    Values {
        who: usize,
        offset: u64,
        limit: u32,
    },
    Status,
}

/// A question for what a subject has in some slots.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub who: usize,
    pub range: Span,
    /// The past time, if the board supports it.
    pub as_of: Option<When>,
}

#[derive(Clone, Copy, Debug)]
pub enum Span {
    Slots(u32),
    From(When),
    /// As many slots as the window has, minus this many.
    AllBut(u32),
}

/// Returns one of the few subjects, or of the crowd after them. On a board with keys, every two subjects have the same
/// name, in the rankings of the two keys.
pub fn who(board: &Board, nth: usize) -> Subject {
    let nth = if board.has_keys() { nth / KEYS.len() } else { nth };
    match SUBJECTS.get(nth) {
        Some(who) => subject(who),
        None => subject(&format!("c{nth}")),
    }
}

/// Returns the same subject with its key, if the board has keys.
pub fn stored_who(board: &Board, nth: usize) -> Subject {
    who(board, nth).in_ranking(key_of(board, nth).as_ref())
}

/// Returns the key of the ranking of a subject, if the board has keys.
fn key_of(board: &Board, nth: usize) -> Option<RankingKey> {
    board.has_keys().then(|| RankingKey::parse(KEYS[nth % KEYS.len()]).expect("a key"))
}

/// Returns the track, for reads of the ranking that a subject is in.
pub fn of_key(track: &BoardTrack, nth: usize) -> BoardTrack {
    track.clone().of_key(key_of(track.board(), nth))
}

/// Returns one of the few values, or a further one.
fn what(nth: usize) -> Counted {
    match VALUES.get(nth) {
        Some(text) => value(text),
        None => value(&format!("v{nth}")),
    }
}

/// Returns the items of the first subjects of the crowd: mostly small amounts, some negative, some zero.
pub fn crowd(first: usize, at: Option<When>) -> Vec<Item> {
    let units = |nth: usize| Size::Units((nth * 7 % 11) as i64 - 4);
    let members = SUBJECTS.len()..SUBJECTS.len() + first;
    members
        .map(|who| Item {
            who,
            window: who,
            act: Act::Count,
            amount: units(who),
            value: who % 5,
            at,
            id: None,
            by: By::Both,
        })
        .collect()
}

/// Returns items of one subject with this many values.
pub fn flood(who: usize, values: usize, at: Option<When>) -> Vec<Item> {
    (0..values)
        .map(|value| Item {
            who,
            window: value,
            act: Act::Count,
            amount: Size::Units(1),
            value,
            at,
            id: None,
            by: By::Both,
        })
        .collect()
}

/// Returns the window with this number, counted around. Of a packed period a store has only sheets.
pub fn window_of(board: &Arc<Board>, window: usize) -> BoardTrack {
    let windows: Vec<BoardTrack> = board.each_track().filter(|track| track.packed().is_none()).collect();
    windows[window % windows.len()].clone()
}

/// Returns the few subjects, as they are stored.
pub fn everyone(board: &Board) -> impl Iterator<Item = Subject> {
    (0..SUBJECTS.len()).map(|nth| stored_who(board, nth))
}

impl When {
    pub fn resolve(self, track: &Track, window: &Window, now: Timestamp) -> Timestamp {
        match self {
            When::Now(off) => now.plus_millis(off),
            // Over all time only tombstones expire.
            When::Floor(off) if track.is_all_time() => now.plus_millis(off - DAY),
            When::Floor(off) => window.floor.plus_millis(off),
            When::Head(off) => window.head.plus_millis(off),
            When::Back { slots, off } => {
                (0..slots).fold(window.head, |slot, _| track.calendar().previous(slot)).plus_millis(off)
            }
        }
    }
}

impl Leap {
    pub fn resolve(self, boards: &[Arc<Board>], now: Timestamp) -> Timestamp {
        let to = match self {
            Leap::By(millis) => now.plus_millis(millis),
            Leap::Slots { board, window, slots, off } if window_of(&boards[board], window).is_all_time() => {
                now.plus_millis(SIX_HOURS * (i64::from(slots) + 1) + off)
            }
            Leap::Slots { board, window, slots, off } => {
                let board = window_of(&boards[board], window);
                let calendar = board.calendar();
                (0..=slots).fold(now, |at, _| calendar.next(at)).plus_millis(off)
            }
            Leap::Period { board, off } => {
                let step = boards[board].season_step_at().filter(|at| *at < now.plus_millis(366 * DAY));
                step.map_or(now, |at| at.plus_millis(off))
            }
            Leap::Windows { board, window, windows, off } => {
                let board = window_of(&boards[board], window);
                let length = board.length().span().map_or(SIX_HOURS, |span| span.approximate_millis());
                now.plus_millis(length * windows + off)
            }
        };
        to.min(LAST_DAY).max(now)
    }
}

impl Item {
    /// Returns the item in the form that this board takes. Samples and retractions get a time.
    pub fn resolve(&self, board: &Arc<Board>, now: Timestamp) -> Increment {
        let remembers = |edition: &Edition| edition.kind().remembers_values();
        if self.act == Act::Forget && board.editions().iter().any(remembers) {
            let value = what(self.value);
            // With a cap it is a counter of the person: of now, of an earlier day, or of a time that is no day.
            let back = [0, 0, 86_400_000, 3 * 86_400_000][self.who % 4];
            let at = now.plus_millis(-back);
            let value = match board.main().day_of(at) {
                Some(day) => DayCount { day, person: value.as_str(), count: 0 }.text(),
                None => value,
            };
            return Increment::forgetting(board, stored_who(board, self.who), value);
        }
        let related = window_of(board, self.window);
        let window = related.window_at(now);
        let units = match self.amount {
            Size::Units(units) => units,
            Size::Bound { sign, off } => sign * related.slot_bound().0 + off,
        };
        let retract = self.act == Act::Retract && board.editions().iter().any(Edition::takes_retractions);
        let is_sample = match self.act {
            Act::Sample { count } => board.edition().takes(&Change::Set { sum: Amount(0), count }),
            _ => false,
        };
        let has_time = (retract || is_sample) && board.editions().iter().any(Edition::has_slots);
        let change = |edition: &Edition| self.change(board, edition, units, retract, is_sample);
        let other = board.editions().get(1).map(change);
        let (change, other) = match (self.by, other) {
            (By::Other(reason), Some(other)) => (Change::Not(reason), Some(other)),
            (By::Current(reason), Some(_)) => (change(board.edition()), Some(Change::Not(reason))),
            (By::Unsaid, _) => (change(board.edition()), None),
            (_, other) => (change(board.edition()), other),
        };
        Increment {
            other: other.map(Box::new),
            subject: stored_who(board, self.who),
            change,
            retract,
            at: self.at.or(has_time.then_some(When::Now(0))).map(|at| at.resolve(&related, &window, now)),
            id: self.id.and_then(|id| EventId::parse(&format!("id {id}")).ok()),
            period: None,
            event: None,
        }
    }

    /// Returns the change in an edition. Only sums get amounts that no store can hold: the other kinds refuse such
    /// amounts before they reach a store.
    fn change(&self, board: &Board, edition: &Edition, units: i64, retract: bool, is_sample: bool) -> Change {
        let scale = edition.scale();
        let (units, within) = match scale.has_times() {
            // Numbers of items have no time.
            true => {
                let score = Amount(units % (scale.largest().0 + 1));
                let number = scale.number(score, 0).expect("a score that the board can hold");
                (number.0, number)
            }
            false => (units, Amount(units.clamp(-EXACT_MAX, EXACT_MAX))),
        };
        match (self.act, edition.kind()) {
            (Act::Sample { count }, kind) if is_sample => {
                let sum = if count == 0 && kind == Kind::Mean { Amount(0) } else { within };
                match edition.has_same_samples_as(board.edition()) {
                    true => Change::Set { sum, count },
                    false => Change::Not(NotCounted::NotAccepted),
                }
            }
            _ if retract && !edition.takes_retractions() => Change::Not(NotCounted::NotAccepted),
            (_, Kind::Distinct | Kind::Capped { .. } | Kind::Sketch) => Change::Seen(what(self.value)),
            (_, Kind::Sum) if !retract => Change::Amount(Amount(units)),
            _ => Change::Amount(within),
        }
    }
}

impl Sequence {
    /// Counts instead of each sample, because a board with samples begins no import.
    pub fn without_samples(&mut self) {
        for step in &mut self.steps {
            let items: Vec<&mut Item> = match step {
                Step::Add { items, .. } | Step::RetireTogether { items, .. } | Step::Behind { items, .. } => {
                    items.iter_mut().collect()
                }
                Step::AddAll { batches, .. } => batches.iter_mut().flat_map(|(_, items)| items).collect(),
                _ => continue,
            };
            for item in items.into_iter().filter(|item| matches!(item.act, Act::Sample { .. })) {
                item.act = Act::Count;
            }
        }
    }

    /// Returns the sequence without one item of one step, or `None` if the step does not have the item or has no other.
    pub fn without_item(&self, step: usize, item: usize) -> Option<Sequence> {
        let mut shorter = self.clone();
        match shorter.steps.get_mut(step)? {
            Step::Add { items, .. } | Step::RetireTogether { items, .. } | Step::Behind { items, .. }
                if items.len() > 1 && item < items.len() =>
            {
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
