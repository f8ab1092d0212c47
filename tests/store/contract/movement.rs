//! Tests of the ranks at the newest boundary.

use std::sync::Arc;

use rolltop::board::{Board, BoardTrack, Definition, EarlierRank, ModerationChange, Movement, Order, Visibility};
use rolltop::store::Increment;

use super::editions::{attach, exchange, twice};
use crate::given::{OnTrack, definition, plus, seen, subject};
use crate::site::Site;

/// A definition whose lines show the ranks at the beginning of the hour.
fn hourly(metric: &str, slot: &str) -> Definition {
    moving(definition(metric, slot), Movement::Hour)
}

fn all_time(metric: &str) -> Definition {
    moving(Definition::without_slots(metric.parse().unwrap()), Movement::Hour)
}

fn moving(definition: Definition, movement: Movement) -> Definition {
    Definition { movement: Some(movement), ..definition }
}

/// Defines a board, and makes a call about each of its tracks, so that they note their ranks from the next boundary on.
async fn defined(site: &Site, name: &str, definition: &Definition) -> Arc<Board> {
    let board = site.define(name, definition).await;
    for track in board.each_track() {
        site.store.status(&track).await.unwrap();
    }
    board
}

/// Returns the ranks at the newest boundary, as `10:00 a1 b2 c2`. A subject without a name is `?`.
async fn then(site: &Site, track: &impl OnTrack) -> String {
    let ranks = site.other.earlier_ranks(&track.track()).await.unwrap().expect("a track with boundaries");
    let mut text = ranks.at().to_string()[11..16].to_owned();
    let Some(lines) = ranks.lines() else { return text + " unknown" };
    for EarlierRank { rank, subject } in lines {
        if let Some(subject) = subject {
            assert_eq!(ranks.rank_of(subject), Some(*rank));
        }
        text += &format!(" {}{rank}", subject.as_ref().map_or("?", |subject| subject.as_str()));
    }
    text
}

/// Returns the lines of a whole ranking as [`then`] does.
async fn now(site: &Site, track: &impl OnTrack) -> String {
    let page = site.store.page(&track.track(), 0, 1_000).await.unwrap();
    page.items.iter().map(|line| format!(" {}{}", line.subject, line.rank)).collect()
}

/// Amounts in the form that most writes have: many subjects, no ids, no score wanted.
async fn count(site: &Site, board: &Arc<Board>, amounts: &[(&str, i64)]) {
    site.count(board, amounts.iter().map(|(who, amount)| plus(who, *amount)).collect()).await;
}

pub async fn ranks_at_the_newest_boundary_are_noted(site: Site) {
    for (name, metric, order) in [
        ("sums", "SUM(3h, e, v, s)", Order::Desc),
        ("best", "MIN(3h, e, v, s)", Order::Asc),
        ("means", "AVG(3h, e, v, s)", Order::Desc),
        ("latest", "LAST(3h, e, v, s)", Order::Asc),
    ] {
        let board = defined(&site, name, &Definition { order, ..hourly(metric, "1h") }).await;
        count(&site, &board, &[("a", 4), ("b", 2), ("c", 2), ("d", 1)]).await;
    }
    let distinct = defined(&site, "distinct", &hourly("COUNT_DISTINCT(3h, e, s, v)", "1h")).await;
    site.count(&distinct, vec![seen("a", "1"), seen("a", "2"), seen("b", "1"), seen("c", "1")]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    for name in ["sums", "best", "means", "latest", "distinct"] {
        let board = site.store.board(&crate::given::name(name)).await.unwrap().unwrap();
        let before = now(&site, &board).await;
        let change = if name == "distinct" { seen("x", "1") } else { plus("x", 3) };
        site.count(&board, vec![change]).await;
        assert_eq!(then(&site, &board).await, format!("10:00{before}"), "{name}");
        assert_ne!(now(&site, &board).await, before, "{name}");
    }
}

pub async fn the_first_call_after_a_boundary_notes_the_ranks_before_it_writes(site: Site) {
    let total = defined(&site, "total", &all_time("SUM(all, e, v, s)")).await;
    let slots = defined(&site, "slots", &hourly("SUM(2h, e, v, s)", "1h")).await;
    for board in [&total, &slots] {
        assert_eq!(then(&site, board).await, "09:00 unknown");
        count(&site, board, &[("a", 5), ("b", 3)]).await;
        count(&site, board, &[("a", 1), ("b", 1)]).await;
    }
    site.clock("2026-01-01T10:20:00Z").await;
    for board in [&total, &slots] {
        count(&site, board, &[("b", 9), ("c", 100)]).await;
        assert_eq!(then(&site, board).await, "10:00 a1 b2");
        count(&site, board, &[("b", 9), ("c", 100)]).await;
        site.clock("2026-01-01T10:59:59.999Z").await;
        assert_eq!(then(&site, board).await, "10:00 a1 b2");
    }
    // Each kind of call may be the first one.
    site.clock("2026-01-01T11:00:00Z").await;
    site.store.lookup(&total.main(), &[subject("a")], true).await.unwrap();
    site.store.retire_step(&slots.main()).await.unwrap();
    for board in [&total, &slots] {
        count(&site, board, &[("d", 1_000)]).await;
        assert_eq!(then(&site, board).await, "11:00 c1 b2 a3");
    }
    site.retire(&slots).await;
    site.clock("2026-01-01T12:00:00Z").await;
    for board in [&total, &slots] {
        site.store.remove(board, &subject("d")).await.unwrap();
    }
    assert_eq!(then(&site, &total).await, "12:00 ?1 c2 b3 a4");
    // What was counted before 10:00 has left the window.
    assert_eq!(then(&site, &slots).await, "12:00 ?1 c2 b3");
}

pub async fn over_all_time_ranks_are_those_at_the_newest_of_several_boundaries(site: Site) {
    let board = defined(&site, "board", &all_time("SUM(all, e, v, s)")).await;
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    site.clock("2026-01-03T17:45:00Z").await;
    count(&site, &board, &[("b", 3)]).await;
    assert_eq!(then(&site, &board).await, "17:00 a1 b2");
    site.clock("2026-01-03T19:45:00Z").await;
    assert_eq!(then(&site, &board).await, "19:00 b1 a2");
}

pub async fn ranks_are_unknown_if_the_head_did_not_come_from_the_slot_before(site: Site) {
    let board = defined(&site, "board", &hourly("SUM(3h, e, v, s)", "1h")).await;
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    site.clock("2026-01-01T11:00:00Z").await;
    assert_eq!(then(&site, &board).await, "11:00 unknown");
    site.clock("2026-01-01T11:59:00Z").await;
    count(&site, &board, &[("b", 3)]).await;
    assert_eq!(then(&site, &board).await, "11:00 unknown");
    site.retire(&board).await;
    site.clock("2026-01-01T12:10:00Z").await;
    assert_eq!(then(&site, &board).await, "12:00 b1 a2");
}

pub async fn ranks_stay_until_the_next_boundary(site: Site) {
    let board = defined(&site, "board", &hourly("SUM(1h, e, v, s)", "10m")).await;
    site.clock("2026-01-01T09:50:00Z").await;
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    site.retire(&board).await;
    for minute in 0..6 {
        site.clock(&format!("2026-01-01T10:{minute}5:00Z")).await;
        count(&site, &board, &[("b", 3)]).await;
        site.retire(&board).await;
        assert_eq!(then(&site, &board).await, "10:00 a1 b2");
    }
    site.clock("2026-01-01T11:09:00Z").await;
    assert_eq!(then(&site, &board).await, "11:00 b1");
    // The slot of the boundary, 12:00, was passed between two calls.
    site.clock("2026-01-01T11:59:00Z").await;
    site.retire(&board).await;
    site.clock("2026-01-01T12:11:00Z").await;
    assert_eq!(then(&site, &board).await, "12:00 unknown");
}

pub async fn a_window_of_one_slot_has_the_ranks_of_the_slot_before(site: Site) {
    let board = defined(&site, "board", &hourly("SUM(1h, e, v, s)", "1h")).await;
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(then(&site, &board).await, "10:00 a1 b2");
    assert_eq!(now(&site, &board).await, "");
    site.clock("2026-01-01T11:00:00Z").await;
    assert_eq!(then(&site, &board).await, "11:00");
}

pub async fn ranks_are_unknown_while_a_slot_retires(site: Site) {
    let board = defined(&site, "board", &hourly("SUM(2h, e, v, s)", "1h")).await;
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    count(&site, &board, &[("b", 1)]).await;
    site.retire(&board).await;
    site.clock("2026-01-01T11:00:00Z").await;
    assert_eq!(then(&site, &board).await, "11:00 a1 b2");
    // The slot of 09:00 is not subtracted.
    count(&site, &board, &[("c", 1)]).await;
    site.clock("2026-01-01T12:00:00Z").await;
    assert_eq!(then(&site, &board).await, "12:00 unknown");
    site.retire(&board).await;
    site.clock("2026-01-01T13:00:00Z").await;
    assert_eq!(then(&site, &board).await, "13:00 c1");
}

pub async fn only_the_first_thousand_lines_have_ranks(site: Site) {
    for (name, order) in [("desc", Order::Desc), ("asc", Order::Asc)] {
        let board = defined(&site, name, &Definition { order, ..hourly("SUM(3h, e, v, s)", "1h") }).await;
        // Pairs of one score.
        let items: Vec<Increment> = (0..1_201).map(|n| plus(&format!("s{n:04}"), 1 + n / 2)).collect();
        for some in items.chunks(400) {
            site.count(&board, some.to_vec()).await;
        }
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for name in ["desc", "asc"] {
        let board = site.store.board(&crate::given::name(name)).await.unwrap().unwrap();
        let page = site.store.page(&board.main(), 0, 1_000).await.unwrap();
        let ranks = site.store.earlier_ranks(&board.main()).await.unwrap().unwrap();
        assert_eq!(ranks.lines().unwrap().len(), 1_000);
        for line in &page.items {
            assert_eq!(ranks.rank_of(&line.subject), Some(line.rank), "{name} {}", line.subject);
        }
        let next = site.store.page(&board.main(), 1_000, 1_000).await.unwrap();
        assert_eq!(next.items.len(), 201);
        assert!(next.items.iter().all(|line| ranks.rank_of(&line.subject).is_none()));
    }
}

pub async fn a_removed_subject_is_not_named_in_ranks(site: Site) {
    for board in [
        defined(&site, "total", &all_time("SUM(all, e, v, s)")).await,
        defined(&site, "slots", &hourly("SUM(3h, e, v, s)", "1h")).await,
    ] {
        count(&site, &board, &[("a", 5), ("b", 3), ("c", 2)]).await;
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for name in ["total", "slots"] {
        let board = site.store.board(&crate::given::name(name)).await.unwrap().unwrap();
        site.store.remove(&board, &subject("b")).await.unwrap();
        site.store.remove(&board, &subject("b")).await.unwrap();
        assert_eq!(then(&site, &board).await, "10:00 a1 ?2 c3");
        count(&site, &board, &[("b", 9)]).await;
        assert_eq!(then(&site, &board).await, "10:00 a1 ?2 c3");
        // What replaces the data of a subject does not remove the subject.
        site.store.replace(&board, plus("c", 7)).await.unwrap();
        assert_eq!(then(&site, &board).await, "10:00 a1 ?2 c3");
    }
}

pub async fn hidden_subjects_have_no_rank_at_the_boundary(site: Site) {
    let board = defined(&site, "board", &hourly("SUM(3h, e, v, s)", "1h")).await;
    count(&site, &board, &[("a", 5), ("b", 3), ("c", 2)]).await;
    let set = |who: &str, visibility| (subject(who), ModerationChange::Visibility(visibility));
    site.store.moderate(&board, &[set("a", Visibility::Hidden)]).await.unwrap();
    site.clock("2026-01-01T10:00:00Z").await;
    let changes = [set("a", Visibility::Visible), set("c", Visibility::Shadowed)];
    site.store.moderate(&board, &changes).await.unwrap();
    assert_eq!(then(&site, &board).await, "10:00 b1 c2");
    assert_eq!(now(&site, &board).await, " a1 b2");
}

pub async fn each_window_has_ranks_of_its_own(site: Site) {
    let windows = vec!["6h/2h".parse().unwrap(), "30m/10m".parse().unwrap(), "all".parse().unwrap()];
    let board = defined(&site, "board", &Definition { windows, ..hourly("SUM(2h, e, v, s)", "1h") }).await;
    let tracks: Vec<BoardTrack> = board.each_track().collect();
    site.clock("2026-01-01T09:50:00Z").await;
    for track in &tracks {
        site.retire(track).await;
    }
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    count(&site, &board, &[("b", 30)]).await;
    assert_eq!(then(&site, &tracks[0]).await, "10:00 a1 b2");
    assert_eq!(then(&site, &tracks[2]).await, "10:00 a1 b2");
    assert_eq!(then(&site, &tracks[3]).await, "10:00 a1 b2");
    // Not every hour begins with a slot of two hours.
    assert_eq!(site.store.earlier_ranks(&tracks[1]).await.unwrap(), None);
    site.clock("2026-01-01T11:00:00Z").await;
    assert_eq!(then(&site, &tracks[0]).await, "11:00 b1 a2");
    assert_eq!(then(&site, &tracks[2]).await, "11:00 unknown");
    assert_eq!(then(&site, &tracks[3]).await, "11:00 b1 a2");
}

pub async fn days_begin_at_midnight_of_the_time_zone(site: Site) {
    let timezone = "Europe/Berlin".parse().unwrap();
    let days = |own: Definition| Definition { timezone, ..moving(own, Movement::Day) };
    let slots = defined(&site, "slots", &days(definition("SUM(24h, e, v, s)", "1h"))).await;
    let total = defined(&site, "total", &days(Definition::without_slots("SUM(all, e, v, s)".parse().unwrap()))).await;
    site.clock("2026-01-01T22:59:59.999Z").await;
    for board in [&slots, &total] {
        count(&site, board, &[("a", 5), ("b", 3)]).await;
        assert_eq!(then(&site, board).await, "23:00 unknown");
    }
    site.clock("2026-01-01T23:00:00Z").await;
    for board in [&slots, &total] {
        count(&site, board, &[("c", 30)]).await;
        assert_eq!(then(&site, board).await, "23:00 a1 b2");
    }
    site.clock("2026-01-02T13:30:00Z").await;
    for board in [&slots, &total] {
        assert_eq!(then(&site, board).await, "23:00 a1 b2");
    }
}

pub async fn only_a_ranking_with_boundaries_has_earlier_ranks(site: Site) {
    let plain = site.define("plain", &definition("SUM(3h, e, v, s)", "1h")).await;
    let kept = r#"{"metric": "SUM(all, e, v, s)", "slot": "1h", "keep": "6h", "movement": "1h"}"#;
    let kept = defined(&site, "kept", &serde_json::from_str(kept).unwrap()).await;
    let season = r#"{"metric": "SUM(all, e, v, s)", "season": {"every": "1d"}, "movement": "period"}"#;
    let season = site.define("season", &serde_json::from_str(season).unwrap()).await;
    for track in [plain.main(), season.main(), kept.each_track().nth(1).unwrap()] {
        assert_eq!(site.store.earlier_ranks(&track).await.unwrap(), None);
    }
    count(&site, &kept, &[("a", 5), ("b", 3)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(then(&site, &kept).await, "10:00 a1 b2");
}

pub async fn ranks_survive_a_restart(site: Site) {
    let total = defined(&site, "total", &all_time("SUM(all, e, v, s)")).await;
    let slots = defined(&site, "slots", &hourly("SUM(3h, e, v, s)", "1h")).await;
    for board in [&total, &slots] {
        count(&site, board, &[("a", 5), ("b", 3), ("c", 1)]).await;
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for board in [&total, &slots] {
        count(&site, board, &[("c", 30)]).await;
        site.store.remove(board, &subject("b")).await.unwrap();
    }
    let site = site.reopened().await;
    for board in [&total, &slots] {
        assert_eq!(then(&site, board).await, "10:00 a1 ?2 c3");
        count(&site, board, &[("a", 100)]).await;
    }
    // A read is the first call after the boundary.
    site.clock("2026-01-01T11:00:00Z").await;
    for board in [&total, &slots] {
        assert_eq!(then(&site, board).await, "11:00 a1 c2");
    }
    let site = site.reopened().await;
    for board in [&total, &slots] {
        assert_eq!(then(&site, board).await, "11:00 a1 c2");
        count(&site, board, &[("d", 1_000)]).await;
    }
    // The boundary passes while no instance runs.
    site.clock("2026-01-01T12:00:00Z").await;
    let site = site.reopened().await;
    count(&site, &total, &[("c", 1_000)]).await;
    assert_eq!(then(&site, &total).await, "12:00 d1 a2 c3");
    assert_eq!(then(&site, &slots).await, "12:00 d1 a2 c3");
}

pub async fn the_ranks_of_an_edition_stay_when_editions_are_exchanged(site: Site) {
    let board = defined(&site, "board", &hourly("SUM(3h, e, v, s)", "1h")).await;
    count(&site, &board, &[("a", 5), ("b", 3)]).await;
    let both = attach(&site, &board, &hourly("SUM(6h, e, v, s)", "1h")).await;
    let second = |board: &Arc<Board>| board.each_track().nth(board.editions()[1].numbers().start).unwrap();
    let track = second(&both);
    assert_eq!(then(&site, &track).await, "09:00 unknown");
    for amount in [9, 2] {
        site.count(&both, vec![twice(plus("b", amount)), twice(plus("c", 2))]).await;
    }
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(then(&site, &both).await, "10:00 b1 a2 c3");
    assert_eq!(then(&site, &track).await, "10:00 b1 c2");
    let exchanged = exchange(&site, &both).await;
    assert_eq!(then(&site, &exchanged).await, "10:00 b1 c2");
    assert_eq!(then(&site, &second(&exchanged)).await, "10:00 b1 a2 c3");
}

pub async fn periods_have_ranks_until_they_are_sealed(site: Site) {
    let season = r#"{"metric": "SUM(all, e, v, s)", "season": {"every": "1d", "grace": "2h"}, "movement": "1h"}"#;
    let first = defined(&site, "board", &serde_json::from_str(season).unwrap()).await;
    count(&site, &first, &[("a", 5), ("b", 3)]).await;
    site.clock("2026-01-01T23:10:00Z").await;
    assert_eq!(then(&site, &first).await, "23:00 a1 b2");
    site.clock("2026-01-02T00:10:00Z").await;
    let present = || async {
        let board = site.store.board(first.name()).await.unwrap().unwrap();
        drop(site.store.status(&board.main()).await);
        site.store.board(first.name()).await.unwrap().unwrap()
    };
    present().await;
    let second = present().await;
    count(&site, &second, &[("b", 3), ("c", 4)]).await;
    assert_eq!(then(&site, &second).await, "00:00 unknown");
    site.clock("2026-01-02T01:10:00Z").await;
    assert_eq!(then(&site, &second).await, "01:00 c1 b2");
    site.clock("2026-01-02T02:10:00Z").await;
    present().await;
    let sealed = present().await;
    assert_eq!(sealed.archive().len(), 1);
    assert_eq!(then(&site, &sealed).await, "02:00 c1 b2");
    let archived = sealed.each_period().nth(1).unwrap().main_track();
    assert_eq!(site.store.earlier_ranks(&archived).await.unwrap(), None);
}
