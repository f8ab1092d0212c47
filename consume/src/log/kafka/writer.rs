//! Writing messages to a topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krafka::error::{ErrorCode, ProtocolErrorKind};
use krafka::producer::{Acks, Producer, Record};
use krafka::{Compression, KrafkaError};
use tokio::sync::Mutex;

use super::super::Message;
use super::KafkaConfig;
use super::brokers::plain;

/// How long is waited for a place to write to, and for what is written to be acknowledged.
const PLACE: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(15);
const REQUEST: Duration = Duration::from_secs(10);
/// How many bytes may be on their way.
const MEMORY: usize = 32 << 20;

/// A topic that is written to. It is connected to with the first message.
#[derive(Debug)]
pub struct TopicWriter {
    config: KafkaConfig,
    topic: String,
    producer: Mutex<Option<Arc<Producer>>>,
    /// Whether something was not written. Then the first message is waited for before others follow.
    has_failed: AtomicBool,
}

impl TopicWriter {
    pub fn new(config: &KafkaConfig, topic: &str) -> Self {
        let (config, topic) = (config.clone(), topic.to_owned());
        Self { config, topic, producer: Mutex::default(), has_failed: AtomicBool::new(false) }
    }

    /// Writes messages, and what `short` makes of one in its place if it is longer than the topic takes. Returns how many of the
    /// first ones all replicas in sync have, and why the next one is not written.
    pub async fn write(
        &self,
        messages: &[Message],
        short: impl Fn(&Message) -> Message + Sync,
    ) -> (usize, anyhow::Result<()>) {
        let producer = match self.producer().await {
            Ok(producer) => producer,
            Err(error) => return (0, Err(error)),
        };
        // What follows a message that is not written is not written again and again with it.
        let first = usize::from(self.has_failed.load(Ordering::Relaxed)).min(messages.len());
        let mut written = 0;
        for part in [&messages[..first], &messages[first..]] {
            let (more, result) = self.write_part(&producer, part, &short).await;
            written += more;
            if let Err(error) = result {
                self.has_failed.store(true, Ordering::Relaxed);
                self.give_up(&producer).await;
                return (written, Err(plain(error).context(format!("cannot write to the topic '{}'", self.topic))));
            }
            if more > 0 {
                self.has_failed.store(false, Ordering::Relaxed);
            }
        }
        (written, Ok(()))
    }

    /// Writes messages at once.
    async fn write_part(
        &self,
        producer: &Producer,
        part: &[Message],
        short: &(impl Fn(&Message) -> Message + Sync),
    ) -> (usize, Result<(), KrafkaError>) {
        let mut sent = Vec::with_capacity(part.len());
        for next in part {
            let on_its_way = producer.enqueue(self.record(next.clone())).await;
            let goes_on = on_its_way.as_ref().err().is_none_or(is_too_long);
            sent.push((next, on_its_way));
            if !goes_on {
                break;
            }
        }
        // In their order: the first that is not written is the one to go on with.
        let mut written = 0;
        for (next, on_its_way) in sent {
            let mut result = match on_its_way {
                Ok(handle) => handle.await.map(drop),
                Err(error) => Err(error),
            };
            // Alone: what was sent with it may have been too long.
            if result.as_ref().err().is_some_and(is_too_long) {
                result = producer.send(self.record(next.clone())).await.map(drop);
            }
            if result.as_ref().err().is_some_and(is_too_long) {
                result = producer.send(self.record(short(next))).await.map(drop);
            }
            if result.is_err() {
                return (written, result);
            }
            written += 1;
        }
        (written, Ok(()))
    }

    fn record(&self, message: Message) -> Record {
        let mut record = Record::tombstone(&self.topic, message.key.clone().unwrap_or_default());
        (record.key, record.value, record.headers) = (message.key, message.value, message.headers);
        record
    }

    async fn producer(&self) -> anyhow::Result<Arc<Producer>> {
        let mut known = self.producer.lock().await;
        if let Some(producer) = &*known {
            return Ok(producer.clone());
        }
        let kafka = self.config.connect_within(REQUEST).await?;
        let producer = kafka
            .producer()
            .acks(Acks::All)
            // Brokers compare what is sent with the longest message that they take, which may have come compressed.
            .compression(Compression::Gzip)
            // A message that is written twice is better than a right that is needed for that.
            .idempotent(false)
            .max_block(PLACE)
            .delivery_timeout(ANSWER)
            .buffer_memory(MEMORY)
            .metrics_push(false)
            .build();
        let producer = Arc::new(producer.await.map_err(plain)?);
        *known = Some(producer.clone());
        Ok(producer)
    }

    /// Forgets a producer, so that what comes next connects again.
    async fn give_up(&self, producer: &Arc<Producer>) {
        let mut known = self.producer.lock().await;
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, producer))
            && let Some(producer) = known.take()
        {
            // What is on its way is written all the same.
            tokio::spawn(async move { producer.close().await });
        }
    }
}

/// Returns whether a message is not written because of its length: by what the broker says, or the client before that.
fn is_too_long(error: &KrafkaError) -> bool {
    match error {
        KrafkaError::Broker { code, .. } => matches!(code, ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge),
        KrafkaError::Protocol { kind, .. } => *kind == ProtocolErrorKind::FrameTooLarge,
        // All else that is configured was so for messages before.
        KrafkaError::Config { .. } => true,
        _ => false,
    }
}
