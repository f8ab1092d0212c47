//! Tests of boards with two editions: what instances do that know a board in another epoch, and partitions that were
//! left behind.

use std::collections::BTreeMap;

use rolltop::board::{EditionsChange, TrackId};

use super::proxy::{Fault, Proxy};
use super::*;

const PAIRS: [(&str, &str); 3] = [
    (r#"{"metric":"COUNT(3h, like, post)","slot":"1h"}"#, r#"{"metric":"COUNT(2h, like, post)","slot":"30m"}"#),
    (
        r#"{"metric":"COUNT(3h, like, post)","slot":"1h","windows":["10m/1m"],"shards":3}"#,
        r#"{"metric":"COUNT(all, like, post)","slot":"1h","keep":"3h","shards":3}"#,
    ),
    (
        r#"{"metric":"COUNT(3h, like, post)","slot":"1h","ranked":false,"shards":2}"#,
        r#"{"metric":"COUNT(2h, like, post)","slot":"1h","windows":["1h/10m","all"],"shards":2}"#,
    ),
];

fn parse(definition: &str) -> Definition {
    serde_json::from_str(definition).unwrap()
}

async fn defined(store: &RedisStore, name: &str, definition: &str) -> Arc<Board> {
    let name = BoardName::parse(name).unwrap();
    match store.define(new_board(&name, &parse(definition))).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?}"),
    }
}

fn attached(board: &Board, definition: &str) -> Board {
    board.attached(parse(definition), TrackId(rand::random())).unwrap()
}

fn exchanged(board: &Board) -> Board {
    board.exchanged(t("2027-01-01T00:00:00Z")).unwrap()
}

async fn changed(store: &RedisStore, from: &Arc<Board>, to: Board) -> Arc<Board> {
    let changed = store.change_editions(from, to.clone()).await.unwrap();
    assert_eq!((changed.epoch(), changed.stored_editions()), (to.epoch(), to.stored_editions()));
    let found = store.board(from.name()).await.unwrap().unwrap();
    assert_eq!((found.definition(), found.stored_editions()), (to.definition(), to.stored_editions()));
    changed
}

/// Returns an item that counts in both editions.
fn both(name: &str, amount: i64) -> Increment {
    Increment { other: Some(Box::new(Change::Amount(Amount(amount)))), ..item(name, amount) }
}

/// Returns the item as an instance sends it that knows the board so.
fn of(known: &Board, item: Increment) -> Increment {
    let other = known.other().map(|_| Box::new(item.change.clone()));
    Increment { other, ..item }
}

/// Returns the values of the subjects in the main track of an edition.
async fn values(store: &RedisStore, board: &Arc<Board>, edition: usize, names: &[&str]) -> Vec<i64> {
    let start = board.editions()[edition].numbers().start;
    let track = board.each_track().nth(start).unwrap();
    let mut values = Vec::new();
    for name in names {
        let standing = store.standing(&track, &subject(name)).await.unwrap();
        values.push(standing.score.map_or(0, |score| score.units()));
    }
    values
}

#[tokio::test]
async fn an_instance_that_knows_the_board_as_it_was_loses_and_doubles_nothing() {
    for (engine, (first, second)) in Engine::available().iter().flat_map(|engine| PAIRS.map(|pair| (engine, pair))) {
        let server = RedisServer::start(engine);
        let (store, old) = (simulated(&server).await, simulated(&server).await);
        let board = defined(&store, "hot", first).await;
        let many = |range: std::ops::Range<i64>| (0..10).flat_map(move |who| range.clone().map(move |_| who));
        let items = |range| many(range).map(|who| item(&format!("s{who}"), 1)).collect::<Vec<_>>();
        let names: Vec<String> = (0..10).map(|who| format!("s{who}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let with_ids =
            |what: &str| names.iter().map(|name| with_id(item(name, 1), &format!("{what}-{name}"))).collect::<Vec<_>>();
        let write = async |items: Vec<Increment>, known: &Arc<Board>, now: &Arc<Board>, fresh: bool| {
            let items: Vec<Increment> = items.into_iter().map(|item| of(known, item)).collect();
            let count = items.len();
            let added = old.add(known, batch(items)).await.unwrap();
            let newer = added.newer.expect("the board has changed");
            assert_eq!(newer.epoch(), now.epoch());
            assert_eq!(added.outcomes.len(), count);
            let counted = added.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Counted { .. })).count();
            assert_eq!(counted, if fresh { count } else { 0 }, "{:?}", added.outcomes);
        };
        old.add(&board, batch(items(0..3))).await.unwrap();
        old.add(&board, batch(with_ids("a"))).await.unwrap();

        // The old instance knows only the first edition: a COUNT says what it is in the other one.
        let two = changed(&store, &board, attached(&board, second)).await;
        write(items(0..2), &board, &two, true).await;
        write(with_ids("a"), &board, &two, false).await;
        write(with_ids("b"), &board, &two, true).await;
        assert_eq!(values(&store, &two, 0, &names).await, [7; 10], "{first}");
        assert_eq!(values(&store, &two, 1, &names).await, [3; 10], "{first}");

        let other = changed(&store, &two, exchanged(&two)).await;
        write(items(0..1), &two, &other, true).await;
        write(items(0..1), &board, &other, true).await;
        write(with_ids("b"), &two, &other, false).await;
        assert_eq!(values(&store, &other, 0, &names).await, [5; 10], "{first}");
        assert_eq!(values(&store, &other, 1, &names).await, [9; 10], "{first}");
        let refused = old.standing(&two.main(), &subject("s1")).await.err();
        assert!(matches!(refused, Some(StoreError::StaleEpoch)), "{refused:?}");

        // Back, and then without the second edition.
        let back = changed(&store, &other, exchanged(&other)).await;
        write(items(0..1), &other, &back, true).await;
        assert_eq!(values(&store, &back, 0, &names).await, [10; 10], "{first}");
        assert_eq!(values(&store, &back, 1, &names).await, [6; 10], "{first}");
        let one = changed(&store, &back, back.detached()).await;
        write(items(0..1), &back, &one, true).await;
        write(with_ids("a"), &two, &one, false).await;
        assert_eq!(values(&store, &one, 0, &names).await, [11; 10], "{first}");
        for track in back.each_track().skip(one.tracks().len()) {
            let refused = old.standing(&track, &subject("s1")).await.err();
            assert!(matches!(refused, Some(StoreError::StaleEpoch)), "{refused:?}");
        }
        while !store.tidy_step().await.unwrap() {}
        assert_eq!(keys(&server, &format!("*{}*", back.editions()[1].id())), [""; 0], "{first}");
        for track in one.each_track().filter(|track| track.is_ranked()) {
            assert_eq!(audit(&store, &track, false).await.1, []);
        }
        assert!(store.undefine(&one).await.unwrap());
        while !store.tidy_step().await.unwrap() {}
        assert_eq!(keys(&server, "*{hot*"), [""; 0], "{first}");
    }
}

#[tokio::test]
async fn the_first_edition_is_removed_without_the_ids_of_items() {
    for (engine, (first, second)) in Engine::available().iter().flat_map(|engine| PAIRS.map(|pair| (engine, pair))) {
        let server = RedisServer::start(engine);
        let store = simulated(&server).await;
        let board = defined(&store, "hot", first).await;
        let two = changed(&store, &board, attached(&board, second)).await;
        let ids = || (0..10).map(|i| with_id(both(&format!("s{i}"), 1), &format!("id-{i}")));
        add(&store, &two, ids()).await;
        let two = changed(&store, &two, exchanged(&two)).await;
        let one = changed(&store, &two, two.detached()).await;
        while !store.tidy_step().await.unwrap() {}
        let left = keys(&server, &format!("*:{}:[irtsuvxe]*", board.generation()));
        assert_eq!(left, [""; 0], "{first}");
        let added = add(&store, &one, ids().map(|increment| Increment { other: None, ..increment })).await;
        assert!(added.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Duplicate { .. })), "{added:?}");
        assert_eq!(values(&store, &one, 0, &["s3"]).await, [1]);
        // A further successor.
        let three = changed(&store, &one, attached(&one, first)).await;
        add(&store, &three, [both("s3", 5)]).await;
        assert_eq!(values(&store, &three, 0, &["s3"]).await, [6]);
        assert_eq!(values(&store, &three, 1, &["s3"]).await, [5]);
        assert!(store.undefine(&three).await.unwrap());
        while !store.tidy_step().await.unwrap() {}
        assert_eq!(keys(&server, "*{hot*"), [""; 0], "{first}");
    }
}

/// Changes the own meta key of a board only, as an instance does that ends before any partition has followed.
fn change_own(server: &RedisServer, to: &Board) {
    let definition = serde_json::to_string(to.definition()).unwrap();
    let meta = format!("rolltop:1:{{{}}}:meta", to.name());
    let (epoch, editions) = (to.epoch().to_string(), to.stored_editions().unwrap());
    let words = ["HSET", &meta, "definition", &definition, "editions", &editions, "epoch", &epoch];
    behind::<i64>(server, &words);
}

#[tokio::test]
async fn partitions_that_were_left_behind_are_brought_forward_by_whoever_finds_them() {
    for (engine, (first, second)) in
        Engine::available().iter().flat_map(|engine| [PAIRS[1], PAIRS[2]].map(|pair| (engine, pair)))
    {
        let server = RedisServer::start(engine);
        let (store, next) = (simulated(&server).await, simulated(&server).await);
        let mut board = defined(&store, "hot", first).await;
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let mut expected: BTreeMap<TrackId, i64> = BTreeMap::from([(board.edition().id(), 0)]);
        for change in ["attach", "exchange", "exchange", "detach", "attach", "exchange", "detach"] {
            let to = match change {
                "attach" => attached(&board, if board.definition() == &parse(first) { second } else { first }),
                "exchange" => exchanged(&board),
                _ => board.detached(),
            };
            assert!(EditionsChange::between(&board, &to).is_some());
            change_own(&server, &to);
            let to = next.board(board.name()).await.unwrap().unwrap();
            // Some partitions are still written to as they are, by an instance that does not know it.
            let added = store.add(&board, batch(names.map(|name| both(name, 1)))).await.unwrap();
            assert!(added.newer.is_none(), "{change}");
            board.editions().iter().for_each(|edition| *expected.entry(edition.id()).or_default() += 1);
            // A write finds one of them behind, then all.
            let added = next.add(&to, batch([both("a", 0)])).await.unwrap();
            assert!(added.newer.is_none() && matches!(added.outcomes[0], Outcome::Counted { .. }), "{added:?}");
            let added = next.add(&to, batch(names.map(|name| both(name, 1)))).await.unwrap();
            assert!(added.newer.is_none(), "{change}");
            let added = store.add(&board, batch(names.map(|name| of(&board, item(name, 1))))).await.unwrap();
            assert!(added.newer.is_some(), "{change}");
            for edition in to.editions() {
                *expected.entry(edition.id()).or_default() += 2;
            }
            for (number, edition) in to.editions().iter().enumerate() {
                let expected = expected[&edition.id()];
                assert_eq!(values(&next, &to, number, &names).await, [expected; 8], "{change} {number}");
            }
            expected.retain(|id, _| to.editions().iter().any(|edition| edition.id() == *id));
            board = to;
        }
    }
}

#[tokio::test]
async fn every_call_brings_partitions_forward() {
    for engine in Engine::available() {
        let (first, second) = PAIRS[1];
        for change in ["attach", "exchange", "detach"] {
            for call in 0..7 {
                let server = RedisServer::start(&engine);
                let store = simulated(&server).await;
                let mut board = defined(&store, "hot", first).await;
                if change != "attach" {
                    board = changed(&store, &board, attached(&board, second)).await;
                }
                add(&store, &board, ["a", "b", "c"].map(|name| both(name, 1))).await;
                let to = match change {
                    "attach" => attached(&board, second),
                    "exchange" => exchanged(&board),
                    _ => board.detached(),
                };
                change_own(&server, &to);
                let to = store.board(board.name()).await.unwrap().unwrap();
                for track in to.each_track() {
                    match call {
                        0 => drop(store.status(&track).await.unwrap()),
                        1 => drop(store.standing(&track, &subject("a")).await.unwrap()),
                        2 if track.is_ranked() => drop(store.page(&track, 0, 10).await.unwrap()),
                        3 => drop(store.count(&track, &subject("a"), SlotRange::Slots(1)).await.unwrap()),
                        4 => drop(store.retire_step(&track).await.unwrap()),
                        5 if track.is_ranked() => drop(audit(&store, &track, true).await),
                        6 => store.tend().await.unwrap(),
                        _ => {}
                    }
                }
                assert!(store.remove(&to, &subject("c")).await.is_ok(), "{change} {call}");
                let epochs: Vec<String> =
                    keys(&server, "*{hot*}*:meta").iter().map(|key| behind(&server, &["HGET", key, "epoch"])).collect();
                assert!(epochs.iter().all(|epoch| *epoch == to.epoch().to_string()), "{change} {call} {epochs:?}");
            }
        }
    }
}

#[tokio::test]
async fn writes_whose_replies_are_lost_while_editions_change_count_once() {
    for (engine, (first, second)) in Engine::available().iter().flat_map(|engine| PAIRS.map(|pair| (engine, pair))) {
        let server = RedisServer::start(engine);
        let proxy = Proxy::start(server.port).await;
        let store = simulated(&server).await;
        let broken = RedisStore::connect(options(proxy.url(), ClockMode::Simulated(t(START)))).await.unwrap();
        let mut board = defined(&store, "hot", first).await;
        let (mut counted, mut by_edition) = (0, BTreeMap::from([(board.edition().id(), (0, 0))]));
        for round in 0..12_usize {
            let to = match (round % 3, board.editions().len()) {
                (0, 1) => attached(&board, if board.definition() == &parse(first) { second } else { first }),
                (1, 2) => exchanged(&board),
                _ => board.detached(),
            };
            proxy.arm(Fault::Reset);
            let writes = async |board: &Arc<Board>| {
                for i in 0..20 {
                    let id = format!("{round}-{i}");
                    let add = of(board, with_id(item("a", 1), &id));
                    let added = broken.add(board, batch([of(board, item("a", 1)), add.clone()])).await.unwrap();
                    assert!(added.outcomes.iter().all(|o| matches!(o, Outcome::Counted { .. })), "{added:?}");
                    let again = broken.add(board, batch([add])).await.unwrap();
                    assert!(matches!(again.outcomes[0], Outcome::Duplicate { .. }), "{again:?}");
                }
            };
            let change = async {
                tokio::task::yield_now().await;
                changed(&store, &board, to).await
            };
            let ((), next) = tokio::join!(writes(&board), change);
            counted += 40;
            let before: Vec<TrackId> = board.editions().iter().map(|edition| edition.id()).collect();
            by_edition.retain(|id, _| next.editions().iter().any(|edition| edition.id() == *id));
            for (number, edition) in next.editions().iter().enumerate() {
                let held = values(&store, &next, number, &["a"]).await[0];
                match before.contains(&edition.id()) {
                    true => {
                        let (low, high) = by_edition[&edition.id()];
                        assert!(held >= low + 40 && held <= high + 40, "{held} of {low} to {high}");
                        by_edition.insert(edition.id(), (held, held));
                        assert_eq!((low, high), (held - 40, held - 40));
                    }
                    false => {
                        assert!((0..=40).contains(&held));
                        by_edition.insert(edition.id(), (held, held));
                    }
                }
            }
            board = next;
        }
        assert_eq!(counted, 480);
    }
}

#[tokio::test]
async fn of_two_changes_that_lead_to_the_same_epoch_one_is_made() {
    for (engine, (first, second)) in Engine::available().iter().flat_map(|engine| PAIRS.map(|pair| (engine, pair))) {
        let server = RedisServer::start(engine);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let board = defined(&one, "hot", first).await;
        let (a, b) = (attached(&board, second), attached(&board, first));
        let (x, y, z) = tokio::join!(
            one.change_editions(&board, a.clone()),
            one.change_editions(&board, b.clone()),
            two.change_editions(&board, a.clone())
        );
        let is_a = x.is_ok();
        assert!(is_a == z.is_ok() && is_a != y.is_ok(), "{x:?} {y:?} {z:?}");
        let wanted = if is_a { a } else { b };
        let made = one.board(board.name()).await.unwrap().unwrap();
        assert_eq!(made.stored_editions(), wanted.stored_editions());
        add(&one, &made, [both("s", 2)]).await;
        assert_eq!([values(&one, &made, 0, &["s"]).await, values(&two, &made, 1, &["s"]).await], [[2], [2]]);
        // A repeat after a lost reply finds it done; a change of what the board was is refused.
        assert!(two.change_editions(&board, wanted).await.is_ok());
        let late = two.change_editions(&board, attached(&board, second)).await.err();
        assert!(matches!(late, Some(StoreError::StaleEpoch)), "{late:?}");
    }
}

#[tokio::test]
async fn editions_are_exchanged_only_while_none_is_held_or_audited() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = defined(&store, "hot", PAIRS[0].0).await;
        let two = changed(&store, &board, attached(&board, PAIRS[0].1)).await;
        let other = format!("rolltop:1:{{hot}}:{}:other", two.editions()[1].id());
        behind::<u64>(&server, &["HSET", &other, "held", "many differences"]);
        let busy = store.change_editions(&two, exchanged(&two)).await.err();
        assert!(matches!(&busy, Some(StoreError::EditionsBusy { detail }) if detail.contains("many")), "{busy:?}");
        behind::<u64>(&server, &["HDEL", &other, "held"]);
        behind::<u64>(&server, &["HSET", &other, "run", "an earlier one"]);
        let busy = store.change_editions(&two, exchanged(&two)).await.err();
        assert!(matches!(busy, Some(StoreError::EditionsBusy { .. })), "{busy:?}");
        store.tend().await.unwrap();
        changed(&store, &two, exchanged(&two)).await;
    }
}

/// Servers that died within a change may have kept a part of it, and earlier builds left tracks behind.
#[tokio::test]
async fn a_track_that_was_left_in_another_epoch_is_brought_to_that_of_its_board() {
    for (engine, (first, second)) in Engine::available().iter().flat_map(|engine| PAIRS.map(|pair| (engine, pair))) {
        let server = RedisServer::start(engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        let board = defined(&store, "hot", first).await;
        let two = changed(&store, &board, attached(&board, second)).await;
        let keys: Vec<String> = behind(&server, &["KEYS", "*"]);
        let coming = two.editions()[1].id().to_string();
        let metas: Vec<&String> = keys.iter().filter(|key| key.ends_with(&format!("{coming}:other"))).collect();
        assert!(!metas.is_empty(), "{keys:?}");
        let leave = |epoch: &str| {
            metas.iter().for_each(|meta| behind(&server, &["HSET", meta, "epoch", epoch]));
        };
        for (nth, epoch) in ["0", "2.7"].into_iter().enumerate() {
            leave(epoch);
            let items = (0..20).map(|who| both(&format!("s{who}"), 1));
            let added = add([&store, &other][nth], &two, items).await;
            assert!(added.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })), "{added:?}");
            leave(epoch);
            let names = ["s0", "s7", "s19"];
            assert_eq!(values(&other, &two, 1, &names).await, [nth as i64 + 1; 3], "{first} {epoch}");
        }
        leave("2.7");
        store.tend().await.unwrap();
        for meta in &metas {
            let epoch: String = behind(&server, &["HGET", meta, "epoch"]);
            assert_eq!(epoch, two.epoch().to_string());
        }
        assert_eq!(store.warnings(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_board_that_refuses_writes_is_reported() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = defined(&store, "hot", PAIRS[0].0).await;
        let two = changed(&store, &board, attached(&board, PAIRS[0].1)).await;
        let other = format!("rolltop:1:{{hot}}:{}:other", two.editions()[1].id());
        behind::<u64>(&server, &["DEL", &other]);
        let refused = store.add(&two, batch([both("s", 1)])).await.err();
        assert!(matches!(refused, Some(StoreError::Corrupt { .. })), "{refused:?}");
        let warnings = store.warnings();
        assert!(matches!(&*warnings, [only] if only.contains("board 'hot' has refused a write")), "{warnings:?}");
    }
}

#[tokio::test]
async fn a_build_that_does_not_know_editions_cannot_read_the_epoch() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = defined(&store, "hot", PAIRS[0].0).await;
        let before: Option<String> = behind(&server, &["HGET", "rolltop:1:{hot}:meta", "epoch"]);
        assert_eq!(before, None);
        changed(&store, &board, attached(&board, PAIRS[0].1)).await;
        let epoch: String = behind(&server, &["HGET", "rolltop:1:{hot}:meta", "epoch"]);
        assert!(epoch.parse::<u64>().is_err(), "earlier builds read a whole number, and refuse anything else: {epoch}");
    }
}

/// Definitions of every form of tracks.
const FORMS: [&str; 12] = [
    r#"{"metric":"COUNT(3h, e, s)","slot":"1h"}"#,
    r#"{"metric":"SUM(2h, e, v, s)","slot":"30m","windows":["1h/10m","all"]}"#,
    r#"{"metric":"SUM(all, e, v, s)","slot":"1h","keep":"3h"}"#,
    r#"{"metric":"SUM(4h, e, v, s)","slot":"1h","ranked":false}"#,
    r#"{"metric":"COUNT(2h, e, s)","mode":"from_first","ranked":false}"#,
    r#"{"metric":"AVG(3h, e, v, s)","slot":"1h"}"#,
    r#"{"metric":"MAX(3h, e, v, s)","slot":"30m","windows":["1h/30m"]}"#,
    r#"{"metric":"LAST(2h, e, v, s)","slot":"1h","ranked":false}"#,
    r#"{"metric":"LAST(all, e, v, s)","slot":"1h","keep":"2h"}"#,
    r#"{"metric":"COUNT_DISTINCT(3h, e, s, u)","slot":"1h"}"#,
    r#"{"metric":"COUNT_DISTINCT(2h, e, s, u)","slot":"1h","ranked":false}"#,
    r#"{"metric":"APPROX_COUNT_DISTINCT(2h, e, s, u)","slot":"1h"}"#,
];

#[tokio::test]
async fn each_of_two_editions_holds_what_a_board_of_its_own_would_hold() {
    use rand::{Rng, SeedableRng};
    let engine = Engine::available().remove(0);
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let seed = std::env::var("ROLLTOP_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("ROLLTOP_TEST_SEED={seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut now = t(START);
    for (a, first) in FORMS.iter().enumerate() {
        for (b, second) in FORMS.iter().enumerate() {
            // All pairs take a minute.
            if random.random_range(0..4) > 0 {
                continue;
            }
            let board = defined(&store, &format!("both-{a}-{b}"), first).await;
            let both = changed(&store, &board, attached(&board, second)).await;
            let alone = [
                defined(&store, &format!("a-{a}-{b}"), first).await,
                defined(&store, &format!("b-{a}-{b}"), second).await,
            ];
            let takes_back = both.editions().iter().all(|edition| edition.takes_retractions());
            for round in 0..6 {
                now = now.plus_millis(random.random_range(0..2_000_000));
                store.set_clock(now).await.unwrap();
                let mut of_both = Vec::new();
                let mut of_each = [Vec::new(), Vec::new()];
                for i in 0..30 {
                    let amount = random.random_range(-3..9);
                    let seen = crate::given::seen("x", &format!("u{}", random.random_range(0..6)));
                    let change = |board: &Board| match board.kind().counts_values() {
                        true => seen.change.clone(),
                        false => Change::Amount(Amount(amount)),
                    };
                    let not = Change::Not(rolltop::board::NotCounted::Filtered);
                    let missed = random.random_range(0..8);
                    let changes = [0, 1].map(|n| if missed == n { not.clone() } else { change(&alone[n]) });
                    let at = random.random_range(0..3) > 0;
                    let increment = Increment {
                        subject: subject(&format!("s{}", random.random_range(0..5))),
                        change: changes[0].clone(),
                        other: Some(Box::new(changes[1].clone())),
                        period: None,
                        event: None,
                        retract: at && takes_back && random.random_range(0..6) == 0,
                        at: at.then(|| now.plus_millis(-random.random_range(0..16_000_000))),
                        id: (random.random_range(0..3) == 0).then(|| EventId::parse(&format!("{round}-{i}")).unwrap()),
                    };
                    for n in [0, 1] {
                        if missed != n {
                            let own = Increment { change: changes[n].clone(), other: None, ..increment.clone() };
                            of_each[n].push(own);
                        }
                    }
                    of_both.push(increment);
                }
                let outcomes = add(&store, &both, of_both.clone()).await.outcomes;
                let mut expected = add(&store, &alone[0], of_each[0].clone()).await.outcomes.into_iter();
                add(&store, &alone[1], of_each[1].clone()).await;
                for (item, outcome) in of_both.iter().zip(outcomes) {
                    match item.change {
                        Change::Not(_) => assert!(matches!(outcome, Outcome::Counted { .. }), "{outcome:?}"),
                        _ => {
                            let alone = expected.next().unwrap();
                            // The batch may be divided otherwise, and then scores contain other writes.
                            let kind = [outcome, alone].map(|outcome| match outcome {
                                Outcome::Counted { .. } => "counted".to_owned(),
                                other => format!("{other:?}"),
                            });
                            assert_eq!(kind[0], kind[1], "{first} {second} {item:?}");
                        }
                    }
                }
                for (number, alone) in alone.iter().enumerate() {
                    let own = both.each_track().filter(|track| track.edition().number() == number);
                    for (one, other) in own.zip(alone.each_track()) {
                        let status = [store.status(&one).await.unwrap(), store.status(&other).await.unwrap()];
                        assert_eq!(status[0].events, status[1].events, "{first} {second} {number}");
                        assert_eq!(status[0].slots, status[1].slots, "{first} {second} {number}");
                        for i in 0..5 {
                            let name = subject(&format!("s{i}"));
                            let held = store.standing(&one, &name).await.unwrap();
                            let expected = store.standing(&other, &name).await.unwrap();
                            let read = |s: &rolltop::store::Standing| (s.score, s.rank, s.slots.clone());
                            assert_eq!(read(&held), read(&expected), "{first} {second} {number} {name}");
                        }
                        if one.is_ranked() {
                            assert_eq!(audit(&store, &one, false).await.1, [], "{first} {second} {number}");
                        }
                    }
                }
            }
            for board in alone.iter().chain([&both]) {
                store.undefine(board).await.unwrap();
            }
        }
    }
}
