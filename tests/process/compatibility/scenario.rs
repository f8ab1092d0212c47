//! Boards of every kind, what is written to them, and what is asked.

use chrono::{DateTime, Duration, SecondsFormat, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::calls::{Call, Recording};
use super::stored::START;

/// Names and definitions of the boards that stay.
pub const BOARDS: [(&str, &str); 27] = [
    ("approx", r#"{"metric": "APPROX_COUNT_DISTINCT(3h, pay, user, card)", "slot": "1h"}"#),
    ("avg", r#"{"metric": "AVG(3h, pay, amount, user)", "slot": "30m", "decimals": 2, "min_samples": 2}"#),
    ("big", r#"{"metric": "COUNT(1h, visit, page)", "slot": "30m"}"#),
    ("count", r#"{"metric": "COUNT(3h, pay, user)", "slot": "1h"}"#),
    ("distinct", r#"{"metric": "COUNT_DISTINCT(3h, pay, user, card)", "slot": "1h", "max_values": 3}"#),
    (
        "distinct-windows",
        r#"{"metric": "COUNT_DISTINCT(1h, pay, user, card)", "slot": "20m", "windows": ["6h/1h", "all"]}"#,
    ),
    (
        "filtered",
        r#"{"metric": "SUM(2h, pay, amount, (prefix(ip, 24), user) WHERE channel = 'app')", "slot": "1h", "decimals": 2}"#,
    ),
    ("first", r#"{"metric": "SUM(1h, pay, amount, user)", "decimals": 2, "ranked": false, "mode": "from_first"}"#),
    ("flat-approx", r#"{"metric": "APPROX_COUNT_DISTINCT(2h, pay, user, card)", "slot": "1h", "ranked": false}"#),
    ("flat-avg", r#"{"metric": "AVG(2h, pay, amount, user)", "slot": "20m", "decimals": 2, "ranked": false}"#),
    (
        "flat-count",
        r#"{"metric": "COUNT(2h, pay, user)", "slot": "20m", "ranked": false, "keep": "5h", "cover": "full"}"#,
    ),
    ("flat-distinct", r#"{"metric": "COUNT_DISTINCT(2h, pay, user, card)", "slot": "1h", "ranked": false}"#),
    ("flat-max", r#"{"metric": "MAX(2h, pay, amount, user)", "slot": "20m", "decimals": 2, "ranked": false}"#),
    ("held", r#"{"metric": "SUM(6h, pay, amount, user)", "slot": "1h", "decimals": 2}"#),
    ("kept", r#"{"metric": "SUM(all, pay, amount, user)", "slot": "1h", "keep": "4h", "decimals": 2}"#),
    (
        "kept-last",
        r#"{"metric": "LAST(all, pay, amount, user)", "slot": "20m", "keep": "2h", "decimals": 2, "ranked": false}"#,
    ),
    ("last", r#"{"metric": "LAST(3h, pay, amount, user)", "slot": "1h", "decimals": 2, "stamp": "end"}"#),
    ("max", r#"{"metric": "MAX(3h, pay, amount, user)", "slot": "20m", "decimals": 2}"#),
    ("max-windows", r#"{"metric": "MAX(all, pay, amount, user)", "decimals": 2, "windows": ["1h/10m"]}"#),
    ("min", r#"{"metric": "MIN(3h, pay, amount, user)", "slot": "20m", "decimals": 2, "order": "asc"}"#),
    (
        "parts",
        r#"{"metric": "SUM(2h, pay, amount, user)", "slot": "20m", "decimals": 2, "shards": 3, "windows": ["1h/10m", "all"]}"#,
    ),
    ("parts-distinct", r#"{"metric": "COUNT_DISTINCT(2h, pay, user, card)", "slot": "1h", "shards": 2}"#),
    ("parts-kept", r#"{"metric": "COUNT(all, pay, user)", "slot": "1h", "keep": "4h", "shards": 2}"#),
    (
        "sum",
        r#"{"metric": "SUM(3h, pay, amount, user)", "slot": "1h", "decimals": 2, "order": "asc", "cover": "full"}"#,
    ),
    ("today", r#"{"metric": "COUNT(1d, pay, user)", "slot": "1d", "timezone": "Europe/Berlin"}"#),
    ("total-avg", r#"{"metric": "AVG(all, pay, amount, user)", "decimals": 2}"#),
    (
        "windows",
        r#"{"metric": "COUNT(2h, pay, user)", "slot": "20m", "timezone": "Europe/Berlin", "dedupe": "3h",
            "windows": ["30m/10m", "2d/6h", "all"]}"#,
    ),
];

/// Names and definitions of the boards that are removed.
pub const REMOVED: [(&str, &str); 4] = [
    ("gone", r#"{"metric": "COUNT(3h, pay, user)", "slot": "1h"}"#),
    ("gone-flat", r#"{"metric": "COUNT_DISTINCT(3h, pay, user, card)", "slot": "1h", "ranked": false}"#),
    ("gone-parts", r#"{"metric": "COUNT(3h, pay, user)", "slot": "1h", "shards": 3, "windows": ["1h/20m", "all"]}"#),
    ("gone-windows", r#"{"metric": "COUNT(all, pay, user)", "windows": ["1h/20m"]}"#),
];

/// The definition of a board that is not entirely created.
pub const UNBORN: &str = r#"{"metric": "COUNT(3h, pay, user)", "slot": "1h", "shards": 2, "windows": ["all"]}"#;

pub const SUBJECTS: [&str; 10] = ["ann", "bob", "cem", "dora", "eva", "Größe", "{a}", "a b", "x/y", "日本"];

/// The subjects of the board `big`. They do not fit in one step of retiring.
const CROWD: usize = 1_500;

pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("a definition")
}

/// Returns calls that define the boards.
pub fn definitions() -> Vec<Call> {
    let define = |(name, text): &(&str, &str)| put(&format!("/v1/boards/{name}"), parsed(text));
    BOARDS.iter().chain(&REMOVED).map(define).collect()
}

/// Returns the time this many minutes after the start.
pub fn after(minutes: i64) -> DateTime<Utc> {
    START.parse::<DateTime<Utc>>().expect("a time") + Duration::minutes(minutes)
}

pub fn text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn put(path: &str, body: Value) -> Call {
    Call::Json("PUT".to_owned(), path.to_owned(), Some(body))
}

fn post(path: &str, body: Value) -> Call {
    Call::Json("POST".to_owned(), path.to_owned(), Some(body))
}

fn post_nothing(path: &str) -> Call {
    Call::Json("POST".to_owned(), path.to_owned(), None)
}

/// Returns the call that sets the clock to this many minutes after the start.
pub fn clock(minutes: i64) -> Call {
    put("/v1/clock", json!({"now": text(after(minutes))}))
}

fn amount(units: u32) -> f64 {
    f64::from(units) * 0.25 - 2.0
}

/// Draws events with ids that begin with a name. Some are late, some are retractions.
pub fn events(rng: &mut StdRng, now: DateTime<Utc>, name: &str) -> Vec<Value> {
    let mut pick = |most: u32| rng.random_range(0..most);
    let mut events = Vec::new();
    for nth in 0..40 {
        let mut fields = json!({
            "user": SUBJECTS[pick(SUBJECTS.len() as u32) as usize], "amount": amount(pick(80)),
            "card": format!("card-{}", pick(9)), "ip": format!("10.0.{}.7", pick(3)),
        });
        if pick(2) == 0 {
            fields["channel"] = json!("app");
        }
        let mut event = json!({"type": "pay", "fields": fields, "id": format!("{name}-{nth}")});
        if pick(2) == 0 {
            event["at"] = json!(text(now - Duration::seconds(i64::from(pick(9_000)))));
            if pick(5) == 0 {
                event["retract"] = json!(true);
            }
        }
        events.push(event);
    }
    events
}

/// Returns the writes that are made this many minutes after the start: events, increments, lines and samples. Some are
/// late, some are retractions, and all except samples have ids. They can be made again.
pub fn writes(minutes: i64) -> Vec<Call> {
    let mut rng = StdRng::seed_from_u64(minutes as u64);
    let now = after(minutes);
    let events = events(&mut rng, now, &format!("pay-{minutes}"));
    let mut pick = |most: u32| rng.random_range(0..most);
    let increments = ["ann", "bob", "ann"].map(|who| {
        let at = text(now - Duration::minutes(i64::from(pick(100))));
        json!({"subject": who, "amount": amount(pick(40)), "at": at, "id": format!("one-{minutes}-{}", pick(2))})
    });
    let lines =
        (0..30).map(|nth| format!("{}\n", json!({"subject": format!("s-{}", nth % 17), "id": format!("{nth}")})));
    let slot = text(now - Duration::minutes(30));
    vec![
        post("/v1/events?return=score", json!({"events": events})),
        post("/v1/boards/sum/increments?return=score", json!({"increments": increments})),
        Call::Lines("windows".to_owned(), lines.collect()),
        put("/v1/boards/sum/samples?return=score", json!({"subject": "cem", "amount": amount(pick(80)), "at": slot})),
        put("/v1/boards/avg/samples", json!({"subject": "cem", "sum": 7.5, "count": 1 + pick(4), "at": slot})),
        put("/v1/boards/max/samples", json!({"subject": "eva", "value": amount(pick(80)), "at": slot})),
        put("/v1/boards/last/samples", json!({"subject": "eva", "value": amount(pick(80)), "at": slot})),
        put("/v1/boards/kept/samples", json!({"subject": "x/y", "amount": amount(pick(80)), "at": slot})),
    ]
}

/// Returns writes with this many ids.
pub fn ids(count: usize) -> Call {
    let line = |nth| format!("{}\n", json!({"subject": "ann", "amount": 0.25, "id": format!("many-{nth}")}));
    Call::Lines("held".to_owned(), (0..count).map(line).collect())
}

/// Returns writes of many subjects in the oldest slot of the board `big`, and of some in the newest.
pub fn crowd(minutes: i64) -> Vec<Call> {
    let old = text(after(minutes) - Duration::minutes(30));
    let line = |nth: usize, at: &str| format!("{}\n", json!({"subject": format!("p-{nth}"), "at": at}));
    let lines = (0..CROWD).map(|nth| line(nth, &old)).chain((0..30).map(|nth| line(nth * 7, &text(after(minutes)))));
    vec![Call::Lines("big".to_owned(), lines.collect())]
}

/// The minutes at which data is written, before the first restart by another build. After the last of them every slot
/// of an hour, half an hour or twenty minutes ends.
pub const WRITTEN: [i64; 8] = [0, 40, 80, 120, 160, 200, 240, 268];
/// The minute at which slots have ended.
pub const ENDED: i64 = 270;

/// Continues with stored data, and asks everything in between.
pub async fn go_on(recording: &mut Recording) {
    let last = *WRITTEN.last().expect("a time");
    recording.make(Call::Settle).await;
    ask(recording).await;
    // What was sent is sent again.
    make(recording, writes(last)).await;
    make(recording, [ids(20)]).await;
    make(recording, [Call::Restart, clock(290), Call::Settle]).await;
    make(recording, writes(290)).await;
    make(recording, [Call::Restart, Call::Settle]).await;
    make(recording, writes(290)).await;
    make(recording, writes(last)).await;
    // In between the clocks of Berlin change.
    make(recording, [clock(395), Call::Settle]).await;
    ask(recording).await;
    make(recording, writes(395)).await;
    for (board, body) in [
        ("sum", json!({"amount": 12.25})),
        ("parts", json!({"amount": 3, "at": text(after(320))})),
        ("max-windows", json!({"value": 1.5, "at": text(after(200))})),
        ("kept-last", json!({"value": 4.25})),
        ("kept", json!({"amount": 0.25})),
    ] {
        make(recording, [put(&format!("/v1/boards/{board}/subjects/ann"), body)]).await;
    }
    let delete = |path: String| Call::Json("DELETE".to_owned(), path, None);
    for board in ["windows", "parts", "kept", "approx", "distinct", "flat-distinct", "min", "first"] {
        make(recording, [delete(format!("/v1/boards/{board}/subjects/bob"))]).await;
    }
    // One is removed, two are defined again, one cannot be.
    for board in ["count", "kept", "parts-kept"] {
        make(recording, [delete(format!("/v1/boards/{board}"))]).await;
    }
    make(
        recording,
        [
            put("/v1/boards/kept", json!({"metric": "SUM(2h, pay, amount, user)", "slot": "20m", "decimals": 2})),
            put(
                "/v1/boards/parts-kept",
                json!({"metric": "COUNT(2h, pay, user)", "slot": "1h", "shards": 3, "windows": ["all"]}),
            ),
            put("/v1/boards/sum", json!({"metric": "SUM(3h, pay, amount, user)", "slot": "1h"})),
        ],
    )
    .await;
    make(recording, [put("/v1/boards/sum", parsed(definition("sum")))]).await;
    make(recording, [Call::Restart, clock(420), Call::Settle]).await;
    make(recording, writes(420)).await;
    make(recording, [clock(440), Call::Settle]).await;
    ask(recording).await;
    make(recording, [Call::State]).await;
    make(recording, [Call::Restart, clock(440 + 3 * 24 * 60), Call::Settle]).await;
    ask(recording).await;
    make(recording, writes(440 + 3 * 24 * 60)).await;
    audit(recording, "").await;
    make(recording, [Call::Settle, Call::State]).await;
}

pub fn definition(board: &str) -> &'static str {
    BOARDS.iter().find(|(name, _)| *name == board).expect("a board").1
}

pub async fn make(recording: &mut Recording, calls: impl IntoIterator<Item = Call>) {
    for call in calls {
        recording.make(call).await;
    }
}

async fn names(recording: &mut Recording) -> Vec<(String, Vec<String>)> {
    let listed = recording.get("/v1/boards").await;
    let windows = |board: &Value| {
        let further = board["windows"].as_array().into_iter().flatten();
        further.map(|window| window.as_str().unwrap().split('/').next().unwrap().to_owned()).collect()
    };
    let boards = listed["items"].as_array().expect("boards").iter();
    boards.map(|board| (board["board"].as_str().unwrap().to_owned(), windows(board))).collect()
}

/// Compares the scores of all boards with their slots. Only the board `held` may differ, until it is repaired.
async fn audit(recording: &mut Recording, but: &str) {
    for (board, _) in names(recording).await {
        let audit = recording.make(post_nothing(&format!("/v1/boards/{board}/audit"))).await;
        assert!(audit["differences"] == 0 || board == but, "{board}: {audit}");
        if audit["differences"] != 0 {
            let repaired = recording.make(post_nothing(&format!("/v1/boards/{board}/audit?repair=true"))).await;
            assert_eq!(repaired["repaired"], audit["differences"], "{board}: {repaired}");
        }
    }
}

/// Asks all that can be asked. An answer may be an error, such as that of an unranked board about its ranking.
async fn ask(recording: &mut Recording) {
    let boards = names(recording).await;
    for (board, further) in &boards {
        let board = format!("/v1/boards/{board}");
        recording.get(&board).await;
        let limit = if recording.created.contains(&board) { 1_000 } else { 4 };
        let of_window = |window: &String| format!("window={window}");
        for window in std::iter::once(String::new()).chain(further.iter().map(of_window)) {
            let rankings = format!("{board}/rankings?limit={limit}");
            let mut page = recording.get(format!("{rankings}&{window}").trim_end_matches('&')).await;
            for _ in 0..2 {
                let Some(next) = page["next"].as_str().map(str::to_owned) else { break };
                page = recording.get(&format!("{rankings}&cursor={next}")).await;
            }
            if let Some(back) = page["prev"].as_str().map(str::to_owned) {
                recording.get(&format!("{rankings}&cursor={back}")).await;
            }
            let query = if window.is_empty() { String::new() } else { format!("?{window}") };
            let subjects = json!({"subjects": ["ann", "日本", "s-3", "nobody", "p-7"]});
            recording.json("POST", &format!("{board}/rankings/lookup{query}"), subjects).await;
            for who in ["ann", "Größe"] {
                let who = utf8_percent_encode(who, NON_ALPHANUMERIC);
                recording.get(&format!("{board}/subjects/{who}{query}")).await;
                recording.get(&format!("{board}/subjects/{who}/neighbors?radius=2&{window}")).await;
                recording.get(&format!("{board}/subjects/{who}/window?{window}")).await;
            }
        }
        recording.make(Call::Export(format!("{board}/rankings"), "application/x-ndjson".to_owned())).await;
        recording.make(Call::Export(format!("{board}/rankings?limit=7"), "text/csv".to_owned())).await;
        let who = format!("{board}/subjects/x%2Fy");
        for query in [
            "last=20m",
            "last=2h",
            "last=1h&edge=weighted",
            "from=2026-03-28T22:10:00Z",
            "last=1h&as_of=2026-03-28T22:30:00Z",
        ] {
            recording.get(&format!("{who}/window?{query}")).await;
        }
        let values = recording.get(&format!("{who}/values?limit={}", limit / 2)).await;
        if let Some(next) = values["next"].as_str() {
            recording.get(&format!("{who}/values?cursor={next}")).await;
        }
    }
    let one = |(board, _): &(String, Vec<String>)| json!({"board": board, "subject": "{a}"});
    let queries: Vec<Value> = boards.iter().map(one).collect();
    recording.json("POST", "/v1/query", json!({ "queries": queries })).await;
    let rule =
        "COUNT(1h, pay, user) > 2 AND SUM(all, pay, amount, user) >= 1 OR COUNT_DISTINCT(1h, pay, user, card) > 1";
    recording.json("POST", "/v1/evaluate", json!({"rule": rule, "fields": {"user": "dora"}})).await;
    audit(recording, "held").await;
}
