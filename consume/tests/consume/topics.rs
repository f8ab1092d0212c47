//! Topics of Kafka, of a broker that runs in the test and speaks the real protocol.

use std::time::Duration;

use krafka::producer::{Producer, Record};
use krafka::testing::FakeBroker;
use krafka::{Kafka, PartitionId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::running::{Setting, expected, like};

const PARTITIONS: PartitionId = 4;

async fn producer(broker: &FakeBroker) -> Producer {
    Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap().producer().build().await.unwrap()
}

async fn send(producer: &Producer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let record = Record::new("likes", like(number).to_string()).key(format!("user-{}", number % 101));
        let _ = producer.send(record).await.unwrap();
    }
    producer.flush().await.unwrap();
}

fn source(broker: &FakeBroker) -> String {
    format!("kafka = {{ brokers = \"{}\", topic = \"likes\" }}\ntake_over = 1", broker.bootstrap_servers())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_counts_once_with_two_readers_and_kills() {
    let Some(mut setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("likes", PARTITIONS);
    let producer = producer(&broker).await;
    let mut readers = [0, 1].map(|_| setting.consume("likes", &source(&broker), &["--define"]));
    let (mut random, mut sent) = (StdRng::seed_from_u64(5), 0);
    for round in 0..30_usize {
        let more = random.random_range(1..300);
        send(&producer, sent..sent + more).await;
        sent += more;
        match round % 10 {
            1 | 4 | 6 => readers[round % 2].start_again().await,
            3 => {
                setting.service.kill().await;
                setting.service.start_again().await;
            }
            8 => {
                broker.crash(1);
                tokio::time::sleep(Duration::from_millis(300)).await;
                broker.restart(1);
            }
            _ => tokio::time::sleep(Duration::from_millis(random.random_range(0..300))).await,
        }
    }
    setting.counted("hot-posts", &expected(0..sent)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_made_anew_is_another_source() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("likes", 1);
    send(&producer(&broker).await, 0..100).await;
    let mut consumer = setting.consume("likes", &source(&broker), &["--define"]);
    setting.counted("hot-posts", &expected(0..100)).await;
    consumer.kill().await;
    broker.delete_topic("likes");
    broker.create_topic("likes", 1);
    send(&producer(&broker).await, 100..350).await;
    consumer.start();
    setting.counted("hot-posts", &expected(0..350)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_value_is_passed_and_keys_are_fields() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("likes", 1);
    let producer = producer(&broker).await;
    let _ = producer.send(Record::new("likes", r#"{"weight": 2}"#).key("post-7")).await.unwrap();
    let _ = producer.send(Record::tombstone("likes", "post-7")).await.unwrap();
    producer.flush().await.unwrap();
    let source = format!("{}\n[source.event]\ntype = \"like\"\nfields = {{ post_id = \"$key\" }}", source(&broker));
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
