//! Request bodies: media types, size and time limits.

use std::ops::Deref;
use std::pin::{Pin, pin};
use std::time::Duration;

use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use actix_web::web::{Bytes, Payload};
use futures_util::future::{Either, select};

use super::body_memory::Hold;
use super::call::Call;
use super::codes::Code;
use super::incoming::Incoming;
use super::problem::Problem;
use super::state::HttpOptions;
use crate::access::Caller;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// One JSON text.
    Json,
    /// One JSON text per line.
    Ndjson,
}

impl Format {
    /// Returns the maximum number of bytes of a compressed body. A stream has none.
    fn max_received(self, options: &HttpOptions) -> u64 {
        match self {
            Format::Json => options.max_body as u64,
            Format::Ndjson => u64::MAX,
        }
    }
}

/// Maximum number of items in a JSON list.
pub(super) const MAX_ITEMS: usize = 100_000;

/// The size in bytes of the blocks in which a body is kept until it has arrived.
const BLOCK: usize = 64 << 10;

/// The memory that an object of a body takes when it is parsed, apart from its text.
const PARSED_OBJECT: usize = 192;
/// The memory that each further element of a list, or member of an object, takes.
const PARSED_ELEMENT: usize = 96;

/// A JSON body that has arrived, with the memory that it takes until it is dropped.
pub(super) struct Body {
    text: Bytes,
    _hold: Hold,
}

impl Body {
    /// Replaces the text by another one of about the same size.
    pub(super) fn with_text(self, text: String) -> Self {
        Self { text: text.into(), ..self }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

impl Call {
    /// Returns the format that the request declares.
    ///
    /// A request without a media type is refused: a web page may send one to any address without asking, so it must not
    /// count.
    pub(super) fn format(&self) -> Result<Format, Problem> {
        let unsupported = |detail: String| Problem::new(Code::UnsupportedMediaType, detail);
        let Some(declared) = self.request.headers().get(CONTENT_TYPE) else {
            return Err(unsupported("the body has no Content-Type; send application/json or, for events, increments and samples, application/x-ndjson".into()));
        };
        // Nearly always, and then nothing is to be taken apart.
        if declared == "application/json" {
            return Ok(Format::Json);
        }
        let text = declared.to_str().unwrap_or_default();
        let essence = text.split(';').next().unwrap_or_default().trim();
        match essence {
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(Format::Ndjson),
            _ if essence.eq_ignore_ascii_case("application/json") => Ok(Format::Json),
            _ if essence.eq_ignore_ascii_case("application/x-ndjson") => Ok(Format::Ndjson),
            _ => Err(unsupported(format!(
                "media type '{}' is not supported; use application/json or, for events, increments and samples, application/x-ndjson",
                essence.chars().take(64).collect::<String>()
            ))),
        }
    }

    /// Returns the body that the request declares, as it arrives.
    pub(super) fn incoming(&self, payload: Payload, format: Format) -> Result<Incoming, Problem> {
        let hold = self.state.bodies.hold(self.client());
        Incoming::new(&self.request, payload, format.max_received(&self.state.options), hold)
    }

    /// Reads a JSON body within the limits of size, time and memory.
    pub(super) async fn json(&self, payload: Payload) -> Result<Body, Problem> {
        match self.format()? {
            Format::Json => read(self.incoming(payload, Format::Json)?, &self.caller, &self.state.options).await,
            Format::Ndjson => Err(Problem::new(
                Code::UnsupportedMediaType,
                "NDJSON is supported for events, increments and samples only; use application/json",
            )),
        }
    }

    /// Reads a JSON body, or returns `None` if the request has none or an empty one.
    pub(super) async fn optional_json(&self, payload: Payload) -> Result<Option<Body>, Problem> {
        let headers = self.request.headers();
        let length = headers.get(CONTENT_LENGTH).map(|length| length.as_bytes());
        match headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != b"0") {
            true => self.json(payload).await.map(Some),
            false => Ok(None),
        }
    }
}

/// Reads a body within the limits of size, time and memory.
pub(super) async fn read(mut incoming: Incoming, caller: &Caller, options: &HttpOptions) -> Result<Body, Problem> {
    let text = in_time(pin!(gather(&mut incoming, options.max_body)), options.body_timeout).await?;
    // It may have taken long to arrive.
    caller.require_current()?;
    let mut hold = incoming.into_hold();
    hold.obtain(text.len() + parsed_bytes(&text)).await?;
    Ok(Body { text, _hold: hold })
}

/// Waits for a body that must arrive within the limit. Pinned by the caller, so that there is no second room for it here.
async fn in_time(
    body: Pin<&mut impl Future<Output = Result<Bytes, Problem>>>,
    limit: Duration,
) -> Result<Bytes, Problem> {
    // The server begins to handle a request before it looks at what has arrived with the head. So most bodies are there
    // at the second look, and need no timer.
    match select(body, pin!(tokio::task::yield_now())).await {
        Either::Left((text, _)) => text,
        // Boxed, because every body would have room for the timer of those that are late.
        Either::Right(((), rest)) => Box::pin(tokio::time::timeout(limit, rest)).await.unwrap_or_else(|_| {
            let detail = format!("the body did not arrive within {} s", limit.as_secs_f64());
            Err(Problem::new(Code::BodyTimeout, detail))
        }),
    }
}

/// Returns an upper estimate of the memory of what a text is parsed into, which may be many times that of the text.
fn parsed_bytes(text: &[u8]) -> usize {
    let count = |byte| memchr::memchr_iter(byte, text).count();
    // Longer lists are refused before their elements are parsed.
    count(b'{').min(2 * MAX_ITEMS) * PARSED_OBJECT + count(b',') * PARSED_ELEMENT
}

/// Reads at most `limit` bytes, counted after decompression. A body that arrives in one piece is not copied.
///
/// The pieces of others are kept in blocks until the end has arrived. A buffer that grows would be copied again and
/// again, with two copies in memory.
async fn gather(body: &mut Incoming, limit: usize) -> Result<Bytes, Problem> {
    let Some(first) = body.next().await.transpose()? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(too_large(limit));
    }
    body.obtain(first.len()).await?;
    let Some(second) = body.next().await.transpose()? else { return Ok(first) };
    let (mut blocks, mut len) = (Vec::new(), first.len());
    append(&mut blocks, &first);
    drop(first);
    let mut next = Some(second);
    while let Some(piece) = next {
        // The pieces that one packet decompresses to must not keep the other requests of the worker waiting.
        tokio::task::yield_now().await;
        len += piece.len();
        if len > limit {
            return Err(too_large(limit));
        }
        body.obtain(len).await?;
        append(&mut blocks, &piece);
        next = body.next().await.transpose()?;
    }
    body.obtain(2 * len).await?;
    let mut whole = Vec::with_capacity(len);
    for block in blocks {
        whole.extend_from_slice(&block);
    }
    Ok(whole.into())
}

/// Appends a piece to blocks of equal capacity.
fn append(blocks: &mut Vec<Vec<u8>>, mut piece: &[u8]) {
    while !piece.is_empty() {
        match blocks.last_mut() {
            Some(block) if block.len() < BLOCK => {
                let (head, rest) = piece.split_at(piece.len().min(BLOCK - block.len()));
                block.extend_from_slice(head);
                piece = rest;
            }
            _ => blocks.push(Vec::with_capacity(BLOCK)),
        }
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("a JSON body may have at most {limit} bytes; send more as a stream of application/x-ndjson");
    Problem::new(Code::TooLarge, detail).with("limit", limit)
}

/// Returns the problem of a body that is not valid JSON.
pub(super) fn malformed(error: &serde_json::Error) -> Problem {
    Problem::new(Code::MalformedJson, format!("the body is not valid JSON: {error}"))
        .with("line", error.line())
        .with("column", error.column())
}

/// Returns the message of the error without its position, which for a field counts from the start of the field.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(at) = text.rfind(" at line ") {
        text.truncate(at);
    }
    text
}
