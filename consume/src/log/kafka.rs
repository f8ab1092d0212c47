//! A partition of a topic of Kafka. The position of a message is its offset.
//!
//! A topic that is deleted and created again begins at offset 0 again. So the names of sources have 32 bits of the topic's id:
//! another topic of the same name is another source.

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRecord, IsolationLevel};
use krafka::{Kafka, KrafkaError};
use serde::Deserialize;
use tokio::runtime::Handle;

use super::{Arrival, Log, LogError, LogPlace, MAX_BYTES, MAX_MESSAGES, Message};
use crate::choices::Begin;
use crate::variables::with_variables;

const WAIT: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(10);

/// Where the topic is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaConfig {
    /// The brokers to begin with, `host:port`, with commas between them.
    brokers: String,
    topic: String,
    /// The partitions to read; by default all.
    partitions: Option<Vec<i32>>,
    /// How to prove who this is. By default it is not proved.
    sasl: Option<Sasl>,
    tls: Option<Tls>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sasl {
    #[serde(default)]
    mechanism: Mechanism,
    #[serde(default)]
    user: String,
    /// The password, or the token of `oauthbearer`.
    password: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum Mechanism {
    #[default]
    #[serde(rename = "plain")]
    Plain,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
    #[serde(rename = "oauthbearer")]
    OauthBearer,
}

/// TLS; an empty table trusts the well-known authorities.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    ca: Option<PathBuf>,
}

/// A topic by its identity: one that is created again has the same name and another id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    number: i32,
    topic_id: [u8; 16],
}

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

/// A consumer that takes its leave when it is given up.
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

impl Partition {
    /// Returns what the name of the partition's source ends with.
    pub fn suffix(&self) -> String {
        let words =
            self.topic_id.chunks_exact(4).map(|word| word.iter().fold(0, |id, byte| (id << 8) | u32::from(*byte)));
        let id = words.fold(0, |id, word| id ^ word);
        // A broker that is too old has no ids.
        if id == 0 { format!("-{}", self.number) } else { format!("-{}.{id:08x}", self.number) }
    }
}

impl KafkaConfig {
    async fn connect(&self) -> Result<Kafka, LogError> {
        let security = self.security().map_err(|error| LogError::Stop(error.context("[source.kafka]")))?;
        let client = Kafka::builder(self.brokers.clone()).client_id("rolltop-consume").connect_timeout(CONNECT);
        let client = client.security(security).connect().await;
        client.map_err(|error| LogError::later(format!("cannot connect to {}", self.brokers), error))
    }

    fn security(&self) -> anyhow::Result<AuthConfig> {
        let security = match &self.sasl {
            None => AuthConfig::plaintext(),
            Some(Sasl { mechanism, user, password }) => {
                let (user, password) = (with_variables(user)?, with_variables(password)?);
                match mechanism {
                    Mechanism::Plain => AuthConfig::sasl_plain(user, password),
                    Mechanism::ScramSha256 => AuthConfig::sasl_scram_sha256(user, password),
                    Mechanism::ScramSha512 => AuthConfig::sasl_scram_sha512(user, password),
                    Mechanism::OauthBearer => AuthConfig::sasl_oauthbearer(password),
                }
            }
        };
        Ok(match &self.tls {
            None => security,
            Some(Tls { ca: None }) => security.with_tls(TlsConfig::new()),
            Some(Tls { ca: Some(path) }) => {
                security.with_tls(TlsConfig::new().with_ca_cert(path.display().to_string()))
            }
        })
    }

    fn wrong(&self, error: KrafkaError) -> LogError {
        LogError::later(format!("cannot read the topic '{}'", self.topic), error)
    }
}

/// Returns the partitions that the topic has now.
pub async fn partitions(config: &KafkaConfig) -> Result<Vec<Partition>, LogError> {
    let kafka = config.connect().await?;
    let consumer = Reader::new(kafka.consumer_without_group().build().await.map_err(|error| config.wrong(error))?);
    let metadata = consumer.fetch_metadata(Some(&config.topic)).await.map_err(|error| config.wrong(error))?;
    let topic = metadata.topics.into_iter().find(|topic| topic.name == config.topic);
    let topic = topic.ok_or_else(|| LogError::Later(anyhow::anyhow!("there is no topic '{}'", config.topic)))?;
    let is_wanted = |number: &i32| config.partitions.as_ref().is_none_or(|wanted| wanted.contains(number));
    let mut numbers: Vec<i32> = topic.partitions.keys().copied().filter(is_wanted).collect();
    numbers.sort_unstable();
    Ok(numbers.into_iter().map(|number| Partition { number, topic_id: topic.topic_id }).collect())
}

impl KafkaLog {
    pub fn new(config: &KafkaConfig, partition: Partition) -> Self {
        Self { config: config.clone(), partition, consumer: None, next: 0, end: None }
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
        let consumer = consumer.await.map_err(|error| self.config.wrong(error))?;
        let assigned = consumer.assign(&self.config.topic, vec![self.partition.number]).await;
        assigned.map_err(|error| self.config.wrong(error))?;
        Ok(consumer)
    }

    /// Fails if the topic is another one by now.
    async fn check_identity(&self, consumer: &Consumer) -> Result<(), LogError> {
        let topic = &self.config.topic;
        let metadata = consumer.fetch_metadata(None).await.map_err(|error| self.config.wrong(error))?;
        let is = metadata.topics.iter().find(|there| there.name == *topic).map(|there| there.topic_id);
        match is {
            Some(id) if id != self.partition.topic_id => Err(LogError::stop(format!(
                "the topic '{topic}' was deleted and created again: the new one is a source of its own, with another name"
            ))),
            _ => Ok(()),
        }
    }

    async fn ends(&self, consumer: &Consumer) -> Result<(i64, i64), LogError> {
        let ends = consumer.fetch_watermarks(&self.config.topic, self.partition.number).await;
        ends.map_err(|error| self.config.wrong(error))
    }

    fn message(record: ConsumerRecord) -> Option<Message> {
        let headers = record.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.clone()?)));
        Some(Message {
            position: u128::try_from(record.offset).ok()?,
            time: (record.timestamp > 0).then_some(record.timestamp),
            headers: headers.collect(),
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
        let (topic, number) = (&self.config.topic, self.partition.number);
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
                let found = found.into_values().next().unwrap_or(Ok(-1)).map_err(|error| self.config.wrong(error))?;
                let next = if found < 0 { high } else { found };
                (next, u128::try_from(next - 1).ok())
            }
        };
        let gap = (next < low).then(|| format!("messages {next} to {} of {topic}-{number} were deleted", low - 1));
        self.next = next.max(low);
        self.end = None;
        consumer.seek(topic, number, self.next).await.map_err(|error| self.config.wrong(error))?;
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
                let (topic, number, next) = (&self.config.topic, self.partition.number, self.next);
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
            Err(error) => return Err(self.config.wrong(error)),
        };
        self.check_identity(&consumer).await?;
        if let Some(first) = records.first().filter(|first| first.offset < self.next) {
            // The client has gone back to where the partition's new leader has an end.
            let (topic, number, next) = (&self.config.topic, self.partition.number, self.next);
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

    fn is_at_end(&self) -> bool {
        self.left() == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_source_says_which_topic_it_is() {
        let mut topic_id = [0; 16];
        let suffix = |topic_id| Partition { number: 7, topic_id }.suffix();
        assert_eq!(suffix(topic_id), "-7");
        topic_id[..4].copy_from_slice(&[0x5f, 0x1c, 0x2a, 0x9d]);
        topic_id[15] = 2;
        assert_eq!(suffix(topic_id), "-7.5f1c2a9f");
    }
}
