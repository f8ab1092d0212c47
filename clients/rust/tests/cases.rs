//! The table of cases that all clients run: `clients/cases.json`.

mod support;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rolltop_client::{Decimal, Event, Increment, Result, Sender, Service};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use support::network::message;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(30);

type Requests = Arc<Mutex<Vec<Vec<Box<RawValue>>>>>;
type Told = Arc<Mutex<Vec<(String, String)>>>;

fn cases(kind: &str) -> Vec<Value> {
    let table: Value = serde_json::from_str(include_str!("../../cases.json")).unwrap();
    table[kind].as_array().unwrap().clone()
}

/// Returns an answer of the table.
fn answer(script: &Value, items: usize) -> String {
    let rejected = script["rejected"].as_array().into_iter().flatten();
    let rejected: Vec<Value> =
        rejected.map(|one| json!({"index": one["index"], "code": one["code"], "detail": ""})).collect();
    let receipt = json!({"accepted": items - rejected.len(), "duplicates": 0, "rejected": rejected});
    let http = |status: u64, more: &str, kind: &str, body: &str| {
        let head = format!("HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}");
        format!("{head}content-length: {}\r\n\r\n{body}", body.len())
    };
    let whole = http(200, "", "application/json", &receipt.to_string());
    match script.as_str() {
        Some("break") => return String::new(),
        Some("cut") => return whole[..whole.len() - 5].to_owned(),
        _ => {}
    }
    let status = script["status"].as_u64().unwrap();
    if script["page"] == true {
        return http(status, "", "text/html", "<html>");
    }
    if status == 200 {
        return if script["body"].is_object() {
            http(200, "", "application/json", &script["body"].to_string())
        } else {
            whole
        };
    }
    let wait = script["retry_after"].as_u64().map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
    let problem = json!({"status": status, "code": script["code"], "title": script["code"], "detail": "a test"});
    http(status, &wait, "application/json", &problem.to_string())
}

/// Gives these answers in turn. Returns the service, and the items of each request.
async fn answering(scripts: Vec<Value>) -> (Service, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = Service::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let requests = Requests::default();
    let seen = requests.clone();
    tokio::spawn(async move {
        let one_too_many = json!({"status": 500, "code": "one_too_many"});
        for number in 0.. {
            let (mut client, _) = listener.accept().await.unwrap();
            let Some(request) = message(&mut client).await else { continue };
            let request = String::from_utf8(request).unwrap();
            let body = request.split_once("\r\n\r\n").unwrap().1;
            let body: BTreeMap<&str, Vec<Box<RawValue>>> = serde_json::from_str(body).unwrap();
            let items = body.into_values().next().unwrap();
            let text = answer(scripts.get(number).unwrap_or(&one_too_many), items.len());
            seen.lock().unwrap().push(items);
            client.write_all(text.as_bytes()).await.unwrap();
        }
    });
    (service, requests)
}

/// Returns an increment with these arguments, as a program makes it.
fn increment(arguments: &Map<String, Value>) -> Increment {
    let mut item = Increment::new(arguments["subject"].as_str().unwrap());
    for (name, value) in arguments {
        item = match (name.as_str(), value) {
            ("subject", _) => continue,
            ("amount", Value::String(text)) => item.amount(text),
            ("amount", Value::Number(number)) => match number.as_i64() {
                Some(number) => item.amount(number),
                None => item.amount(number.as_f64().unwrap()),
            },
            ("amount", Value::Object(special)) => match special.iter().next().unwrap() {
                (kind, text) if kind == "float" => item.amount(float(text)),
                (kind, text) if kind == "integer" => item.amount(text.as_str().unwrap().parse::<i128>().unwrap()),
                (_, text) => item.amount(text.as_str().unwrap().parse::<Decimal>().unwrap()),
            },
            ("value", Value::Object(special)) => item.value(float(&special["float"])),
            ("value", value) => item.value(value),
            ("by", key) => item.by(key.as_str().unwrap()),
            ("id", id) => item.id(id.as_str().unwrap()),
            ("at", time) => item.at(at(time)),
            ("retract", _) => item.retract(),
            (other, _) => panic!("{other}"),
        };
    }
    item
}

fn event(arguments: &Map<String, Value>) -> Event {
    let mut item = Event::new(arguments["type"].as_str().unwrap());
    for (name, value) in arguments["fields"].as_object().unwrap() {
        item = match value.as_object().and_then(|special| special.iter().next()) {
            Some((kind, text)) if kind == "float" => item.field(name, float(text)),
            Some((_, text)) => item.field(name, text.as_str().unwrap().parse::<Decimal>().unwrap()),
            None => item.field(name, value),
        };
    }
    for (name, value) in arguments {
        item = match name.as_str() {
            "type" | "fields" => continue,
            "id" => item.id(value.as_str().unwrap()),
            "at" => item.at(at(value)),
            "retract" => item.retract(),
            other => panic!("{other}"),
        };
    }
    item
}

fn float(text: &Value) -> f64 {
    text.as_str().unwrap().parse().unwrap()
}

fn at(time: &Value) -> DateTime<Utc> {
    time.as_str().unwrap().parse().unwrap()
}

/// Returns what was sent, with the texts of numbers, and without an id that was not given.
fn compared(item: &RawValue, expected: &Value) -> Value {
    if let Ok(members) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(item.get()) {
        let members = members.into_iter().filter(|(name, _)| name != "id" || expected.get("id").is_some());
        return members.map(|(name, value)| (name, compared(&value, &Value::Null))).collect();
    }
    serde_json::from_str::<String>(item.get()).unwrap_or_else(|_| item.get().to_owned()).into()
}

fn text(item: &str, name: &str) -> String {
    serde_json::from_str::<Value>(item).unwrap()[name].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_same_input_is_sent_or_refused_as_by_all_clients() {
    for case in cases("calls").iter().filter(|case| case["untyped"] != true) {
        let (service, requests) = answering(vec![json!({"status": 200})]).await;
        let board = service.board("b");
        let (refused, now) = if let Some(arguments) = case["add"].as_object() {
            let item = || increment(arguments);
            let sender = board.sender().every(Duration::MAX).start().unwrap();
            let refused = sender.add(item()).await.err();
            timeout(SOON, sender.close()).await.unwrap().unwrap();
            (refused, if case["error"].is_string() { board.add_now(item()).await.err() } else { None })
        } else {
            let item = || event(case["event"].as_object().unwrap());
            let sender = service.sender().every(Duration::MAX).start().unwrap();
            let refused = sender.add(item()).await.err();
            timeout(SOON, sender.close()).await.unwrap().unwrap();
            (refused, if case["error"].is_string() { service.add_now(item()).await.err() } else { None })
        };
        let requests = requests.lock().unwrap();
        if let Some(names) = case["error"].as_str() {
            for error in [refused.expect("it is taken"), now.expect("it is taken")] {
                assert_eq!(error.code(), "invalid_item");
                assert!(error.detail().contains(names), "{case}: {error}");
            }
            assert!(requests.is_empty(), "{case}");
        } else {
            assert!(refused.is_none(), "{case}: {refused:?}");
            let [items] = &requests[..] else { panic!("{case}: {requests:?}") };
            let [item] = &items[..] else { panic!("{case}: {items:?}") };
            assert!(!text(item.get(), "id").is_empty());
            assert_eq!(compared(item, &case["sends"]), case["sends"], "{case}");
        }
    }
}

#[tokio::test]
async fn the_same_answers_have_the_same_consequences_as_in_all_clients() {
    for case in cases("answers") {
        for (is_flushed, is_told) in [(true, true), (false, false), (true, false)] {
            if is_told || !is_flushed || case["fails"].is_string() {
                check_answers(&case, is_flushed, is_told).await;
            }
        }
    }
}

async fn check_answers(case: &Value, is_flushed: bool, is_told: bool) {
    let (service, requests) = answering(case["answers"].as_array().unwrap().clone()).await;
    let told = Told::default();
    let mut builder = service.board("b").sender().every(Duration::MAX);
    if let Some(items) = case["batch"].as_u64() {
        builder = builder.batch(items as usize);
    }
    if let Some(seconds) = case["give_up"].as_u64() {
        builder = builder.give_up_after(Duration::from_secs(seconds));
    }
    if is_told {
        let (of_rejected, of_failed) = (told.clone(), told.clone());
        builder = builder
            .on_rejected(move |item, rejection| {
                of_rejected.lock().unwrap().push((text(item.as_json(), "subject"), rejection.code.clone()));
            })
            .on_failed(move |items, error| {
                let items = items.iter().map(|item| (text(item.as_json(), "subject"), error.code().to_owned()));
                of_failed.lock().unwrap().extend(items);
            });
    }
    let sender: Sender<Increment> = builder.start().unwrap();
    let began = Instant::now();
    let subjects = case["subjects"].as_array().unwrap();
    for subject in subjects {
        sender.add(Increment::new(subject.as_str().unwrap())).await.unwrap();
    }
    let ended: Result<()> = match is_flushed {
        true => timeout(SOON, sender.flush()).await.unwrap(),
        false => timeout(SOON, sender.close()).await.unwrap(),
    };
    let failure = ended.err().map(|error| error.code().to_owned());
    assert_eq!(failure.as_deref(), case["fails"].as_str().filter(|_| !is_told), "{case}");
    // What was returned is not returned again.
    timeout(SOON, sender.close()).await.unwrap().unwrap();
    assert!(began.elapsed() >= Duration::from_secs(case["waits"].as_u64().unwrap_or(0)), "{case}");
    let requests = requests.lock().unwrap();
    let sent = requests.iter().map(|items| items.iter().map(|item| text(item.get(), "subject")).collect::<String>());
    assert_eq!(json!(sent.collect::<Vec<_>>()), case["requests"], "{case}");
    assert_eq!(json!(*told.lock().unwrap()), if is_told { case["told"].clone() } else { json!([]) }, "{case}");
    let items = requests.iter().flatten().map(|item| (text(item.get(), "subject"), text(item.get(), "id")));
    assert_eq!(items.collect::<HashSet<_>>().len(), subjects.len(), "{case}");
}
