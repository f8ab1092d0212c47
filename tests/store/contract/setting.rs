//! Tests of setting what a subject has on a board to one value, which is a removal followed by one increment.

use rolltop::board::{Amount, Definition};
use rolltop::service::{Service, ServiceError};

use crate::given::{With, definition, exact, plus, subject, t};
use crate::site::Site;

pub async fn setting_a_subject_replaces_it_in_every_window(site: Site) {
    let service = Service::new(site.store.clone());
    let windows = ["3m/1m", "all"].map(|window| window.parse().unwrap());
    for (metric, expected) in [
        ("COUNT(3h, e, s)", 7),
        ("SUM(3h, e, v, s)", 7),
        ("MIN(3h, e, v, s)", 7),
        ("MAX(3h, e, v, s)", 7),
        ("LAST(3h, e, v, s)", 7),
    ] {
        let board = Definition { windows: windows.into(), ..definition(metric, "1h") };
        let board = site.define(&metric[..3].to_ascii_lowercase(), &board).await;
        site.count(&board, vec![plus("a", 40).at("2026-01-01T08:00:00Z"), plus("a", 50), plus("b", 3)]).await;
        for _ in 0..2 {
            service.set_subject(&board, &subject("a"), None, Amount(7), Some(t("2026-01-01T09:00:00Z"))).await.unwrap();
            for (track, value) in board.each_track().zip([Some(expected), None, Some(expected)]) {
                let standing = site.other.standing(&track, &subject("a")).await.unwrap();
                let found = standing.rank.and(standing.score);
                assert_eq!(found, value.and_then(exact), "{metric} {}", track.length());
                assert_eq!(site.value(&track, "b").await, exact(3), "{metric} {}", track.length());
                site.audit(&track).await;
            }
        }
        let late = service.set_subject(&board, &subject("a"), None, Amount(7), Some(t("2026-01-01T09:30:01Z"))).await;
        assert!(matches!(late, Err(ServiceError::InvalidQuery { field: "at", .. })), "{late:?}");
        let much = service.set_subject(&board, &subject("a"), None, Amount(1 << 53), None).await;
        let name = if metric.starts_with("COUNT") || metric.starts_with("SUM") { "amount" } else { "value" };
        assert!(matches!(much, Err(ServiceError::InvalidQuery { field, .. }) if field == name), "{much:?}");
        assert_eq!(site.value(&board, "a").await, exact(expected));
    }
}
