//! Tests of portions of sources: each item is counted once, as far as the board has reached.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::board::{Board, Position, SourceNumber};
use rolltop::store::{
    Fate, ImportBegun, ImportId, Increment, Outcome, Passed, Portion, Reached, Rejection, Result, SlotRange, Store,
    StoreError,
};

use super::editions::{LONGER, SUM, attach, twice, values};
use crate::given::{With, definition, name, new_board, plus, sample, seen, subject, t};
use crate::site::{COUNTED, DUPLICATE, Site};

const SOURCE: SourceNumber = SourceNumber(3);
const DONE: Fate = Fate::Done(COUNTED);

/// Returns a portion of a log: the items with a position in the range.
fn portion(log: &[(u128, Increment)], after: u128, through: u128) -> Portion {
    portion_of(SOURCE, log, after, through)
}

/// Returns a portion of the log of a source. Its first one may join.
fn portion_of(source: SourceNumber, log: &[(u128, Increment)], after: u128, through: u128) -> Portion {
    let items = log.iter().filter(|(position, _)| after < *position && *position <= through);
    let items = items.map(|(position, item)| (Position(*position), item.clone()));
    let portion = Portion::new(source, (Position(after), Position(through)), items).expect("a portion");
    if after == 0 { portion.joining() } else { portion }
}

async fn pass(store: &dyn Store, board: &Arc<Board>, portion: Portion) -> Result<Passed> {
    let mut passed = store.pass(vec![(board.clone(), portion)]).await;
    assert_eq!(passed.len(), 1);
    passed.remove(0)
}

/// Sends a portion that must be done as a whole.
async fn pass_all(site: &Site, board: &Arc<Board>, log: &[(u128, Increment)], (after, through): (u128, u128)) {
    let passed = pass(&*site.store, board, portion(log, after, through)).await.unwrap();
    assert!(passed.failure.is_none() && !passed.fates.iter().any(|fate| matches!(fate, Fate::Waits(_))), "{passed:?}");
    assert!(passed.reached.least() >= Position(through));
}

/// Returns where the board goes on.
async fn place(site: &Site, board: &Arc<Board>) -> Option<u128> {
    site.other.reached(board, SOURCE).await.unwrap().map(|reached| reached.least().0)
}

/// Numbers items from 1.
fn numbered(items: Vec<Increment>) -> Vec<(u128, Increment)> {
    (1..).zip(items).collect()
}

/// Sends a log from wherever the board is until it has reached the end, in portions of drawn sizes. Some are sent twice,
/// some from an earlier place, and some are of what others have sent meanwhile.
async fn send(store: Arc<dyn Store>, board: Arc<Board>, log: Arc<Vec<(u128, Increment)>>, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let end = log.last().map_or(0, |(position, _)| *position);
    let mut at = 0;
    while at < end {
        let after = at - random.random_range(0..=at.min(50));
        let sent = portion(&log, after, (after + random.random_range(1..700)).min(end));
        for _ in 0..random.random_range(1..3) {
            match pass(&*store, &board, sent.clone()).await {
                Ok(passed) => {
                    let Passed { fates, reached, failure, .. } = passed;
                    assert!(failure.is_none() && reached.least() >= sent.through(), "{reached:?} {failure:?}");
                    assert!(fates.iter().all(|fate| *fate == DONE || *fate == Fate::Repeated), "{fates:?}");
                    at = reached.least().0;
                }
                Err(StoreError::SourceBehind { at: found }) => at = found.map_or(0, |found| found.0),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

pub async fn portions_of_several_senders_count_each_item_once(site: Site) {
    let seed = crate::drawn::seed();
    let mut random = StdRng::seed_from_u64(seed);
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let (mut log, mut expected, mut position) = (Vec::new(), BTreeMap::new(), 0);
    for _ in 0..3_000 {
        let (who, amount) = (format!("s{}", random.random_range(0..200)), random.random_range(1..100));
        position += random.random_range(1..4);
        log.push((position, plus(&who, amount)));
        *expected.entry(who).or_default() += amount;
    }
    let log = Arc::new(log);
    let senders: Vec<_> = [&site.store, &site.other, &site.store, &site.other]
        .into_iter()
        .zip(seed..)
        .map(|(store, seed)| tokio::spawn(send(store.clone(), board.clone(), log.clone(), seed)))
        .collect();
    for sender in senders {
        sender.await.unwrap();
    }
    let found: BTreeMap<_, _> = site.ranking(&board).await.into_iter().map(|(_, who, score)| (who, score)).collect();
    assert_eq!(found, expected, "seed {seed}");
    let events = site.store.status(&board.main()).await.unwrap().events;
    assert_eq!(events.iter().map(|(_, items)| items).sum::<u64>(), 3_000);
    let reached = site.other.reached(&board, SOURCE).await.unwrap();
    assert_eq!(reached, Some(Reached::evenly(Position(position))), "all lanes are equal between portions");
    site.audit(&board).await;
}

pub async fn what_is_refused_for_good_is_passed(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    site.count(&board, vec![plus("d", 1).id("x")]).await;
    let log = numbered(vec![
        plus("a", 1),
        plus("a", 2).at("2026-01-01T01:00:00Z"),
        plus("a", i64::MAX),
        plus("a", 4).at("2026-01-01T11:30:00Z"),
        plus("d", 1).id("x"),
    ]);
    let passed = pass(&*site.store, &board, portion(&log, 0, 9)).await.unwrap();
    let refused = |reason| Fate::Done(Outcome::Rejected(reason));
    let late = refused(Rejection::TooLate);
    let beyond = refused(Rejection::OutOfRange);
    let early = refused(Rejection::TooEarly);
    assert_eq!(passed.fates, [DONE, late, beyond, early, Fate::Done(DUPLICATE)]);
    assert_eq!((passed.reached, place(&site, &board).await), (Reached::evenly(Position(9)), Some(9)));
    let passed = pass(&*site.store, &board, portion(&log, 2, 9)).await.unwrap();
    assert_eq!(passed.fates, [Fate::Repeated; 3]);
    assert_eq!(site.ranking(&board).await, [(1, "d".into(), 1), (1, "a".into(), 1)]);
}

pub async fn a_portion_that_would_leave_a_hole_changes_nothing(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let log = numbered(vec![plus("a", 1); 6]);
    let behind = async |after, through| match pass(&*site.store, &board, portion(&log, after, through)).await {
        Err(StoreError::SourceBehind { at }) => at,
        other => panic!("{other:?}"),
    };
    assert_eq!(behind(3, 6).await, None, "it has not joined, and does not join there");
    assert_eq!(place(&site, &board).await, None);
    pass_all(&site, &board, &log, (0, 2)).await;
    assert_eq!(behind(3, 6).await, Some(Position(2)));
    pass_all(&site, &board, &log, (2, 6)).await;
    assert_eq!(site.ranking(&board).await, [(1, "a".into(), 6)]);
    // Other sources of the board have places of their own, and a portion may have no items.
    let other = portion_of(SourceNumber(4), &log, 70, 80).joining();
    pass(&*site.store, &board, other).await.unwrap();
    let reached = site.store.reached(&board, SourceNumber(4)).await.unwrap();
    assert_eq!((reached, place(&site, &board).await), (Some(Reached::evenly(Position(80))), Some(6)));
}

pub async fn an_item_that_may_count_later_stops_its_lane(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    // Their lanes differ, also with the key that all subjects may have.
    let near = "2026-01-01T09:40:00Z";
    let log = numbered(vec![
        plus("a", 1),
        plus("d", 10),
        plus("a", 2).at(near),
        plus("d", 20),
        plus("a", 4),
        plus("d", 40).at("2026-01-01T10:31:00Z"),
        plus("d", 80),
    ]);
    let passed = pass(&*site.store, &board, portion(&log, 0, 7)).await.unwrap();
    let early = Rejection::TooEarly;
    let (passed_over, stopped) = (Fate::Done(Outcome::Rejected(early)), Fate::Waits(Some(early)));
    assert_eq!(passed.fates, [DONE, DONE, stopped, DONE, Fate::Waits(None), passed_over, DONE]);
    assert_eq!(place(&site, &board).await, Some(2), "the items up to there are done");
    let ranking = [(1, "d".to_owned(), 110), (2, "a".to_owned(), 1)];
    assert_eq!(site.ranking(&board).await, ranking);
    site.clock(near).await;
    let passed = pass(&*site.other, &board, portion(&log, 2, 7)).await.unwrap();
    assert_eq!(passed.fates, [DONE, Fate::Repeated, DONE, Fate::Repeated, Fate::Repeated]);
    assert_eq!(site.ranking(&board).await, [(1, "d".into(), 110), (2, "a".into(), 7)]);
    assert_eq!(place(&site, &board).await, Some(7));
}

pub async fn samples_wait_for_the_end_of_an_import(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let import = ImportId(9);
    assert!(matches!(site.store.begin_import(&board, import).await.unwrap(), ImportBegun::Open { .. }));
    let log = numbered(vec![plus("a", 1), sample("b", 5, "2026-01-01T09:00:00Z"), plus("b", 1), plus("c", 1)]);
    let passed = pass(&*site.store, &board, portion(&log, 0, 4)).await.unwrap();
    let waits = [Fate::Waits(Some(Rejection::ImportOpen)), Fate::Waits(None)];
    assert_eq!(passed.fates, [DONE, waits[0], waits[1], DONE]);
    assert!(site.store.end_import(&board, import).await.unwrap());
    pass_all(&site, &board, &log, (1, 4)).await;
    let ranking = [(1, "b".to_owned(), 6), (2, "c".to_owned(), 1), (2, "a".to_owned(), 1)];
    assert_eq!(site.ranking(&board).await, ranking);
}

pub async fn what_is_reached_survives_a_restart_and_ends_with_the_board(site: Site) {
    let metric = definition("COUNT(3h, like, post)", "1h");
    let board = site.define("board", &metric).await;
    let log = numbered((0..40).map(|nth| plus(&format!("s{nth}"), 1).at("2026-01-01T09:31:00Z")).collect());
    pass(&*site.store, &board, portion(&log, 0, 20)).await.unwrap();
    let reached = site.store.reached(&board, SOURCE).await.unwrap();
    assert_eq!(place(&site, &board).await, Some(0), "each of them is ahead of the clock");
    let site = site.reopened().await;
    assert_eq!(site.store.reached(&board, SOURCE).await.unwrap(), reached);
    site.clock("2026-01-01T09:31:00Z").await;
    pass_all(&site, &board, &log, (0, 30)).await;
    let site = site.reopened().await;
    assert_eq!(place(&site, &board).await, Some(30));
    pass_all(&site, &board, &log, (10, 40)).await;
    assert_eq!(site.ranking(&board).await.len(), 40);
    assert!(site.ranking(&board).await.iter().all(|(_, _, score)| *score == 1));
    // A board that is defined again has reached nothing.
    assert!(site.store.undefine(&board).await.unwrap());
    let gone = pass(&*site.store, &board, portion(&log, 40, 41)).await;
    assert!(matches!(gone, Err(StoreError::BoardChanged)), "{gone:?}");
    site.store.define(new_board(&name("board"), &metric)).await.unwrap();
    let board = site.store.board(&name("board")).await.unwrap().unwrap();
    assert_eq!(place(&site, &board).await, None);
}

pub async fn a_portion_counts_in_both_editions_and_not_in_earlier_ones(site: Site) {
    let alone = site.define("pair", &definition(SUM, "1h")).await;
    let log = numbered(vec![plus("a", 1), plus("a", 2), plus("a", 4)]);
    pass_all(&site, &alone, &log, (0, 1)).await;
    let board = attach(&site, &alone, &definition(LONGER, "1h")).await;
    let stale = pass(&*site.store, &alone, portion(&log, 1, 2)).await;
    assert!(matches!(stale, Err(StoreError::StaleEpoch)), "{stale:?}");
    // The caller looks the board up again, and says what the items are in both editions.
    let log: Vec<_> = log.into_iter().map(|(position, item)| (position, twice(item))).collect();
    pass_all(&site, &board, &log, (0, 3)).await;
    assert_eq!(values(&site, &board, "a").await, [Some(7), Some(6)], "what it has reached, it has for both");
}

pub async fn a_portion_of_any_metric_counts_what_a_batch_counts(site: Site) {
    let metrics = [
        "COUNT(3h, like, post)",
        "SUM(3h, sale, amount, seller)",
        "AVG(3h, sale, amount, seller)",
        "MIN(3h, sale, amount, seller)",
        "LAST(3h, sale, amount, seller)",
        "COUNT_DISTINCT(3h, login, device, user)",
        "APPROX_COUNT_DISTINCT(3h, login, device, user)",
    ];
    for (nth, metric) in metrics.into_iter().enumerate() {
        let item = |at: usize| {
            let who = format!("s{}", at % 37);
            let time = format!("2026-01-01T0{}:{:02}:00Z", 7 + at % 2, at % 60);
            match metric.contains("DISTINCT") {
                true => seen(&who, &format!("v{}", at % 11)).at(&time),
                false => plus(&who, (at % 23) as i64 + 1).at(&time),
            }
        };
        let log = numbered((0..700).map(item).collect());
        let [passed, added] = [format!("passed{nth}"), format!("added{nth}")];
        let passed = site.define(&passed, &definition(metric, "1h")).await;
        let added = site.define(&added, &definition(metric, "1h")).await;
        for start in (0..700).step_by(350) {
            pass_all(&site, &passed, &log, (start, start + 350)).await;
        }
        site.count(&added, log.into_iter().map(|(_, item)| item).collect()).await;
        for who in (0..37).map(|nth| subject(&format!("s{nth}"))) {
            let mut read = Vec::new();
            for board in [&passed, &added] {
                let count = site.other.count(&board.main(), &who, SlotRange::Slots(3)).await.unwrap();
                read.push((count.aggregates, count.capped));
            }
            assert_eq!(read[0], read[1], "{metric} {who}");
        }
        site.audit(&passed).await;
    }
    assert_eq!(site.store.now().await.unwrap(), t(crate::site::START));
}
