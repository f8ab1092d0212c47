//! A client's ledger: the increments that it sent, and whether they were acknowledged.
//!
//! Increments are numbered. The number determines subject, amount and id. So only ranges of numbers are recorded, and
//! the same increments can be sent again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::running::Running;

/// The number of lines of one stream.
const LINES: u64 = 2_000;
/// The number of subjects. Consecutive numbers belong to different subjects.
const SUBJECTS: u64 = 20_000;

/// The increments sent to one board, and whether they were acknowledged.
pub struct Ledger {
    board: &'static str,
    sent: Mutex<Vec<Sent>>,
    stop: AtomicBool,
}

#[derive(Clone)]
struct Sent {
    numbers: Range<u64>,
    acknowledged: bool,
}

impl Ledger {
    pub fn new(board: &'static str) -> Arc<Self> {
        Arc::new(Self { board, sent: Mutex::default(), stop: AtomicBool::new(false) })
    }

    pub async fn define(&self, service: &Running) {
        let definition = json!({"metric": "SUM(30d, hit, weight, page)", "slot": "1d"});
        service.ok("PUT", &format!("/v1/boards/{}", self.board), Some(definition)).await;
    }

    /// Starts this many writers of streams and of single increments. Each ends after [`stop`](Self::stop), or when the
    /// service no longer responds.
    pub fn load(self: &Arc<Self>, service: &Running, streams: usize, singles: usize) -> Vec<JoinHandle<()>> {
        self.stop.store(false, Ordering::SeqCst);
        let lines = std::iter::repeat_n(LINES, streams).chain(std::iter::repeat_n(1, singles));
        let writer = |lines: u64| {
            let (ledger, client, base) = (Arc::clone(self), service.client.clone(), service.base.clone());
            tokio::spawn(async move {
                while !ledger.stop.load(Ordering::SeqCst) {
                    let at = ledger.claim(lines);
                    let numbers = ledger.sent.lock()[at].numbers.clone();
                    match ledger.send(&client, &base, numbers).await {
                        Some(true) => ledger.sent.lock()[at].acknowledged = true,
                        Some(false) => tokio::time::sleep(Duration::from_millis(20)).await,
                        None => return,
                    }
                }
            })
        };
        lines.map(writer).collect()
    }

    /// Stops the writers and waits for them.
    pub async fn stop(&self, writers: Vec<JoinHandle<()>>) {
        self.stop.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.await.expect("a writer");
        }
    }

    /// Returns the number of acknowledged increments.
    pub fn acknowledged(&self) -> u64 {
        let sent = self.sent.lock();
        sent.iter().filter(|sent| sent.acknowledged).map(|sent| sent.numbers.end - sent.numbers.start).sum()
    }

    /// Records that the next increments are being sent, before they are sent.
    fn claim(&self, count: u64) -> usize {
        let mut sent = self.sent.lock();
        let first = sent.last().map_or(0, |last| last.numbers.end);
        sent.push(Sent { numbers: first..first + count, acknowledged: false });
        sent.len() - 1
    }

    /// Sends a range, with ids. Returns whether all of it was acknowledged, or `None` if there was no response.
    async fn send(&self, client: &reqwest::Client, base: &str, numbers: Range<u64>) -> Option<bool> {
        let count = numbers.end - numbers.start;
        let url = format!("{base}/v1/boards/{}/increments", self.board);
        let media_type = if count == 1 { "application/json" } else { "application/x-ndjson" };
        let body: String = numbers.map(|number| Increment::of(number).json() + "\n").collect();
        let answer = client.post(url).header("content-type", media_type).body(body).send().await.ok()?;
        if !answer.status().is_success() {
            return Some(false);
        }
        let receipt: Value = answer.json().await.ok()?;
        let of = |field: &str| receipt[field].as_u64().unwrap_or_default();
        Some(of("accepted") + of("duplicates") == count)
    }

    /// Checks that the service has all acknowledged increments, and of the others no more than were sent.
    pub async fn check(&self, service: &Running) {
        let sent = self.sent.lock().clone();
        let all = totals(sent.iter());
        let owed = totals(sent.iter().filter(|sent| sent.acknowledged));
        let held = self.scores(service).await;
        for (subject, most) in &all {
            let (least, held) = (owed.get(subject).copied().unwrap_or(0), held.get(subject).copied().unwrap_or(0));
            assert!((least..=*most).contains(&held), "{subject}: acknowledged {least}, held {held}, sent {most}");
        }
        assert!(held.keys().all(|subject| all.contains_key(subject)));
        let audit = service.ok("POST", &format!("/v1/boards/{}/audit", self.board), None).await;
        assert_eq!(audit["differences"], 0, "{audit}");
    }

    /// Sends again everything from this entry on, with the same ids. After that, every increment counts exactly once.
    pub async fn settle(&self, service: &Running, from: usize) {
        let sent = self.sent.lock()[from..].to_vec();
        // Adjacent ranges are sent together, because many have only one number.
        let mut streams: Vec<Range<u64>> = Vec::new();
        for Sent { numbers, .. } in sent {
            match streams.last_mut() {
                Some(last) if numbers.end - last.start <= LINES => last.end = numbers.end,
                _ => streams.push(numbers),
            }
        }
        for numbers in streams {
            let settled = self.send(&service.client, &service.base, numbers.clone()).await;
            assert_eq!(settled, Some(true), "{numbers:?} sent again");
        }
        self.sent.lock()[from..].iter_mut().for_each(|sent| sent.acknowledged = true);
        self.check(service).await;
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.sent.lock().len()
    }

    /// Returns the whole ranking.
    async fn scores(&self, service: &Running) -> HashMap<String, u64> {
        let mut scores = HashMap::new();
        let first = format!("/v1/boards/{}/rankings?limit=1000", self.board);
        let mut next = Some(first.clone());
        while let Some(path) = next {
            let page = service.ok("GET", &path, None).await;
            for item in page["items"].as_array().expect("items") {
                let subject = item["subject"].as_str().expect("a subject");
                scores.insert(subject.to_owned(), item["score"].as_u64().expect("a score"));
            }
            next = page["next"].as_str().map(|cursor| format!("{first}&cursor={cursor}"));
        }
        scores
    }
}

/// Returns the sum sent for each subject.
fn totals<'a>(sent: impl Iterator<Item = &'a Sent>) -> HashMap<String, u64> {
    let mut totals = HashMap::new();
    for increment in sent.flat_map(|sent| sent.numbers.clone()).map(Increment::of) {
        *totals.entry(increment.subject).or_default() += increment.amount;
    }
    totals
}

struct Increment {
    subject: String,
    amount: u64,
    id: u64,
}

impl Increment {
    fn of(number: u64) -> Self {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        Self { subject: format!("page-{:x}", mixed % SUBJECTS), amount: 1 + number % 9, id: number }
    }

    fn json(&self) -> String {
        format!(r#"{{"subject":"{}","amount":{},"id":"i-{}"}}"#, self.subject, self.amount, self.id)
    }
}
