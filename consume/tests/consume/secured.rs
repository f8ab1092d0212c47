//! Brokers that ask who somebody is.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use krafka::Kafka;
use krafka::producer::Record;
use krafka::testing::FakeBroker;

use crate::guard::{Authority, ClientCheck, Guard};
use crate::running::{Consumer, Setting, expected, like};

/// Returns a broker with a topic, and ten likes in it.
async fn broker() -> FakeBroker {
    let broker = FakeBroker::start().await.unwrap();
    broker.create_topic("likes", 2);
    let client = Kafka::builder(broker.bootstrap_servers()).connect().await.unwrap();
    let producer = client.producer().build().await.unwrap();
    for number in 0..10 {
        let _ = producer.send(Record::new("likes", like(number).to_string())).await.unwrap();
    }
    producer.close().await.unwrap();
    broker
}

fn source(brokers: &str, more: &str) -> String {
    format!("[source.kafka]\nbrokers = \"{brokers}\"\ntopic = \"likes\"\n{more}")
}

fn sasl(mechanism: &str, password: &str) -> String {
    format!("sasl = {{ mechanism = \"{mechanism}\", user = \"rolltop\", password = \"{password}\" }}")
}

/// Returns a setting in which the program logs all it can.
async fn setting() -> Option<Setting> {
    let mut setting = Setting::start().await?;
    setting.levels = "debug";
    Some(setting)
}

/// Waits until the program says that it cannot connect, for such a reason, and has tried several times.
async fn refused(consumer: &Consumer, source: &str, why: &[&str], tries: &AtomicUsize) {
    let (_, detail) = consumer.in_state(source, "failing").await;
    assert!(why.iter().all(|why| detail.contains(why)), "{detail}");
    let wait = crate::waiting::Wait::begin("the second try");
    let begun = std::time::Instant::now();
    while tries.load(Ordering::Relaxed) < 2 {
        wait.rest(tries.load(Ordering::Relaxed)).await;
    }
    // A server may lock a user out who tries too often.
    let (tries, seconds) = (tries.swap(0, Ordering::Relaxed), begun.elapsed().as_secs());
    assert!(tries <= 3 + usize::try_from(seconds).unwrap(), "{tries} tries in {seconds} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_asks_for_a_password() {
    let Some(setting) = setting().await else { return };
    let broker = broker().await;
    broker.require_sasl_plain("rolltop", "right-secret");
    let guard = Guard::before(&broker, ClientCheck::Nothing).await;
    let mut consumer = setting.consume("likes", &source(&guard.address, &sasl("plain", "wrong-secret")), &["--define"]);
    refused(&consumer, "likes", &["authentication error", "invalid credentials"], &guard.tries).await;
    consumer.kill().await;
    setting.counted("hot-posts", &expected([])).await;
    let consumer = setting.consume("likes", &source(&guard.address, &sasl("plain", "right-secret")), &["--define"]);
    setting.counted("hot-posts", &expected(0..10)).await;
    assert!(!consumer.log().contains("-secret"), "{}", consumer.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_asks_for_a_proof() {
    let Some(setting) = setting().await else { return };
    let demands = [
        ("scram-sha-256", ClientCheck::Scram("SCRAM-SHA-256", "right-secret")),
        ("scram-sha-512", ClientCheck::Scram("SCRAM-SHA-512", "right-secret")),
        ("oauthbearer", ClientCheck::Bearer("right-secret")),
    ];
    for (before, (mechanism, demand)) in demands.into_iter().enumerate() {
        let broker = broker().await;
        let guard = Guard::before(&broker, demand).await;
        let with = |password| source(&guard.address, &sasl(mechanism, password));
        let mut consumer = setting.consume(mechanism, &with("wrong-secret"), &["--define"]);
        refused(&consumer, mechanism, &["authentication error", "invalid"], &guard.tries).await;
        consumer.kill().await;
        setting.counted("hot-posts", &times(before)).await;
        let consumer = setting.consume(mechanism, &with("right-secret"), &["--define"]);
        setting.counted("hot-posts", &times(before + 1)).await;
        assert!(!consumer.log().contains("-secret"), "{}", consumer.log());
    }
}

/// Returns the ten likes, so many times.
fn times(times: usize) -> crate::running::Likes {
    expected((0..times).flat_map(|_| 0..10))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_shows_its_certificate() {
    let Some(setting) = setting().await else { return };
    let (broker, authority) = (broker().await, Authority::new("right"));
    let guard = Guard::before(&broker, authority.broker(false)).await;
    fs::write(setting.path("ca.pem"), authority.pem()).unwrap();
    fs::write(setting.path("other.pem"), Authority::new("other").pem()).unwrap();
    let with = |tls: &str| source(&guard.address, tls);
    let unknown = "certificate: UnknownIssuer";
    for (tls, why) in [
        ("tls = { ca = \"other.pem\" }", unknown),
        ("tls = {}", unknown),
        ("", "perhaps because they want TLS and 'tls' is missing"),
    ] {
        let mut consumer = setting.consume("likes", &with(tls), &["--define"]);
        refused(&consumer, "likes", &[why], &guard.tries).await;
        consumer.kill().await;
    }
    setting.counted("hot-posts", &expected([])).await;
    let _consumer = setting.consume("likes", &with("tls = { ca = \"ca.pem\" }"), &["--define"]);
    setting.counted("hot-posts", &expected(0..10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_asks_for_a_certificate() {
    let Some(setting) = setting().await else { return };
    let (broker, authority) = (broker().await, Authority::new("right"));
    let guard = Guard::before(&broker, authority.broker(true)).await;
    fs::write(setting.path("ca.pem"), authority.pem()).unwrap();
    for (name, signed_by) in [("right", &authority), ("wrong", &Authority::new("other"))] {
        let (certificate, key) = signed_by.sign("rolltop");
        fs::write(setting.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(setting.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let with = |name: &str| {
        let tls = format!("tls = {{ ca = \"ca.pem\", certificate = \"{name}.pem\", key = \"{name}.key\" }}");
        source(&guard.address, &tls)
    };
    for source in [with("wrong"), source(&guard.address, "tls = { ca = \"ca.pem\" }")] {
        let mut consumer = setting.consume("likes", &source, &["--define"]);
        refused(&consumer, "likes", &["cannot connect"], &guard.tries).await;
        consumer.kill().await;
    }
    setting.counted("hot-posts", &expected([])).await;
    let _consumer = setting.consume("likes", &with("right"), &["--define"]);
    setting.counted("hot-posts", &expected(0..10)).await;
}
