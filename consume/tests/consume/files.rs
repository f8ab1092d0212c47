//! Files that are written, rotated, cut and packed while they are read.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop_client::Method;

use crate::running::{Setting, command, expected, like, now};

/// A program that writes a log.
struct Writer {
    path: PathBuf,
    file: File,
    /// Number of rotations.
    rotated: u32,
    number: u64,
}

impl Writer {
    fn new(path: PathBuf) -> Self {
        let file = File::options().create(true).append(true).open(&path).unwrap();
        Self { path, file, rotated: 0, number: 0 }
    }

    /// Writes lines, at times only a part of one at first.
    fn write(&mut self, lines: u64, random: &mut StdRng) {
        for _ in 0..lines {
            let line = format!("{}\n", like(self.number));
            let cut = random.random_range(0..line.len());
            self.file.write_all(&line.as_bytes()[..cut]).unwrap();
            if random.random_ratio(1, 50) {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.file.write_all(&line.as_bytes()[cut..]).unwrap();
            self.number += 1;
        }
    }

    fn before(&self, rotation: u32) -> PathBuf {
        PathBuf::from(format!("{}.{rotation}", self.path.display()))
    }

    /// Gives the file another name, writes on to it for a moment as programs do, and begins a new one.
    fn rename(&mut self, random: &mut StdRng) {
        self.rotated += 1;
        fs::rename(&self.path, self.before(self.rotated)).unwrap();
        self.write(20, random);
        // No two files begin in the same millisecond.
        std::thread::sleep(Duration::from_millis(2));
        self.file = File::options().create(true).append(true).open(&self.path).unwrap();
    }

    /// Copies the file, and cuts it.
    fn copy_and_cut(&mut self) {
        self.rotated += 1;
        fs::copy(&self.path, self.before(self.rotated)).unwrap();
        self.file.set_len(0).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }

    /// Packs the file that was rotated last.
    fn pack(&self) {
        let path = self.before(self.rotated);
        if path.exists() {
            assert!(Command::new("gzip").arg(&path).status().unwrap().success());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_counts_once_over_rotations_and_kills() {
    let Some(mut setting) = Setting::start().await else { return };
    let path = setting.path("app.log");
    let mut consumer =
        setting.consume("app", "file = { path = \"app.log\", settle = 1 }\ntake_over = 1", &["--define"]);
    let mut random = StdRng::seed_from_u64(7);
    let mut writer = Writer::new(path);
    for round in 0..40_u32 {
        writer.write(random.random_range(10..400), &mut random);
        match round % 8 {
            1 | 5 => writer.rename(&mut random),
            3 => writer.copy_and_cut(),
            7 => writer.pack(),
            _ => {}
        }
        match round % 5 {
            0 => consumer.start_again().await,
            3 if round % 2 == 1 => {
                setting.service.kill().await;
                setting.service.start_again().await;
            }
            _ => tokio::time::sleep(Duration::from_millis(random.random_range(0..400))).await,
        }
    }
    setting.counted("hot-posts", &expected(0..writer.number)).await;
    // Read again from the start, nothing counts twice; told to stop, it ends.
    assert!(consumer.stop().await);
    consumer.start();
    consumer.in_state("app", "reading").await;
    setting.counted("hot-posts", &expected(0..writer.number)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_between_copy_and_cut_does_no_harm() {
    let Some(setting) = Setting::start().await else { return };
    let mut random = StdRng::seed_from_u64(1);
    let mut writer = Writer::new(setting.path("app.log"));
    let consumer = setting.consume("app", "file = { path = \"app.log\", settle = 1 }", &["--define"]);
    writer.write(10, &mut random);
    fs::copy(&writer.path, writer.before(1)).unwrap();
    writer.write(10, &mut random);
    setting.counted("hot-posts", &expected(0..20)).await;
    writer.file.set_len(0).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    writer.write(10, &mut random);
    setting.counted("hot-posts", &expected(0..30)).await;
    // A file that is gone is read to its end.
    fs::remove_file(&writer.path).unwrap();
    writer.write(10, &mut random);
    setting.counted("hot-posts", &expected(0..40)).await;
    consumer.in_state("app", "reading").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_files_are_read_to_the_end_of_the_last() {
    let Some(setting) = Setting::start().await else { return };
    let mut random = StdRng::seed_from_u64(1);
    let mut writer = Writer::new(setting.path("app.log"));
    for round in 0..4 {
        writer.write(100, &mut random);
        if round == 1 {
            // The program that wrote it has crashed.
            let line = like(writer.number).to_string();
            writer.file.write_all(line.as_bytes()).unwrap();
            writer.number += 1;
        }
        if round < 3 {
            writer.rotated += 1;
            fs::rename(&writer.path, writer.before(writer.rotated)).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            writer = Writer { rotated: writer.rotated, number: writer.number, ..Writer::new(writer.path.clone()) };
        }
        if round == 0 {
            writer.pack();
        }
    }
    let mut consumer =
        setting.consume("app", "file = { path = \"app.log\", settle = 1 }", &["--define", "--until-end"]);
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.counted("hot-posts", &expected(0..writer.number)).await;
    // What cannot go on is an error, and not waited for.
    let mut other = setting.consume("other", "file.path = \"app.log\"", &["--until-end"]);
    assert!(!other.ended().await);
    assert!(other.log().contains("unknown_source"), "{}", other.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_older_than_what_is_counted_stops_the_source() {
    let Some(setting) = Setting::start().await else { return };
    let path = setting.path("app.log");
    let line = |number: u64, at: &str| {
        let mut event = like(number);
        event["at"] = at.into();
        format!("{event}\n")
    };
    let today = chrono::Utc::now().format("%Y-%m-%d").to_string();
    fs::write(&path, line(0, &crate::running::now())).unwrap();
    let consumer = setting.consume("app", "file.path = \"app.log\"", &["--define"]);
    setting.counted("hot-posts", &expected([0])).await;
    fs::rename(&path, setting.path("app.log.1")).unwrap();
    fs::write(&path, line(1, &format!("{today}T00:00:00Z"))).unwrap();
    let (is_well, detail) = consumer.in_state("app", "stopped").await;
    assert!(!is_well && detail.contains("is older than that of"), "{detail}");
}

/// Of files that are not there, such as on a disk that is not mounted, nobody knows what they had.
#[tokio::test(flavor = "multi_thread")]
async fn a_fill_that_goes_on_does_not_end_without_files() {
    let Some(setting) = Setting::start().await else { return };
    let (path, away) = (setting.path("app.log"), setting.path("away"));
    let lines = |numbers: Range<u64>| -> String { numbers.map(|number| format!("{}\n", like(number))).collect() };
    let first = lines(0..50);
    fs::write(&path, &first).unwrap();
    let source = format!("file = {{ path = \"{}\" }}", path.display());
    let mut consumer = setting.consume("app", &source, &["--define", "--until-end"]);
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.define("hot-week").await;
    fs::write(&path, first + &lines(50..60)).unwrap();
    consumer.start();
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.counted("hot-week", &expected(50..60)).await;
    // The fill has begun, before all lines.
    let passed = serde_json::json!({"position": "1", "type": "none", "fields": {}, "at": now()});
    let begun = setting.client().request::<serde_json::Value>(Method::POST, "/v1/events");
    let begun = begun.parameter("source", "app").parameter("after", "start").parameter("fill", "hot-week");
    begun.json(&serde_json::json!({"events": [passed]})).await.unwrap();
    fs::rename(&path, &away).unwrap();
    let fill = ["fill", consumer.config(), "--source", "app", "--board", "hot-week"];
    let (is_filled, text) = command(setting.folder.path(), &fill).await;
    assert!(!is_filled && text.contains("the log is not there"), "{text}");
    fs::rename(&away, &path).unwrap();
    let (is_filled, text) = command(setting.folder.path(), &fill).await;
    assert!(is_filled, "{text}");
    setting.counted("hot-week", &expected(0..60)).await;
}
