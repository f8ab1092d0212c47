//! Tests of merging: a board that receives the contents of another one has what it would have if it had counted the
//! items of both.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::board::{Aggregate, Amount, Board, Definition, Kind as Metric, Timestamp};
use rolltop::store::{
    Content, ContentsCursor, ImportBegun, ImportId, Increment, Merged, Outcome, Piece, Rejection, SlotRange, StoreError,
};

use crate::carrying::{
    all_of, assert_same, definitions, history, import, pieces, pieces_of, subjects, takes_samples, walk,
};
use crate::given::{With, definition, exact, mean, plus, sample, seen, subject, t, unranked, value};
use crate::site::{COUNTED, DUPLICATE, Kind, START, Site};

const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";
const ID: ImportId = ImportId(0x00ab_cdef_0123_4567);

pub async fn a_copied_board_is_equal(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    for (nth, definition) in definitions(&site).into_iter().enumerate() {
        let from = site.define(&format!("from{nth}"), &definition).await;
        let mut items = history(&mut rng, &from, 250, t(START));
        if takes_samples(&from) {
            items.extend(["s1", "s2"].map(|who| sample(who, -7, NINE)));
        }
        site.add(&from, items).await;
        let to = site.define(&format!("to{nth}"), &definition).await;
        let of_tracks = pieces_of(&site.store, &from, rng.random_range(1..=Piece::MAX_CONTENTS)).await;
        let contents: usize = of_tracks.iter().flatten().map(|piece| piece.contents.len()).sum();
        let merged = import(&site, &to, ID, &of_tracks).await;
        assert_eq!(merged, Merged { merged: contents as u64, ..Merged::default() }, "{definition:?}");
        let expected = all_of(&site, &from, &subjects()).await;
        assert_same(&all_of(&site, &to, &subjects()).await, &expected, &format!("{definition:?}"));
        for (track, right) in to.each_track().zip(from.each_track()) {
            let stores = [site.store.clone(), site.other.clone()];
            assert_eq!(walk(&stores, &track).await, walk(&stores, &right).await, "{definition:?}");
        }
    }
}

pub async fn a_copied_board_expires_and_counts_like_its_source(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let mut boards = Vec::new();
    for (nth, definition) in definitions(&site).into_iter().enumerate() {
        let from = site.define(&format!("from{nth}"), &definition).await;
        let to = site.define(&format!("to{nth}"), &definition).await;
        let items = history(&mut rng, &from, 150, t(START));
        site.add(&from, items.clone()).await;
        let of_tracks = pieces_of(&site.store, &from, 100).await;
        import(&site, &to, ID, &of_tracks).await;
        boards.push((from, to, items));
    }
    for now in ["2026-01-01T10:20:00Z", "2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z"] {
        site.clock(now).await;
        for (from, to, items) in &boards {
            let mut more = history(&mut rng, from, 30, t(now));
            // Retractions of items that were imported.
            if from.edition().takes_retractions() {
                more.extend(items.iter().step_by(9).map(|item| Increment { retract: true, ..item.clone() }));
            }
            if takes_samples(from) {
                more.push(sample("s3", 40, now).at_time(t(now).plus_millis(-1)));
            }
            let outcomes = site.add(from, more.clone()).await;
            assert_eq!(site.add(to, more).await, outcomes, "{:?}", from.definition());
            let expected = all_of(&site, from, &subjects()).await;
            assert_same(&all_of(&site, to, &subjects()).await, &expected, &format!("{:?}", from.definition()));
        }
    }
}

/// Divides a history at random, and returns it and the two parts.
fn divided(rng: &mut StdRng, board: &Board, items: usize, now: Timestamp) -> [Vec<Increment>; 3] {
    let all = history(rng, board, items, now);
    let (one, two) = all.iter().cloned().partition(|_| rng.random_bool(0.5));
    [all, one, two]
}

pub async fn a_merged_board_has_the_items_of_both(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let oracle = Site::new(Kind::Oracle).await;
    let mut boards = Vec::new();
    for (nth, definition) in definitions(&site).into_iter().enumerate() {
        let from = site.define(&format!("from{nth}"), &definition).await;
        let to = site.define(&format!("to{nth}"), &definition).await;
        let right = oracle.define(&format!("b{nth}"), &definition).await;
        let [all, one, two] = divided(&mut rng, &from, 240, t(START));
        oracle.add(&right, all).await;
        site.add(&from, one).await;
        // A part of the items comes before the import, a part while it is open, and a part after it.
        let [before, during, after] = [0, 1, 2].map(|part| two.iter().skip(part).step_by(3).cloned().collect());
        site.add(&to, before).await;
        let of_tracks = pieces_of(&site.store, &from, rng.random_range(10..=300)).await;
        site.store.begin_import(&to, ID).await.unwrap();
        site.add(&to, during).await;
        import(&site, &to, ID, &of_tracks).await;
        site.add(&to, after).await;
        boards.push((to, right));
    }
    for now in [START, "2026-01-01T10:20:00Z", "2026-01-01T12:00:00Z"] {
        site.clock(now).await;
        oracle.clock(now).await;
        for (to, right) in &boards {
            let expected = all_of(&oracle, right, &subjects()).await;
            assert_same(&all_of(&site, to, &subjects()).await, &expected, &format!("{:?}", to.definition()));
        }
    }
}

pub async fn merged_values_beyond_the_limit_are_dropped(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let oracle = Site::new(Kind::Oracle).await;
    for (nth, ranked) in [true, false].into_iter().enumerate() {
        let definition = definition("COUNT_DISTINCT(3h, login, device, user)", "1h");
        let definition = Definition { max_values: Some(4), ranked, ..definition };
        let from = site.define(&format!("from{nth}"), &definition).await;
        let to = site.define(&format!("to{nth}"), &definition).await;
        let right = oracle.define(&format!("b{nth}"), &definition).await;
        let [mut all, mut one, mut two] = divided(&mut rng, &from, 300, t(START));
        for items in [&mut all, &mut one, &mut two] {
            items.retain(|item| !item.retract);
        }
        oracle.add(&right, all).await;
        site.add(&from, one).await;
        site.add(&to, two).await;
        let of_tracks = pieces_of(&site.store, &from, 40).await;
        import(&site, &to, ID, &of_tracks).await;
        let expected = all_of(&oracle, &right, &subjects()).await;
        assert_same(&all_of(&site, &to, &subjects()).await, &expected, &"max_values");
    }
}

/// Merges contents into the main track of a board. Every import has an id of its own.
async fn merge(site: &Site, board: &Arc<Board>, contents: Vec<(&str, Content)>) -> Merged {
    let id = ImportId(rand::random());
    assert_eq!(site.store.begin_import(board, id).await.unwrap(), ImportBegun::Open { through: vec![0] });
    let contents = contents.into_iter().map(|(who, content)| (subject(who), content)).collect();
    let merged = site.store.merge(&board.main(), id, &Piece { number: 1, contents, events: Vec::new() }).await;
    assert!(site.store.end_import(board, id).await.unwrap());
    merged.unwrap()
}

fn cell(hour: &str, aggregate: Aggregate) -> Content {
    Content::Cell { slot: t(&format!("2026-01-01T{hour}:00:00Z")), aggregate }
}

fn merged(merged: u64) -> Merged {
    Merged { merged, ..Merged::default() }
}

pub async fn of_two_newest_values_of_the_same_time_the_present_one_stays(site: Site) {
    for board in site.both("LAST(3h, rating, elo, player)", "1h").await {
        site.count(&board, vec![plus("a", 1).at(EIGHT), plus("b", 1).at(EIGHT), plus("c", 1).at(EIGHT)]).await;
        let last = |at: &str, units| cell("08", Aggregate::Last { at: t(at), value: Amount(units) });
        let contents = vec![
            ("a", last(EIGHT, 9)),
            ("b", last("2026-01-01T08:10:00.001Z", 8)),
            ("c", last("2026-01-01T08:09:59.999Z", 7)),
            ("d", last(EIGHT, -6)),
        ];
        assert_eq!(merge(&site, &board, contents).await, merged(4));
        for (who, units) in [("a", 1), ("b", 8), ("c", 1), ("d", -6)] {
            assert_eq!(site.value(&board, who).await, exact(units), "{who}");
        }
        // The newest slot decides, wherever it came from.
        let newer = cell("09", Aggregate::Last { at: t(NINE), value: Amount(3) });
        assert_eq!(merge(&site, &board, vec![("a", newer)]).await, merged(1));
        assert_eq!(site.value(&board, "a").await, exact(3));
        site.count(&board, vec![plus("d", 5).at(EIGHT), plus("b", 4).at(EIGHT)]).await;
        assert_eq!((site.value(&board, "d").await, site.value(&board, "b").await), (exact(5), exact(8)));
    }
}

pub async fn sums_and_means_are_added_and_the_better_extreme_stays(site: Site) {
    for board in site.both("SUM(3h, sale, amount, seller)", "1h").await {
        site.count(&board, vec![plus("a", 5).at(EIGHT), plus("b", 5).at(EIGHT)]).await;
        let contents = vec![
            ("a", cell("08", Aggregate::Sum(Amount(-7)))),
            ("b", cell("08", Aggregate::Sum(Amount(-5)))),
            ("c", cell("07", Aggregate::Sum(Amount(1)))),
        ];
        assert_eq!(merge(&site, &board, contents).await, merged(3));
        let values = [site.value(&board, "a").await, site.value(&board, "b").await, site.value(&board, "c").await];
        assert_eq!(values, [exact(-2), exact(0), exact(1)]);
        assert_eq!(site.slots(&board, "b").await, []);
        assert!(site.store.undefine(&board).await.unwrap());
    }
    for board in site.both("AVG(3h, load, value, host)", "1h").await {
        site.count(&board, vec![plus("a", 5).at(EIGHT)]).await;
        let more = |sum, count| cell("08", Aggregate::Mean { sum: Amount(sum), count });
        assert_eq!(merge(&site, &board, vec![("a", more(-9, 3)), ("b", more(0, 2))]).await, merged(2));
        assert_eq!((site.value(&board, "a").await, site.value(&board, "b").await), (mean(-4, 4), mean(0, 2)));
        assert!(site.store.undefine(&board).await.unwrap());
    }
    for (metric, best) in [("MIN(3h, load, value, host)", [-9, 1]), ("MAX(3h, load, value, host)", [2, 7])] {
        for board in site.both(metric, "1h").await {
            site.count(&board, vec![plus("a", 2).at(EIGHT), plus("b", 1).at(EIGHT)]).await;
            let extreme = |units| cell("08", Aggregate::Extreme(Amount(units)));
            assert_eq!(merge(&site, &board, vec![("a", extreme(-9)), ("b", extreme(7))]).await, merged(2));
            assert_eq!([site.value(&board, "a").await, site.value(&board, "b").await], best.map(exact), "{metric}");
            assert!(site.store.undefine(&board).await.unwrap());
        }
    }
}

pub async fn merged_values_are_handled_like_sightings_and_retractions(site: Site) {
    let of = |what: &str, at: &str, retracted| Content::Value { value: value(what), at: t(at), retracted };
    for board in site.both("COUNT_DISTINCT(3h, login, device, user)", "1h").await {
        let known = ["older", "same", "newer", "gone"].map(|what| seen("d", what).at(EIGHT));
        site.count(&board, known.to_vec()).await;
        let gone = ["stays", "returns"].map(|what| seen("d", what).at(EIGHT).undone());
        site.count(&board, gone.to_vec()).await;
        let contents = vec![
            ("d", of("older", SEVEN, false)),
            ("d", of("same", EIGHT, true)),
            ("d", of("newer", NINE, false)),
            ("d", of("gone", NINE, true)),
            ("d", of("stays", EIGHT, false)),
            ("d", of("returns", NINE, false)),
            ("d", of("new", SEVEN, false)),
            ("e", of("never", SEVEN, true)),
        ];
        assert_eq!(merge(&site, &board, contents).await, merged(8));
        let found = site.values(&board, "d").await;
        let expected = [("returns", NINE), ("newer", NINE), ("older", EIGHT), ("new", SEVEN)];
        assert_eq!(found, expected.map(|(what, at)| (what.to_owned(), at.to_owned())));
        assert_eq!((site.value(&board, "d").await, site.value(&board, "e").await), (exact(4), exact(0)));
        // The tombstones that were merged win against events that are not newer.
        site.count(&board, vec![seen("e", "never").at(SEVEN), seen("d", "gone").at(NINE)]).await;
        assert_eq!((site.value(&board, "d").await, site.value(&board, "e").await), (exact(4), exact(0)));
        site.count(&board, vec![seen("e", "never").at(EIGHT)]).await;
        assert_eq!(site.value(&board, "e").await, exact(1));
    }
}

pub async fn a_merged_time_of_a_dropped_value_marks_results(site: Site) {
    for ranked in [true, false] {
        let definition = definition("COUNT_DISTINCT(3h, login, device, user)", "1h");
        let board = site
            .define(
                if ranked { "ranked" } else { "unranked" },
                &Definition { max_values: Some(3), ranked, ..definition },
            )
            .await;
        site.count(&board, vec![seen("d", "u1").at(NINE)]).await;
        assert_eq!(merge(&site, &board, vec![("d", Content::Dropped { at: t(EIGHT) })]).await, merged(1));
        let capped = async |slots| {
            let range = SlotRange::Slots(slots);
            site.other.count(&board.main(), &subject("d"), range).await.unwrap().capped
        };
        assert_eq!((capped(1).await, capped(2).await, capped(3).await), (false, true, true));
        assert_eq!(merge(&site, &board, vec![("d", Content::Dropped { at: t(SEVEN) })]).await, merged(1));
        assert_eq!((capped(1).await, capped(2).await), (false, true));
    }
}

pub async fn numbers_of_items_are_added_once(site: Site) {
    for board in site.both("SUM(3h, sale, amount, seller)", "1h").await {
        site.count(&board, vec![plus("a", 1).at(EIGHT), plus("a", 1).at(NINE)]).await;
        let hour = |hour: &str| t(&format!("2026-01-01T{hour}:00:00Z"));
        let events = vec![(hour("04"), 9), (hour("07"), 4), (hour("08"), 5)];
        site.store.begin_import(&board, ID).await.unwrap();
        let contents = walk(std::slice::from_ref(&site.store), &board.main()).await.unwrap();
        for (nth, piece) in pieces(&contents, &events, 1).iter().enumerate() {
            for store in [&site.store, &site.other] {
                store.merge(&board.main(), ID, piece).await.unwrap();
            }
            let expected = [(hour("07"), 4), (hour("08"), 6), (hour("09"), 1)];
            assert_eq!(site.other.status(&board.main()).await.unwrap().events, expected, "{nth}");
        }
        let nothing = Piece { number: 7, contents: Vec::new(), events: vec![(hour("09"), 10)] };
        assert_eq!(site.store.merge(&board.main(), ID, &nothing).await.unwrap(), Merged::default());
        assert_eq!(site.store.merge(&board.main(), ID, &nothing).await.unwrap(), Merged::default());
        let expected = [(hour("07"), 4), (hour("08"), 6), (hour("09"), 11)];
        assert_eq!(site.store.status(&board.main()).await.unwrap().events, expected);
    }
}

pub async fn a_merge_while_a_slot_is_retiring_is_exact(site: Site) {
    for metric in crate::carrying::METRICS.map(|metric| metric.replace("{w}", "3h")) {
        let site = Site::new(site.kind.clone()).await;
        let (board, from) = (site.board(&metric, "1h").await, site.define("from", &definition(&metric, "1h")).await);
        let right = site.define("right", &definition(&metric, "1h")).await;
        let item = |who: usize, units: i64, at| match board.kind() {
            Metric::Distinct | Metric::Sketch => seen(&format!("s{who}"), &format!("v{units}")).at(at),
            _ => plus(&format!("s{who}"), units).at(at),
        };
        let old: Vec<Increment> = (0..900).map(|who| item(who, 7, SEVEN)).collect();
        let new: Vec<Increment> = (0..900).step_by(3).map(|who| item(who, 8, EIGHT)).collect();
        for (board, items) in [(&board, &old), (&right, &old), (&from, &old), (&from, &new), (&right, &new)] {
            site.count(board, items.clone()).await;
        }
        let of_tracks = pieces_of(&site.store, &from, 200).await;
        site.clock("2026-01-01T10:00:00Z").await;
        site.store.begin_import(&board, ID).await.unwrap();
        for piece in &of_tracks[0] {
            site.other.retire_step(&board.main()).await.unwrap();
            site.store.merge(&board.main(), ID, piece).await.unwrap();
        }
        site.store.end_import(&board, ID).await.unwrap();
        let expected = all_of(&site, &right, &subjects()).await;
        assert_same(&all_of(&site, &board, &subjects()).await, &expected, &metric);
    }
}

pub async fn an_import_refuses_samples_and_removals_while_it_is_open(site: Site) {
    for (nth, metric) in
        ["SUM(3h, sale, amount, seller)", "AVG(3h, load, value, host)", "LAST(3h, rating, elo, player)"]
            .into_iter()
            .enumerate()
    {
        for definition in [definition(metric, "1h"), unranked(metric, "1h")] {
            let board = site.define(&format!("b{nth}-{}", definition.ranked), &definition).await;
            site.count(&board, vec![plus("a", 5).at(EIGHT), plus("b", 5).id("x")]).await;
            site.store.begin_import(&board, ID).await.unwrap();
            let before = all_of(&site, &board, &[subject("a"), subject("b")]).await;
            let refused = Outcome::Rejected(Rejection::ImportOpen);
            let items = vec![sample("a", 9, EIGHT), sample("c", 9, EIGHT).id("y")];
            assert_eq!(site.add(&board, items.clone()).await, [refused; 2], "{metric}");
            for store in [&site.store, &site.other] {
                let removed = store.remove(&board, &subject("a")).await;
                assert!(matches!(removed, Err(StoreError::ImportOpen)), "{removed:?}");
                let replaced = store.replace(&board, plus("a", 1)).await;
                assert!(matches!(replaced, Err(StoreError::ImportOpen)), "{replaced:?}");
            }
            assert_eq!(all_of(&site, &board, &[subject("a"), subject("b")]).await, before, "{metric}");
            // Increments and their ids continue to work.
            let items = vec![plus("b", 5).id("x"), plus("b", 2).id("z"), plus("b", 2).id("z")];
            let expected = [DUPLICATE, COUNTED, DUPLICATE];
            assert_eq!(site.add(&board, items).await, expected, "{metric}");
            assert!(site.store.end_import(&board, ID).await.unwrap());
            // The id of a sample that was refused is not stored.
            site.count(&board, vec![sample("a", 9, EIGHT), sample("c", 9, EIGHT).id("y")]).await;
            assert_eq!(site.store.remove(&board, &subject("a")).await.unwrap().live_slots, 1);
        }
    }
}

pub async fn an_import_continues_after_a_restart(mut site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let capped = definition("COUNT_DISTINCT(3h, login, device, user)", "1h");
    let capped = Definition { max_values: Some(3), ..capped };
    let capped = [capped.clone(), Definition { ranked: false, ..capped }];
    let definitions = definitions(&site).into_iter().chain(capped);
    let mut boards = Vec::new();
    for (nth, definition) in definitions.enumerate() {
        let from = site.define(&format!("from{nth}"), &definition).await;
        let to = site.define(&format!("to{nth}"), &definition).await;
        let items = history(&mut rng, &from, 150, t(START));
        site.add(&from, items).await;
        let of_tracks = pieces_of(&site.store, &from, 40).await;
        site.store.begin_import(&to, ID).await.unwrap();
        let mut through = Vec::new();
        for (track, pieces) in to.each_track().zip(&of_tracks) {
            let half = pieces.len().div_ceil(2);
            for piece in &pieces[..half] {
                site.store.merge(&track, ID, piece).await.unwrap();
            }
            through.push(half as u64);
        }
        boards.push((from, to, of_tracks, through));
    }
    site = site.reopened().await;
    for (from, to, of_tracks, through) in &boards {
        let other = ImportId(1);
        assert_eq!(site.store.begin_import(to, other).await.unwrap(), ImportBegun::OtherOpen(ID));
        let begun = site.store.begin_import(to, ID).await.unwrap();
        assert_eq!(begun, ImportBegun::Open { through: through.clone() }, "{:?}", from.definition());
        for ((track, pieces), through) in to.each_track().zip(of_tracks).zip(through) {
            for piece in pieces {
                let all = piece.contents.len() as u64;
                let expected = if piece.number <= *through { (0, all) } else { (all, 0) };
                let merged = site.other.merge(&track, ID, piece).await.unwrap();
                assert_eq!((merged.merged, merged.repeated), expected, "{:?}", from.definition());
            }
        }
        assert!(site.store.end_import(to, ID).await.unwrap());
    }
    site = site.reopened().await;
    for (from, to, ..) in &boards {
        assert_eq!(site.store.begin_import(to, ID).await.unwrap(), ImportBegun::Ended);
        let expected = all_of(&site, from, &subjects()).await;
        assert_same(&all_of(&site, to, &subjects()).await, &expected, &format!("{:?}", from.definition()));
    }
}

pub async fn a_walk_continues_or_is_lost_after_a_restart(mut site: Site) {
    let mut walks = Vec::new();
    for board in site.both("SUM(3h, sale, amount, seller)", "1h").await {
        site.count(&board, (0..5_000).map(|nth| plus(&format!("s{nth}"), 1).at(EIGHT)).collect()).await;
        let step = site.store.contents_step(&board.main(), ContentsCursor::default()).await.unwrap();
        walks.push((board, step));
    }
    site = site.reopened().await;
    for (board, step) in walks {
        let (mut contents, mut cursor) = (step.contents, step.next);
        while let Some(from) = cursor.take() {
            match site.store.contents_step(&board.main(), from).await {
                Ok(step) => {
                    contents.extend(step.contents);
                    cursor = step.next;
                    if cursor.is_none() {
                        assert_eq!(crate::carrying::once(contents.clone()).unwrap().len(), 5_000);
                    }
                }
                Err(error) => assert!(matches!(error, StoreError::WalkLost), "{error:?}"),
            }
        }
        let again = walk(std::slice::from_ref(&site.store), &board.main()).await.unwrap();
        assert_eq!(again.len(), 5_000, "{}", board.name());
    }
}
