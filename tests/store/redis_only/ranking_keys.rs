//! Tests of boards that have a ranking for each key: nothing is left of keys that are gone, and what calls cost the
//! server.

use rolltop::board::RankingKey;
use rolltop::store::TextRange;

use super::healing::{PERSISTENT, cut_inside_a_script, tend};
use super::*;
use crate::given::new_board;

const LIKES: &str = "COUNT(3h, like, post BY community)";
const HOUR: i64 = 3_600_000;

fn key(text: &str) -> RankingKey {
    RankingKey::parse(text).unwrap()
}

fn by(item: Increment, text: &str) -> Increment {
    Increment { subject: item.subject.clone().in_ranking(Some(&key(text))), ..item }
}

fn quiet(increments: impl IntoIterator<Item = Increment>) -> Batch {
    Batch { increments: increments.into_iter().collect(), return_scores: false }
}

async fn define_as(store: &RedisStore, name: &str, definition: Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?} instead of a new board"),
    }
}

async fn pass(store: &RedisStore, millis: i64) {
    store.set_clock(store.now().await.unwrap().plus_millis(millis)).await.unwrap();
}

/// Returns the keys of the server that belong to rankings.
fn of_rankings(server: &RedisServer) -> Vec<String> {
    keys(server, "*").into_iter().filter(|key| key.contains(":r") || key.contains(":k")).collect()
}

#[tokio::test]
async fn nothing_is_left_of_a_key_without_ranked_subjects() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "likes", LIKES, "1h").await;
        let before = keys(&server, "*");
        add(&store, &board, [by(item("a", 1), "rust"), by(item("b", 2), "rust"), by(item("a", 3), "art")]).await;
        // Two rankings, the list of keys, and the epochs of the rankings.
        assert_eq!(of_rankings(&server).len(), 4);
        add(&store, &board, [by(item("a", -3), "art")]).await;
        assert_eq!(of_rankings(&server).len(), 3);
        for who in ["a", "b"] {
            store.remove(&board, &by(item(who, 0), "rust").subject).await.unwrap();
        }
        let mut left = keys(&server, "*");
        left.retain(|key| !before.contains(key));
        assert_eq!(left, Vec::<String>::new());
    }
}

#[tokio::test]
async fn dropped_rankings_are_deleted_in_steps() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "likes", LIKES, "1h").await;
        let fill = |from: usize| quiet((from..from + 1_200).map(|nth| by(item("a", 1), &format!("k{nth}"))));
        for round in 0..2 {
            store.add(&board, fill(10_000 * round)).await.unwrap();
            assert_eq!(of_rankings(&server).len(), 1_202 * (round + 1) - round);
            pass(&store, 1_000 * HOUR).await;
            assert_eq!(store.status(&board.main()).await.unwrap().keys, Some(0));
        }
        // A ranking of the present epoch stays.
        add(&store, &board, [by(item("a", 7), "k1")]).await;
        let step = store.retire_step(&board.main()).await.unwrap();
        assert!(!step.done && of_rankings(&server).len() > 1_000, "one step deletes a bounded number");
        roll_over(&store, &board).await;
        assert_eq!(of_rankings(&server).len(), 3);
        assert_eq!(scores(&store, &board.main().of_key(Some(key("k1")))).await, [("a".to_owned(), 7)]);
    }
}

#[tokio::test]
async fn a_removed_board_leaves_no_ranking() {
    for engine in Engine::available() {
        for shards in [None, Some(3)] {
            let server = RedisServer::start(&engine);
            let store = simulated(&server).await;
            let mut definition: Definition = Definition::new(LIKES.parse().unwrap(), "1h".parse().unwrap());
            definition.windows = vec!["6h/2h".parse().unwrap()];
            let board = define_as(&store, "likes", Definition { shards, ..definition }).await;
            for _ in 0..2 {
                let items = (0..900).map(|nth| by(item("a", 1), &format!("k{nth}")));
                store.add(&board, quiet(items)).await.unwrap();
                // The first epoch is left behind.
                pass(&store, 1_000 * HOUR).await;
            }
            assert!(store.undefine(&board).await.unwrap());
            while !store.tidy_step().await.unwrap() {}
            assert_eq!(keys(&server, "*{likes*"), Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn a_key_is_in_one_partition_and_its_reads_ask_no_other() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let definition = Definition::new(LIKES.parse().unwrap(), "1h".parse().unwrap());
    let board = define_as(&store, "likes", Definition { shards: Some(16), ..definition }).await;
    let items = (0..40).flat_map(|nth| (0..5).map(move |who| (nth, who)));
    store
        .add(&board, quiet(items.map(|(nth, who)| by(item(&format!("s{who}"), 1 + who), &format!("k{nth}")))))
        .await
        .unwrap();
    assert_eq!(keys(&server, "*:r:*").len(), 40);
    let status = store.status(&board.main()).await.unwrap();
    assert_eq!((status.total, status.keys), (Some(200), Some(40)));
    let mut found: Vec<RankingKey> = Vec::new();
    while found.len() < 40 {
        let page = store
            .keys(&board.main(), TextRange { after: found.last().map(RankingKey::as_str), ..TextRange::default() }, 7)
            .await
            .unwrap();
        assert_eq!((page.total, page.keys.len()), (40, 7.min(40 - found.len())));
        found.extend(page.keys);
    }
    assert!(found.is_sorted());
    let track = board.main().of_key(Some(key("k7")));
    let read = || async {
        store.page(&track, 0, 3).await.unwrap();
        store.neighbors(&track, &subject("s2"), 1).await.unwrap();
        store.lookup(&track, &[subject("s1"), subject("s4")], true).await.unwrap();
        store.standing(&track, &subject("s3")).await.unwrap();
    };
    // The first call of a script sends its text, and its reply is not cached.
    read().await;
    read().await;
    reset(&server);
    read().await;
    assert_eq!(calls_of(&server, "evalsha"), 3, "the page is cached");
    let standing = store.standing(&track, &subject("s3")).await.unwrap();
    assert_eq!((standing.score, standing.rank, standing.total), (exact(4), Some(2), 5));
}

#[tokio::test]
async fn a_number_of_ranked_subjects_that_a_cut_made_wrong_is_not_shown() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, PERSISTENT);
        // The file must not be rewritten, or the server drops the half again.
        let options = RedisOptions { rewrite_aof: false, ..options(server.url(), ClockMode::Simulated(t(START))) };
        let store = RedisStore::connect(options).await.unwrap();
        let board = define_as(&store, "likes", Definition::new(LIKES.parse().unwrap(), "1h".parse().unwrap())).await;
        tend(&server, &[&store], &board).await;
        let like = |who: &str, text| store.add(&board, quiet([by(item(who, 5), text)]));
        like("s0", "k0").await.unwrap();
        like("s1", "k1").await.unwrap();
        // This write is made by `add.lua`, the one before by `write.lua`.
        like("s2", "k1").await.unwrap();
        server.kill();
        // After the write of the ranking.
        cut_inside_a_script(&server, b"ranked\r\n");
        server.restart();
        tend(&server, &[&store], &board).await;
        let status = || async { store.status(&board.main()).await.unwrap() };
        assert_eq!(status().await.total, Some(2), "the cut script was dropped as a whole");
        like("s3", "k1").await.unwrap();
        server.kill();
        server.restart();
        let found = status().await;
        // Valkey drops the half again.
        let expected = if engine.name == "redis" { None } else { Some(3) };
        assert_eq!((found.total, found.keys), (expected, Some(2)), "{}", engine.name);
        like("s4", "k0").await.unwrap();
        assert_eq!(status().await.total, expected.map(|total| total + 1), "a later write does not make it right");
        tend(&server, &[&store], &board).await;
        let ranked: Vec<Vec<String>> =
            keys(&server, "*:r:*").iter().map(|key| behind(&server, &["ZRANGE", key, "0", "-1"])).collect();
        assert_eq!(status().await.total, Some(ranked.concat().len() as u64), "the subjects were counted again");
    }
}

#[tokio::test]
async fn subjects_of_many_keys_are_not_counted_again() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let board = define_as(&store, "likes", Definition::new(LIKES.parse().unwrap(), "1h".parse().unwrap())).await;
    for many in [1_000, 1_001] {
        store.add(&board, quiet((0..many).map(|nth| by(item("s", 1), &format!("k{nth}"))))).await.unwrap();
        behind::<()>(&server, &["HINCRBY", &keys(&server, "*:meta")[0], "ranked", "1099511627776"]);
        assert_eq!(store.status(&board.main()).await.unwrap().total, None);
        assert_eq!(audit(&store, &board, false).await.1, []);
        assert_eq!(store.status(&board.main()).await.unwrap().total, (many == 1_000).then_some(1_000));
        if many == 1_000 {
            behind::<()>(&server, &["HINCRBY", &keys(&server, "*:meta")[0], "ranked", "7"]);
            assert_eq!(audit(&store, &board, true).await.1, []);
            assert_eq!(store.status(&board.main()).await.unwrap().total, Some(1_000), "a repair counts again");
        }
    }
    // Without keys there is nothing to count.
    pass(&store, 4 * HOUR).await;
    assert_eq!(store.status(&board.main()).await.unwrap().total, Some(0));
}

#[tokio::test]
async fn partitions_refuse_no_key_before_the_board_is_full() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let definition = Definition::new(LIKES.parse().unwrap(), "1h".parse().unwrap());
    let board = define_as(&store, "likes", Definition { shards: Some(16), max_keys: Some(2_000), ..definition }).await;
    let counted = |added: Added| {
        added.outcomes.iter().filter(|outcome| **outcome != Outcome::Rejected(Rejection::TooManyKeys)).count()
    };
    let fill = |range: std::ops::Range<usize>| quiet(range.map(|nth| by(item("a", 1), &format!("k{nth}"))));
    assert_eq!(counted(store.add(&board, fill(0..2_000)).await.unwrap()), 2_000);
    store.add(&board, fill(2_000..20_000)).await.unwrap();
    // 16 times 125 and five times its root and 5.
    assert_eq!(store.status(&board.main()).await.unwrap().keys, Some(16 * 186));
    // Existing keys go on.
    assert_eq!(counted(store.add(&board, fill(0..2_000)).await.unwrap()), 2_000);
}

/// Returns the microseconds of the server's time for each item of what `write` writes.
async fn cost(server: &RedisServer, items: usize, write: impl AsyncFn()) -> f64 {
    reset(server);
    write().await;
    let stats: String = behind(server, &["INFO", "commandstats"]);
    let usec = |line: &str| line.split("usec=").nth(1)?.split(',').next()?.parse::<f64>().ok();
    let all: f64 = stats.lines().filter(|line| line.starts_with("cmdstat_evalsha:")).filter_map(usec).sum();
    all / items as f64
}

/// Prints what writing and retiring cost the server.
#[tokio::test]
#[ignore = "a measurement"]
async fn measure_writes() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let plain = hourly(&store, "plain").await;
    let board = define(&store, "likes", LIKES, "1h").await;
    let one_key = |_: usize| "rust".to_owned();
    let many = |nth: usize| format!("key-{nth}");
    let items = |key: Option<&dyn Fn(usize) -> String>| {
        quiet((0..5_000).map(|nth| match key {
            Some(key) => by(item(&format!("post-{nth}"), 1), &key(nth)),
            None => item(&format!("post-{nth}"), 1),
        }))
    };
    for round in 0..4 {
        for (name, board, key) in [
            ("no keys", &plain, None),
            ("one key", &board, Some(&one_key as &dyn Fn(usize) -> String)),
            ("5,000 keys", &board, Some(&many as &dyn Fn(usize) -> String)),
        ] {
            let batch = items(key);
            let each = cost(&server, 5_000, async || drop(store.add(board, batch.clone()).await.unwrap())).await;
            println!("round {round}, {name}: {each:.2} us an item");
        }
    }
    let single = by(item("post-1", 1), "rust");
    for (name, board, one) in [("no keys", &plain, item("post-1", 1)), ("keys", &board, single)] {
        let write = async || {
            for _ in 0..500 {
                store.add(board, quiet([one.clone()])).await.unwrap();
            }
        };
        println!("single writes, {name}: {:.2} us", cost(&server, 500, write).await);
    }
    let with_ids =
        |batch: Batch| quiet(batch.increments.into_iter().enumerate().map(|(nth, i)| with_id(i, &nth.to_string())));
    for (name, board, key) in [
        ("no keys", &plain, None),
        ("one key", &board, Some(&one_key as &dyn Fn(usize) -> String)),
        ("5,000 keys", &board, Some(&many as &dyn Fn(usize) -> String)),
    ] {
        let batch = with_ids(items(key));
        let each = cost(&server, 5_000, async || drop(store.add(board, batch.clone()).await.unwrap())).await;
        println!("with ids, {name}: {each:.2} us an item");
    }
    pass(&store, HOUR).await;
    for (board, key) in [(&plain, None), (&board, Some("other"))] {
        let one = item("post-1", 1);
        store
            .add(
                board,
                quiet([match key {
                    Some(key) => by(one, key),
                    None => one,
                }]),
            )
            .await
            .unwrap();
    }
    pass(&store, 2 * HOUR).await;
    for (name, board, cells) in [("no keys", &plain, 5_000), ("keys", &board, 10_000)] {
        let retired = cost(&server, cells, async || {
            roll_over(&store, board).await;
        })
        .await;
        println!("retiring, {name}: {retired:.2} us a cell");
    }
}
