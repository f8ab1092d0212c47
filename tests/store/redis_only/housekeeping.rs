//! Tests that data that is no longer needed is deleted in steps by the store, and never by the server's expiry.

use rolltop::board::Mode;
use rolltop::service::{Scheduler, Service};

use super::*;
use crate::given::{With, new_board, seen, unranked};
use crate::waiting::Wait;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

async fn define_as(store: &RedisStore, name: &str, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?} instead of a new board"),
    }
}

async fn pass(store: &RedisStore, millis: i64) {
    store.set_clock(store.now().await.unwrap().plus_millis(millis)).await.unwrap();
}

fn expiring(server: &RedisServer) -> Vec<String> {
    let has_ttl = |key: &String| behind::<i64>(server, &["PTTL", key]) != -1;
    keys(server, "*").into_iter().filter(has_ttl).filter(|key| !key.ends_with(":check")).collect()
}

/// Returns boards with every form of per-subject data: slices, counters, values unranked and ranked.
async fn all_ways(store: &RedisStore) -> Vec<Arc<Board>> {
    let counter = Definition { mode: Mode::FromFirst, ..unranked("SUM(3h, e, v, s)", "1h") };
    vec![
        define_as(store, "slices", &unranked("SUM(3h, e, v, s)", "1h")).await,
        define_as(store, "counter", &counter).await,
        define_as(store, "values", &unranked("COUNT_DISTINCT(3h, e, s, c)", "1h")).await,
        define(store, "ranked", "COUNT_DISTINCT(3h, e, s, c)", "1h").await,
        define_as(store, "sketches", &unranked("APPROX_COUNT_DISTINCT(3h, e, s, c)", "1h")).await,
    ]
}

async fn write_to(store: &RedisStore, boards: &[Arc<Board>], who: &str) {
    let now = store.now().await.unwrap();
    for board in boards {
        match board.name().as_str() {
            "slices" | "counter" => drop(add(store, board, [with_id(item(who, 1), who)]).await),
            "sketches" => drop(add(store, board, [seen(who, "x")]).await),
            _ => drop(add(store, board, [seen(who, "x"), seen(who, "y").at_time(now).undone()]).await),
        }
    }
}

#[tokio::test]
async fn no_key_has_a_time_to_live() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let boards = all_ways(&store).await;
        write_to(&store, &boards, "a").await;
        let hot = hourly(&store, "hot").await;
        add(&store, &hot, [with_id(item("a", 1), "x")]).await;
        store.check().await.unwrap();
        assert_eq!(expiring(&server), Vec::<String>::new());
        // As written by a version that left expiry to the server.
        for key in keys(&server, "*:[uvx]:a") {
            behind::<()>(&server, &["PEXPIRE", &key, "10000000"]);
        }
        for key in keys(&server, "*:e:*") {
            behind::<()>(&server, &["DEL", &key]);
        }
        assert!(expiring(&server).len() >= 6);
        for board in &boards[..2] {
            add(&store, board, [item("a", 1)]).await;
        }
        write_to(&store, &boards[2..4], "a").await;
        add(&store, &boards[4], [seen("a", "y")]).await;
        assert_eq!(expiring(&server), Vec::<String>::new());
    }
}

#[tokio::test]
async fn keys_of_idle_subjects_are_deleted() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let boards = all_ways(&store).await;
        write_to(&store, &boards, "idle").await;
        for _ in 0..12 {
            pass(&store, HOUR).await;
            write_to(&store, &boards, "busy").await;
            for board in &boards {
                roll_over(&store, board).await;
            }
        }
        assert_eq!(keys(&server, "*:[uvx]:idle"), Vec::<String>::new());
        // A slice, a counter, sketches, and two sets of values, each with a tombstone.
        assert_eq!(keys(&server, "*:[uvx]:busy").len(), 7);
        for key in keys(&server, "*:e:*") {
            let members: Vec<String> = behind(&server, &["SMEMBERS", &key]);
            assert_eq!(members, ["busy"], "{key}");
        }
        assert!(keys(&server, "*:e:*").len() <= 5 * 7, "{:?}", keys(&server, "*:e:*"));
        for board in &boards {
            assert!(store.standing(&board.main(), &subject("busy")).await.unwrap().score.is_some());
        }
        pass(&store, 100 * DAY).await;
        for board in &boards {
            roll_over(&store, board).await;
        }
        assert_eq!(keys(&server, "*:[uvxe]:*"), Vec::<String>::new());
        assert_eq!(keys(&server, "*:e"), Vec::<String>::new());
    }
}

/// Over all time no expiry period ends. So the names of subjects without data are forgotten with the data.
#[tokio::test]
async fn names_of_subjects_without_data_are_forgotten_over_all_time() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let all = |metric: &str| Definition { ranked: false, ..Definition::without_slots(metric.parse().unwrap()) };
        let likes = define_as(&store, "likes", &all("COUNT(all, like, post)")).await;
        let best = define_as(&store, "best", &all("MAX(all, game, score, player)")).await;
        for board in [&likes, &best] {
            add(&store, board, [item("kept", 1), item("removed", 1), item("undone", 1)]).await;
            store.remove(board, &subject("removed")).await.unwrap();
        }
        add(&store, &likes, [item("undone", -1)]).await;
        store.remove(&best, &subject("undone")).await.unwrap();
        assert_eq!(keys(&server, "*:u:*").len(), 2);
        for key in keys(&server, "*:e:*") {
            let members: Vec<String> = behind(&server, &["SMEMBERS", &key]);
            assert_eq!(members, ["kept"], "{key}");
        }
        assert_eq!(keys(&server, "*:e:*").len(), 2);
    }
}

/// Tombstones over all time are deleted after a day, even those of subjects that are no longer written to. Values stay.
#[tokio::test]
async fn tombstones_of_idle_subjects_are_deleted_over_all_time() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let visitors = Definition {
            max_values: Some(1),
            ..Definition::without_slots("COUNT_DISTINCT(all, visit, page, user)".parse().unwrap())
        };
        let board = define_as(&store, "visitors", &visitors).await;
        let now = store.now().await.unwrap();
        add(&store, &board, [seen("idle", "x"), seen("idle", "c"), seen("idle", "z").at_time(now).undone()]).await;
        add(&store, &board, [seen("empty", "z").at_time(now).undone()]).await;
        assert_eq!(keys(&server, "*:x:*").len(), 2);
        for _ in 0..10 {
            pass(&store, 6 * HOUR).await;
            roll_over(&store, &board).await;
        }
        // What is left of the idle subject's companion says that a value was dropped.
        let companions = keys(&server, "*:x:*");
        assert_eq!(companions.len(), 1, "{companions:?}");
        let members: Vec<String> = behind(&server, &["ZRANGE", &companions[0], "0", "-1"]);
        assert_eq!(members, ["c"]);
        let standing = store.standing(&board.main(), &subject("idle")).await.unwrap();
        assert!(standing.capped);
        assert_eq!(store.values(&board.main(), &subject("idle"), 0, 10).await.unwrap().total, 1);
        for key in keys(&server, "*:e:*") {
            let members: Vec<String> = behind(&server, &["SMEMBERS", &key]);
            assert_eq!(members, ["idle"], "{key}");
        }
    }
}

/// Tests that steps are bounded by subjects and by cells, and that a set of values is deleted without blocking the
/// server.
#[tokio::test]
async fn expiry_of_subjects_is_done_in_bounded_steps() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let slices = define_as(&store, "slices", &unranked("SUM(600m, e, v, s)", "1m")).await;
        let name = |i: i64| format!("s{i}");
        let now = store.now().await.unwrap();
        for i in 0..60 {
            let all = (0..500).map(|back| item(&name(i), 1).at_time(now.plus_millis(-60_000 * back)));
            store.add(&slices, Batch { increments: all.collect(), return_scores: false }).await.unwrap();
        }
        for chunk in 0..3 {
            let all = (0..500).map(|i| item(&format!("t{chunk}-{i}"), 1));
            store.add(&slices, Batch { increments: all.collect(), return_scores: false }).await.unwrap();
        }
        pass(&store, 40 * HOUR).await;
        let (mut steps, mut left) = (0, keys(&server, "*:u:*").len());
        assert_eq!(left, 1_560);
        loop {
            reset(&server);
            let step = store.retire_step(&slices.main()).await.unwrap();
            let now_left = keys(&server, "*:u:*").len();
            assert!(left - now_left <= 200, "{} subjects in one step", left - now_left);
            (steps, left) = (steps + 1, now_left);
            let stats: String = behind(&server, &["INFO", "commandstats"]);
            assert!(!stats.contains("cmdstat_del:"), "{stats}");
            if step.done {
                break;
            }
        }
        assert_eq!(left, 0);
        assert!((9..60).contains(&steps), "{steps} steps");
    }
}

/// Tests 24 days of a board whose slot is a week, and of one whose slot is a day, with the work of the scheduler.
#[tokio::test]
async fn expired_ids_are_deleted_between_slot_ends() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let weekly = define(&store, "weekly", "COUNT(4w, like, post)", "1w").await;
        let monthly = define_as(&store, "monthly", &unranked("COUNT(2mo, like, post)", "1mo")).await;
        let service = Service::new(store.clone());
        let (mut most, mut bytes) = (0, 0);
        for half_day in 0..48 {
            for board in [&weekly, &monthly] {
                let id = |i: i64| with_id(item("a", 1), &format!("{half_day}-{i}"));
                add(&store, board, (0..100).map(id)).await;
            }
            pass(&store, DAY / 2).await;
            service.roll_over_due().await.unwrap();
            let buckets = keys(&server, "*:d:*");
            most = most.max(buckets.len());
            bytes = bytes.max(buckets.iter().map(|key| behind::<u64>(&server, &["MEMORY", "USAGE", key])).sum());
        }
        assert!(most <= 2 * 4, "{most} buckets of two boards");
        assert!(bytes <= 2 * 4 * 100 * 100, "{bytes} bytes of ids");
    }
}

/// Tests the state after an upgrade: there are many buckets, and the real scheduler finds them although no slot ends.
#[tokio::test]
async fn the_scheduler_deletes_expired_ids_between_slot_ends() {
    let engine = Engine::available().remove(0);
    let server = RedisServer::start(&engine);
    let store = simulated(&server).await;
    let board = define(&store, "yearly", "COUNT(12mo, like, post)", "1mo").await;
    let service = Service::new(store.clone());
    let scheduler = Scheduler::start(service.clone()).await.unwrap();
    for round in 0..2 {
        for i in 0..10 {
            add(&store, &board, [with_id(item("a", 1), &format!("{round}-{i}"))]).await;
            store.set_clock(store.now().await.unwrap().plus_millis(DAY / 2)).await.unwrap();
        }
        let wait = Wait::begin("the keys of expired ids to be deleted");
        while keys(&server, "*:d:*").len() > 4 {
            wait.rest(keys(&server, "*:d:*")).await;
        }
    }
    scheduler.stop().await;
}

#[tokio::test]
async fn an_idle_board_costs_few_commands() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        for i in 0..20 {
            define_as(&store, &format!("b{i}"), &unranked("SUM(3h, e, v, s)", "1h")).await;
        }
        let service = Service::new(store.clone());
        service.roll_over_due().await.unwrap();
        // A minute in which no slot ends.
        reset(&server);
        for _ in 0..60 {
            pass(&store, 1_000).await;
            service.roll_over_due().await.unwrap();
        }
        // In addition, a script moved the clock each second.
        let looks = calls_of(&server, "evalsha") - 60;
        assert!((20..=40).contains(&looks), "{looks} looks at 20 boards in a minute");
    }
}

#[tokio::test]
async fn keys_of_a_removed_board_are_deleted_after_an_interruption() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        for round in 0..2 {
            let boards = all_ways(&store).await;
            for chunk in 0..10 {
                let all = (0..500).map(|i| item(&format!("s{chunk}-{i}"), 1));
                store.add(&boards[0], Batch { increments: all.collect(), return_scores: false }).await.unwrap();
            }
            write_to(&store, &boards, "a").await;
            for board in &boards {
                match round {
                    0 => assert!(store.undefine(board).await.unwrap()),
                    _ => {
                        // The state after an instance ended right after the removal itself.
                        let noted = format!("{}:{}", board.generation(), board.name());
                        behind::<()>(&server, &["SADD", "rolltop:1:removed", &noted]);
                        let again = format!("{}:{}", board.generation(), "nothing");
                        behind::<()>(&server, &["SADD", "rolltop:1:removed", &again]);
                        behind::<()>(&server, &["DEL", &format!("rolltop:1:{{{}}}:meta", board.name())]);
                    }
                }
            }
            let mut steps = 0;
            while !other.tidy_step().await.unwrap() {
                steps += 1;
            }
            assert!(steps > 5, "large boards are not deleted at once: {steps}");
            let left = keys(&server, "*");
            let expected = ["rolltop:1:boards", "rolltop:1:clock", "rolltop:1:{rolltop:1:boards}:version"];
            assert!(left.iter().all(|key| expected.contains(&key.as_str())), "{left:?}");
        }
    }
}

/// Tests that a name that is defined again does not keep the keys of the old board, and that the deletion of these keys
/// does not affect the new board.
#[tokio::test]
async fn a_redefined_board_survives_the_deletion_of_the_old_keys() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let boards = all_ways(&store).await;
        write_to(&store, &boards, "a").await;
        for board in &boards {
            assert!(store.undefine(board).await.unwrap());
        }
        let boards = all_ways(&store).await;
        write_to(&store, &boards, "b").await;
        // Recorded for removal, but not removed.
        let noted = format!("{}:{}", boards[0].generation(), boards[0].name());
        behind::<()>(&server, &["SADD", "rolltop:1:removed", &noted]);
        while !store.tidy_step().await.unwrap() {}
        assert_eq!(keys(&server, "*:[uvx]:a"), Vec::<String>::new());
        assert_eq!(keys(&server, "*:[uvx]:b").len(), 7);
    }
}

#[tokio::test]
async fn records_of_writes_are_deleted_after_five_minutes() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        let board = hourly(&store, "hot").await;
        let records = || {
            let fields: Vec<String> = behind(&server, &["HKEYS", "rolltop:1:{hot}:meta"]);
            fields.iter().filter(|field| field.starts_with("o:")).count()
        };
        add(&store, &board, [item("a", 1)]).await;
        pass(&store, 200_000).await;
        add(&other, &board, [item("a", 1)]).await;
        roll_over(&store, &board).await;
        assert_eq!(records(), 2);
        pass(&store, 200_000).await;
        roll_over(&store, &board).await;
        assert_eq!(records(), 1);
    }
}
