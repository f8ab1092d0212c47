//! Tests of imports: which may begin, that each piece counts once, and what is expired or refused.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::board::{Aggregate, Amount, Board, Definition, EXACT_MAX, Kind as Metric, Mode, Subject, Timestamp};
use rolltop::store::{
    Batch, Content, ImportBegun, ImportId, Increment, MAX_IMPORTS, Merged, Outcome, Piece, Rejection, StoreError,
};

use crate::carrying::{
    all_of, assert_same, definitions, every_definition, history, import, pieces_of, subjects, sum, takes_samples,
};
use crate::given::{With, definition, exact, mean, plus, sample, sample_of, seen, subject, t, unranked, value};
use crate::site::{COUNTED, START, Site, audit_through};

const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const SUM: &str = "SUM(3h, sale, amount, seller)";
const ID: ImportId = ImportId(7);
const OTHER: ImportId = ImportId(u64::MAX);

fn open(through: &[u64]) -> ImportBegun {
    ImportBegun::Open { through: through.to_vec() }
}

async fn begin(site: &Site, board: &Arc<Board>, id: ImportId) -> ImportBegun {
    site.other.begin_import(board, id).await.unwrap()
}

fn amount_in(who: &str, hour: &str, units: i64) -> (Subject, Content) {
    let slot = t(&format!("2026-01-01T{hour}:00:00Z"));
    (subject(who), Content::Cell { slot, aggregate: Aggregate::Sum(Amount(units)) })
}

fn piece(number: u64, contents: Vec<(Subject, Content)>) -> Piece {
    Piece { number, contents, events: Vec::new() }
}

fn is_no_import(found: Result<Merged, StoreError>) -> bool {
    matches!(found, Err(StoreError::NoImport { .. }))
}

pub async fn each_piece_counts_once_whoever_sends_it(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    for (nth, definition) in definitions(&site).into_iter().enumerate() {
        let from = site.define(&format!("from{nth}"), &definition).await;
        let to = site.define(&format!("to{nth}"), &definition).await;
        let items = history(&mut rng, &from, 120, t(START));
        site.add(&from, items).await;
        let of_tracks = pieces_of(&site.store, &from, 40).await;
        assert_eq!(begin(&site, &to, ID).await, open(&vec![0; to.tracks().len()]));
        for (track, pieces) in to.each_track().zip(&of_tracks) {
            for (nth, piece) in pieces.iter().enumerate() {
                let all = piece.contents.len() as u64;
                let merged = site.store.merge(&track, ID, piece).await.unwrap();
                assert_eq!(merged, Merged { merged: all, ..Merged::default() });
                let again = Merged { repeated: all, ..Merged::default() };
                for store in [&site.other, &site.store] {
                    assert_eq!(store.merge(&track, ID, piece).await.unwrap(), again, "{definition:?}");
                }
                // Earlier pieces, too.
                let earlier = &pieces[rng.random_range(0..=nth)];
                let again = Merged { repeated: earlier.contents.len() as u64, ..Merged::default() };
                assert_eq!(site.other.merge(&track, ID, earlier).await.unwrap(), again, "{definition:?}");
            }
        }
        let through: Vec<u64> = of_tracks.iter().map(|pieces| pieces.len() as u64).collect();
        assert_eq!(begin(&site, &to, ID).await, open(&through), "{definition:?}");
        assert!(site.other.end_import(&to, ID).await.unwrap());
        assert_eq!(begin(&site, &to, ID).await, ImportBegun::Ended);
        for (track, pieces) in to.each_track().zip(&of_tracks) {
            assert!(is_no_import(site.store.merge(&track, ID, &pieces[0]).await));
        }
        let expected = all_of(&site, &from, &subjects()).await;
        assert_same(&all_of(&site, &to, &subjects()).await, &expected, &format!("{definition:?}"));
    }
}

pub async fn a_begun_import_is_continued_after_its_last_pieces(site: Site) {
    let windows = vec!["1d/6h".parse().unwrap(), "all".parse().unwrap()];
    let board = site.define("board", &Definition { windows, ..definition(SUM, "1h") }).await;
    assert_eq!(begin(&site, &board, ID).await, open(&[0, 0, 0]));
    let tracks: Vec<_> = board.each_track().collect();
    let at_six = |who: &str| {
        let slot = t("2026-01-01T06:00:00Z");
        (subject(who), Content::Cell { slot, aggregate: Aggregate::Sum(Amount(1)) })
    };
    site.store.merge(&tracks[0], ID, &piece(1, vec![amount_in("a", "08", 1)])).await.unwrap();
    assert_eq!(begin(&site, &board, ID).await, open(&[1, 0, 0]));
    // Numbers need not be adjacent, and may be large.
    site.store.merge(&tracks[1], ID, &piece(5, vec![at_six("a"), at_six("b")])).await.unwrap();
    site.store.merge(&tracks[0], ID, &piece((1 << 40) - 1, vec![amount_in("b", "08", 1)])).await.unwrap();
    assert_eq!(begin(&site, &board, ID).await, open(&[(1 << 40) - 1, 5, 0]));
    let repeated = site.other.merge(&tracks[1], ID, &piece(4, vec![at_six("c")])).await.unwrap();
    assert_eq!(repeated, Merged { repeated: 1, ..Merged::default() });
    let values = [
        site.value(&tracks[0], "a").await,
        site.value(&tracks[1], "b").await,
        site.value(&tracks[1], "c").await,
        site.value(&tracks[2], "a").await,
    ];
    assert_eq!(values, [exact(1), exact(1), exact(0), exact(0)]);
}

pub async fn a_board_has_one_open_import(site: Site) {
    for board in site.both(SUM, "1h").await {
        assert!(is_no_import(site.store.merge(&board.main(), ID, &piece(1, vec![amount_in("a", "08", 1)])).await));
        assert!(!site.store.end_import(&board, ID).await.unwrap());
        assert_eq!(begin(&site, &board, ID).await, open(&[0]));
        assert_eq!(begin(&site, &board, OTHER).await, ImportBegun::OtherOpen(ID));
        assert!(is_no_import(site.store.merge(&board.main(), OTHER, &piece(1, vec![amount_in("a", "08", 1)])).await));
        assert!(!site.store.end_import(&board, OTHER).await.unwrap());
        assert_eq!(begin(&site, &board, ID).await, open(&[0]));
        assert!(site.store.end_import(&board, ID).await.unwrap());
        assert!(!site.other.end_import(&board, ID).await.unwrap());
        assert_eq!(begin(&site, &board, OTHER).await, open(&[0]));
        assert_eq!(begin(&site, &board, ID).await, ImportBegun::Ended);
        // Neither is one of the same board whose contents were read in another walk.
        assert_eq!(begin(&site, &board, ImportId(ID.0 + 1)).await, ImportBegun::Ended);
        // Each import has numbers of its own.
        let merged = site.store.merge(&board.main(), OTHER, &piece(1, vec![amount_in("a", "08", 1)])).await.unwrap();
        assert_eq!((merged.merged, site.value(&board, "a").await), (1, exact(1)));
        assert!(site.store.end_import(&board, OTHER).await.unwrap());
    }
}

pub async fn a_board_remembers_a_limited_number_of_imports(site: Site) {
    for board in site.both(SUM, "1h").await {
        for nth in 0..MAX_IMPORTS as u64 {
            assert_eq!(begin(&site, &board, ImportId(nth << 32)).await, open(&[0]));
            assert!(site.store.end_import(&board, ImportId(nth << 32)).await.unwrap());
        }
        assert_eq!(begin(&site, &board, OTHER).await, ImportBegun::TooMany);
        assert!(is_no_import(site.store.merge(&board.main(), OTHER, &piece(1, vec![amount_in("a", "08", 1)])).await));
        for nth in 0..MAX_IMPORTS as u64 {
            assert_eq!(begin(&site, &board, ImportId(nth << 32)).await, ImportBegun::Ended);
        }
        // Samples and removals work, because no import is open.
        assert_eq!(site.add(&board, vec![sample("a", 1, EIGHT)]).await, [COUNTED]);
        site.store.remove(&board, &subject("a")).await.unwrap();
    }
}

pub async fn a_board_with_samples_begins_no_import(site: Site) {
    for (nth, definition) in every_definition().into_iter().enumerate() {
        let board = site.define(&format!("b{nth}"), &definition).await;
        let tracks = board.tracks().len();
        if !takes_samples(&board) {
            let item = match board.edition().takes(&seen("a", "v").change) {
                true => seen("a", "v"),
                false => plus("a", 5),
            };
            site.count(&board, vec![item]).await;
            assert_eq!(begin(&site, &board, ID).await, open(&vec![0; tracks]), "{definition:?}");
            continue;
        }
        site.count(&board, vec![plus("a", 5)]).await;
        // A sample that was rejected is none. The other kinds have no bound.
        if matches!(board.kind(), Metric::Sum | Metric::Mean) {
            let refused = vec![sample_of("a", EXACT_MAX + 1, 1, EIGHT)];
            assert_eq!(site.add(&board, refused).await, [Outcome::Rejected(Rejection::OutOfRange)]);
        }
        assert_eq!(begin(&site, &board, ID).await, open(&vec![0; tracks]), "{definition:?}");
        assert!(site.store.end_import(&board, ID).await.unwrap());
        site.count(&board, vec![sample("a", 5, EIGHT)]).await;
        assert_eq!(begin(&site, &board, OTHER).await, ImportBegun::MayHaveSamples, "{definition:?}");
        assert_eq!(begin(&site, &board, ID).await, ImportBegun::Ended, "{definition:?}");
        // Also when what the sample set is gone.
        site.store.remove(&board, &subject("a")).await.unwrap();
        assert_eq!(begin(&site, &board, OTHER).await, ImportBegun::MayHaveSamples, "{definition:?}");
    }
}

pub async fn a_board_of_counters_takes_no_imports(site: Site) {
    let board = site.define("counters", &Definition { mode: Mode::FromFirst, ..unranked(SUM, "1d") }).await;
    let begun = site.store.begin_import(&board, ID).await;
    assert!(matches!(begun, Err(StoreError::NoImport { .. })), "{begun:?}");
    let counter = Content::Counter { start: t(EIGHT), amount: Amount(5) };
    assert!(is_no_import(site.store.merge(&board.main(), ID, &piece(1, vec![(subject("a"), counter)])).await));
    assert_eq!(site.value(&board, "a").await, exact(0));
}

pub async fn an_import_ends_with_its_board(site: Site) {
    let board = site.board(SUM, "1h").await;
    assert_eq!(begin(&site, &board, ID).await, open(&[0]));
    assert!(site.store.undefine(&board).await.unwrap());
    let again = site.board(SUM, "1h").await;
    let merged = site.store.merge(&board.main(), ID, &piece(1, vec![amount_in("a", "08", 1)])).await;
    assert!(matches!(merged, Err(StoreError::BoardChanged)), "{merged:?}");
    let begun = site.other.begin_import(&board, OTHER).await;
    assert!(matches!(begun, Err(StoreError::BoardChanged)), "{begun:?}");
    let ended = site.store.end_import(&board, ID).await;
    assert!(matches!(ended, Err(StoreError::BoardChanged)), "{ended:?}");
    // The new board has had no imports.
    assert!(is_no_import(site.store.merge(&again.main(), ID, &piece(1, vec![amount_in("a", "08", 1)])).await));
    site.count(&again, vec![plus("a", 5)]).await;
    site.store.remove(&again, &subject("a")).await.unwrap();
    assert_eq!(begin(&site, &again, ID).await, open(&[0]));
}

pub async fn contents_of_expired_slots_are_counted_and_left_out(site: Site) {
    for board in site.both(SUM, "1h").await {
        site.store.begin_import(&board, ID).await.unwrap();
        let hours = ["00", "05", "06", "07", "08", "09"];
        let floor: Timestamp = board.edition().main().oldest_kept(board.main().window_at(t(START)).floor);
        let is_live = |hour: &str| t(&format!("2026-01-01T{hour}:00:00Z")) >= floor;
        let contents: Vec<_> = hours.into_iter().map(|hour| amount_in("a", hour, 1)).collect();
        let live = hours.into_iter().filter(|hour| is_live(hour)).count() as u64;
        let merged = site.store.merge(&board.main(), ID, &piece(1, contents.clone())).await.unwrap();
        assert_eq!(merged, Merged { merged: live, expired: 6 - live, ..Merged::default() });
        assert_eq!(site.value(&board, "a").await, exact(3));
        // They count as repeated like the others.
        let again = site.other.merge(&board.main(), ID, &piece(1, contents)).await.unwrap();
        assert_eq!(again, Merged { repeated: 6, ..Merged::default() });
        site.store.end_import(&board, ID).await.unwrap();
        assert!(site.store.undefine(&board).await.unwrap());
    }
    for board in site.both("COUNT_DISTINCT(3h, login, device, user)", "1h").await {
        site.store.begin_import(&board, ID).await.unwrap();
        let of = |what: &str, at: &str, retracted| {
            (subject("d"), Content::Value { value: value(what), at: t(at), retracted })
        };
        let contents = vec![
            of("u1", "2026-01-01T06:59:59.999Z", false),
            of("u2", "2026-01-01T07:00:00Z", false),
            of("u3", "2026-01-01T06:59:59.999Z", true),
            (subject("d"), Content::Dropped { at: t("2026-01-01T06:59:59.999Z") }),
        ];
        let merged = site.store.merge(&board.main(), ID, &piece(1, contents)).await.unwrap();
        assert_eq!(merged, Merged { merged: 1, expired: 3, ..Merged::default() });
        assert_eq!(site.value(&board, "d").await, exact(1));
    }
}

pub async fn contents_beyond_the_bound_of_a_slot_are_refused(site: Site) {
    for board in site.both(SUM, "1h").await {
        let bound = board.edition().main().slot_bound().0;
        site.count(&board, vec![plus("a", bound - 1).at(EIGHT), plus("b", -bound).at(EIGHT)]).await;
        site.store.begin_import(&board, ID).await.unwrap();
        let contents = vec![
            amount_in("a", "08", 2),
            amount_in("b", "08", -1),
            amount_in("c", "08", bound + 1),
            amount_in("d", "08", bound),
            amount_in("a", "07", bound),
        ];
        let merged = site.store.merge(&board.main(), ID, &piece(1, contents)).await.unwrap();
        assert_eq!(merged, Merged { merged: 2, refused: 3, ..Merged::default() });
        let values = [("a", 2 * bound - 1), ("b", -bound), ("c", 0), ("d", bound)];
        for (who, units) in values {
            assert_eq!(site.value(&board, who).await, exact(units), "{who}");
        }
        // A later piece is tried again.
        let more = vec![amount_in("a", "08", 1), amount_in("a", "07", 1), amount_in("a", "07", -bound)];
        let merged = site.store.merge(&board.main(), ID, &piece(2, more)).await.unwrap();
        assert_eq!(merged, Merged { merged: 2, refused: 1, ..Merged::default() });
        assert_eq!(site.value(&board, "a").await, exact(bound));
        assert!(site.store.undefine(&board).await.unwrap());
    }
    for board in site.both("AVG(3h, load, value, host)", "1h").await {
        let bound = board.edition().main().slot_bound().0;
        site.count(&board, vec![plus("a", bound).at(EIGHT)]).await;
        site.store.begin_import(&board, ID).await.unwrap();
        let slot = t("2026-01-01T08:00:00Z");
        let cell = |sum, count| Content::Cell { slot, aggregate: Aggregate::Mean { sum: Amount(sum), count } };
        let contents =
            vec![(subject("a"), cell(1, 1)), (subject("b"), cell(-bound - 1, 1)), (subject("c"), cell(bound, 2))];
        let merged = site.store.merge(&board.main(), ID, &piece(1, contents)).await.unwrap();
        assert_eq!(merged, Merged { merged: 1, refused: 2, ..Merged::default() });
        let values = [site.value(&board, "a").await, site.value(&board, "b").await, site.value(&board, "c").await];
        assert_eq!(values, [mean(bound, 1), None, mean(bound, 2)]);
    }
}

pub async fn contents_that_are_not_of_the_track_are_refused(site: Site) {
    let cell = |slot: &str, aggregate| Content::Cell { slot: t(slot), aggregate };
    let sum = || Aggregate::Sum(Amount(1));
    let last = Aggregate::Last { at: t(EIGHT), value: Amount(1) };
    let of_value = Content::Value { value: value("v"), at: t(EIGHT), retracted: false };
    let start = "2026-01-01T08:00:00Z";
    let others = vec![
        cell(start, Aggregate::Mean { sum: Amount(1), count: 1 }),
        cell(start, Aggregate::Extreme(Amount(1))),
        cell(start, last),
        of_value.clone(),
        Content::Dropped { at: t(EIGHT) },
        Content::Counter { start: t(EIGHT), amount: Amount(1) },
        // Not the start of a slot, and after the head.
        cell(EIGHT, sum()),
        cell("2026-01-01T10:00:00Z", sum()),
        cell("2026-01-02T10:00:00Z", sum()),
    ];
    for board in site.both(SUM, "1h").await {
        let mut contents: Vec<_> = others.iter().map(|content| (subject("a"), content.clone())).collect();
        contents.push(amount_in("a", "08", 5));
        site.store.begin_import(&board, ID).await.unwrap();
        let events = vec![(t(EIGHT), 9), (t("2026-01-01T10:00:00Z"), 9), (t(start), 4)];
        let piece = Piece { number: 1, contents, events };
        let merged = site.store.merge(&board.main(), ID, &piece).await.unwrap();
        assert_eq!(merged, Merged { merged: 1, refused: others.len() as u64, ..Merged::default() });
        assert_eq!(site.value(&board, "a").await, exact(5));
        assert_eq!(site.store.status(&board.main()).await.unwrap().events, [(t(start), 4)]);
        assert!(site.store.undefine(&board).await.unwrap());
    }
    for board in site.both("COUNT_DISTINCT(3h, login, device, user)", "1h").await {
        let later = Content::Value { value: value("w"), at: t("2026-01-01T10:00:00Z"), retracted: false };
        let contents = [cell(start, sum()), later, of_value.clone()].map(|content| (subject("a"), content));
        site.store.begin_import(&board, ID).await.unwrap();
        let merged = site.store.merge(&board.main(), ID, &piece(1, contents.to_vec())).await.unwrap();
        assert_eq!(merged, Merged { merged: 1, refused: 2, ..Merged::default() });
        assert_eq!(site.value(&board, "a").await, exact(1));
    }
}

/// Merges a piece, and gives up in the middle of it some times, each time through another instance.
async fn merge_with_interruptions(
    site: &Site,
    rng: &mut StdRng,
    track: &rolltop::board::BoardTrack,
    piece: &Piece,
) -> Merged {
    let store = |nth: usize| [&site.store, &site.other][nth % 2].clone();
    for nth in 0..rng.random_range(0..4) {
        let (store, track, piece) = (store(nth), track.clone(), piece.clone());
        let micros = rng.random_range(0..3_000);
        if rng.random_bool(0.5) {
            let merging = async move { store.merge(&track, ID, &piece).await };
            tokio::time::timeout(Duration::from_micros(micros), merging).await.ok();
        } else {
            let merging = tokio::spawn(async move { store.merge(&track, ID, &piece).await });
            tokio::time::sleep(Duration::from_micros(micros)).await;
            merging.abort();
            merging.await.ok();
        }
    }
    site.other.merge(track, ID, piece).await.unwrap()
}

pub async fn a_piece_whose_caller_ended_halfway_counts_once(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let metrics = [SUM, "AVG(3h, load, value, host)", "COUNT_DISTINCT(3h, login, device, user)"];
    for (nth, metric) in metrics.into_iter().enumerate() {
        for definition in [definition(metric, "1h"), unranked(metric, "1h")] {
            let [from, to] = ["from", "to"].map(|name| format!("{name}{nth}-{}", definition.ranked));
            let (from, to) = (site.define(&from, &definition).await, site.define(&to, &definition).await);
            let items = (0..2_500).map(|nth| {
                let who = format!("s{}", nth % 1_200);
                let item = if nth < 1_200 { plus(&who, nth) } else { plus(&who, 1) };
                let takes_amounts = from.edition().takes(&item.change);
                let item = if takes_amounts { item } else { seen(&who, &format!("v{nth}")) };
                item.at(if nth % 2 == 0 { EIGHT } else { SEVEN })
            });
            let increments: Vec<Increment> = items.collect();
            site.store.add(&from, Batch { increments, return_scores: false }).await.unwrap();
            let of_tracks = pieces_of(&site.store, &from, 900).await;
            begin(&site, &to, ID).await;
            for piece in &of_tracks[0] {
                let merged = merge_with_interruptions(&site, &mut rng, &to.main(), piece).await;
                assert_eq!(sum(merged), piece.contents.len() as u64, "{merged:?}");
                assert_eq!((merged.expired, merged.refused), (0, 0));
            }
            site.store.end_import(&to, ID).await.unwrap();
            let expected = all_of(&site, &from, &subjects()).await;
            assert_same(&all_of(&site, &to, &subjects()).await, &expected, &metric);
        }
    }
}

pub async fn pieces_and_increments_at_the_same_time_all_count(site: Site) {
    for board in site.both(SUM, "1h").await {
        let from = site.define(&format!("from-{}", board.name()), board.definition()).await;
        let increments: Vec<Increment> = (0..1_500).map(|nth| plus(&format!("s{nth}"), 100).at(EIGHT)).collect();
        site.count(&from, increments).await;
        let of_tracks = Arc::new(pieces_of(&site.store, &from, 400).await);
        begin(&site, &board, ID).await;
        let mut tasks = Vec::new();
        for sender in 0..2 {
            let (store, board) = ([&site.store, &site.other][sender].clone(), board.clone());
            let of_tracks = of_tracks.clone();
            tasks.push(tokio::spawn(async move {
                let mut all = Merged::default();
                for piece in &of_tracks[0] {
                    all.add(store.merge(&board.main(), ID, piece).await.unwrap());
                }
                (all.merged, sum(all))
            }));
        }
        let writer = {
            let (store, board) = (site.store.clone(), board.clone());
            tokio::spawn(async move {
                for round in 0..20 {
                    let item = |nth: usize| plus(&format!("s{nth}"), 1).at(EIGHT).id(&format!("{round}"));
                    let increments = (0..1_500).step_by(50).map(item).collect();
                    store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
                }
            })
        };
        writer.await.unwrap();
        let mut merged = 0;
        for task in tasks {
            let (of_task, all) = task.await.unwrap();
            assert_eq!(all, 1_500);
            merged += of_task;
        }
        assert_eq!(merged, 1_500, "each content was merged by one of the two");
        for (who, units) in [("s0", 120), ("s1", 100), ("s50", 120), ("s1499", 100)] {
            assert_eq!(site.value(&board, who).await, exact(units), "{who}");
        }
        let events = site.store.status(&board.main()).await.unwrap().events;
        assert_eq!(events.iter().map(|(_, items)| items).sum::<u64>(), 1_500 + 600);
        let (_, differences) = audit_through(&[site.store.clone(), site.other.clone()], &board).await;
        assert_eq!(differences, []);
        assert!(site.other.end_import(&board, ID).await.unwrap());
    }
}

pub async fn several_imports_add_up(site: Site) {
    for board in site.both(SUM, "1h").await {
        site.count(&board, vec![plus("s0", 1).at(EIGHT), plus("s1", 5).at(SEVEN)]).await;
        // Each import doubles what is there.
        for nth in 0..5 {
            let of_tracks = pieces_of(&site.store, &board, 1).await;
            let merged = import(&site, &board, ImportId(nth << 32), &of_tracks).await;
            assert_eq!(merged, Merged { merged: 2, ..Merged::default() });
        }
        assert_eq!((site.value(&board, "s0").await, site.value(&board, "s1").await), (exact(32), exact(160)));
    }
}
