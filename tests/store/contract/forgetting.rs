//! Tests of values that are forgotten: nothing of them stays, in any track or edition.

use std::sync::Arc;

use rolltop::board::{Board, BoardTrack, Change, Definition, ModerationChange};
use rolltop::store::{Content, ContentsCursor, ImportId, Increment, Outcome, Rejection};

use super::editions::{exchange, pair, twice};
use crate::given::{With, definition, exact, plus, seen, subject, unranked, value};
use crate::site::{COUNTED, Site};

const METRIC: &str = "COUNT_DISTINCT(3h, like, post, user)";
const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";

fn forget(board: &Board, who: &str, what: &str) -> Increment {
    Increment::forgetting(board, subject(who), value(what))
}

/// Returns the values that a walk over a track meets, those taken back too, in the order of their bytes.
async fn stored(site: &Site, track: &BoardTrack) -> Vec<String> {
    let (mut values, mut cursor) = (Vec::new(), Some(ContentsCursor::default()));
    while let Some(at) = cursor {
        let step = site.other.contents_step(track, at).await.unwrap();
        values.extend(step.contents.into_iter().filter_map(|(_, content)| match content {
            Content::Value { value, .. } => Some(value.as_str().to_owned()),
            _ => None,
        }));
        cursor = step.next;
    }
    values.sort();
    values.dedup();
    values
}

fn several_windows() -> Definition {
    let windows = ["all", "2h/30m"].map(|window| window.parse().unwrap());
    Definition { windows: windows.to_vec(), ..definition(METRIC, "1h") }
}

pub async fn a_forgotten_value_leaves_all_tracks_without_a_tombstone(site: Site) {
    let capped = Definition { max_values: Some(3), ..definition(METRIC, "1h") };
    let all = [definition(METRIC, "1h"), unranked(METRIC, "1h"), capped, several_windows()];
    // The shortest window does not reach back to the first.
    let left = |track: &BoardTrack| if track.number() == 2 { vec!["cy"] } else { vec!["bob", "cy"] };
    let mut boards: Vec<Arc<Board>> = Vec::new();
    for (nth, definition) in all.iter().enumerate() {
        boards.push(site.define(&format!("b{nth}"), definition).await);
    }
    for board in &boards {
        let likes = [seen("p", "ann").at(SEVEN), seen("p", "bob").at(SEVEN), seen("p", "cy"), seen("q", "ann")];
        site.count(board, likes.to_vec()).await;
        // The value that was taken back has a tombstone.
        site.count(board, vec![seen("r", "ann").at(EIGHT), seen("r", "ann").at(EIGHT).undone()]).await;
        let names = ["p", "q", "r", "nobody"];
        site.count(board, names.map(|who| forget(board, who, "ann")).to_vec()).await;
        // Again, and one that nobody was seen with.
        site.count(board, vec![forget(board, "p", "ann"), forget(board, "p", "dan")]).await;
        assert_eq!((site.value(board, "p").await, site.value(board, "q").await), (exact(2), exact(0)));
        for track in board.each_track() {
            assert_eq!(stored(&site, &track).await, left(&track), "track {}", track.number());
            site.audit(&track).await;
        }
    }
    let site = site.reopened().await;
    for board in &boards {
        for track in board.each_track() {
            assert_eq!(stored(&site, &track).await, left(&track), "track {}", track.number());
        }
        // No tombstone is in the way of what is sent late.
        site.count(board, vec![seen("r", "ann").at(SEVEN), seen("p", "ann").at(SEVEN)]).await;
        assert_eq!((site.value(board, "p").await, site.value(board, "r").await), (exact(3), exact(1)));
        site.audit(board).await;
    }
    // The slots expire as those of boards that never had it.
    site.clock("2026-01-01T10:30:00Z").await;
    for board in &boards {
        assert_eq!((site.value(board, "p").await, site.value(board, "q").await), (exact(1), exact(0)));
        site.audit(board).await;
    }
}

pub async fn values_of_expired_slots_are_forgotten_without_being_subtracted_twice(site: Site) {
    let board = site.define("b", &several_windows()).await;
    site.count(&board, vec![seen("p", "ann").at(SEVEN), seen("p", "bob").at(SEVEN), seen("p", "cy")]).await;
    site.clock("2026-01-01T10:05:00Z").await;
    site.count(&board, vec![forget(&board, "p", "ann")]).await;
    let scores = [1, 2, 1];
    for (track, score) in board.each_track().zip(scores) {
        assert_eq!(site.value(&track, "p").await, exact(score), "track {}", track.number());
        site.audit(&track).await;
    }
}

pub async fn values_of_frozen_subjects_are_forgotten_and_not_while_an_import_is_open(site: Site) {
    let board = site.board(METRIC, "1h").await;
    site.count(&board, vec![seen("p", "ann"), seen("p", "bob"), seen("q", "ann")]).await;
    site.store.moderate(&board, &[(subject("p"), ModerationChange::Frozen(true))]).await.unwrap();
    let frozen = Outcome::Rejected(Rejection::SubjectFrozen);
    assert_eq!(site.add(&board, vec![seen("p", "dan"), forget(&board, "p", "ann")]).await, [frozen, COUNTED]);
    assert_eq!(site.value(&board, "p").await, exact(1));
    site.store.begin_import(&board, ImportId(7)).await.unwrap();
    let importing = Outcome::Rejected(Rejection::ImportOpen);
    assert_eq!(site.add(&board, vec![forget(&board, "q", "ann"), seen("q", "bob")]).await, [importing, COUNTED]);
    assert_eq!(site.value(&board, "q").await, exact(2));
}

pub async fn a_value_is_forgotten_in_each_edition_that_stores_values(site: Site) {
    let (likes, people) = (definition("COUNT(3h, like, post)", "1h"), definition(METRIC, "1h"));
    let board = pair(&site, &people, &definition(&METRIC.replace("3h", "6h"), "2h")).await;
    site.count(&board, vec![twice(seen("p", "ann").at(SEVEN)), twice(seen("p", "bob"))]).await;
    site.count(&board, vec![forget(&board, "p", "ann")]).await;
    for track in board.each_track() {
        assert_eq!(stored(&site, &track).await, ["bob"]);
        assert_eq!(site.value(&track, "p").await, exact(1));
    }
    let board = {
        let board = site.define("other", &likes).await;
        super::editions::attach(&site, &board, &people).await
    };
    let item = Increment { other: Some(Box::new(Change::Seen(value("ann")))), ..plus("p", 1) };
    site.count(&board, vec![item]).await;
    site.count(&board, vec![forget(&board, "p", "ann")]).await;
    // An event for one of them only is not noted: nothing is missing.
    let dual = site.store.dual_run(&board).await.unwrap();
    assert!(dual.not_counted.iter().all(|counts| counts.iter().all(|(_, items)| *items == 0)), "{dual:?}");
    let second = board.each_track().nth(1).unwrap();
    assert_eq!((site.value(&board, "p").await, site.value(&second, "p").await), (exact(1), exact(0)));
    // Through a handle from before the exchange.
    let present = exchange(&site, &board).await;
    let item = Increment { other: Some(Box::new(plus("p", 1).change)), ..seen("p", "ann") };
    site.count(&present, vec![item]).await;
    site.count(&board, vec![forget(&board, "p", "ann")]).await;
    assert_eq!(stored(&site, &present.main()).await, Vec::<String>::new());
}

pub async fn a_value_is_forgotten_in_a_period_that_has_ended_and_still_takes_items(site: Site) {
    let season = r#"{"metric":"COUNT_DISTINCT(all, like, post, user)","season":{"every":"1d","grace":"2h"}}"#;
    let board = site.define("b", &serde_json::from_str(season).unwrap()).await;
    site.count(&board, vec![seen("p", "ann"), seen("p", "bob")]).await;
    site.clock("2026-01-02T00:30:00Z").await;
    site.add(&board, vec![seen("p", "ann")]).await;
    let board = site.store.board(board.name()).await.unwrap().unwrap();
    site.count(&board, vec![forget(&board, "p", "ann")]).await;
    let mut left = Vec::new();
    for track in board.each_track() {
        left.push((stored(&site, &track).await, site.value(&track, "p").await));
    }
    assert_eq!(left, [(vec![], exact(0)), (vec!["bob".to_owned()], exact(1))]);
}

/// Tests that a fill, which reads what a subject has before it gives it, does not give what was forgotten in between.
pub async fn a_fill_does_not_give_a_value_that_is_forgotten_meanwhile(site: Site) {
    let alone = site.board(METRIC, "1h").await;
    let names: Vec<String> = (0..150).map(|nth| format!("p{nth}")).collect();
    let likes = |user: &'static str| names.iter().map(|post| seen(post, user)).collect();
    site.count(&alone, likes("ann")).await;
    site.count(&alone, likes("bob")).await;
    let board = super::editions::attach(&site, &alone, &definition(&METRIC.replace("3h", "6h"), "2h")).await;
    let tracks: Vec<BoardTrack> = board.each_track().collect();
    let head = tracks[0].window_at(site.store.now().await.unwrap()).head;
    for post in &names {
        let cells = [(subject(post), head)];
        let fill = site.other.fill(&tracks[0], &tracks[1], &cells);
        let ((), filled) = tokio::join!(site.count(&board, vec![forget(&board, post, "ann")]), fill);
        filled.unwrap();
    }
    for track in &tracks {
        assert_eq!(stored(&site, track).await, ["bob"], "track {}", track.number());
        site.audit(track).await;
    }
}
