//! A log whose values are written with a schema registry, read as JSON.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use async_trait::async_trait;

use super::Schemas;
use crate::log::{Arrival, Log, LogError, LogPlace, MAX_BYTES, Message};

/// How long a read goes on to decode. Schemas that are asked for take longer than messages.
const WAIT: Duration = Duration::from_secs(1);

/// A log whose messages have JSON in place of their values. One that cannot be decoded keeps its value, and has a fault.
pub struct DecodedLog {
    log: Box<dyn Log>,
    schemas: Arc<Schemas>,
    /// What was read and is not decoded yet: JSON may be many times longer than the value.
    undecoded: IntoIter<Message>,
}

impl DecodedLog {
    pub fn new(log: Box<dyn Log>, schemas: Arc<Schemas>) -> Self {
        Self { log, schemas, undecoded: Vec::new().into_iter() }
    }
}

#[async_trait]
impl Log for DecodedLog {
    async fn go_to(&mut self, place: LogPlace) -> Result<Arrival, LogError> {
        self.undecoded = Vec::new().into_iter();
        self.log.go_to(place).await
    }

    async fn read(&mut self) -> Result<Vec<Message>, LogError> {
        if self.undecoded.as_slice().is_empty() {
            self.undecoded = self.log.read().await?.into_iter();
        }
        let (mut messages, mut bytes, begun) = (Vec::new(), 0, Instant::now());
        while let Some(next) = self.undecoded.as_slice().first()
            && bytes <= MAX_BYTES
            && (messages.is_empty() || begun.elapsed() < WAIT)
        {
            let decoded = match &next.value {
                Some(value) if next.fault.is_none() => Some(match self.schemas.decode(value).await {
                    Ok(decoded) => decoded,
                    // The next read fails in the same way, unless it goes well.
                    Err(_) if !messages.is_empty() => break,
                    Err(error) => return Err(error),
                }),
                _ => None,
            };
            let Some(mut message) = self.undecoded.next() else { break };
            match decoded {
                Some(Ok(json)) => message.value = Some(json),
                Some(Err(why)) => message.fault = Some(Cow::Owned(why)),
                None => {}
            }
            bytes += message.value.as_ref().map_or(0, |value| value.len());
            messages.push(message);
        }
        Ok(messages)
    }

    async fn refresh(&mut self) -> Result<(), LogError> {
        self.log.refresh().await
    }

    fn left(&self) -> Option<u64> {
        let undecoded = self.log.size(self.undecoded.as_slice());
        self.log.left().map(|left| left + undecoded)
    }

    fn size(&self, messages: &[Message]) -> u64 {
        self.log.size(messages)
    }

    fn is_at_end(&self) -> bool {
        self.undecoded.as_slice().is_empty() && self.log.is_at_end()
    }
}
