//! Tests of retiring in steps: each amount is subtracted once, by any instance, and every state in between is
//! consistent.

use std::sync::Arc;

use rolltop::board::Board;
use rolltop::store::Status;

use crate::given::{Units, With, exact, plus, subject, sums, t};
use crate::site::{Retired, Site, retire_through};

const OLD: &str = "2026-01-01T07:10:00Z";

/// Adds this many subjects with 2 in the slot that expires at ten. Every tenth also has 5 in the head.
async fn crowd(site: &Site, subjects: usize) -> Arc<Board> {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let every = |step: usize| (0..subjects).step_by(step).map(|i| format!("s{i:05}"));
    site.count(&board, every(1).map(|who| plus(&who, 2).at(OLD)).collect()).await;
    site.count(&board, every(10).map(|who| plus(&who, 5)).collect()).await;
    board
}

async fn retiring(site: &Site, board: &Arc<Board>) -> u64 {
    let Status { retiring, frame, .. } = site.store.status(&board.main()).await.unwrap();
    assert_eq!(frame.retiring, retiring.len() as u64);
    retiring.iter().map(|(_, subjects)| subjects).sum()
}

pub async fn retiring_subtracts_each_amount_once(site: Site) {
    let board = crowd(&site, 3_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let Retired { slots, touched, removed } = site.retire(&board).await;
    assert_eq!((site.are_slots(slots, 1), touched, removed), (true, 3_000, 2_700));
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking.len(), 300);
    assert!(ranking.iter().all(|(rank, _, score)| (*rank, *score) == (1, 5)));
    assert_eq!(site.retire(&board).await, Retired::default());
    assert_eq!(site.audit(&board).await, 300);
}

pub async fn a_retiring_slot_is_reported_until_it_is_done(site: Site) {
    let board = crowd(&site, 5_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(retiring(&site, &board).await, 5_000);
    let status = site.store.status(&board.main()).await.unwrap();
    assert_eq!(status.retiring, [(t("2026-01-01T07:00:00Z"), 5_000)]);
    assert_eq!(status.slots, [(t("2026-01-01T09:00:00Z"), 500)]);
    // The ranking still includes the slot and reports this. The slots do not include it.
    let standing = site.store.standing(&board.main(), &subject("s00010")).await.unwrap();
    assert_eq!((standing.score, standing.frame.retiring), (exact(7), 1));
    assert_eq!(sums(&standing.slots), [(t("2026-01-01T09:00:00Z"), 5)]);
    let (mut left, mut steps_after) = (5_000, 0);
    loop {
        let step = site.store.retire_step(&board.main()).await.unwrap();
        let now_left = retiring(&site, &board).await;
        assert_eq!(now_left, left - step.subjects_touched);
        let total = site.store.page(&board.main(), 0, 1).await.unwrap().total;
        assert_eq!(total, 500 + now_left - ranked_twice(&site, &board).await);
        left = now_left;
        // On a board of several parts, the step that finds nothing left in any part reports it.
        assert!(left == 0 || !step.done);
        steps_after += u64::from(left == 0);
        if step.done {
            break;
        }
    }
    assert!(steps_after <= 2);
    assert_eq!(site.store.status(&board.main()).await.unwrap().retiring, []);
}

/// Returns the number of subjects that are both live and not yet subtracted. Each is one line of the ranking, with 7.
async fn ranked_twice(site: &Site, board: &Arc<Board>) -> u64 {
    let page = site.store.page(&board.main(), 0, 600).await.unwrap();
    page.items.iter().filter(|line| line.score.units() == 7).count() as u64
}

pub async fn a_retire_step_touches_a_bounded_number_of_subjects(site: Site) {
    let board = crowd(&site, 20_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let (mut steps, mut largest) = (0, 0);
    loop {
        let step = site.store.retire_step(&board.main()).await.unwrap();
        steps += 1;
        largest = largest.max(step.subjects_touched);
        if step.done {
            break;
        }
    }
    assert!(steps > 1 && largest < 20_000, "{steps} steps, the largest of {largest} subjects");
}

pub async fn two_instances_retire_a_slot_together(site: Site) {
    let board = crowd(&site, 8_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let tasks = [&site.store, &site.other, &site.store].map(|store| {
        let (store, board) = (store.clone(), board.clone());
        tokio::spawn(async move { retire_through(&store, &board).await })
    });
    let mut all = Retired::default();
    for task in tasks {
        let one = task.await.unwrap();
        all.slots += one.slots;
        all.touched += one.touched;
        all.removed += one.removed;
    }
    assert_eq!((site.are_slots(all.slots, 1), all.touched, all.removed), (true, 8_000, 7_200));
    assert_eq!(site.audit(&board).await, 800);
    assert_eq!(site.ranking(&board).await.len(), 800);
}

pub async fn a_retire_step_with_nothing_to_do_is_done(site: Site) {
    let board = crowd(&site, 30).await;
    for _ in 0..3 {
        let step = site.store.retire_step(&board.main()).await.unwrap();
        assert_eq!((step.done, step.slots_advanced, step.slots_retired, step.subjects_touched), (true, 0, 0, 0));
    }
    assert_eq!(site.ranking(&board).await.len(), 30);
}

pub async fn advanced_slots_are_reported_by_one_retire_step_only(site: Site) {
    let board = crowd(&site, 30).await;
    site.clock("2026-01-01T11:10:00Z").await;
    let step = site.store.retire_step(&board.main()).await.unwrap();
    assert_eq!(step.slots_advanced, 2);
    assert_eq!(step.frame.window.head, t("2026-01-01T11:00:00Z"));
    assert_eq!(site.store.retire_step(&board.main()).await.unwrap().slots_advanced, 0);
    // More than a whole window: the first step of each part finds that everything has expired and drops it.
    site.retire(&board).await;
    site.clock("2026-01-02T11:10:00Z").await;
    let (mut advanced, mut retired, mut steps) = (0, 0, 0);
    loop {
        let step = site.store.retire_step(&board.main()).await.unwrap();
        (advanced, retired, steps) = (advanced + step.slots_advanced, retired + step.slots_retired, steps + 1);
        if step.done {
            break;
        }
    }
    assert_eq!((advanced, site.are_slots(retired, 1), site.are_slots(steps - 1, 1) || steps == 1), (24, true, true));
    assert_eq!(site.store.status(&board.main()).await.unwrap().total, Some(0));
}

pub async fn removing_a_subject_clears_it_from_retiring_slots(site: Site) {
    let board = crowd(&site, 5_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let removal = site.store.remove(&board, &subject("s00010")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots, removal.retiring_slots), (exact(7), 1, 1));
    let removal = site.store.remove(&board, &subject("s00011")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots, removal.retiring_slots), (exact(2), 0, 1));
    // They are written to again before the slot has retired, and are not subtracted from a second time.
    site.count(&board, vec![plus("s00010", 1), plus("s00011", 3)]).await;
    let retired = site.retire(&board).await;
    assert_eq!((site.are_slots(retired.slots, 1), retired.touched), (true, 4_998));
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking.len(), 501);
    assert_eq!(ranking[499..], [(500, "s00011".to_owned(), 3), (501, "s00010".to_owned(), 1)]);
}

pub async fn audits_between_retire_steps_find_no_differences(site: Site) {
    let board = crowd(&site, 6_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    loop {
        assert!(site.audit(&board).await >= 600);
        if site.store.retire_step(&board.main()).await.unwrap().done {
            break;
        }
    }
    // A store that moves subjects in memory meanwhile may compare some of them twice.
    let checked = site.audit(&board).await;
    assert!((600..700).contains(&checked), "{checked}");
}

pub async fn writes_between_retire_steps_are_kept(site: Site) {
    let board = crowd(&site, 6_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let mut rounds = 0;
    loop {
        // Some of these are already subtracted, some are not, and some are new.
        let who = (0..6_600).step_by(600).map(|i| plus(&format!("s{i:05}"), 1));
        site.count(&board, who.chain([plus("s00001", -3)]).collect()).await;
        rounds += 1;
        if site.store.retire_step(&board.main()).await.unwrap().done {
            break;
        }
    }
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking.len(), 602);
    let tops = ranking.iter().filter(|(_, _, score)| *score == 5 + rounds).count();
    assert_eq!(tops, 10);
    assert!(ranking.iter().any(|(_, who, score)| who == "s06000" && *score == rounds));
    assert_eq!(ranking[601], (602, "s00001".to_owned(), -3 * rounds));
    assert_eq!(site.audit(&board).await, 602);
}

pub async fn retiring_continues_when_the_clock_advances_between_steps(site: Site) {
    let board = crowd(&site, 4_000).await;
    site.count(&board, (0..4_000).map(|i| plus(&format!("s{i:05}"), 3).at("2026-01-01T08:10:00Z")).collect()).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let mut retired = Retired::default();
    retired.note(&site.store.retire_step(&board.main()).await.unwrap());
    site.clock("2026-01-01T11:00:00Z").await;
    let rest = site.retire(&board).await;
    assert!(site.are_slots(retired.slots + rest.slots, 2));
    assert_eq!(retired.touched + rest.touched, 8_000);
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking.len(), 400);
    assert!(ranking.iter().all(|(_, _, score)| *score == 5));
}

pub async fn a_full_expiry_between_retire_steps_empties_the_board(site: Site) {
    let board = crowd(&site, 6_000).await;
    site.clock("2026-01-01T10:00:00Z").await;
    site.store.retire_step(&board.main()).await.unwrap();
    site.clock("2026-01-01T13:00:00Z").await;
    site.count(&board, vec![plus("s00001", 1), plus("new", 2)]).await;
    let page = site.store.page(&board.main(), 0, 10).await.unwrap();
    assert_eq!((page.total, page.frame.retiring), (2, 0));
    assert_eq!(site.ranking(&board).await, [(1, "new".to_owned(), 2), (2, "s00001".to_owned(), 1)]);
    assert_eq!(site.audit(&board).await, 2);
}
