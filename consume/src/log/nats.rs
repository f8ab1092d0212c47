//! A stream of NATS JetStream.
//!
//! The position of a message is the time at which its stream was created, in milliseconds, × 2^64 + its sequence: a stream
//! that is deleted and created again goes on with larger positions.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::{Info, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Message as NatsMessage};
use async_nats::{Client, ConnectOptions};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Arrival, Log, LogError, LogPlace, MAX_BYTES, MAX_MESSAGES, Message};
use crate::choices::Begin;
use crate::variables::with_variables;

const WAIT: Duration = Duration::from_secs(1);
/// How long more messages are waited for after the first.
const MORE: Duration = Duration::from_millis(20);
const CONNECT: Duration = Duration::from_secs(10);

/// Where the stream is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// The server, such as `nats://127.0.0.1:4222`, with a user and a password if there are any.
    url: String,
    stream: String,
    /// The subject to read; by default all of the stream.
    subject: Option<String>,
    /// A file with credentials of an account.
    credentials: Option<std::path::PathBuf>,
}

/// A stream.
pub struct NatsLog {
    url: String,
    config: NatsConfig,
    client: Option<Client>,
    messages: Option<Ordered>,
    /// When the stream was created, in Unix milliseconds.
    created: u64,
    /// The sequence of the message that was read last.
    last: u64,
    /// Number of messages after it, as the server said with it.
    pending: Option<u64>,
    /// The sequence of the last message of the stream, which may be deleted, or of another subject.
    end: u64,
}

impl NatsLog {
    pub fn new(config: &NatsConfig) -> Result<Self, LogError> {
        let url = with_variables(&config.url).map_err(|error| LogError::Stop(error.context("[source.nats] url")))?;
        let config = config.clone();
        Ok(Self { url, config, client: None, messages: None, created: 0, last: 0, pending: None, end: 0 })
    }

    fn wrong(&self, error: impl Into<anyhow::Error>) -> LogError {
        LogError::later(format!("cannot read the stream '{}'", self.config.stream), error)
    }

    /// Returns the stream, with what the server says of it now.
    async fn stream(&mut self) -> Result<Stream<Info>, LogError> {
        if self.client.is_none() {
            let options = ConnectOptions::new().connection_timeout(CONNECT).name("rolltop-consume");
            let options = match &self.config.credentials {
                None => options,
                Some(path) => {
                    let options = options.credentials_file(path).await;
                    options.map_err(|error| LogError::later(format!("cannot read {}", path.display()), error))?
                }
            };
            self.client = Some(options.connect(&self.url).await.map_err(|error| self.wrong(error))?);
        }
        let client = self.client.clone().ok_or_else(|| self.wrong(anyhow::anyhow!("not connected")))?;
        let stream = timeout(CONNECT, jetstream::new(client).get_stream(&self.config.stream)).await;
        match stream {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(self.wrong(error)),
            Err(late) => {
                self.client = None;
                Err(self.wrong(late))
            }
        }
    }

    /// Returns the sequence of the last message that is there and is read; 0 if there is none.
    async fn last_there(&mut self) -> Result<u64, LogError> {
        let subject = self.config.subject.clone().unwrap_or_else(|| ">".to_owned());
        let stream = self.stream().await?;
        match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(message.sequence),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(0),
            Err(error) => Err(self.wrong(error)),
        }
    }

    fn position(&self, sequence: u64) -> u128 {
        (u128::from(self.created) << 64) | u128::from(sequence)
    }

    fn message(&mut self, message: &NatsMessage) -> Result<Message, LogError> {
        let info = message.info().map_err(|error| LogError::Later(anyhow::anyhow!("{error}")))?;
        if info.stream_sequence <= self.last {
            return Err(self.wrong(anyhow::anyhow!("message {} came after {}", info.stream_sequence, self.last)));
        }
        let time = Some(info.published.timestamp_millis());
        (self.last, self.pending) = (info.stream_sequence, Some(info.pending));
        let headers = message.headers.iter().flat_map(|headers| headers.iter());
        let headers = headers.flat_map(|(name, values)| {
            values.iter().map(|value| {
                let value = bytes::Bytes::copy_from_slice(value.as_str().as_bytes());
                (name.to_string(), Some(value))
            })
        });
        Ok(Message {
            position: self.position(self.last),
            time,
            key: Some(bytes::Bytes::copy_from_slice(message.subject.as_bytes())),
            headers: headers.collect(),
            value: Some(message.payload.clone()),
            ..Message::default()
        })
    }
}

#[async_trait]
impl Log for NatsLog {
    async fn go_to(&mut self, place: LogPlace) -> Result<Arrival, LogError> {
        self.messages = None;
        let stream = self.stream().await?;
        let info = stream.cached_info();
        let (first, last) = (info.state.first_sequence, info.state.last_sequence);
        (self.created, self.last, self.end) = (created(info), 0, last);
        let from = |start_sequence: u64| DeliverPolicy::ByStartSequence { start_sequence: start_sequence.max(1) };
        let shown = &self.config.stream;
        let mut gap = None;
        let (policy, mut after) = match place {
            LogPlace::Begin(Begin::Earliest) => (DeliverPolicy::All, None),
            LogPlace::Begin(Begin::Latest) => {
                self.last = last;
                (from(last + 1), (last > 0).then(|| self.position(last)))
            }
            LogPlace::Begin(Begin::At(time)) => (DeliverPolicy::ByStartTime { start_time: time }, None),
            LogPlace::After(position) | LogPlace::Again(position) => {
                let again = u64::from(matches!(place, LogPlace::Again(_)));
                let (created, sequence) = ((position >> 64) as u64, (position as u64).saturating_sub(again));
                if created > self.created {
                    return Err(LogError::stop(format!(
                        "the stream '{shown}' is older than the one of which messages are counted"
                    )));
                }
                let sequence = if created < self.created {
                    gap =
                        Some(format!("the stream '{shown}' was deleted and created again: it is read from its start"));
                    0
                } else {
                    sequence
                };
                if sequence > last {
                    return Err(LogError::stop(format!(
                        "the stream '{shown}' ends at {last}, but messages up to {sequence} are counted: its end was lost, and \
                         what is written there next would be taken for what is counted; to go on, give the source another name"
                    )));
                }
                // Of a subject nobody says what was deleted.
                if gap.is_none() && self.config.subject.is_none() && first > sequence + 1 {
                    gap = Some(format!("messages {} to {} of '{shown}' were deleted", sequence + 1, first - 1));
                }
                self.last = sequence;
                (from(sequence + 1), None)
            }
        };
        self.pending = None;
        let filter_subject = self.config.subject.clone().unwrap_or_default();
        let config = OrderedConfig { deliver_policy: policy, filter_subject, ..OrderedConfig::default() };
        let consumer = stream.create_consumer(config).await.map_err(|error| self.wrong(error))?;
        if let LogPlace::Begin(Begin::At(_)) = place {
            // The server has found the first message from that time on.
            self.last = consumer.cached_info().delivered.stream_sequence;
            after = Some(self.position(self.last));
        }
        self.messages = Some(consumer.messages().await.map_err(|error| self.wrong(error))?);
        Ok(Arrival { after, gap })
    }

    async fn read(&mut self) -> Result<Vec<Message>, LogError> {
        let Some(mut stream) = self.messages.take() else {
            return Err(self.wrong(anyhow::anyhow!("not connected")));
        };
        let (mut messages, mut bytes) = (Vec::new(), 0);
        let mut wait = WAIT;
        while messages.len() < MAX_MESSAGES && bytes < MAX_BYTES {
            match timeout(wait, stream.next()).await {
                Err(_) => break,
                Ok(Some(Ok(message))) => {
                    bytes += message.payload.len();
                    messages.push(self.message(&message)?);
                }
                Ok(Some(Err(error))) => return Err(self.wrong(error)),
                Ok(None) => return Err(self.wrong(anyhow::anyhow!("the server has ended the stream"))),
            }
            wait = MORE;
        }
        self.messages = Some(stream);
        // The client goes on by itself after failures, also with another stream of the same name.
        self.refresh().await?;
        Ok(messages)
    }

    async fn refresh(&mut self) -> Result<(), LogError> {
        let stream = self.stream().await?;
        let info = stream.cached_info();
        self.end = info.state.last_sequence;
        if created(info) != self.created {
            self.messages = None;
            return Err(self.wrong(anyhow::anyhow!("it was deleted and created again")));
        }
        Ok(())
    }

    fn left(&self) -> Option<u64> {
        self.pending.or((self.end <= self.last).then_some(0))
    }

    async fn is_at_end(&mut self) -> Result<bool, LogError> {
        Ok(self.end <= self.last || self.last_there().await? <= self.last)
    }
}

fn created(info: &Info) -> u64 {
    u64::try_from(info.created.timestamp_millis()).unwrap_or(0)
}
