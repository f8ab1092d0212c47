//! Tests of seasons: periods that begin again, take late items for a while, and stay in the archive.

use std::sync::Arc;

use rolltop::board::{Board, BoardTrack, Definition, EXACT_MAX, Kind, Period, PeriodName, Timestamp};
use rolltop::store::{Batch, ImportId, Increment, Outcome, Rejection, Result, Store, StoreError};

use super::keys::InKey as _;
use crate::given::{With as _, plus, seen, subject, t};
use crate::site::Site;

const COUNTED: Outcome = Outcome::Counted { score: None };
const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const WRONG: Outcome = Outcome::Rejected(Rejection::WrongPeriod);

fn season(metric: &str, season: &str) -> Definition {
    let season: serde_json::Value = serde_json::from_str(season).unwrap();
    serde_json::from_value(serde_json::json!({"metric": metric, "season": season})).unwrap()
}

/// Days with a grace of two hours.
fn days(metric: &str) -> Definition {
    season(metric, r#"{"every":"1d","grace":"2h","archive":2}"#)
}

/// Returns the board as it is now: what a caller does that is told that the editions have changed.
async fn present(store: &dyn Store, board: &Arc<Board>) -> Arc<Board> {
    let mut board = board.clone();
    while let Err(error) = store.status(&board.main()).await {
        assert!(matches!(error, StoreError::StaleEpoch), "{error:?}");
        board = store.board(board.name()).await.unwrap().unwrap();
    }
    board
}

/// Returns the names of the periods of a board, the newest first.
fn names(board: &Arc<Board>) -> Vec<String> {
    board.each_period().map(|edition| edition.period_name().unwrap().to_string()).collect()
}

/// Returns the ranking of a period, as the board has it now.
async fn lines(site: &Site, board: &Arc<Board>, period: &str) -> Vec<(String, i64)> {
    let board = present(&*site.store, board).await;
    let track = of_period(&board, period);
    site.ranking(&track).await.into_iter().map(|(_, subject, score)| (subject, score)).collect()
}

fn of_period(board: &Arc<Board>, period: &str) -> BoardTrack {
    board.period_named(&PeriodName::new(period)).unwrap_or_else(|| panic!("{period} of {board:?}")).main_track()
}

fn line(who: &str, score: i64) -> (String, i64) {
    (who.to_owned(), score)
}

pub async fn an_item_counts_in_the_period_of_its_time(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    assert_eq!(names(&board), ["2026-01-01"]);
    let first = board.edition().period().unwrap();
    assert_eq!(first, Period { start: t("2026-01-01T00:00:00Z"), end: t("2026-01-02T00:00:00Z"), number: 1 });
    // Before the definition, but in its period.
    let items = vec![plus("a", 1), plus("a", 2).at("2026-01-01T00:00:00Z"), plus("b", 4)];
    site.count(&board, items).await;
    assert_eq!(site.add(&board, vec![plus("a", 1).at("2025-12-31T23:59:59.999Z")]).await, [LATE]);
    // The last and the first instant of a period, through handles from before its end.
    site.clock("2026-01-01T23:59:59.999Z").await;
    site.count(&board, vec![plus("a", 10)]).await;
    site.clock("2026-01-02T00:00:00Z").await;
    let items = vec![plus("c", 5), plus("a", 100).at("2026-01-01T23:59:59.999Z"), plus("b", 3)];
    assert_eq!(site.add(&board, items).await, [COUNTED, COUNTED, COUNTED]);
    assert!(matches!(site.other.page(&board.main(), 0, 9).await, Err(StoreError::StaleEpoch)));
    let now = present(&*site.other, &board).await;
    assert_eq!(names(&now), ["2026-01-02", "2026-01-01"]);
    assert_eq!(lines(&site, &board, "2026-01-01").await, [line("a", 113), line("b", 4)]);
    assert_eq!(lines(&site, &board, "2026-01-02").await, [line("c", 5), line("b", 3)]);
    assert_eq!(site.ranking(&now.main()).await.len(), 2, "reads are about the current period");
    // A clock that is ahead of the store's within the skew counts as now.
    site.clock("2026-01-02T23:59:58Z").await;
    assert_eq!(site.add(&now, vec![plus("d", 1).at("2026-01-03T00:00:01Z")]).await, [COUNTED]);
    let early = Outcome::Rejected(Rejection::TooEarly);
    assert_eq!(site.add(&now, vec![plus("d", 1).at("2026-01-03T00:00:09Z")]).await, [early]);
    assert_eq!(lines(&site, &board, "2026-01-02").await, [line("c", 5), line("b", 3), line("d", 1)]);
    let edition = present(&*site.store, &board).await.current();
    assert!(!edition.is_final());
}

pub async fn late_items_count_until_the_grace_is_over(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    site.count(&board, vec![plus("a", 1)]).await;
    let late = || plus("a", 1).at("2026-01-01T12:00:00Z");
    site.clock("2026-01-02T01:59:59.999Z").await;
    site.count(&board, vec![late(), plus("a", 7)]).await;
    let undone = || Increment { retract: true, ..plus("a", 1).at("2026-01-01T12:00:00Z") };
    site.count(&board, vec![late(), undone()]).await;
    let now = present(&*site.store, &board).await;
    assert!(!now.period_named(&PeriodName::new("2026-01-01")).unwrap().is_final());
    site.clock("2026-01-02T02:00:00Z").await;
    // A retraction has nothing left to take.
    assert_eq!(site.add(&now, vec![late(), plus("a", 1), undone()]).await, [LATE, COUNTED, COUNTED]);
    let sealed = present(&*site.store, &board).await;
    assert!(sealed.period_named(&PeriodName::new("2026-01-01")).unwrap().is_final());
    assert_eq!((names(&sealed).len(), sealed.editions().len()), (2, 1));
    let site = site.reopened().await;
    assert_eq!(lines(&site, &board, "2026-01-01").await, [line("a", 2)]);
    assert_eq!(lines(&site, &board, "2026-01-02").await, [line("a", 8)]);
    assert_eq!(site.audit(&of_period(&sealed, "2026-01-01")).await, 1, "one subject, without a difference");
}

pub async fn sealed_periods_stay_in_the_archive_and_leave_it(site: Site) {
    let board = site.define("board", &days("COUNT(all, e, s)")).await;
    let mut now = board.clone();
    for day in 1..=6 {
        site.clock(&format!("2026-01-0{day}T12:00:00Z")).await;
        now = present(&*site.store, &now).await;
        let items = (0..day).map(|n| plus(&format!("s{n}"), 10 * day + n)).collect();
        site.count(&now, items).await;
    }
    assert_eq!(names(&now), ["2026-01-06", "2026-01-05", "2026-01-04"]);
    assert!(now.period_named(&PeriodName::new("2026-01-03")).is_none());
    // Everything that is read of a ranking is read of a sealed one.
    let track = of_period(&now, "2026-01-05");
    let scores = [line("s4", 54), line("s3", 53), line("s2", 52), line("s1", 51), line("s0", 50)];
    assert_eq!(lines(&site, &now, "2026-01-05").await, scores);
    let standing = site.store.standing(&track, &subject("s1")).await.unwrap();
    assert_eq!((standing.rank, standing.total), (Some(4), 5));
    let found = site.other.lookup(&track, &[subject("s3"), subject("none")], true).await.unwrap();
    assert_eq!(found.ranks.len(), 2);
    assert_eq!(site.other.neighbors(&track, &subject("s2"), 1).await.unwrap().items.len(), 3);
    // A subject is removed from every period.
    site.store.remove(&now, &subject("s3")).await.unwrap();
    let left = [line("s4", 54), line("s2", 52), line("s1", 51), line("s0", 50)];
    assert_eq!(lines(&site, &now, "2026-01-05").await, left);
    let site = site.reopened().await;
    assert_eq!(lines(&site, &now, "2026-01-05").await, left);
    assert_eq!(lines(&site, &now, "2026-01-04").await.len(), 3);
    assert!(site.store.undefine(&present(&*site.store, &now).await).await.unwrap());
    let again = site.define("board", &days("COUNT(all, e, s)")).await;
    assert_eq!((names(&again), site.ranking(&again.main()).await), (vec!["2026-01-06".to_owned()], vec![]));
}

pub async fn an_id_counts_once_across_the_end_of_a_period(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    site.clock("2026-01-01T23:59:59Z").await;
    site.count(&board, vec![plus("a", 1).id("x"), plus("a", 1).id("late").at("2026-01-01T10:00:00Z")]).await;
    site.clock("2026-01-02T00:00:01Z").await;
    // The same item, sent again after the end of its period, without a time.
    let repeated = vec![plus("a", 1).id("x"), plus("a", 1).id("late").at("2026-01-01T10:00:00Z"), plus("a", 1).id("y")];
    let duplicate = Outcome::Duplicate { score: None };
    assert_eq!(site.add(&board, repeated).await, [duplicate, duplicate, COUNTED]);
    assert_eq!(lines(&site, &board, "2026-01-01").await, [line("a", 2)]);
    assert_eq!(lines(&site, &board, "2026-01-02").await, [line("a", 1)]);
    site.clock("2026-01-02T03:00:00Z").await;
    let now = present(&*site.store, &board).await;
    assert_eq!(site.add(&now, vec![plus("a", 1).id("y"), plus("a", 1).id("x")]).await, [duplicate, duplicate]);
}

pub async fn every_metric_begins_again_with_a_period(site: Site) {
    for (number, metric) in [
        "COUNT(all, e, s)",
        "AVG(all, e, v, s)",
        "MIN(all, e, v, s)",
        "MAX(all, e, v, s)",
        "LAST(all, e, v, s)",
        "COUNT_DISTINCT(all, e, s, w)",
        "APPROX_COUNT_DISTINCT(all, e, s, w)",
    ]
    .into_iter()
    .enumerate()
    {
        let day = |hour: &str, of: usize| format!("2026-02-{:02}T{hour}:00:00Z", 2 * number + of);
        site.clock(&day("10", 1)).await;
        let board = site.define(&format!("b{number}"), &days(metric)).await;
        let values = board.kind().counts_values();
        let item = |who: &str, amount: i64| if values { seen(who, &amount.to_string()) } else { plus(who, amount) };
        site.count(&board, vec![item("a", 3), item("a", 5), item("b", 4)]).await;
        site.clock(&day("01", 2)).await;
        let late = |of: Increment| Increment { at: Some(t(&day("11", 1))), ..of };
        // What was seen in one period is seen again in the next one.
        site.count(&board, vec![item("a", 5), late(item("a", 7)), late(item("b", 4))]).await;
        let now = present(&*site.store, &board).await;
        let periods: Vec<BoardTrack> = now.each_period().map(|edition| edition.main_track()).collect();
        let (count, sum) = if values { (1, 3) } else { (5, 15) };
        let expected = match board.kind() {
            Kind::Distinct | Kind::Capped { .. } | Kind::Sketch => [count, sum],
            Kind::Sum | Kind::TimedSum(_) => [5, 15],
            Kind::Mean => [5, 5],
            Kind::Min => [5, 3],
            Kind::Max | Kind::Last => [5, 7],
        };
        for (track, expected) in periods.iter().zip(expected) {
            let page = site.other.page(track, 0, 10).await.unwrap();
            let found = page.items.iter().find(|line| line.subject.as_str() == "a").unwrap();
            assert_eq!(found.score.shown(track.decimals()).to_string(), expected.to_string(), "{metric}");
        }
    }
}

pub async fn items_that_name_a_period_are_in_it_or_rejected(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    let of = |item: Increment, day: &str| Increment { period: Some(t(&format!("{day}T00:00:00Z"))), ..item };
    let late = || plus("a", 1).at("2026-01-01T08:00:00Z");
    let items = vec![of(plus("a", 1), "2026-01-01"), of(late(), "2026-01-02"), of(plus("a", 1), "2026-01-02")];
    assert_eq!(site.add(&board, items).await, [COUNTED, WRONG, WRONG]);
    site.clock("2026-01-02T01:00:00Z").await;
    // Through a handle that does not know the new period.
    let items = vec![
        of(late(), "2026-01-01"),
        of(plus("a", 1), "2026-01-01"),
        of(late(), "2026-01-02"),
        of(plus("a", 5), "2026-01-02"),
        of(plus("a", 1).at("2025-12-31T10:00:00Z"), "2025-12-31"),
    ];
    assert_eq!(site.add(&board, items).await, [COUNTED, WRONG, WRONG, COUNTED, WRONG]);
    site.clock("2026-01-02T02:00:00Z").await;
    let now = present(&*site.store, &board).await;
    assert_eq!(site.add(&now, vec![of(late(), "2026-01-01"), late()]).await, [WRONG, LATE]);
    assert_eq!(lines(&site, &board, "2026-01-01").await, [line("a", 2)]);
    assert_eq!(lines(&site, &board, "2026-01-02").await, [line("a", 5)]);
}

pub async fn a_board_that_nobody_called_for_long_has_the_present_period(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    site.count(&board, vec![plus("a", 1)]).await;
    // Long after, within the grace of a period to which nothing was written.
    site.clock("2026-03-10T01:00:00Z").await;
    let late = plus("b", 1).at("2026-03-09T23:00:00Z");
    assert_eq!(
        site.add(&board, vec![plus("b", 2), late, plus("b", 1).at("2026-03-08T23:00:00Z")]).await,
        [COUNTED, COUNTED, LATE]
    );
    let now = present(&*site.other, &board).await;
    assert_eq!(names(&now), ["2026-03-10", "2026-03-09", "2026-01-01"]);
    for (day, who, score) in [("2026-03-10", "b", 2), ("2026-03-09", "b", 1), ("2026-01-01", "a", 1)] {
        assert_eq!(lines(&site, &board, day).await, [line(who, score)]);
    }
    assert_eq!(now.edition().period().unwrap().number, 3);
}

pub async fn a_period_is_closed_by_hand(site: Site) {
    let manual = season("SUM(all, e, v, s)", r#"{"every":"manual","grace":"10m","archive":1}"#);
    let board = site.define("board", &manual).await;
    assert_eq!(names(&board), ["1"]);
    site.count(&board, vec![plus("a", 1), plus("a", 1).at("1999-01-01T00:00:00Z")]).await;
    site.clock("2026-01-01T12:00:00Z").await;
    let close = async |board: &Arc<Board>| -> Result<Arc<Board>> {
        let to = board.closed(site.store.now().await?).unwrap();
        site.store.change_editions(board, to).await
    };
    let closed = close(&board).await.unwrap();
    let now = present(&*site.store, &closed).await;
    assert_eq!(names(&now), ["2", "1"]);
    assert!(now.closed(t("2026-01-01T12:00:01Z")).is_err(), "the period before takes late items");
    let late = || plus("a", 1).at("2026-01-01T11:59:59Z");
    assert_eq!(site.add(&board, vec![plus("b", 1), late()]).await, [COUNTED, COUNTED]);
    assert!(matches!(close(&board).await, Err(StoreError::StaleEpoch)));
    site.clock("2026-01-01T12:10:00Z").await;
    let now = present(&*site.store, &now).await;
    assert_eq!(site.add(&now, vec![late(), plus("b", 1)]).await, [LATE, COUNTED]);
    let closed = close(&now).await.unwrap();
    site.clock("2026-01-01T12:20:00Z").await;
    let now = present(&*site.store, &closed).await;
    assert_eq!(names(&now), ["3", "2"]);
    assert_eq!(lines(&site, &now, "2").await, [line("b", 2)]);
    assert!(lines(&site, &now, "3").await.is_empty());
}

pub async fn writes_and_reads_at_the_end_of_a_period_lose_nothing(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    site.clock("2026-01-01T23:59:59.990Z").await;
    let stores = [site.store.clone(), site.other.clone()];
    let mut writers = tokio::task::JoinSet::new();
    for (number, store) in stores.into_iter().cycle().take(8).enumerate() {
        let board = board.clone();
        writers.spawn(async move {
            for round in 0..40 {
                let items = (0..5).map(|n| plus(&format!("s{n}"), 1).id(&format!("{number}-{round}-{n}"))).collect();
                let added = store.add(&board, Batch { increments: items, return_scores: false }).await.unwrap();
                assert_eq!(added.outcomes, vec![COUNTED; 5]);
                if round % 8 == 0 {
                    let page = store.page(&board.main(), 0, 5).await;
                    assert!(matches!(page, Ok(_) | Err(StoreError::StaleEpoch)), "{page:?}");
                }
            }
        });
    }
    for millis in 0..40 {
        tokio::task::yield_now().await;
        site.clock_at(t("2026-01-01T23:59:59.990Z").plus_millis(millis)).await;
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    let now = present(&*site.store, &board).await;
    let mut total = 0;
    for track in now.each_period().map(|edition| edition.main_track()) {
        total += site.ranking(&track).await.into_iter().map(|(.., score)| score).sum::<i64>();
        assert_eq!(site.audit(&track).await, site.ranking_size(&track).await);
    }
    assert_eq!(total, 8 * 40 * 5);
}

pub async fn a_late_item_that_is_refused_is_reported(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    site.count(&board, vec![plus("a", EXACT_MAX)]).await;
    site.clock("2026-01-02T01:00:00Z").await;
    let late = |amount: i64| plus("a", amount).at("2026-01-01T08:00:00Z");
    let refused = Outcome::Rejected(Rejection::OutOfRange);
    assert_eq!(site.add(&board, vec![late(1).id("x")]).await, [refused]);
    assert_eq!(site.add(&board, vec![late(1), late(1), plus("a", 5)]).await, [refused, refused, COUNTED]);
    // The id was not remembered, because the item was not counted.
    assert_eq!(site.add(&board, vec![late(-3).id("x"), late(2), late(2)]).await, [COUNTED, COUNTED, refused]);
    assert_eq!(lines(&site, &board, "2026-01-01").await, [line("a", EXACT_MAX - 1)]);
    assert_eq!(lines(&site, &board, "2026-01-02").await, [line("a", 5)]);
}

pub async fn an_item_that_names_its_period_is_a_duplicate_when_sent_again(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    let of = |item: Increment| Increment { period: Some(t("2026-01-01T00:00:00Z")), ..item };
    let duplicate = Outcome::Duplicate { score: None };
    site.count(&board, vec![of(plus("a", 1).id("x"))]).await;
    for clock in ["2026-01-02T00:00:01Z", "2026-01-02T03:00:00Z"] {
        site.clock(clock).await;
        let items = || vec![of(plus("a", 1).id("x")), of(plus("a", 1).id("new")), of(plus("b", 1))];
        assert_eq!(site.add(&board, items()).await, [duplicate, WRONG, WRONG], "{clock}");
        assert_eq!(site.add(&board, vec![of(plus("a", 1).id("new"))]).await, [WRONG], "it is not remembered");
    }
    assert_eq!(lines(&site, &board, "2026-01-01").await, [line("a", 1)]);
}

pub async fn each_period_has_as_many_keys_as_it_may_have(site: Site) {
    let metric = "COUNT(all, e, s BY k)";
    let limited = Definition { max_keys: Some(2), ..days(metric) };
    let board = site.define("board", &limited).await;
    site.count(&board, vec![plus("a", 1).by("x"), plus("a", 1).by("y")]).await;
    if site.kind.parts() > 1 {
        return; // a board of several parts may have some more
    }
    site.clock("2026-01-02T01:00:00Z").await;
    let late = |key: &str| plus("a", 1).at("2026-01-01T08:00:00Z").by(key);
    let full = Outcome::Rejected(Rejection::TooManyKeys);
    assert_eq!(site.add(&board, vec![late("z"), late("x")]).await, [full, COUNTED]);
    assert_eq!(
        site.add(&board, vec![plus("a", 1).by("p"), late("q"), plus("a", 1).by("r")]).await,
        [COUNTED, full, COUNTED]
    );
    assert_eq!(site.add(&board, vec![plus("a", 1).by("s"), late("y").id("w")]).await, [full, COUNTED]);
}

pub async fn a_board_with_a_season_takes_no_imports(site: Site) {
    let board = site.define("board", &days("SUM(all, e, v, s)")).await;
    let begun = site.store.begin_import(&board, ImportId(7)).await;
    assert!(matches!(begun, Err(StoreError::NoImport { .. })), "{begun:?}");
    let successor = Definition { season: None, ..board.definition().clone() };
    assert!(board.attached(successor, rolltop::board::TrackId(9)).is_err());
    assert!(Timestamp::EPOCH < board.season_step_at().unwrap());
}
