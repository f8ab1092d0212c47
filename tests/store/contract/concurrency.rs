//! Tests of concurrent calls: nothing is lost, and nothing counts twice.

use std::sync::Arc;

use rolltop::board::Board;
use rolltop::store::{Added, Batch, Defined, Increment, Outcome, Store, StoreError};
use tokio::task::JoinSet;

use crate::given::{Units, With, definition, name, new_board, plus, subject, t};
use crate::site::{COUNTED, Site, retire_through};

fn either(site: &Site, nth: usize) -> Arc<dyn Store> {
    if nth.is_multiple_of(2) { site.store.clone() } else { site.other.clone() }
}

async fn send(store: &Arc<dyn Store>, board: &Arc<Board>, increments: Vec<Increment>) -> Result<Added, StoreError> {
    store.add(board, Batch { increments, return_scores: false }).await
}

pub async fn concurrent_adds_lose_nothing(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let mut tasks = JoinSet::new();
    for nth in 0..16usize {
        let (store, board) = (either(&site, nth), board.clone());
        tasks.spawn(async move {
            for round in 0..25usize {
                let items = vec![
                    plus("all", 1),
                    plus(&format!("own{nth:02}"), 1),
                    plus(&format!("shared{}", round % 5), 2).at("2026-01-01T08:00:00Z"),
                    plus("none", 1),
                    plus("none", -1).at("2026-01-01T07:00:00Z"),
                ];
                assert_eq!(send(&store, &board, items).await.unwrap().outcomes, [COUNTED; 5]);
            }
        });
    }
    tasks.join_all().await;
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking[0], (1, "all".to_owned(), 400));
    assert!(ranking[1..6].iter().all(|(_, who, score)| who.starts_with("shared") && *score == 160));
    assert!(ranking[6..].iter().all(|(_, who, score)| who.starts_with("own") && *score == 25));
    assert_eq!(ranking.len(), 22);
    site.audit(&board).await;
}

pub async fn concurrent_items_with_the_same_id_count_once(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let mut tasks = JoinSet::new();
    for nth in 0..16usize {
        let (store, board) = (either(&site, nth), board.clone());
        tasks.spawn(async move {
            let items = (0..40).map(|i| plus(&format!("s{}", i % 4), 1).id(&format!("e{i}")));
            let added = send(&store, &board, items.collect()).await.unwrap();
            added.outcomes.into_iter().filter(|outcome| *outcome == COUNTED).count()
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<usize>(), 40);
    assert!(site.ranking(&board).await.iter().all(|(_, _, score)| *score == 10));
}

pub async fn of_concurrent_definitions_exactly_one_is_created(site: Site) {
    for round in 0..5 {
        let each = name(&format!("board{round}"));
        let mut tasks = JoinSet::new();
        for nth in 0..8usize {
            let (store, each) = (either(&site, nth), each.clone());
            let wanted = definition(["COUNT(3h, like, post)", "COUNT(2h, like, post)"][nth % 4 / 2], "1h");
            tasks.spawn(async move { (store.define(new_board(&each, &wanted)).await.unwrap(), wanted) });
        }
        let answers = tasks.join_all().await;
        let held = site.store.board(&each).await.unwrap().unwrap();
        let mut created = 0;
        for (answer, wanted) in answers {
            let (board, alike) = match answer {
                Defined::Created(board) => {
                    created += 1;
                    (board, true)
                }
                Defined::Unchanged(board) => (board, true),
                Defined::Conflict(board) => (board, false),
            };
            assert_eq!(board.generation(), held.generation());
            assert_eq!(*held.definition() == wanted, alike);
        }
        assert_eq!(created, 1);
    }
}

pub async fn concurrent_rollovers_and_writes_leave_exact_scores(site: Site) {
    let board = site.board("COUNT(5s, like, post)", "1s").await;
    let start = t(crate::site::START);
    let mut tasks = JoinSet::new();
    for nth in 0..6usize {
        let (store, board) = (either(&site, nth), board.clone());
        tasks.spawn(async move {
            for round in 0..60i64 {
                let items = (0..10).map(|i| plus(&format!("s{}", (round + i) % 23), 1 + i));
                let outcomes = send(&store, &board, items.collect()).await.unwrap().outcomes;
                assert_eq!(outcomes, [COUNTED; 10]);
            }
        });
    }
    for nth in 0..2usize {
        let (store, board) = (either(&site, nth), board.clone());
        tasks.spawn(async move {
            for _ in 0..30 {
                retire_through(&store, &board).await;
                tokio::task::yield_now().await;
            }
        });
    }
    let (store, clocked) = (site.store.clone(), board.clone());
    tasks.spawn(async move {
        for second in 1..=12 {
            store.set_clock(start.plus_millis(1_000 * second)).await.unwrap();
            for _ in 0..5 {
                let page = store.page(&clocked.main(), 0, 50).await.unwrap();
                assert!(page.items.windows(2).all(|pair| pair[0].score >= pair[1].score));
                assert!(page.frame.as_of >= page.frame.window.head);
            }
        }
    });
    tasks.join_all().await;
    site.audit(&board).await;
    let ranking = site.ranking(&board).await;
    for (_, who, score) in &ranking {
        let standing = site.store.standing(&board.main(), &subject(who)).await.unwrap();
        assert_eq!(standing.slots.iter().map(|(_, aggregate)| aggregate.units()).sum::<i64>(), *score, "{who}");
    }
    // One window later everything has expired, and nothing remains.
    site.clock_at(start.plus_millis(17_000)).await;
    assert_eq!(site.ranking(&board).await, []);
}

pub async fn concurrent_removals_and_writes_lose_nothing(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let mut tasks = JoinSet::new();
    for nth in 0..4usize {
        let (store, board) = (either(&site, nth), board.clone());
        tasks.spawn(async move {
            for _ in 0..40 {
                let items = vec![plus("a", 1), plus("b", 1), plus("a", 2).at("2026-01-01T08:00:00Z")];
                send(&store, &board, items).await.unwrap();
            }
            0
        });
    }
    for nth in 0..2usize {
        let (store, board) = (either(&site, nth), board.clone());
        tasks.spawn(async move {
            let mut taken = 0;
            for _ in 0..40 {
                taken += store.remove(&board, &subject("a")).await.unwrap().score.units();
            }
            taken
        });
    }
    let taken: i64 = tasks.join_all().await.into_iter().sum();
    site.audit(&board).await;
    // The removed and the remaining amounts add up to what was added.
    let left = site.store.standing(&board.main(), &subject("a")).await.unwrap().score.units();
    assert_eq!(taken + left, 4 * 40 * 3);
    assert_eq!(site.store.standing(&board.main(), &subject("b")).await.unwrap().score.units(), 4 * 40);
}

pub async fn concurrent_redefinitions_keep_the_writes_to_the_current_board(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let mut tasks = JoinSet::new();
    for nth in 0..4usize {
        let (store, board) = (either(&site, nth), board.clone());
        tasks.spawn(async move {
            let (mut board, mut last) = (board, 0);
            for _ in 0..60 {
                match send(&store, &board, vec![plus("a", 1), plus("b", 1)]).await {
                    Ok(added) => {
                        assert!(added.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })));
                        last += 1;
                    }
                    Err(StoreError::BoardChanged) => {
                        if let Some(found) = store.board(board.name()).await.unwrap() {
                            (board, last) = (found, 0);
                        }
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            (board.generation(), last)
        });
    }
    let (store, mut current) = (site.store.clone(), board);
    for _ in 0..5 {
        assert!(store.undefine(&current).await.unwrap());
        tokio::task::yield_now().await;
        current = site.board("COUNT(3h, like, post)", "1h").await;
        tokio::task::yield_now().await;
    }
    let answers = tasks.join_all().await;
    // The data is what was acknowledged since the last definition.
    let counted: i64 = answers.into_iter().filter(|(of, _)| *of == current.generation()).map(|(_, n)| n).sum();
    let expected = if counted == 0 { vec![] } else { vec![(1, "b".to_owned(), counted), (1, "a".to_owned(), counted)] };
    assert_eq!(site.ranking(&current).await, expected);
    site.audit(&current).await;
}
