//! A stream of Redis or Valkey.
//!
//! The position of an entry is the first number of its id × 2^64 + the second.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Value, cmd};
use serde::Deserialize;

use super::{Arrival, Log, LogError, LogPlace, MAX_BYTES, MAX_MESSAGES, Message};
use crate::choices::Begin;
use crate::variables::with_variables;

/// How long the server waits for an entry, in milliseconds.
const BLOCK: u64 = 1_000;
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(15);
/// The first Unix time in milliseconds that an id may mean. Ids may also be given by who writes.
const FIRST_TIME: u64 = 100_000_000_000;

/// Where the stream is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    url: String,
    stream: String,
    /// The field of an entry that is the message. By default an entry is an object of its fields, which are texts.
    field: Option<String>,
}

/// A stream.
pub struct RedisLog {
    client: redis::Client,
    config: RedisConfig,
    connection: Option<MultiplexedConnection>,
    /// The id of the entry that was read last.
    last: Id,
    /// That of the last entry there is.
    newest: Id,
    /// Whether the stream was not there: then all of it is new.
    was_absent: bool,
    /// Number of entries of a portion: as many as make up its bytes, as far as is known.
    count: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    milliseconds: u64,
    sequence: u64,
}

/// The ids of the first and the last entry of a stream, and of the one that was added last, which may be gone.
struct Ends {
    first: Option<Id>,
    last: Id,
    added: Id,
}

/// An entry: its id, and its fields.
type StreamEntry = (String, Vec<(Vec<u8>, Vec<u8>)>);

impl RedisConfig {
    /// Returns whether a message is what a field has.
    pub fn has_bytes(&self) -> bool {
        self.field.is_some()
    }
}

impl RedisLog {
    pub fn new(config: &RedisConfig) -> Result<Self, LogError> {
        let client = with_variables(&config.url).and_then(|url| Ok(redis::Client::open(url)?));
        let client = client.map_err(|error| LogError::Stop(error.context("[source.redis] url")))?;
        let (last, newest) = (Id::default(), Id::default());
        Ok(Self { client, config: config.clone(), connection: None, last, newest, was_absent: false, count: 100 })
    }

    async fn connection(&mut self) -> redis::RedisResult<&mut MultiplexedConnection> {
        if self.connection.is_none() {
            let config =
                AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(Some(ANSWER));
            self.connection = Some(self.client.get_multiplexed_async_connection_with_config(&config).await?);
        }
        self.connection.as_mut().ok_or_else(|| (redis::ErrorKind::Io, "no connection").into())
    }

    /// Sends a command. After an error the next one connects anew.
    async fn ask<T: FromRedisValue>(&mut self, command: &redis::Cmd) -> Result<T, LogError> {
        let stream = self.config.stream.clone();
        let answer = match self.connection().await {
            Ok(connection) => command.query_async(connection).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| {
            self.connection = None;
            LogError::later(format!("cannot read the stream '{stream}'"), error)
        })
    }

    /// Returns what the stream has; nothing if there is no stream.
    async fn ends(&mut self) -> Result<Option<Ends>, LogError> {
        let stream = self.config.stream.clone();
        let exists: bool = self.ask(cmd("EXISTS").arg(&stream)).await?;
        if !exists {
            return Ok(None);
        }
        let info: HashMap<String, Value> = self.ask(cmd("XINFO").arg("STREAM").arg(&stream)).await?;
        // An entry is its id and its fields.
        let first_of = |value: &Value| value.as_sequence().and_then(<[Value]>::first).cloned();
        let id = |value: Option<Value>| Id::parse(&String::from_redis_value(value?).ok()?);
        let entry = |name: &str| id(info.get(name).and_then(first_of));
        let added = id(info.get("last-generated-id").cloned()).unwrap_or_default();
        Ok(Some(Ends { first: entry("first-entry"), last: entry("last-entry").unwrap_or_default(), added }))
    }

    /// Returns the error of a stream that does not go as far as it is counted.
    fn made_anew(&self, ends: Option<&Ends>) -> LogError {
        let (stream, last) = (&self.config.stream, self.last);
        match ends {
            Some(ends) => LogError::stop(format!(
                "the stream '{stream}' ends at {}, but entries up to {last} are counted: it was made anew, or the server has \
                 lost its end; to go on, give the source another name",
                ends.added
            )),
            // An empty server may be one that has not loaded its data.
            None => LogError::Later(anyhow::anyhow!(
                "the stream '{stream}' is not there, but entries up to {last} are counted"
            )),
        }
    }

    fn message(&self, (id, fields): StreamEntry) -> Option<Message> {
        let id = Id::parse(&id)?;
        let mut message = Message { position: id.position(), time: id.time(), ..Message::default() };
        match &self.config.field {
            Some(name) => {
                message.value =
                    fields.into_iter().find(|(field, _)| field == name.as_bytes()).map(|(_, value)| value.into());
                message.fault =
                    message.value.is_none().then_some("it has no field of that name: see [source.redis]".into());
            }
            None => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let fields = fields.iter().map(|(name, value)| (text(name), serde_json::Value::from(text(value))));
                message.value = Some(serde_json::Value::Object(fields.collect()).to_string().into());
            }
        }
        Some(message)
    }
}

impl Id {
    fn parse(text: &str) -> Option<Self> {
        let (milliseconds, sequence) = text.split_once('-')?;
        Some(Self { milliseconds: milliseconds.parse().ok()?, sequence: sequence.parse().ok()? })
    }

    fn of(position: u128) -> Self {
        Self { milliseconds: (position >> 64) as u64, sequence: position as u64 }
    }

    fn position(self) -> u128 {
        (u128::from(self.milliseconds) << 64) | u128::from(self.sequence)
    }

    fn time(self) -> Option<i64> {
        (self.milliseconds >= FIRST_TIME).then(|| i64::try_from(self.milliseconds).ok()).flatten()
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.milliseconds, self.sequence)
    }
}

#[async_trait]
impl Log for RedisLog {
    async fn go_to(&mut self, place: LogPlace) -> Result<Arrival, LogError> {
        let ends = self.ends().await?;
        if ends.is_none() && place.counted().is_none() {
            self.was_absent = true;
            return Err(LogError::Later(anyhow::anyhow!("there is no stream '{}'", self.config.stream)));
        }
        let added = ends.as_ref().map_or_else(Id::default, |ends| ends.added);
        self.newest = ends.as_ref().map_or_else(Id::default, |ends| ends.last);
        let after;
        (self.last, after) = match place {
            LogPlace::After(position) => (Id::of(position), None),
            LogPlace::Again(position) => (Id::of(position.saturating_sub(1)), None),
            LogPlace::Begin(Begin::Earliest) => (Id::default(), None),
            LogPlace::Begin(Begin::Latest) if self.was_absent => (Id::default(), None),
            LogPlace::Begin(Begin::Latest) => (added, (added > Id::default()).then(|| added.position())),
            LogPlace::Begin(Begin::At(time)) => {
                // The last id that there could be before what is wanted: an entry need not have it.
                let milliseconds = u64::try_from(time.timestamp_millis()).unwrap_or(0).saturating_sub(1);
                let id = Id { milliseconds, sequence: u64::MAX };
                (id, Some(id.position()))
            }
        };
        let mut gap = None;
        if let Some(counted) = place.counted() {
            if added < Id::of(counted) {
                return Err(self.made_anew(ends.as_ref()));
            }
            // Of a stream that is empty, what was added last is gone.
            let first = ends.map(|ends| ends.first.unwrap_or(ends.added)).filter(|first| *first > Id::of(counted));
            gap = first.map(|first| {
                let (stream, last) = (&self.config.stream, Id::of(counted));
                format!("entries between {last} and {first} may be missing: the stream '{stream}' was trimmed")
            });
        }
        Ok(Arrival { after, gap })
    }

    async fn read(&mut self) -> Result<Vec<Message>, LogError> {
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(self.count).arg("BLOCK").arg(BLOCK).arg("STREAMS").arg(&self.config.stream);
        command.arg(self.last.to_string());
        let answer: Option<Vec<(String, Vec<StreamEntry>)>> = self.ask(&command).await?;
        let entries = answer.into_iter().flatten().next().map(|(_, entries)| entries).unwrap_or_default();
        let bytes: usize =
            entries.iter().flat_map(|(_, fields)| fields).map(|(name, value)| name.len() + value.len()).sum();
        if entries.len() == self.count {
            // The next portion may be as large as is useful.
            self.count = (self.count * MAX_BYTES / bytes.max(1)).clamp(1, (self.count * 4).min(MAX_MESSAGES));
        }
        let messages: Vec<Message> = entries.into_iter().filter_map(|entry| self.message(entry)).collect();
        if let Some(last) = messages.last() {
            self.last = Id::of(last.position);
            self.newest = self.newest.max(self.last);
        }
        Ok(messages)
    }

    async fn refresh(&mut self) -> Result<(), LogError> {
        let ends = self.ends().await?;
        match &ends {
            Some(ends) if ends.added >= self.last => self.newest = ends.last,
            None if self.last == Id::default() => {}
            _ => return Err(LogError::later("the log is looked at again", anyhow::anyhow!("it has another end"))),
        }
        Ok(())
    }

    fn left(&self) -> Option<u64> {
        None
    }

    async fn is_at_end(&mut self) -> Result<bool, LogError> {
        self.refresh().await?;
        Ok(self.newest <= self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_positions() {
        let id = Id::parse("1526919030474-55").unwrap();
        assert_eq!((id.position(), Id::of(id.position())), ((1_526_919_030_474 << 64) + 55, id));
        assert_eq!((id.time(), Id::parse("1-1").unwrap().time()), (Some(1_526_919_030_474), None));
        assert!(Id::parse("1526919030474-56").unwrap() > id);
        assert_eq!((Id::parse("1"), Id::parse("a-1")), (None, None));
    }
}
