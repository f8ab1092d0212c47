//! Items that are sent in the background.

mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rolltop_client::{Decimal, Event, Increment, Sender, Service};
use serde_json::{Value, json};
use support::network::message;
use support::{Running, Store};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

/// Returns a service that nobody can reach.
fn nobody() -> Service {
    Service::new(&format!("http://127.0.0.1:{}", support::free_port())).unwrap()
}

/// Answers requests one after the other with these texts. Returns the service, and the bodies of the requests.
async fn answering(answers: &[&str]) -> (Service, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = Service::builder(&format!("http://{}", listener.local_addr().unwrap()));
    let answers: Vec<String> = answers.iter().map(|&text| text.to_owned()).collect();
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    tokio::spawn(async move {
        for answer in answers {
            let (mut client, _) = listener.accept().await.unwrap();
            let request = String::from_utf8(message(&mut client).await.unwrap()).unwrap();
            let body = request.split_once("\r\n\r\n").unwrap().1;
            seen.lock().unwrap().push(serde_json::from_str(body).unwrap());
            client.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (service.timeout(Duration::from_secs(2)).build().unwrap(), bodies)
}

fn http(status: &str, more: &str, body: &str) -> String {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{more}");
    format!("{head}content-length: {}\r\n\r\n{body}", body.len())
}

async fn ended(sender: &Sender<Increment>) -> String {
    timeout(SOON, sender.close()).await.expect("it does not end").unwrap_err().code().to_owned()
}

#[tokio::test]
async fn add_waits_for_room_and_may_be_cancelled() {
    let sender = nobody().board("b").sender().max_items(3).batch(2).every(Duration::MAX).start().unwrap();
    let mut added = 0;
    // Two are on their way, and three wait.
    while timeout(Duration::from_millis(300), sender.add(Increment::new("a"))).await.is_ok() {
        added += 1;
    }
    assert_eq!((added, sender.counts().waiting), (5, 5));
    assert!(!sender.offer(Increment::new("a")).unwrap());
    assert_eq!((sender.counts().dropped, sender.counts().waiting), (1, 5));
    let adding = sender.clone();
    let waits = tokio::spawn(async move { adding.add(Increment::new("a")).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(timeout(Duration::from_millis(100), sender.flush()).await.is_err());
    assert!(timeout(Duration::from_millis(100), sender.close()).await.is_err());
    let refused = timeout(SOON, waits).await.expect("add does not end").unwrap();
    assert_eq!(refused.unwrap_err().code(), "closed");
    assert_eq!(sender.add(Increment::new("a")).await.unwrap_err().code(), "closed");
    assert_eq!(sender.offer(Increment::new("a")).unwrap_err().code(), "closed");
    assert_eq!(sender.counts().waiting, 5);
}

#[tokio::test]
async fn what_is_given_up_is_reported_with_its_tags() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = told.clone();
    let sender = nobody().board("b").sender().batch(2).give_up_after(Duration::ZERO).on_failed(move |items, error| {
        let tags = items.iter().map(|item| item.tag().unwrap());
        telling.lock().unwrap().extend(tags.map(|tag| (tag, error.code().to_owned())));
    });
    let sender = sender.start().unwrap();
    for tag in 1..=3 {
        sender.add(Increment::new("a").tag(tag)).await.unwrap();
    }
    timeout(SOON, sender.close()).await.unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), [1, 2, 3].map(|tag| (tag, "unreachable".to_owned())));
    assert_eq!((sender.counts().failed, sender.counts().waiting), (3, 0));

    let untold = nobody().board("b").sender().give_up_after(Duration::ZERO).start().unwrap();
    untold.add(Increment::new("a")).await.unwrap();
    assert_eq!(timeout(SOON, untold.flush()).await.unwrap().unwrap_err().code(), "unreachable");
    timeout(SOON, untold.flush()).await.unwrap().unwrap();
    untold.add(Increment::new("a")).await.unwrap();
    assert_eq!(ended(&untold).await, "unreachable");
    timeout(SOON, untold.close()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_batch_is_sent_again_when_the_service_says() {
    let later = http("503 Service Unavailable", "retry-after: 1\r\n", "{\"code\":\"overloaded\",\"detail\":\"\"}");
    let done = http("200 OK", "", "{\"accepted\":2,\"duplicates\":0,\"rejected\":[]}");
    let page = done.replace("application/json", "text/html");
    let cut = &done[..done.len() - 5];
    let (service, bodies) = answering(&[&later, "", cut, &page, &done]).await;
    let sender = service.board("b").sender().start().unwrap();
    sender.add(Increment::new("a").amount(2)).await.unwrap();
    sender.add(Increment::new("b").id("mine")).await.unwrap();
    let began = Instant::now();
    timeout(SOON, sender.flush()).await.unwrap().unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    let bodies = bodies.lock().unwrap();
    assert_eq!(bodies.len(), 5);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let items = bodies[0]["increments"].as_array().unwrap();
    assert_eq!((&items[0]["amount"], items[0]["id"].as_str().unwrap().len()), (&json!(2), 16));
    assert_eq!(items[1], json!({"subject": "b", "id": "mine"}));
    assert_eq!(sender.counts().accepted, 2);
}

#[test]
fn nobody_waits_for_a_runtime_that_has_ended() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    assert_eq!(nobody().board("b").sender().start().unwrap_err().code(), "invalid_setting");
    let first = runtime();
    let sender = first.block_on(async {
        let sender = nobody().board("b").sender().start().unwrap();
        sender.add(Increment::new("a")).await.unwrap();
        sender
    });
    first.shutdown_timeout(Duration::from_secs(5));
    runtime().block_on(async {
        assert_eq!(sender.add(Increment::new("a")).await.unwrap_err().code(), "closed");
        assert_eq!(timeout(SOON, sender.flush()).await.unwrap().unwrap_err().code(), "interrupted");
        assert_eq!(ended(&sender).await, "interrupted");
        assert_eq!(sender.counts().waiting, 1);
    });
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let board = nobody().board("b");
    for sender in [board.sender().batch(0), board.sender().max_items(0), board.sender().max_items(usize::MAX)] {
        assert_eq!(sender.start().unwrap_err().code(), "invalid_setting");
    }
}

#[tokio::test]
async fn items_are_sent_without_flush_and_after_the_last_sender() {
    for running in support::services().await {
        let board = running.service().board("hot-posts");
        let sender = board.sender().every(Duration::from_millis(50)).start().unwrap();
        sender.add(Increment::new("soon")).await.unwrap();
        let score = async |subject: &str| {
            for _ in 0..200 {
                let score = board.subject(subject).await.unwrap().score;
                if score.as_ref().is_some_and(|score| score.as_str() != "0") {
                    return score;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            None
        };
        assert_eq!(score("soon").await, Some(Decimal::from(1)));
        let last = board.sender().every(Duration::MAX).start().unwrap();
        for _ in 0..1_200 {
            last.clone().add(Increment::new("last")).await.unwrap();
        }
        drop(last);
        for _ in 0..200 {
            if score("last").await == Some(Decimal::from(1_200)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(score("last").await, Some(Decimal::from(1_200)));
    }
}

#[tokio::test]
async fn flush_waits_for_what_was_added_before_only() {
    for running in support::services().await {
        let board = running.service().board("hot-posts");
        let sender = board.sender().every(Duration::MAX).start().unwrap();
        sender.add(Increment::new("before")).await.unwrap();
        let adding = sender.clone();
        let later = tokio::spawn(async move {
            loop {
                adding.add(Increment::new("later")).await.unwrap();
            }
        });
        // One that is cancelled.
        let _ = timeout(Duration::ZERO, sender.flush()).await;
        timeout(SOON, sender.flush()).await.unwrap().unwrap();
        assert_eq!(board.subject("before").await.unwrap().score, Some(Decimal::from(1)));
        later.abort();
        timeout(SOON, sender.close()).await.unwrap().unwrap();
        assert_eq!(sender.counts().waiting, 0);
    }
}

#[tokio::test]
async fn amounts_are_added_up_but_not_what_would_be_refused() {
    for running in support::services().await {
        let board = running.service().board("prices");
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = told.clone();
        let sender = board.sender().coalesces(true).every(Duration::MAX).on_rejected(move |item, rejection| {
            telling.lock().unwrap().push((item.tag().unwrap(), rejection.code.clone()));
        });
        let sender = sender.start().unwrap();
        let lines = [
            r#"{"subject":"a"}"#,
            r#"{"subject":"a","amount":2}"#,
            r#"{"subject":"a","amount":0.10}"#,
            r#"{"subject":"a","amount":"0.20"}"#,
            r#"{"subject":"a","amount":-0.05}"#,
            r#"{"subject":"a","amount":0.125}"#,
            r#"{"subject":"a","amount":1e99}"#,
            r#"{"subject":"a","amount":123456789012345678}"#,
            r#"{"subject":"a","amount":7,"id":"one"}"#,
            r#"{"subject":"a","amount":7,"id":"one"}"#,
            r#"{"subject":"a","amount":1,"amount":2}"#,
            r#"{"subject":"b"}"#,
            r#"{"subject":5}"#,
            r#"{"subject":"a","value":1}"#,
        ];
        for (tag, line) in lines.iter().enumerate() {
            sender.add(Increment::from_json(line).unwrap().tag(tag as u64)).await.unwrap();
        }
        sender.close().await.unwrap();
        assert_eq!(board.subject("a").await.unwrap().score.unwrap().to_f64(), 10.25);
        let counts = sender.counts();
        assert_eq!((counts.combined, counts.accepted, counts.duplicates, counts.rejected), (2, 5, 1, 6));
        let told: Vec<u64> = told.lock().unwrap().iter().map(|(tag, _)| *tag).collect();
        assert_eq!(told, [5, 6, 7, 10, 12, 13]);
    }
}

#[tokio::test]
async fn failures_and_rejections_are_told() {
    for running in support::services().await {
        let service = running.service();
        let sender = service.board("does-not-exist").sender().start().unwrap();
        sender.add(Increment::new("a")).await.unwrap();
        let error = timeout(SOON, sender.flush()).await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.status()), ("unknown_board", Some(404)));
        assert!(error.request_id().is_some());

        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = told.clone();
        let events = service.sender().on_rejected(move |item, rejection| {
            telling.lock().unwrap().push((item.tag(), rejection.board.clone(), rejection.code.clone()));
        });
        let events = events.start().unwrap();
        events.add(Event::new("like").field("post_id", "one-board").tag(1)).await.unwrap();
        events.close().await.unwrap();
        let rejection = (Some(1), Some("communities".to_owned()), "missing_field".to_owned());
        assert_eq!(*told.lock().unwrap(), [rejection]);
        assert_eq!((events.counts().accepted, events.counts().rejected), (1, 1));
    }
}

#[tokio::test]
async fn much_is_sent_in_several_requests() {
    for running in support::services().await {
        let service = running.service();
        let sender = service.sender().every(Duration::MAX).start().unwrap();
        let text = "x".repeat(60_000);
        for _ in 0..200 {
            let event = Event::new("like").field("post_id", "large").field("community", "c").field("text", &text);
            sender.add(event).await.unwrap();
        }
        timeout(SOON * 3, sender.close()).await.unwrap().unwrap();
        assert_eq!((sender.counts().accepted, sender.counts().failed), (200, 0));
    }
}

#[tokio::test]
async fn a_batch_that_is_too_large_for_the_service_is_divided() {
    let Some(program) = support::program() else { return };
    let running = Running::start_with(&program, Store::Embedded, 100_000).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = told.clone();
    let sender = running.service().sender().every(Duration::MAX).on_failed(move |items, error| {
        telling.lock().unwrap().extend(items.iter().map(|item| (item.tag().unwrap(), error.code().to_owned())));
    });
    let sender = sender.start().unwrap();
    let (text, too_long) = ("x".repeat(30_000), "x".repeat(3_000_000));
    for tag in 0..100 {
        let text = if tag == 50 { &too_long } else { &text };
        let event = Event::new("like").field("post_id", "p").field("community", "c").field("text", text);
        sender.add(event.tag(tag)).await.unwrap();
    }
    timeout(SOON * 3, sender.close()).await.expect("it is not divided").unwrap();
    assert_eq!(*told.lock().unwrap(), [(50, "too_large".to_owned())]);
    assert_eq!((sender.counts().accepted, sender.counts().duplicates), (99, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cancelled_is_not_added_and_all_else_is() {
    for running in support::services().await {
        let board = running.service().board("hot-posts");
        let sender = board.sender().max_items(20).batch(10).start().unwrap();
        let tasks: Vec<_> = (0..8_u32)
            .map(|task| {
                let sender = sender.clone();
                tokio::spawn(async move {
                    let mut added = 0_u32;
                    for number in 0..500 {
                        let patience = Duration::from_micros(u64::from(task * 100 + number % 7 * 200));
                        let adding = timeout(patience, sender.add(Increment::new("cancelled")));
                        added += u32::from(adding.await.is_ok_and(|done| done.is_ok()));
                        if number % 100 == 99 {
                            let _ = timeout(patience, sender.flush()).await;
                        }
                    }
                    added
                })
            })
            .collect();
        let mut added = 0;
        for task in tasks {
            added += task.await.unwrap();
        }
        timeout(SOON, sender.close()).await.unwrap().unwrap();
        assert_eq!(board.subject("cancelled").await.unwrap().score, Some(Decimal::from(added)));
        assert!((1..4_000).contains(&added), "{added}");
    }
}
