//! Tests of LAST: the newest value.

use std::sync::Arc;

use rolltop::board::{Aggregate, Amount, Board, Definition, EXACT_MAX, Stamp};

use crate::given::{With, definition, exact, plus, sample, t};
use crate::site::{COUNTED, DUPLICATE, Site, counted, duplicate};

const RATING: &str = "LAST(3h, rating, elo, player)";
const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";

fn last(at: &str, value: i64) -> Aggregate {
    Aggregate::Last { at: t(at), value: Amount(value) }
}

pub async fn the_newest_value_is_the_score(site: Site) {
    for board in site.both(RATING, "1h").await {
        assert_eq!(site.score(&board, vec![plus("a", 1_500).at(EIGHT)]).await, [counted(1_500)]);
        assert_eq!(site.score(&board, vec![plus("a", 1_400).at(NINE)]).await, [counted(1_400)]);
        // A late event counts in its slot, and changes nothing there if it is older.
        assert_eq!(site.score(&board, vec![plus("a", 1_600).at("2026-01-01T09:09:59.999Z")]).await, [counted(1_400)]);
        assert_eq!(site.score(&board, vec![plus("a", 1_300).at(SEVEN)]).await, [counted(1_400)]);
        let slots = [
            ("2026-01-01T07:00:00Z".to_owned(), last(SEVEN, 1_300)),
            ("2026-01-01T08:00:00Z".to_owned(), last(EIGHT, 1_500)),
            ("2026-01-01T09:00:00Z".to_owned(), last(NINE, 1_400)),
        ];
        assert_eq!(site.slots(&board, "a").await, slots);
        assert_eq!(site.newest(&board, "a", 1).await, exact(1_400));
        // Without a time it is the newest.
        assert_eq!(site.score(&board, vec![plus("a", 1_450)]).await, [counted(1_450)]);
        site.audit(&board).await;
    }
}

pub async fn of_equal_times_the_later_arrival_wins(site: Site) {
    for board in site.both(RATING, "1h").await {
        site.count(&board, vec![plus("a", 1).at(NINE), plus("a", 2).at(NINE), plus("b", 5), plus("b", 4)]).await;
        site.count(&board, vec![plus("a", 3).at(NINE)]).await;
        assert_eq!((site.value(&board, "a").await, site.value(&board, "b").await), (exact(3), exact(4)));
        // Times ahead of the clock are now, so the later arrival wins there too.
        let ahead = |seconds: u32| format!("2026-01-01T09:30:0{seconds}Z");
        site.count(&board, vec![plus("c", 8).at(&ahead(4)), plus("c", 7).at(&ahead(1))]).await;
        assert_eq!(site.value(&board, "c").await, exact(7));
    }
}

pub async fn a_score_expires_with_its_newest_slot_only(site: Site) {
    let boards = site.both(RATING, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 1).at(SEVEN), plus("a", 2).at(EIGHT), plus("b", 9).at(SEVEN)]).await;
        site.count(board, vec![plus("c", 5)]).await;
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for board in &boards {
        assert_eq!((site.value(board, "a").await, site.value(board, "b").await), (exact(2), None));
    }
    site.clock("2026-01-01T11:00:00Z").await;
    for board in &boards {
        assert_eq!((site.value(board, "a").await, site.value(board, "c").await), (None, exact(5)));
        site.audit(board).await;
    }
    assert_eq!(site.ranking(&boards[0]).await, [(1, "c".to_owned(), 5)]);
    site.clock("2026-01-02T11:00:00Z").await;
    assert_eq!(site.ranking(&boards[0]).await, []);
}

pub async fn newest_values_of_zero_or_less_are_ranked(site: Site) {
    let board = site.board(RATING, "1h").await;
    site.count(&board, vec![plus("a", 0), plus("b", -7), plus("c", EXACT_MAX), plus("d", -EXACT_MAX)]).await;
    let names = ["c", "a", "b", "d"];
    let values = [EXACT_MAX, 0, -7, -EXACT_MAX];
    let lines: Vec<_> =
        (1..).zip(names).zip(values).map(|((rank, name), value)| (rank, name.to_owned(), value)).collect();
    assert_eq!(site.ranking(&board).await, lines);
    // The values of several slots are not added up, however large they are.
    for hour in 0..12 {
        site.clock(&format!("2026-01-01T{:02}:30:00Z", 10 + hour)).await;
        site.count(&board, vec![plus("c", EXACT_MAX), plus("d", -EXACT_MAX)]).await;
        assert_eq!(
            (site.value(&board, "c").await, site.value(&board, "d").await),
            (exact(EXACT_MAX), exact(-EXACT_MAX))
        );
        site.audit(&board).await;
    }
}

pub async fn a_sample_replaces_the_newest_value_of_its_slot(site: Site) {
    for board in site.both(RATING, "1h").await {
        site.count(&board, vec![plus("a", 1).at(EIGHT), plus("a", 2).at(NINE)]).await;
        assert_eq!(site.score(&board, vec![sample("a", 7, "2026-01-01T08:00:00Z")]).await, [counted(2)]);
        // Even if the time of the sample is earlier than that of what it replaces.
        assert_eq!(site.score(&board, vec![sample("a", 5, "2026-01-01T09:00:00Z")]).await, [counted(5)]);
        assert_eq!(site.score(&board, vec![plus("a", 6).at("2026-01-01T09:00:01Z")]).await, [counted(6)]);
        let slots = [
            ("2026-01-01T08:00:00Z".to_owned(), last("2026-01-01T08:00:00Z", 7)),
            ("2026-01-01T09:00:00Z".to_owned(), last("2026-01-01T09:00:01Z", 6)),
        ];
        assert_eq!(site.slots(&board, "a").await, slots);
        site.audit(&board).await;
    }
}

pub async fn a_sample_stamped_with_its_end_is_newer_than_every_event_before_its_time(site: Site) {
    for ranked in [true, false] {
        let board = site.define("ends", &Definition { stamp: Stamp::End, ranked, ..definition(RATING, "1h") }).await;
        // The sample belongs to the slot from eight to nine.
        let end = "2026-01-01T09:00:00Z";
        site.count(&board, vec![sample("a", 7, end)]).await;
        assert_eq!(site.score(&board, vec![plus("a", 1).at("2026-01-01T08:59:59.999Z")]).await, [counted(7)]);
        assert_eq!(site.slots(&board, "a").await, [("2026-01-01T08:00:00Z".to_owned(), last(end, 7))]);
        // A sample replaces value and time, even by an older one.
        site.count(&board, vec![sample("a", 5, "2026-01-01T08:30:00Z")]).await;
        assert_eq!(site.score(&board, vec![plus("a", 1).at("2026-01-01T08:29:59.999Z")]).await, [counted(5)]);
        // Of equal times the later arrival wins.
        assert_eq!(site.score(&board, vec![plus("a", 6).at("2026-01-01T08:30:00Z")]).await, [counted(6)]);
        site.count(&board, vec![sample("a", 8, end)]).await;
        // An event of that time belongs to the next slot.
        assert_eq!(site.score(&board, vec![plus("a", 9).at(end), sample("a", 4, end)]).await, [counted(9), counted(9)]);
        let slots =
            [("2026-01-01T08:00:00Z".to_owned(), last(end, 4)), ("2026-01-01T09:00:00Z".to_owned(), last(end, 9))];
        assert_eq!(site.slots(&board, "a").await, slots);
        // A sample of the newest slot is as old as now at most.
        assert_eq!(site.score(&board, vec![sample("a", 3, "2026-01-01T10:00:00Z")]).await, [counted(3)]);
        assert_eq!(site.score(&board, vec![plus("a", 2).at("2026-01-01T09:29:59.999Z")]).await, [counted(3)]);
        assert_eq!(site.score(&board, vec![plus("a", 2)]).await, [counted(2)]);
        site.audit(&board).await;
        assert!(site.store.undefine(&board).await.unwrap());
    }
}

pub async fn newest_values_return_scores_and_count_ids_once(site: Site) {
    for board in site.both(RATING, "1h").await {
        let items = vec![plus("a", 3).id("x"), plus("a", 4).id("x"), plus("b", 1).id("x"), plus("a", 2)];
        assert_eq!(site.score(&board, items).await, [counted(2), duplicate(2), counted(1), counted(2)]);
        assert_eq!(site.add(&board, vec![plus("a", 9).id("x"), plus("a", 9).id("y")]).await, [DUPLICATE, COUNTED]);
        assert_eq!(site.value(&board, "a").await, exact(9));
        assert!(!board.edition().takes_retractions());
    }
}

pub async fn the_newest_value_of_all_time_stays(site: Site) {
    let all =
        |ranked| Definition { ranked, ..Definition::without_slots("LAST(all, rating, elo, player)".parse().unwrap()) };
    for ranked in [true, false] {
        let board: Arc<Board> = site.define(&format!("all-{ranked}"), &all(ranked)).await;
        site.count(&board, vec![plus("a", 1_500), plus("a", 1).at("1970-01-01T00:00:00Z"), plus("b", 0)]).await;
        let begun = site.store.now().await.unwrap();
        let days = |days: i64| begun.plus_millis(days * 86_400_000);
        site.clock_at(days(4_000)).await;
        assert_eq!((site.value(&board, "a").await, site.value(&board, "b").await), (exact(1_500), exact(0)));
        site.count(&board, vec![plus("a", 2).at_time(days(-1)), plus("a", 1_700).at_time(days(1))]).await;
        assert_eq!(site.value(&board, "a").await, exact(1_700));
        site.audit(&board).await;
        assert_eq!(site.value(&board, "z").await, None);
    }
}
