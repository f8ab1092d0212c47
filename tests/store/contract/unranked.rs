//! Tests of boards without a ranking, which rules and features read.

use rolltop::board::{Aggregate, Amount, Cover, Definition};
use rolltop::store::{AuditCursor, Batch, Outcome, Rejection, SlotRange};

use crate::given::{Units, With, exact, mean, plus, seen, subject, t, unranked};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

const COUNT: &str = "COUNT(3h, login, device)";
const SEVEN: &str = "2026-01-01T07:10:00Z";

pub async fn an_unranked_board_returns_the_value_of_the_window(site: Site) {
    let board = site.define("plain", &unranked(COUNT, "1h")).await;
    assert_eq!(
        site.score(&board, vec![plus("a", 2).at(SEVEN), plus("a", 5), plus("b", 1)]).await,
        [counted(7), counted(7), counted(1)]
    );
    assert_eq!(site.value(&board, "a").await, exact(7));
    site.clock("2026-01-01T10:00:00Z").await;
    // This takes effect at once, because there is nothing to subtract.
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!((standing.score, standing.frame.retiring), (exact(5), 0));
    assert_eq!((standing.total, standing.rank, standing.better), (0, None, 0));
    assert_eq!(standing.slots, [(t("2026-01-01T09:00:00Z"), Aggregate::Sum(Amount(5)))]);
    assert_eq!(site.score(&board, vec![plus("a", 1)]).await, [counted(6)]);
    site.clock("2030-01-01T00:00:00Z").await;
    assert_eq!(site.value(&board, "a").await, exact(0));
}

pub async fn an_unranked_board_has_nothing_to_retire(site: Site) {
    let board = site.define("plain", &unranked(COUNT, "1h")).await;
    site.count(&board, (0..400).map(|nth| plus(&format!("s{nth}"), 1).id("x")).collect()).await;
    site.clock("2026-01-01T12:30:00Z").await;
    let step = site.store.retire_step(&board.main()).await.unwrap();
    assert!(step.done || step.skipped);
    assert_eq!((step.slots_retired, step.subjects_touched, step.subjects_removed), (0, 0, 0));
    let status = site.store.status(&board.main()).await.unwrap();
    assert_eq!((status.total, status.slots, status.retiring), (Some(0), Vec::new(), Vec::new()));
    let mut cursor = Some(AuditCursor::default());
    while let Some(from) = cursor {
        let audit = site.store.audit_step(&board.main(), from, true).await.unwrap();
        assert_eq!((audit.checked, audit.differences, audit.repaired), (0, Vec::new(), 0));
        cursor = audit.next;
    }
    assert_eq!(status.frame.window.floor, t("2026-01-01T10:00:00Z"));
}

pub async fn an_unranked_board_rejects_items_older_than_the_window(site: Site) {
    let kept = Definition { keep: Some("12h".parse().unwrap()), ..unranked(COUNT, "1h") };
    let board = site.define("kept", &kept).await;
    let items = vec![plus("a", 1).at("2026-01-01T06:59:59.999Z"), plus("a", 1).at("2026-01-01T07:00:00Z")];
    assert_eq!(site.add(&board, items).await, [Outcome::Rejected(Rejection::TooLate), COUNTED]);
    assert_eq!(site.value(&board, "a").await, exact(1));
}

pub async fn an_unranked_board_counts_ids_once_within_the_horizon(site: Site) {
    let board = site.define("plain", &unranked(COUNT, "1h")).await;
    site.count(&board, vec![plus("a", 1).id("x")]).await;
    site.clock("2026-01-01T12:29:59.999Z").await;
    assert_eq!(site.add(&board, vec![plus("a", 1).id("x")]).await, [DUPLICATE]);
    site.clock("2026-01-01T12:30:00Z").await;
    for _ in 0..3 {
        site.retire(&board).await;
    }
    assert_eq!(site.score(&board, vec![plus("a", 1).id("x")]).await, [counted(1)]);
}

pub async fn concurrent_writers_of_an_unranked_board_lose_nothing(site: Site) {
    for (nth, metric) in ["COUNT(3h, login, device)", "AVG(3h, pay, amount, device)", "MAX(3h, pay, amount, device)"]
        .into_iter()
        .enumerate()
    {
        let board = site.define(&format!("b{nth}"), &unranked(metric, "1h")).await;
        let writing = |writer: i64| {
            let (store, board) = ([&site.store, &site.other][writer as usize % 2].clone(), board.clone());
            tokio::spawn(async move {
                for round in 0..50 {
                    let at =
                        ["2026-01-01T07:00:00Z", "2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z"][round as usize % 3];
                    let increments = vec![plus("a", writer * 50 + round).at(at), plus("b", 1)];
                    let added = store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
                    assert_eq!(added.outcomes, [COUNTED; 2]);
                }
            })
        };
        let writers: Vec<_> = (0..4).map(writing).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let expected =
            [(exact(199 * 200 / 2), exact(200)), (mean(199 * 200 / 2, 200), mean(200, 200)), (exact(199), exact(1))];
        assert_eq!((site.value(&board, "a").await, site.value(&board, "b").await), expected[nth], "{metric}");
    }
}

pub async fn removing_an_unranked_subject_clears_all_its_slots(site: Site) {
    let board = site.define("plain", &unranked(COUNT, "1h")).await;
    site.count(&board, vec![plus("a", 1).at(SEVEN), plus("a", 2), plus("b", 4), plus("a", 1).id("x")]).await;
    let removal = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots, removal.retiring_slots), (exact(4), 2, 0));
    assert_eq!(site.value(&board, "a").await, exact(0));
    assert_eq!(site.value(&board, "b").await, exact(4));
    let again = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((again.score, again.live_slots), (exact(0), 0));
    // Ids are stored longer than the counter, as on any board.
    assert_eq!(site.score(&board, vec![plus("a", 8).id("x"), plus("a", 16)]).await[1], counted(16));
}

pub async fn a_redefined_unranked_board_starts_empty(site: Site) {
    let board = site.define("plain", &unranked(COUNT, "1h")).await;
    site.count(&board, vec![plus("a", 1)]).await;
    assert!(site.store.undefine(&board).await.unwrap());
    let again = site.define("plain", &unranked(COUNT, "1h")).await;
    assert_eq!(site.value(&again, "a").await, exact(0));
    assert_eq!(site.score(&again, vec![plus("a", 2)]).await, [counted(2)]);
}

pub async fn an_unranked_subject_with_2000_slots_is_counted(site: Site) {
    for (nth, metric) in
        ["COUNT(2000s, hit, ip)", "AVG(2000s, hit, ms, ip)", "MAX(2000s, hit, ms, ip)"].into_iter().enumerate()
    {
        let board = site.define(&format!("b{nth}"), &unranked(metric, "1s")).await;
        let start = t(crate::site::START).plus_millis(nth as i64 * 10_000_000);
        site.clock_at(start).await;
        let late = |back: i64| plus("a", back + 1).at_time(start.plus_millis(-1_000 * back));
        for chunk in (0..2_000).collect::<Vec<i64>>().chunks(500) {
            site.count(&board, chunk.iter().map(|back| late(*back)).collect()).await;
        }
        let whole = [exact(2_000 * 2_001 / 2), mean(2_000 * 2_001 / 2, 2_000), exact(2_000)][nth];
        assert_eq!(site.value(&board, "a").await, whole, "{metric}");
        assert_eq!(site.slots(&board, "a").await.len(), 2_000);
        let newest = [exact(1_000 * 1_001 / 2), mean(1_000 * 1_001 / 2, 1_000), exact(1_000)][nth];
        assert_eq!(site.newest(&board, "a", 1_000).await, newest, "{metric}");
        // Slots expire one by one, and new ones begin.
        site.clock_at(start.plus_millis(1_000_000)).await;
        site.count(&board, vec![plus("a", 7)]).await;
        let reading = site.store.count(&board.main(), &subject("a"), SlotRange::Slots(2_000)).await.unwrap();
        assert_eq!((reading.slots, reading.aggregates.len()), (2_000, 1_001));
        let left = [exact(1_000 * 1_001 / 2 + 7), mean(1_000 * 1_001 / 2 + 7, 1_001), exact(1_000)][nth];
        assert_eq!(reading.value(board.edition().main()), left, "{metric}");
    }
}

pub async fn an_unranked_board_with_full_cover_has_an_extra_slot(site: Site) {
    let full = Definition { cover: Cover::Full, ..unranked(COUNT, "1h") };
    let board = site.define("full", &full).await;
    site.count(&board, vec![plus("a", 1).at("2026-01-01T06:00:00Z"), plus("a", 2)]).await;
    let reading = site.store.count(&board.main(), &subject("a"), SlotRange::Slots(4)).await.unwrap();
    assert_eq!((reading.units(), reading.frame.window.floor), (3, t("2026-01-01T06:00:00Z")));
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.value(&board, "a").await, exact(2));
}

pub async fn idle_unranked_subjects_read_empty_and_can_start_over(site: Site) {
    for (nth, metric) in ["COUNT(3h, a, b)", "MAX(3h, a, v, b)", "COUNT_DISTINCT(3h, a, b, c)"].into_iter().enumerate()
    {
        let board = site.define(&format!("b{nth}"), &unranked(metric, "1h")).await;
        let item = |who: &str| if nth == 2 { seen(who, "u") } else { plus(who, 3) };
        site.count(&board, (0..300).map(|nth| item(&format!("s{nth}"))).collect()).await;
        let later = t("2026-02-01T00:00:00Z").plus_millis(nth as i64 * 86_400_000);
        site.clock_at(later).await;
        for _ in 0..20 {
            site.store.retire_step(&board.main()).await.unwrap();
        }
        for nth in 0..300 {
            let standing = site.store.standing(&board.main(), &subject(&format!("s{nth}"))).await.unwrap();
            assert_eq!((standing.score, standing.slots), (board.kind().absent(), Vec::new()));
        }
        site.count(&board, vec![item("s7")]).await;
        assert_eq!(site.value(&board, "s7").await, exact(if nth == 2 { 1 } else { 3 }));
    }
}
