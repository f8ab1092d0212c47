//! Tests of COUNT_DISTINCT with `max_values`: the value seen longest ago is dropped, and results are marked.

use std::sync::Arc;

use rolltop::board::{Board, Definition};
use rolltop::store::SlotRange;

use crate::given::{With, definition, exact, seen, subject};
use crate::site::{Site, counted};

const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";

async fn boards(site: &Site, most: u32) -> [Arc<Board>; 2] {
    let ranked = Definition { max_values: Some(most), ..definition("COUNT_DISTINCT(3h, login, device, user)", "1h") };
    let unranked = Definition { ranked: false, ..ranked.clone() };
    [site.define("ranked", &ranked).await, site.define("unranked", &unranked).await]
}

async fn left(site: &Site, board: &Arc<Board>) -> Vec<String> {
    site.values(board, "d").await.into_iter().map(|(value, _)| value).collect()
}

async fn is_capped(site: &Site, board: &Arc<Board>, slots: u32) -> bool {
    let (who, range) = (subject("d"), SlotRange::Slots(slots));
    let reading = site.store.count(&board.main(), &who, range).await.unwrap();
    if slots == board.edition().main().slots() {
        let standing = site.store.standing(&board.main(), &who).await.unwrap();
        let values = site.store.values(&board.main(), &who, 0, 1).await.unwrap();
        assert_eq!((standing.capped, values.capped), (reading.capped, reading.capped));
    }
    reading.capped
}

pub async fn the_least_recently_seen_value_is_dropped_at_the_cap(site: Site) {
    let boards = boards(&site, 3).await;
    for board in &boards {
        let items = [("u1", SEVEN), ("u2", EIGHT), ("u3", NINE)].map(|(what, at)| seen("d", what).at(at));
        site.count(board, items.to_vec()).await;
        assert!(!is_capped(&site, board, 3).await);
        assert_eq!(site.score(board, vec![seen("d", "u4")]).await, [counted(3)]);
        assert_eq!(left(&site, board).await, ["u4", "u3", "u2"]);
        assert_eq!(site.value(board, "d").await, exact(3));
        assert!(is_capped(&site, board, 3).await);
        // Another subject has the same number of its own values.
        site.count(board, vec![seen("e", "u1"), seen("e", "u2"), seen("e", "u3")]).await;
        assert!(!site.store.standing(&board.main(), &subject("e")).await.unwrap().capped);
    }
    site.audit(&boards[0]).await;
}

pub async fn of_equally_recent_values_the_smallest_bytes_are_dropped(site: Site) {
    for board in boards(&site, 2).await {
        let items = ["b", "é", "B", "日"].map(|what| seen("d", what).at(NINE));
        site.count(&board, items.to_vec()).await;
        assert_eq!(left(&site, &board).await, ["日", "é"]);
        site.count(&board, vec![seen("d", "a").at(NINE)]).await;
        // The value that was just added is itself dropped.
        assert_eq!(left(&site, &board).await, ["日", "é"]);
        assert_eq!(site.value(&board, "d").await, exact(2));
    }
}

pub async fn a_late_value_can_be_dropped_on_arrival(site: Site) {
    for board in boards(&site, 2).await {
        site.count(&board, vec![seen("d", "u1").at(NINE), seen("d", "u2").at(NINE)]).await;
        assert_eq!(site.score(&board, vec![seen("d", "u3").at(SEVEN)]).await, [counted(2)]);
        assert_eq!(left(&site, &board).await, ["u2", "u1"]);
        // The windows that reach back to it are capped.
        assert!(is_capped(&site, &board, 3).await);
        assert!(!is_capped(&site, &board, 2).await);
        assert!(!is_capped(&site, &board, 1).await);
        // A value that is known already drops none.
        site.count(&board, vec![seen("d", "u1")]).await;
        assert_eq!(left(&site, &board).await, ["u1", "u2"]);
        assert!(!is_capped(&site, &board, 2).await);
    }
}

pub async fn capped_resets_when_the_dropped_values_have_expired(site: Site) {
    let boards = boards(&site, 2).await;
    for board in &boards {
        site.count(board, vec![seen("d", "u1").at(EIGHT), seen("d", "u2"), seen("d", "u3"), seen("d", "u4").at(SEVEN)])
            .await;
        assert!(is_capped(&site, board, 2).await);
        assert!(!is_capped(&site, board, 1).await);
    }
    for (now, capped) in [
        ("2026-01-01T10:00:00Z", true),
        ("2026-01-01T10:59:59.999Z", true),
        ("2026-01-01T11:00:00Z", false),
        ("2026-01-01T12:00:00Z", false),
    ] {
        site.clock(now).await;
        for board in &boards {
            assert_eq!(is_capped(&site, board, 3).await, capped, "{now}");
        }
        site.retire(&boards[0]).await;
        assert_eq!(is_capped(&site, &boards[0], 3).await, capped, "{now}");
    }
}

pub async fn expired_values_free_capacity(site: Site) {
    let boards = boards(&site, 2).await;
    for board in &boards {
        site.count(board, vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(NINE)]).await;
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for board in &boards {
        // u1 is no longer stored, although its slot may still be retiring.
        site.count(board, vec![seen("d", "u3")]).await;
        assert!(!is_capped(&site, board, 3).await);
        assert_eq!(left(&site, board).await, ["u3", "u2"]);
        assert_eq!(site.value(board, "d").await, exact(2));
    }
    site.audit(&boards[0]).await;
}

pub async fn retracted_values_free_capacity(site: Site) {
    for board in boards(&site, 2).await {
        site.count(&board, vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(EIGHT)]).await;
        site.count(&board, vec![seen("d", "u1").at(EIGHT).undone(), seen("d", "u3").at(EIGHT)]).await;
        assert_eq!(left(&site, &board).await, ["u3", "u2"]);
        assert!(!is_capped(&site, &board, 3).await);
        assert_eq!(site.value(&board, "d").await, exact(2));
    }
}

pub async fn the_number_of_tombstones_is_limited_to_max_values(site: Site) {
    for board in boards(&site, 2).await {
        let gone = |what, at| seen("d", what).at(at).undone();
        site.count(&board, vec![gone("u1", SEVEN), gone("u2", EIGHT), gone("u3", NINE)]).await;
        assert!(!is_capped(&site, &board, 3).await);
        // Nothing is stored about u1, so its late event counts. The late events of the others do not.
        let twins = vec![seen("d", "u1").at(SEVEN), seen("d", "u2").at(SEVEN), seen("d", "u3").at(SEVEN)];
        assert_eq!(site.score(&board, twins).await, [counted(1); 3]);
        assert_eq!(left(&site, &board).await, ["u1"]);
    }
}
