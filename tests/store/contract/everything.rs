//! Tests of the properties that all metrics share, compared with the oracle for each metric.

use std::sync::Arc;

use rolltop::board::{Board, Definition, Mode, Order, Timestamp};
use rolltop::store::{Batch, ClockMode, Increment, Outcome, SlotQuery, SlotRange};
use tokio::task::JoinSet;

use crate::carrying::some_of;
use crate::given::{With, definition, plus, seen, subject, t, unranked};
use crate::site::{Kind, START, Site};

const METRICS: [&str; 7] = [
    "COUNT({w}, pay, user)",
    "SUM({w}, pay, amount, user)",
    "AVG({w}, pay, amount, user)",
    "MIN({w}, pay, amount, user)",
    "MAX({w}, pay, amount, user)",
    "COUNT_DISTINCT({w}, pay, user, card)",
    "APPROX_COUNT_DISTINCT({w}, pay, user, card)",
];

/// Returns each metric ranked and unranked, and the counter whose window begins with its first event.
fn every_definition(window: &str, slot: &str) -> Vec<Definition> {
    let metrics = METRICS.map(|metric| metric.replace("{w}", window));
    let ranked = metrics.iter().map(|metric| definition(metric, slot));
    let unranked_ones = metrics.iter().map(|metric| unranked(metric, slot));
    let from_first = Definition { mode: Mode::FromFirst, ..unranked(&metrics[0], slot) };
    ranked.chain(unranked_ones).chain([from_first]).collect()
}

async fn define(site: &Site, definitions: &[Definition]) -> Vec<Arc<Board>> {
    let mut boards = Vec::new();
    for (nth, definition) in definitions.iter().enumerate() {
        boards.push(site.define(&format!("b{nth}"), definition).await);
    }
    boards
}

fn item(board: &Board, who: &str, units: i64) -> Increment {
    let amount = plus(who, units);
    if board.edition().takes(&amount.change) { amount } else { seen(who, &format!("card {units}")) }
}

/// Returns everything that can be read about these subjects.
async fn all_of(site: &Site, board: &Arc<Board>, subjects: usize) -> String {
    site.retire(board).await;
    let status = site.store.status(&board.main()).await.unwrap();
    let mut text = format!("{:?} {:?}", status.slots, status.events);
    if board.edition().main().is_ranked() {
        text += &format!("{:?}", site.store.page(&board.main(), 0, 1_000).await.unwrap().items);
    }
    for nth in 0..subjects {
        let who = subject(&format!("s{nth}"));
        let standing = site.store.standing(&board.main(), &who).await.unwrap();
        text += &format!("\n{who}: {:?} {:?} {:?}", standing.score, standing.rank, standing.slots);
        let ask = SlotQuery { track: board.main(), subject: who.clone(), range: SlotRange::Slots(1), as_of: None };
        text += &format!("{:?}", site.store.read(vec![ask]).await.pop().unwrap().unwrap().aggregates);
        if board.kind() == rolltop::board::Kind::Distinct {
            text += &format!("{:?}", site.store.values(&board.main(), &who, 0, 1_000).await.unwrap().items);
        }
    }
    text
}

pub async fn every_metric_counts_on_the_system_clock(site: Site) {
    let site = Site::on(site.kind, ClockMode::System).await;
    for board in define(&site, &every_definition("3d", "1d")).await {
        let now = site.store.now().await.unwrap();
        let items = vec![
            item(&board, "a", 4).at_time(now.plus_millis(-86_400_000)),
            item(&board, "a", 6).id("x"),
            item(&board, "a", 6).id("x"),
            item(&board, "b", 7),
        ];
        let outcomes = site.score(&board, items).await;
        assert!(matches!(outcomes[1], Outcome::Counted { score: Some(_) }), "{outcomes:?}");
        assert!(matches!(outcomes[2], Outcome::Duplicate { score: Some(_) }), "{outcomes:?}");
        let metric = board.definition().metric.to_string();
        let expected = match metric.split('(').next().unwrap() {
            "COUNT" | "SUM" => (10.0, 7.0),
            "AVG" => (5.0, 7.0),
            "MIN" => (4.0, 7.0),
            "MAX" => (6.0, 7.0),
            _ => (2.0, 1.0),
        };
        let value = async |who: &str| site.value(&board, who).await.unwrap().as_f64();
        assert_eq!((value("a").await, value("b").await), expected, "{metric}");
        let removal = site.store.remove(&board, &subject("a")).await.unwrap();
        assert_eq!(removal.score.unwrap().as_f64(), expected.0, "{metric}");
        assert_eq!(site.value(&board, "a").await, board.kind().absent(), "{metric}");
    }
}

/// Runs writers, retirers and readers at once while the clock moves from slot to slot. No item is ever late, so at the
/// end the state is the same as if the items had arrived one after another.
pub async fn every_metric_is_exact_under_concurrent_rollover(site: Site) {
    for order in [Order::Desc, Order::Asc] {
        let site = Site::new(site.kind.clone()).await;
        let oracle = Site::new(Kind::Oracle).await;
        let definitions: Vec<Definition> = every_definition("6s", "1s")
            .into_iter()
            .filter(|definition| definition.mode == Mode::Sliding)
            .map(|definition| Definition { order, ..definition })
            .collect();
        let definitions = some_of(&site, definitions);
        let (boards, right) = (define(&site, &definitions).await, define(&oracle, &definitions).await);
        let start = t(START);
        // The items of the six seconds before, which expire during the test, and of the second in which it begins,
        // which do not.
        let sent = move |writer: i64, round: i64| -> Vec<(String, i64, Timestamp)> {
            let one = move |nth: i64| {
                let at = start.plus_millis(-1_000 * ((round + nth) % 2));
                (format!("s{}", (round * 3 + nth + writer) % 17), (writer * 31 + round * 7 + nth) % 23 - 9, at)
            };
            (0..5).map(one).collect()
        };
        let old = |board: &Board| -> Vec<Increment> {
            (0..170)
                .map(|nth| {
                    item(board, &format!("s{}", nth % 17), nth % 29).at_time(start.plus_millis(-1_000 * (2 + nth % 4)))
                })
                .collect()
        };
        for (board, right) in boards.iter().zip(&right) {
            site.count(board, old(board)).await;
            oracle.count(right, old(right)).await;
            for writer in 0..4 {
                for round in 0..12 {
                    let items = sent(writer, round);
                    let items = items.iter().map(|(who, units, at)| item(right, who, *units).at_time(*at)).collect();
                    oracle.count(right, items).await;
                }
            }
        }
        let mut tasks = JoinSet::new();
        for writer in 0..4 {
            let (store, boards) = ([&site.store, &site.other][writer as usize % 2].clone(), boards.clone());
            tasks.spawn(async move {
                for round in 0..12 {
                    let items = sent(writer, round);
                    let of = |board: &Arc<Board>| {
                        let items = items.iter().map(|(who, units, at)| item(board, who, *units).at_time(*at));
                        (board.clone(), Batch { increments: items.collect(), return_scores: round % 2 == 0 })
                    };
                    for added in store.add_all(boards.iter().map(of).collect()).await {
                        let counted = |outcome: &Outcome| matches!(outcome, Outcome::Counted { .. });
                        assert!(added.unwrap().outcomes.iter().all(counted));
                    }
                }
            });
        }
        for stepper in 0..2 {
            let (store, boards) = ([&site.store, &site.other][stepper].clone(), boards.clone());
            tasks.spawn(async move {
                for _ in 0..15 {
                    for board in &boards {
                        store.retire_step(&board.main()).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        let store = site.store.clone();
        tasks.spawn(async move {
            for second in 1..=4 {
                store.set_clock(start.plus_millis(1_000 * second)).await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        tasks.join_all().await;
        for later in [4_000, 5_000, 6_000] {
            site.clock_at(start.plus_millis(later)).await;
            oracle.clock_at(start.plus_millis(later)).await;
            for (board, right) in boards.iter().zip(&right) {
                let metric = &board.definition().metric;
                assert_eq!(all_of(&site, board, 18).await, all_of(&oracle, right, 18).await, "{metric} after {later}");
                if board.edition().main().is_ranked() {
                    site.audit(board).await;
                }
            }
        }
    }
}

pub async fn every_metric_starts_empty_on_a_redefined_board(site: Site) {
    let definitions = every_definition("3h", "1h");
    for _ in 0..2 {
        let boards = define(&site, &definitions).await;
        for board in &boards {
            let context = board.definition().metric.to_string();
            assert_eq!(site.store.standing(&board.main(), &subject("a")).await.unwrap().slots, [], "{context}");
            let items = [1, 2, 3].map(|units| item(board, "a", units).id(&format!("e{units}")));
            site.count(board, items.to_vec()).await;
        }
        for board in &boards {
            assert!(site.store.undefine(board).await.unwrap());
        }
    }
}

pub async fn every_metric_reads_the_same_through_another_instance(site: Site) {
    for board in define(&site, &every_definition("3h", "1h")).await {
        for units in [5, 2, 9] {
            let item = item(&board, "a", units);
            let added = site.other.add(&board, Batch { increments: vec![item], return_scores: true }).await.unwrap();
            let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
            assert_eq!(added.outcomes, [Outcome::Counted { score: standing.score }]);
        }
    }
}
