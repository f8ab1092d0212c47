//! Reading the logs of a source, also those that there are later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

use super::{SourceLogs, same_partition};
use crate::choices::Begin;
use crate::feed::{FeedEnd, PATIENCE};
use crate::log::{Log, LogError, NoLog};
use crate::seen::{FeedSeen, FeedState};

/// How often it is looked for new partitions, and for any while there are none.
const LOOK: Duration = Duration::from_secs(30);
const LOOK_FOR_ANY: Duration = Duration::from_secs(2);

/// The logs of a source that are read.
struct Reading {
    of: SourceLogs,
    define: bool,
    until_end: bool,
    feeds: JoinSet<FeedEnd>,
    known: BTreeMap<String, ReadLog>,
    /// The names of those that were read and are gone.
    gone: BTreeSet<String>,
    /// What is said while there is no log that could say it.
    none: Arc<FeedSeen>,
    has_looked: bool,
    /// Whether there was a log that cannot be read at all.
    has_wrong: bool,
    /// Number of looks in a row that have failed.
    failures: u32,
}

/// A log that is read.
struct ReadLog {
    task: AbortHandle,
    seen: Arc<FeedSeen>,
    partition: Option<(String, i32)>,
}

impl SourceLogs {
    /// Reads the logs until told to stop, also those that there are later. Or those that there are now, each to its end;
    /// returns whether that is reached.
    pub async fn read(self, define: bool, until_end: bool) -> bool {
        let may_grow = !until_end && self.config.log().is_ok_and(|log| log.may_grow());
        let mut stop = self.stop.clone();
        let (end, ended) = oneshot::channel();
        let group = self.group.clone().zip(self.config.kafka.clone());
        let group = group.map(|(group, kafka)| tokio::spawn(group.say(self.config.name.clone(), kafka, ended)));
        let mut reading = Reading::new(self, define, until_end);
        let begun = Instant::now();
        loop {
            match reading.of.open().await {
                Ok(logs) => {
                    reading.begin(logs);
                    if !may_grow && (!reading.known.is_empty() || until_end) {
                        break;
                    }
                }
                Err(error) => {
                    let is_final = matches!(error, LogError::Stop(_)) || (until_end && begun.elapsed() >= PATIENCE);
                    reading.fail(error, is_final);
                    if until_end && is_final {
                        return false;
                    }
                }
            }
            if tokio::time::timeout(reading.pause(), stop.wait_for(|stop| *stop)).await.is_ok() {
                break;
            }
        }
        let all_through = reading.ended().await;
        drop(end);
        if let Some(group) = group {
            let _ = group.await;
        }
        if !until_end {
            // Those that have ended by themselves are seen as stopped until somebody has looked.
            let _ = stop.wait_for(|stop| *stop).await;
        }
        all_through
    }
}

impl Reading {
    fn new(of: SourceLogs, define: bool, until_end: bool) -> Self {
        let none = Arc::new(FeedSeen::of_no_log(&of.config.name));
        let (feeds, known, gone) = (JoinSet::new(), BTreeMap::new(), BTreeSet::new());
        Self { of, define, until_end, feeds, known, gone, none, has_looked: false, has_wrong: false, failures: 0 }
    }

    /// Reads those of the logs that there are now which are not read yet.
    fn begin(&mut self, logs: Vec<(String, Box<dyn Log>)>) {
        self.leave_those_gone(&logs);
        self.of.all.lock().retain(|other| !Arc::ptr_eq(other, &self.none));
        // All of what comes while this program runs is new, and nobody can have removed its source.
        let is_new = std::mem::replace(&mut self.has_looked, true);
        let define_new = !self.known.is_empty();
        let mut wrong = None;
        self.failures = 0;
        for (name, log) in logs {
            let is_known = |name: &str| self.known.contains_key(name);
            if is_known(&name) || same_partition(&name).is_some_and(is_known) {
                continue;
            }
            let define = self.define || (define_new && !self.gone.contains(&name));
            match self.of.feed(name.clone(), log, define, self.until_end) {
                Ok(mut feed) => {
                    if is_new {
                        feed.choices.begin = Begin::Earliest;
                    }
                    let seen = feed.seen.clone();
                    let partition = feed.log.partition().map(|(topic, number)| (topic.to_owned(), number));
                    let task = self.feeds.spawn(feed.run());
                    self.known.insert(name, ReadLog { task, seen, partition });
                }
                Err(error) => {
                    self.has_wrong = true;
                    wrong = Some(format!("{error:#}"));
                }
            }
        }
        if let Some(why) = wrong {
            self.say(FeedState::Stopped(why));
        }
    }

    /// Says that it cannot be looked which logs there are. Those that were there go on being read.
    fn fail(&mut self, error: LogError, is_final: bool) {
        let may_pass = matches!(error, LogError::Later(_));
        let error = anyhow::Error::from(error);
        let is_no_log = error.is::<NoLog>();
        if may_pass && is_no_log {
            self.leave_those_gone(&[]);
        }
        if may_pass && !self.known.is_empty() {
            tracing::warn!(source = self.of.config.name, "cannot look for new partitions: {error:#}");
            return;
        }
        match is_no_log {
            true => self.has_looked = true,
            false => self.failures += 1,
        }
        let why = format!("{error:#}");
        self.say(if is_final { FeedState::Stopped(why) } else { FeedState::Failing(why) });
    }

    /// Says what is the matter where there is no log that could say it.
    fn say(&self, state: FeedState) {
        self.none.set(state);
        let mut all = self.of.all.lock();
        if !all.iter().any(|other| Arc::ptr_eq(other, &self.none)) {
            all.push(self.none.clone());
        }
    }

    /// Reads those logs no longer that are gone, if they may be: topics that were deleted.
    fn leave_those_gone(&mut self, logs: &[(String, Box<dyn Log>)]) {
        let Self { of, known, gone, .. } = self;
        if !of.config.log().is_ok_and(|log| log.may_shrink()) {
            return;
        }
        known.retain(|name, ReadLog { task, seen, partition }| {
            let is_there = logs.iter().any(|(other, _)| other == name || same_partition(other) == Some(name));
            if !is_there {
                task.abort();
                if let (Some(group), Some((topic, number))) = (&of.group, partition) {
                    group.forget(topic, *number);
                }
                seen.set_behind(Some(0), Some(0.0));
                seen.set(FeedState::Gone);
                of.all.lock().retain(|other| !Arc::ptr_eq(other, seen));
                gone.insert(name.clone());
            }
            is_there
        });
    }

    /// Returns how long it is waited before the next look. The pause grows with each failure, such as a wrong password.
    fn pause(&self) -> Duration {
        let pause = if self.known.is_empty() { LOOK_FOR_ANY * 2_u32.saturating_pow(self.failures) } else { LOOK };
        pause.min(LOOK)
    }

    /// Waits until all feeds have ended. Returns whether each is at the end of its log.
    async fn ended(&mut self) -> bool {
        let mut all_through = self.until_end && !self.has_wrong;
        while let Some(ended) = self.feeds.join_next().await {
            all_through &= matches!(ended, Ok(FeedEnd::Through));
        }
        all_through
    }
}
