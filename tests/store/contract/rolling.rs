//! Tests of moving windows: exactly the expired data is removed.

use rolltop::store::{Outcome, Rejection, SlotRange};

use crate::given::{Units, With, exact, plus, subject, t};
use crate::site::Site;

pub async fn a_slot_expires_at_its_boundary(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 2).at("2026-01-01T08:00:00Z"), plus("c", 4)]).await;
    site.clock("2026-01-01T10:59:59.999Z").await;
    assert_eq!(site.ranking(&board).await.len(), 3);
    site.clock("2026-01-01T11:00:00Z").await;
    // A read just after the boundary returns the new window, before anything has retired.
    assert_eq!(site.store.standing(&board.main(), &subject("b")).await.unwrap().slots, []);
    assert_eq!(site.store.count(&board.main(), &subject("b"), SlotRange::Slots(3)).await.unwrap().units(), 0);
    assert_eq!(site.ranking(&board).await, [(1, "c".to_owned(), 4), (2, "a".to_owned(), 1)]);
    site.clock("2026-01-01T11:59:59.999Z").await;
    assert_eq!(site.ranking(&board).await.len(), 2);
    site.clock("2026-01-01T12:00:00Z").await;
    assert_eq!(site.ranking(&board).await, []);
}

pub async fn slots_expire_in_order_as_the_window_moves(site: Site) {
    let board = site.board("COUNT(6h, like, post)", "1h").await;
    // Each hour posts 2^hour for "sum" and 1 for its own subject.
    let mut now = t("2026-01-01T10:00:00Z");
    for hour in 0..20u32 {
        site.clock_at(now).await;
        site.count(&board, vec![plus("sum", 1 << hour), plus(&format!("h{hour:02}"), 1), plus("sum", 0)]).await;
        let live: i64 = (0..=hour).rev().take(6).map(|h| 1 << h).sum();
        let ranking = site.ranking(&board).await;
        assert!(ranking.contains(&(1, "sum".to_owned(), live)), "hour {hour}: {ranking:?}");
        assert_eq!(ranking.len() as u32, 1 + (hour + 1).min(6));
        now = now.plus_millis(3_600_000);
    }
}

pub async fn expiry_of_a_slot_leaves_the_amounts_of_other_slots(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let items = (0..40i64).flat_map(|i| {
        let who = format!("s{i:02}");
        [plus(&who, 100 + i).at("2026-01-01T07:00:00Z"), plus(&who, i - 20)]
    });
    site.count(&board, items.collect()).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let mut expected: Vec<(i64, String)> = (0..40).filter(|i| *i != 20).map(|i| (i - 20, format!("s{i:02}"))).collect();
    expected.sort_by(|a, b| b.cmp(a));
    let lines: Vec<(i64, String)> =
        site.ranking(&board).await.into_iter().map(|(_, who, score)| (score, who)).collect();
    assert_eq!(lines, expected);
}

pub async fn many_slots_expire_in_one_move(site: Site) {
    let board = site.board("COUNT(60s, like, post)", "1s").await;
    let start = t("2026-01-01T09:30:00Z");
    let items = (0..60i64).flat_map(|i| {
        let at = start.plus_millis(-1_000 * i);
        [plus("all", 1).at_time(at), plus(&format!("s{i}"), 1).at_time(at)]
    });
    site.count(&board, items.collect()).await;
    assert_eq!(site.ranking(&board).await[0], (1, "all".to_owned(), 60));
    site.clock_at(start.plus_millis(45_000)).await;
    let ranking = site.ranking(&board).await;
    assert_eq!((ranking[0].clone(), ranking.len()), ((1, "all".to_owned(), 15), 16));
    site.clock_at(start.plus_millis(59_000)).await;
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking, [(1, "s0".to_owned(), 1), (1, "all".to_owned(), 1)]);
}

pub async fn a_board_whose_slots_all_expired_reads_empty_at_once(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, (0..300).map(|i| plus(&format!("s{i}"), 1 + i)).collect()).await;
    site.count(&board, vec![plus("s1", 1).at("2026-01-01T07:00:00Z"), plus("s2", 1).at("2026-01-01T08:00:00Z")]).await;
    // One slot expires and stays partly retired. Then everything else expires at once.
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.store.page(&board.main(), 0, 1).await.unwrap().total, 300);
    site.clock("2026-01-01T13:00:00Z").await;
    let page = site.store.page(&board.main(), 0, 10).await.unwrap();
    assert_eq!((page.total, page.items.len(), page.frame.retiring), (0, 0, 0));
    let status = site.store.status(&board.main()).await.unwrap();
    assert_eq!((status.total, status.slots, status.retiring), (Some(0), Vec::new(), Vec::new()));
    assert_eq!(site.store.standing(&board.main(), &subject("s1")).await.unwrap().score, exact(0));
    assert_eq!(site.retire(&board).await.touched, 0);
}

pub async fn a_write_after_all_slots_expired_is_counted(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, (0..50).map(|i| plus(&format!("s{i}"), 1 + i)).collect()).await;
    // The write itself is the first call after the downtime.
    site.clock("2026-01-05T00:00:00Z").await;
    site.count(&board, vec![plus("s1", 7), plus("s2", 1).at("2026-01-04T22:00:00Z"), plus("new", 2)]).await;
    let expected = [(1, "s1".to_owned(), 7), (2, "new".to_owned(), 2), (3, "s2".to_owned(), 1)];
    assert_eq!(site.ranking(&board).await, expected);
    assert_eq!(site.audit(&board).await, 3);
}

pub async fn the_window_moves_decades_in_one_step(site: Site) {
    let seconds = site.board("COUNT(30s, like, post)", "1s").await;
    site.count(&seconds, vec![plus("a", 1), plus("b", 2).at("2026-01-01T09:29:40Z")]).await;
    site.clock("2076-01-01T00:00:00Z").await;
    assert_eq!(site.ranking(&seconds).await, []);
    site.count(&seconds, vec![plus("a", 3), plus("b", 4).at("2075-12-31T23:59:31Z")]).await;
    assert_eq!(site.ranking(&seconds).await, [(1, "b".to_owned(), 4), (2, "a".to_owned(), 3)]);
}

pub async fn slots_of_an_idle_board_expire(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 2).at("2026-01-01T08:00:00Z")]).await;
    for (now, total) in [("2026-01-01T10:30:00Z", 2), ("2026-01-01T11:30:00Z", 1), ("2026-01-01T12:30:00Z", 0)] {
        site.clock(now).await;
        site.retire(&board).await;
        let status = site.store.status(&board.main()).await.unwrap();
        assert_eq!((status.total, status.frame.as_of), (Some(total), t(now)));
    }
}

pub async fn items_for_expired_slots_are_rejected(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let old = "2026-01-01T07:30:00Z";
    site.count(&board, vec![plus("a", 1).at(old), plus("b", 2)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let late = Outcome::Rejected(Rejection::TooLate);
    for _ in 0..2 {
        assert_eq!(site.add(&board, vec![plus("a", 1).at(old), plus("c", 4).at(old)]).await, [late, late]);
        assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 2)]);
    }
}

pub async fn a_tumbling_board_restarts_at_the_boundary(site: Site) {
    let board = site.board("COUNT(1d, like, post)", "1d").await;
    site.count(&board, vec![plus("a", 1).at("2026-01-01T00:00:00Z"), plus("b", 2)]).await;
    site.clock("2026-01-01T23:59:59.999Z").await;
    site.count(&board, vec![plus("a", 4), plus("c", 1)]).await;
    assert_eq!(site.ranking(&board).await[0], (1, "a".to_owned(), 5));
    site.clock("2026-01-02T00:00:00Z").await;
    let page = site.store.page(&board.main(), 0, 10).await.unwrap();
    assert_eq!((page.total, page.frame.retiring), (0, 0));
    site.count(&board, vec![plus("b", 3), plus("c", 1)]).await;
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 3), (2, "c".to_owned(), 1)]);
}

pub async fn a_window_of_2000_slots_is_counted_and_rolled_over(site: Site) {
    let board = site.board("SUM(2000s, sale, amount, seller)", "1s").await;
    let start = t("2026-01-01T09:30:00Z");
    let items: Vec<_> = (0..2_000i64).map(|i| plus("a", 1 + i).at_time(start.plus_millis(-1_000 * i))).collect();
    site.count(&board, items).await;
    site.count(&board, vec![plus("b", 5).at_time(start.plus_millis(-1_999_000)), plus("c", 1)]).await;
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!((standing.score.units(), standing.slots.len()), (2_000 * 2_001 / 2, 2_000));
    let count = site.store.count(&board.main(), &subject("a"), SlotRange::Slots(1_000)).await.unwrap();
    assert_eq!(count.units(), 1_000 * 1_001 / 2);
    // A thousand and one seconds later, the older half and one more slot have expired.
    site.clock_at(start.plus_millis(1_001_000)).await;
    let expected = [(1, "a".to_owned(), 999 * 1_000 / 2), (2, "c".to_owned(), 1)];
    assert_eq!(site.ranking(&board).await, expected);
}
