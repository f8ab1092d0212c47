//! The logs of a source of the configuration, each with its feed: one, or the partitions of topics, which may become more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rolltop_client::Service;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::choices::{Begin, Choices};
use crate::config::SourceConfig;
use crate::dead_letters::{DeadLetterFile, DeadLetterPlace, DeadLetters};
use crate::events::{self, Mapping};
use crate::feed::{Feed, FeedEnd, PATIENCE, Remembered};
use crate::log::{GroupOffsets, Log, LogError, NoLog, TopicWriter};
use crate::schemas::{self, Schemas};
use crate::seen::{AllSeen, FeedSeen, FeedState};
use crate::source::ServiceSource;

/// How often it is looked for new partitions, and for any while there are none.
const LOOK: Duration = Duration::from_secs(30);
const LOOK_FOR_ANY: Duration = Duration::from_secs(2);

/// What is needed to read the logs of a source.
pub struct SourceLogs {
    service: Service,
    config: SourceConfig,
    mapping: Arc<Mapping>,
    schemas: Option<Arc<Schemas>>,
    /// The board that is filled, if one is.
    fill: Option<String>,
    all: AllSeen,
    stop: watch::Receiver<bool>,
    /// The topic of dead letters, if it is one.
    writer: Option<Arc<TopicWriter>>,
    group: Option<Arc<GroupOffsets>>,
}

/// A log that is read.
struct ReadLog {
    task: AbortHandle,
    seen: Arc<FeedSeen>,
    partition: Option<(String, i32)>,
}

impl SourceLogs {
    pub fn new(
        service: Service,
        config: SourceConfig,
        fill: Option<String>,
        all: &AllSeen,
        stop: &watch::Receiver<bool>,
    ) -> anyhow::Result<Self> {
        if let Some(DeadLetterPlace::File(path)) = &config.dead_letters {
            // It is better known now than with the first of them.
            DeadLetterFile::open(path)
                .with_context(|| format!("source '{}': cannot write {}", config.name, path.display()))?;
        }
        let mapping = Arc::new(Mapping::new(config.event.clone()));
        let schemas = config.schemas()?;
        let kafka = config.kafka.as_ref();
        let writer = kafka.zip(config.dead_letter_topic()).map(|(kafka, topic)| TopicWriter::new(kafka, topic));
        let group = kafka.filter(|kafka| kafka.group.is_some() && fill.is_none()).map(|_| GroupOffsets::default());
        let (writer, group) = (writer.map(Arc::new), group.map(Arc::new));
        Ok(Self { service, config, mapping, schemas, fill, all: all.clone(), stop: stop.clone(), writer, group })
    }

    /// Returns the logs that there are now, each with the name of its source.
    pub async fn open(&self) -> Result<Vec<(String, Box<dyn Log>)>, LogError> {
        open(&self.config, &self.mapping, self.schemas.as_ref()).await
    }

    /// Returns the feed of a log. With `define`, the source is defined if the service does not know it.
    pub fn feed(&self, name: String, log: Box<dyn Log>, define: bool, until_end: bool) -> anyhow::Result<Feed> {
        let SourceConfig { begin, on_unreadable, on_gap, take_over, dead_letters, boards, .. } = &self.config;
        let take_over = Duration::from_secs(*take_over);
        let partition = log.partition().map(|(topic, number)| (topic.to_owned(), number));
        let dead_letters = match (dead_letters, &self.writer, partition) {
            (Some(DeadLetterPlace::File(path)), ..) => Some(DeadLetters::File(DeadLetterFile::open(path)?)),
            (_, Some(writer), Some(partition)) => Some(DeadLetters::Topic(writer.clone(), partition)),
            _ => None,
        };
        let seen = Arc::new(FeedSeen::new(&name));
        let mut all = self.all.lock();
        if all.iter().any(|other| other.source == name) {
            // Such as `a` with `topics` of which one is `b`, and `a-b` with the `topic` b.
            bail!("another source of the configuration is '{name}', too: give one of them another name");
        }
        all.push(seen.clone());
        drop(all);
        Ok(Feed {
            source: ServiceSource::new(self.service.clone(), name, self.fill.clone()),
            log,
            mapping: self.mapping.clone(),
            choices: Choices { begin: *begin, on_unreadable: *on_unreadable, on_gap: *on_gap, take_over, until_end },
            dead_letters,
            group: self.group.clone(),
            seen,
            define: boards.clone().filter(|_| define),
            stop: self.stop.clone(),
            remembered: Remembered::default(),
        })
    }

    /// Reads the logs until told to stop, also those that there are later. Or those that there are now, each to its end;
    /// returns whether that is reached.
    pub async fn read(self, define: bool, until_end: bool) -> bool {
        let none = Arc::new(FeedSeen::of_no_log(&self.config.name));
        let (mut feeds, mut known, mut stop) = (JoinSet::new(), BTreeMap::new(), self.stop.clone());
        let (begun, mut has_looked, mut failures) = (Instant::now(), false, 0);
        let may_grow = !until_end && self.config.log().is_ok_and(|log| log.may_grow());
        let (end, ended) = oneshot::channel();
        let group = self.group.clone().zip(self.config.kafka.clone());
        let group = group.map(|(group, kafka)| tokio::spawn(group.say(self.config.name.clone(), kafka, ended)));
        let (mut gone, mut has_wrong) = (BTreeSet::new(), false);
        loop {
            let found = self.open().await;
            match &found {
                Ok(logs) => gone.extend(self.leave_those_gone(&mut known, logs)),
                Err(LogError::Later(error)) if error.is::<NoLog>() => {
                    gone.extend(self.leave_those_gone(&mut known, &[]))
                }
                Err(_) => {}
            }
            match found {
                Ok(logs) => {
                    self.all.lock().retain(|other| !Arc::ptr_eq(other, &none));
                    // All of what comes while this program runs is new, and nobody can have removed its source.
                    let is_new = std::mem::replace(&mut has_looked, true);
                    let define_new = !known.is_empty();
                    let mut wrong = None;
                    failures = 0;
                    for (name, log) in logs {
                        if known.contains_key(&name) || same_partition(&name).is_some_and(|old| known.contains_key(old))
                        {
                            continue;
                        }
                        let define = define || (define_new && !gone.contains(&name));
                        match self.feed(name.clone(), log, define, until_end) {
                            Ok(mut feed) => {
                                if is_new {
                                    feed.choices.begin = Begin::Earliest;
                                }
                                let seen = feed.seen.clone();
                                let partition = feed.log.partition().map(|(topic, number)| (topic.to_owned(), number));
                                known.insert(name, ReadLog { task: feeds.spawn(feed.run()), seen, partition });
                            }
                            Err(error) => {
                                has_wrong = true;
                                wrong = Some(format!("{error:#}"));
                            }
                        }
                    }
                    if let Some(why) = wrong {
                        self.say_of_none(&none, FeedState::Stopped(why));
                    }
                    if !may_grow && (!known.is_empty() || until_end) {
                        break;
                    }
                }
                // Logs that were there go on being read.
                Err(error @ LogError::Later(_)) if !known.is_empty() => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!(source = self.config.name, "cannot look for new partitions: {error:#}");
                }
                Err(error) => {
                    let is_final = matches!(error, LogError::Stop(_)) || (until_end && begun.elapsed() >= PATIENCE);
                    let error = anyhow::Error::from(error);
                    match error.is::<NoLog>() {
                        true => has_looked = true,
                        false => failures += 1,
                    }
                    let why = format!("{error:#}");
                    self.say_of_none(&none, if is_final { FeedState::Stopped(why) } else { FeedState::Failing(why) });
                    if until_end && is_final {
                        return false;
                    }
                }
            }
            // The pause grows with each failure, such as a wrong password.
            let pause = if known.is_empty() { LOOK_FOR_ANY * 2_u32.saturating_pow(failures) } else { LOOK };
            if tokio::time::timeout(pause.min(LOOK), stop.wait_for(|stop| *stop)).await.is_ok() {
                break;
            }
        }
        let mut all_through = until_end && !has_wrong;
        while let Some(ended) = feeds.join_next().await {
            all_through &= matches!(ended, Ok(FeedEnd::Through));
        }
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

    /// Says what is the matter where there is no log that could say it.
    fn say_of_none(&self, none: &Arc<FeedSeen>, state: FeedState) {
        none.set(state);
        let mut all = self.all.lock();
        if !all.iter().any(|other| Arc::ptr_eq(other, none)) {
            all.push(none.clone());
        }
    }

    /// Reads those logs no longer that are gone, if they may be: topics that were deleted. Returns their names.
    fn leave_those_gone(&self, known: &mut BTreeMap<String, ReadLog>, logs: &[(String, Box<dyn Log>)]) -> Vec<String> {
        let mut gone = Vec::new();
        if !self.config.log().is_ok_and(|log| log.may_shrink()) {
            return gone;
        }
        known.retain(|name, ReadLog { task, seen, partition }| {
            let is_there = logs.iter().any(|(other, _)| other == name || same_partition(other) == Some(name));
            if !is_there {
                task.abort();
                if let (Some(group), Some((topic, number))) = (&self.group, partition) {
                    group.forget(topic, *number);
                }
                seen.set_behind(Some(0), Some(0.0));
                seen.set(FeedState::Gone);
                self.all.lock().retain(|other| !Arc::ptr_eq(other, seen));
                gone.push(name.clone());
            }
            is_there
        });
        gone
    }
}

/// Returns the logs of a source that there are now, each with the name of its source, and with JSON in place of values that
/// have a schema.
pub async fn open(
    config: &SourceConfig,
    mapping: &Arc<Mapping>,
    schemas: Option<&Arc<Schemas>>,
) -> Result<Vec<(String, Box<dyn Log>)>, LogError> {
    let log = config.log().map_err(LogError::Stop)?;
    let logs = log.open(&config.name, events::time_of(mapping, config.clock())).await?;
    Ok(schemas::decoded(logs, schemas))
}

/// Returns the name under which a partition may be read that has this one: without the id of the topic, because the brokers had
/// none yet. Under the new name it would be counted again.
fn same_partition(name: &str) -> Option<&str> {
    let (plain, id) = name.rsplit_once('.')?;
    (id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_gets_an_id_is_the_same() {
        assert_eq!(same_partition("n-a.b-1.5f1c2a9d"), Some("n-a.b-1"));
        // Another topic, of brokers without ids.
        assert_eq!(same_partition("n-a-1.b-0"), None);
        assert_eq!(same_partition("n-0"), None);
    }
}
