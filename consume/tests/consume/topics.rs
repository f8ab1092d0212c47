//! Topics of Kafka, of a broker that runs in the test and speaks the real protocol.

use std::ops::Range;
use std::time::Duration;

use krafka::producer::{Producer, Record};
use krafka::testing::FakeBroker;
use krafka::{Kafka, PartitionId};

use crate::kills::{TestLog, survive};
use crate::running::{Setting, expected, like};

/// A topic, and who writes to it.
struct Topic {
    broker: FakeBroker,
    producer: Producer,
}

impl Topic {
    async fn start(partitions: PartitionId) -> Self {
        let broker = FakeBroker::start().await.unwrap();
        broker.create_topic("likes", partitions);
        let producer = Self::producer(&broker).await;
        Self { broker, producer }
    }

    async fn producer(broker: &FakeBroker) -> Producer {
        Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap().producer().build().await.unwrap()
    }

    /// Deletes the topic, and creates it again.
    async fn make_anew(&mut self) {
        self.broker.delete_topic("likes");
        self.broker.create_topic("likes", 1);
        self.producer = Self::producer(&self.broker).await;
    }
}

impl TestLog for Topic {
    fn source(&self) -> String {
        format!("kafka = {{ brokers = \"{}\", topic = \"likes\" }}\ntake_over = 1", self.broker.bootstrap_servers())
    }

    async fn add(&mut self, numbers: Range<u64>) {
        for number in numbers {
            let record = Record::new("likes", like(number).to_string()).key(format!("user-{}", number % 101));
            let _ = self.producer.send(record).await.unwrap();
        }
        self.producer.flush().await.unwrap();
    }

    async fn restart(&mut self) {
        self.broker.crash(0);
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.broker.restart(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_counts_once_with_two_readers_and_kills() {
    let Some(mut setting) = Setting::start().await else { return };
    let mut topic = Topic::start(4).await;
    survive(&mut setting, &mut topic, (30, 300, 5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_made_anew_is_another_source() {
    let Some(setting) = Setting::start().await else { return };
    let mut topic = Topic::start(1).await;
    topic.add(0..100).await;
    let mut consumer = setting.consume("likes", &topic.source(), &["--define"]);
    setting.counted("hot-posts", &expected(0..100)).await;
    consumer.kill().await;
    topic.make_anew().await;
    topic.add(100..350).await;
    consumer.start();
    setting.counted("hot-posts", &expected(0..350)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_value_is_passed_and_keys_are_fields() {
    let Some(setting) = Setting::start().await else { return };
    let topic = Topic::start(1).await;
    let producer = &topic.producer;
    let _ = producer.send(Record::new("likes", r#"{"weight": 2}"#).key("post-7")).await.unwrap();
    let _ = producer.send(Record::tombstone("likes", "post-7")).await.unwrap();
    producer.flush().await.unwrap();
    let source = format!("{}\n[source.event]\ntype = \"like\"\nfields = {{ post_id = \"$key\" }}", topic.source());
    let consumer = setting.consume("likes", &source, &["--define"]);
    setting.counted("hot-posts", &[("post-7".to_owned(), 1)].into()).await;
    // The last message is passed, too: nothing is left to read.
    let wait = crate::waiting::Wait::begin("the end of the topic");
    loop {
        let path = "/v1/sources";
        let list: serde_json::Value = setting.client().request(rolltop_client::Method::GET, path).await.unwrap();
        let name = list["items"][0]["source"].as_str().unwrap().to_owned();
        let path = format!("/v1/sources/{name}");
        let state: serde_json::Value = setting.client().request(rolltop_client::Method::GET, &path).await.unwrap();
        if state["reached"] == "1" {
            break;
        }
        wait.rest(state).await;
    }
    drop(consumer);
}

/// As Debezium writes it with `ExtractNewRecordState`: a deleted row takes back what it counted when it was written.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_table_count_until_they_are_deleted() {
    let Some(setting) = Setting::start().await else { return };
    let topic = Topic::start(1).await;
    let written = chrono::Utc::now() - chrono::Duration::minutes(10);
    let row = |id: u64, is_deleted: bool| {
        let at = written.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        let row = serde_json::json!({"id": id, "post_id": format!("post-{}", id % 2), "user_id": 7, "created_at": at,
            "__deleted": is_deleted.to_string()});
        Record::new("likes", row.to_string()).key(format!("{{\"id\":{id}}}"))
    };
    let deleted = [row(1, true), Record::tombstone("likes", "{\"id\":1}")];
    for record in (1..=5).map(|id| row(id, false)).chain(deleted) {
        let _ = topic.producer.send(record).await.unwrap();
    }
    topic.producer.flush().await.unwrap();
    let source = format!(
        "{}\n[source.event]\ntype = \"like\"\nat = \"created_at\"\nfields = [\"post_id\", \"user_id\"]\nretract = \"__deleted\"",
        topic.source()
    );
    let mut consumer = setting.consume("likes", &source, &["--define", "--until-end"]);
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.counted("hot-posts", &[("post-0".to_owned(), 2), ("post-1".to_owned(), 2)].into()).await;
}
