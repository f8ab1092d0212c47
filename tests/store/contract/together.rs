//! Tests of several boards, and of several questions, in one call.

use rolltop::board::{Aggregate, Amount, Value};
use rolltop::store::{Batch, Outcome, Rejection, SlotQuery, SlotRange, StoreError};

use crate::given::{With, definition, exact, mean, plus, sample, seen, subject, t, unranked};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

fn batch(increments: Vec<rolltop::store::Increment>) -> Batch {
    Batch { increments, return_scores: true }
}

pub async fn add_all_adds_to_boards_of_every_metric(site: Site) {
    let count = site.define("count", &definition("COUNT(3h, pay, user)", "1h")).await;
    let mean_of = site.define("mean", &definition("AVG(3h, pay, amount, user)", "1h")).await;
    let most = site.define("most", &unranked("MAX(3h, pay, amount, user)", "1h")).await;
    let distinct = site.define("distinct", &unranked("COUNT_DISTINCT(3h, pay, user, device)", "1h")).await;
    let about = site.define("about", &definition("APPROX_COUNT_DISTINCT(3h, pay, user, device)", "1h")).await;
    for nth in 1..=3 {
        let added = site
            .store
            .add_all(vec![
                (count.clone(), batch(vec![plus("ann", 1)])),
                (mean_of.clone(), batch(vec![plus("ann", nth * 10)])),
                (most.clone(), batch(vec![plus("ann", nth * 10)])),
                (distinct.clone(), batch(vec![seen("ann", &format!("d{}", nth % 2))])),
                (about.clone(), batch(vec![seen("ann", &format!("d{}", nth % 2))])),
            ])
            .await;
        let scores: Vec<Option<Value>> = added
            .into_iter()
            .map(|added| match added.unwrap().outcomes[..] {
                [Outcome::Counted { score }] => score,
                ref other => panic!("{other:?}"),
            })
            .collect();
        let seen_so_far = exact(nth.min(2));
        assert_eq!(scores, [exact(nth), mean(5 * nth * (nth + 1), nth), exact(10 * nth), seen_so_far, seen_so_far]);
    }
    for board in [&count, &mean_of, &most, &distinct, &about] {
        assert!(site.value(board, "ann").await.is_some());
    }
}

pub async fn add_all_returns_a_separate_result_for_each_board(site: Site) {
    let one = site.define("one", &definition("COUNT(3h, like, post)", "1h")).await;
    let gone = site.define("gone", &definition("COUNT(3h, like, post)", "1h")).await;
    let short = site.define("short", &unranked("COUNT(1h, like, post)", "1h")).await;
    assert!(site.store.undefine(&gone).await.unwrap());
    let eight = "2026-01-01T08:00:00Z";
    let items = || batch(vec![plus("a", 1).at(eight).id("x"), plus("b", 1)]);
    let late = Outcome::Rejected(Rejection::TooLate);
    for (first, score) in [(counted(1), 1), (Outcome::Duplicate { score: exact(1) }, 2)] {
        let batches = vec![(one.clone(), items()), (gone.clone(), items()), (short.clone(), items())];
        let mut added = site.store.add_all(batches).await.into_iter();
        assert_eq!(added.next().unwrap().unwrap().outcomes, [first, counted(score)]);
        assert!(matches!(added.next(), Some(Err(StoreError::BoardChanged))));
        assert_eq!(added.next().unwrap().unwrap().outcomes, [late, counted(score)]);
        assert!(added.next().is_none());
    }
    assert!(site.store.add_all(Vec::new()).await.is_empty());
}

pub async fn add_all_applies_batches_of_the_same_board_in_order(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let nine = "2026-01-01T09:00:00Z";
    let quiet = |increments| (board.clone(), Batch { increments, return_scores: false });
    let batches = vec![
        quiet(vec![plus("a", 1).id("x"), plus("a", 2)]),
        // Shorter than the first batch, but applied after it.
        quiet(vec![plus("a", 1).id("x")]),
        quiet(vec![plus("a", 1).id("x"), sample("b", 4, nine), plus("a", 0)]),
        quiet(Vec::new()),
    ];
    let outcomes: Vec<Vec<Outcome>> =
        site.store.add_all(batches).await.into_iter().map(|added| added.unwrap().outcomes).collect();
    assert_eq!(outcomes, [vec![COUNTED, COUNTED], vec![DUPLICATE], vec![DUPLICATE, COUNTED, COUNTED], vec![]]);
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 4), (2, "a".to_owned(), 3)]);
}

pub async fn concurrent_add_all_calls_lose_nothing(site: Site) {
    let mut boards = Vec::new();
    for nth in 0..10 {
        let definition = if nth % 2 == 0 { definition } else { unranked };
        boards.push(site.define(&format!("b{nth}"), &definition("COUNT(3h, like, post)", "1h")).await);
    }
    let adding = |writer: usize| {
        let (store, boards) = ([&site.store, &site.other][writer % 2].clone(), boards.clone());
        tokio::spawn(async move {
            for _ in 0..20 {
                let batches = boards.iter().map(|board| (board.clone(), batch(vec![plus("a", 1), plus("b", 2)])));
                for added in store.add_all(batches.collect()).await {
                    assert_eq!(added.unwrap().outcomes.len(), 2);
                }
            }
        })
    };
    let writers: Vec<_> = (0..4).map(adding).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    for board in &boards {
        assert_eq!((site.value(board, "a").await, site.value(board, "b").await), (exact(80), exact(160)));
    }
}

pub async fn read_answers_each_query_separately(site: Site) {
    let count = site.define("count", &definition("COUNT(3h, pay, user)", "1h")).await;
    let mean_of = site.define("mean", &unranked("AVG(3h, pay, amount, user)", "1h")).await;
    let distinct = site.define("distinct", &unranked("COUNT_DISTINCT(3h, pay, user, device)", "1h")).await;
    let gone = site.define("gone", &unranked("COUNT(3h, pay, user)", "1h")).await;
    let eight = "2026-01-01T08:30:00Z";
    site.count(&count, vec![plus("ann", 1), plus("ann", 2).at(eight), plus("bob", 4)]).await;
    site.count(&mean_of, vec![plus("ann", 7), plus("ann", 2).at(eight)]).await;
    site.count(&distinct, vec![seen("ann", "d1"), seen("ann", "d2").at(eight)]).await;
    assert!(site.store.undefine(&gone).await.unwrap());
    let ask = |board: &std::sync::Arc<rolltop::board::Board>, who: &str, range, as_of: Option<&str>| SlotQuery {
        track: board.main(),
        subject: subject(who),
        range,
        as_of: as_of.map(t),
    };
    let answers = site
        .store
        .read(vec![
            ask(&count, "ann", SlotRange::Slots(3), None),
            ask(&count, "ann", SlotRange::Slots(1), None),
            ask(&mean_of, "ann", SlotRange::Slots(3), None),
            ask(&gone, "ann", SlotRange::Slots(1), None),
            ask(&mean_of, "ann", SlotRange::Slots(1), Some(eight)),
            ask(&distinct, "ann", SlotRange::From(t(eight)), None),
            ask(&count, "ann", SlotRange::Slots(4), None),
            ask(&count, "bob", SlotRange::Slots(2), None),
            ask(&mean_of, "nobody", SlotRange::Slots(2), None),
        ])
        .await;
    let values: Vec<Option<Option<Value>>> = answers
        .iter()
        .zip([&count, &count, &mean_of, &gone, &mean_of, &distinct, &count, &count, &mean_of])
        .map(|(answer, board)| answer.as_ref().ok().map(|reading| reading.value(board.edition().main())))
        .collect();
    let expected = [
        Some(exact(3)),
        Some(exact(1)),
        Some(mean(9, 2)),
        None,
        Some(mean(2, 1)),
        Some(exact(2)),
        None,
        Some(exact(4)),
        Some(None),
    ];
    assert_eq!(values, expected);
    assert!(matches!(answers[3], Err(StoreError::BoardChanged)));
    assert!(matches!(answers[6], Err(StoreError::BeyondWindow { floor }) if floor == t("2026-01-01T07:00:00Z")));
    assert_eq!(
        answers[4].as_ref().unwrap().aggregates,
        [(t("2026-01-01T08:00:00Z"), Aggregate::Mean { sum: Amount(2), count: 1 })]
    );
    assert!(site.store.read(Vec::new()).await.is_empty());
}

pub async fn read_answers_500_queries_in_order(site: Site) {
    let board = site.define("plain", &unranked("COUNT(3h, pay, user)", "1h")).await;
    site.count(&board, (0..500).map(|nth| plus(&format!("s{nth}"), nth + 1)).collect()).await;
    let queries = (0..500).rev().map(|nth| SlotQuery {
        track: board.main(),
        subject: subject(&format!("s{nth}")),
        range: SlotRange::Slots(3),
        as_of: None,
    });
    let answers = site.store.read(queries.collect()).await;
    let values: Vec<Option<Value>> =
        answers.iter().map(|answer| answer.as_ref().unwrap().value(board.edition().main())).collect();
    assert_eq!(values, (0..500).rev().map(|nth| exact(nth + 1)).collect::<Vec<_>>());
}
