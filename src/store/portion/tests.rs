//! Tests of walks. A board is modelled by the number of times that it has counted each item of a log, and by what it has
//! reached.

use proptest::prelude::*;

use super::*;
use crate::board::{Amount, Change, Subject, Window};
use crate::store::Increment;

const COUNTED: Outcome = Outcome::Counted { score: None };

/// A log: the position of each item, and its subject.
type Log = Vec<(u128, u8)>;

fn subject(number: u8) -> Subject {
    Subject::parse(&format!("s{number}")).unwrap()
}

fn increment(number: u8) -> Increment {
    Increment {
        other: None,
        subject: subject(number),
        change: Change::Amount(Amount(1)),
        retract: false,
        at: None,
        id: None,
        period: None,
        event: None,
    }
}

/// Returns the result of a step that counted this many items.
fn added(items: usize) -> Added {
    let at = Timestamp::EPOCH;
    let frame = Frame { window: Window { floor: at, head: at, end: at }, as_of: at, retiring: 0 };
    Added { frame, outcomes: vec![COUNTED; items], newer: None }
}

fn portion(log: &[(u128, u8)], after: u128, through: u128, joins: bool) -> Portion {
    let items = log.iter().filter(|(position, _)| (after + 1..=through).contains(position));
    let items = items.map(|(position, subject)| (Position(*position), increment(*subject)));
    let portion = Portion::new(SourceNumber(1), (Position(after), Position(through)), items).unwrap();
    if joins { portion.joining() } else { portion }
}

/// What a board has counted of a log, and reached of it.
#[derive(Clone, Debug)]
struct Model {
    log: Log,
    counted: Vec<u32>,
    reached: Option<Reached>,
}

impl Model {
    fn new(log: Log) -> Self {
        Self { counted: vec![0; log.len()], reached: None, log }
    }

    /// Does a step if the board has reached what it begins with, which is stored as a text.
    fn step(&mut self, walk: &mut PortionWalk, step: SourceStep) -> Result<()> {
        if self.reached.as_ref().map(Reached::text) != step.from.as_ref().map(Reached::text) {
            return walk.meet(self.reached.clone());
        }
        for item in &step.items {
            let position = walk.portion.positions[*item].0;
            let at = self.log.iter().position(|(own, _)| *own == position).unwrap();
            self.counted[at] += 1;
        }
        self.reached = Reached::parse(&step.to.text());
        let items = step.items.len();
        walk.did(step, added(items));
        Ok(())
    }

    fn send(&mut self, portion: Portion, most: usize) -> Result<Passed> {
        let mut walk = PortionWalk::new(portion);
        while let Some(step) = walk.next(most) {
            self.step(&mut walk, step)?;
        }
        walk.finish(None)
    }

    /// Asserts that exactly the items that the board has reached are counted, once each.
    fn check(&self) {
        for ((position, subject), counted) in self.log.iter().zip(&self.counted) {
            let lane = lane_of(&self::subject(*subject));
            let is_reached = self.reached.as_ref().is_some_and(|reached| reached.in_lane(lane).0 >= *position);
            assert_eq!(*counted, u32::from(is_reached), "item at {position}");
        }
    }
}

/// What happens to a board.
#[derive(Clone, Debug)]
enum Event {
    /// A sender begins a portion: so far before or beyond the place of the board, with so many positions of the log and
    /// at most so many items in a step.
    Begin(i64, u128, usize),
    /// A sender does a step, or an item of the step, if it has so many, is held instead. The number of the sender is
    /// taken modulo their number.
    Step(usize, Option<usize>),
    /// The board is as it was so many changes ago.
    RollBack(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (-20..5_i64, 1..60_u128, 1..20_usize).prop_map(|(from, len, most)| Event::Begin(from, len, most)),
        8 => (0..9_usize, proptest::option::weighted(0.2, 0..6_usize)).prop_map(|(who, held)| Event::Step(who, held)),
        1 => (0..9_usize).prop_map(Event::RollBack),
    ];
    proptest::collection::vec(event, 1..80)
}

/// Asserts that items wait exactly if the sender knows them as not reached.
fn check_fates(walk: &PortionWalk) {
    for (at, fate) in walk.fates.iter().enumerate() {
        let lane = lane_of(&walk.portion.batch.increments[at].subject);
        let is_reached = walk.has_joined && walk.reached.in_lane(lane) >= walk.portion.positions[at];
        assert_eq!(matches!(fate, Fate::Waits(_)), !is_reached, "item {at}: {fate:?}");
    }
}

/// A log of some items of few subjects, so that lanes have several, at positions with gaps.
fn log() -> impl Strategy<Value = Log> {
    proptest::collection::vec((1..4_u128, 0..6_u8), 0..60).prop_map(|steps| {
        let mut position = 0;
        let item = |(gap, subject)| {
            position += gap;
            (position, subject)
        };
        steps.into_iter().map(item).collect()
    })
}

proptest! {
    /// Whatever senders do at the same time, however their portions overlap, and whatever the board loses, each item is
    /// counted once, as far as the board has reached.
    #[test]
    fn a_board_counts_what_it_has_reached_once(log in log(), events in events()) {
        let end = log.last().map_or(0, |(position, _)| *position);
        let mut model = Model::new(log.clone());
        let (mut earlier, mut senders) = (vec![model.clone()], Vec::new());
        for event in events {
            let place = model.reached.as_ref().map(|reached| reached.least().0);
            match event {
                Event::Begin(from, len, most) => {
                    let after = place.unwrap_or(0).saturating_add_signed(from.into());
                    senders.push((PortionWalk::new(portion(&log, after, after + len, after == 0)), most));
                }
                Event::Step(who, held) if !senders.is_empty() => {
                    let at = who % senders.len();
                    let (walk, most) = &mut senders[at];
                    let is_over = match (walk.next(*most), held) {
                        (None, _) => true,
                        (Some(step), Some(item)) if item < step.items.len() => {
                            walk.hold(&step, [(item, Rejection::MemoryFull)]);
                            false
                        }
                        (Some(step), _) => match model.step(walk, step) {
                            Ok(()) => false,
                            Err(StoreError::SourceBehind { at }) => {
                                prop_assert_eq!(at.map(|at| at.0), place);
                                prop_assert!(place.is_none_or(|place| place < walk.portion.after.0));
                                true
                            }
                            Err(error) => panic!("{error}"),
                        },
                    };
                    check_fates(walk);
                    if is_over {
                        senders.remove(at);
                    }
                    earlier.push(model.clone());
                }
                Event::Step(..) => {}
                Event::RollBack(back) => {
                    earlier.truncate((earlier.len() - 1).saturating_sub(back) + 1);
                    model = earlier[earlier.len() - 1].clone();
                }
            }
            model.check();
        }
        // Then a sender asks where to go on, and is not disturbed.
        let after = model.reached.as_ref().map_or(Position(0), Reached::least);
        model.send(portion(&log, after.0, end.max(after.0), true), 5).unwrap();
        model.check();
        prop_assert!(model.counted.iter().all(|counted| *counted == 1));
        prop_assert_eq!(model.reached.unwrap().least(), Position(end.max(after.0)));
    }
}

#[test]
fn the_result_says_what_became_of_each_item() {
    let log: Log = vec![(1, 0), (2, 1), (3, 0), (4, 1), (5, 0), (6, 1), (7, 1)];
    assert_ne!(lane_of(&subject(0)), lane_of(&subject(1)));
    let mut model = Model::new(log.clone());
    let passed = model.send(portion(&log, 0, 2, true), 10).unwrap();
    assert_eq!((passed.fates, passed.reached), (vec![Fate::Done(COUNTED); 2], Reached::evenly(Position(2))));
    // The same again, and more.
    let mut walk = PortionWalk::new(portion(&log, 0, 9, true));
    walk.meet(model.reached.clone()).unwrap();
    let step = walk.next(10).unwrap();
    assert_eq!(step.items, [2, 3, 4, 5, 6]);
    walk.hold(&step, [(3, Rejection::TooEarly)]);
    walk.hold(&step, [(1, Rejection::MemoryFull)]);
    walk.hold(&step, [(4, Rejection::TooEarly)]);
    let step = walk.next(10).unwrap();
    assert_eq!(step.items, [2, 4]);
    model.step(&mut walk, step).unwrap();
    assert!(walk.next(10).is_none());
    let passed = walk.finish(None).unwrap();
    let (done, waits) = (Fate::Done(COUNTED), Fate::Waits(None));
    let full = Fate::Waits(Some(Rejection::MemoryFull));
    assert_eq!(passed.fates, [Fate::Repeated, Fate::Repeated, done, full, done, waits, waits]);
    assert_eq!(passed.reached.least(), Position(3), "the place from which the source goes on");
    model.send(portion(&log, 3, 9, false), 1).unwrap();
    assert_eq!((model.counted.clone(), model.reached.clone()), (vec![1; 7], Some(Reached::evenly(Position(9)))));
}

#[test]
fn a_portion_without_items_moves_the_board_on() {
    let mut model = Model::new(Vec::new());
    model.send(portion(&[], 7, 7, true), 10).unwrap();
    assert_eq!(model.reached, Some(Reached::evenly(Position(7))), "it has joined there");
    let walk = |after, joins, reached| PortionWalk::new(portion(&[], after, 20, joins)).meet(reached);
    assert!(matches!(walk(8, true, model.reached.clone()), Err(StoreError::SourceBehind { at: Some(Position(7)) })));
    assert!(walk(5, false, model.reached.clone()).is_ok());
    assert!(matches!(walk(7, false, None), Err(StoreError::SourceBehind { at: None })));
    model.send(portion(&[], 7, 20, false), 10).unwrap();
    assert_eq!(model.reached, Some(Reached::evenly(Position(20))));
}

#[test]
fn positions_increase_within_a_portion() {
    let of = |range: (u128, u128), positions: &[u128]| {
        let items = positions.iter().map(|position| (Position(*position), increment(0)));
        Portion::new(SourceNumber(1), (Position(range.0), Position(range.1)), items).is_some()
    };
    assert!(of((1, 4), &[2, 4]) && of((3, 3), &[]));
    for (range, positions) in [((1, 4), vec![1, 2]), ((1, 4), vec![2, 5]), ((1, 4), vec![2, 2]), ((4, 1), vec![])] {
        assert!(!of(range, &positions), "{range:?} {positions:?}");
    }
}

#[test]
fn only_what_a_later_attempt_may_count_stops_a_lane() {
    let now = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ahead = |millis| Increment { at: Some(Timestamp::from_millis(now.millis() + millis)), ..increment(0) };
    let items = [3_600_000, 3_600_001].map(ahead).into_iter().zip(1..).map(|(item, at)| (Position(at), item));
    let early = Portion::new(SourceNumber(1), (Position(0), Position(2)), items).unwrap().joining();
    let stops = |item: usize, reason| stops_lane(&early.batch.increments[item], reason, now);
    assert!(stops(0, Rejection::TooEarly) && !stops(1, Rejection::TooEarly));
    for reason in [Rejection::MemoryFull, Rejection::TooManySubjects, Rejection::ImportOpen] {
        assert!(stops(1, reason), "{reason:?}");
    }
    for reason in [Rejection::TooLate, Rejection::OutOfRange, Rejection::SubjectFrozen, Rejection::WrongPeriod] {
        assert!(!stops(0, reason), "{reason:?}");
    }
}
