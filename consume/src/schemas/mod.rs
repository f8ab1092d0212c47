//! Values that are written with a schema registry: how they become JSON.
//!
//! Such a value begins with a zero and the id of its schema in four bytes.

mod avro;
mod decoded_log;
mod protobuf;
mod protobuf_files;
mod registry;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::log::{Log, LogError};
use avro::AvroSchema;
use decoded_log::DecodedLog;
use protobuf::ProtobufSchema;
pub use registry::RegistryConfig;
use registry::{SchemaRegistry, SchemaText, Unavailable};

/// The longest text of a schema, with all that it refers to.
const MAX_TEXT: usize = 1 << 20;
/// The largest number of schemas that a schema refers to, also through others.
const MAX_REFERENCES: usize = 100;
/// How long a schema is waited for, with all that it refers to.
const LOOK_UP: Duration = Duration::from_secs(30);
/// How long it is remembered that a schema cannot be used: somebody may register it.
const UNUSABLE: Duration = Duration::from_secs(60);
/// The longest value, and the longest JSON that is made of one, about.
const MAX_VALUE: usize = 8 << 20;
/// How deep JSON is nested at most. That of Protobuf is nested as deep as its library decodes, which is the same.
const MAX_DEPTH: usize = 100;

/// The texts of the schemas that are remembered, in bytes, and how many have room from the start.
const REMEMBERED: u64 = 16 << 20;
const EXPECTED: usize = 100;
/// What a schema without a text counts.
const LEAST: usize = 1 << 10;
/// The longest reason, in characters: it may have names of a schema, and each message that is kept has it.
const MAX_REASON: usize = 300;

/// The schemas of a registry, which are asked for once: they never change.
pub struct Schemas {
    registry: SchemaRegistry,
    known: Cache<u32, Arc<KnownSchema>, TextBytes>,
}

/// What is known of an id.
struct KnownSchema {
    /// How values become JSON, or why they cannot.
    decoder: Result<ValueDecoder, String>,
    since: Instant,
    text_bytes: usize,
}

enum ValueDecoder {
    Avro(AvroSchema),
    Protobuf(ProtobufSchema),
    /// What follows the id is JSON already.
    Json,
}

#[derive(Clone)]
struct TextBytes;

impl Weighter<u32, Arc<KnownSchema>> for TextBytes {
    fn weight(&self, _: &u32, known: &Arc<KnownSchema>) -> u64 {
        (known.text_bytes + LEAST) as u64
    }
}

/// Returns the logs with JSON in place of their values, if there are schemas.
pub fn decoded(logs: Vec<(String, Box<dyn Log>)>, schemas: Option<&Arc<Schemas>>) -> Vec<(String, Box<dyn Log>)> {
    let Some(schemas) = schemas else { return logs };
    let decoded = |log| -> Box<dyn Log> { Box::new(DecodedLog::new(log, schemas.clone())) };
    logs.into_iter().map(|(name, log)| (name, decoded(log))).collect()
}

impl KnownSchema {
    fn is_current(&self) -> bool {
        self.decoder.is_ok() || self.since.elapsed() < UNUSABLE
    }
}

impl Schemas {
    /// Returns the schemas of this registry. Nothing is asked yet.
    pub fn new(config: &RegistryConfig) -> anyhow::Result<Self> {
        let known = Cache::with_weighter(EXPECTED, REMEMBERED, TextBytes);
        Ok(Self { registry: SchemaRegistry::new(config)?, known })
    }

    /// Returns the JSON of a value, or why it cannot be read. Fails if the registry does not answer.
    async fn decode(&self, value: &Bytes) -> Result<Result<Bytes, String>, LogError> {
        let Some((&[0, a, b, c, d], _)) = value.split_first_chunk() else {
            return Ok(Err("it does not begin with a zero and the id of a schema".to_owned()));
        };
        if value.len() > MAX_VALUE {
            return Ok(Err(format!("it has more than {MAX_VALUE} bytes")));
        }
        let id = u32::from_be_bytes([a, b, c, d]);
        let not_given = |error| LogError::later(format!("the schema registry does not give schema {id}"), error);
        let known = tokio::time::timeout(LOOK_UP, self.known(id)).await;
        let known = known.map_err(|late| not_given(late.into()))?.map_err(not_given)?;
        let decoded = match &known.decoder {
            Err(why) => return Ok(Err(why.clone())),
            // Nothing is no JSON; without a schema it would be a message without an event.
            Ok(ValueDecoder::Json) if value[5..].trim_ascii().is_empty() => Err("it is empty".to_owned()),
            Ok(ValueDecoder::Json) => return Ok(Ok(value.slice(5..))),
            Ok(ValueDecoder::Avro(schema)) => schema.json(&value[5..]),
            Ok(ValueDecoder::Protobuf(schema)) => schema.json(&value[5..]),
        };
        Ok(decoded.map(Bytes::from).map_err(|why| format!("it is not what its schema {id} says: {}", short(&why))))
    }

    /// Returns what is known of an id. Whoever asks for the same one at the same time waits for one answer.
    async fn known(&self, id: u32) -> Result<Arc<KnownSchema>, anyhow::Error> {
        if self.known.get(&id).is_some_and(|known| !known.is_current()) {
            self.known.remove(&id);
        }
        let look_up = async {
            let (decoder, text_bytes) = match self.ask(id).await {
                Ok((decoder, text_bytes)) => (decoder, text_bytes),
                Err(Unavailable::Unusable(why)) => (Err(why), 0),
                Err(Unavailable::Later(error)) => return Err(error),
            };
            let decoder = decoder.map_err(|why| short(&why));
            Ok(Arc::new(KnownSchema { decoder, since: Instant::now(), text_bytes }))
        };
        self.known.get_or_insert_async(&id, look_up).await
    }

    /// Returns what the registry has for an id, and how many bytes that are.
    async fn ask(&self, id: u32) -> Result<(Result<ValueDecoder, String>, usize), Unavailable> {
        let SchemaText { kind, text, mut references } = self.registry.schema(id).await?;
        let mut text_bytes = text.len();
        if kind == "JSON" {
            return Ok((Ok(ValueDecoder::Json), 0));
        }
        let mut texts = vec![(String::new(), text)];
        while let Some(reference) = references.pop() {
            if texts.iter().any(|(name, _)| *name == reference.name) {
                continue;
            }
            if texts.len() > MAX_REFERENCES {
                let why = format!("its schema {id} refers to more than {MAX_REFERENCES} others");
                return Err(Unavailable::Unusable(why));
            }
            let referenced = self.registry.version(&reference.subject, reference.version).await?;
            text_bytes += referenced.text.len();
            if text_bytes > MAX_TEXT {
                return Err(Unavailable::too_long());
            }
            references.extend(referenced.references);
            texts.push((reference.name, referenced.text));
        }
        let decoder = match kind.as_str() {
            "AVRO" => AvroSchema::parse(texts.iter().map(|(_, text)| text.as_str())).map(ValueDecoder::Avro),
            "PROTOBUF" => ProtobufSchema::parse(texts).map(ValueDecoder::Protobuf),
            _ => Err("it is none of AVRO, PROTOBUF and JSON".to_owned()),
        };
        Ok((decoder.map_err(|why| format!("its schema {id} cannot be read: {why}")), text_bytes))
    }
}

fn short(why: &str) -> String {
    why.chars().take(MAX_REASON).collect()
}
