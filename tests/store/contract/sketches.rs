//! Tests of APPROX_COUNT_DISTINCT: a sketch per slot, merged.

use rolltop::board::{Aggregate, Mark, Sketch, Value};
use rolltop::store::Outcome;

use crate::given::{With, exact, seen, subject};
use crate::site::{Site, counted, duplicate};

const METRIC: &str = "APPROX_COUNT_DISTINCT(3h, login, device, user)";
const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";

fn sketch(values: std::ops::Range<u32>) -> Sketch {
    let mut sketch = Sketch::default();
    for nth in values {
        sketch.mark(Mark::of(&format!("u{nth}")));
    }
    sketch
}

fn estimate(values: std::ops::Range<u32>) -> Option<Value> {
    exact(sketch(values).estimate())
}

pub async fn a_sketch_counts_a_repeated_value_once(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let items = vec![seen("d", "u0"), seen("d", "u0"), seen("d", "u0").at(SEVEN), seen("e", "u1").id("x")];
        assert_eq!(site.score(&board, items).await, [counted(1), counted(1), counted(1), counted(1)]);
        assert_eq!(
            site.score(&board, vec![seen("e", "u2").id("x"), seen("d", "u3")]).await,
            [duplicate(1), counted(2)]
        );
        assert_eq!(site.value(&board, "d").await, exact(2));
        assert_eq!(site.value(&board, "nobody").await, exact(0));
        let slots: Vec<Aggregate> = site.slots(&board, "d").await.into_iter().map(|(_, aggregate)| aggregate).collect();
        let mut nine = sketch(0..1);
        nine.mark(Mark::of("u3"));
        assert_eq!(slots, [Aggregate::Sketch(sketch(0..1)), Aggregate::Sketch(nine)]);
    }
}

pub async fn sketches_of_slots_are_merged(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        for (values, at) in [(0..300, SEVEN), (200..900, EIGHT), (850..1_000, NINE)] {
            site.count(board, values.map(|nth: u32| seen("d", &format!("u{nth}")).at(at)).collect()).await;
        }
        site.count(board, vec![seen("e", "u1").at(SEVEN)]).await;
        assert_eq!(site.value(board, "d").await, estimate(0..1_000));
        assert_eq!(site.newest(board, "d", 2).await, estimate(200..1_000));
        assert_eq!(site.newest(board, "d", 1).await, estimate(850..1_000));
        for (_, aggregate) in site.slots(board, "d").await {
            let Aggregate::Sketch(sketch) = aggregate else { panic!("{aggregate:?} is not a sketch") };
            assert!(sketch.as_bytes().len() <= Sketch::MAX_BYTES);
        }
        // A known value changes nothing, in any slot.
        let again = seen("d", "u999").at(NINE);
        assert_eq!(site.score(board, vec![again]).await, [Outcome::Counted { score: estimate(0..1_000) }]);
    }
    let score = |values| estimate(values).map_or(0, |value| value.as_f64() as i64);
    assert_eq!(site.ranking(&boards[0]).await, [(1, "d".to_owned(), score(0..1_000)), (2, "e".to_owned(), 1)]);
    site.audit(&boards[0]).await;
    for (now, values) in
        [("2026-01-01T10:00:00Z", 200..1_000), ("2026-01-01T11:00:00Z", 850..1_000), ("2026-01-01T12:00:00Z", 0..0)]
    {
        site.clock(now).await;
        for board in &boards {
            assert_eq!(site.value(board, "d").await, estimate(values.clone()), "{now}");
            assert_eq!(site.value(board, "e").await, exact(0), "{now}");
        }
        assert_eq!(site.ranking_size(&boards[0]).await, u64::from(!values.is_empty()), "{now}");
        site.audit(&boards[0]).await;
    }
}

pub async fn estimates_are_within_three_standard_errors(site: Site) {
    for board in site.both(METRIC, "1h").await {
        for (who, size) in [("s", 10u32), ("m", 700), ("l", 4_000)] {
            let items =
                (0..size).map(|nth| seen(who, &format!("{who}{nth}")).at([SEVEN, EIGHT, NINE][nth as usize % 3]));
            site.count(&board, items.collect()).await;
            let estimate = site.value(&board, who).await.unwrap().as_f64();
            let error = (estimate / f64::from(size) - 1.0).abs();
            assert!(error <= 3.0 * Sketch::STANDARD_ERROR, "{size}: {estimate}");
        }
    }
}

pub async fn a_removed_sketch_starts_over(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        let items = (0..50).map(|nth| seen("d", &format!("u{nth}")).at(if nth < 40 { SEVEN } else { NINE }));
        site.count(board, items.collect()).await;
        let removal = site.store.remove(board, &subject("d")).await.unwrap();
        assert_eq!((removal.score, removal.live_slots), (estimate(0..50), 2));
        site.count(board, vec![seen("d", "u1"), seen("e", "u1")]).await;
        assert_eq!(site.value(board, "d").await, exact(1));
    }
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.ranking(&boards[0]).await, [(1, "e".to_owned(), 1), (1, "d".to_owned(), 1)]);
    site.audit(&boards[0]).await;
}
