//! Tests that samples replace what a subject has in a slot.

use rolltop::board::{Aggregate, Amount, Definition, Stamp};
use rolltop::store::{Outcome, Rejection};

use crate::given::{With, definition, exact, mean, plus, sample, sample_of};
use crate::site::{COUNTED, DUPLICATE, Site, counted, duplicate};

const SUM: &str = "SUM(3h, traffic, bytes, host)";
const SEVEN: &str = "2026-01-01T07:00:00Z";
const EIGHT: &str = "2026-01-01T08:00:00Z";
const NINE: &str = "2026-01-01T09:00:00Z";
const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const EARLY: Outcome = Outcome::Rejected(Rejection::TooEarly);

pub async fn repeating_a_sample_changes_nothing(site: Site) {
    let boards = site.both(SUM, "1h").await;
    for board in &boards {
        let samples = || vec![sample("a", 5, SEVEN), sample("a", 7, NINE), sample("b", 6, EIGHT)];
        for _ in 0..3 {
            assert_eq!(site.score(board, samples()).await, [counted(12), counted(12), counted(6)]);
        }
        assert_eq!(site.value(board, "a").await, exact(12));
        let slots = [(SEVEN.to_owned(), Aggregate::Sum(Amount(5))), (NINE.to_owned(), Aggregate::Sum(Amount(7)))];
        assert_eq!(site.slots(board, "a").await, slots);
    }
    assert_eq!(site.ranking(&boards[0]).await, [(1, "a".to_owned(), 12), (2, "b".to_owned(), 6)]);
    site.audit(&boards[0]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.ranking(&boards[0]).await, [(1, "a".to_owned(), 7), (2, "b".to_owned(), 6)]);
}

pub async fn a_later_sample_adjusts_the_ranking(site: Site) {
    let boards = site.both(SUM, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 3).at(EIGHT), plus("a", 1), plus("b", 5).at(EIGHT)]).await;
        // Earlier amounts are overwritten, later ones are added.
        assert_eq!(site.score(board, vec![sample("a", 10, EIGHT)]).await, [counted(11)]);
        assert_eq!(site.score(board, vec![plus("a", 2).at(EIGHT)]).await, [counted(13)]);
        assert_eq!(site.score(board, vec![sample("a", 1, EIGHT)]).await, [counted(2)]);
        assert_eq!(site.value(board, "a").await, exact(2));
    }
    assert_eq!(site.ranking(&boards[0]).await, [(1, "b".to_owned(), 5), (2, "a".to_owned(), 2)]);
}

pub async fn a_sample_of_zero_empties_its_slot(site: Site) {
    let boards = site.both(SUM, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 3).at(EIGHT), plus("b", 1), plus("b", 2).at(EIGHT)]).await;
        assert_eq!(
            site.score(board, vec![sample("a", 0, EIGHT), sample("b", 0, EIGHT)]).await,
            [counted(0), counted(1)]
        );
        assert_eq!((site.slots(board, "a").await, site.value(board, "a").await), (Vec::new(), exact(0)));
        assert_eq!(site.value(board, "b").await, exact(1));
        site.count(board, vec![sample("c", 0, SEVEN)]).await;
    }
    assert_eq!(site.ranking(&boards[0]).await, [(1, "b".to_owned(), 1)]);
    site.audit(&boards[0]).await;
}

pub async fn samples_and_increments_of_a_batch_take_effect_in_order(site: Site) {
    for board in site.both(SUM, "1h").await {
        let items = vec![
            plus("a", 100),
            plus("b", 1),
            plus("a", 100),
            sample("a", 5, NINE),
            plus("a", 1),
            plus("b", 1),
            plus("a", 2),
        ];
        let scores = site.score(&board, items).await;
        assert_eq!(scores[5], counted(2));
        assert_eq!(site.value(&board, "a").await, exact(8));
        // A sample of another slot changes nothing here.
        site.count(&board, vec![plus("a", 1), sample("a", 50, EIGHT), plus("a", 1)]).await;
        assert_eq!(site.value(&board, "a").await, exact(60));
    }
}

pub async fn samples_are_placed_in_slots_by_the_boards_stamp(site: Site) {
    for (name, stamp, seven) in [("start", Stamp::Start, COUNTED), ("end", Stamp::End, LATE)] {
        for ranked in [true, false] {
            let definition = Definition { stamp, ranked, ..definition(SUM, "1h") };
            let board = site.define(&format!("{name}{ranked}"), &definition).await;
            let items = vec![sample("a", 1, SEVEN), sample("b", 2, EIGHT), sample("c", 4, "2026-01-01T08:00:00.001Z")];
            assert_eq!(site.add(&board, items).await, [seven, COUNTED, COUNTED], "{name}");
            let slot_of_b = if stamp == Stamp::Start { EIGHT } else { SEVEN };
            assert_eq!(site.slots(&board, "b").await, [(slot_of_b.to_owned(), Aggregate::Sum(Amount(2)))]);
            assert_eq!(site.slots(&board, "c").await, [(EIGHT.to_owned(), Aggregate::Sum(Amount(4)))]);
            // Times up to the end of the head are allowed, and no later: a sample sets exactly its own slot.
            let end = "2026-01-01T10:00:00Z";
            let items = vec![sample("e", 1, "2026-01-01T09:59:59.999Z"), sample("f", 1, end)];
            let at_the_end = if stamp == Stamp::Start { EARLY } else { COUNTED };
            assert_eq!(site.add(&board, items).await, [COUNTED, at_the_end], "{name}");
            let items = vec![sample("e", 1, "2026-01-01T10:00:00.001Z"), sample("f", 1, "2026-01-01T06:59:59.999Z")];
            assert_eq!(site.add(&board, items).await, [EARLY, LATE], "{name}");
            // Increments are placed as usual.
            site.count(&board, vec![plus("g", 1).at(EIGHT)]).await;
            assert_eq!(site.slots(&board, "g").await, [(EIGHT.to_owned(), Aggregate::Sum(Amount(1)))]);
        }
    }
}

pub async fn samples_of_means_have_a_sum_and_a_count(site: Site) {
    let boards = site.both("AVG(3h, load, value, host)", "1h").await;
    for board in &boards {
        site.count(board, vec![sample_of("a", 10, 4, SEVEN), sample_of("a", 6, 1, EIGHT), plus("a", 2)]).await;
        assert_eq!(site.value(board, "a").await, mean(18, 6));
        for _ in 0..2 {
            site.count(board, vec![sample_of("a", 4, 2, NINE), sample_of("a", 0, 0, EIGHT)]).await;
            assert_eq!(site.value(board, "a").await, mean(14, 6));
        }
        site.count(board, vec![plus("a", 3), sample_of("b", 0, 2, NINE)]).await;
        assert_eq!(site.value(board, "a").await, mean(17, 7));
        assert_eq!(site.value(board, "b").await, mean(0, 2));
        site.count(board, vec![sample_of("b", 0, 0, NINE)]).await;
        assert_eq!((site.value(board, "b").await, site.slots(board, "b").await), (None, Vec::new()));
    }
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.means(&boards[0]).await, [(1, "a".to_owned(), 7.0 / 3.0)]);
    site.audit(&boards[0]).await;
}

pub async fn samples_beyond_the_slot_bound_are_rejected(site: Site) {
    for metric in [SUM, "AVG(3h, load, value, host)"] {
        for board in site.both(metric, "1h").await {
            let bound = board.edition().main().slot_bound().0;
            let refused = Outcome::Rejected(Rejection::OutOfRange);
            site.count(&board, vec![sample("a", bound, NINE), sample("b", -bound, NINE)]).await;
            let items = vec![sample("a", bound + 1, NINE).id("x"), sample("b", -bound - 1, NINE), sample("c", 1, NINE)];
            assert_eq!(site.add(&board, items).await, [refused, refused, COUNTED]);
            let slots = |units| {
                let aggregate = match metric {
                    SUM => Aggregate::Sum(Amount(units)),
                    _ => Aggregate::Mean { sum: Amount(units), count: 1 },
                };
                [(NINE.to_owned(), aggregate)]
            };
            assert_eq!(
                (site.slots(&board, "a").await, site.slots(&board, "b").await),
                (slots(bound).to_vec(), slots(-bound).to_vec())
            );
            assert_eq!(site.add(&board, vec![sample("a", 1, NINE).id("x")]).await, [COUNTED]);
            assert!(site.store.undefine(&board).await.unwrap());
        }
    }
}

pub async fn samples_with_an_id_count_once(site: Site) {
    for board in site.both(SUM, "1h").await {
        site.count(&board, vec![sample("a", 5, NINE).id("x")]).await;
        assert_eq!(site.add(&board, vec![sample("a", 9, NINE).id("x")]).await, [DUPLICATE]);
        assert_eq!(
            site.score(&board, vec![sample("a", 9, NINE).id("x"), plus("a", 1).id("x")]).await,
            [duplicate(5); 2]
        );
    }
}
