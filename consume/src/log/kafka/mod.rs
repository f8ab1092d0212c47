//! A partition of a topic of Kafka. The position of a message is its offset.
//!
//! A topic that is deleted and created again begins at offset 0 again. So the names of sources have 32 bits of the topic's id:
//! another topic of the same name is another source.

mod brokers;
mod group;
mod partitions;
mod topics;
mod writer;

use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use krafka::KrafkaError;
use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRecord, IsolationLevel};
use tokio::runtime::Handle;

use super::{Arrival, Log, LogError, LogPlace, MAX_BYTES, MAX_MESSAGES, Message};
use crate::choices::Begin;

pub use brokers::KafkaConfig;
use brokers::plain;
pub use group::GroupOffsets;
pub use partitions::{Partition, partitions};
pub use writer::TopicWriter;

const WAIT: Duration = Duration::from_secs(1);

/// A partition.
pub struct KafkaLog {
    config: KafkaConfig,
    partition: Partition,
    consumer: Option<Reader>,
    /// The offset of what is read next.
    next: i64,
    /// The offset after the last message that can be read, as the broker said last.
    end: Option<i64>,
}

/// A consumer that is closed when it is dropped.
struct Reader(Option<Consumer>);

impl Reader {
    fn new(consumer: Consumer) -> Self {
        Self(Some(consumer))
    }
}

impl Deref for Reader {
    type Target = Consumer;

    fn deref(&self) -> &Consumer {
        self.0.as_ref().expect("it is taken only when this is dropped")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let (Some(consumer), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { consumer.close().await });
        }
    }
}

impl KafkaLog {
    pub fn new(config: &KafkaConfig, partition: Partition) -> Self {
        Self { config: config.clone(), partition, consumer: None, next: 0, end: None }
    }

    fn wrong(&self, error: KrafkaError) -> LogError {
        LogError::later(format!("cannot read the topic '{}'", self.partition.topic), plain(error))
    }

    /// Returns a consumer of this partition. It has a connection of its own: a broker answers the requests of a connection one
    /// after the other, and one that waits for messages would hold up the others.
    async fn consumer(&self) -> Result<Consumer, LogError> {
        let kafka = self.config.connect().await?;
        let (records, bytes) = (MAX_MESSAGES as i32, MAX_BYTES as i32);
        let consumer = kafka
            .consumer_without_group()
            .isolation_level(IsolationLevel::ReadCommitted)
            .auto_offset_reset(AutoOffsetReset::None)
            .enable_auto_commit(false)
            .max_poll_records(records)
            .max_buffered_records(records)
            .fetch_max_bytes(bytes)
            .max_partition_fetch_bytes(bytes)
            .metrics_push(false)
            .build();
        let consumer = consumer.await.map_err(|error| self.wrong(error))?;
        let assigned = consumer.assign(&self.partition.topic, vec![self.partition.number]).await;
        assigned.map_err(|error| self.wrong(error))?;
        Ok(consumer)
    }

    /// Fails if the topic is another one by now.
    async fn check_identity(&self, consumer: &Consumer) -> Result<(), LogError> {
        let topic = &self.partition.topic;
        let metadata = consumer.fetch_metadata(None).await.map_err(|error| self.wrong(error))?;
        let is = metadata.topics.iter().find(|there| there.name == *topic).map(|there| there.topic_id);
        match is {
            Some(id) if id != self.partition.topic_id => Err(LogError::stop(format!(
                "the topic '{topic}' was deleted and created again: the new one is a source of its own, with another name"
            ))),
            _ => Ok(()),
        }
    }

    async fn ends(&self, consumer: &Consumer) -> Result<(i64, i64), LogError> {
        let ends = consumer.fetch_watermarks(&self.partition.topic, self.partition.number).await;
        ends.map_err(|error| self.wrong(error))
    }

    fn message(record: ConsumerRecord) -> Option<Message> {
        Some(Message {
            position: u128::try_from(record.offset).ok()?,
            time: (record.timestamp > 0).then_some(record.timestamp),
            headers: record.headers,
            key: record.key,
            value: record.value,
            ..Message::default()
        })
    }
}

#[async_trait]
impl Log for KafkaLog {
    async fn go_to(&mut self, place: LogPlace) -> Result<Arrival, LogError> {
        let consumer = match self.consumer.take() {
            Some(consumer) => consumer,
            None => Reader::new(self.consumer().await?),
        };
        self.check_identity(&consumer).await?;
        let (low, high) = self.ends(&consumer).await?;
        let (topic, number) = (&self.partition.topic, self.partition.number);
        let (next, after) = match place {
            LogPlace::After(position) => {
                let next = i64::try_from(position).unwrap_or(i64::MAX - 1) + 1;
                (next, None)
            }
            LogPlace::Again(position) => (i64::try_from(position).unwrap_or(i64::MAX), None),
            LogPlace::Begin(Begin::Earliest) => (low, None),
            LogPlace::Begin(Begin::Latest) => (high, u128::try_from(high - 1).ok()),
            LogPlace::Begin(Begin::At(time)) => {
                let found = consumer.offsets_for_times(&[(topic, number)], time.timestamp_millis()).await;
                let found = found.into_values().next().unwrap_or(Ok(-1)).map_err(|error| self.wrong(error))?;
                let next = if found < 0 { high } else { found };
                (next, u128::try_from(next - 1).ok())
            }
        };
        let gap = (next < low).then(|| format!("messages {next} to {} of {topic}-{number} were deleted", low - 1));
        self.next = next.max(low);
        self.end = None;
        consumer.seek(topic, number, self.next).await.map_err(|error| self.wrong(error))?;
        self.consumer = Some(consumer);
        Ok(Arrival { after, gap })
    }

    async fn read(&mut self) -> Result<Vec<Message>, LogError> {
        let Some(consumer) = self.consumer.take() else {
            return Err(LogError::Later(anyhow::anyhow!("not connected to {}", self.config.brokers)));
        };
        let records = match consumer.poll(WAIT).await {
            Ok(records) => records,
            Err(KrafkaError::NoOffset { .. }) => {
                let (low, _) = self.ends(&consumer).await?;
                let (topic, number, next) = (&self.partition.topic, self.partition.number, self.next);
                return Err(match self.next < low {
                    // What was deleted is found when the log goes to a place.
                    true => {
                        LogError::Later(anyhow::anyhow!("messages from {next} on of {topic}-{number} were deleted"))
                    }
                    false => LogError::stop(format!(
                        "{topic}-{number} has no offset {next}: the end of the partition was lost, and what is written there \
                         next would be taken for what is counted; to go on, give the source another name"
                    )),
                });
            }
            Err(error) => return Err(self.wrong(error)),
        };
        self.check_identity(&consumer).await?;
        if let Some(first) = records.first().filter(|first| first.offset < self.next) {
            // The client has gone back to where the partition's new leader has an end.
            let (topic, number, next) = (&self.partition.topic, self.partition.number, self.next);
            return Err(LogError::stop(format!(
                "{topic}-{number} goes on at {} and not at {next}: the end of the partition was lost, and what is written there \
                 now would be taken for what is counted; to go on, give the source another name",
                first.offset
            )));
        }
        if let Some(last) = records.last() {
            self.next = last.offset + 1;
        }
        let lag = consumer.lag().await;
        if let Some(lag) = lag.into_values().next() {
            self.end = lag.last_stable_offset.filter(|end| *end >= 0).or(lag.high_watermark);
            // Markers of transactions have offsets, too.
            if records.is_empty()
                && let Some(position) = lag.position
            {
                self.next = self.next.max(position);
            }
        }
        self.consumer = Some(consumer);
        Ok(records.into_iter().filter_map(Self::message).collect())
    }

    fn left(&self) -> Option<u64> {
        self.end.map(|end| u64::try_from(end - self.next).unwrap_or(0))
    }

    async fn is_at_end(&mut self) -> Result<bool, LogError> {
        Ok(self.left() == Some(0))
    }

    fn partition(&self) -> Option<(&str, i32)> {
        Some((&self.partition.topic, self.partition.number))
    }
}
