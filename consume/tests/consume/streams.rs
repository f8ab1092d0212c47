//! Streams of Redis.

use std::ops::Range;
use std::time::Duration;

use redis::aio::MultiplexedConnection;

use crate::kills::{TestLog, survive};
use crate::redis_server::{Engine, RedisServer};
use crate::running::{Setting, expected, like};

struct Stream {
    server: RedisServer,
    connection: MultiplexedConnection,
}

impl Stream {
    async fn start() -> Self {
        let engine = Engine::available().swap_remove(0);
        let server =
            RedisServer::start_with(&engine, &["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        let connection = Self::connect(&server).await;
        Self { server, connection }
    }

    async fn connect(server: &RedisServer) -> MultiplexedConnection {
        redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }

    async fn ask(&mut self, words: &[&str]) {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        let _: redis::Value = command.query_async(&mut self.connection).await.unwrap();
    }
}

impl TestLog for Stream {
    fn source(&self) -> String {
        format!("redis = {{ url = \"{}\", stream = \"likes\", field = \"event\" }}\ntake_over = 1", self.server.url())
    }

    async fn add(&mut self, numbers: Range<u64>) {
        for first in numbers.clone().step_by(200) {
            let mut pipe = redis::pipe();
            for number in first..(first + 200).min(numbers.end) {
                pipe.cmd("XADD").arg("likes").arg("*").arg("event").arg(like(number).to_string()).ignore();
            }
            let _: () = pipe.query_async(&mut self.connection).await.unwrap();
        }
    }

    async fn restart(&mut self) {
        self.server.restart();
        self.connection = Self::connect(&self.server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_counts_once_with_two_readers_and_kills() {
    let Some(mut setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    let (added, mut readers) = survive(&mut setting, &mut stream, (40, 1_500, 3)).await;
    // Whoever stands by goes on alone.
    readers[0].kill().await;
    stream.add(added..added + 100).await;
    setting.counted("hot-posts", &expected(0..added + 100)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_behind_another_stands_by() {
    let Some(setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    stream.add(0..1_000).await;
    let source = format!("{}0000", stream.source());
    let first = setting.consume("likes", &source, &["--define"]);
    setting.counted("hot-posts", &expected(0..1_000)).await;
    // While messages come without an end, one of two is always ahead of the other.
    let second = setting.consume("likes", &source, &[]);
    let mut added = 1_000;
    let wait = crate::waiting::Wait::begin("one that stands by");
    loop {
        stream.add(added..added + 50).await;
        added += 50;
        let (one, other) = (first.state("likes").await.1, second.state("likes").await.1);
        if one["state"] == "standing_by" || other["state"] == "standing_by" {
            break;
        }
        wait.rest((one, other)).await;
    }
    setting.counted("hot-posts", &expected(0..added)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_trimmed_is_said_and_may_stop_the_source() {
    let Some(setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    stream.add(0..10).await;
    let source = format!("{}\non_gap = \"stop\"", stream.source());
    let mut consumer = setting.consume("likes", &source, &["--define"]);
    setting.counted("hot-posts", &expected(0..10)).await;
    consumer.kill().await;
    stream.add(10..20).await;
    stream.ask(&["XTRIM", "likes", "MAXLEN", "0"]).await;
    consumer.start();
    let (_, detail) = consumer.in_state("likes", "stopped").await;
    assert!(detail.contains("was trimmed"), "{detail}");
    consumer.kill().await;
    stream.add(20..30).await;
    stream.ask(&["XTRIM", "likes", "MAXLEN", "5"]).await;
    consumer.start();
    let (is_well, detail) = consumer.in_state("likes", "stopped").await;
    assert!(!is_well && detail.contains("was trimmed") && detail.contains("--pass-gaps"), "{detail}");
    setting.counted("hot-posts", &expected(0..10)).await;
    consumer.kill().await;
    let _passing = setting.consume("likes", &source, &["--pass-gaps"]);
    setting.counted("hot-posts", &expected((0..10).chain(25..30))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_made_anew_stops_the_source() {
    let Some(setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    stream.add(0..10).await;
    let mut consumer = setting.consume("likes", &stream.source(), &["--define"]);
    setting.counted("hot-posts", &expected(0..10)).await;
    consumer.kill().await;
    // While it is read, or not.
    consumer.start();
    consumer.in_state("likes", "reading").await;
    stream.ask(&["DEL", "likes"]).await;
    stream.ask(&["XADD", "likes", "5-1", "event", &like(1).to_string()]).await;
    consumer.in_state("likes", "stopped").await;
    consumer.start_again().await;
    let (is_well, detail) = consumer.in_state("likes", "stopped").await;
    assert!(!is_well && detail.contains("made anew"), "{detail}");
    // That stays so, also when the stream has become longer than what was counted.
    stream.add(10..20).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    setting.counted("hot-posts", &expected(0..10)).await;
    assert_eq!(consumer.state("likes").await.1["state"], "stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_end_was_deleted_is_read_to_its_end() {
    let Some(setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    stream.add(0..10).await;
    stream.ask(&["XADD", "likes", "9999999999999-0", "event", "x"]).await;
    stream.ask(&["XDEL", "likes", "9999999999999-0"]).await;
    let mut consumer = setting.consume("likes", &stream.source(), &["--define", "--until-end"]);
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.counted("hot-posts", &expected(0..10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_begun_at_its_end_is_begun_once() {
    let Some(setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    stream.add(0..10).await;
    let source = format!("{}\nbegin = \"latest\"", stream.source());
    let mut consumer = setting.consume("likes", &source, &["--define"]);
    consumer.in_state("likes", "reading").await;
    consumer.kill().await;
    // What comes before it has sent any event is not passed.
    stream.add(10..20).await;
    consumer.start();
    setting.counted("hot-posts", &expected(10..20)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_board_is_filled_from_the_past() {
    let Some(setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    stream.add(0..3_000).await;
    let consumer = setting.consume("likes", &stream.source(), &["--define"]);
    setting.counted("hot-posts", &expected(0..3_000)).await;
    let board = serde_json::json!({"metric": "COUNT(7d, like, post_id)", "slot": "1d"});
    let path = "/v1/boards/hot-week";
    let defined = setting.client().request::<serde_json::Value>(rolltop_client::Method::PUT, path).json(&board);
    defined.await.unwrap();
    stream.add(3_000..3_100).await;
    setting.counted("hot-posts", &expected(0..3_100)).await;
    setting.counted("hot-week", &expected(3_000..3_100)).await;
    let arguments = ["fill", consumer.config(), "--source", "likes", "--board", "hot-week"];
    let (is_well, text) = crate::running::command(setting.folder.path(), &arguments).await;
    assert!(is_well && text.contains("hot-week is filled"), "{text}");
    setting.counted("hot-week", &expected(0..3_100)).await;
    setting.counted("hot-posts", &expected(0..3_100)).await;
}

/// What is counted and not in the log any more cannot be filled, and is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_fill_ends_where_the_newest_entries_are_deleted() {
    let Some(setting) = Setting::start().await else { return };
    let mut stream = Stream::start().await;
    stream.add(0..100).await;
    let consumer = setting.consume("likes", &stream.source(), &["--define"]);
    setting.counted("hot-posts", &expected(0..100)).await;
    setting.define("hot-week").await;
    let newest = &["likes", "+", "-", "COUNT", "10"];
    let ids: Vec<(String, redis::Value)> =
        redis::cmd("XREVRANGE").arg(newest).query_async(&mut stream.connection).await.unwrap();
    for (id, _) in ids {
        stream.ask(&["XDEL", "likes", &id]).await;
    }
    let arguments = ["fill", consumer.config(), "--source", "likes", "--board", "hot-week"];
    let (is_well, text) = crate::running::command(setting.folder.path(), &arguments).await;
    assert!(is_well && text.contains("hot-week is filled"), "{text}");
    setting.counted("hot-week", &expected(0..90)).await;
    stream.add(100..120).await;
    setting.counted("hot-week", &expected((0..90).chain(100..120))).await;
}
