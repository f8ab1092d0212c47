//! Tests of look-ups with ranks: their cost, and that scores and ranks show one state while it changes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

async fn of_parts(store: &RedisStore, name: &str, shards: Option<u32>) -> Arc<Board> {
    let metric = "COUNT(3h, like, post)".parse().unwrap();
    let definition = Definition { shards, ..Definition::new(metric, "1h".parse().unwrap()) };
    match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?} instead of a new board"),
    }
}

#[tokio::test]
async fn a_lookup_with_ranks_is_one_script_and_two_for_each_of_several_parts() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        for (name, shards, scripts) in [("whole", None, 1), ("parts", Some(4), 8)] {
            let board = of_parts(&store, name, shards).await;
            add(&store, &board, (0..500).map(|i| item(&format!("s{i}"), 1 + i % 50))).await;
            let who: Vec<Subject> = (0..200).map(|i| subject(&format!("s{i}"))).collect();
            // The first time, the script is loaded into the server.
            store.lookup(&board.main(), &who, true).await.unwrap();
            reset(&server);
            let lookup = store.lookup(&board.main(), &who, true).await.unwrap();
            let [called, counts] = calls(&server, ["evalsha", "zcount"]);
            // The subjects have 50 different scores.
            assert_eq!((called, counts), (scripts, 50 * u64::from(shards.unwrap_or(1))), "{name}");
            let ranks: Vec<Option<u64>> = (0..200).map(|i| Some(1 + 10 * (49 - i % 50))).collect();
            assert_eq!(lookup.ranks, ranks);
            reset(&server);
            store.lookup(&board.main(), &who, false).await.unwrap();
            assert_eq!(calls(&server, ["evalsha", "zcount"]), [u64::from(shards.unwrap_or(1)), 0], "{name}");
        }
    }
}

/// Looks up subjects while their scores and those of others change, and checks each answer on its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_and_scores_are_of_one_state_while_they_change() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        for (name, shards) in [("whole", None), ("parts", Some(5))] {
            let board = of_parts(&store, name, shards).await;
            add(&store, &board, (0..90).map(|i| item(&format!("s{i}"), 10 + i))).await;
            let stopped = Arc::new(AtomicBool::new(false));
            let writers = (0..3).map(|writer| {
                let (store, board, stopped) = (store.clone(), board.clone(), stopped.clone());
                tokio::spawn(async move {
                    for round in 0.. {
                        if stopped.load(Ordering::SeqCst) {
                            return;
                        }
                        add(
                            &store,
                            &board,
                            (0..5).map(|i| item(&format!("s{}", (round * 7 + i * 13 + writer) % 90), 1 + i)),
                        )
                        .await;
                    }
                })
            });
            let writers: Vec<_> = writers.collect();
            let all: Vec<Subject> = (0..90).map(|i| subject(&format!("s{i}"))).collect();
            let (mut answered, mut refused) = (0, 0);
            for round in 0..300 {
                // All subjects of the board, or some.
                let who = if round % 2 == 0 { &all[..] } else { &all[..20] };
                let lookup = match store.lookup(&board.main(), who, true).await {
                    Ok(lookup) => lookup,
                    // The scores changed between all rounds, which they may if subjects are passed that are not asked.
                    Err(StoreError::Overloaded { .. }) if round % 2 == 1 && shards.is_some() => {
                        refused += 1;
                        continue;
                    }
                    Err(error) => panic!("{error:?}"),
                };
                answered += 1;
                assert_eq!(lookup.total, 90);
                let lines = || lookup.scores.iter().map(|score| score.units()).zip(lookup.ranks.iter().flatten());
                for (score, rank) in lines() {
                    let better = lines().filter(|(other, _)| *other > score);
                    let (count, last) = (better.clone().count() as u64, better.map(|(_, rank)| *rank).max());
                    assert!(
                        last < Some(*rank) && count < *rank && *rank <= count + 91 - who.len() as u64,
                        "{lookup:?}"
                    );
                }
                assert_eq!(lines().count(), who.len());
            }
            stopped.store(true, Ordering::SeqCst);
            for writer in writers {
                writer.await.unwrap();
            }
            eprintln!("{name}: {answered} answered, {refused} refused");
            assert!(answered >= 150);
        }
    }
}
