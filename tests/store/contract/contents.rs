//! Tests of walks over contents: they are complete, have nothing twice, and nothing that has expired.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rolltop::board::{Aggregate, Amount, Board, BoardTrack, Definition, Kind as Metric, Mode, Subject, Timestamp};
use rolltop::store::{Batch, Content, ContentsCursor, ContentsStep, Increment, Outcome, StoreError};

use crate::carrying::{Contents, every_definition, history, once, takes_samples, walk};
use crate::given::{With, definition, plus, sample, seen, subject, t, unranked, value};
use crate::site::{COUNTED, Kind, START, Site};

const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";

async fn walk_of(site: &Site, track: &BoardTrack) -> Contents {
    walk(&[site.store.clone(), site.other.clone()], track).await.unwrap_or_else(|what| panic!("{what}"))
}

fn cell(who: &str, slot: &str, aggregate: Aggregate) -> (Subject, Content) {
    (subject(who), Content::Cell { slot: t(slot), aggregate })
}

fn sighting(who: &str, what: &str, at: &str, retracted: bool) -> (Subject, Content) {
    (subject(who), Content::Value { value: value(what), at: t(at), retracted })
}

/// The oracle with the same boards, which gets the same items.
struct Beside {
    site: Site,
    boards: Vec<Arc<Board>>,
}

impl Beside {
    async fn of(definitions: &[Definition]) -> Beside {
        let site = Site::new(Kind::Oracle).await;
        let mut boards = Vec::new();
        for (nth, definition) in definitions.iter().enumerate() {
            boards.push(site.define(&format!("b{nth}"), definition).await);
        }
        Beside { site, boards }
    }

    /// Walks over each track of a board on both sides, which must return the same.
    async fn compare(&self, site: &Site, nth: usize, board: &Arc<Board>) {
        for (track, right) in board.each_track().zip(self.boards[nth].each_track()) {
            let (found, expected) = (walk_of(site, &track).await, walk_of(&self.site, &right).await);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{:?}", track.board().definition());
            }
            assert_eq!(found.len(), expected.len(), "{:?}", track.board().definition());
        }
    }
}

pub async fn a_walk_returns_the_contents_of_every_kind_of_board(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let mut definitions = every_definition();
    definitions.push(Definition { mode: Mode::FromFirst, ..unranked("SUM(3h, sale, amount, seller)", "1h") });
    definitions.push(Definition { max_values: Some(3), ..definition("COUNT_DISTINCT(3h, login, device, user)", "1h") });
    definitions.push(Definition { max_values: Some(2), ..unranked("COUNT_DISTINCT(3h, login, device, user)", "1h") });
    let beside = Beside::of(&definitions).await;
    let mut boards = Vec::new();
    for (nth, definition) in definitions.iter().enumerate() {
        boards.push(site.define(&format!("b{nth}"), definition).await);
    }
    for now in [START, "2026-01-01T10:45:00Z", "2026-01-01T12:10:00Z"] {
        site.clock(now).await;
        beside.site.clock(now).await;
        for (nth, board) in boards.iter().enumerate() {
            let mut items = history(&mut rng, board, 120, t(now));
            if takes_samples(board) {
                items.push(sample("s1", 77, now).at_time(t(now).plus_millis(-1)));
            }
            let outcomes = site.add(board, items.clone()).await;
            assert_eq!(outcomes, beside.site.add(&beside.boards[nth], items).await, "{:?}", definitions[nth]);
            // While slots are retiring, and when they are gone.
            beside.compare(&site, nth, board).await;
            for track in board.each_track() {
                site.retire(&track).await;
            }
            beside.compare(&site, nth, board).await;
        }
    }
    // Everything of a window has expired at once.
    site.clock("2026-03-01T00:00:00Z").await;
    beside.site.clock("2026-03-01T00:00:00Z").await;
    for (nth, board) in boards.iter().enumerate() {
        beside.compare(&site, nth, board).await;
    }
}

pub async fn a_walk_returns_what_was_counted_in_its_form(site: Site) {
    let at = |slot: &str| format!("2026-01-01T{slot}:00:00Z");
    let mean = Definition {
        decimals: rolltop::board::Decimals::new(2).unwrap(),
        ..definition("AVG(3h, load, value, host)", "1h")
    };
    let mean = site.define("mean", &mean).await;
    site.count(&mean, vec![plus("a", 250).at(SEVEN), plus("a", -100).at(SEVEN), plus("b", 0).at(NINE)]).await;
    let expected = [
        cell("a", &at("07"), Aggregate::Mean { sum: Amount(150), count: 2 }),
        cell("b", &at("09"), Aggregate::Mean { sum: Amount(0), count: 1 }),
    ];
    assert_eq!(walk_of(&site, &mean.main()).await, expected);
    let last = site.define("last", &unranked("LAST(3h, rating, elo, player)", "1h")).await;
    site.count(&last, vec![plus("a", 5).at(EIGHT), plus("a", 4).at("2026-01-01T08:05:00Z")]).await;
    let newest = Aggregate::Last { at: t(EIGHT), value: Amount(5) };
    assert_eq!(walk_of(&site, &last.main()).await, [cell("a", &at("08"), newest)]);
    let distinct = Definition { max_values: Some(1), ..definition("COUNT_DISTINCT(3h, login, device, user)", "1h") };
    let distinct = site.define("distinct", &distinct).await;
    site.count(&distinct, vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(NINE)]).await;
    site.count(&distinct, vec![seen("e", "u1").at(EIGHT), seen("e", "u1").at(NINE).undone()]).await;
    let expected = [
        sighting("d", "u2", NINE, false),
        (subject("d"), Content::Dropped { at: t(SEVEN) }),
        sighting("e", "u1", NINE, true),
    ];
    assert_eq!(walk_of(&site, &distinct.main()).await, expected);
    let sum = site.define("sum", &definition("SUM(3h, sale, amount, seller)", "1h")).await;
    site.count(&sum, vec![plus("a", 5).at(SEVEN), plus("a", -5).at(SEVEN), plus("a", -3).at(EIGHT)]).await;
    assert_eq!(walk_of(&site, &sum.main()).await, [cell("a", &at("08"), Aggregate::Sum(Amount(-3)))]);
}

pub async fn an_empty_board_has_no_contents(site: Site) {
    for board in site.both("SUM(3h, sale, amount, seller)", "1h").await {
        assert_eq!(walk_of(&site, &board.main()).await, []);
        site.count(&board, vec![plus("a", 5)]).await;
        site.store.remove(&board, &subject("a")).await.unwrap();
        assert_eq!(walk_of(&site, &board.main()).await, []);
        assert!(site.store.undefine(&board).await.unwrap());
        let gone = site.store.contents_step(&board.main(), ContentsCursor::default()).await;
        assert!(matches!(gone, Err(StoreError::BoardChanged)), "{gone:?}");
    }
}

/// Returns an item of each of this many subjects, of the form that the board takes.
fn crowd(board: &Board, subjects: usize, at: &str) -> Vec<Increment> {
    let of = |nth: usize| match board.kind() {
        Metric::Distinct | Metric::Sketch => seen(&format!("c{nth:05}"), &format!("v{}", nth % 90)),
        _ => plus(&format!("c{nth:05}"), 1 + nth as i64 % 90),
    };
    (0..subjects).map(|nth| of(nth).at(at)).collect()
}

async fn add_crowd(site: &Site, board: &Arc<Board>, subjects: usize, at: &str) {
    let increments = crowd(board, subjects, at);
    let added = site.store.add(board, Batch { increments, return_scores: false }).await.unwrap();
    assert!(added.outcomes.iter().all(|outcome| *outcome == COUNTED));
}

/// Defines boards of several kinds, ranked and not.
async fn crowded(site: &Site) -> Vec<Arc<Board>> {
    let mut boards = Vec::new();
    let metrics = [
        "SUM(3h, sale, amount, seller)",
        "LAST(3h, rating, elo, player)",
        "COUNT_DISTINCT(3h, login, device, user)",
        "APPROX_COUNT_DISTINCT(3h, login, device, user)",
    ];
    for (nth, metric) in metrics.into_iter().enumerate() {
        boards.push(site.define(&format!("ranked{nth}"), &definition(metric, "1h")).await);
        boards.push(site.define(&format!("unranked{nth}"), &unranked(metric, "1h")).await);
    }
    boards
}

/// Makes steps of a walk from a cursor to the end.
async fn rest(site: &Site, track: &BoardTrack, mut cursor: Option<ContentsCursor>, contents: &mut Contents) {
    while let Some(from) = cursor {
        let step = site.store.contents_step(track, from).await.unwrap();
        contents.extend(step.contents);
        cursor = step.next;
    }
}

pub async fn a_walk_over_thousands_of_subjects_takes_bounded_steps(site: Site) {
    for board in crowded(&site).await {
        add_crowd(&site, &board, 5_000, SEVEN).await;
        add_crowd(&site, &board, 700, NINE).await;
        let (mut contents, mut cursor, mut steps) = (Vec::new(), Some(ContentsCursor::default()), 0);
        while let Some(from) = cursor {
            let step = site.store.contents_step(&board.main(), from).await.unwrap();
            if !matches!(site.kind, Kind::Oracle) {
                assert!(step.contents.len() <= 4_000, "{} in a step", step.contents.len());
                steps += 1;
            }
            contents.extend(step.contents);
            cursor = step.next;
        }
        assert_ne!(steps, 1, "{}", board.name());
        let contents = once(contents).unwrap();
        let expected = if board.kind() == Metric::Distinct { 5_000 } else { 5_700 };
        assert_eq!(contents.len(), expected, "{}", board.name());
        let all: HashSet<&Subject> = contents.iter().map(|(who, _)| who).collect();
        assert_eq!(all.len(), 5_000, "{}", board.name());
    }
}

pub async fn a_subject_with_thousands_of_values_is_returned_in_steps(site: Site) {
    for board in site.both("COUNT_DISTINCT(3h, login, device, user)", "1h").await {
        let times = [SEVEN, EIGHT, NINE];
        let values: Vec<Increment> = (0..3_000).map(|nth| seen("d", &format!("v{nth}")).at(times[nth % 3])).collect();
        site.count(&board, values).await;
        let gone: Vec<Increment> =
            (0..3_000).step_by(5).map(|nth| seen("d", &format!("v{nth}")).at(NINE).undone()).collect();
        site.count(&board, gone).await;
        site.count(&board, vec![seen("e", "v1"), seen("c", "v1")]).await;
        let contents = walk_of(&site, &board.main()).await;
        assert_eq!(contents.len(), 3_002);
        for (who, content) in contents.iter().filter(|(who, _)| who.as_str() == "d") {
            let Content::Value { value, at, retracted } = content else { panic!("{who} has {content:?}") };
            let nth: usize = value.as_str()[1..].parse().unwrap();
            let expected = if nth.is_multiple_of(5) { (t(NINE), true) } else { (t(times[nth % 3]), false) };
            assert_eq!((*at, *retracted), expected, "{value}");
        }
    }
}

/// Returns the numbers of items of slots from this one on.
fn events_from(floor: Timestamp, events: &[(Timestamp, u64)]) -> Vec<(Timestamp, u64)> {
    events.iter().copied().filter(|(slot, _)| *slot >= floor).collect()
}

/// Walks over a crowded board whose oldest slot expires after the first step. Returns the contents of live slots, and
/// whether the numbers say that each of them was returned once.
async fn walk_through_rollover(site: &Site, board: &Arc<Board>) -> (Contents, bool) {
    let track = board.main();
    let before = site.store.status(&track).await.unwrap();
    let ContentsStep { mut contents, next, .. } =
        site.store.contents_step(&track, ContentsCursor::default()).await.unwrap();
    let mut cursor = next;
    site.clock("2026-01-01T10:00:00Z").await;
    for retire in [false, true] {
        if retire {
            site.retire(&track).await;
        }
        if let Some(from) = cursor.take() {
            let step = site.other.contents_step(&track, from).await.unwrap();
            contents.extend(step.contents);
            cursor = step.next;
        }
    }
    rest(site, &track, cursor, &mut contents).await;
    let after = site.store.status(&track).await.unwrap();
    let floor = after.frame.window.floor;
    // What has expired in the meantime may have been returned before.
    contents.retain(|(_, content)| match content {
        Content::Cell { slot, .. } => *slot >= floor,
        Content::Value { at, .. } => *at >= floor,
        other => panic!("{other:?}"),
    });
    assert_eq!(events_from(floor, &before.events), events_from(floor, &after.events), "{}", board.name());
    (contents, before.upheavals == after.upheavals)
}

pub async fn a_walk_through_rollover_and_retiring_returns_everything_once(site: Site) {
    for nth in 0..8 {
        let site = Site::new(site.kind.clone()).await;
        let board = crowded(&site).await.swap_remove(nth);
        // Each subject has something in the slot that expires, and in one that stays.
        add_crowd(&site, &board, 3_000, SEVEN).await;
        let other = |item: Increment| Increment { change: seen("c", "other").change, ..item };
        let later = match board.kind() {
            Metric::Distinct => crowd(&board, 3_000, EIGHT).into_iter().map(other).collect(),
            _ => crowd(&board, 3_000, EIGHT),
        };
        site.count(&board, later).await;
        let (contents, is_exact) = walk_through_rollover(&site, &board).await;
        assert!(is_exact, "{}", board.name());
        assert_eq!(once(contents).unwrap().len(), 3_000, "{}", board.name());
    }
}

pub async fn subjects_that_stay_are_returned_while_others_expire(site: Site) {
    for nth in 0..8 {
        let site = Site::new(site.kind.clone()).await;
        let board = crowded(&site).await.swap_remove(nth);
        // Nine of ten subjects have nothing left after the rollover, so a store may move the others.
        add_crowd(&site, &board, 4_000, SEVEN).await;
        let of_all = crowd(&board, 4_000, EIGHT);
        site.count(&board, of_all.into_iter().step_by(10).collect()).await;
        let (contents, is_exact) = walk_through_rollover(&site, &board).await;
        let found: HashSet<&Subject> = contents.iter().map(|(who, _)| who).collect();
        assert_eq!(found.len(), 400, "{}", board.name());
        if is_exact {
            assert_eq!(contents.len(), 400, "{}", board.name());
        }
    }
}

pub async fn changes_during_a_walk_are_recognized(site: Site) {
    for metric in ["SUM(3h, sale, amount, seller)", "COUNT_DISTINCT(3h, login, device, user)"] {
        for board in site.both(metric, "1h").await {
            let track = board.main();
            let item = |who: &str| crowd(&board, 1, NINE).pop().map(|item| Increment { subject: subject(who), ..item });
            site.count(&board, ["a", "b"].iter().filter_map(|who| item(who)).collect()).await;
            let numbers = async || {
                let status = site.other.status(&track).await.unwrap();
                (status.events, status.upheavals)
            };
            let start = numbers().await;
            site.store.page(&track, 0, 10).await.ok();
            walk_of(&site, &track).await;
            site.retire(&track).await;
            site.clock_at(site.store.now().await.unwrap().plus_millis(1)).await;
            assert_eq!(numbers().await, start, "{metric}");
            let mut seen_before = vec![start];
            let mut changes = vec![item("a").unwrap(), item("a").unwrap().undone()];
            if takes_samples(&board) {
                changes.push(sample("a", 7, NINE));
            }
            for change in changes {
                assert_eq!(site.add(&board, vec![change.clone()]).await, [COUNTED]);
                let now = numbers().await;
                assert!(!seen_before.contains(&now), "{change:?} is not recognized");
                seen_before.push(now);
            }
            site.store.remove(&board, &subject("b")).await.unwrap();
            assert!(!seen_before.contains(&numbers().await), "a removal is not recognized");
            assert!(site.store.undefine(&board).await.unwrap());
        }
    }
}

pub async fn what_stays_is_returned_while_other_subjects_change(site: Site) {
    for board in crowded(&site).await {
        let track = board.main();
        add_crowd(&site, &board, 4_000, NINE).await;
        let mut contents = Vec::new();
        let mut cursor = Some(ContentsCursor::default());
        let mut round = 0;
        while let Some(from) = cursor {
            let step = site.store.contents_step(&track, from).await.unwrap();
            contents.extend(step.contents);
            cursor = step.next;
            // Every tenth subject is removed or changed, and new ones come.
            let who = |nth: usize| subject(&format!("c{:05}", (nth * 10) % 4_000));
            for nth in round * 40..(round + 1) * 40 {
                if nth % 2 == 0 {
                    site.other.remove(&board, &who(nth)).await.unwrap();
                }
            }
            let changed = crowd(&board, 4_000, START).into_iter().step_by(10).skip(round * 40).take(40);
            let new = crowd(&board, 30, START)
                .into_iter()
                .enumerate()
                .map(|(nth, item)| Increment { subject: subject(&format!("new{round}-{nth}")), ..item });
            let increments = changed.chain(new).collect();
            let added = site.store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
            assert!(added.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })));
            round += 1;
        }
        let unchanged: HashMap<String, Content> = contents
            .into_iter()
            .map(|(who, content)| (who.as_str().to_owned(), content))
            .filter(|(who, _)| who.starts_with('c') && !who.ends_with('0'))
            .collect();
        assert_eq!(unchanged.len(), 3_600, "{}", board.name());
    }
}

pub async fn a_cursor_of_another_track_is_harmless(site: Site) {
    let boards = crowded(&site).await;
    let mut cursors = Vec::new();
    for board in &boards {
        add_crowd(&site, board, 2_500, SEVEN).await;
        site.count(board, crowd(board, 300, NINE)).await;
        let mut cursor = Some(ContentsCursor::default());
        while let Some(from) = cursor {
            cursor = site.store.contents_step(&board.main(), from).await.unwrap().next;
            cursors.extend(cursor.clone());
        }
    }
    for board in &boards {
        for cursor in cursors.iter().step_by(3) {
            // An error, or contents of the board.
            let Ok(step) = site.store.contents_step(&board.main(), cursor.clone()).await else { continue };
            for (who, content) in step.contents {
                let is_of_board = matches!(content, Content::Value { .. }) == (board.kind() == Metric::Distinct);
                assert!(who.as_str().starts_with('c') && is_of_board, "{who} {content:?} from {cursor:?}");
            }
        }
        let expected = if board.kind() == Metric::Distinct { 2_500 } else { 2_800 };
        assert_eq!(walk_of(&site, &board.main()).await.len(), expected, "{}", board.name());
    }
}
