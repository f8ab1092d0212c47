//! Tests of what is refused when memory is scarce or full, on boards of every kind.

use proptest::prelude::*;

use super::contents::{Content, live_contents};
use super::*;
use crate::store::Rejection;
use crate::store::embedded::memory::Level;

const REFUSED: Outcome = Outcome::Rejected(Rejection::MemoryFull);

fn every_board() -> impl Iterator<Item = Board> {
    every_definition().into_iter().chain(definitions_with_several_windows()).map(alone)
}

/// Applies a batch with this much room. Returns the outcomes and the bytes of the operations.
fn write(board: &Board, state: &mut BoardState, room: Room, increments: Vec<Increment>) -> (Vec<Outcome>, usize) {
    let batch = Batch { increments, return_scores: false };
    let mut operations = LogOperations::of(board.edition().main().id());
    let nothing = operations.len();
    let (windows, now) = (state.windows(), state.now());
    let mut application = BatchApplication::new(
        (board, 0),
        &batch,
        Undone::all(batch.increments.len()),
        (&windows, now),
        0,
        FingerprintKey(1, 2),
    );
    while !application.apply_portion(state, room, &mut operations) {}
    (application.finish(state.frame()).outcomes, operations.len() - nothing)
}

fn at(level: Level) -> Room {
    Room { level, ..Room::UNLIMITED }
}

fn contents(state: &BoardState) -> Vec<Vec<Content>> {
    state.tracks.iter().map(live_contents).collect()
}

fn is_counted(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. }))
}

#[test]
fn new_subjects_are_refused_first_and_nothing_of_them_is_kept() {
    for board in every_board() {
        let what = format!("{}, ranked {}", board.definition().metric, board.definition().ranked);
        let mut state = BoardState::new(board.clone().into(), START);
        let item = |subject, id| Increment { change: change(&board, 1), ..increment(subject, 1, None, id) };
        assert!(is_counted(&write(&board, &mut state, Room::UNLIMITED, vec![item(1, Some(1)), item(1, None)]).0));
        let before = (contents(&state), state.memory_bytes());
        for level in [Level::Scarce, Level::Full] {
            for id in [None, Some(2)] {
                let (outcomes, logged) = write(&board, &mut state, at(level), vec![item(2, id), item(3, None)]);
                assert_eq!((outcomes, logged), (vec![REFUSED; 2], 0), "{what}");
            }
            assert_eq!((contents(&state), state.memory_bytes()), before, "{what}");
        }
        // A known id is a duplicate, and not refused.
        let (outcomes, _) = write(&board, &mut state, at(Level::Full), vec![item(1, Some(1))]);
        assert_eq!(outcomes, [Outcome::Duplicate { score: None }], "{what}");
        // What was refused counts as soon as there is room, with the same id.
        assert!(is_counted(&write(&board, &mut state, Room::UNLIMITED, vec![item(2, Some(2))]).0), "{what}");
    }
}

#[test]
fn existing_subjects_count_until_memory_is_full() {
    for board in every_board() {
        let what = format!("{}, ranked {}", board.definition().metric, board.definition().ranked);
        let mut state = BoardState::new(board.clone().into(), START);
        let item = |id| Increment { change: change(&board, 1), ..increment(1, 1, None, id) };
        let twice = vec![item(None), item(None)];
        assert!(is_counted(&write(&board, &mut state, Room::UNLIMITED, twice.clone()).0));
        for level in [Level::Scarce, Level::Full] {
            assert!(is_counted(&write(&board, &mut state, at(level), twice.clone()).0), "{what}");
        }
        // An id takes memory.
        assert!(is_counted(&write(&board, &mut state, at(Level::Scarce), vec![item(Some(1))]).0), "{what}");
        assert_eq!(write(&board, &mut state, at(Level::Full), vec![item(Some(2))]).0, [REFUSED], "{what}");
        if board.edition().main().is_from_first() {
            continue;
        }
        // So does a further slot.
        state.advance(START.plus_millis(HOUR));
        assert_eq!(write(&board, &mut state, at(Level::Full), vec![item(None)]).0, [REFUSED], "{what}");
        assert!(is_counted(&write(&board, &mut state, at(Level::Scarce), twice.clone()).0), "{what}");
        assert!(is_counted(&write(&board, &mut state, at(Level::Full), vec![item(None)]).0), "{what}");
    }
}

#[test]
fn new_values_are_refused_like_new_subjects() {
    let board = alone(hours("COUNT_DISTINCT(3h, login, device, user)"));
    let mut state = BoardState::new(board.clone().into(), START);
    let seen = |value, retract| Increment {
        change: change(&board, value),
        retract,
        at: Some(START),
        ..increment(1, 1, None, None)
    };
    assert!(is_counted(&write(&board, &mut state, Room::UNLIMITED, vec![seen(1, false)]).0));
    assert_eq!(write(&board, &mut state, at(Level::Scarce), vec![seen(2, false)]).0, [REFUSED]);
    // A tombstone takes as much as a value.
    assert_eq!(write(&board, &mut state, at(Level::Scarce), vec![seen(2, true)]).0, [REFUSED]);
    for level in [Level::Scarce, Level::Full] {
        assert!(is_counted(&write(&board, &mut state, at(level), vec![seen(1, false)]).0));
    }
    assert!(is_counted(&write(&board, &mut state, at(Level::Full), vec![seen(1, true)]).0));
}

#[test]
fn only_new_subjects_of_a_ranked_board_are_limited_in_number() {
    let room = Room { max_subjects: 2, ..Room::UNLIMITED };
    let crowded = Outcome::Rejected(Rejection::TooManySubjects);
    for board in every_board() {
        let what = format!("{}, ranked {}", board.definition().metric, board.definition().ranked);
        let mut state = BoardState::new(board.clone().into(), START);
        let item = |subject| Increment { change: change(&board, 1), ..increment(subject, 1, None, None) };
        let (outcomes, _) = write(&board, &mut state, room, vec![item(1), item(2), item(3), item(1), item(4)]);
        if board.definition().ranked {
            assert!(is_counted(&outcomes[..2]) && is_counted(&outcomes[3..4]), "{what}");
            assert_eq!((outcomes[2], outcomes[4]), (crowded, crowded), "{what}");
            for data in &mut state.tracks {
                assert!(data.holdings.remove("subject-1".into(), 0).any, "{what}");
            }
            assert!(is_counted(&write(&board, &mut state, room, vec![item(3)]).0), "{what}");
        } else {
            assert!(is_counted(&outcomes), "{what}");
        }
    }
}

/// Returns the memory of a board without that of the numbers of events, one for each slot in which anything was counted.
fn bytes_without_events(state: &BoardState) -> usize {
    state.memory_bytes() - state.tracks.iter().map(|data| data.events.memory_bytes()).sum::<usize>()
}

/// Tests what takes nothing but the number of events of its slot: a tombstone that is there already.
#[test]
fn a_tombstone_moves_to_another_slot_while_memory_is_full() {
    let board = alone(Definition { ranked: false, ..hours("COUNT_DISTINCT(3h, login, device, user)") });
    let mut state = BoardState::new(board.clone().into(), START.plus_millis(2 * HOUR));
    let retracted = |hours: i64| Increment {
        change: change(&board, 3),
        retract: true,
        ..increment(4, 1, Some(START.plus_millis(hours * HOUR)), None)
    };
    assert!(is_counted(&write(&board, &mut state, Room::UNLIMITED, vec![retracted(0)]).0));
    let before = bytes_without_events(&state);
    assert!(is_counted(&write(&board, &mut state, at(Level::Full), vec![retracted(1)]).0));
    assert_eq!(bytes_without_events(&state), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Whatever is counted while memory is full takes none but for the number of events of its slot, on boards of every
    /// kind.
    #[test]
    fn what_is_counted_while_memory_is_full_takes_none(
        which in any::<prop::sample::Index>(),
        items in prop::collection::vec((0u8..12, 1i64..9, 0i64..3, 0u8..6), 1..80),
        further in prop::collection::vec((0u8..14, 1i64..9, 0i64..3, 0u8..6), 1..80),
    ) {
        let boards: Vec<Board> = every_board().collect();
        let board = &boards[which.index(boards.len())];
        let mut state = BoardState::new(board.clone().into(), START.plus_millis(2 * HOUR));
        let item = |(subject, number, hours, kind): (u8, i64, i64, u8)| Increment { other: None,
            change: change(board, number),
            retract: kind == 0 && board.edition().takes_retractions(),
            ..increment(subject, 1, Some(START.plus_millis(hours * HOUR)), (kind == 1).then_some(subject))
        };
        for one in items {
            write(board, &mut state, Room::UNLIMITED, vec![item(one)]);
        }
        for one in further {
            let (before, held) = (bytes_without_events(&state), contents(&state));
            let (outcomes, _) = write(board, &mut state, at(Level::Full), vec![item(one)]);
            prop_assert!(bytes_without_events(&state) <= before);
            if outcomes == [REFUSED] {
                prop_assert_eq!(contents(&state), held);
            }
        }
    }
}
