//! Streams of NATS JetStream, of a real server.

use std::ops::Range;
use std::path::PathBuf;
use std::process::Stdio;

use async_nats::jetstream::{self, Context};
use tokio::process::{Child, Command};

use crate::kills::{TestLog, survive};
use crate::running::{Setting, command, expected, like, now};
use crate::support::free_port;
use crate::waiting::Wait;

struct Nats {
    program: PathBuf,
    port: u16,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl Nats {
    /// Starts a server. `None` if there is no program of it here.
    async fn start() -> Option<Self> {
        let named = std::env::var_os("ROLLTOP_TEST_NATS").filter(|path| !path.is_empty()).map(PathBuf::from);
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let on_path = || {
            let mut all =
                std::env::split_paths(&paths).chain(["/usr/sbin".into()]).map(|path| path.join("nats-server"));
            all.find(|path| path.exists())
        };
        let Some(program) = named.or_else(on_path) else {
            eprintln!("skipped: there is no nats-server");
            return None;
        };
        let mut nats = Self { program, port: free_port(), folder: tempfile::tempdir().unwrap(), process: None };
        nats.start_again().await;
        Some(nats)
    }

    async fn start_again(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.unwrap();
        }
        let process = Command::new(&self.program)
            .args(["--jetstream", "--addr", "127.0.0.1", "--port", &self.port.to_string(), "--store_dir"])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        self.process = Some(process.unwrap());
        let wait = Wait::begin("a server of NATS");
        while async_nats::connect(self.url()).await.is_err() {
            wait.rest("no connection").await;
        }
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Returns a source of one subject of the stream, of which each message is a like of it.
    fn source_of_a_subject(&self) -> String {
        format!(
            "nats = {{ url = \"{}\", stream = \"likes\", subject = \"likes.3\" }}\n[source.event]\ntype = \"like\"\nfields = \
             {{ post_id = \"$key\" }}",
            self.url()
        )
    }

    async fn context(&self) -> Context {
        jetstream::new(async_nats::connect(self.url()).await.unwrap())
    }

    async fn create(&self) {
        let subjects = vec!["likes.>".to_owned()];
        let config = jetstream::stream::Config { name: "likes".to_owned(), subjects, ..Default::default() };
        let (context, wait) = (self.context().await, Wait::begin("a stream"));
        while let Err(error) = context.create_stream(config.clone()).await {
            wait.rest(error.to_string()).await;
        }
    }
}

impl TestLog for Nats {
    fn source(&self) -> String {
        format!("nats = {{ url = \"{}\", stream = \"likes\" }}\ntake_over = 1", self.url())
    }

    async fn add(&mut self, numbers: Range<u64>) {
        let context = self.context().await;
        let mut stored = Vec::new();
        for number in numbers {
            let subject = format!("likes.{}", number % 7);
            stored.push(context.publish(subject, like(number).to_string().into()).await.unwrap());
        }
        for stored in stored {
            stored.await.unwrap();
        }
    }

    async fn restart(&mut self) {
        self.start_again().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_nats_counts_once_with_two_readers_and_kills() {
    let Some(mut nats) = Nats::start().await else { return };
    let Some(mut setting) = Setting::start().await else { return };
    nats.create().await;
    let (sent, _readers) = survive(&mut setting, &mut nats, (30, 400, 11)).await;
    // A stream that is made anew goes on: its positions are larger.
    nats.context().await.delete_stream("likes").await.unwrap();
    nats.create().await;
    nats.add(sent..sent + 50).await;
    setting.counted("hot-posts", &expected(0..sent + 50)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_nats_is_begun_at_its_end_and_read_by_subject() {
    let Some(mut nats) = Nats::start().await else { return };
    let Some(setting) = Setting::start().await else { return };
    nats.create().await;
    nats.add(0..20).await;
    let source = format!("begin = \"latest\"\n{}", nats.source_of_a_subject());
    let mut consumer = setting.consume("likes", &source, &["--define"]);
    consumer.in_state("likes", "reading").await;
    consumer.kill().await;
    nats.add(20..34).await;
    consumer.start();
    setting.counted("hot-posts", &[("likes.3".to_owned(), 2)].into()).await;
}

/// The last messages of the subject are deleted, and others come after them.
#[tokio::test(flavor = "multi_thread")]
async fn a_subject_is_read_and_filled_up_to_its_end() {
    let Some(mut nats) = Nats::start().await else { return };
    let Some(setting) = Setting::start().await else { return };
    nats.create().await;
    nats.add(0..35).await;
    let source = nats.source_of_a_subject();
    let mut consumer = setting.consume("likes", &source, &["--define", "--until-end"]);
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.counted("hot-posts", &[("likes.3".to_owned(), 5)].into()).await;
    setting.define("hot-week").await;
    let stream = nats.context().await.get_stream("likes").await.unwrap();
    for sequence in [25, 32] {
        stream.delete_message(sequence).await.unwrap();
    }
    let fill = ["fill", consumer.config(), "--source", "likes", "--board", "hot-week"];
    let (is_well, text) = command(setting.folder.path(), &fill).await;
    assert!(is_well, "{text}");
    setting.counted("hot-week", &[("likes.3".to_owned(), 3)].into()).await;
    stream.purge().await.unwrap();
    consumer.start();
    assert!(consumer.ended().await, "{}", consumer.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_nats_is_begun_once_at_a_time() {
    let Some(mut nats) = Nats::start().await else { return };
    let Some(setting) = Setting::start().await else { return };
    nats.create().await;
    nats.add(0..20).await;
    // The server's clock is this one, and the time has no more than milliseconds.
    let (added, wait) = (now(), Wait::begin("the next millisecond"));
    while now() == added {
        wait.rest(&added).await;
    }
    let source = format!("begin = \"{}\"\n{}", now(), nats.source());
    // There is nothing from that time on, and what comes later is found from there.
    let mut consumer = setting.consume("likes", &source, &["--define", "--until-end"]);
    assert!(consumer.ended().await, "{}", consumer.log());
    nats.add(20..30).await;
    consumer.start();
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.counted("hot-posts", &expected(20..30)).await;
}
