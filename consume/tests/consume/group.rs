//! What tools see that show how far a consumer group is behind.

use krafka::Kafka;
use krafka::producer::{Producer, Record};
use krafka::testing::{ApiKey, Control, FakeBroker};
use serde_json::Value;

use crate::running::{Setting, command, expected, like};
use crate::waiting::Wait;

async fn start() -> (FakeBroker, Producer, String) {
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("likes", 1);
    let client = Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap();
    let producer = client.producer().build().await.unwrap();
    let brokers = broker.bootstrap_servers();
    (broker, producer, format!("kafka = {{ brokers = \"{brokers}\", topic = \"likes\", group = \"tools\" }}\n"))
}

async fn write(producer: &Producer, value: impl ToString) {
    let _ = producer.send(Record::new("likes", value.to_string())).await.unwrap();
}

async fn committed(broker: &FakeBroker, expected: i64) {
    let wait = Wait::begin(format!("the offset {expected}"));
    while broker.committed_offset("tools", "likes", 0) != Some(expected) {
        wait.rest(broker.committed_offset("tools", "likes", 0)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_told_what_is_counted() {
    let Some(setting) = Setting::start().await else { return };
    let (broker, producer, source) = start().await;
    broker.on_times(ApiKey::OffsetCommit, 2, |_| Control::Error(krafka::error::ErrorCode::GroupAuthorizationFailed));
    for number in 0..20 {
        write(&producer, like(number)).await;
    }
    let mut consumer = setting.consume("k", &(source + "take_over = 1000"), &["--define"]);
    setting.counted("hot-posts", &expected(0..20)).await;
    committed(&broker, 20).await;
    let said = consumer.log().matches("cannot say to the group 'tools'").count();
    assert_eq!(said, 1, "{}", consumer.log());
    // What was counted last is said at the end.
    write(&producer, like(20)).await;
    setting.counted("hot-posts", &expected(0..21)).await;
    consumer.in_state("k", "reading").await;
    assert!(consumer.stop().await);
    assert_eq!(broker.committed_offset("tools", "likes", 0), Some(21));
    // A fill says nothing.
    setting.define("hot-new").await;
    consumer.start();
    write(&producer, like(21)).await;
    setting.counted("hot-posts", &expected(0..22)).await;
    assert!(consumer.stop().await);
    let commits = broker.request_count(ApiKey::OffsetCommit);
    let fill = ["fill", consumer.config(), "--source", "k", "--board", "hot-new"];
    let (is_filled, text) = command(setting.folder.path(), &fill).await;
    assert!(is_filled, "{text}");
    setting.counted("hot-new", &expected(0..22)).await;
    assert_eq!(broker.request_count(ApiKey::OffsetCommit), commits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_several_events_is_one_offset() {
    let Some(setting) = Setting::start().await else { return };
    let (broker, producer, source) = start().await;
    write(&producer, Value::from(vec![like(0), like(1)])).await;
    write(&producer, Value::from(vec![like(2)])).await;
    let mut consumer = setting.consume("k", &(source + "event.each = \"\""), &["--define"]);
    setting.counted("hot-posts", &expected(0..3)).await;
    consumer.in_state("k", "reading").await;
    assert!(consumer.stop().await);
    assert_eq!(broker.committed_offset("tools", "likes", 0), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_stands_by_tells_a_group_nothing() {
    let Some(setting) = Setting::start().await else { return };
    let (broker, producer, source) = start().await;
    let source = source + "take_over = 1000";
    let readers = [0, 1].map(|_| setting.consume("k", &source, &["--define"]));
    let (mut added, wait) = (0, Wait::begin("one that stands by"));
    let state = async |reader: usize| readers[reader].state("k-").await.1["state"].clone();
    while ![state(0).await, state(1).await].contains(&"standing_by".into()) {
        write(&producer, like(added)).await;
        added += 1;
        wait.rest(added).await;
    }
    // What it has counted itself may still be said.
    let wait = Wait::begin("three commits of the same program");
    loop {
        let commits = broker.requests().into_iter().filter(|request| request.api_key == ApiKey::OffsetCommit);
        let connections: Vec<u64> = commits.map(|request| request.connection).collect();
        if let [.., first, second, third] = connections[..]
            && first == second
            && second == third
        {
            break;
        }
        write(&producer, like(added)).await;
        added += 1;
        wait.rest(connections).await;
    }
}
