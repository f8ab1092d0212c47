//! Tests of shorter windows, of the slots of a subject and of a board, and of the frame of every result.

use rolltop::board::{Cover, Frame, Window};
use rolltop::store::{AuditCursor, Batch, SlotRange, StoreError};

use crate::given::{Units, With, definition, exact, plus, subject, sums, t};
use crate::site::Site;

pub async fn a_shorter_window_counts_the_newest_slots(site: Site) {
    let board = site.board("COUNT(4h, like, post)", "1h").await;
    let hours = ["2026-01-01T06:00:00Z", "2026-01-01T07:00:00Z", "2026-01-01T08:59:59.999Z", "2026-01-01T09:00:00Z"];
    site.count(&board, hours.iter().zip([1, 2, 4, 8]).map(|(at, amount)| plus("a", amount).at(at)).collect()).await;
    for (slots, amount, floor) in
        [(1, 8, hours[3]), (2, 12, "2026-01-01T08:00:00Z"), (3, 14, hours[1]), (4, 15, hours[0])]
    {
        let count = site.store.count(&board.main(), &subject("a"), SlotRange::Slots(slots)).await.unwrap();
        assert_eq!((count.units(), count.slots), (amount, slots));
        let window = Window { floor: t(floor), head: t("2026-01-01T09:00:00Z"), end: t("2026-01-01T10:00:00Z") };
        assert_eq!(count.frame, Frame { window, as_of: t("2026-01-01T09:30:00Z"), retiring: 0 });
    }
    let nobody = site.store.count(&board.main(), &subject("nobody"), SlotRange::Slots(2)).await.unwrap();
    assert_eq!((nobody.units(), nobody.slots), (0, 2));
}

pub async fn a_window_from_a_time_counts_the_slots_since_then(site: Site) {
    let board = site.board("COUNT(4h, like, post)", "1h").await;
    let hours = ["2026-01-01T06:00:00Z", "2026-01-01T07:00:00Z", "2026-01-01T08:59:59.999Z", "2026-01-01T09:00:00Z"];
    site.count(&board, hours.iter().zip([1, 2, 4, 8]).map(|(at, amount)| plus("a", amount).at(at)).collect()).await;
    for (from, amount, slots) in [
        ("2026-01-01T06:00:00Z", 15, 4),
        ("2026-01-01T06:59:59.999Z", 15, 4),
        ("2026-01-01T07:00:00Z", 14, 3),
        ("2026-01-01T08:59:59.999Z", 12, 2),
        ("2026-01-01T09:00:00Z", 8, 1),
        ("2026-01-01T09:30:00Z", 8, 1),
        // There are no future slots: future events are in the head.
        ("2026-01-01T23:00:00Z", 8, 1),
        ("9999-12-31T23:59:59.999Z", 8, 1),
    ] {
        let count = site.store.count(&board.main(), &subject("a"), SlotRange::From(t(from))).await.unwrap();
        assert_eq!((count.units(), count.slots), (amount, slots), "{from}");
        assert_eq!(
            count.frame.window.floor,
            board.edition().main().calendar().slot_of(t(from)).min(count.frame.window.head)
        );
    }
}

pub async fn a_range_beyond_the_window_is_an_error(site: Site) {
    let board = site.board("COUNT(4h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 1)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let beyond = [SlotRange::Slots(5), SlotRange::Slots(u32::MAX), SlotRange::From(t("2026-01-01T06:59:59.999Z"))];
    for range in beyond.into_iter().chain([SlotRange::From(t("1970-01-01T00:00:00Z"))]) {
        let error = site.store.count(&board.main(), &subject("a"), range).await.unwrap_err();
        let right = matches!(error, StoreError::BeyondWindow { floor } if floor == t("2026-01-01T07:00:00Z"));
        assert!(right, "{range:?}: {error:?}");
    }
}

pub async fn slots_of_a_standing_are_oldest_first(site: Site) {
    let board = site.board("COUNT(4h, like, post)", "1h").await;
    let (six, eight, nine) = ("2026-01-01T06:00:00Z", "2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z");
    site.count(&board, vec![plus("a", 1).at(nine), plus("a", -2).at(six), plus("a", 3).at(eight), plus("b", 9)]).await;
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!(sums(&standing.slots), [(t(six), -2), (t(eight), 3), (t(nine), 1)]);
    assert_eq!(standing.score, exact(2));
    // A slot whose amount is zero again has no data. An expired slot is not live.
    site.count(&board, vec![plus("a", -3).at(eight), plus("b", 1)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(sums(&site.store.standing(&board.main(), &subject("a")).await.unwrap().slots), [(t(nine), 1)]);
}

pub async fn full_cover_keeps_one_extra_slot(site: Site) {
    let mut full = definition("COUNT(3h, like, post)", "1h");
    full.cover = Cover::Full;
    let board = site.define("full", &full).await;
    site.count(&board, vec![plus("a", 1).at("2026-01-01T06:00:00Z"), plus("b", 1)]).await;
    let count = site.store.count(&board.main(), &subject("a"), SlotRange::Slots(4)).await.unwrap();
    assert_eq!((count.units(), count.frame.window.floor), (1, t("2026-01-01T06:00:00Z")));
    site.clock("2026-01-01T09:59:59.999Z").await;
    assert_eq!(site.ranking(&board).await.len(), 2);
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 1)]);
    site.clock("2026-01-01T12:59:59.999Z").await;
    assert_eq!(site.ranking(&board).await.len(), 1);
    site.clock("2026-01-01T13:00:00Z").await;
    assert_eq!(site.ranking(&board).await, []);
}

pub async fn every_result_states_its_window_and_time(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let who = subject("a");
    for (now, floor, head, end) in [
        ("2026-01-01T09:30:00Z", "2026-01-01T07:00:00Z", "2026-01-01T09:00:00Z", "2026-01-01T10:00:00Z"),
        ("2026-01-01T10:00:00Z", "2026-01-01T08:00:00Z", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"),
        ("2026-02-01T00:00:00.001Z", "2026-01-31T22:00:00Z", "2026-02-01T00:00:00Z", "2026-02-01T01:00:00Z"),
    ] {
        site.clock(now).await;
        // Nothing was written before this time, so nothing is retiring.
        let frame =
            Frame { window: Window { floor: t(floor), head: t(head), end: t(end) }, as_of: t(now), retiring: 0 };
        let store = &site.store;
        assert_eq!(store.page(&board.main(), 0, 10).await.unwrap().frame, frame);
        assert_eq!(store.neighbors(&board.main(), &who, 1).await.unwrap().frame, frame);
        assert_eq!(store.lookup(&board.main(), std::slice::from_ref(&who), true).await.unwrap().frame, frame);
        assert_eq!(store.standing(&board.main(), &who).await.unwrap().frame, frame);
        assert_eq!(store.count(&board.main(), &who, SlotRange::Slots(3)).await.unwrap().frame, frame);
        assert_eq!(store.remove(&board, &who).await.unwrap().frame, frame);
        assert_eq!(store.status(&board.main()).await.unwrap().frame, frame);
        assert_eq!(store.retire_step(&board.main()).await.unwrap().frame, frame);
        assert_eq!(store.audit_step(&board.main(), AuditCursor::default(), false).await.unwrap().frame, frame);
        assert_eq!(store.add(&board, Batch::default()).await.unwrap().frame, frame);
    }
}

pub async fn status_lists_nonempty_slots_with_their_subjects(site: Site) {
    let board = site.board("COUNT(4h, like, post)", "1h").await;
    assert_eq!(site.store.status(&board.main()).await.unwrap().slots, []);
    let (six, eight, nine) = ("2026-01-01T06:00:00Z", "2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z");
    let items =
        vec![plus("a", 1).at(six), plus("b", 2).at(six), plus("a", 1).at(nine), plus("c", 4).at(eight), plus("c", 5)];
    site.count(&board, items).await;
    let status = site.store.status(&board.main()).await.unwrap();
    assert_eq!((status.total, status.slots), (Some(3), vec![(t(six), 2), (t(eight), 1), (t(nine), 2)]));
    site.clock("2026-01-01T10:00:00Z").await;
    site.retire(&board).await;
    let status = site.store.status(&board.main()).await.unwrap();
    assert_eq!((status.total, status.slots, status.retiring), (Some(2), vec![(t(eight), 1), (t(nine), 2)], Vec::new()));
}
