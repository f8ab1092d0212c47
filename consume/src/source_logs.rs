//! The logs of a source of the configuration, each with its feed: one, or a topic's partitions, which may become more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rolltop_client::Service;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::choices::Choices;
use crate::config::SourceConfig;
use crate::dead_letters::DeadLetters;
use crate::events::{self, Mapping};
use crate::feed::{Feed, FeedEnd, PATIENCE, Remembered};
use crate::log::{Log, LogError};
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
}

impl SourceLogs {
    pub fn new(
        service: Service,
        config: SourceConfig,
        fill: Option<String>,
        all: &AllSeen,
        stop: &watch::Receiver<bool>,
    ) -> anyhow::Result<Self> {
        if let Some(path) = &config.dead_letters {
            // It is better known now than with the first of them.
            DeadLetters::open(path)
                .with_context(|| format!("source '{}': cannot write {}", config.name, path.display()))?;
        }
        let mapping = Arc::new(Mapping::new(config.event.clone()));
        let schemas = config.schemas()?;
        Ok(Self { service, config, mapping, schemas, fill, all: all.clone(), stop: stop.clone() })
    }

    /// Returns the logs that there are now, each with the name of its source.
    pub async fn open(&self) -> Result<Vec<(String, Box<dyn Log>)>, LogError> {
        let log = self.config.log().map_err(LogError::Stop)?;
        let logs = log.open(&self.config.name, events::time_of(&self.mapping, self.config.clock())).await?;
        Ok(schemas::decoded(logs, self.schemas.as_ref()))
    }

    /// Returns the feed of a log. With `define`, the source is defined if the service does not know it.
    pub fn feed(&self, name: String, log: Box<dyn Log>, define: bool, until_end: bool) -> anyhow::Result<Feed> {
        let SourceConfig { begin, on_unreadable, on_gap, take_over, dead_letters, boards, .. } = &self.config;
        let take_over = Duration::from_secs(*take_over);
        let dead_letters = dead_letters.as_deref().map(DeadLetters::open).transpose()?;
        let seen = Arc::new(FeedSeen::new(&name));
        self.all.lock().push(seen.clone());
        Ok(Feed {
            source: ServiceSource::new(self.service.clone(), name, self.fill.clone()),
            log,
            mapping: self.mapping.clone(),
            choices: Choices { begin: *begin, on_unreadable: *on_unreadable, on_gap: *on_gap, take_over, until_end },
            dead_letters,
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
        let (mut feeds, mut known, mut stop) = (JoinSet::new(), BTreeSet::new(), self.stop.clone());
        let begun = Instant::now();
        let may_grow = !until_end && self.config.log().is_ok_and(|log| log.may_grow());
        loop {
            match self.open().await {
                Ok(logs) => {
                    self.all.lock().retain(|other| !Arc::ptr_eq(other, &none));
                    // What comes while this program runs is new, and nobody can have removed its source.
                    let define = define || !known.is_empty();
                    for (name, log) in logs {
                        if known.contains(&name) || is_same_partition(&known, &name) {
                            continue;
                        }
                        match self.feed(name.clone(), log, define, until_end) {
                            Ok(feed) => drop(feeds.spawn(feed.run())),
                            Err(error) => {
                                tracing::error!(source = name, "{error:#}");
                                continue;
                            }
                        }
                        known.insert(name);
                    }
                    if !may_grow && !known.is_empty() {
                        break;
                    }
                }
                // Logs that were there go on being read.
                Err(error) if !known.is_empty() => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!(source = self.config.name, "cannot look for new partitions: {error:#}");
                }
                Err(error) => {
                    let is_final = matches!(error, LogError::Stop(_)) || (until_end && begun.elapsed() >= PATIENCE);
                    let why = format!("{:#}", anyhow::Error::from(error));
                    none.set(if is_final { FeedState::Stopped(why) } else { FeedState::Failing(why) });
                    if until_end && is_final {
                        return false;
                    }
                    let mut all = self.all.lock();
                    if !all.iter().any(|other| Arc::ptr_eq(other, &none)) {
                        all.push(none.clone());
                    }
                }
            }
            let pause = if known.is_empty() { LOOK_FOR_ANY } else { LOOK };
            if tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok() {
                break;
            }
        }
        let mut all_through = until_end;
        while let Some(ended) = feeds.join_next().await {
            all_through &= matches!(ended, Ok(FeedEnd::Through));
        }
        if !until_end {
            // Those that have ended by themselves are seen as stopped until somebody has looked.
            let _ = stop.wait_for(|stop| *stop).await;
        }
        all_through
    }
}

/// Returns whether a source is a partition that is read under a name without the id of the topic, because the brokers had
/// none yet: under the new name it would be counted again.
fn is_same_partition(known: &BTreeSet<String>, name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(plain, _)| known.contains(plain))
}
