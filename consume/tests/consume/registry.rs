//! Values that are written with a schema registry, which runs in the test.

use std::collections::HashMap;
use std::sync::Arc;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use krafka::producer::{Producer, Record};
use krafka::testing::FakeBroker;
use krafka::{Kafka, KrafkaError};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::running::{Setting, command, expected, post};

/// The ids of schemas.
const AVRO: u32 = 1;
const PROTOBUF: u32 = 2;
const JSON: u32 = 3;
const LATER: u32 = 70_000;
const UNKNOWN: u32 = 99;

/// A registry with its answers by path.
struct TestRegistry {
    port: u16,
    server: ServerHandle,
    said: Arc<Said>,
}

#[derive(Default)]
struct Said {
    answers: HashMap<String, Value>,
    /// The status of answers in place of these, if the path ends with this.
    refuses: Mutex<Option<(u16, &'static str)>>,
    asked: Mutex<Vec<String>>,
}

impl TestRegistry {
    fn start() -> Self {
        let post = r#"{"type": "record", "name": "shop.Post", "fields": [{"name": "id", "type": "string"}]}"#;
        let like = r#"{"type": "record", "name": "Like", "namespace": "shop", "fields": [{"name": "post", "type": ["null", "Post"]},
            {"name": "time", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}"#;
        let message = r#"syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "shared/post.proto";
            message Other {} message Outer { message First {} message Like { Post post = 1; google.protobuf.Timestamp time = 2; } }"#;
        let reference = |name: &str| json!([{"name": name, "subject": "shared/post", "version": 3}]);
        let answers = [
            ("/api/schemas/ids/1", json!({"schema": like, "references": reference("shop.Post")})),
            ("/api/subjects/shared%2Fpost/versions/3", json!({"subject": "shared/post", "schema": post})),
            (
                "/api/schemas/ids/2",
                json!({"schemaType": "PROTOBUF", "schema": message, "references": [
                    {"name": "shared/post.proto", "subject": "shared/post.proto", "version": 1}]}),
            ),
            (
                "/api/subjects/shared%2Fpost.proto/versions/1",
                json!({"schemaType": "PROTOBUF", "schema": "syntax = \"proto3\"; message Post { string id = 1; }"}),
            ),
            ("/api/schemas/ids/3", json!({"schemaType": "JSON", "schema": "{}"})),
            ("/api/schemas/ids/70000", json!({"schema": like, "references": reference("shop.Post")})),
        ];
        let answers = answers.map(|(path, answer)| (path.to_owned(), answer)).into();
        let said = Arc::new(Said { answers, ..Said::default() });
        let shared = said.clone();
        let server = HttpServer::new(move || {
            let said = shared.clone();
            App::new().default_service(web::to(move |request: HttpRequest| {
                let answer = said.answer(&request);
                async move { answer }
            }))
        });
        let server = server.workers(1).disable_signals().bind(("127.0.0.1", 0)).unwrap();
        let port = server.addrs()[0].port();
        let server = server.run();
        let handle = server.handle();
        tokio::spawn(server);
        Self { port, server: handle, said }
    }

    /// Answers with this status where a path ends with this.
    fn refuse(&self, status: u16, end: &'static str) {
        *self.said.refuses.lock() = Some((status, end));
    }

    fn answer_all(&self) {
        *self.said.refuses.lock() = None;
    }

    /// Returns how often a schema was asked for and given.
    fn asked(&self, id: u32) -> usize {
        let path = format!("/api/schemas/ids/{id}");
        self.said.asked.lock().iter().filter(|asked| **asked == path).count()
    }
}

impl Said {
    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let path = request.uri().path().to_owned();
        let status = |status| HttpResponse::build(actix_web::http::StatusCode::from_u16(status).unwrap());
        if let Some((refused, end)) = *self.refuses.lock()
            && path.ends_with(end)
        {
            return status(refused).body("x".repeat(100));
        }
        // rolltop:let-me-in
        let key = request.headers().get("authorization").and_then(|key| key.to_str().ok());
        if key != Some("Basic cm9sbHRvcDpsZXQtbWUtaW4=") {
            return status(401).finish();
        }
        let Some(answer) = self.answers.get(&path) else {
            return status(404).json(json!({"error_code": 40403, "message": "Schema not found"}));
        };
        self.asked.lock().push(path);
        HttpResponse::Ok().json(answer)
    }
}

/// A topic whose values have schemas.
struct Written {
    broker: FakeBroker,
    producer: Producer,
}

impl Written {
    async fn start() -> Result<Self, KrafkaError> {
        let broker = FakeBroker::start().await.unwrap();
        broker.create_topic("likes", 1);
        let producer = Kafka::builder(broker.bootstrap_servers()).connect().await?.producer().build().await?;
        Ok(Self { broker, producer })
    }

    fn source(&self, registry: &TestRegistry, password: &str) -> String {
        let (brokers, port) = (self.broker.bootstrap_servers(), registry.port);
        format!(
            "kafka = {{ brokers = \"{brokers}\", topic = \"likes\" }}\ndead_letters = \"dead.ndjson\"\n\
             registry = {{ url = \"http://127.0.0.1:{port}/api/\", user = \"rolltop\", password = \"{password}\" }}\n\
             [source.event]\ntype = \"like\"\nat = \"time\"\nfields = {{ post_id = \"post.id\" }}"
        )
    }

    async fn add(&self, schema: u32, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let id = post(number);
            let now = chrono::Utc::now();
            let text = [&[id.len() as u8], id.as_bytes()].concat();
            let value = match schema {
                PROTOBUF => {
                    let mut time = vec![8];
                    prost::encoding::encode_varint(now.timestamp() as u64, &mut time);
                    [&[4, 2, 2, 10, text.len() as u8 + 1, 10], &text[..], &[18, time.len() as u8], &time[..]].concat()
                }
                JSON => json!({"post": {"id": id}, "time": now.timestamp_millis()}).to_string().into_bytes(),
                _ => {
                    let mut value = vec![2, 2 * text[0]];
                    value.extend_from_slice(id.as_bytes());
                    prost::encoding::encode_varint(2 * now.timestamp_micros() as u64, &mut value);
                    value
                }
            };
            self.add_value([&[0], &schema.to_be_bytes()[..], &value[..]].concat()).await;
        }
        self.producer.flush().await.unwrap();
    }

    async fn add_value(&self, value: Vec<u8>) {
        let _ = self.producer.send(Record::new("likes", value)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_all_kinds_count_once_while_the_registry_comes_and_goes() {
    let Some(setting) = Setting::start().await else { return };
    let (registry, topic) = (TestRegistry::start(), Written::start().await.unwrap());
    registry.refuse(503, "");
    topic.add(AVRO, 0..100).await;
    let mut consumer = setting.consume("likes", &topic.source(&registry, "let-me-in"), &["--define"]);
    let (_, detail) = consumer.in_state("likes", "failing").await;
    assert!(detail.contains("does not give schema 1: it answers 503"), "{detail}");
    assert!(setting.likes("hot-posts").await.is_empty());
    registry.answer_all();
    setting.counted("hot-posts", &expected(0..100)).await;

    topic.add(PROTOBUF, 100..200).await;
    topic.add(UNKNOWN, 0..1).await;
    topic.add_value(vec![0, 0, 0, 0, 1, 200]).await;
    topic.add_value(b"no schema".to_vec()).await;
    topic.add_value(vec![0, 0, 0, 0, 3, b' ']).await;
    topic.add(JSON, 200..210).await;
    setting.counted("hot-posts", &expected(0..210)).await;
    let letters = std::fs::read_to_string(setting.path("dead.ndjson")).unwrap();
    let letters: Vec<Value> = letters.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let detail = |at: usize| letters[at]["detail"].as_str().unwrap();
    assert!(detail(0).contains("no schemas/ids/99"), "{letters:?}");
    assert!(
        detail(1).contains("not what its schema 1 says") && letters[1]["message"]["base64"] == "AAAAAAHI",
        "{letters:?}"
    );
    assert!(detail(2).contains("a zero and the id") && letters[2]["message"] == "no schema", "{letters:?}");
    assert!(detail(3).contains("not what its schema 3 says: it is empty"), "{letters:?}");
    assert_eq!(letters.len(), 4);

    // What is known does not need the registry, and what follows waits for it.
    registry.refuse(500, "");
    topic.add(PROTOBUF, 210..220).await;
    setting.counted("hot-posts", &expected(0..220)).await;
    consumer.kill().await;
    registry.refuse(500, "/70000");
    topic.add(PROTOBUF, 220..230).await;
    topic.add(LATER, 230..240).await;
    topic.add(AVRO, 240..250).await;
    consumer.start();
    setting.counted("hot-posts", &expected(0..230)).await;
    consumer.in_state("likes", "failing").await;
    registry.answer_all();
    setting.counted("hot-posts", &expected(0..250)).await;
    // Once by the program that was killed, and once by the other.
    assert_eq!([AVRO, PROTOBUF, JSON, LATER].map(|id| registry.asked(id)), [2, 2, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_refuses_passes_nothing_and_check_and_fill_read_its_values() {
    let Some(setting) = Setting::start().await else { return };
    let (registry, topic) = (TestRegistry::start(), Written::start().await.unwrap());
    topic.add(AVRO, 0..50).await;
    topic.add(UNKNOWN, 0..1).await;
    let mut consumer = setting.consume("likes", &topic.source(&registry, "a-secret"), &["--define"]);
    let (_, detail) = consumer.in_state("likes", "failing").await;
    assert!(detail.contains("it answers 401"), "{detail}");
    consumer.kill().await;
    // A wrong URL is answered with 404, too, which says of no schema that it is unknown.
    let wrong = topic.source(&registry, "let-me-in");
    registry.refuse(404, "");
    let mut consumer = setting.consume("likes", &wrong, &["--define"]);
    let (_, detail) = consumer.in_state("likes", "failing").await;
    assert!(detail.contains("it answers 404"), "{detail}");
    consumer.kill().await;
    // Nothing listens.
    registry.server.stop(false).await;
    let mut consumer = setting.consume("likes", &wrong, &["--define"]);
    let (_, detail) = consumer.in_state("likes", "failing").await;
    assert!(detail.contains("does not give schema 1"), "{detail}");
    consumer.kill().await;
    let log = consumer.log();
    assert!(!log.contains("a-secret") && !log.contains("let-me-in"), "{log}");
    assert!(setting.likes("hot-posts").await.is_empty());

    let registry = TestRegistry::start();
    let consumer = setting.consume("likes", &topic.source(&registry, "let-me-in"), &["--define"]);
    setting.counted("hot-posts", &expected(0..50)).await;
    let board = json!({"metric": "COUNT(7d, like, post_id)", "slot": "1d"});
    let request = setting.client().request::<Value>(rolltop_client::Method::PUT, "/v1/boards/hot-week").json(&board);
    request.await.unwrap();
    topic.add(PROTOBUF, 50..60).await;
    setting.counted("hot-week", &expected(50..60)).await;
    let config = consumer.config().to_owned();
    let (is_well, text) = command(setting.folder.path(), &["check", &config]).await;
    assert!(is_well && text.contains(r#""type":"like","fields":{"post_id":"post-0"}"#), "{text}");
    let (is_well, text) =
        command(setting.folder.path(), &["fill", &config, "--source", "likes", "--board", "hot-week"]).await;
    assert!(is_well && text.contains("hot-week is filled"), "{text}");
    setting.counted("hot-week", &expected(0..60)).await;
    setting.counted("hot-posts", &expected(0..60)).await;
}
