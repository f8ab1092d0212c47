//! Tests of boards over all time that keep their newest slots.

use std::sync::Arc;

use rolltop::board::{Board, Change, Definition, Stamp, Value};
use rolltop::store::{Outcome, Rejection, SlotContents, SlotQuery, SlotRange};

use crate::given::{Units, With, exact, mean, plus, sample, sample_of, seen, subject, t};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const REFUSED: Outcome = Outcome::Rejected(Rejection::OutOfRange);

fn keeping(metric: &str, slot: &str, keep: &str) -> Definition {
    let (slot, keep) = (slot.parse().ok(), keep.parse().ok());
    Definition { slot, keep, ..Definition::without_slots(metric.parse().unwrap()) }
}

/// Defines the same board with a ranking and without.
async fn both(site: &Site, metric: &str) -> [Arc<Board>; 2] {
    let definition = keeping(metric, "1h", "3h");
    let unranked = Definition { ranked: false, ..definition.clone() };
    [site.define("board", &definition).await, site.define("unranked", &unranked).await]
}

/// Returns a subject's total, and what it has in the kept slots: the hour of each and its number.
async fn parts(site: &Site, board: &Arc<Board>, who: &str) -> (i64, Vec<(String, i64)>) {
    let record = board.kept_track().unwrap();
    let slots = site.store.standing(&record, &subject(who)).await.unwrap().slots;
    let part = |(start, aggregate)| (start, record.value([&aggregate]).map_or(0, |value| value.units()));
    let hour = |(start, units): (rolltop::board::Timestamp, i64)| (start.to_string()[11..13].to_owned(), units);
    let total = site.value(board, who).await.map_or(0, |value| value.units());
    (total, slots.into_iter().map(part).map(hour).collect())
}

fn slots(of: &[(&str, i64)]) -> Vec<(String, i64)> {
    of.iter().map(|(hour, units)| ((*hour).to_owned(), *units)).collect()
}

pub async fn the_newest_slots_are_kept_beside_the_total(site: Site) {
    for board in both(&site, "COUNT(all, like, post)").await {
        site.clock_at(site.store.now().await.unwrap().max(t("2026-01-01T09:30:00Z"))).await;
        let items = vec![
            plus("a", 1),
            plus("a", 2).at("2026-01-01T08:10:00Z"),
            plus("a", 4).at("2026-01-01T06:59:59.999Z"),
            plus("a", 8).at("2001-09-09T01:46:40Z"),
        ];
        assert_eq!(site.score(&board, items).await, [counted(15); 4]);
        assert_eq!(parts(&site, &board, "a").await, (15, slots(&[("08", 2), ("09", 1)])));
        // Retractions subtract from the total always, and from a slot if it is kept.
        let undone = |amount, time: &str| plus("a", amount).at(time).undone();
        site.count(&board, vec![undone(2, "2026-01-01T08:10:00Z"), undone(8, "2001-09-09T01:46:40Z")]).await;
        assert_eq!(parts(&site, &board, "a").await, (5, slots(&[("09", 1)])));
        // One id counts once in both.
        let again = || plus("a", 16).id("x").at("2026-01-01T07:00:00Z");
        assert_eq!(site.add(&board, vec![again(), again()]).await, [COUNTED, DUPLICATE]);
        assert_eq!(parts(&site, &board, "a").await, (21, slots(&[("07", 16), ("09", 1)])));
        site.audit(&board).await;
        site.audit(&board.kept_track().unwrap()).await;
    }
}

pub async fn kept_slots_are_deleted_and_never_subtracted(site: Site) {
    let boards = both(&site, "SUM(all, sale, amount, shop)").await;
    for board in &boards {
        site.count(board, vec![plus("a", 5), plus("a", 7).at("2026-01-01T07:00:00Z")]).await;
    }
    for (now, kept) in [
        ("2026-01-01T10:00:00Z", &[("09", 5)][..]),
        ("2026-01-01T11:59:59.999Z", &[("09", 5)]),
        ("2026-01-01T12:00:00Z", &[]),
        ("2026-02-01T12:00:00Z", &[]),
    ] {
        site.clock(now).await;
        for board in &boards {
            assert_eq!(parts(&site, board, "a").await, (12, slots(kept)), "{now}");
            assert_eq!(site.store.remove(board, &subject("b")).await.unwrap().live_slots, 0);
        }
    }
    site.count(&boards[0], vec![plus("a", 1)]).await;
    assert_eq!(site.ranking(&boards[0]).await, [(1, "a".to_owned(), 13)]);
    assert_eq!(parts(&site, &boards[0], "a").await, (13, slots(&[("12", 1)])));
}

pub async fn kept_slots_answer_for_shorter_windows_and_earlier_times(site: Site) {
    let board = &both(&site, "COUNT(all, like, post)").await[0];
    for (amount, time) in [(1, "2026-01-01T07:30:00Z"), (2, "2026-01-01T08:30:00Z"), (4, "2026-01-01T09:10:00Z")] {
        site.count(board, vec![plus("a", amount).at(time)]).await;
    }
    let record = board.kept_track().unwrap();
    let read = async |range: SlotRange, as_of: Option<&str>| -> SlotContents {
        let query = SlotQuery { track: record.clone(), subject: subject("a"), range, as_of: as_of.map(t) };
        site.store.read(vec![query]).await.pop().unwrap().unwrap()
    };
    assert_eq!(read(SlotRange::Slots(1), None).await.value(&record), exact(4));
    assert_eq!(read(SlotRange::Slots(3), None).await.value(&record), exact(7));
    assert_eq!(read(SlotRange::Slots(1), Some("2026-01-01T08:45:00Z")).await.value(&record), exact(2));
}

pub async fn a_sample_moves_the_total_as_much_as_its_slot(site: Site) {
    for board in both(&site, "SUM(all, sale, amount, shop)").await {
        site.count(
            &board,
            vec![plus("a", 5), plus("a", 7).at("2026-01-01T08:00:00Z"), plus("a", 100).at("2020-01-01T00:00:00Z")],
        )
        .await;
        site.count(&board, vec![sample("a", 2, "2026-01-01T08:30:00Z")]).await;
        assert_eq!(parts(&site, &board, "a").await, (107, slots(&[("08", 2), ("09", 5)])));
        // Sent again it changes nothing. A slot can be emptied, and one without data be set.
        site.count(&board, vec![sample("a", 2, "2026-01-01T08:30:00Z"), sample("a", 0, "2026-01-01T09:00:00Z")]).await;
        site.count(&board, vec![sample("b", -3, "2026-01-01T07:00:00Z")]).await;
        assert_eq!(parts(&site, &board, "a").await, (102, slots(&[("08", 2)])));
        assert_eq!(parts(&site, &board, "b").await, (-3, slots(&[("07", -3)])));
        let early = Outcome::Rejected(Rejection::TooEarly);
        let items = vec![sample("a", 1, "2026-01-01T06:59:59.999Z"), sample("a", 1, "2026-01-01T10:00:00Z")];
        assert_eq!(site.add(&board, items).await, [LATE, early]);
        // A slot of the record has a smaller bound than the total.
        let most = board.edition().kept_slots().unwrap().slot_bound().0;
        assert_eq!(site.add(&board, vec![sample("a", most + 1, "2026-01-01T09:00:00Z")]).await, [REFUSED]);
        assert_eq!(site.add(&board, vec![sample("a", most, "2026-01-01T09:00:00Z")]).await, [COUNTED]);
        assert_eq!(parts(&site, &board, "a").await, (102 + most, slots(&[("08", 2), ("09", most)])));
        site.audit(&board).await;
    }
}

pub async fn a_sample_moves_a_mean_of_all_time(site: Site) {
    for board in both(&site, "AVG(all, sale, amount, shop)").await {
        let old = plus("a", 40).at("2020-01-01T00:00:00Z");
        site.count(&board, vec![plus("a", 10), plus("a", 20), old]).await;
        site.count(&board, vec![sample_of("a", 100, 4, "2026-01-01T09:00:00Z")]).await;
        assert_eq!(site.value(&board, "a").await, mean(140, 5));
        site.count(&board, vec![sample_of("a", 0, 0, "2026-01-01T09:00:00Z")]).await;
        assert_eq!(site.value(&board, "a").await, mean(40, 1));
        assert_eq!(site.value(&board.kept_track().unwrap(), "a").await, None);
        site.audit(&board).await;
    }
}

pub async fn the_fewest_samples_are_about_the_total(site: Site) {
    let definition = Definition { min_samples: 2, ..keeping("AVG(all, sale, amount, shop)", "1h", "3h") };
    let board = site.define("board", &definition).await;
    let kept = board.kept_track().unwrap();
    site.count(&board, vec![plus("a", 5).at("2020-01-01T00:00:00Z"), plus("b", 6)]).await;
    assert_eq!((site.value(&board, "b").await, site.value(&kept, "b").await), (None, Some(Value::Real(6.0))));
    site.count(&board, vec![plus("a", 7)]).await;
    assert_eq!(
        (site.value(&board, "a").await, site.value(&kept, "a").await),
        (Some(Value::Real(6.0)), Some(Value::Real(7.0)))
    );
    site.audit(&board).await;
}

pub async fn a_sample_is_the_newest_value_unless_a_later_slot_has_one(site: Site) {
    for board in both(&site, "LAST(all, rating, elo, player)").await {
        let items = vec![plus("a", 5).at("2026-01-01T08:40:00Z"), plus("b", 9).at("2026-01-01T09:10:00Z")];
        site.count(&board, items).await;
        // In its own slot a sample replaces a newer value too.
        let samples = vec![sample("a", 6, "2026-01-01T08:10:00Z"), sample("b", 7, "2026-01-01T08:10:00Z")];
        site.count(&board, samples).await;
        assert_eq!(parts(&site, &board, "a").await, (6, slots(&[("08", 6)])));
        assert_eq!(parts(&site, &board, "b").await, (9, slots(&[("08", 7), ("09", 9)])));
        // The value is as old as the sample, so a later event of the slot is newer.
        site.count(&board, vec![plus("a", 1).at("2026-01-01T08:10:00.001Z"), plus("b", 2).at("2020-01-01T00:00:00Z")])
            .await;
        assert_eq!(parts(&site, &board, "a").await, (1, slots(&[("08", 1)])));
        assert_eq!(parts(&site, &board, "b").await, (9, slots(&[("08", 7), ("09", 9)])));
        site.audit(&board).await;
    }
}

/// Tests samples whose time is the end of their slot, which is the start of the next one.
pub async fn a_sample_stamped_with_its_end_is_of_the_slot_before(site: Site) {
    let of = |ranked| Definition { stamp: Stamp::End, ranked, ..keeping("LAST(all, rating, elo, player)", "1h", "3h") };
    for board in [site.define("board", &of(true)).await, site.define("unranked", &of(false)).await] {
        site.count(&board, vec![plus("a", 9).at("2026-01-01T09:00:00Z")]).await;
        let sample_of_eight = |units| vec![sample("a", units, "2026-01-01T09:00:00Z")];
        site.count(&board, sample_of_eight(4)).await;
        assert_eq!(parts(&site, &board, "a").await, (9, slots(&[("08", 4), ("09", 9)])));
        site.count(&board, vec![sample("b", 4, "2026-01-01T09:00:00Z")]).await;
        site.count(&board, vec![sample("b", 5, "2026-01-01T08:30:00Z")]).await;
        assert_eq!(parts(&site, &board, "b").await, (5, slots(&[("08", 5)])));
        // An event of the last instant of the slot is older.
        site.count(&board, vec![sample("b", 6, "2026-01-01T09:00:00Z")]).await;
        site.count(&board, vec![plus("b", 7).at("2026-01-01T08:59:59.999Z")]).await;
        assert_eq!(parts(&site, &board, "b").await, (6, slots(&[("08", 6)])));
        // One of the next instant belongs to the next slot. From then on the total belongs to that slot, even if value
        // and time are those of the sample, and in the same batch.
        for (who, units) in [("b", 6), ("c", 8)] {
            site.count(&board, vec![sample(who, 6, "2026-01-01T09:00:00Z")]).await;
            site.count(
                &board,
                vec![plus(who, units).at("2026-01-01T09:00:00Z"), sample(who, 1, "2026-01-01T08:30:00Z")],
            )
            .await;
            assert_eq!(parts(&site, &board, who).await, (units, slots(&[("08", 1), ("09", units)])));
            site.count(&board, vec![sample(who, 2, "2026-01-01T09:00:00Z")]).await;
            assert_eq!(parts(&site, &board, who).await, (units, slots(&[("08", 2), ("09", units)])));
        }
        site.audit(&board).await;
    }
}

pub async fn extremes_and_sketches_of_all_time_keep_slots_and_take_no_samples(site: Site) {
    for (metric, total, newest) in [
        ("MAX(all, lap, time, driver)", 9, 4),
        ("MIN(all, lap, time, driver)", 4, 4),
        ("APPROX_COUNT_DISTINCT(all, visit, page, user)", 2, 1),
    ] {
        for board in both(&site, metric).await {
            assert!(!board.edition().takes(&Change::Set { sum: rolltop::board::Amount(1), count: 1 }), "{metric}");
            let item = |number| {
                if board.edition().takes(&plus("a", 1).change) {
                    plus("a", number)
                } else {
                    seen("a", &number.to_string())
                }
            };
            site.count(&board, vec![item(4), item(9).at("2026-01-01T05:00:00Z")]).await;
            assert_eq!(parts(&site, &board, "a").await, (total, slots(&[("09", newest)])), "{metric}");
            site.audit(&board).await;
            assert!(site.store.undefine(&board).await.unwrap());
        }
    }
}
