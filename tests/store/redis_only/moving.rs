//! Tests of walks over contents and of imports that are about the server: scripts whose replies are lost, calls that
//! end halfway, housekeeping, restarts.

use rolltop::board::{Aggregate, BoardTrack, Kind};
use rolltop::store::{
    Content, ContentsCursor, ContentsStep, ImportBegun, ImportId, MAX_IMPORTS, Merged, Piece, Status,
};

use super::proxy::{Fault, Proxy};
use super::*;
use crate::given::{With, sample, seen, unranked};

const HOUR: i64 = 3_600_000;
const IMPORT: ImportId = ImportId(7 << 32);
const OTHER: ImportId = ImportId(8 << 32);
const LAST: ImportId = ImportId(9 << 32);

fn definition(metric: &str) -> Definition {
    Definition::new(metric.parse().unwrap(), "1h".parse().unwrap())
}

async fn define_as(store: &RedisStore, name: &str, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?} instead of a new board"),
    }
}

async fn walk(store: &RedisStore, track: &BoardTrack) -> (Vec<(Subject, Content)>, usize) {
    let (mut all, mut cursor, mut steps) = (Vec::new(), ContentsCursor::default(), 0);
    loop {
        let ContentsStep { contents, next, .. } = store.contents_step(track, cursor).await.unwrap();
        all.extend(contents);
        steps += 1;
        match next {
            Some(next) => cursor = next,
            None => return (all, steps),
        }
    }
}

/// Returns the contents in an order, and checks that none of them occurs twice.
async fn walked(store: &RedisStore, track: &BoardTrack) -> Vec<String> {
    let (contents, _) = walk(store, track).await;
    let mut texts: Vec<String> = contents.iter().map(|content| format!("{content:?}")).collect();
    texts.sort();
    let count = texts.len();
    texts.dedup();
    assert_eq!(texts.len(), count, "something was returned twice");
    texts
}

async fn status(store: &RedisStore, track: &BoardTrack) -> Status {
    store.status(track).await.unwrap()
}

async fn begin(store: &RedisStore, board: &Arc<Board>) -> Vec<u64> {
    match store.begin_import(board, IMPORT).await.unwrap() {
        ImportBegun::Open { through } => through,
        other => panic!("{other:?}"),
    }
}

/// Returns pieces with all contents of the tracks of a board.
async fn pieces(store: &RedisStore, board: &Arc<Board>, size: usize) -> Vec<(usize, Piece)> {
    let mut pieces = Vec::new();
    for track in board.each_track() {
        let (contents, _) = walk(store, &track).await;
        let events = status(store, &track).await.events;
        let mut chunks: Vec<Vec<_>> = contents.chunks(size).map(<[_]>::to_vec).collect();
        chunks.push(Vec::new());
        let last = chunks.len() - 1;
        for (nth, contents) in chunks.into_iter().enumerate() {
            let events = if nth == last { events.clone() } else { Vec::new() };
            pieces.push((track.number(), Piece { number: pieces.len() as u64 + 1, contents, events }));
        }
    }
    pieces
}

async fn merge_all(store: &RedisStore, board: &Arc<Board>, pieces: &[(usize, Piece)]) -> Merged {
    let mut all = Merged::default();
    for (track, piece) in pieces {
        let track = board.each_track().nth(*track).unwrap();
        all.add(store.merge(&track, IMPORT, piece).await.unwrap());
    }
    all
}

fn definitions() -> Vec<Definition> {
    let mut all = Vec::new();
    for metric in [
        "SUM(3h, e, v, s)",
        "AVG(3h, e, v, s)",
        "MIN(3h, e, v, s)",
        "MAX(3h, e, v, s)",
        "LAST(3h, e, v, s)",
        "COUNT_DISTINCT(3h, e, s, c)",
        "APPROX_COUNT_DISTINCT(3h, e, s, c)",
    ] {
        all.push(definition(metric));
        all.push(unranked(metric, "1h"));
        let of_all_time = metric.replace("3h", "all");
        all.push(Definition { slot: None, ..definition(&of_all_time) });
        if !metric.contains("COUNT_DISTINCT") {
            all.push(Definition { keep: Some("3h".parse().unwrap()), ..definition(&of_all_time) });
            all.push(Definition { keep: Some("5h".parse().unwrap()), ..unranked(metric, "1h") });
        }
        all.push(Definition { shards: Some(3), ..definition(metric) });
        let json = format!(r#"{{"metric":"{metric}","slot":"1h","windows":["6h/1h","all"]}}"#);
        all.push(serde_json::from_str(&json).unwrap());
        let json = format!(r#"{{"metric":"{metric}","slot":"1h","windows":["6h/1h"],"shards":2}}"#);
        all.push(serde_json::from_str(&json).unwrap());
    }
    all.push(Definition { max_values: Some(3), ..definition("COUNT_DISTINCT(3h, e, s, c)") });
    all.push(Definition { max_values: Some(3), ..unranked("COUNT_DISTINCT(3h, e, s, c)", "1h") });
    all
}

async fn fill(store: &RedisStore, board: &Arc<Board>, salt: u64, items: u64) {
    let now = store.now().await.unwrap();
    let item = |nth: u64| {
        let mixed = (nth + salt * 1_000_003).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
        let who = format!("s{}", mixed % 17);
        let at = now.plus_millis(-((mixed >> 8) as i64 % (3 * HOUR)));
        let change = match board.kind().counts_values() {
            false => item(&who, (mixed >> 20) as i64 % 100 - 50),
            true => seen(&who, &format!("c{}", (mixed >> 20) % 9)),
        };
        let retract = board.kind() == Kind::Distinct && mixed.is_multiple_of(5);
        Increment { retract, ..change.at_time(at) }
    };
    let increments = (0..items).map(item).collect();
    store.add(board, Batch { increments, return_scores: false }).await.unwrap();
}

/// Returns everything that can be read of a track, except times of answers.
async fn readable(store: &RedisStore, track: &BoardTrack) -> String {
    let page = store.page(track, 0, 1_000).await.unwrap();
    let mut text = format!(
        "{:?} {:?}\n",
        page.total,
        page.items.iter().map(|line| (line.subject.clone(), line.score)).collect::<Vec<_>>()
    );
    for nth in 0..17 {
        let who = subject(&format!("s{nth}"));
        let standing = store.standing(track, &who).await.unwrap();
        text += &format!("{who} {:?} {:?} {:?} {}\n", standing.score, standing.rank, standing.slots, standing.capped);
        if track.kind() == Kind::Distinct {
            let values = store.values(track, &who, 0, 1_000).await.unwrap();
            text += &format!("{:?}\n", values.items);
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_of_every_form_is_copied() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        store.set_clock(t("2026-01-01T09:30:00Z")).await.unwrap();
        for (nth, definition) in definitions().iter().enumerate() {
            let what = serde_json::to_string(definition).unwrap();
            let from = define_as(&store, &format!("from-{nth}"), definition).await;
            let to = define_as(&store, &format!("to-{nth}"), definition).await;
            for salt in 0..3 {
                fill(&store, &from, salt, 150).await;
                store.set_clock(store.now().await.unwrap().plus_millis(HOUR / 2)).await.unwrap();
            }
            assert_eq!(begin(&store, &to).await, vec![0; to.tracks().len()], "{what}");
            let pieces = pieces(&store, &from, 40).await;
            assert!(pieces.len() > 1, "{what}");
            let merged = merge_all(&store, &to, &pieces).await;
            let contents = pieces.iter().map(|(_, piece)| piece.contents.len() as u64).sum();
            assert_eq!(merged, Merged { merged: contents, ..Merged::default() }, "{what}");
            for (one, other) in from.each_track().zip(to.each_track()) {
                roll_over(&store, &one).await;
                assert_eq!(walked(&store, &one).await, walked(&store, &other).await, "{what}");
                assert_eq!(status(&store, &one).await.events, status(&store, &other).await.events, "{what}");
                assert_eq!(readable(&store, &one).await, readable(&store, &other).await, "{what}");
                let (_, differences, _) = audit(&store, &other, false).await;
                assert_eq!(differences, [], "{what}");
            }
            let again = merge_all(&store, &to, &pieces).await;
            assert_eq!(again, Merged { repeated: contents, ..Merged::default() }, "{what}");
            let through = begin(&store, &to).await;
            let last: Vec<u64> = (0..to.tracks().len())
                .map(|track| pieces.iter().filter(|(of, _)| *of == track).map(|(_, piece)| piece.number).max().unwrap())
                .collect();
            assert_eq!(through, last, "{what}");
            assert!(store.end_import(&to, IMPORT).await.unwrap());
            assert!(!store.end_import(&to, IMPORT).await.unwrap());
            assert_eq!(store.begin_import(&to, IMPORT).await.unwrap(), ImportBegun::Ended);
            let refused = store.merge(&to.main(), IMPORT, &pieces[0].1).await;
            assert!(matches!(refused, Err(StoreError::NoImport { .. })), "{refused:?}");
        }
    }
}

/// Half of the events are counted in one board, the other half in another one, and all in a third.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merged_boards_are_as_if_one_had_counted_all() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    store.set_clock(t("2026-01-01T09:30:00Z")).await.unwrap();
    for (nth, definition) in definitions().iter().enumerate() {
        // What a limited number of values leaves depends on the order of the events.
        if definition.max_values.is_some() {
            continue;
        }
        let what = serde_json::to_string(definition).unwrap();
        let from = define_as(&store, &format!("from-{nth}"), definition).await;
        let to = define_as(&store, &format!("to-{nth}"), definition).await;
        let both = define_as(&store, &format!("both-{nth}"), definition).await;
        for (salt, boards) in [(1, [&from, &both]), (2, [&to, &both])] {
            for board in boards {
                fill(&store, board, salt, 300).await;
            }
        }
        begin(&store, &to).await;
        merge_all(&store, &to, &pieces(&store, &from, 1_000).await).await;
        for (one, other) in both.each_track().zip(to.each_track()) {
            assert_eq!(walked(&store, &one).await, walked(&store, &other).await, "{what}");
            assert_eq!(status(&store, &one).await.events, status(&store, &other).await.events, "{what}");
            assert_eq!(readable(&store, &one).await, readable(&store, &other).await, "{what}");
            assert_eq!(audit(&store, &other, false).await.1, [], "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_subjects_and_large_slots_are_walked_in_pieces() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        store.set_clock(t("2026-01-01T09:30:00Z")).await.unwrap();
        let now = store.now().await.unwrap();
        let ranked = hourly(&store, "ranked").await;
        let increments = (0..20_000).map(|nth| item(&format!("s{nth}"), 1)).collect();
        store.add(&ranked, Batch { increments, return_scores: false }).await.unwrap();
        let (contents, steps) = walk(&store, &ranked.main()).await;
        assert_eq!(contents.len(), 20_000);
        assert!((10..=25).contains(&steps), "{steps}");

        for (name, definition) in [
            ("values", definition("COUNT_DISTINCT(3h, e, s, c)")),
            ("unranked", unranked("COUNT_DISTINCT(3h, e, s, c)", "1h")),
        ] {
            let board = define_as(&store, name, &definition).await;
            let mut increments = Vec::new();
            for nth in 0..10_000 {
                // Many values have the same time.
                let at = now.plus_millis(-(nth % 3));
                let event = seen("big", &format!("c{nth}")).at_time(at);
                increments.push(Increment { retract: nth % 2 == 0, ..event });
            }
            increments.extend((0..5_000).map(|nth| seen(&format!("s{nth}"), "x")));
            store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
            let started = std::time::Instant::now();
            let (contents, steps) = walk(&store, &board.main()).await;
            println!("{name}: {} contents in {steps} steps, {:?}", contents.len(), started.elapsed());
            assert_eq!(walked(&store, &board.main()).await.len(), 15_000);
            assert!((10..=40).contains(&steps), "{steps}");
        }

        let sketches = Definition::new("APPROX_COUNT_DISTINCT(2000m, e, s, c)".parse().unwrap(), "1m".parse().unwrap());
        let sketches = define_as(&store, "sketches", &Definition { ranked: false, ..sketches }).await;
        let one = |nth: i64| seen("a", "x").at_time(now.plus_millis(-60_000 * nth));
        let increments = (0..1_990).map(one).collect();
        store.add(&sketches, Batch { increments, return_scores: false }).await.unwrap();
        assert_eq!(walked(&store, &sketches.main()).await.len(), 1_990);

        let slots = Definition::new("COUNT(2000m, e, s)".parse().unwrap(), "1m".parse().unwrap());
        let slots = define_as(&store, "slots", &Definition { ranked: false, ..slots }).await;
        let one = |nth: i64| item(if nth % 2 == 0 { "a" } else { "b" }, 1).at_time(now.plus_millis(-30_000 * nth));
        let increments = (0..3_900).map(one).collect();
        store.add(&slots, Batch { increments, return_scores: false }).await.unwrap();
        let (contents, steps) = walk(&store, &slots.main()).await;
        assert_eq!(walked(&store, &slots.main()).await.len(), contents.len());
        assert!(contents.len() == 3_900 && (1..=6).contains(&steps), "{} {steps}", contents.len());
    }
}

#[tokio::test]
async fn a_walk_is_lost_within_a_slot_when_the_server_is_restarted() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, &["--appendonly", "yes", "--appendfsync", "always"]);
        let store = simulated(&server).await;
        for (name, definition) in
            [("ranked", definition("COUNT(3h, e, s)")), ("unranked", unranked("COUNT(3h, e, s)", "1h"))]
        {
            let board = define_as(&store, name, &definition).await;
            let increments = (0..5_000).map(|nth| item(&format!("s{nth}"), 1)).collect();
            store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
            let step = store.contents_step(&board.main(), ContentsCursor::default()).await.unwrap();
            server.kill();
            server.restart();
            let mut next = store.contents_step(&board.main(), step.next.clone().unwrap()).await;
            for _ in 0..50 {
                if matches!(&next, Err(error) if error.is_transient()) {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    next = store.contents_step(&board.main(), step.next.clone().unwrap()).await;
                }
            }
            assert!(matches!(next, Err(StoreError::WalkLost)), "{next:?}");
        }
    }
}

#[tokio::test]
async fn subjects_that_move_to_a_later_period_are_returned_once_and_counted_as_upheavals() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        store.set_clock(t("2026-01-01T09:30:00Z")).await.unwrap();
        let board = define_as(&store, "b", &unranked("COUNT(3h, e, s)", "1h")).await;
        for hour in 0..4 {
            add(&store, &board, [item("always", 1), item(&format!("s{hour}"), 1)]).await;
            store.set_clock(store.now().await.unwrap().plus_millis(HOUR)).await.unwrap();
        }
        let texts = walked(&store, &board.main()).await;
        // Four slots are kept: the window and one more.
        assert_eq!(texts.iter().filter(|text| text.contains("always")).count(), 3, "{texts:?}");
        let before = status(&store, &board.main()).await.upheavals;
        store.remove(&board, &subject("s2")).await.unwrap();
        assert_ne!(status(&store, &board.main()).await.upheavals, before);
        let texts = walked(&store, &board.main()).await;
        assert_eq!(texts.len(), 5, "{texts:?}");
        let before = status(&store, &board.main()).await.upheavals;
        store.set_clock(store.now().await.unwrap().plus_millis(2 * HOUR)).await.unwrap();
        roll_over(&store, &board).await;
        assert_ne!(status(&store, &board.main()).await.upheavals, before);
        let texts = walked(&store, &board.main()).await;
        assert_eq!(texts.len(), 2, "{texts:?}");
    }
}

fn one(piece: u64, who: &str, slot: Timestamp, amount: i64) -> Piece {
    let content = Content::Cell { slot, aggregate: Aggregate::Sum(Amount(amount)) };
    Piece { number: piece, contents: vec![(subject(who), content)], events: vec![(slot, 1)] }
}

#[tokio::test]
async fn a_chunk_whose_reply_is_lost_counts_once() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let at = ClockMode::Simulated(t(START));
        let store = RedisStore::connect(options(proxy.url(), at)).await.unwrap();
        let board = hourly(&store, "b").await;
        begin(&store, &board).await;
        let head = t("2026-01-01T00:00:00Z");
        let track = board.main();
        for (nth, fault) in [(1, Fault::Reset), (2, Fault::None), (3, Fault::Reset)] {
            let many = (0..1_000).map(|nth| {
                (subject(&format!("s{nth}")), Content::Cell { slot: head, aggregate: Aggregate::Sum(Amount(1)) })
            });
            let piece = Piece { number: nth, contents: many.collect(), events: Vec::new() };
            proxy.arm_after(5, fault);
            let merged = store.merge(&track, IMPORT, &piece).await.unwrap();
            assert_eq!(merged, Merged { merged: 1_000, ..Merged::default() });
        }
        assert_eq!(proxy.happened(), 2);
        let scores = scores(&store, &board).await;
        assert!(scores.len() == 1_000 && scores.iter().all(|(_, score)| *score == 3));
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

#[tokio::test]
async fn a_piece_that_was_merged_in_part_is_completed() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let proxy = Proxy::start(server.port).await;
    let store = RedisStore::connect(options(proxy.url(), ClockMode::Simulated(t(START)))).await.unwrap();
    let board = hourly(&store, "b").await;
    begin(&store, &board).await;
    let head = t("2026-01-01T00:00:00Z");
    let many = (0..1_000)
        .map(|nth| (subject(&format!("s{nth}")), Content::Cell { slot: head, aggregate: Aggregate::Sum(Amount(1)) }));
    let piece = Piece { number: 5, contents: many.collect(), events: vec![(head, 1_000)] };
    let calls = proxy.so_far();
    let merging = {
        let (store, track, piece) = (store.clone(), board.main(), piece.clone());
        tokio::spawn(async move { store.merge(&track, IMPORT, &piece).await })
    };
    proxy.calls(calls + 4).await;
    merging.abort();
    let _ = merging.await;
    let other = simulated(&server).await;
    assert_eq!(begin(&other, &board).await, [0]);
    let merged = other.merge(&board.main(), IMPORT, &piece).await.unwrap();
    assert_eq!(merged.merged + merged.repeated, 1_000);
    assert!((300..=400).contains(&merged.repeated), "{merged:?}");
    assert_eq!(begin(&other, &board).await, [5]);
    assert!(scores(&other, &board).await.iter().all(|(_, score)| *score == 1));
    assert_eq!(status(&other, &board.main()).await.events, [(head, 1_000)]);
}

#[tokio::test]
async fn a_piece_that_is_not_the_next_one_is_refused() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let board = hourly(&store, "b").await;
    begin(&store, &board).await;
    let head = t("2026-01-01T00:00:00Z");
    store.merge(&board.main(), IMPORT, &one(1, "a", head, 5)).await.unwrap();
    // As if the first part of the second piece had been merged.
    let record = format!("{}:{}:", 2 * 4096, head.millis());
    behind::<()>(&server, &["HSET", "rolltop:1:{b}:meta", &format!("o:import-{IMPORT}:0"), &record]);
    let refused = store.merge(&board.main(), IMPORT, &one(3, "a", head, 5)).await;
    assert!(matches!(refused, Err(StoreError::NoImport { .. })), "{refused:?}");
    let merged = store.merge(&board.main(), IMPORT, &one(2, "a", head, 5)).await.unwrap();
    assert_eq!(merged.merged, 1);
    store.merge(&board.main(), IMPORT, &one(3, "a", head, 5)).await.unwrap();
    assert_eq!(scores(&store, &board).await, [("a".to_owned(), 15)]);
    assert_eq!(begin(&store, &board).await, [3]);
}

#[tokio::test]
async fn counters_are_walked_and_not_imported() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let mode = rolltop::board::Mode::FromFirst;
    let board = define_as(&store, "b", &Definition { mode, ..unranked("SUM(3h, e, v, s)", "1h") }).await;
    add(&store, &board, [item("old", 2)]).await;
    store.set_clock(t(START).plus_millis(2 * HOUR)).await.unwrap();
    add(&store, &board, [item("a", 5), item("a", 6)]).await;
    store.set_clock(t(START).plus_millis(3 * HOUR)).await.unwrap();
    let counter = Content::Counter { start: t(START).plus_millis(2 * HOUR), amount: Amount(11) };
    assert_eq!(walk(&store, &board.main()).await.0, [(subject("a"), counter)]);
    assert!(matches!(store.begin_import(&board, IMPORT).await, Err(StoreError::NoImport { .. })));
    assert!(!store.end_import(&board, IMPORT).await.unwrap());
}

#[tokio::test]
async fn the_record_of_an_import_survives_housekeeping_until_it_has_ended() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let board = hourly(&store, "b").await;
    begin(&store, &board).await;
    let head = t("2026-01-01T00:00:00Z");
    store.merge(&board.main(), IMPORT, &one(3, "a", head, 5)).await.unwrap();
    add(&store, &board, [item("b", 1)]).await;
    store.set_clock(store.now().await.unwrap().plus_millis(20 * 60_000)).await.unwrap();
    roll_over(&store, &board).await;
    let records = || {
        let fields: Vec<String> = behind(&server, &["HKEYS", "rolltop:1:{b}:meta"]);
        fields.into_iter().filter(|field| field.starts_with("o:")).collect::<Vec<_>>()
    };
    assert_eq!(records(), [format!("o:import-{IMPORT}:0")]);
    let merged = store.merge(&board.main(), IMPORT, &one(3, "a", head, 5)).await.unwrap();
    assert_eq!(merged, Merged { repeated: 1, ..Merged::default() });
    // An older piece too.
    let merged = store.merge(&board.main(), IMPORT, &one(2, "a", head, 5)).await.unwrap();
    assert_eq!(merged, Merged { repeated: 1, ..Merged::default() });
    assert!(store.end_import(&board, IMPORT).await.unwrap());
    assert_eq!(records(), Vec::<String>::new());
    assert_eq!(scores(&store, &board).await, [("a".to_owned(), 5), ("b".to_owned(), 1)]);
}

#[tokio::test]
async fn an_import_that_was_opened_or_ended_in_part_can_be_continued() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let json = r#"{"metric":"COUNT(3h, e, s)","slot":"1h","windows":["6h/1h"],"shards":3}"#;
    let board = define_as(&store, "b", &serde_json::from_str(json).unwrap()).await;
    let metas: Vec<String> = keys(&server, "*:meta").into_iter().filter(|key| *key != "rolltop:1:{b}:meta").collect();
    assert_eq!(metas.len(), 6);
    let fields = |field: &str| {
        let of = |meta: &String| behind::<Option<String>>(&server, &["HGET", meta, field]);
        metas.iter().filter_map(of).collect::<Vec<_>>()
    };
    begin(&store, &board).await;
    let id = IMPORT.to_string();
    assert_eq!(fields("import"), vec![id.clone(); 6]);
    // As if the call that opens it had ended halfway.
    behind::<()>(&server, &["HDEL", &metas[1], "import"]);
    assert_eq!(begin(&store, &board).await, [0, 0]);
    assert_eq!(fields("import").len(), 6);
    assert_eq!(store.begin_import(&board, OTHER).await.unwrap(), ImportBegun::OtherOpen(IMPORT));
    // As if the call that ends it had ended halfway.
    behind::<()>(&server, &["HDEL", &metas[5], "import"]);
    behind::<()>(&server, &["HSET", &metas[5], "imports", &id]);
    assert_eq!(store.begin_import(&board, IMPORT).await.unwrap(), ImportBegun::Ended);
    assert_eq!((fields("import"), fields("imports")), (Vec::new(), vec![id; 6]));
    // It is not opened if one part cannot be, and then in no part.
    let ids: Vec<String> = (100..100 + MAX_IMPORTS as u64).map(|id| ImportId(id << 32).to_string()).collect();
    behind::<()>(&server, &["HSET", &metas[3], "imports", &ids.join(",")]);
    assert_eq!(store.begin_import(&board, LAST).await.unwrap(), ImportBegun::TooMany);
    assert_eq!(fields("import"), Vec::<String>::new());
}

#[tokio::test]
async fn boards_that_may_have_samples_take_no_import() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let board = define_as(&store, "b", &Definition { shards: Some(3), ..definition("SUM(3h, e, v, s)") }).await;
    begin(&store, &board).await;
    let set = sample("a", 5, START);
    let added = add(&store, &board, [set.clone(), item("b", 1)]).await;
    assert_eq!(added.outcomes, [Outcome::Rejected(Rejection::ImportOpen), counted(1)]);
    assert!(matches!(store.remove(&board, &subject("b")).await, Err(StoreError::ImportOpen)));
    assert!(store.end_import(&board, IMPORT).await.unwrap());
    assert!(store.remove(&board, &subject("b")).await.is_ok());
    assert!(matches!(store.begin_import(&board, OTHER).await.unwrap(), ImportBegun::Open { .. }));
    assert!(store.end_import(&board, OTHER).await.unwrap());
    let added = add(&store, &board, [set]).await;
    assert_eq!(added.outcomes, [counted(5)]);
    assert_eq!(store.begin_import(&board, LAST).await.unwrap(), ImportBegun::MayHaveSamples);
    let added = add(&store, &board, [sample("a", 6, START)]).await;
    assert_eq!(added.outcomes, [counted(6)]);
    // A board that an earlier version defined has no such field.
    let old = hourly(&store, "old").await;
    behind::<()>(&server, &["HDEL", "rolltop:1:{old}:meta", "samples"]);
    assert_eq!(store.begin_import(&old, IMPORT).await.unwrap(), ImportBegun::MayHaveSamples);
}

#[tokio::test]
#[ignore = "measures"]
async fn the_speed_of_merging_large_sketches() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let from = define(&store, "from", "APPROX_COUNT_DISTINCT(3h, e, s, c)", "1h").await;
    let to = define(&store, "to", "APPROX_COUNT_DISTINCT(3h, e, s, c)", "1h").await;
    for turn in 0..2 {
        let increments = (0..40_000).map(|nth| seen(&format!("s{}", nth % 20), &format!("{turn}c{nth}")));
        let board = if turn == 0 { &from } else { &to };
        store.add(board, Batch { increments: increments.collect(), return_scores: false }).await.unwrap();
    }
    begin(&store, &to).await;
    let pieces = pieces(&store, &from, 1_000).await;
    reset(&server);
    merge_all(&store, &to, &pieces).await;
    let stats: String = behind(&server, &["INFO", "commandstats"]);
    println!("{:?}", stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")));
}

#[tokio::test]
#[ignore = "measures"]
async fn the_speed_of_walks_and_merges() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        store.set_clock(t("2026-01-01T09:30:00Z")).await.unwrap();
        for (nth, definition) in definitions().iter().enumerate().filter(|(_, definition)| definition.keep.is_none()) {
            let what = serde_json::to_string(definition).unwrap();
            let from = define_as(&store, &format!("from-{nth}"), definition).await;
            let to = define_as(&store, &format!("to-{nth}"), definition).await;
            let increments = (0..30_000).map(|nth| match from.kind().counts_values() {
                true => seen(&format!("s{}", nth % 10_000), &format!("c{nth}")),
                false => item(&format!("s{nth}"), nth + 1),
            });
            store.add(&from, Batch { increments: increments.collect(), return_scores: false }).await.unwrap();
            let started = std::time::Instant::now();
            let (contents, steps) = walk(&store, &from.main()).await;
            let walked = started.elapsed();
            begin(&store, &to).await;
            let pieces = pieces(&store, &from, 1_000).await;
            let of_main: Vec<_> = pieces.into_iter().filter(|(track, _)| *track == 0).collect();
            reset(&server);
            let started = std::time::Instant::now();
            merge_all(&store, &to, &of_main).await;
            let merged = started.elapsed();
            let stats: String = behind(&server, &["INFO", "commandstats"]);
            let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or_default().to_owned();
            println!(
                "{} {what}: {} contents, {steps} steps in {walked:?}; merged in {merged:?}; {line}",
                engine.name,
                contents.len()
            );
        }
    }
}
