//! Tests that each of two editions holds what a board of its own would hold, whatever the two of them count.

use std::collections::{BTreeMap, HashSet};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::board::{
    Change, Decimals, Definition, Edition, Kind as Metric, Mode, NotCounted, Order, Subject, Timestamp,
};
use rolltop::store::{Increment, Outcome, Rejection};

use super::editions::{LONGER, SUM, amount, and, attach, exchange, state};
use crate::carrying::{all_of_track, assert_same, some_of};
use crate::given::{With, definition, exact, plus, sample, subject, t, unranked, value};
use crate::site::{COUNTED, DUPLICATE, START, Site};

const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);

/// Returns definitions of boards, each with that of a successor.
fn successors() -> Vec<(Definition, Definition)> {
    let sum = || definition(SUM, "1h");
    let all = |metric: &str| Definition::without_slots(metric.parse().unwrap());
    let further = Definition { windows: vec!["1d/6h".parse().unwrap(), "all".parse().unwrap()], ..sum() };
    let fewest = Definition { min_samples: 3, ..definition("AVG(3h, sale, amount, seller)", "1h") };
    let kept = Definition { keep: Some("5h".parse().unwrap()), ..unranked(SUM, "1h") };
    let from_first = Definition { mode: Mode::FromFirst, ..unranked(SUM, "1h") };
    let kept_slots =
        Definition { slot: "1h".parse().ok(), keep: "3h".parse().ok(), ..all("SUM(all, sale, amount, seller)") };
    let kept_sketches = Definition {
        slot: "1h".parse().ok(),
        keep: "3h".parse().ok(),
        ..all("APPROX_COUNT_DISTINCT(all, sale, seller, item)")
    };
    let decimals = Definition { decimals: Decimals::new(2).unwrap(), ..sum() };
    let distinct = || definition("COUNT_DISTINCT(3h, sale, seller, item)", "1h");
    let capped = Definition { max_values: Some(2), ..distinct() };
    vec![
        (sum(), definition(LONGER, "1h")),
        (sum(), definition("COUNT_DISTINCT(3h, sale, seller, item)", "1h")),
        (sum(), further.clone()),
        (sum(), definition(SUM, "15m")),
        (definition("SUM(3h, sale, amount, seller WHERE big = true)", "1h"), sum()),
        (unranked("AVG(3h, sale, amount, seller)", "1h"), kept_sketches),
        (definition("LAST(3h, sale, amount, seller)", "1h"), sum()),
        (sum(), definition("SUM(3h, sale, tax, seller)", "1h")),
        (kept, definition("MAX(6h, sale, amount, seller)", "1h")),
        (sum(), Definition { order: Order::Asc, ..sum() }),
        (from_first.clone(), sum()),
        (definition("AVG(3h, sale, amount, seller)", "1h"), fewest),
        (sum(), decimals),
        (distinct(), capped),
        (sum(), unranked(SUM, "1h")),
        (sum(), definition("MIN(1h, sale, amount, seller)", "15m")),
        (all("SUM(all, sale, amount, seller)"), kept_slots),
        (distinct(), definition("APPROX_COUNT_DISTINCT(6h, sale, seller, item)", "1h")),
        (sum(), from_first),
        (all("COUNT_DISTINCT(all, sale, seller, item)"), distinct()),
        (further, all("SUM(all, sale, amount, seller)")),
    ]
}

/// An event, of which each edition counts what its rule says.
struct Event {
    who: String,
    at: Timestamp,
    id: Option<String>,
    retract: bool,
    units: i64,
    item: u32,
    big: bool,
}

impl Event {
    fn drawn(rng: &mut StdRng, now: Timestamp) -> Event {
        let retract = rng.random_bool(0.15);
        // Where the slot of a retraction is gone, it is accepted and does nothing.
        let back = if retract { 0..1_800 } else { 0..8 * 3_600 };
        Event {
            who: format!("s{}", rng.random_range(0..6)),
            at: now.plus_millis(-rng.random_range(back) * 1_000 - rng.random_range(0..1_000)),
            id: rng.random_bool(0.3).then(|| format!("id{}", rng.random_range(0..40))),
            retract,
            units: rng.random_range(-3..=9),
            item: rng.random_range(0..9),
            big: rng.random_bool(0.7),
        }
    }

    fn change(&self, edition: &Edition) -> Change {
        let metric = &edition.definition().metric;
        if metric.to_string().contains("WHERE") && !self.big {
            return Change::Not(NotCounted::Filtered);
        }
        if self.retract && !edition.takes_retractions() || self.item == 8 && metric.to_string().contains("tax") {
            return Change::Not(NotCounted::NotAccepted);
        }
        match edition.kind() {
            Metric::Distinct | Metric::Sketch => Change::Seen(value(&format!("v{}", self.item))),
            _ if metric.to_string().contains("tax") => amount(self.units / 2),
            _ => amount(self.units),
        }
    }

    fn increment(&self, change: Change) -> Increment {
        let item = Increment { change, retract: self.retract, ..plus(&self.who, 0).at_time(self.at) };
        self.id.as_deref().map_or(item.clone(), |id| item.id(id))
    }
}

pub async fn each_edition_holds_what_a_board_of_its_own_holds(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let subjects: Vec<Subject> = (0..7).map(|nth| subject(&format!("s{nth}"))).collect();
    let mut now = t(START);
    for (nth, (current, next)) in some_of(&site, successors()).into_iter().enumerate() {
        let about = format!("{} and {}", current.metric, next.metric);
        let alone = site.define(&format!("pair{nth}"), &current).await;
        let board = attach(&site, &alone, &next).await;
        let mut singles = Vec::new();
        for (number, definition) in [&current, &next].into_iter().enumerate() {
            singles.push(site.define(&format!("single{nth}-{number}"), definition).await);
        }
        let (mut board, mut of_edition) = (board, [0, 1]);
        let (mut known, mut missed) = (HashSet::new(), [BTreeMap::new(), BTreeMap::new()]);
        for (round, millis) in [0, 3_000_000, 5_400_000].into_iter().enumerate() {
            now = now.plus_millis(millis);
            site.clock_at(now).await;
            let events: Vec<Event> = (0..40).map(|_| Event::drawn(&mut rng, now)).collect();
            let both = |event: &Event| {
                let [first, second] = [0, 1].map(|number| event.change(&board.editions()[number]));
                and(event.increment(first), second)
            };
            let outcomes = site.add(&board, events.iter().map(both).collect()).await;
            for (event, outcome) in events.iter().zip(outcomes) {
                let id = event.id.clone().map(|id| (event.who.clone(), id));
                if id.as_ref().is_some_and(|id| known.contains(id)) {
                    // The time is looked at first, and the effect on the other edition never.
                    let is_for_other = matches!(event.change(board.edition()), Change::Not(_));
                    assert!(outcome == DUPLICATE || outcome == LATE || is_for_other, "{about}: {outcome:?}");
                    continue;
                }
                let mut reasons = [None; 2];
                for (place, edition) in board.editions().iter().enumerate() {
                    reasons[place] = match event.change(edition) {
                        Change::Not(reason) => Some(reason),
                        change => {
                            let item = Increment { id: None, ..event.increment(change) };
                            let alone = site.add(&singles[of_edition[place]], vec![item]).await;
                            assert!(place == 1 || alone == [outcome], "{about}: {outcome:?} instead of {alone:?}");
                            (alone != [COUNTED]).then_some(NotCounted::TooLate)
                        }
                    };
                }
                if reasons.iter().any(Option::is_none) {
                    known.extend(id);
                    for (place, reason) in reasons.into_iter().enumerate() {
                        if let Some(reason) = reason {
                            *missed[of_edition[place]].entry(reason).or_insert(0) += 1;
                        }
                    }
                }
            }
            for (place, edition) in board.editions().iter().enumerate() {
                let of_single: Vec<_> = singles[of_edition[place]].each_track().collect();
                for (number, single) in edition.numbers().zip(of_single) {
                    let track = board.each_track().nth(number).unwrap();
                    let expected = all_of_track(&site, &single, &subjects).await;
                    assert_same(&all_of_track(&site, &track, &subjects).await, &expected, &about);
                }
            }
            let (_, counted) = state(&site, &board).await;
            assert_eq!(counted, of_edition.map(|edition| missed[edition].clone()), "{about}");
            if round == 1 {
                board = exchange(&site, &board).await;
                of_edition = [1, 0];
            }
        }
        for board in singles.iter().chain([&board]) {
            assert!(site.store.undefine(board).await.unwrap());
        }
    }
}

pub async fn returned_scores_are_those_of_the_current_edition(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    for (nth, (current, next)) in some_of(&site, successors()).into_iter().enumerate() {
        let mut board = attach(&site, &site.define(&format!("pair{nth}"), &current).await, &next).await;
        for _ in 0..2 {
            let mut event = Event { retract: false, id: None, big: true, item: 1, ..Event::drawn(&mut rng, t(START)) };
            let mut items = Vec::new();
            for who in ["s0", "s1", "s0"] {
                (event.who, event.units, event.at) = (who.to_owned(), event.units + 1, t(START).plus_millis(-1));
                let [first, second] = [0, 1].map(|number| event.change(&board.editions()[number]));
                items.push(and(event.increment(first), second));
            }
            let outcomes = site.score(&board, items).await;
            for (who, outcome) in ["s0", "s1", "s0"].into_iter().zip(outcomes) {
                let score = site.value(&board, who).await;
                assert_eq!(outcome, Outcome::Counted { score }, "{} and {}: {who}", current.metric, next.metric);
            }
            board = exchange(&site, &board).await;
        }
        assert!(site.store.undefine(&board).await.unwrap());
    }
}

/// A worse sample may take the best away from the window, which then has to be computed again from all its slots, also from
/// those that no item of the call is in.
pub async fn a_worse_sample_of_one_edition_loses_no_value_of_the_other(site: Site) {
    let best = definition("MAX(3h, sale, amount, seller)", "1h");
    let distinct = definition("COUNT_DISTINCT(3h, sale, seller, item)", "1h");
    let sold = |units, item: &str, at: &str| and(plus("s", units).at(at), Change::Seen(value(item)));
    let mut board = attach(&site, &site.define("pair", &best).await, &distinct).await;
    let three = [(30, "a", "07"), (20, "b", "08"), (10, "c", "09")];
    let three = three.map(|(units, item, hour)| sold(units, item, &format!("2026-01-01T{hour}:10:00Z")));
    assert_eq!(site.add(&board, three.to_vec()).await, [COUNTED; 3]);
    let worse = and(sample("s", 1, "2026-01-01T07:10:00Z"), Change::Not(NotCounted::NotAccepted));
    assert_eq!(site.add(&board, vec![sold(5, "d", START), worse]).await, [COUNTED; 2]);
    for _ in 0..2 {
        for track in board.each_track() {
            let expected = if track.edition().definition().metric == best.metric { 20 } else { 4 };
            assert_eq!(site.value(&track, "s").await, exact(expected));
        }
        board = exchange(&site, &board).await;
    }
}
