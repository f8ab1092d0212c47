//! Tests of the one clock of a store.

use rolltop::board::Timestamp;
use rolltop::store::{ClockMode, StoreError};

use crate::given::{plus, t};
use crate::site::{START, Site};

pub async fn set_clock_refuses_earlier_times(site: Site) {
    assert_eq!(site.store.now().await.unwrap(), t(START));
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let later = t("2026-01-01T11:00:00.001Z");
    assert_eq!(site.store.set_clock(later).await.unwrap(), later);
    assert_eq!(site.store.set_clock(later).await.unwrap(), later);
    for earlier in [later.plus_millis(-1), t(START), Timestamp::EPOCH] {
        let error = site.store.set_clock(earlier).await.unwrap_err();
        assert!(matches!(error, StoreError::ClockBackward { now } if now == later), "{error:?}");
        assert_eq!(site.store.now().await.unwrap(), later);
    }
    assert_eq!(site.store.page(&board.main(), 0, 1).await.unwrap().frame.as_of, later);
}

pub async fn the_clock_is_shared_by_all_instances(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 2)]).await;
    let later = t("2026-01-01T12:00:00Z");
    site.other.set_clock(later).await.unwrap();
    assert_eq!(site.store.now().await.unwrap(), later);
    let page = site.store.page(&board.main(), 0, 10).await.unwrap();
    assert_eq!((page.frame.as_of, page.total), (later, 0));
    assert!(matches!(site.store.set_clock(t(START)).await, Err(StoreError::ClockBackward { .. })));
}

pub async fn set_clock_is_refused_on_the_system_clock(site: Site) {
    let site = Site::on(site.kind, ClockMode::System).await;
    let before = site.store.now().await.unwrap();
    assert!(matches!(site.store.set_clock(before).await, Err(StoreError::ClockNotSimulated)));
    let ours = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    assert!((ours - before.millis()).abs() < 60_000, "{before} is not about now");
    let board = site.board("COUNT(1d, like, post)", "1d").await;
    let mut last = before;
    for _ in 0..20 {
        site.add(&board, vec![plus("a", 1), plus("b", 1)]).await;
        let frame = site.other.page(&board.main(), 0, 10).await.unwrap().frame;
        assert!(frame.as_of >= last && frame.as_of >= frame.window.head && frame.as_of < frame.window.end);
        last = frame.as_of;
    }
    assert!(site.store.now().await.unwrap() >= last);
}

pub async fn a_window_at_the_epoch_starts_at_the_epoch(site: Site) {
    let site = Site::on(site.kind, ClockMode::Simulated(Timestamp::EPOCH)).await;
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 2)]).await;
    let frame = site.store.page(&board.main(), 0, 10).await.unwrap().frame;
    assert_eq!((frame.window.floor, frame.window.head), (Timestamp::EPOCH, Timestamp::EPOCH));
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 2), (2, "a".to_owned(), 1)]);
    site.clock("1970-01-01T02:59:59.999Z").await;
    assert_eq!(site.ranking(&board).await.len(), 2);
    site.clock("1970-01-01T03:00:00Z").await;
    assert_eq!(site.ranking(&board).await, []);
}

pub async fn a_board_works_at_the_largest_timestamp(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 2)]).await;
    for end in [Timestamp::MAX.plus_millis(-1), Timestamp::MAX] {
        site.clock_at(end).await;
        site.count(&board, vec![plus("a", 3), plus("b", 1)]).await;
        site.audit(&board).await;
    }
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), 6), (2, "b".to_owned(), 2)]);
}
