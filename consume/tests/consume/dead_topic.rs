//! Dead letters that are written to a topic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use krafka::Kafka;
use krafka::consumer::ConsumerRecord;
use krafka::error::ErrorCode;
use krafka::producer::Record;
use krafka::testing::{ApiKey, Control, FakeBroker};

use crate::running::{Setting, expected, like};
use crate::waiting::Wait;

/// Returns a source of the topic `likes`, with a topic of dead letters.
fn source(broker: &FakeBroker) -> String {
    let brokers = broker.bootstrap_servers();
    format!("kafka = {{ brokers = \"{brokers}\", topic = \"likes\" }}\ndead_letters = {{ topic = \"likes.dead\" }}")
}

/// Returns the texts of the headers of a dead letter that say why it is one.
fn said(record: &ConsumerRecord) -> BTreeMap<&str, &str> {
    let text = |value| std::str::from_utf8(value).unwrap();
    let headers = record.headers.iter();
    headers.filter_map(|(name, value)| Some((name.strip_prefix("rolltop.")?, text(value.as_deref()?)))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_count_is_written_to_a_topic_before_it_is_passed() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("likes", 1);
    let client = Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap();
    let producer = client.producer().build().await.unwrap();
    let mut late = like(1);
    late["at"] = "2020-01-01T00:00:00Z".into();
    let no_event = Record::new("likes", vec![0xff, 0]).key("a").header("trace", "t-1").null_header("none");
    for record in [
        Record::new("likes", like(0).to_string()),
        no_event.header("rolltop.code", "older"),
        Record::tombstone("likes", "gone"),
        Record::new("likes", late.to_string()),
        Record::new("likes", like(2).to_string()),
    ] {
        let _ = producer.send(record).await.unwrap();
    }
    let mut consumer = setting.consume("k", &source(&broker), &["--define"]);
    // There is no such topic: nothing is passed.
    let (_, detail) = consumer.in_state("k", "failing").await;
    assert!(detail.contains("cannot write to the topic 'likes.dead'"), "{detail}");
    setting.counted("hot-posts", &expected([])).await;
    // It is said in the source's words, and not by the client several times a second.
    let log = consumer.log();
    assert!(log.contains("likes.dead") && !log.contains("krafka"), "{log}");
    broker.create_topic("likes.dead", 1);
    setting.counted("hot-posts", &expected([0, 2])).await;
    let wait = Wait::begin("two dead letters");
    let letters = loop {
        let letters = broker.all_records("likes.dead").unwrap();
        if letters.len() >= 2 {
            break letters;
        }
        wait.rest(letters.len()).await;
    };
    assert_eq!((letters[0].key.as_deref(), letters[0].value.as_deref()), (Some(&b"a"[..]), Some(&[0xff, 0][..])));
    let headers: Vec<_> = letters[0].headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    assert_eq!(headers[..2], [("trace", Some(&b"t-1"[..])), ("none", None)]);
    let first = said(&letters[0]);
    let source = consumer.sources().await.remove(0);
    for (name, value) in [("source", source.as_str()), ("topic", "likes"), ("partition", "0"), ("offset", "1")] {
        assert_eq!(first[name], value);
    }
    assert_eq!((first["code"], first["detail"], headers.len()), ("unreadable", "it is not UTF-8", 8));
    let boards: Vec<_> = letters[1..].iter().map(|letter| (said(letter)["code"], said(letter)["offset"])).collect();
    assert!(boards.iter().all(|letter| *letter == ("too_late", "3")), "{boards:?}");
    assert!(said(&letters[1])["board"].starts_with("hot-"));
    // Nothing is written again.
    consumer.start_again().await;
    consumer.in_state("k", "reading").await;
    assert_eq!(broker.all_records("likes.dead").unwrap().len(), letters.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_refuses_does_not_have_the_others_repeated() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start_cluster(3).await.unwrap();
    broker.create_topic("likes", 1);
    broker.create_topic("likes.dead", 3);
    (0..3).for_each(|number| assert!(broker.set_leader("likes.dead", number, number)));
    broker.set_leader("likes", 0, 0);
    let client = Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap();
    let producer = client.producer().build().await.unwrap();
    for number in 0..300 {
        let record = Record::new("likes", "no event").key(number.to_string());
        let _ = producer.send(record).await.unwrap();
    }
    let _ = producer.send(Record::new("likes", like(0).to_string())).await.unwrap();
    let refused = AtomicUsize::new(0);
    broker.on(ApiKey::Produce, move |request| {
        match request.node_id == 1 && refused.fetch_add(1, Ordering::Relaxed) < 5 {
            true => Control::Error(ErrorCode::TopicAuthorizationFailed),
            false => Control::Pass,
        }
    });
    let _consumer = setting.consume("k", &source(&broker), &["--define"]);
    setting.counted("hot-posts", &expected([0])).await;
    let letters = broker.all_records("likes.dead").unwrap();
    let numbers: BTreeSet<u64> = letters.iter().map(|letter| said(letter)["offset"].parse().unwrap()).collect();
    assert_eq!(numbers, (0..300).collect());
    assert!(letters.len() < 300 + 2 * 200, "{} letters", letters.len());
}

/// What is longer than the topic takes holds nothing up.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_too_long_is_written_without_its_value() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("likes", 1);
    broker.create_topic("likes.dead", 1);
    let client = Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap();
    let producer = client.producer().build().await.unwrap();
    let produce = async |value: String| {
        let _ = producer.send(Record::new("likes", value).key("k").header("trace", "t")).await.unwrap();
    };
    produce("long".repeat(100)).await;
    produce(like(0).to_string()).await;
    let refused = AtomicUsize::new(0);
    broker.on(ApiKey::Produce, move |_| match refused.fetch_add(1, Ordering::Relaxed) {
        // As it is, and again alone.
        0 | 1 => Control::Error(ErrorCode::MessageTooLarge),
        _ => Control::Pass,
    });
    let _consumer = setting.consume("k", &source(&broker), &["--define"]);
    setting.counted("hot-posts", &expected([0])).await;
    produce("short".to_owned()).await;
    produce(like(1).to_string()).await;
    setting.counted("hot-posts", &expected([0, 1])).await;
    let letters = broker.all_records("likes.dead").unwrap();
    let content: Vec<_> = letters.iter().map(|letter| letter.value.as_deref()).collect();
    assert_eq!(content, [None, Some(&b"short"[..])]);
    let long = said(&letters[0]);
    assert_eq!((long["offset"], long["code"], long["too_long"]), ("0", "unreadable", "400"));
    assert_eq!((letters[0].key.as_ref(), letters[0].headers.iter().any(|(name, _)| name == "trace")), (None, false));
}
