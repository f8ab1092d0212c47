//! Tests of a cap for each person: what of one person counts for one subject in each day.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rolltop::board::{
    Board, Counted, DayCount, Definition, ModerationChange, NoSamples, RankingKey, Subject, Timestamp, Visibility,
};
use rolltop::store::{Content, ImportId, Increment, Outcome, Piece, Rejection, SlotRange};

use super::editions::{attach, exchange, twice};
use super::filling::fill;
use crate::given::{With, exact, seen, subject, t};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

/// Returns the definition of a board on which a person adds up to `most` in a day.
pub fn capped(metric: &str, slot: Option<&str>, most: u32) -> Definition {
    let cap = serde_json::from_value(serde_json::json!({"per": "user", "most": most, "every": "1d"})).unwrap();
    let slot = slot.map(|slot| slot.parse().unwrap());
    Definition { cap, slot, ..Definition::without_slots(metric.parse().unwrap()) }
}

fn days(most: u32) -> Definition {
    capped("COUNT(3d, like, post)", Some("1d"), most)
}

const EARLIER: &str = "2025-12-31T22:00:00Z";
const EARLIEST: &str = "2025-12-30T02:00:00Z";

pub async fn a_person_adds_up_to_the_cap_in_a_day(site: Site) {
    for (nth, definition) in [days(2), capped("COUNT(all, like, post)", None, 2)].iter().enumerate() {
        let board = site.define(&format!("b{nth}"), definition).await;
        let scores =
            site.score(&board, vec![seen("p", "ann"), seen("p", "ann"), seen("p", "ann"), seen("q", "ann")]).await;
        assert_eq!(scores, [counted(2), counted(2), counted(2), counted(1)]);
        // Of another person, and of another day.
        let scores = site.score(&board, vec![seen("p", "bob"), seen("p", "ann").at(EARLIER)]).await;
        assert_eq!(scores, [counted(4), counted(4)]);
        assert_eq!(site.value(&board, "p").await, exact(4));
        assert_eq!(site.ranking(&board).await, [(1, "p".to_owned(), 4), (2, "q".to_owned(), 1)]);
        site.audit(&board).await;
    }
}

/// What is capped is remembered: 11 likes and 11 un-likes come to 0, and not to -1.
pub async fn capped_items_that_are_taken_back_come_to_nothing(site: Site) {
    let board = site.define("b", &days(10)).await;
    let like = || seen("p", "ann").at(EARLIER);
    for _ in 0..11 {
        site.count(&board, vec![like()]).await;
    }
    assert_eq!(site.value(&board, "p").await, exact(10));
    assert_eq!(site.score(&board, vec![like().undone()]).await, [counted(10)]);
    assert_eq!(site.score(&board, vec![like().undone()]).await, [counted(9)]);
    site.count(&board, vec![like().undone(); 9]).await;
    assert_eq!(site.value(&board, "p").await, exact(0));
    assert_eq!(site.ranking(&board).await, []);
    // One that comes before its like.
    assert_eq!(site.score(&board, vec![like().undone(), like()]).await, [counted(0), counted(0)]);
    site.audit(&board).await;
    // It expires with its slot.
    site.count(&board, vec![seen("p", "bob")]).await;
    site.clock("2026-01-03T00:00:00Z").await;
    assert_eq!(site.ranking(&board).await, [(1, "p".to_owned(), 1)]);
    assert_eq!(site.value(&board, "p").await, exact(1));
    site.audit(&board).await;
}

/// The score is the sum of what each person adds in each day, in whatever order the items arrive.
pub async fn caps_do_not_depend_on_the_order_of_arrival(site: Site) {
    let windows = Definition { windows: vec!["2w/1w".parse().unwrap(), "all".parse().unwrap()], ..days(3) };
    let board = site.define("b", &windows).await;
    let mut rng = StdRng::seed_from_u64(7);
    let mut items = Vec::new();
    for person in ["ann", "bob", "cy"] {
        for at in [EARLIEST, EARLIER, "2026-01-01T05:00:00Z"] {
            let likes = rng.random_range(0..=6);
            let unlikes = rng.random_range(0..=4);
            let like = |who: &str| seen(who, person).at(at);
            items.extend((0..likes + unlikes).map(|nth| {
                move |who: &str| {
                    if nth < likes { like(who) } else { like(who).undone() }
                }
            }));
        }
    }
    let mut all = Vec::new();
    for turn in 0..12 {
        let who = format!("s{turn}");
        items.shuffle(&mut rng);
        let increments: Vec<_> = items.iter().map(|item| item(&who)).collect();
        let size = if turn % 2 == 0 { increments.len() } else { 3 };
        for some in increments.chunks(size) {
            site.count(&board, some.to_vec()).await;
        }
        let mut values = Vec::new();
        for track in board.each_track() {
            values.push(site.value(&track, &who).await);
        }
        all.push(values);
    }
    assert!(all.iter().all(|values| *values == all[0]), "{all:?}");
    for track in board.each_track() {
        site.audit(&track).await;
    }
}

/// A week, a month and a year consist of days, each of which has its own cap.
pub async fn longer_slots_have_a_cap_for_each_of_their_days(site: Site) {
    for slot in ["1w", "1mo", "1y"] {
        let board =
            site.define(&format!("b{slot}"), &capped(&format!("COUNT({slot}, like, post)"), Some(slot), 1)).await;
        for at in ["2026-01-01T00:00:00Z", "2026-01-01T09:00:00Z"] {
            site.count(&board, vec![seen("p", "ann").at(at), seen("p", "bob").at(at)]).await;
        }
        assert_eq!(site.value(&board, "p").await, exact(2));
    }
    site.clock("2026-01-03T10:00:00Z").await;
    for slot in ["1w", "1mo", "1y"] {
        let board = site.store.board(&crate::given::name(&format!("b{slot}"))).await.unwrap().unwrap();
        site.count(&board, vec![seen("p", "ann"), seen("p", "ann"), seen("p", "bob").at("2026-01-02T23:59:59.999Z")])
            .await;
        assert_eq!(site.value(&board, "p").await, exact(4), "{slot}");
        site.audit(&board).await;
    }
}

/// Days begin at the midnights of the time zone, also where clocks are put forward or back, and items without a time
/// count in the day in which they arrive.
pub async fn days_of_caps_begin_at_local_midnight(site: Site) {
    // The zones, and a midnight of each in winter; in some of them clocks are changed on that day.
    let zones = [
        ("UTC", "2026-03-27T00:00:00Z"),
        ("Europe/Berlin", "2026-03-28T23:00:00Z"),
        ("Europe/London", "2026-10-24T23:00:00Z"),
        ("America/New_York", "2026-03-09T04:00:00Z"),
        ("America/Los_Angeles", "2026-11-01T07:00:00Z"),
        ("America/St_Johns", "2026-03-08T03:30:00Z"),
        ("America/Sao_Paulo", "2026-03-29T03:00:00Z"),
        ("America/Havana", "2026-03-08T05:00:00Z"),
        ("Asia/Tokyo", "2026-03-28T15:00:00Z"),
        ("Asia/Kolkata", "2026-03-28T18:30:00Z"),
        ("Asia/Kathmandu", "2026-03-28T18:15:00Z"),
        ("Asia/Tehran", "2026-03-28T20:30:00Z"),
        ("Africa/Cairo", "2026-04-23T22:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T13:00:00Z"),
        ("Pacific/Chatham", "2026-04-04T10:15:00Z"),
        ("Pacific/Kiritimati", "2026-03-28T10:00:00Z"),
        ("Antarctica/Troll", "2026-03-29T00:00:00Z"),
    ];
    let mut zones: Vec<(&str, Timestamp)> = zones.into_iter().map(|(zone, midnight)| (zone, t(midnight))).collect();
    zones.sort_by_key(|(_, midnight)| *midnight);
    for (nth, (zone, midnight)) in zones.into_iter().enumerate() {
        let timezone = zone.parse().unwrap();
        let week = capped("COUNT(1w, like, post)", Some("1w"), 1);
        let of = [days(1), capped("COUNT(all, like, post)", None, 1), week];
        let mut boards = Vec::new();
        site.clock_at(midnight.plus_millis(-3)).await;
        for (which, definition) in of.into_iter().enumerate() {
            let board = site.define(&format!("b{nth}-{which}"), &Definition { timezone, ..definition }).await;
            assert_eq!(site.score(&board, vec![seen("p", "ann"), seen("p", "ann")]).await, [counted(1); 2], "{zone}");
            boards.push(board);
        }
        site.clock_at(midnight.plus_millis(-1)).await;
        for board in &boards {
            assert_eq!(site.score(board, vec![seen("p", "ann")]).await, [counted(1)], "{zone}");
            // A time that is ahead of the clock counts as now.
            let ahead = seen("p", "ann").at_time(midnight.plus_millis(1));
            assert_eq!(site.score(board, vec![ahead]).await, [counted(1)], "{zone}");
        }
        site.clock_at(midnight).await;
        // A new day of the week, or the first day of a new week.
        let of_week = if boards[2].main().calendar().slot_of(midnight) == midnight { 1 } else { 2 };
        for (board, score) in boards.iter().zip([2, 2, of_week]) {
            assert_eq!(
                site.score(board, vec![seen("p", "ann"), seen("p", "ann")]).await,
                [counted(score); 2],
                "{zone}"
            );
            let before = seen("p", "ann").at_time(midnight.plus_millis(-1));
            if score == 2 {
                assert_eq!(site.score(board, vec![before]).await, [counted(score)], "{zone}");
            }
            site.audit(board).await;
        }
    }
}

pub async fn ids_of_capped_items_are_remembered(site: Site) {
    let board = site.define("b", &days(1)).await;
    let like = |id: &str| seen("p", "ann").id(id);
    assert_eq!(
        site.add(&board, vec![like("1"), like("2"), like("2"), like("1")]).await,
        [COUNTED, COUNTED, DUPLICATE, DUPLICATE]
    );
    assert_eq!(site.value(&board, "p").await, exact(1));
    // The first is taken back, and the second counts still.
    let undone = seen("p", "ann").at("2026-01-01T09:30:00Z").id("3").undone();
    assert_eq!(site.score(&board, vec![undone.clone(), undone]).await[0], counted(1));
    assert_eq!(site.value(&board, "p").await, exact(1));
}

pub async fn late_and_early_items_of_capped_boards_are_refused(site: Site) {
    let board = site.define("b", &days(1)).await;
    let outcomes = site
        .add(
            &board,
            vec![
                seen("p", "ann").at("2025-12-29T23:59:59.999Z"),
                seen("p", "ann").at("2026-01-01T09:31:00Z"),
                seen("p", "ann").at("2025-12-30T00:00:00Z"),
            ],
        )
        .await;
    let [late, early] = [Rejection::TooLate, Rejection::TooEarly].map(Outcome::Rejected);
    assert_eq!(outcomes, [late, early, COUNTED]);
    site.clock("2026-01-02T00:00:00Z").await;
    assert_eq!(site.value(&board, "p").await, exact(0));
    assert_eq!(site.add(&board, vec![seen("p", "ann").at("2025-12-30T00:00:00Z")]).await, [late]);
    // Nothing is left to take back.
    assert_eq!(site.add(&board, vec![seen("p", "ann").at("2025-12-30T00:00:00Z").undone()]).await, [COUNTED]);
    assert_eq!(site.value(&board, "p").await, exact(0));
    site.audit(&board).await;
}

/// Returns the counters and the time of the newest one dropped, of all subjects of a track.
async fn counters(site: &Site, board: &Arc<Board>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for track in board.each_track() {
        for (subject, content) in crate::carrying::walk(std::slice::from_ref(&site.store), &track).await.unwrap() {
            all.push((
                subject.to_string(),
                match content {
                    Content::Value { value, at, .. } => {
                        let DayCount { day, person, count } = DayCount::read(value.as_str(), at).expect("a counter");
                        format!("{} {person} {count}", &day.to_string()[..10])
                    }
                    other => format!("{other:?}"),
                },
            ));
        }
    }
    all.sort();
    all
}

pub async fn counters_survive_restarts_and_leave_with_their_subject(site: Site) {
    let board = site.define("b", &Definition { windows: vec!["all".parse().unwrap()], ..days(1) }).await;
    site.count(&board, vec![seen("p", "ann"), seen("p", "ann"), seen("p", "bob").at(EARLIER), seen("q", "ann")]).await;
    site.count(&board, vec![seen("q", "bob").at(EARLIER).undone(), seen("q", "cy").at(EARLIER)]).await;
    let before = counters(&site, &board).await;
    assert_eq!(before.len(), 10, "{before:?}");
    let site = site.reopened().await;
    assert_eq!(counters(&site, &board).await, before);
    assert_eq!((site.value(&board, "p").await, site.value(&board, "q").await), (exact(2), exact(1)));
    // The second like of Ann stands.
    let undone = seen("p", "ann").at("2026-01-01T09:00:00Z").undone();
    assert_eq!(site.score(&board, vec![undone]).await, [counted(2)]);
    site.store.remove(&board, &subject("p")).await.unwrap();
    assert_eq!(site.value(&board, "p").await, exact(0));
    assert!(counters(&site, &board).await.iter().all(|(subject, _)| subject == "q"));
    assert_eq!(site.score(&board, vec![seen("p", "ann")]).await, [counted(1)]);
    for track in board.each_track() {
        site.audit(&track).await;
    }
}

/// Returns the removal of a person's counter of a day.
fn forget(board: &Board, who: &str, person: &str, at: &str) -> Increment {
    let day = board.edition().main().day_of(t(at)).unwrap();
    Increment::forgetting(board, subject(who), DayCount { day, person, count: 0 }.text())
}

pub async fn a_person_who_is_forgotten_leaves_no_counter(site: Site) {
    let board = site.define("b", &Definition { windows: vec!["2w/1w".parse().unwrap()], ..days(2) }).await;
    site.count(&board, vec![seen("p", "ann").at(EARLIER), seen("p", "bob").at(EARLIER).undone(), seen("p", "ann")])
        .await;
    assert_eq!(site.value(&board, "p").await, exact(1));
    // What stays in the slot of the earlier day is -1.
    site.count(&board, vec![forget(&board, "p", "ann", EARLIER), forget(&board, "p", "nobody", EARLIER)]).await;
    assert_eq!(site.value(&board, "p").await, exact(0));
    site.audit(&board).await;
    site.count(&board, vec![forget(&board, "p", "bob", EARLIER)]).await;
    assert_eq!(site.value(&board, "p").await, exact(1));
    site.count(&board, vec![forget(&board, "p", "ann", "2026-01-01T00:00:00Z")]).await;
    assert_eq!(counters(&site, &board).await, []);
    for track in board.each_track() {
        assert_eq!(site.value(&track, "p").await, exact(0));
        site.audit(&track).await;
    }
    site.count(&board, vec![seen("p", "ann")]).await;
    assert_eq!(site.value(&board, "p").await, exact(1));
}

pub async fn beyond_max_values_the_oldest_counter_is_dropped(site: Site) {
    let board = site.define("b", &Definition { max_values: Some(2), ..days(5) }).await;
    site.count(
        &board,
        vec![seen("p", "ann").at(EARLIEST), seen("p", "ann").at(EARLIEST), seen("p", "bob").at(EARLIER)],
    )
    .await;
    assert_eq!(site.score(&board, vec![seen("p", "cy")]).await, [counted(2)]);
    let range = SlotRange::Slots(3);
    assert!(site.store.count(&board.main(), &subject("p"), range).await.unwrap().capped);
    assert!(!site.store.count(&board.main(), &subject("p"), SlotRange::Slots(2)).await.unwrap().capped);
    // In one batch, of new persons and of those that are dropped by it.
    site.count(&board, vec![seen("p", "dan"), seen("p", "bob").at(EARLIER), seen("p", "eve"), seen("p", "cy")]).await;
    site.audit(&board).await;
    assert_eq!(site.value(&board, "p").await, exact(2));
}

pub async fn counters_of_keys_are_those_of_their_rankings(site: Site) {
    let definition = capped("COUNT(3d, like, post BY tag)", Some("1d"), 1);
    let board = site.define("b", &definition).await;
    let key = |key: &str| RankingKey::parse(key).unwrap();
    let of =
        |tag: &str, item: Increment| Increment { subject: item.subject.clone().in_ranking(Some(&key(tag))), ..item };
    site.count(&board, vec![of("a", seen("p", "ann")), of("a", seen("p", "ann")), of("b", seen("p", "ann"))]).await;
    for tag in ["a", "b"] {
        let track = board.main().of_key(Some(key(tag)));
        assert_eq!(site.ranking(&track).await, [(1, "p".to_owned(), 1)]);
    }
    site.audit(&board).await;
}

/// What is merged is added up and capped again, and the order of pieces does not matter.
pub async fn counters_are_merged_by_their_counts(site: Site) {
    let first = site.define("first", &days(3)).await;
    let second = site.define("second", &days(3)).await;
    site.count(&first, vec![seen("p", "ann"), seen("p", "ann"), seen("p", "bob").at(EARLIER).undone()]).await;
    site.count(&second, vec![seen("p", "ann"), seen("p", "ann"), seen("p", "bob").at(EARLIER), seen("q", "cy")]).await;
    let target = site.define("target", &days(3)).await;
    let import = ImportId(9);
    site.store.begin_import(&target, import).await.unwrap();
    for (number, board) in (1..).zip([&first, &second]) {
        let contents = crate::carrying::walk(std::slice::from_ref(&site.store), &board.main()).await.unwrap();
        let piece = Piece { number, contents, events: Vec::new() };
        let merged = site.store.merge(&target.main(), import, &piece).await.unwrap();
        assert_eq!((merged.refused, merged.expired), (0, 0), "{merged:?}");
        let again = site.store.merge(&target.main(), import, &piece).await.unwrap();
        assert_eq!(again.merged, 0);
    }
    // A value of no day of the board, and one that is no counter.
    let odd = DayCount { day: t("2026-01-01T05:00:00Z"), person: "ann", count: 1 };
    let contents = [(odd.text(), odd.at()), (Counted::parse("ann").unwrap(), t(EARLIER))];
    let contents = contents.map(|(value, at)| (subject("p"), Content::Value { value, at, retracted: false })).to_vec();
    let merged =
        site.store.merge(&target.main(), import, &Piece { number: 3, contents, events: Vec::new() }).await.unwrap();
    assert_eq!((merged.merged, merged.refused), (0, 2), "{merged:?}");
    site.store.end_import(&target, import).await.unwrap();
    assert_eq!((site.value(&target, "p").await, site.value(&target, "q").await), (exact(3), exact(1)));
    assert_eq!(
        counters(&site, &target).await,
        [
            ("p".to_owned(), "2025-12-31 bob 0".to_owned()),
            ("p".to_owned(), "2026-01-01 ann 4".to_owned()),
            ("q".to_owned(), "2026-01-01 cy 1".to_owned()),
        ]
    );
    site.audit(&target).await;
}

/// A successor with another window and another `most` is given the counters of the board, and each item that comes meanwhile
/// counts in both.
pub async fn a_fill_gives_the_counters_that_items_change_meanwhile(site: Site) {
    let board = site.define("b", &days(2)).await;
    site.count(&board, vec![seen("p", "ann").at(EARLIER), seen("p", "ann").at(EARLIER), seen("p", "ann").at(EARLIER)])
        .await;
    site.count(&board, vec![seen("q", "bob").at(EARLIER)]).await;
    let board =
        attach(&site, &board, &Definition { metric: "COUNT(5d, like, post)".parse().unwrap(), ..days(3) }).await;
    // Before it is filled, of a counter that it does not have yet.
    site.count(
        &board,
        vec![twice(seen("q", "bob").at(EARLIER).undone()), twice(seen("p", "ann").at(EARLIER).undone())],
    )
    .await;
    fill(&site, &board, &[(0, 0)]).await;
    let successor = board.each_track().nth(1).unwrap();
    for track in [board.main(), successor] {
        assert_eq!((site.value(&track, "p").await, site.value(&track, "q").await), (exact(2), exact(0)));
        site.audit(&track).await;
    }
    site.count(&board, vec![twice(seen("p", "ann").at(EARLIER).undone())]).await;
    let board = exchange(&site, &board).await;
    assert_eq!(site.value(&board, "p").await, exact(1));
    site.audit(&board).await;
}

pub async fn editions_with_other_caps_count_each_by_its_own(site: Site) {
    let board = site.define("b", &days(2)).await;
    let board = attach(&site, &board, &days(4)).await;
    site.count(&board, vec![twice(seen("p", "ann")); 5]).await;
    let scores = [2, 4];
    for (track, score) in board.each_track().zip(scores) {
        assert_eq!(site.value(&track, "p").await, exact(score));
        site.audit(&track).await;
    }
}

pub async fn frozen_and_hidden_subjects_have_counters_as_others(site: Site) {
    let board = site.define("b", &days(1)).await;
    site.count(&board, vec![seen("p", "ann"), seen("q", "ann")]).await;
    let hidden = ModerationChange::Visibility(Visibility::Hidden);
    site.store
        .moderate(&board, &[(subject("p"), ModerationChange::Frozen(true)), (subject("q"), hidden)])
        .await
        .unwrap();
    let frozen = Outcome::Rejected(Rejection::SubjectFrozen);
    assert_eq!(
        site.add(&board, vec![seen("p", "bob"), seen("q", "ann"), seen("q", "bob")]).await,
        [frozen, COUNTED, COUNTED]
    );
    let page = site.store.page(&board.main(), 0, 9).await.unwrap();
    assert_eq!(page.items.iter().map(|line| line.subject.as_str()).collect::<Vec<_>>(), ["p"]);
    for (who, score) in [("p", 1), ("q", 2)] {
        assert_eq!(site.store.standing(&board.main(), &subject(who)).await.unwrap().score, exact(score));
    }
    site.audit(&board).await;
}

pub async fn a_period_has_counters_of_its_own(site: Site) {
    let season = r#"{"metric":"COUNT(all, like, post)","season":{"every":"1d","grace":"2h"},
        "cap":{"per":"user","most":1,"every":"1d"}}"#;
    let board = site.define("b", &serde_json::from_str(season).unwrap()).await;
    assert_eq!(board.edition().refuses_samples(), Some(NoSamples::Capped));
    site.count(&board, vec![seen("p", "ann"), seen("p", "ann"), seen("p", "bob")]).await;
    site.clock("2026-01-02T00:30:00Z").await;
    site.add(&board, vec![seen("p", "ann"), seen("p", "bob").at("2026-01-01T23:00:00Z")]).await;
    let board = site.store.board(board.name()).await.unwrap().unwrap();
    let mut scores = Vec::new();
    for track in board.each_track() {
        scores.push(site.value(&track, "p").await);
        site.audit(&track).await;
    }
    assert_eq!(scores, [exact(1), exact(2)]);
}

/// A count beyond what a counter can hold is refused, in all tracks.
pub async fn a_count_out_of_range_is_refused(site: Site) {
    let board = site.define("b", &days(1_000_000)).await;
    let import = ImportId(9);
    site.store.begin_import(&board, import).await.unwrap();
    let day = t("2026-01-01T00:00:00Z");
    let most = DayCount { day, person: "ann", count: DayCount::MOST };
    let contents = vec![(subject("p"), Content::Value { value: most.text(), at: most.at(), retracted: false })];
    let merged =
        site.store.merge(&board.main(), import, &Piece { number: 1, contents, events: Vec::new() }).await.unwrap();
    assert_eq!(merged.merged, 1);
    site.store.end_import(&board, import).await.unwrap();
    let refused = Outcome::Rejected(Rejection::OutOfRange);
    assert_eq!(site.add(&board, vec![seen("p", "ann"), seen("p", "bob")]).await, [refused, COUNTED]);
    assert_eq!(site.value(&board, "p").await, exact(1_000_001));
    site.audit(&board).await;
}

/// With many persons the counters of a subject are read in several steps.
pub async fn a_subject_with_many_persons_is_walked_and_removed(site: Site) {
    let board = site.define("b", &Definition { windows: vec!["all".parse().unwrap()], ..days(1) }).await;
    let likes: Vec<_> = (0..4_000).map(|nth| seen("p", &format!("u{nth}"))).collect();
    for some in likes.chunks(500) {
        site.count(&board, some.to_vec()).await;
    }
    assert_eq!(counters(&site, &board).await.len(), 8_000);
    assert_eq!(site.value(&board, "p").await, exact(4_000));
    site.clock("2026-01-04T00:00:00Z").await;
    assert_eq!(site.value(&board, "p").await, exact(0));
    site.count(&board, vec![seen("p", "u1")]).await;
    site.audit(&board).await;
    site.store.remove(&board, &Subject::parse("p").unwrap()).await.unwrap();
    assert_eq!(counters(&site, &board).await, []);
}
