//! Tests of boards with two editions: each counts by itself what is written to both at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use rolltop::board::{Amount, Board, Change, Definition, EditionRole, EditionsChange, NotCounted, Timestamp, TrackId};
use rolltop::store::{Defined, DualRun, ImportBegun, ImportId, Increment, Outcome, Rejection, StoreError};

use crate::given::{Units, With, definition, exact, name, new_board, plus, sample, sample_of, subject, t};
use crate::site::{COUNTED, DUPLICATE, START, Site};

const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const REFUSED: Outcome = Outcome::Rejected(Rejection::OutOfRange);

pub const SUM: &str = "SUM(3h, sale, amount, seller)";
/// The same over a longer window.
pub const LONGER: &str = "SUM(6h, sale, amount, seller)";

/// Gives a board a second edition.
pub async fn attach(site: &Site, board: &Arc<Board>, definition: &Definition) -> Arc<Board> {
    let first = TrackId(rand::random_range(1..=u64::MAX - 100));
    let to = board.attached(definition.clone(), first).unwrap_or_else(|error| panic!("{error}"));
    site.store.change_editions(board, to).await.unwrap()
}

/// Exchanges the two editions of a board.
pub async fn exchange(site: &Site, board: &Arc<Board>) -> Arc<Board> {
    let until = site.store.now().await.unwrap().plus_millis(86_400_000);
    site.other.change_editions(board, board.exchanged(until).unwrap()).await.unwrap()
}

pub async fn detach(site: &Site, board: &Arc<Board>) -> Arc<Board> {
    site.store.change_editions(board, board.detached()).await.unwrap()
}

/// Returns a board with two editions.
pub async fn pair(site: &Site, current: &Definition, next: &Definition) -> Arc<Board> {
    let board = site.define("pair", current).await;
    attach(site, &board, next).await
}

/// Returns an item whose effect on the other edition is this one.
pub fn and(item: Increment, other: Change) -> Increment {
    Increment { other: Some(Box::new(other)), ..item }
}

/// Returns an item with the same effect on both editions.
pub fn twice(item: Increment) -> Increment {
    let change = item.change.clone();
    and(item, change)
}

pub fn amount(units: i64) -> Change {
    Change::Amount(Amount(units))
}

/// Returns the value of a subject in the main track of both editions, the current one first.
pub async fn values(site: &Site, board: &Arc<Board>, who: &str) -> [Option<i64>; 2] {
    let mut values = [None; 2];
    for (number, edition) in board.editions().iter().enumerate() {
        let track = board.each_track().nth(edition.numbers().start).unwrap();
        values[number] = site.value(&track, who).await.map(|value| value.units());
    }
    values
}

/// Returns the state of two editions in a form that can be compared.
pub async fn state(site: &Site, board: &Arc<Board>) -> (Timestamp, [BTreeMap<NotCounted, u64>; 2]) {
    let DualRun { since, not_counted, .. } = site.other.dual_run(board).await.unwrap();
    let counted = |reasons: Vec<(NotCounted, u64)>| reasons.into_iter().filter(|(_, items)| *items > 0).collect();
    (since, not_counted.map(counted))
}

pub async fn a_board_gets_exchanges_and_loses_a_second_edition(site: Site) {
    let (first, second) = (definition(SUM, "1h"), definition(LONGER, "1h"));
    let alone = site.define("pair", &first).await;
    site.count(&alone, vec![plus("a", 1), plus("b", 2)]).await;
    let unsupported = site.store.dual_run(&alone).await;
    assert!(matches!(unsupported, Err(StoreError::Unsupported { .. })), "{unsupported:?}");
    site.clock("2026-01-01T09:45:00Z").await;
    let with_next = attach(&site, &alone, &second).await;
    assert_eq!(EditionsChange::between(&alone, &with_next), Some(EditionsChange::Attach));
    assert_eq!(with_next.other().unwrap().role, EditionRole::Next);
    assert_eq!(with_next.partitions(), alone.partitions());
    assert_eq!((with_next.defined_at(), with_next.dedupe_horizon()), (alone.defined_at(), alone.dedupe_horizon()));
    assert_eq!(state(&site, &with_next).await, (t("2026-01-01T09:45:00Z"), [BTreeMap::new(), BTreeMap::new()]));
    site.count(&with_next, vec![twice(plus("a", 4))]).await;
    assert_eq!(values(&site, &with_next, "a").await, [Some(5), Some(4)], "a second edition begins empty");

    let exchanged = exchange(&site, &with_next).await;
    let other = exchanged.other().unwrap();
    assert_eq!((other.role, other.until), (EditionRole::Previous, Some(t("2026-01-02T09:45:00Z"))));
    for store in [&site.store, &site.other] {
        let found = store.board(exchanged.name()).await.unwrap().unwrap();
        assert_eq!(found.stored_editions(), exchanged.stored_editions());
        assert_eq!((found.epoch(), found.definition()), (exchanged.epoch(), &second));
        assert_eq!(store.boards().await.unwrap().boards[0].epoch(), exchanged.epoch());
    }
    assert_eq!(values(&site, &exchanged, "a").await, [Some(4), Some(5)]);
    assert_eq!(values(&site, &exchanged, "b").await, [Some(0), Some(2)]);
    site.count(&exchanged, vec![twice(plus("b", 8))]).await;
    assert_eq!(site.ranking(&exchanged).await, [(1, "b".to_owned(), 8), (2, "a".to_owned(), 4)]);
    let defined = site.store.define(new_board(exchanged.name(), &second)).await.unwrap();
    assert!(matches!(&defined, Defined::Unchanged(found) if found.epoch() == exchanged.epoch()), "{defined:?}");
    let defined = site.store.define(new_board(exchanged.name(), &first)).await.unwrap();
    assert!(matches!(&defined, Defined::Conflict(found) if found.epoch() == exchanged.epoch()), "{defined:?}");

    let back = exchange(&site, &exchanged).await;
    assert_eq!(values(&site, &back, "b").await, [Some(10), Some(8)]);
    let alone_again = detach(&site, &back).await;
    assert_eq!((alone_again.editions().len(), alone_again.epoch().0), (1, 4));
    assert_eq!(site.value(&alone_again, "b").await, exact(10));
    // What was removed does not come back.
    let other_next = attach(&site, &alone_again, &second).await;
    site.count(&other_next, vec![twice(plus("b", 16))]).await;
    assert_eq!(values(&site, &other_next, "b").await, [Some(26), Some(16)]);
    let other_current = exchange(&site, &other_next).await;
    let new_alone = detach(&site, &other_current).await;
    site.count(&new_alone, vec![plus("b", 32)]).await;
    assert_eq!(site.ranking(&new_alone).await, [(1, "b".to_owned(), 48)]);
    for track in new_alone.each_track() {
        site.audit(&track).await;
    }
}

pub async fn a_repeated_change_of_editions_is_harmless(site: Site) {
    let alone = site.define("pair", &definition(SUM, "1h")).await;
    let next = |first| alone.attached(definition(LONGER, "1h"), TrackId(first)).unwrap();
    let with_next = site.store.change_editions(&alone, next(77)).await.unwrap();
    site.count(&with_next, vec![twice(plus("a", 1))]).await;
    let again = site.other.change_editions(&alone, next(77)).await.unwrap();
    assert_eq!(again.stored_editions(), with_next.stored_editions());
    assert_eq!(values(&site, &again, "a").await, [Some(1), Some(1)], "it is not empty again");
    let another = site.store.change_editions(&alone, next(177)).await;
    assert!(matches!(another, Err(StoreError::StaleEpoch)), "{another:?}");
    let to = with_next.exchanged(t(START)).unwrap();
    let exchanged = site.store.change_editions(&with_next, to.clone()).await.unwrap();
    let again = site.store.change_editions(&with_next, to).await.unwrap();
    assert_eq!((again.epoch(), again.edition().id()), (exchanged.epoch(), exchanged.edition().id()));
    let detached = site.other.change_editions(&with_next, with_next.detached()).await;
    assert!(matches!(detached, Err(StoreError::StaleEpoch)), "{detached:?}");
    site.count(&again, vec![twice(plus("a", 2))]).await;
    assert_eq!(values(&site, &again, "a").await, [Some(3), Some(3)]);
    let alone_again = detach(&site, &again).await;
    assert_eq!(site.store.change_editions(&again, again.detached()).await.unwrap().epoch(), alone_again.epoch());
    assert!(site.store.undefine(&alone_again).await.unwrap());
    let gone =
        site.store.change_editions(&alone_again, alone_again.attached(definition(SUM, "1h"), TrackId(7)).unwrap());
    assert!(matches!(gone.await, Err(StoreError::BoardChanged)));
}

pub async fn items_of_one_edition_are_counted_by_reason(site: Site) {
    let board = pair(&site, &definition(SUM, "1h"), &definition(LONGER, "1h")).await;
    let not = |reason| Change::Not(reason);
    let only_next = |item: Increment, reason| Increment { change: not(reason), ..twice(item) };
    let items = vec![
        and(plus("a", 1).id("x"), not(NotCounted::Filtered)),
        and(plus("a", 2), not(NotCounted::Filtered)),
        and(plus("a", 4), not(NotCounted::NotAccepted)),
        only_next(plus("a", 8).id("y"), NotCounted::NotAccepted),
        // Too late for the current edition, and for both.
        twice(plus("a", 16).at("2026-01-01T06:59:59.999Z").id("z")),
        twice(plus("a", 32).at("2026-01-01T03:59:59.999Z").id("w")),
        and(plus("a", 64).at("2026-01-01T06:30:00Z"), not(NotCounted::Filtered)),
    ];
    assert_eq!(site.add(&board, items).await, [COUNTED, COUNTED, COUNTED, COUNTED, LATE, LATE, LATE]);
    assert_eq!(values(&site, &board, "a").await, [Some(7), Some(24)]);
    let first = BTreeMap::from([(NotCounted::NotAccepted, 1), (NotCounted::TooLate, 1)]);
    let second = BTreeMap::from([(NotCounted::Filtered, 2), (NotCounted::NotAccepted, 1)]);
    assert_eq!(state(&site, &board).await, (t(START), [first.clone(), second.clone()]));
    // The id of an item that any of them counted is remembered, in both.
    let again = ["x", "y", "z", "w"].map(|id| twice(plus("a", 100).id(id)));
    assert_eq!(site.add(&board, again.to_vec()).await, [DUPLICATE, DUPLICATE, DUPLICATE, COUNTED]);
    assert_eq!(values(&site, &board, "a").await, [Some(107), Some(124)]);
    // The numbers belong to the editions, also after an exchange.
    let board = exchange(&site, &board).await;
    assert_eq!(state(&site, &board).await, (t(START), [second, first]));
    let again = ["x", "y", "z"].map(|id| twice(plus("a", 100).id(id)));
    assert_eq!(site.add(&board, again.to_vec()).await, [DUPLICATE; 3]);
    // Nothing is left of them in a new pair.
    let board = attach(&site, &detach(&site, &board).await, &definition(SUM, "1h")).await;
    assert_eq!(state(&site, &board).await, (t(START), [BTreeMap::new(), BTreeMap::new()]));
}

pub async fn retractions_count_in_each_edition_that_has_their_slot(site: Site) {
    let board = pair(&site, &definition(SUM, "1h"), &definition("AVG(6h, sale, amount, seller)", "1h")).await;
    let at = |time: &str| twice(plus("a", 6).at(time));
    site.count(&board, vec![at("2026-01-01T08:00:00Z"), at("2026-01-01T09:00:00Z").id("x")]).await;
    assert_eq!(site.add(&board, vec![at("2026-01-01T05:00:00Z")]).await, [LATE]);
    let means = |board: &Arc<Board>| board.each_track().nth(1).unwrap();
    assert_eq!(site.means(&means(&board)).await, [(1, "a".to_owned(), 6.0)]);
    let items = vec![
        at("2026-01-01T08:00:00Z").undone().id("u"),
        at("2026-01-01T05:00:00Z").undone().id("v"),
        at("2026-01-01T02:00:00Z").undone().id("w"),
    ];
    assert_eq!(site.add(&board, items.clone()).await, [COUNTED; 3]);
    assert_eq!(site.add(&board, items).await, [DUPLICATE, DUPLICATE, COUNTED]);
    assert_eq!(site.value(&board, "a").await, exact(6));
    assert_eq!(site.value(&means(&board), "a").await.map(|mean| mean.as_f64()), Some(6.0));
    let slots = site.slots(&means(&board), "a").await;
    assert_eq!(slots.len(), 1, "{slots:?}");
    for track in board.each_track() {
        site.audit(&track).await;
    }
}

pub async fn a_sum_refused_by_one_edition_is_tried_one_by_one_in_both(site: Site) {
    let fine = definition("SUM(2000s, sale, amount, seller)", "1s");
    for (nth, (current, next)) in
        [(definition(SUM, "1h"), fine.clone()), (fine, definition(SUM, "1h"))].iter().enumerate()
    {
        let alone = site.define(&format!("pair{nth}"), current).await;
        let board = attach(&site, &alone, next).await;
        let bound = board.tracks().iter().map(|track| track.slot_bound().0).min().unwrap();
        let add = |units| twice(plus("a", units));
        let outcomes = site.add(&board, vec![add(bound - 1), twice(plus("b", 2)), add(5), add(1), add(-4)]).await;
        let (narrow, wide) = (Some(bound - 4), Some(bound + 1));
        if nth == 0 {
            assert_eq!(outcomes, [COUNTED; 5]);
            assert_eq!(values(&site, &board, "a").await, [wide, narrow]);
        } else {
            assert_eq!(outcomes, [COUNTED, COUNTED, REFUSED, COUNTED, COUNTED]);
            assert_eq!(values(&site, &board, "a").await, [narrow, wide]);
        }
        let refused = BTreeMap::from([(NotCounted::OutOfRange, 1)]);
        let (_, missed) = state(&site, &board).await;
        assert_eq!(missed, if nth == 0 { [BTreeMap::new(), refused] } else { [refused, BTreeMap::new()] });
        // Refused by the one, counted by the other, so its id is remembered; refused by both, it is not.
        let far = board.tracks().iter().map(|track| track.slot_bound().0).max().unwrap();
        let outcome = site.add(&board, vec![add(5).id("x")]).await[0];
        assert_eq!(outcome, if nth == 0 { COUNTED } else { REFUSED });
        assert_eq!(site.add(&board, vec![add(5).id("x"), add(far).id("y")]).await, [DUPLICATE, REFUSED]);
        assert_eq!(site.add(&board, vec![add(-3).id("y")]).await, [COUNTED]);
        for track in board.each_track() {
            site.audit(&track).await;
        }
    }
}

pub async fn amounts_are_summed_in_each_edition_that_takes_them(site: Site) {
    for (next, is_alike) in [("COUNT(6h, sale, seller)", false), (LONGER, true)] {
        let alone = site.define(if is_alike { "alike" } else { "different" }, &definition(SUM, "1h")).await;
        let board = attach(&site, &alone, &definition(next, "2h")).await;
        sum_amounts(&site, &board, is_alike).await;
    }
}

async fn sum_amounts(site: &Site, board: &Arc<Board>, is_alike: bool) {
    let mut items = Vec::new();
    for nth in 0..300 {
        let item = and(plus(&format!("s{}", nth % 3), nth), amount(if is_alike { nth } else { 1 }));
        items.push(match nth % 10 {
            0 => Increment { other: Some(Box::new(Change::Not(NotCounted::Filtered))), ..item },
            1 => Increment { change: Change::Not(NotCounted::NotAccepted), ..item },
            2 => item.id(&format!("id{nth}")),
            3 => item.at("2026-01-01T08:10:00Z").undone(),
            _ => item,
        });
    }
    let mut expected = [[0; 2]; 3];
    for item in &items {
        for (number, expected) in
            expected[usize::from(item.subject.as_str().as_bytes()[1] - b'0')].iter_mut().enumerate()
        {
            if let Change::Amount(amount) = item.change_in(number) {
                *expected += item.signed(*amount).0;
            }
        }
    }
    site.count(board, items.clone()).await;
    // Items that only one edition takes are duplicates for both, too.
    let filtered = items.into_iter().step_by(10).map(|item| item.id("once"));
    let filtered: Vec<Increment> = filtered.filter(|item| item.subject == subject("s1")).take(2).collect();
    let Change::Amount(Amount(more)) = filtered[0].change else { panic!("the current edition takes it") };
    expected[1][0] += more;
    assert_eq!(site.add(board, filtered).await, [COUNTED, DUPLICATE]);
    for (nth, expected) in expected.into_iter().enumerate() {
        assert_eq!(values(site, board, &format!("s{nth}")).await, expected.map(Some));
    }
    let (_, missed) = state(site, board).await;
    let times = |reason, items| BTreeMap::from([(reason, items)]);
    assert_eq!(missed, [times(NotCounted::NotAccepted, 30), times(NotCounted::Filtered, 31)]);
    for track in board.each_track() {
        site.audit(&track).await;
    }
}

pub async fn a_sample_replaces_in_each_edition_that_takes_it(site: Site) {
    let eight = "2026-01-01T08:00:00Z";
    let board = pair(&site, &definition(SUM, "1h"), &definition(LONGER, "1h")).await;
    site.count(&board, vec![twice(plus("a", 3).at(eight)), twice(plus("a", 4))]).await;
    site.count(&board, vec![twice(sample("a", 10, eight)), twice(sample("b", 5, eight).id("x"))]).await;
    assert_eq!(values(&site, &board, "a").await, [Some(14); 2]);
    assert_eq!(site.add(&board, vec![twice(sample("b", 6, eight).id("x"))]).await, [DUPLICATE]);
    let not = Change::Not(NotCounted::NotAccepted);
    site.count(&board, vec![and(sample("a", 20, eight), not.clone()), twice(plus("a", 1).at(eight))]).await;
    assert_eq!(values(&site, &board, "a").await, [Some(25), Some(15)]);
    let late = twice(sample("b", 7, "2026-01-01T05:00:00Z"));
    assert_eq!(site.add(&board, vec![late]).await, [LATE]);
    assert_eq!(values(&site, &board, "b").await, [Some(5), Some(12)]);
    let (_, missed) = state(&site, &board).await;
    let once = |reason| BTreeMap::from([(reason, 1)]);
    assert_eq!(missed, [once(NotCounted::TooLate), once(NotCounted::NotAccepted)]);
    for track in board.each_track() {
        site.audit(&track).await;
    }
    // A mean has numbers of its own.
    let mean = "AVG(3h, sale, amount, seller)";
    let alone = site.define("means", &definition(mean, "1h")).await;
    let board = attach(&site, &alone, &Definition { min_samples: 5, ..definition(mean, "1h") }).await;
    site.count(&board, vec![twice(sample_of("a", 40, 4, eight))]).await;
    let ranked = [site.ranking_size(&board).await, site.ranking_size(&board.each_track().nth(1).unwrap()).await];
    assert_eq!(ranked, [1, 0]);
}

pub async fn a_subject_is_removed_from_both_editions(site: Site) {
    let next = Definition { windows: vec!["all".parse().unwrap()], ..definition(LONGER, "1h") };
    let board = pair(&site, &definition(SUM, "1h"), &next).await;
    site.count(&board, vec![twice(plus("a", 2)), twice(plus("a", 4).at("2026-01-01T08:00:00Z")), twice(plus("b", 3))])
        .await;
    assert_eq!(site.add(&board, vec![twice(plus("a", 8).at("2026-01-01T05:00:00Z"))]).await, [LATE]);
    let removal = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (exact(6), 2), "of the current edition");
    for track in board.each_track() {
        assert_eq!((site.value(&track, "a").await, site.value(&track, "b").await), (exact(0), exact(3)));
        site.audit(&track).await;
    }
    site.count(&board, vec![twice(plus("a", 1))]).await;
    let removal = site.other.remove(&exchange(&site, &board).await, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (exact(1), 1));
}

pub async fn imports_and_changes_of_editions_exclude_each_other(site: Site) {
    let alone = site.define("pair", &definition(SUM, "1h")).await;
    let begun = site.store.begin_import(&alone, ImportId(7)).await.unwrap();
    assert_eq!(begun, ImportBegun::Open { through: vec![0] });
    let to = alone.attached(definition(LONGER, "1h"), TrackId(7)).unwrap();
    let attached = site.other.change_editions(&alone, to.clone()).await;
    assert!(matches!(attached, Err(StoreError::ImportOpen)), "{attached:?}");
    site.count(&alone, vec![plus("a", 1)]).await;
    assert!(site.store.end_import(&alone, ImportId(7)).await.unwrap());
    let board = site.other.change_editions(&alone, to).await.unwrap();
    let begun = site.store.begin_import(&board, ImportId(8 << 32)).await;
    assert!(matches!(begun, Err(StoreError::NoImport { .. })), "{begun:?}");
    site.count(&board, vec![twice(plus("a", 2))]).await;
    let alone = detach(&site, &board).await;
    let begun = site.store.begin_import(&alone, ImportId(8 << 32)).await.unwrap();
    assert_eq!(begun, ImportBegun::Open { through: vec![0] });
    assert_eq!(site.value(&alone, "a").await, exact(3));
}

pub async fn a_removed_board_leaves_nothing_of_both_editions(site: Site) {
    let board = pair(&site, &definition(SUM, "1h"), &definition(LONGER, "1h")).await;
    site.count(&board, vec![twice(plus("a", 1).id("x"))]).await;
    assert!(site.other.undefine(&board).await.unwrap());
    assert!(site.store.board(&name("pair")).await.unwrap().is_none());
    for track in board.each_track() {
        let page = site.store.page(&track, 0, 1).await;
        assert!(matches!(page, Err(StoreError::BoardChanged)), "{page:?}");
    }
    let run = site.store.dual_run(&board).await;
    assert!(matches!(run, Err(StoreError::BoardChanged)), "{run:?}");
    let board = pair(&site, &definition(SUM, "1h"), &definition(LONGER, "1h")).await;
    assert_eq!(values(&site, &board, "a").await, [Some(0); 2]);
    site.count(&board, vec![twice(plus("a", 1).id("x"))]).await;
    assert_eq!(values(&site, &board, "a").await, [Some(1); 2]);
}

pub async fn editions_survive_a_restart(site: Site) {
    let board = pair(&site, &definition(SUM, "1h"), &definition(LONGER, "1h")).await;
    let not = Change::Not(NotCounted::Filtered);
    site.count(&board, vec![twice(plus("a", 1).id("x")), and(plus("a", 2), not), twice(plus("b", 5))]).await;
    site.clock("2026-01-01T09:40:00Z").await;
    let board = exchange(&site, &board).await;
    site.count(&board, vec![Increment { other: None, ..plus("c", 3) }]).await;
    let expected = state(&site, &board).await;
    assert_eq!(expected.0, t("2026-01-01T09:40:00Z"));
    let site = site.reopened().await;
    assert_eq!(state(&site, &board).await, expected);
    let found = site.store.board(board.name()).await.unwrap().unwrap();
    assert_eq!((found.epoch(), found.stored_editions()), (board.epoch(), board.stored_editions()));
    assert_eq!(site.add(&found, vec![twice(plus("a", 9).id("x")), twice(plus("a", 4))]).await, [DUPLICATE, COUNTED]);
    assert_eq!(values(&site, &found, "a").await, [Some(5), Some(7)]);
    assert_eq!(values(&site, &found, "c").await, [Some(3), Some(0)]);
    let alone = detach(&site, &found).await;
    let site = site.reopened().await;
    let found = site.store.board(board.name()).await.unwrap().unwrap();
    assert_eq!((found.epoch(), found.editions().len()), (alone.epoch(), 1));
    assert_eq!(site.ranking(&found).await.len(), 3);
    site.clock("2026-01-01T15:00:00Z").await;
    assert_eq!(site.ranking(&found).await, []);
    site.audit(&found).await;
}

/// A board that takes no samples has none, and so has a successor of it that takes them.
pub async fn a_successor_of_a_board_without_samples_takes_imports_after_a_restart(site: Site) {
    let distinct = definition("COUNT_DISTINCT(3h, sale, seller, user)", "1h");
    let board = site.define("people", &distinct).await;
    let site = site.reopened().await;
    let board = attach(&site, &board, &definition("AVG(3h, sale, amount, seller)", "1h")).await;
    let board = exchange(&site, &board).await;
    let board = detach(&site, &board).await;
    let begun = site.store.begin_import(&board, ImportId(7)).await.unwrap();
    assert_eq!(begun, ImportBegun::Open { through: vec![0] });
}
