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

/// Why a message was not written.
#[derive(Debug)]
pub enum WriteError {
    /// It is longer than the topic takes: it would be refused again and again.
    TooLong(anyhow::Error),
    Other(anyhow::Error),
}

impl From<WriteError> for anyhow::Error {
    fn from((WriteError::TooLong(error) | WriteError::Other(error)): WriteError) -> Self {
        error
    }
}

impl TopicWriter {
    pub fn new(config: &KafkaConfig, topic: &str) -> Self {
        let (config, topic) = (config.clone(), topic.to_owned());
        Self { config, topic, producer: Mutex::default(), has_failed: AtomicBool::new(false) }
    }

    /// Writes messages. Returns how many of the first ones all replicas in sync have, and why the next one is not written.
    pub async fn write(&self, messages: impl Iterator<Item = Message> + Send) -> (usize, Result<(), WriteError>) {
        let producer = match self.producer().await {
            Ok(producer) => producer,
            Err(error) => return (0, Err(WriteError::Other(error))),
        };
        let (mut sent, mut written) = (Vec::new(), 0);
        // What follows a message that is not written is not written again and again with it.
        let mut waits = self.has_failed.load(Ordering::Relaxed);
        let mut failed: Option<KrafkaError> = None;
        for message in messages {
            let handle = match producer.enqueue(self.record(message)).await {
                Ok(handle) => handle,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            if !std::mem::take(&mut waits) {
                sent.push(handle);
                continue;
            }
            match handle.await {
                Ok(_) => written += 1,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            self.has_failed.store(false, Ordering::Relaxed);
        }
        // In their order: the first that is not written is the one to go on with.
        for handle in sent {
            match handle.await {
                Ok(_) => written += 1,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let Some(error) = failed else { return (written, Ok(())) };
        self.has_failed.store(true, Ordering::Relaxed);
        self.give_up(&producer).await;
        let is_too_long = is_too_long(&error);
        let error = self.wrong(error);
        (written, Err(if is_too_long { WriteError::TooLong(error) } else { WriteError::Other(error) }))
    }

    fn wrong(&self, error: KrafkaError) -> anyhow::Error {
        plain(error).context(format!("cannot write to the topic '{}'", self.topic))
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
        let producer = Arc::new(producer.await.map_err(|error| self.wrong(error))?);
        *known = Some(producer.clone());
        Ok(producer)
    }

    /// Forgets a producer, so that what comes next connects again.
    async fn give_up(&self, producer: &Arc<Producer>) {
        let mut known = self.producer.lock().await;
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, producer))
            && let Some(producer) = known.take()
        {
            // What it has not written is written by the next one.
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
