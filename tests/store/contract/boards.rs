//! Tests of defining, conflicting, removing and redefining boards.

use std::sync::Arc;

use rolltop::board::{Board, Cover, Order, TrackId};
use rolltop::store::{AuditCursor, Batch, Defined, SlotRange, Store, StoreError};

use crate::given::{With, definition, name, new_board, plus, subject, t};
use crate::site::{START, Site};

pub async fn define_returns_created_unchanged_or_conflict(site: Site) {
    let wanted = definition("COUNT(3h, like, post)", "1h");
    let board = site.define("hot", &wanted).await;
    assert_eq!((board.name(), board.definition()), (&name("hot"), &wanted));
    site.count(&board, vec![plus("a", 1), plus("b", 2)]).await;
    for store in [&site.store, &site.other] {
        match store.define(new_board(&name("hot"), &wanted)).await.unwrap() {
            Defined::Unchanged(same) => assert_eq!(same.generation(), board.generation()),
            other => panic!("{other:?}"),
        }
        let others = [
            definition("COUNT(4h, like, post)", "1h"),
            definition("COUNT(3h, share, post)", "1h"),
            definition("SUM(3h, like, amount, post)", "1h"),
            definition("COUNT(3h, like, post)", "30m"),
            rolltop::board::Definition { order: Order::Asc, ..wanted.clone() },
            rolltop::board::Definition { cover: Cover::Full, ..wanted.clone() },
            rolltop::board::Definition { timezone: "Europe/Berlin".parse().unwrap(), ..wanted.clone() },
            rolltop::board::Definition { decimals: rolltop::board::Decimals::new(1).unwrap(), ..wanted.clone() },
        ];
        for other in others {
            match store.define(new_board(&name("hot"), &other)).await.unwrap() {
                Defined::Conflict(existing) => {
                    assert_eq!((existing.generation(), existing.definition()), (board.generation(), &wanted));
                }
                answer => panic!("{answer:?} for {other:?}"),
            }
        }
    }
    assert_eq!(site.ranking(&board).await.len(), 2);
}

pub async fn a_board_has_the_time_of_its_definition(site: Site) {
    let several = |metric: &str| {
        let windows = ["3m/1m", "all"].map(|window| window.parse().unwrap()).into();
        rolltop::board::Definition { windows, ..definition(metric, "1h") }
    };
    let wanted =
        [("one", definition("COUNT(3h, like, post)", "1h")), ("several", several("SUM(3h, sale, amount, post)"))];
    for (each, definition) in &wanted {
        assert_eq!(site.define(each, definition).await.defined_at(), Some(t(START)), "{each}");
    }
    site.clock("2026-01-01T11:00:00Z").await;
    let read = async |store: &Arc<dyn Store>| {
        let mut boards = store.boards().await.unwrap().boards;
        for (each, definition) in &wanted {
            boards.push(store.board(&name(each)).await.unwrap().unwrap());
            match store.define(new_board(&name(each), definition)).await.unwrap() {
                Defined::Unchanged(board) => boards.push(board),
                other => panic!("{other:?}"),
            }
        }
        match store.define(new_board(&name("one"), &wanted[1].1)).await.unwrap() {
            Defined::Conflict(board) => boards.push(board),
            other => panic!("{other:?}"),
        }
        boards
    };
    for store in [&site.store, &site.other] {
        for board in read(store).await {
            assert_eq!(board.defined_at(), Some(t(START)), "{board:?}");
        }
    }
    let removed = site.store.board(&name("one")).await.unwrap().unwrap();
    assert!(site.store.undefine(&removed).await.unwrap());
    site.define("one", &wanted[0].1).await;
    let again = site.other.board(&name("one")).await.unwrap().unwrap();
    assert_eq!(again.defined_at(), Some(t("2026-01-01T11:00:00Z")));
}

pub async fn boards_are_listed_in_order_of_name(site: Site) {
    assert!(site.store.boards().await.unwrap().boards.is_empty());
    let mut names: Vec<String> = (0..40).map(|i| format!("b{}", i * 7 % 40)).collect();
    for each in &names {
        site.define(each, &definition("COUNT(3h, like, post)", "1h")).await;
    }
    names.sort();
    for store in [&site.store, &site.other] {
        let listed: Vec<String> = store.boards().await.unwrap().boards.iter().map(|b| b.name().to_string()).collect();
        assert_eq!(listed, names);
    }
    let gone = site.store.board(&name("b7")).await.unwrap().unwrap();
    site.store.undefine(&gone).await.unwrap();
    names.retain(|each| each != "b7");
    let listed: Vec<String> = site.other.boards().await.unwrap().boards.iter().map(|b| b.name().to_string()).collect();
    assert_eq!(listed, names);
}

pub async fn defining_and_removing_boards_changes_the_boards_version(site: Site) {
    let both = async || {
        let version = site.store.boards_version().await.unwrap();
        assert_eq!(site.other.boards_version().await.unwrap(), version);
        version
    };
    let mut seen = vec![both().await];
    let wanted = definition("COUNT(3h, like, post)", "1h");
    for round in 0..3 {
        let board = site.define("hot", &wanted).await;
        seen.push(both().await);
        site.count(&board, vec![plus("a", 1)]).await;
        site.clock(&format!("2026-01-01T1{round}:30:00Z")).await;
        let other = definition("COUNT(4h, like, post)", "1h");
        assert!(matches!(site.other.define(new_board(&name("hot"), &other)).await, Ok(Defined::Conflict(_))));
        assert_eq!(seen.last(), Some(&both().await), "nothing has come or gone");
        site.define("cold", &wanted).await;
        seen.push(both().await);
        for name in ["hot", "cold"] {
            let board = site.other.board(&crate::given::name(name)).await.unwrap().unwrap();
            assert!(site.other.undefine(&board).await.unwrap());
            seen.push(both().await);
        }
    }
    let distinct: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "{seen:?}");
}

pub async fn changes_of_editions_change_the_boards_version(site: Site) {
    let board = site.define("hot", &definition("COUNT(3h, like, post)", "1h")).await;
    let mut seen = vec![site.other.boards_version().await.unwrap()];
    let next = definition("COUNT(3h, like, post WHERE app = 1)", "1h");
    let both = board.attached(next, TrackId(rand::random_range(1..=u64::MAX / 2))).unwrap();
    let both = site.store.change_editions(&board, both).await.unwrap();
    seen.push(site.other.boards_version().await.unwrap());
    let exchanged = site.store.change_editions(&both, both.exchanged(t(START)).unwrap()).await.unwrap();
    seen.push(site.other.boards_version().await.unwrap());
    site.store.change_editions(&exchanged, exchanged.detached()).await.unwrap();
    seen.push(site.other.boards_version().await.unwrap());
    let distinct: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "{seen:?}");
}

pub async fn board_changes_are_visible_to_other_instances_at_once(site: Site) {
    assert!(site.other.board(&name("hot")).await.unwrap().is_none());
    let board = site.define("hot", &definition("COUNT(3h, like, post)", "1h")).await;
    let seen = site.other.board(&name("hot")).await.unwrap().unwrap();
    assert_eq!((seen.generation(), seen.definition()), (board.generation(), board.definition()));
    let batch = || Batch { increments: vec![plus("a", 1), plus("b", 2)], return_scores: false };
    site.store.add(&seen, batch()).await.unwrap();
    site.other.add(&board, batch()).await.unwrap();
    assert_eq!(site.ranking(&seen).await, [(1, "b".to_owned(), 4), (2, "a".to_owned(), 2)]);
    site.other.undefine(&board).await.unwrap();
    assert!(site.store.board(&name("hot")).await.unwrap().is_none());
}

pub async fn undefine_returns_whether_the_board_existed(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 1).at("2026-01-01T07:00:00Z")]).await;
    assert!(site.store.undefine(&board).await.unwrap());
    assert!(!site.store.undefine(&board).await.unwrap());
    assert!(!site.other.undefine(&board).await.unwrap());
    assert!(site.store.board(board.name()).await.unwrap().is_none());
}

/// Makes every call about a board. Each must report that the board has changed.
async fn assert_every_call_returns_board_changed(site: &Site, old: &Arc<Board>) {
    let who = subject("a");
    let changed = |what: &str, error: Option<StoreError>| {
        assert!(matches!(error, Some(StoreError::BoardChanged)), "{what}: {error:?}");
    };
    for store in [&site.store, &site.other] {
        let batch = Batch { increments: vec![plus("a", 1).id("x"), plus("b", 1)], return_scores: true };
        changed("add", store.add(old, batch).await.err());
        changed("page", store.page(&old.main(), 0, 10).await.err());
        changed("neighbors", store.neighbors(&old.main(), &who, 1).await.err());
        changed("lookup", store.lookup(&old.main(), std::slice::from_ref(&who), true).await.err());
        changed("standing", store.standing(&old.main(), &who).await.err());
        changed("count", store.count(&old.main(), &who, SlotRange::Slots(1)).await.err());
        changed("remove", store.remove(old, &who).await.err());
        changed("status", store.status(&old.main()).await.err());
        changed("retire_step", store.retire_step(&old.main()).await.err());
        changed("audit_step", store.audit_step(&old.main(), AuditCursor::default(), true).await.err());
    }
}

pub async fn calls_with_a_handle_of_a_removed_board_return_board_changed(site: Site) {
    let old = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&old, vec![plus("a", 1), plus("b", 2)]).await;
    site.other.page(&old.main(), 0, 10).await.unwrap();
    assert!(site.store.undefine(&old).await.unwrap());
    assert_every_call_returns_board_changed(&site, &old).await;
    // A board that is defined again with the same name and definition is a different board.
    let new = site.board("COUNT(3h, like, post)", "1h").await;
    assert_ne!(new.generation(), old.generation());
    site.count(&new, vec![plus("a", 3), plus("b", 4)]).await;
    assert_every_call_returns_board_changed(&site, &old).await;
    for store in [&site.store, &site.other] {
        assert!(matches!(store.undefine(&old).await, Err(StoreError::BoardChanged) | Ok(false)));
    }
    assert_eq!(site.ranking(&new).await, [(1, "b".to_owned(), 4), (2, "a".to_owned(), 3)]);
    // This also holds after the clock has moved.
    site.clock("2026-01-02T00:00:00Z").await;
    assert_every_call_returns_board_changed(&site, &old).await;
}

pub async fn a_redefined_board_starts_empty(site: Site) {
    for (metric, slot) in [
        ("COUNT(3h, like, post)", "1h"),
        ("COUNT(3h, like, post)", "1h"),
        ("COUNT(3h, like, post)", "30m"),
        ("SUM(1d, like, amount, post)", "1d"),
        ("COUNT(3h, like, post)", "1h"),
    ] {
        let board = site.board(metric, slot).await;
        let status = site.store.status(&board.main()).await.unwrap();
        assert_eq!((status.total, status.slots, status.retiring), (Some(0), Vec::new(), Vec::new()));
        site.count(&board, vec![plus("a", 1).id("x"), plus("b", 2), plus("a", 4).at("2026-01-01T09:00:00Z")]).await;
        assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), 5), (2, "b".to_owned(), 2)]);
        assert_eq!(site.audit(&board).await, 2);
        assert!(site.store.undefine(&board).await.unwrap());
    }
}

pub async fn changes_to_a_board_do_not_affect_other_boards(site: Site) {
    let one = site.define("one", &definition("COUNT(3h, like, post)", "1h")).await;
    let two = site.define("two", &definition("COUNT(3h, like, post)", "1h")).await;
    let short = site.define("short", &definition("COUNT(30m, like, post)", "1m")).await;
    for (board, amount) in [(&one, 1), (&two, 2), (&short, 4)] {
        site.count(board, vec![plus("a", amount), plus("b", 8 * amount)]).await;
    }
    site.store.remove(&one, &subject("a")).await.unwrap();
    site.clock("2026-01-01T10:01:00Z").await;
    assert_eq!(site.ranking(&short).await, []);
    assert_eq!(site.ranking(&one).await, [(1, "b".to_owned(), 8)]);
    assert_eq!(site.ranking(&two).await, [(1, "b".to_owned(), 16), (2, "a".to_owned(), 2)]);
    site.store.undefine(&one).await.unwrap();
    assert_eq!(site.ranking(&two).await.len(), 2);
}
