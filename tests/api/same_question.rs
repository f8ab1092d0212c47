//! The same question asked in each way that the API has: the answers are equal, on each kind of board.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::site::Site;

const FUNCTIONS: [&str; 8] = [
    "COUNT(@, e, s)",
    "SUM(@, e, v, s)",
    "AVG(@, e, v, s)",
    "MIN(@, e, v, s)",
    "MAX(@, e, v, s)",
    "LAST(@, e, v, s)",
    "COUNT_DISTINCT(@, e, s, w)",
    "APPROX_COUNT_DISTINCT(@, e, s, w)",
];

/// A board, and what can be asked about it.
struct Asked {
    name: String,
    /// The metric with `@` in place of its window.
    function: &'static str,
    is_ranked: bool,
    /// The lengths of its windows, each with the seconds of its slots; the main one first.
    windows: Vec<(&'static str, u64)>,
    /// The seconds for which slots are read, and those of the finest slots; nothing if only whole windows are.
    slots: Option<(u64, u64)>,
    /// The number of slots that a window has in addition.
    additional: u64,
    can_be_weighted: bool,
}

/// Defines boards of each function, ranked and unranked, with each cover: with one window, with several, over all time
/// with kept slots, and those that begin with a first event.
async fn define_all(site: &Site) -> Vec<Asked> {
    let mut all = Vec::new();
    for function in FUNCTIONS {
        let adds_up = ["COUNT(", "SUM", "AVG", "COUNT_D"].iter().any(|begin| function.starts_with(begin));
        for (is_ranked, cover) in [(true, "current"), (true, "full"), (false, "current"), (false, "full")] {
            let shapes = [
                (json!({"slot": "1m"}), vec![("10m", 60)], Some((600, 60))),
                (
                    json!({"slot": "1h", "windows": ["10m/1m", "90m/30m"]}),
                    vec![("6h", 3_600), ("10m", 60), ("90m", 1_800)],
                    Some((21_600, 60)),
                ),
                (json!({"slot": "1m", "keep": "10m"}), vec![("all", 0)], Some((600, 60))),
                (json!({"mode": "from_first"}), vec![("10m", 600)], None),
            ];
            for (nth, (definition, windows, slots)) in shapes.into_iter().enumerate() {
                let is_possible = match nth {
                    1 => is_ranked,
                    2 => !function.starts_with("COUNT_D"),
                    3 => (function.starts_with("COUNT(") || function.starts_with("SUM")) && !is_ranked,
                    _ => true,
                };
                if !is_possible || (nth == 3 && cover == "full") {
                    continue;
                }
                let name = format!("b{}", all.len());
                let mut definition = definition;
                definition["metric"] = function.replace('@', windows[0].0).into();
                definition["ranked"] = is_ranked.into();
                if nth < 3 {
                    definition["cover"] = cover.into();
                }
                let answer = site.client.put(&format!("/v1/boards/{name}"), definition.clone()).await;
                assert_eq!(answer.status, 201, "{definition}: {answer:?}");
                let is_full = nth < 3 && cover == "full";
                let additional = u64::from(is_full);
                let can_be_weighted = is_full && adds_up;
                all.push(Asked { name, function, is_ranked, windows, slots, additional, can_be_weighted });
            }
        }
    }
    all
}

/// Returns value and window of an answer of any kind.
fn told(answer: &Value) -> Value {
    let value = answer.get("value").or(answer.get("score")).unwrap_or_else(|| panic!("no value in {answer}"));
    json!([value, answer["window"]])
}

/// Asks for the newest part of this length, or for the whole of a window of this length, in each way. Returns what each
/// was told.
async fn ask(site: &Site, board: &Asked, who: &str, length: &str, is_window: bool) -> Vec<(String, Value)> {
    let Asked { name, function, is_ranked, .. } = board;
    let path = format!("/v1/boards/{name}/subjects/{who}");
    let (metric, fields) = (function.replace('@', length), json!({"s": who}));
    let mut asked = vec![json!({"metric": metric, "board": name, "fields": fields})];
    let mut paths = Vec::new();
    if length != "all" {
        asked.push(json!({"board": name, "subject": who, "last": length}));
        paths.push(format!("{path}/window?last={length}"));
    }
    if is_window {
        asked.push(json!({"board": name, "subject": who, "window": length}));
        paths.extend([format!("{path}/window?window={length}"), format!("{path}?window={length}")]);
    }
    let mut answers = Vec::new();
    for path in paths {
        let answer = site.client.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answers.push((path, told(&answer.body)));
    }
    let queried = site.client.post("/v1/query", json!({"queries": asked})).await;
    assert_eq!(queried.status, 200, "{queried:?}");
    for (query, answer) in asked.iter().zip(queried.body["answers"].as_array().unwrap()) {
        answers.push((query.to_string(), told(answer)));
    }
    let rule = json!({"rule": format!("{metric} >= 0"), "boards": [name], "fields": fields});
    let evaluated = site.client.post("/v1/evaluate", rule.clone()).await;
    assert_eq!(evaluated.status, 200, "{rule}: {evaluated:?}");
    let side = &evaluated.body["rules"][0]["sides"][0];
    assert_eq!(side["left_value"].as_f64(), side["metrics"][0]["value"].as_f64(), "{evaluated:?}");
    answers.push((rule.to_string(), told(&side["metrics"][0])));
    if is_window && *is_ranked {
        let page = site.client.get(&format!("/v1/boards/{name}/rankings?window={length}")).await.body;
        let line = page["items"].as_array().unwrap().iter().find(|line| line["subject"] == who);
        if let Some(line) = line {
            answers.push(("its line".to_owned(), json!([line["score"], page["window"]])));
        }
    }
    answers
}

#[track_caller]
fn assert_equal(board: &Asked, answers: &[(String, Value)]) {
    let (how, first) = &answers[0];
    for (other, answer) in &answers[1..] {
        assert_eq!(first, answer, "{} with {:?}: {how} and {other}", board.function, board.windows);
    }
}

#[actix_web::test]
async fn the_same_question_has_the_same_answer_in_whatever_way_it_is_asked() {
    let mut random = StdRng::seed_from_u64(crate::drawn::seed());
    let site = Site::new().await;
    let boards = define_all(&site).await;
    // Every window is then covered. Some of what happens leaves the short ones.
    site.client.set_clock("2026-01-03T12:00:00Z").await;
    for minute in 0..19 {
        let second = random.random_range(0..60);
        site.client.set_clock(&format!("2026-01-03T12:{minute:02}:{second:02}Z")).await;
        let events: Vec<Value> = (0..4)
            .map(|_| {
                let fields = json!({"s": format!("s{}", random.random_range(0..2)),
                    "v": random.random_range(-5..100), "w": format!("w{}", random.random_range(0..9))});
                json!({"type": "e", "fields": fields})
            })
            .collect();
        let answer = site.client.post("/v1/events", json!({"events": events})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    for board in &boards {
        let rolled = site.client.post(&format!("/v1/boards/{}/rollover", board.name), json!({})).await;
        assert_eq!(rolled.status, 200, "{rolled:?}");
        for who in ["s0", "s1", "nobody"] {
            for (length, _) in &board.windows {
                assert_equal(board, &ask(&site, board, who, length, true).await);
            }
            let Some((most, finest)) = board.slots else { continue };
            for _ in 0..2 {
                let seconds = random.random_range(1..=most);
                let last = format!("{seconds}s");
                let answers = ask(&site, board, who, &last, false).await;
                assert_equal(board, &answers);
                if let [(_, only)] = &board.windows[..] {
                    assert!([0, finest].contains(only));
                    let slots = seconds.div_ceil(finest) + board.additional;
                    assert_eq!(answers[0].1[1]["slots"], slots, "{last}: {answers:?}");
                    let from = answers[0].1[1]["from"].as_str().unwrap();
                    let path = format!("/v1/boards/{}/subjects/{who}/window?from={from}", board.name);
                    assert_equal(
                        board,
                        &[answers[0].clone(), (path.clone(), told(&site.client.get(&path).await.body))],
                    );
                }
                if board.can_be_weighted {
                    let path = format!("/v1/boards/{}/subjects/{who}/window?last={last}&edge=weighted", board.name);
                    let query = json!({"board": board.name, "subject": who, "last": last, "edge": "weighted"});
                    let [got, queried] = [site.client.get(&path).await, site.client.post("/v1/query", query).await];
                    assert_eq!(told(&got.body), told(&queried.body["answers"][0]), "{path}");
                    assert_eq!(got.body["window"], answers[0].1[1], "an edge weights the same slots: {path}");
                }
            }
        }
    }
}
