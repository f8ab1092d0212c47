//! Tests that every metric retires in steps: the states in between are consistent, and nothing of the old slot remains.

use std::sync::Arc;

use rolltop::board::{Board, Definition, Kind as Metric, Order};
use rolltop::store::{Increment, Status};

use crate::carrying::some_of;
use crate::given::{With, definition, plus, sample_of, seen, subject};
use crate::site::{Kind, Site};

const METRICS: [&str; 6] = [
    "SUM(3h, pay, amount, user)",
    "AVG(3h, pay, amount, user)",
    "MIN(3h, pay, amount, user)",
    "MAX(3h, pay, amount, user)",
    "COUNT_DISTINCT(3h, pay, user, card)",
    "APPROX_COUNT_DISTINCT(3h, pay, user, card)",
];

const OLD: &str = "2026-01-01T07:10:00Z";
const MIDDLE: &str = "2026-01-01T08:10:00Z";

/// Returns an increment of the kind that the board takes.
fn item(board: &Board, who: usize, units: i64, at: &str) -> Increment {
    let who = format!("s{who:05}");
    match board.edition().takes(&plus(&who, units).change) {
        true => plus(&who, units).at(at),
        false => seen(&who, &format!("v{units}")).at(at),
    }
}

/// Adds three thousand subjects to the slot that expires at ten, and some of them to later slots too.
async fn crowd(site: &Site, board: &Arc<Board>) {
    let subjects = 0..3_000;
    let units = |who: usize| (who * 31 % 101) as i64 - 50;
    for (at, step) in [(OLD, 1), (MIDDLE, 7), (crate::site::START, 10)] {
        let items = subjects.clone().step_by(step).map(|who| item(board, who, units(who + step), at));
        site.count(board, items.collect()).await;
    }
}

/// Makes changes between two steps, to subjects that are already subtracted and to others.
async fn meanwhile(site: &Site, board: &Arc<Board>, round: usize) {
    let now = "2026-01-01T10:00:00Z";
    let mut items: Vec<Increment> =
        [3, 1_500, 2_999].map(|who| item(board, who + round, 60 - round as i64, now)).to_vec();
    if board.edition().takes_retractions() {
        items.push(item(board, 7 * (round + 1), ((7 * (round + 1) + 7) * 31 % 101) as i64 - 50, MIDDLE).undone());
    }
    if board.edition().takes(&sample_of("s", 1, 1, MIDDLE).change) {
        items.push(sample_of(&format!("s{:05}", 14 * (round + 1)), -70, 2, MIDDLE));
    }
    site.count(board, items).await;
    site.store.remove(board, &subject(&format!("s{:05}", 40 + round))).await.unwrap();
}

pub async fn retiring_in_steps_matches_the_oracle_for_every_metric(site: Site) {
    for (nth, metric) in some_of(&site, METRICS.into_iter().enumerate().collect()) {
        for (order, min_samples) in [(Order::Desc, 1), (Order::Asc, 2)] {
            let oracle = Site::new(Kind::Oracle).await;
            let site = Site::new(site.kind.clone()).await;
            let mut definition = Definition { order, ..definition(metric, "1h") };
            if definition.kind() == Metric::Mean {
                definition.min_samples = min_samples;
            } else if min_samples == 2 && nth % 2 == 0 {
                continue;
            }
            let (board, right) = (site.define("board", &definition).await, oracle.define("board", &definition).await);
            crowd(&site, &board).await;
            crowd(&oracle, &right).await;
            site.clock("2026-01-01T10:00:00Z").await;
            oracle.clock("2026-01-01T10:00:00Z").await;
            let mut round = 0;
            loop {
                let step = [&site.store, &site.other][round % 2].retire_step(&board.main()).await.unwrap();
                if step.skipped {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    continue;
                }
                if round < 8 {
                    meanwhile(&site, &board, round).await;
                    meanwhile(&oracle, &right, round).await;
                    site.audit(&board).await;
                }
                round += 1;
                if step.done {
                    break;
                }
            }
            // A store that is done early still makes the changes that the oracle gets.
            for late in round..8 {
                meanwhile(&site, &board, late).await;
                meanwhile(&oracle, &right, late).await;
            }
            let found = site.store.page(&board.main(), 0, 4_000).await.unwrap();
            let expected = oracle.store.page(&right.main(), 0, 4_000).await.unwrap();
            for (found, expected) in found.items.iter().zip(&expected.items) {
                assert_eq!(found, expected, "{metric}");
            }
            assert_eq!((found.total, found.frame), (expected.total, expected.frame), "{metric}");
            let (found, expected) =
                (site.store.status(&board.main()).await.unwrap(), oracle.store.status(&right.main()).await.unwrap());
            // Each store counts upheavals of its own.
            assert_eq!(found, Status { upheavals: found.upheavals, ..expected }, "{metric}");
            assert!(Some(site.audit(&board).await) >= found.total);
        }
    }
}

pub async fn retiring_slots_are_ranked_but_excluded_from_slot_reads(site: Site) {
    for metric in METRICS {
        let site = Site::new(site.kind.clone()).await;
        let board = site.board(metric, "1h").await;
        crowd(&site, &board).await;
        let before = site.store.page(&board.main(), 0, 1).await.unwrap().total;
        site.clock("2026-01-01T10:00:00Z").await;
        let page = site.store.page(&board.main(), 0, 1).await.unwrap();
        assert_eq!((page.total, page.frame.retiring), (before, 1), "{metric}");
        // The ranking still includes what is retiring. The slots never do.
        let only_old = subject("s00001");
        let standing = site.store.standing(&board.main(), &only_old).await.unwrap();
        assert_eq!((standing.rank.is_some(), standing.slots.len()), (true, 0), "{metric}");
        let reading = site.store.count(&board.main(), &only_old, rolltop::store::SlotRange::Slots(3)).await.unwrap();
        assert_eq!(
            (reading.aggregates.len(), reading.value(board.edition().main())),
            (0, board.kind().absent()),
            "{metric}"
        );
        let removal = site.store.remove(&board, &only_old).await.unwrap();
        assert_eq!((removal.live_slots, removal.retiring_slots, removal.score), (0, 1, standing.score), "{metric}");
        assert_eq!(site.store.page(&board.main(), 0, 1).await.unwrap().total, before - 1, "{metric}");
    }
}
