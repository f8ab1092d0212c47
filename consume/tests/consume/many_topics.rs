//! Several topics, which come and go.

use std::ops::Range;

use krafka::Kafka;
use krafka::producer::Record;
use krafka::testing::FakeBroker;

use crate::running::{Consumer, Setting, command, expected, like};
use crate::waiting::Wait;

/// Writes likes to a topic.
async fn write(broker: &FakeBroker, topic: &str, numbers: Range<u64>) {
    let client = Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap();
    let producer = client.producer().build().await.unwrap();
    for number in numbers {
        // Both of two partitions get some of ten.
        let record = Record::new(topic, like(number).to_string()).key(number.to_string());
        let _ = producer.send(record).await.unwrap();
    }
    producer.close().await.unwrap();
}

/// Waits until the sources that are read have these names, without what is after the last dot.
async fn sources(consumer: &Consumer, expected: &[&str]) {
    let wait = Wait::begin(format!("the sources {expected:?}"));
    loop {
        let names: Vec<String> = consumer.sources().await;
        let mut plain: Vec<&str> = names.iter().filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
        plain.sort_unstable();
        if plain == expected {
            return;
        }
        wait.rest(names).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_come_and_go() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    for (topic, partitions) in
        [("likes", 2), ("Shop.a", 1), ("Shop_b", 1), ("other", 1), ("__Shop", 1), ("Shop.dead", 1)]
    {
        broker.create_topic(topic, partitions);
        write(&broker, topic, 1_000..1_010).await;
    }
    let source = format!(
        "begin = \"latest\"\ndead_letters = {{ topic = \"Shop.dead\" }}\n[source.kafka]\nbrokers = \"{}\"\ntopics = [\"likes\", \
         \"Shop*\", \"missing\"]",
        broker.bootstrap_servers()
    );
    let mut consumer = setting.consume("k", &source, &["--define"]);
    sources(&consumer, &["k-Shop.a-0", "k-Shop_b-0", "k-likes-0", "k-likes-1"]).await;
    for name in consumer.sources().await {
        consumer.in_state(&name, "reading").await;
    }
    for (topic, numbers) in [("likes", 0..50), ("Shop.a", 50..60), ("Shop_b", 60..70), ("other", 70..80)] {
        write(&broker, topic, numbers).await;
    }
    write(&broker, "Shop.dead", 90..100).await;
    setting.counted("hot-posts", &expected(0..70)).await;
    // All of a topic is new that appears while the program runs. One that is deleted is no error.
    broker.create_topic("Shop.new", 1);
    write(&broker, "Shop.new", 70..75).await;
    broker.delete_topic("Shop_b");
    setting.counted("hot-posts", &expected(0..75)).await;
    let there = ["k-Shop.a-0", "k-Shop.new-0", "k-likes-0", "k-likes-1"];
    sources(&consumer, &there).await;
    let names = consumer.sources().await;
    consumer.start_again().await;
    sources(&consumer, &there).await;
    assert_eq!(consumer.sources().await, names);
    write(&broker, "Shop.new", 75..80).await;
    setting.counted("hot-posts", &expected(0..80)).await;
    let (is_well, text) = command(setting.folder.path(), &["check", consumer.config()]).await;
    assert!(is_well, "{text}");
    // Nothing is left in the end.
    for topic in ["likes", "Shop.a", "Shop.new"] {
        broker.delete_topic(topic);
    }
    sources(&consumer, &[]).await;
    let (_, detail) = consumer.in_state("k", "failing").await;
    assert!(detail.contains("there is no topic of likes, Shop*, missing"), "{detail}");
    for expected in ["k: 4 logs", "k-Shop.a-0", "k-Shop.new-0", "k-likes-"] {
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_topics_of_a_pattern_are_filled() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    for (topic, numbers) in [("a.b", 0..10), ("a.c", 10..30)] {
        broker.create_topic(topic, 2);
        write(&broker, topic, numbers).await;
    }
    let source = format!("kafka = {{ brokers = \"{}\", topics = [\"a.*\"] }}", broker.bootstrap_servers());
    let consumer = setting.consume("k", &source, &["--define"]);
    setting.counted("hot-posts", &expected(0..30)).await;
    setting.define("hot-new").await;
    // Of one topic something comes after that, and of the partitions of the other nothing.
    write(&broker, "a.c", 30..40).await;
    setting.counted("hot-posts", &expected(0..40)).await;
    let (is_filled, text) =
        command(setting.folder.path(), &["fill", consumer.config(), "--source", "k", "--board", "hot-new"]).await;
    assert!(is_filled, "{text}");
    setting.counted("hot-new", &expected(0..40)).await;
    setting.counted("hot-posts", &expected(0..40)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sources_of_a_configuration_are_not_one() {
    let Some(setting) = Setting::start().await else { return };
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("b", 1);
    let brokers = broker.bootstrap_servers();
    let source = format!(
        "kafka = {{ brokers = \"{brokers}\", topics = [\"b\"] }}\n[[source]]\nname = \"a-b\"\nkafka = {{ brokers = \
         \"{brokers}\", topic = \"b\" }}"
    );
    let consumer = setting.consume("a", &source, &["--define"]);
    let wait = Wait::begin("one that is stopped");
    while !consumer.log().contains("stopped: another source of the configuration is 'a-b-0.") {
        wait.rest(consumer.log()).await;
    }
}
