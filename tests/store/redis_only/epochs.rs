//! Tests of the epoch of a board: an instance that does not know the current editions neither changes nor reads it.

use std::collections::BTreeMap;

use rolltop::access::Caller;
use rolltop::board::{Epoch, Event, Field, Fields, Kind, TrackId};
use rolltop::service::{Service, ServiceError};

use super::*;

const DEFINITIONS: [&str; 5] = [
    r#"{"metric":"COUNT(3h, like, post)","slot":"1h"}"#,
    r#"{"metric":"COUNT(3h, like, post)","slot":"1h","windows":["10m/1m","all"]}"#,
    r#"{"metric":"COUNT(3h, like, post)","slot":"1h","shards":3}"#,
    r#"{"metric":"COUNT_DISTINCT(3h, like, post, user)","slot":"1h"}"#,
    r#"{"metric":"COUNT(3h, like, post)","slot":"1h","ranked":false}"#,
];

/// Defines `hot`, writes to it, and then begins the next epoch: the board gets a second edition of the same definition.
/// Returns the board as it was.
async fn outdated(store: &RedisStore, definition: &str) -> Arc<Board> {
    let definition: Definition = serde_json::from_str(definition).unwrap();
    let name = BoardName::parse("hot").unwrap();
    let Defined::Created(board) = store.define(new_board(&name, &definition)).await.unwrap() else {
        panic!("{name} exists")
    };
    store.add(&board, batch([change(&board)])).await.unwrap();
    if board.definition().ranked {
        // This page is cached.
        store.page(&board.main(), 0, 10).await.unwrap();
    }
    let to = board.attached(definition, TrackId(rand::random())).unwrap();
    let changed = store.change_editions(&board, to).await;
    changed.unwrap_or_else(|error| panic!("{:?}: {error:?}", board.definition()));
    board
}

fn change(board: &Board) -> Increment {
    match board.kind() {
        Kind::Distinct => crate::given::seen("a", "v"),
        _ => item("a", 1),
    }
}

/// Returns the content of every key, except what every call renews.
fn content(server: &RedisServer) -> Vec<(String, Vec<u8>)> {
    let all = keys(server, "*").into_iter().filter(|key| key != "rolltop:1:clock" && key != "rolltop:1:removed");
    let content = |key: &String| match behind::<String>(server, &["TYPE", key]).as_str() {
        // Its fields have no order.
        "hash" => behind::<BTreeMap<Vec<u8>, Vec<u8>>>(server, &["HGETALL", key])
            .into_iter()
            .flat_map(|(a, b)| [a, b])
            .flatten()
            .collect(),
        _ => behind(server, &["DUMP", key]),
    };
    all.map(|key| (key.clone(), content(&key))).collect()
}

#[tokio::test]
async fn an_instance_that_does_not_know_the_epoch_neither_changes_nor_reads_the_board() {
    for (engine, definition) in Engine::available().iter().flat_map(|engine| DEFINITIONS.map(|text| (engine, text))) {
        let server = RedisServer::start(engine);
        let store = simulated(&server).await;
        let board = outdated(&store, definition).await;
        let before = content(&server);
        let (a, many) = (subject("a"), (0..300).map(|i| subject(&format!("s{i}"))).collect::<Vec<_>>());
        let refused = |what: &str, error: Option<StoreError>| {
            assert!(matches!(error, Some(StoreError::StaleEpoch)), "{definition}: {what} ended with {error:?}");
        };
        for track in board.each_track() {
            if track.is_ranked() {
                refused("a page", store.page(&track, 0, 10).await.err());
                refused("a later page", store.page(&track, 5, 10).await.err());
                refused("neighbors", store.neighbors(&track, &a, 2).await.err());
                refused("a lookup", store.lookup(&track, &many, true).await.err());
            }
            refused("a standing", store.standing(&track, &a).await.err());
            refused("a read of slots", store.count(&track, &a, SlotRange::Slots(1)).await.err());
            if board.kind() == Kind::Distinct {
                refused("values", store.values(&track, &a, 0, 10).await.err());
            }
            refused("the status", store.status(&track).await.err());
            refused("a step of retiring", store.retire_step(&track).await.err());
            if track.is_ranked() {
                refused("an audit", store.audit_step(&track, AuditCursor::default(), true).await.err());
            }
        }
        refused("a removal of a subject", store.remove(&board, &a).await.err());
        refused("a removal of the board", store.undefine(&board).await.err());
        assert_eq!(content(&server), before, "{definition}");

        // The store returns the board as it is now, and a definition that was sent again finds it.
        let current = store.board(board.name()).await.unwrap().unwrap();
        assert_eq!((current.generation(), current.epoch()), (board.generation(), Epoch(1)));
        let again = store.define(new_board(board.name(), board.definition())).await.unwrap();
        assert!(matches!(&again, Defined::Unchanged(found) if found.is_same_as(&current)), "{again:?}");
        let added = store.add(&current, batch([change(&current)])).await.unwrap();
        assert!(matches!(added.outcomes[..], [Outcome::Counted { .. }]), "{added:?}");
        for track in current.each_track() {
            store.standing(&track, &a).await.unwrap();
            roll_over(&store, &track).await;
        }
        assert!(store.undefine(&current).await.unwrap());
        assert_eq!(keys(&server, "*:meta"), [""; 0]);
        assert_eq!(keys(&server, "*:other"), [""; 0]);
    }
}

#[tokio::test]
async fn the_service_learns_the_epoch() {
    for (engine, definition) in Engine::available().iter().flat_map(|engine| DEFINITIONS.map(|text| (engine, text))) {
        let server = RedisServer::start(engine);
        let store = simulated(&server).await;
        let service = Service::new(store.clone());
        service.boards(&Caller::trusted()).await.unwrap();
        let board = outdated(&store, definition).await;
        let known = service.board(&Caller::trusted(), board.name()).await.unwrap();
        assert_eq!(known.epoch(), Epoch(1));
        store.change_editions(&known, known.detached()).await.unwrap();
        let mut fields = Fields::default();
        for (name, text) in [("post", "b"), ("user", "u")] {
            fields.set(name, Field::Text(text.into()));
        }
        let event = Event { kind: "like".into(), fields, at: None, id: None, retract: false };
        let recorded = service.record(&Caller::trusted(), vec![event.clone(), event], true).await.unwrap();
        let boards: Vec<_> = recorded.events.iter().map(|event| event.boards.len()).collect();
        assert_eq!(boards, [1, 1], "{definition}: {recorded:?}");
        let about = service.standing(&known.main(), &subject("b")).await.unwrap();
        assert_eq!(about.of.board().epoch(), Epoch(2));
        let score = if board.kind() == Kind::Distinct { 1 } else { 2 };
        assert_eq!(about.answer.score, exact(score), "{definition}");
    }
}

#[tokio::test]
async fn an_epoch_that_is_no_number_makes_the_board_unreadable_and_no_other() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let service = Service::new(simulated(&server).await);
        for name in ["bad", "fine"] {
            let definition = Definition::new("COUNT(3h, like, post)".parse().unwrap(), "1h".parse().unwrap());
            service.define(&Caller::trusted(), &BoardName::parse(name).unwrap(), &definition).await.unwrap();
        }
        let [bad, fine] = ["bad", "fine"].map(|name| BoardName::parse(name).unwrap());
        let (bad, fine) = (
            service.board(&Caller::trusted(), &bad).await.unwrap(),
            service.board(&Caller::trusted(), &fine).await.unwrap(),
        );
        service.page(&bad.main(), 0, 10).await.unwrap();
        for text in ["x", "", "-1", "1.5", "00", " 1", "1", "2.", "2.0", "2.x", "3.1", "99999999999999999999"] {
            behind::<u64>(&server, &["HSET", "rolltop:1:{bad}:meta", "epoch", text]);
            let page = service.page(&bad.main(), 0, 10).await.err();
            let standing = service.standing(&bad.main(), &subject("a")).await.err();
            let added = service.add(&Caller::trusted(), &bad, batch([item("a", 1)])).await.err();
            for error in [page, standing, added] {
                let is_unreadable = matches!(&error, Some(ServiceError::Store(StoreError::Unreadable { .. })));
                assert!(is_unreadable, "{text:?}: {error:?}");
            }
            service.page(&fine.main(), 0, 10).await.unwrap();
            behind::<u64>(&server, &["HDEL", "rolltop:1:{bad}:meta", "epoch"]);
            service.page(&bad.main(), 0, 10).await.unwrap();
        }
    }
}
