//! Tests of rows: lost replies, an emptied server, lost writes, what is stored.

use std::collections::{BTreeMap, HashSet};

use futures_util::future::join;

use super::proxy::{Fault, Proxy};
use super::*;
use crate::waiting::Wait;

const KEYS: TableName = TableName::Keys;
/// The key of the table.
const KEY: &str = "rolltop:1:table:keys";

type Texts = BTreeMap<String, String>;

async fn read(store: &RedisStore) -> (u64, Texts) {
    let rows = store.rows(KEYS, None).await.unwrap().unwrap();
    (rows.version, rows.rows)
}

fn texts(rows: &[(&str, &str)]) -> Texts {
    rows.iter().map(|(id, text)| (id.to_string(), text.to_string())).collect()
}

async fn change(store: &RedisStore, from: Option<&str>, to: Option<&str>) -> bool {
    store.change_row(KEYS, "a", from, to).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_changed_and_read_despite_lost_replies() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::System)).await.unwrap();
        let other = system(&server).await;
        let (mut before, mut versions) = (None::<String>, HashSet::new());
        for nth in 0.. {
            assert!(nth < 100, "answers are lost for ever");
            let happened = proxy.happened();
            let to = (nth % 3 != 2).then(|| nth.to_string());
            proxy.arm_after(nth, Fault::Reset);
            assert!(change(&store, before.as_deref(), to.as_deref()).await, "{}: answer {nth}", engine.name);
            let (version, rows) = read(&store).await;
            assert!(versions.insert(version));
            assert_eq!(rows.get("a"), to.as_ref());
            assert_eq!(read(&other).await, (version, rows));
            before = to;
            if proxy.happened() == happened {
                println!("{}: {nth} answers", engine.name);
                break;
            }
        }
        assert!(versions.len() > 2);
    }
}

/// Tests a change whose reply is lost, and whose row another instance changes before the change is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_unknown_outcome_is_reported_as_unknown() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::System)).await.unwrap();
        let other = system(&server).await;
        for (of_other, expected) in [("3", "unknown"), ("1", "changed")] {
            store.change_row(KEYS, "a", None, Some("1")).await.unwrap();
            proxy.hold(true);
            let interrupt = async {
                let wait = Wait::begin("the change is made");
                while !change(&other, Some("2"), Some(of_other)).await {
                    wait.rest("the row is not changed").await;
                }
                proxy.arm(Fault::Reset);
                proxy.hold(false);
            };
            let (changed, ()) = join(store.change_row(KEYS, "a", Some("1"), Some("2")), interrupt).await;
            let (_, rows) = read(&other).await;
            match changed {
                Err(StoreError::TimedOut { .. }) => assert_eq!((expected, &*rows["a"]), ("unknown", "3")),
                // The row was as expected again, so it was replaced again.
                Ok(true) => assert_eq!((expected, &*rows["a"]), ("changed", "2")),
                other => panic!("{}: {other:?}", engine.name),
            }
            assert!(change(&other, rows.get("a").map(String::as_str), None).await);
        }
    }
}

#[tokio::test]
async fn an_emptied_store_has_no_rows() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        assert_eq!(read(&store).await, (0, texts(&[])));
        assert_eq!(store.rows(KEYS, Some(0)).await.unwrap(), None);
        let mut versions = HashSet::from([0]);
        for _ in 0..3 {
            assert!(change(&store, None, Some("1")).await);
            let (version, rows) = read(&other).await;
            assert!(versions.insert(version));
            assert_eq!(rows, texts(&[("a", "1")]));
            behind::<()>(&server, &["FLUSHALL"]);
            assert!(matches!(store.check().await, Err(StoreError::Emptied { .. })));
            store.reopen().await.unwrap();
            let now = other.rows(KEYS, Some(version)).await.unwrap().expect("the rows have changed");
            assert_eq!((now.version, now.rows), (0, texts(&[])));
            assert!(!change(&other, Some("1"), Some("2")).await);
        }
    }
}

/// Tests a server that has lost its latest writes: here the key has the content again that it had before.
#[tokio::test]
async fn versions_tell_apart_what_was_written_before_and_after_lost_writes() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (system(&server).await, system(&server).await);
        assert!(change(&store, None, Some("1")).await);
        let kept = read(&store).await;
        let dumped: Vec<u8> = behind(&server, &["DUMP", KEY]);
        let mut versions = HashSet::from([kept.0]);
        for _ in 0..3 {
            assert!(change(&store, Some("1"), Some("2")).await);
            let lost = read(&other).await;
            assert!(versions.insert(lost.0));
            let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
            cmd("RESTORE").arg(KEY).arg(0).arg(&dumped).arg("REPLACE").exec(&mut connection).unwrap();
            let found = other.rows(KEYS, Some(lost.0)).await.unwrap().expect("the rows have changed");
            assert_eq!((found.version, found.rows), kept);
            assert!(!change(&store, Some("2"), Some("3")).await);
        }
    }
}

#[tokio::test]
async fn a_table_is_one_hash_with_its_version_and_its_bytes() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        for (id, from, to) in [
            ("ä", None, Some("12345")),
            ("b", None, Some("")),
            ("c", None, Some("1")),
            ("ä", Some("12345"), Some("12")),
            ("c", Some("1"), None),
        ] {
            assert!(store.change_row(KEYS, id, from, to).await.unwrap());
            let (version, rows) = read(&store).await;
            let bytes: usize = rows.iter().map(|(id, text)| id.len() + text.len()).sum();
            let state: String = behind(&server, &["HGET", KEY, ""]);
            assert_eq!(state, format!("{version},{bytes}"));
        }
        assert_eq!(keys(&server, "*table*"), [KEY]);
        let fields: BTreeMap<String, String> = behind(&server, &["HGETALL", KEY]);
        assert_eq!((fields.len(), &*fields["ä"], &*fields["b"]), (3, "12", ""));
        reset(&server);
        let (version, _) = read(&store).await;
        assert_eq!(store.rows(KEYS, Some(version)).await.unwrap(), None);
        assert_eq!(calls(&server, ["evalsha", "hgetall"]), [2, 1]);
    }
}

#[tokio::test]
async fn a_table_without_a_valid_version_is_reported_as_damaged() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        for damage in [&["HSET", KEY, "", "x", "a", "1"][..], &["HSET", KEY, "a", "1"], &["SET", KEY, "1"]] {
            behind::<()>(&server, damage);
            for result in [
                store.rows(KEYS, None).await.map(drop),
                store.rows(KEYS, Some(0)).await.map(drop),
                store.change_row(KEYS, "a", Some("1"), Some("2")).await.map(drop),
                store.change_row(KEYS, "b", None, None).await.map(drop),
            ] {
                assert!(matches!(&result, Err(StoreError::Corrupt { .. })), "{}: {damage:?}: {result:?}", engine.name);
            }
            assert_eq!(store.rows(TableName::KeyUses, Some(0)).await.unwrap(), None);
            behind::<()>(&server, &["DEL", KEY]);
        }
        assert!(change(&store, None, Some("1")).await);
    }
}
