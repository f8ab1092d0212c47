//! Tests that an audit is correct at any time.

use rolltop::store::AuditCursor;

use crate::given::{With, plus, subject};
use crate::site::Site;

pub async fn an_audit_of_a_consistent_board_finds_no_differences(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let hours = ["2026-01-01T07:00:00Z", "2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z"];
    for (nth, hour) in hours.into_iter().enumerate() {
        let items = (0..700).map(|i| plus(&format!("s{}", i * (nth + 1)), i as i64 - 350).at(hour));
        site.add(&board, items.collect()).await;
        let ranked = site.store.status(&board.main()).await.unwrap().total;
        assert!(Some(site.audit(&board).await) >= ranked);
    }
    site.store.remove(&board, &subject("s7")).await.unwrap();
    for now in ["2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", "2026-01-01T12:00:00Z"] {
        site.clock(now).await;
        site.audit(&board).await;
        site.retire(&board).await;
        let ranked = site.store.status(&board.main()).await.unwrap().total;
        assert!(Some(site.audit(&board).await) >= ranked);
    }
}

pub async fn a_repair_of_a_consistent_board_changes_nothing(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let items = (0..2_000).map(|i| plus(&format!("s{i}"), 1 + i).at("2026-01-01T07:00:00Z"));
    site.count(&board, items.collect()).await;
    site.count(&board, vec![plus("s1", 5), plus("s2", -3), plus("gone", 1), plus("gone", -1)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    // Once while the slot retires, once after it.
    for _ in 0..2 {
        let mut cursor = AuditCursor::default();
        loop {
            let step = site.store.audit_step(&board.main(), cursor, true).await.unwrap();
            assert_eq!((step.differences, step.repaired), (Vec::new(), 0));
            match step.next {
                Some(next) => cursor = next,
                None => break,
            }
            site.store.retire_step(&board.main()).await.unwrap();
        }
        assert_eq!(site.ranking(&board).await, [(1, "s1".to_owned(), 5), (2, "s2".to_owned(), -3)]);
    }
}

pub async fn an_audit_of_an_empty_board_checks_nothing(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    for repair in [false, true] {
        let mut cursor = Some(AuditCursor::default());
        while let Some(from) = cursor {
            let step = site.store.audit_step(&board.main(), from, repair).await.unwrap();
            assert_eq!((step.checked, step.differences, step.repaired), (0, Vec::new(), 0));
            cursor = step.next;
        }
    }
}
