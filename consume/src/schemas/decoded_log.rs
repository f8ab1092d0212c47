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

/// A log whose messages have JSON in place of their values, and these beside it. One that cannot be decoded keeps its value, and has a fault.
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
                Some(Ok(json)) => message.encoded = message.value.replace(json),
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

    async fn is_at_end(&mut self) -> Result<bool, LogError> {
        Ok(self.undecoded.as_slice().is_empty() && self.log.is_at_end().await?)
    }

    fn is_there(&self) -> bool {
        self.log.is_there()
    }

    fn partition(&self) -> Option<(&str, i32)> {
        self.log.partition()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::schemas::avro::AvroSchema;
    use crate::schemas::{KnownSchema, ValueDecoder};

    /// A log that has all of its messages at once.
    struct AllAtOnce(Vec<Message>);

    #[async_trait]
    impl Log for AllAtOnce {
        async fn go_to(&mut self, _: LogPlace) -> Result<Arrival, LogError> {
            Ok(Arrival::default())
        }

        async fn read(&mut self) -> Result<Vec<Message>, LogError> {
            Ok(std::mem::take(&mut self.0))
        }

        fn left(&self) -> Option<u64> {
            Some(self.0.len() as u64)
        }

        async fn is_at_end(&mut self) -> Result<bool, LogError> {
            Ok(self.0.is_empty())
        }
    }

    fn schemas(text: &str) -> Arc<Schemas> {
        let schemas = Schemas::new(&toml::from_str("url = \"http://127.0.0.1:9\"").unwrap()).unwrap();
        let decoder = Ok(ValueDecoder::Avro(AvroSchema::parse([text].into_iter()).unwrap()));
        schemas.known.insert(1, Arc::new(KnownSchema { decoder, since: Instant::now(), text_bytes: 0 }));
        Arc::new(schemas)
    }

    fn message(position: u128, value: &[u8]) -> Message {
        Message { position, value: Some(Bytes::copy_from_slice(value)), ..Message::default() }
    }

    #[tokio::test]
    async fn messages_that_become_long_are_read_in_pieces() {
        // 2^18 nulls, which are 1.25 MiB of JSON.
        let value = [0, 0, 0, 0, 1, 0x80, 0x80, 0x20, 0];
        let log = AllAtOnce((0..5).map(|position| message(position, &value)).collect());
        let schemas = schemas(r#"{"type": "array", "items": "null"}"#);
        let mut log = DecodedLog::new(Box::new(log), schemas);
        for (expected, left) in [(0..2, 3), (2..4, 1), (4..5, 0)] {
            let positions: Vec<u128> = log.read().await.unwrap().iter().map(|message| message.position).collect();
            assert_eq!(positions, expected.collect::<Vec<_>>());
            assert_eq!((log.left(), log.is_at_end().await.unwrap()), (Some(left), left == 0));
        }
    }

    #[tokio::test]
    async fn what_cannot_be_decoded_keeps_its_value() {
        let deleted = Message { position: 2, ..Message::default() };
        let fault = Message { fault: Some("why".into()), ..message(3, b"x") };
        let (text, other) = (message(0, &[0, 0, 0, 0, 1, 2, b'a']), message(1, &[0, 0, 0, 0, 1, 8]));
        let unknown = message(4, &[0, 0, 0, 0, 2]);
        let log =
            AllAtOnce(vec![text.clone(), other.clone(), deleted.clone(), fault.clone(), message(5, &[]), unknown]);
        let mut log = DecodedLog::new(Box::new(log), schemas("\"string\""));
        let read = log.read().await.unwrap();
        assert_eq!(read[0], Message { encoded: text.value, ..message(0, b"\"a\"") });
        let why = read[1].fault.clone().unwrap();
        assert!(why.contains("schema 1") && why.contains("ends too early"), "{why}");
        assert_eq!(read[1].value, other.value);
        assert_eq!(read[2..4], [deleted, fault]);
        assert!(read[4].fault.is_some());
        // Nothing answers: what comes before is read, and the message is not passed.
        assert_eq!(read.len(), 5);
        for _ in 0..2 {
            assert!(matches!(log.read().await, Err(LogError::Later(_))));
            assert!(!log.is_at_end().await.unwrap());
        }
    }
}
