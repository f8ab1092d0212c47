//! Logs: what is read, one message after the other.

mod files;
mod kafka;
mod nats;
mod redis_stream;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::choices::Begin;

pub use files::FileConfig;
pub use kafka::{GroupOffsets, KafkaConfig, TopicWriter};
pub use nats::NatsConfig;
pub use redis_stream::RedisConfig;

/// The largest portion that is read at once: messages, and bytes of their values, the last message not counted. The service
/// counts as many at a time.
pub const MAX_MESSAGES: usize = 5_000;
pub const MAX_BYTES: usize = 2 << 20;

/// A message. Positions grow from message to message, with any gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub position: u128,
    /// When the log took the message, in Unix milliseconds.
    pub time: Option<i64>,
    pub key: Option<Bytes>,
    pub headers: Vec<(String, Option<Bytes>)>,
    /// `None` if it has none, as what marks a key of Kafka as deleted.
    pub value: Option<Bytes>,
    /// The value as it was, if it is JSON by now.
    pub encoded: Option<Bytes>,
    /// Why its value is not what it should be, or it has none although it should have one.
    pub fault: Option<Cow<'static, str>>,
}

/// Where to go in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// To what follows this position.
    After(u128),
    /// To the message at this position, which is read again.
    Again(u128),
    Begin(Begin),
}

impl LogPlace {
    /// Returns the position up to which the log was read before.
    pub fn counted(self) -> Option<u128> {
        match self {
            Self::After(position) | Self::Again(position) => Some(position),
            Self::Begin(_) => None,
        }
    }
}

/// A position after which a log goes on: `None` for its start.
pub type After = Option<u128>;

/// Where a log goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The position before the place where it is begun. `None` for its start, and if it is not begun.
    pub after: After,
    /// That messages are missing after the place that was asked for, and which, for people.
    pub gap: Option<String>,
}

/// An ordered log, which is read by one task.
///
/// An error ends what was being done. The log can be asked to go to a place again then, and connects anew.
#[async_trait]
pub trait Log: Send {
    /// Goes to a place, from which [`read`](Log::read) goes on.
    async fn go_to(&mut self, place: LogPlace) -> Result<Arrival, LogError>;

    /// Returns the next messages, up to [`MAX_MESSAGES`] and [`MAX_BYTES`]. Waits up to a second for the first. Is not
    /// called again after an error before the log has gone to a place.
    async fn read(&mut self) -> Result<Vec<Message>, LogError>;

    /// Asks how long the log is, where what is read does not say that. Called every few seconds.
    async fn refresh(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    /// Returns how much of the log is left after what was read last: messages, or for files bytes. `None` if the log cannot
    /// say.
    fn left(&self) -> Option<u64>;

    /// Returns how much these messages are, in the same unit.
    fn size(&self, messages: &[Message]) -> u64 {
        messages.len() as u64
    }

    /// Asks whether nothing is left after what was read last, if that is not known. Called when there was nothing to read.
    async fn is_at_end(&mut self) -> Result<bool, LogError>;

    /// Returns whether there is a log. Of one that is not there nobody knows what it had.
    fn is_there(&self) -> bool {
        true
    }

    /// Returns the topic and the number, if the log is a partition of one.
    fn partition(&self) -> Option<(&str, i32)> {
        None
    }
}

/// Why a log cannot be read.
#[derive(Debug)]
pub enum LogError {
    /// It may go well later, such as after a broker has come back.
    Later(anyhow::Error),
    /// Somebody has to look: the log is not what it was.
    Stop(anyhow::Error),
}

impl LogError {
    /// Returns an error that may pass, of what was tried.
    pub fn later(tried: impl fmt::Display, error: impl Into<anyhow::Error>) -> Self {
        Self::Later(error.into().context(tried.to_string()))
    }

    /// Returns one that somebody has to look at.
    pub fn stop(text: impl fmt::Display) -> Self {
        Self::Stop(anyhow::anyhow!("{text}"))
    }
}

impl From<LogError> for anyhow::Error {
    fn from((LogError::Later(error) | LogError::Stop(error)): LogError) -> Self {
        error
    }
}

/// There is no log yet, such as a topic that nobody has created. It may come.
#[derive(Debug)]
pub struct NoLog(pub String);

impl fmt::Display for NoLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoLog {}

/// What kind of log, and where it is.
#[derive(Clone, Debug)]
pub enum LogConfig {
    File(FileConfig),
    Redis(RedisConfig),
    Kafka(KafkaConfig),
    Nats(NatsConfig),
}

/// Returns the time of a line, in Unix milliseconds, if it has one.
pub type TimeOf = Arc<dyn Fn(&[u8]) -> Option<i64> + Send + Sync>;

impl LogConfig {
    /// Returns the logs, each with the name of its source: of topics, one for each partition that there is now.
    pub async fn open(&self, name: &str, time_of: TimeOf) -> Result<Vec<(String, Box<dyn Log>)>, LogError> {
        let one = |log: Box<dyn Log>| vec![(name.to_owned(), log)];
        Ok(match self {
            Self::File(config) => one(Box::new(files::FileLog::new(config.clone(), time_of))),
            Self::Redis(config) => one(Box::new(redis_stream::RedisLog::new(config)?)),
            Self::Nats(config) => one(Box::new(nats::NatsLog::new(config)?)),
            Self::Kafka(config) => {
                let open = |(name, partition)| {
                    let log: Box<dyn Log> = Box::new(kafka::KafkaLog::new(config, partition));
                    (name, log)
                };
                kafka::partitions(config, name).await?.into_iter().map(open).collect()
            }
        })
    }

    /// Returns whether messages are any bytes, and not texts by what the log is.
    pub fn has_bytes(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Redis(config) => config.has_bytes(),
            Self::Kafka(_) | Self::Nats(_) => true,
        }
    }

    /// Returns whether there may be more logs later.
    pub fn may_grow(&self) -> bool {
        matches!(self, Self::Kafka(_))
    }

    /// Returns whether there may be fewer later, and that is how it should be.
    pub fn may_shrink(&self) -> bool {
        matches!(self, Self::Kafka(config) if config.may_shrink())
    }
}
