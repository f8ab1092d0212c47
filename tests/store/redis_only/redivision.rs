//! Tests of changes of the number of shards: the board holds the same in other partitions, nothing is lost or counted
//! twice meanwhile, and an attempt that ended early leaves nothing behind.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::board::{AttributesChange, ModerationChange, ModerationList, Visibility};
use rolltop::store::TextRange;

use super::*;
use serde_json::value::RawValue;

use crate::carrying::{all_of, assert_same, every_definition, history, subjects};
use crate::given::{With, plus};
use crate::redis_cluster::RedisCluster;
use crate::site::{COUNTED, DUPLICATE, Kind, START, Site};

const LATER: &str = "2026-01-01T10:20:00Z";

fn meta(server: &RedisServer, field: &str) -> Option<String> {
    behind(server, &["HGET", "rolltop:1:{board}:meta", field])
}

/// Returns the keys of a hash tag.
fn keys_of(server: &RedisServer, tag: &str) -> Vec<String> {
    behind(server, &["KEYS", &format!("rolltop:1:{{board{tag}}}:*")])
}

fn likes() -> Definition {
    Definition::new("COUNT(3h, like, post)".parse().unwrap(), "1h".parse().unwrap())
}

async fn defined(store: &RedisStore, definition: Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse("board").unwrap(), &definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?}"),
    }
}

/// Waits until the copying of a board's data has begun.
async fn copying(store: &RedisStore, board: &Arc<Board>) {
    while store.redivision(board).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_of_every_form_holds_the_same_in_other_partitions() {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let site = Site::new(Kind::servers().swap_remove(0)).await;
    let mut pairs = Vec::new();
    for (nth, definition) in every_definition().into_iter().enumerate() {
        let board = site.define(&format!("board{nth}"), &definition).await;
        let twin = site.define(&format!("twin{nth}"), &definition).await;
        let items = history(&mut rng, &board, 120, t(START));
        let with_id = Increment { at: None, retract: false, ..items[0].clone() }.id("one");
        for board in [&board, &twin] {
            site.add(board, items.clone()).await;
            assert_eq!(site.add(board, vec![with_id.clone()]).await, [COUNTED], "{definition:?}");
        }
        let (hide, freeze) = (ModerationChange::Visibility(Visibility::Hidden), ModerationChange::Frozen(true));
        let who = [&items[0].subject, &items[1].subject];
        let name = RawValue::from_string(r#"{"name":"N"}"#.to_owned()).unwrap();
        for board in [&board, &twin] {
            let changes = [(who[0].clone(), hide), (who[1].clone(), freeze)];
            site.store.moderate(board, &changes).await.unwrap();
            let described = who.map(|who| (who.clone(), AttributesChange::merging(&name).unwrap()));
            site.store.set_attributes(board, &described).await.unwrap();
        }
        let expected = all_of(&site, &board, &subjects()).await;
        let mut known = board;
        for shards in [5, 1, 3] {
            let divided = site.store.redivide(&known, shards, &[]).await.unwrap();
            assert_eq!(divided.definition().shards, Some(shards));
            assert_eq!(divided.partitions().map(|numbers| numbers.len()), Some(shards as usize));
            assert_same(&all_of(&site, &divided, &subjects()).await, &expected, &format!("{definition:?} in {shards}"));
            for (list, who) in [(ModerationList::Hidden, who[0]), (ModerationList::Frozen, who[1])] {
                let found = site.store.moderated(&divided, list, TextRange::default(), 9).await.unwrap();
                assert_eq!((found.total, &found.items[0].0), (1, who), "{definition:?} in {shards}");
            }
            let described = site.store.described(&divided, TextRange::default(), 9).await.unwrap();
            let named = described.items.iter().filter(|(_, attributes)| attributes.get("name") == Some("\"N\""));
            let distinct = if who[0] == who[1] { 1 } else { 2 };
            assert_eq!((described.total, named.count()), (distinct, distinct as usize), "{definition:?} in {shards}");
            // An instance that knows the board as it was has to look it up, and its writes count there.
            let standing = site.other.status(&known.main()).await;
            assert!(matches!(standing, Err(StoreError::StaleEpoch)), "{standing:?}");
            let again = Batch { increments: vec![with_id.clone()], return_scores: false };
            let added = site.other.add(&known, again).await.unwrap();
            assert_eq!(
                (added.outcomes, added.newer.map(|board| board.epoch())),
                (vec![DUPLICATE], Some(divided.epoch()))
            );
            known = divided;
        }
        pairs.push((known, twin));
    }
    site.clock(LATER).await;
    for (board, twin) in pairs {
        let more = history(&mut rng, &board, 40, t(LATER));
        assert_eq!(site.add(&board, more.clone()).await, site.add(&twin, more).await);
        let expected = all_of(&site, &twin, &subjects()).await;
        assert_same(&all_of(&site, &board, &subjects()).await, &expected, &format!("{:?}", board.definition()));
        for track in board.each_track() {
            assert_eq!(site.audit(&track).await, site.audit(&twin.each_track().nth(track.number()).unwrap()).await);
        }
    }
}

/// Writers of two instances send items with ids until they are counted, while the number of shards changes.
async fn count_meanwhile(stores: [Arc<RedisStore>; 2], board: Arc<Board>, changes: &[u32]) {
    let (stop, sent) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let mut writers = Vec::new();
    for number in 0..4_u64 {
        let (store, stop, sent, board) =
            (stores[number as usize % 2].clone(), stop.clone(), sent.clone(), board.clone());
        writers.push(tokio::spawn(async move {
            let (mut rng, mut known, mut frozen) = (StdRng::seed_from_u64(number), board, 0);
            for round in 0.. {
                if stop.load(Ordering::SeqCst) == 1 {
                    break;
                }
                let increments: Vec<Increment> = (0..rng.random_range(1..30))
                    .map(|nth| {
                        plus(&format!("s{}", rng.random_range(0..300)), 1).id(&format!("{number}-{round}-{nth}"))
                    })
                    .collect();
                loop {
                    let batch = Batch { increments: increments.clone(), return_scores: false };
                    match store.add(&known, batch).await {
                        Ok(added) => {
                            known = added.newer.unwrap_or(known);
                            break;
                        }
                        Err(StoreError::Frozen { .. }) => frozen += 1,
                        Err(StoreError::TimedOut { .. } | StoreError::Overloaded { .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                sent.fetch_add(increments.len() as i64, Ordering::SeqCst);
            }
            frozen
        }));
    }
    let mut known = board;
    for shards in changes {
        tokio::time::sleep(Duration::from_millis(100)).await;
        known = stores[*shards as usize % 2].redivide(&known, *shards, &[]).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.store(1, Ordering::SeqCst);
    let mut frozen = 0;
    for writer in writers {
        frozen += writer.await.unwrap();
    }
    assert!(frozen > 0, "no write met a frozen board");
    let page = stores[0].page(&known.main(), 0, 1_000).await.unwrap();
    assert_eq!(page.items.iter().map(|line| line.score.units()).sum::<i64>(), sent.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn items_that_are_written_while_shards_change_count_once() {
    let server = RedisServer::start(&Engine::available()[0]);
    let stores = [simulated(&server).await, simulated(&server).await];
    let board = defined(&stores[0], likes()).await;
    count_meanwhile(stores, board, &[4, 1, 9, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_takes_a_board_of_one_part_in_24() {
    let cluster = tokio::task::block_in_place(|| RedisCluster::start(&Engine::available()[0], 6, 0));
    let connect = async || RedisStore::connect(options(cluster.url(), ClockMode::System)).await.unwrap();
    let stores = [connect().await, connect().await];
    let board = defined(&stores[0], Definition { shards: Some(1), ..likes() }).await;
    count_meanwhile(stores, board, &[24, 6]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_ended_early_leaves_the_board_as_it_was() {
    for shards in [None, Some(3)] {
        let server = RedisServer::start(&Engine::available()[0]);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        let board = defined(&store, Definition { shards, ..likes() }).await;
        let items: Vec<Increment> = (0..20_000).map(|nth| plus(&format!("s{nth}"), 1).id("x")).collect();
        for some in items.chunks(5_000) {
            add(&store, &board, some.iter().cloned()).await;
        }
        let before = keys_of(&server, "*").len();
        let copy = tokio::spawn({
            let (store, board) = (store.clone(), board.clone());
            async move { store.redivide(&board, 7, &[]).await }
        });
        while keys_of(&server, "*").len() <= before + 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        copy.abort();
        let _ = copy.await;
        // It is frozen as long as the lease is valid, and read meanwhile.
        let frozen = other.board(board.name()).await.unwrap().unwrap();
        assert!(frozen.redivision().is_some());
        let write = || other.add(&board, Batch { increments: vec![plus("new", 1)], return_scores: false });
        assert!(matches!(write().await, Err(StoreError::Frozen { shards: 7, .. })));
        let removal = other.remove(&frozen, &subject("s1")).await;
        assert!(matches!(removal, Err(StoreError::Frozen { .. })), "{removal:?}");
        assert_eq!(other.page(&frozen.main(), 0, 5).await.unwrap().total, 20_000);
        let again = other.redivide(&frozen, 5, &[]).await;
        assert!(matches!(again, Err(StoreError::EditionsBusy { .. })), "{again:?}");
        // When it has ended, the next write counts in the partitions that the board had.
        behind::<i64>(&server, &["HSET", "rolltop:1:{board}:meta", "lease", "1 0 0"]);
        assert_eq!(write().await.unwrap().outcomes, [COUNTED]);
        let thawed = store.board(board.name()).await.unwrap().unwrap();
        assert_eq!(
            (thawed.redivision(), thawed.partitions(), thawed.definition().shards),
            (None, board.partitions(), shards)
        );
        let added =
            store.add(&board, Batch { increments: vec![items[7].clone()], return_scores: false }).await.unwrap();
        assert_eq!(added.outcomes, [DUPLICATE]);
        assert_eq!(store.page(&thawed.main(), 0, 5).await.unwrap().total, 20_001);
        // The copies are deleted some minutes later.
        assert!(keys_of(&server, "*").len() > before);
        store.set_clock(store.now().await.unwrap().plus_millis(300_000)).await.unwrap();
        while !store.tidy_step().await.unwrap() {}
        assert_eq!(keys_of(&server, "*").len(), before, "{:?}", keys_of(&server, "*"));
        // Retiring lets a board go on, too.
        let copied = store.redivide(&thawed, 2, &[]).await.unwrap();
        assert_eq!(store.page(&copied.main(), 0, 5).await.unwrap().total, 20_001);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copying_is_ended_by_any_instance_and_by_retiring() {
    let server = RedisServer::start(&Engine::available()[0]);
    let (store, other) = (simulated(&server).await, simulated(&server).await);
    let board = defined(&store, likes()).await;
    for first in (0..40_000).step_by(5_000) {
        add(&store, &board, (first..first + 5_000).map(|nth| plus(&format!("s{nth}"), 1))).await;
    }
    let begin = |known: &Arc<Board>| {
        let (store, known) = (store.clone(), known.clone());
        tokio::spawn(async move { store.redivide(&known, 7, &[]).await })
    };
    let before = keys_of(&server, "*").len();
    let copy = begin(&board);
    copying(&other, &board).await;
    assert!(other.end_redivision(&board).await.unwrap());
    assert!(!other.end_redivision(&board).await.unwrap());
    let ended = copy.await.unwrap();
    assert!(matches!(ended, Err(StoreError::StaleEpoch)), "{ended:?}");
    // The copy is deleted by the instance that made it.
    assert_eq!(keys_of(&server, "*").len(), before, "{:?}", keys_of(&server, "*"));
    let thawed = other.board(board.name()).await.unwrap().unwrap();
    add(&other, &thawed, [plus("new", 1)]).await;

    let copy = begin(&thawed);
    copying(&other, &thawed).await;
    copy.abort();
    let _ = copy.await;
    let frozen = other.board(board.name()).await.unwrap().unwrap();
    assert!(other.retire_step(&frozen.main()).await.is_ok());
    behind::<i64>(&server, &["HSET", "rolltop:1:{board}:meta", "lease", "1 0 0"]);
    assert!(matches!(other.retire_step(&frozen.main()).await, Err(StoreError::StaleEpoch)));
    let thawed = other.board(board.name()).await.unwrap().unwrap();
    assert_eq!((thawed.redivision(), meta(&server, "parts")), (None, None));
    assert_eq!(store.page(&thawed.main(), 0, 5).await.unwrap().total, 40_001);

    // Nobody writes or retires after the third attempt: then the next one lets the board go on.
    let copy = begin(&thawed);
    copying(&other, &thawed).await;
    copy.abort();
    let _ = copy.await;
    let frozen = other.board(board.name()).await.unwrap().unwrap();
    let early = other.redivide(&frozen, 3, &[]).await;
    assert!(matches!(early, Err(StoreError::EditionsBusy { .. })), "{early:?}");
    behind::<i64>(&server, &["HSET", "rolltop:1:{board}:meta", "lease", "1 0 0"]);
    let divided = other.redivide(&frozen, 3, &[]).await.unwrap();
    assert_eq!(divided.partitions().map(|numbers| numbers.len()), Some(3));
    assert_eq!(other.page(&divided.main(), 0, 5).await.unwrap().total, 40_001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_board_no_longer_has_is_deleted() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let board = defined(&store, Definition { windows: vec!["6h/2h".parse().unwrap()], ..likes() }).await;
    add(&store, &board, (0..500).map(|nth| plus(&format!("s{nth}"), 1).id("x"))).await;
    let divided = store.redivide(&board, 2, &[]).await.unwrap();
    assert!(keys_of(&server, "").len() > 1);
    // Its further window is no longer read in the epoch in which it was frozen.
    let metas: Vec<String> = keys_of(&server, "").into_iter().filter(|key| key.ends_with("meta")).collect();
    assert_eq!(metas.len(), 2, "{metas:?}");
    for key in metas {
        assert_eq!(behind::<String>(&server, &["HGET", &key, "epoch"]), divided.epoch().to_string(), "{key}");
    }
    let notes = |server| behind::<Vec<String>>(server, &["SMEMBERS", "rolltop:1:removed"]);
    assert_eq!(notes(&server).len(), 1, "{:?}", notes(&server));
    store.set_clock(store.now().await.unwrap().plus_millis(300_000)).await.unwrap();
    while !store.tidy_step().await.unwrap() {}
    assert_eq!((keys_of(&server, ""), notes(&server)), (vec!["rolltop:1:{board}:meta".to_owned()], Vec::new()));
    for field in ["head", "floor", "version"] {
        assert_eq!(meta(&server, field), None, "{field}");
    }
    assert_eq!(store.page(&divided.main(), 0, 5).await.unwrap().total, 500);
    // A board that is removed leaves nothing of any of its partitions.
    let again = store.redivide(&divided, 3, &[]).await.unwrap();
    assert!(store.undefine(&again).await.unwrap());
    store.set_clock(store.now().await.unwrap().plus_millis(300_000)).await.unwrap();
    while !store.tidy_step().await.unwrap() {}
    assert_eq!(keys_of(&server, "*"), Vec::<String>::new());
    assert_eq!(notes(&server), Vec::<String>::new());
}

#[tokio::test]
async fn boards_that_cannot_be_copied_are_refused_and_not_frozen() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let board = defined(&store, likes()).await;
    let attached = board.attached(likes(), rolltop::board::TrackId(rand::random())).unwrap();
    let both = store.change_editions(&board, attached).await.unwrap();
    let refused = store.redivide(&both, 2, &[]).await;
    assert!(matches!(refused, Err(StoreError::EditionsBusy { .. })), "{refused:?}");
    let alone = store.change_editions(&both, both.detached()).await.unwrap();
    store.begin_import(&alone, rolltop::store::ImportId(7)).await.unwrap();
    assert!(matches!(store.redivide(&alone, 2, &[]).await, Err(StoreError::ImportOpen)));
    store.end_import(&alone, rolltop::store::ImportId(7)).await.unwrap();
    let refused = store.redivide(&board, 2, &[]).await;
    assert!(matches!(refused, Err(StoreError::StaleEpoch)), "{refused:?}");
    add(&store, &alone, [plus("a", 1)]).await;
    assert_eq!(store.redivide(&alone, 2, &[]).await.unwrap().partitions().map(|numbers| numbers.len()), Some(2));
}
