//! Tests of COUNT_DISTINCT by the last-seen scheme: each case of an event separately.

use rolltop::board::{Aggregate, Amount};
use rolltop::store::{Batch, Outcome, Rejection, SlotRange, ValuePlace, ValuesStart};

use crate::given::{With, exact, seen, subject, sums, t, value};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

const METRIC: &str = "COUNT_DISTINCT(3h, login, device, user)";
const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";

async fn by_hour(site: &Site, board: &std::sync::Arc<rolltop::board::Board>) -> Vec<(String, i64)> {
    site.value(board, "d").await;
    let slots = site.slots(board, "d").await;
    let hour = |slot: String| slot["2026-01-01T".len()..][..2].to_owned();
    let count = |aggregate| match aggregate {
        Aggregate::Sum(Amount(count)) => count,
        other => panic!("{other:?} is not a count"),
    };
    slots.into_iter().map(|(slot, aggregate)| (hour(slot), count(aggregate))).collect()
}

fn hours<const N: usize>(counts: [(&str, i64); N]) -> Vec<(String, i64)> {
    counts.map(|(hour, count)| (hour.to_owned(), count)).to_vec()
}

pub async fn a_new_value_counts_in_its_slot(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let scores = site.score(&board, vec![seen("d", "u1"), seen("d", "u2").at(SEVEN), seen("e", "u1")]).await;
        assert_eq!(scores, [counted(2), counted(2), counted(1)]);
        assert_eq!(by_hour(&site, &board).await, hours([("07", 1), ("09", 1)]));
        assert_eq!(site.value(&board, "e").await, exact(1));
        assert_eq!(site.value(&board, "nobody").await, exact(0));
    }
}

pub async fn a_repeated_value_in_the_same_slot_updates_only_its_time(site: Site) {
    for board in site.both(METRIC, "1h").await {
        site.count(&board, vec![seen("d", "u1").at("2026-01-01T09:10:00Z")]).await;
        assert_eq!(site.score(&board, vec![seen("d", "u1").at("2026-01-01T09:20:00Z")]).await, [counted(1)]);
        assert_eq!(by_hour(&site, &board).await, hours([("09", 1)]));
        assert_eq!(site.values(&board, "d").await, [("u1".to_owned(), "2026-01-01T09:20:00Z".to_owned())]);
    }
}

pub async fn a_value_seen_again_later_moves_to_the_newer_slot(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        site.count(board, vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(SEVEN), seen("d", "u3").at(EIGHT)]).await;
        assert_eq!(site.score(board, vec![seen("d", "u1").at(NINE)]).await, [counted(3)]);
        assert_eq!(by_hour(&site, board).await, hours([("07", 1), ("08", 1), ("09", 1)]));
        site.count(board, vec![seen("d", "u2").at(EIGHT)]).await;
        assert_eq!(by_hour(&site, board).await, hours([("08", 2), ("09", 1)]));
    }
    // It does not expire with its older slot.
    site.clock("2026-01-01T11:00:00Z").await;
    for board in &boards {
        assert_eq!(site.value(board, "d").await, exact(1));
    }
    site.audit(&boards[0]).await;
}

pub async fn an_expired_value_counts_as_new_when_seen_again(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        site.count(board, vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(SEVEN), seen("d", "u3").at(NINE)]).await;
    }
    site.clock("2026-01-01T10:05:00Z").await;
    for board in &boards {
        // Before anything of the expired slot is subtracted.
        site.count(board, vec![seen("d", "u1")]).await;
        assert_eq!(site.value(board, "d").await, exact(2));
        assert_eq!(by_hour(&site, board).await, hours([("09", 1), ("10", 1)]));
        // After it is subtracted.
        site.count(board, vec![seen("d", "u2")]).await;
        assert_eq!(by_hour(&site, board).await, hours([("09", 1), ("10", 2)]));
    }
    site.audit(&boards[0]).await;
    assert_eq!(site.ranking(&boards[0]).await, [(1, "d".to_owned(), 3)]);
}

pub async fn an_older_sighting_of_a_known_value_changes_nothing(site: Site) {
    for board in site.both(METRIC, "1h").await {
        site.count(&board, vec![seen("d", "u1").at(NINE)]).await;
        for older in [SEVEN, EIGHT, "2026-01-01T09:09:59.999Z", NINE] {
            assert_eq!(site.score(&board, vec![seen("d", "u1").at(older)]).await, [counted(1)], "{older}");
            assert_eq!(by_hour(&site, &board).await, hours([("09", 1)]), "{older}");
        }
        assert_eq!(site.values(&board, "d").await, [("u1".to_owned(), NINE.to_owned())]);
    }
}

pub async fn a_late_value_counts_in_the_slot_of_its_time(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    let late = Outcome::Rejected(Rejection::TooLate);
    let early = Outcome::Rejected(Rejection::TooEarly);
    for board in &boards {
        site.count(board, vec![seen("d", "u1")]).await;
        let items = vec![
            seen("d", "u2").at("2026-01-01T07:00:00Z"),
            seen("d", "u3").at("2026-01-01T06:59:59.999Z"),
            seen("d", "u4").at("2026-01-01T09:30:05.001Z"),
        ];
        assert_eq!(site.add(board, items).await, [COUNTED, late, early]);
        assert_eq!(by_hour(&site, board).await, hours([("07", 1), ("09", 1)]));
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for board in &boards {
        assert_eq!(site.value(board, "d").await, exact(1));
    }
}

pub async fn distinct_counts_do_not_depend_on_the_order_of_arrival(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    let sightings = [("u1", SEVEN), ("u1", NINE), ("u2", EIGHT), ("u2", SEVEN), ("u1", EIGHT), ("u3", SEVEN)];
    for (nth, board) in boards.iter().enumerate() {
        for turn in 0..sightings.len() {
            let who = format!("s{nth}{turn}");
            let mut turned = sightings;
            turned.rotate_left(turn);
            // In one batch for one subject, in a batch for each item for the other.
            let items: Vec<_> = turned.iter().map(|(what, at)| seen(&who, what).at(at)).collect();
            if turn % 2 == 0 {
                site.count(board, items).await;
            } else {
                for item in items {
                    site.count(board, vec![item]).await;
                }
            }
            let slots: Vec<i64> = {
                let standing = site.store.standing(&board.main(), &subject(&who)).await.unwrap();
                sums(&standing.slots).into_iter().map(|(_, count)| count).collect()
            };
            assert_eq!(slots, [1, 1, 1], "{turned:?}");
            assert_eq!(site.value(board, &who).await, exact(3), "{turned:?}");
        }
    }
}

pub async fn concurrent_sightings_count_each_value_once(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let sighting = |writer: usize| {
            let (store, board) = ([&site.store, &site.other][writer % 2].clone(), board.clone());
            tokio::spawn(async move {
                for round in 0..30 {
                    let at = [SEVEN, EIGHT, NINE][(writer + round) % 3];
                    let who = ["d", "e"][round % 2];
                    let increments = vec![seen(who, &format!("u{}", round % 10)).at(at), seen(who, "all")];
                    let added = store.add(&board, Batch { increments, return_scores: true }).await.unwrap();
                    assert!(added.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })));
                }
            })
        };
        let writers: Vec<_> = (0..4).map(sighting).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        // The rounds of each subject name five values, and each writer has used every hour by the end of them.
        assert_eq!(site.value(&board, "d").await, exact(6));
        assert_eq!(site.value(&board, "e").await, exact(6));
        assert_eq!(by_hour(&site, &board).await, hours([("09", 6)]));
    }
}

pub async fn distinct_counts_of_shorter_windows_are_exact(site: Site) {
    for board in site.both(METRIC, "1h").await {
        site.count(&board, vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(SEVEN), seen("d", "u3").at(EIGHT)]).await;
        site.count(&board, vec![seen("d", "u2").at(EIGHT), seen("d", "u1").at(NINE), seen("d", "u4").at(NINE)]).await;
        for (slots, count) in [(1, 2), (2, 4), (3, 4)] {
            assert_eq!(site.newest(&board, "d", slots).await, exact(count), "{slots}");
        }
        let from = site.store.count(&board.main(), &subject("d"), SlotRange::From(t(EIGHT))).await.unwrap();
        assert_eq!((from.value(board.edition().main()), from.slots), (exact(4), 2));
    }
}

pub async fn values_are_paged_newest_first_with_ties_by_bytes(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let sightings = [("u", EIGHT), ("é", NINE), ("a b", NINE), ("B", NINE), ("b", NINE), ("old", SEVEN)];
        site.count(&board, sightings.map(|(what, at)| seen("d", what).at(at)).to_vec()).await;
        let expected = ["é", "b", "a b", "B", "u", "old"];
        for (offset, limit) in [(0, 10), (0, 2), (1, 3), (4, 2), (5, 5), (6, 1), (100, 3), (0, 0)] {
            let page = site.store.values(&board.main(), &subject("d"), offset, limit).await.unwrap();
            assert_eq!((page.total, page.capped), (6, false));
            let names: Vec<&str> = page.items.iter().map(|(value, _)| value.as_str()).collect();
            let right: Vec<&str> = expected.into_iter().skip(offset as usize).take(limit as usize).collect();
            assert_eq!(names, right, "{offset}, {limit}");
        }
        let places = ["~", "é", "d", "b", "a b", "B", "A", "u", "t", "old", "o"];
        for at in ["2026-01-01T09:30:00Z", NINE, EIGHT, SEVEN, "2026-01-01T06:00:00Z"].map(t) {
            for place in places {
                let start = ValuesStart::After(ValuePlace { last_seen: at, value: value(place) });
                let page = site.store.values_from(&board.main(), &subject("d"), &start, 2).await.unwrap();
                let names: Vec<&str> = page.items.iter().map(|(value, _)| value.as_str()).collect();
                let is_after =
                    |what: &str| sightings.iter().any(|(name, seen)| *name == what && (t(seen), *name) < (at, place));
                let right: Vec<&str> = expected.into_iter().filter(|what| is_after(what)).collect();
                assert_eq!((page.total, page.first), (6, 6 - right.len() as u64), "{at} {place}");
                assert_eq!(names, right[..right.len().min(2)], "{at} {place}");
            }
        }
        let whole = site.store.values(&board.main(), &subject("d"), 0, 10).await.unwrap();
        assert_eq!(whole.items[4], (value("u"), t(EIGHT)));
        assert_eq!((whole.frame.as_of, whole.frame.window.floor), (t(crate::site::START), t("2026-01-01T07:00:00Z")));
        assert_eq!(site.values(&board, "nobody").await, []);
    }
}

pub async fn values_expire_with_the_window(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        site.count(board, vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(EIGHT), seen("d", "u3").at(SEVEN)]).await;
        site.count(board, vec![seen("d", "u3").at(NINE)]).await;
    }
    for (now, names) in [
        ("2026-01-01T10:00:00Z", vec!["u3", "u2"]),
        ("2026-01-01T11:00:00Z", vec!["u3"]),
        ("2026-01-01T12:00:00Z", vec![]),
    ] {
        site.clock(now).await;
        for board in &boards {
            // This also holds while their slot is retiring.
            let left: Vec<String> = site.values(board, "d").await.into_iter().map(|(value, _)| value).collect();
            assert_eq!(left, names, "{now}");
            assert_eq!(site.value(board, "d").await, exact(names.len() as i64), "{now}");
        }
        site.audit(&boards[0]).await;
    }
}

pub async fn values_with_special_characters_are_returned_unchanged(site: Site) {
    let hostile =
        ["*", "c", "t", "t:u1", "\u{fffd}", " ", "日本", "a\\b\"c", "{x}", "-inf", "(", "%", "{\"a\":1}", "0"];
    let long = "v".repeat(512);
    for board in site.both(METRIC, "1h").await {
        let all: Vec<&str> = hostile.into_iter().chain([long.as_str()]).collect();
        site.count(&board, all.iter().map(|what| seen("d", what).at(NINE)).collect()).await;
        assert_eq!(site.value(&board, "d").await, exact(all.len() as i64));
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.reverse();
        let names: Vec<String> = site.values(&board, "d").await.into_iter().map(|(value, _)| value).collect();
        assert_eq!(names, sorted);
        for what in &all {
            site.count(&board, vec![seen("d", what).at(NINE).undone()]).await;
        }
        assert_eq!((site.value(&board, "d").await, site.values(&board, "d").await), (exact(0), Vec::new()));
    }
}

pub async fn sightings_with_an_id_count_once(site: Site) {
    for board in site.both(METRIC, "1h").await {
        site.count(&board, vec![seen("d", "u1").at(SEVEN).id("x")]).await;
        // The id is known, so neither the value nor the time is checked.
        let again = vec![seen("d", "u2").id("x"), seen("d", "u1").at(NINE).id("x"), seen("e", "u1").id("x")];
        assert_eq!(site.add(&board, again).await, [DUPLICATE, DUPLICATE, COUNTED]);
        assert_eq!(by_hour(&site, &board).await, hours([("07", 1)]));
        // It counted although it changed nothing, so its id is stored.
        site.count(&board, vec![seen("d", "u1").at(SEVEN).id("y")]).await;
        assert_eq!(site.add(&board, vec![seen("d", "u9").id("y")]).await, [DUPLICATE]);
    }
}

pub async fn removed_subjects_have_no_values(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        let items =
            vec![seen("d", "u1").at(SEVEN), seen("d", "u2"), seen("e", "u1"), seen("d", "u3").at(NINE).undone()];
        site.count(board, items).await;
        let removal = site.store.remove(board, &subject("d")).await.unwrap();
        assert_eq!((removal.score, removal.live_slots, removal.retiring_slots), (exact(2), 2, 0));
        assert_eq!((site.value(board, "d").await, site.values(board, "d").await), (exact(0), Vec::new()));
        assert_eq!(site.value(board, "e").await, exact(1));
        // Retracted values are no longer stored either.
        site.count(board, vec![seen("d", "u1").at(SEVEN), seen("d", "u3").at(EIGHT)]).await;
        assert_eq!(by_hour(&site, board).await, hours([("07", 1), ("08", 1)]));
    }
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.ranking(&boards[0]).await, [(1, "e".to_owned(), 1), (1, "d".to_owned(), 1)]);
    site.audit(&boards[0]).await;
}

pub async fn each_board_has_its_own_values(site: Site) {
    let [one, two] = site.both(METRIC, "1h").await;
    site.count(&one, vec![seen("d", "u1"), seen("d", "u2")]).await;
    site.count(&two, vec![seen("d", "u1")]).await;
    assert_eq!((site.value(&one, "d").await, site.value(&two, "d").await), (exact(2), exact(1)));
    assert!(site.store.undefine(&one).await.unwrap());
    let again = site.board(METRIC, "1h").await;
    assert_eq!((site.value(&again, "d").await, site.values(&again, "d").await), (exact(0), Vec::new()));
    site.count(&again, vec![seen("d", "u1")]).await;
    assert_eq!(site.ranking(&again).await, [(1, "d".to_owned(), 1)]);
}

pub async fn a_subject_with_900_values_is_counted_and_paged(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let item = |nth: usize| seen("d", &format!("u{:04}", nth % 900)).at([SEVEN, EIGHT, NINE][nth % 7 % 3]);
        site.count(&board, (0..1_500).map(item).collect()).await;
        assert_eq!(site.value(&board, "d").await, exact(900));
        let page = site.store.values(&board.main(), &subject("d"), 850, 100).await.unwrap();
        assert_eq!((page.total, page.first, page.items.len()), (900, 850, 50));
        let whole = site.store.values(&board.main(), &subject("d"), 0, 1_000).await.unwrap().items;
        let mut read = site.store.values(&board.main(), &subject("d"), 0, 70).await.unwrap().items;
        while read.len() < 900 {
            let (value, last_seen) = read[read.len() - 1].clone();
            let start = ValuesStart::After(ValuePlace { last_seen, value });
            let page = site.store.values_from(&board.main(), &subject("d"), &start, 70).await.unwrap();
            assert_eq!((page.total, page.first), (900, read.len() as u64));
            read.extend(page.items);
        }
        assert_eq!(read, whole);
    }
}
