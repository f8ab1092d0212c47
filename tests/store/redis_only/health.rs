//! Tests of the store's health: boards that cannot be read, a server that may evict or was emptied, boards that are
//! only partly announced.

use rolltop::access::Caller;
use rolltop::board::{Event, Field, Fields};
use rolltop::service::{Service, ServiceError};

use super::*;

const NEWER: &str = r#"{"metric":"COUNT(3h, like, post)","slot":"1h","from_a_newer_version":7}"#;

#[tokio::test]
async fn an_unreadable_board_does_not_affect_other_boards() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let fine = hourly(&store, "fine").await;
        for (name, damage) in [
            ("newer", &["HSET", "rolltop:1:{newer}:meta", "definition", NEWER][..]),
            ("broken", &["HSET", "rolltop:1:{broken}:meta", "definition", "{"][..]),
            ("headless", &["HDEL", "rolltop:1:{headless}:meta", "generation"][..]),
            ("other-type", &["SET", "rolltop:1:{other-type}:meta", "x"][..]),
        ] {
            let board = hourly(&store, name).await;
            behind::<redis::Value>(&server, damage);
            let error = store.board(board.name()).await.unwrap_err();
            let text = error.to_string();
            assert!(matches!(&error, StoreError::Unreadable { name: named, .. } if named == name), "{error:?}");
            assert!(text.contains(name) && text.contains("upgrade") && text.contains("restore"), "{text}");
        }
        behind::<()>(&server, &["SADD", "rolltop:1:boards", "No Name"]);
        let listing = store.boards().await.unwrap();
        assert_eq!(listing.boards.iter().map(|board| board.generation()).collect::<Vec<_>>(), [fine.generation()]);
        let mut unreadable: Vec<&str> = listing.unreadable.iter().map(|board| board.name.as_str()).collect();
        unreadable.sort_unstable();
        assert_eq!(unreadable, ["No Name", "broken", "headless", "newer", "other-type"]);
        let newer = listing.unreadable.iter().find(|board| board.name == "newer").unwrap();
        assert!(newer.reason.contains("from_a_newer_version"), "{newer:?}");
        assert_eq!(newer.generation.len(), 16);

        // Calls about all boards still work, even through an instance that has never read the board.
        let service = Service::new(simulated(&server).await);
        assert_eq!(service.boards(&Caller::trusted()).await.unwrap().len(), 1);
        let recorded = service.record(&Caller::trusted(), vec![like("p1")], false).await.unwrap();
        assert_eq!(recorded.events[0].boards.len(), 1);
        let readiness = service.readiness().await;
        assert!(readiness.is_ready(), "{readiness:?}");
        assert_eq!(readiness.warnings.len(), 5, "{readiness:?}");
        assert!(readiness.warnings.iter().any(|warning| warning.contains("'newer'")), "{readiness:?}");
        let refused = service.board(&Caller::trusted(), &BoardName::parse("newer").unwrap()).await.unwrap_err();
        assert!(matches!(refused, ServiceError::Store(StoreError::Unreadable { .. })), "{refused:?}");
        // A configuration that names the board does not prevent the service from starting.
        let configured = ["fine", "newer"].map(|name| (BoardName::parse(name).unwrap(), fine.definition().clone()));
        service.define_configured(&configured).await.unwrap();
    }
}

fn like(post: &str) -> Event {
    let mut fields = Fields::default();
    fields.set("post", Field::Text(post.into()));
    Event { kind: "like".into(), fields, at: None, id: None, retract: false }
}

#[tokio::test]
async fn a_server_with_an_eviction_policy_fails_the_check() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        store.check().await.unwrap();
        behind::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
        let error = store.check().await.unwrap_err();
        assert!(error.to_string().contains("maxmemory-policy allkeys-lru"), "{error}");
        assert!(store.check().await.is_err(), "what is wrong is read again each time");
        behind::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        store.check().await.unwrap();
    }
}

#[tokio::test]
async fn configured_boards_are_redefined_in_an_emptied_store() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let mut services = Vec::new();
        let definition = crate::given::definition("COUNT(3h, like, post)", "1h");
        for names in [&["a", "b"][..], &["b", "c"][..]] {
            let service = Service::new(system(&server).await);
            let configured: Vec<_> =
                names.iter().map(|name| (BoardName::parse(name).unwrap(), definition.clone())).collect();
            service.define_configured(&configured).await.unwrap();
            services.push(service);
        }
        let raw = system(&server).await;
        hourly(&raw, "by-hand").await;
        services[0].record(&Caller::trusted(), vec![like("p1")], false).await.unwrap();
        behind::<()>(&server, &["FLUSHALL"]);
        assert!(matches!(raw.check().await, Err(StoreError::Emptied { .. })));
        // An event that arrives before any check counts on every configured board of this instance.
        let recorded = services[0].record(&Caller::trusted(), vec![like("p2")], false).await.unwrap();
        assert_eq!(recorded.events[0].boards.len(), 2, "{recorded:?}");
        // Each instance notices on its own, although the store has a clock again.
        for service in &services {
            let readiness = service.readiness().await;
            assert!(readiness.is_ready(), "{readiness:?}");
        }
        let names: Vec<_> = services[0]
            .boards(&Caller::trusted())
            .await
            .unwrap()
            .iter()
            .map(|board| board.name().to_string())
            .collect();
        assert_eq!(names, ["a", "b", "c"]);
        for service in &services {
            let board = service.board(&Caller::trusted(), &BoardName::parse("b").unwrap()).await.unwrap();
            let page = service.page(&board.main(), 0, 9).await.unwrap();
            assert_eq!(page.answer.items.len(), 1, "what was counted before is gone, what came after counts");
        }
    }
}

/// Tests an emptied store on a simulated clock. Nothing can be done without a time, so the boards are defined again
/// when readiness is checked.
#[tokio::test]
async fn the_readiness_check_restores_an_emptied_store_with_simulated_clock() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let service = Service::new(store.clone());
        let name = BoardName::parse("a").unwrap();
        let definition = crate::given::definition("COUNT(3h, like, post)", "1h");
        service.define_configured(&[(name.clone(), definition)]).await.unwrap();
        let board = service.board(&Caller::trusted(), &name).await.unwrap();
        behind::<()>(&server, &["FLUSHALL"]);
        for error in [
            store.check().await.unwrap_err(),
            store.now().await.unwrap_err(),
            store.page(&board.main(), 0, 9).await.unwrap_err(),
            store.set_clock(t(START)).await.unwrap_err(),
        ] {
            assert!(matches!(error, StoreError::Emptied { .. }) && error.is_transient(), "{error:?}");
        }
        assert!(service.readiness().await.is_ready());
        assert_eq!(store.now().await.unwrap(), t(START));
        assert_eq!(
            service.record(&Caller::trusted(), vec![like("p1")], false).await.unwrap().events[0].boards.len(),
            1
        );
    }
}

/// Tests an instance that ended after it created a board and before it changed the version of the list.
#[tokio::test]
async fn reading_an_unannounced_board_announces_it_to_other_instances() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let version_key = "rolltop:1:{rolltop:1:boards}:version";
        let (reader, teller) = (Service::new(simulated(&server).await), simulated(&server).await);
        hourly(&*simulated(&server).await, "first").await;
        reader.record(&Caller::trusted(), vec![like("p0")], false).await.unwrap();
        for (round, list) in [(0, false), (1, true)] {
            let before: String = behind(&server, &["GET", version_key]);
            let name = format!("late-{round}");
            hourly(&*simulated(&server).await, &name).await;
            behind::<()>(&server, &["SET", version_key, &before]);
            behind::<()>(&server, &["HDEL", &format!("rolltop:1:{{{name}}}:meta"), "announced"]);
            if list {
                // In this round the list of boards returns the board, in the other a look-up by name.
                let listing = teller.boards().await.unwrap();
                assert_eq!(listing.boards.len(), 3);
            } else {
                behind::<()>(&server, &["SREM", "rolltop:1:boards", &name]);
                assert!(teller.board(&BoardName::parse(&name).unwrap()).await.unwrap().is_some());
            }
            let recorded = reader.record(&Caller::trusted(), vec![like("p1")], false).await.unwrap();
            assert_eq!(recorded.events[0].boards.len(), 2 + round, "{recorded:?}");
            // The version is changed once, not at every read.
            let after: String = behind(&server, &["GET", version_key]);
            assert_ne!(after, before);
            simulated(&server).await.board(&BoardName::parse(&name).unwrap()).await.unwrap();
            assert_eq!(behind::<String>(&server, &["GET", version_key]), after);
        }
    }
}
