//! The logs of a source of the configuration, each with its feed: one, or the partitions of topics, which may become more.

mod reading;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use rolltop_client::Service;
use tokio::sync::watch;

use crate::choices::Choices;
use crate::config::SourceConfig;
use crate::dead_letters::{DeadLetterFile, DeadLetterPlace, DeadLetters};
use crate::events::{self, Mapping};
use crate::feed::{Feed, Remembered};
use crate::log::{GroupOffsets, Log, LogError, TopicWriter};
use crate::schemas::{self, Schemas};
use crate::seen::{AllSeen, FeedSeen};
use crate::source::ServiceSource;

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
