//! Request bodies: media types, size and time limits.

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, BytesMut, Payload};

use super::codes::Code;
use super::compression::Incoming;
use super::problem::Problem;
use super::state::HttpOptions;

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
    pub(super) fn max_received(self, options: &HttpOptions) -> u64 {
        match self {
            Format::Json => options.max_body as u64,
            Format::Ndjson => u64::MAX,
        }
    }
}

/// Returns the format that the request declares.
///
/// A request without a media type is refused: a web page may send one to any address without asking, so it must not
/// count.
pub(super) fn format(request: &HttpRequest) -> Result<Format, Problem> {
    let unsupported = |detail: String| Problem::new(Code::UnsupportedMediaType, detail);
    let Some(declared) = request.headers().get(CONTENT_TYPE) else {
        return Err(unsupported("the body has no Content-Type; send application/json or, for events, increments and samples, application/x-ndjson".into()));
    };
    let text = declared.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    match essence {
        "application/json" => Ok(Format::Json),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(Format::Ndjson),
        _ if essence.eq_ignore_ascii_case("application/json") => Ok(Format::Json),
        _ if essence.eq_ignore_ascii_case("application/x-ndjson") => Ok(Format::Ndjson),
        _ => Err(unsupported(format!(
            "media type '{}' is not supported; use application/json or, for events, increments and samples, application/x-ndjson",
            essence.chars().take(64).collect::<String>()
        ))),
    }
}

/// Reads a JSON body within the size and time limits of the options.
pub(super) async fn read_json(
    request: &HttpRequest,
    payload: Payload,
    options: &HttpOptions,
) -> Result<Bytes, Problem> {
    match format(request)? {
        Format::Json => read(Incoming::new(request, payload, Format::Json.max_received(options))?, options).await,
        Format::Ndjson => Err(Problem::new(
            Code::UnsupportedMediaType,
            "NDJSON is supported for events, increments and samples only; use application/json",
        )),
    }
}

/// Reads a body within the size and time limits of the options.
pub(super) async fn read(body: Incoming, options: &HttpOptions) -> Result<Bytes, Problem> {
    let in_time = tokio::time::timeout(options.body_timeout, gather(body, options.max_body)).await;
    in_time.unwrap_or_else(|_| {
        let seconds = options.body_timeout.as_secs_f64();
        Err(Problem::new(Code::BodyTimeout, format!("the body did not arrive within {seconds} s")))
    })
}

/// Reads at most `limit` bytes, counted after decompression. A body that arrives in one piece is not copied.
async fn gather(mut body: Incoming, limit: usize) -> Result<Bytes, Problem> {
    let Some(first) = body.next().await.transpose()? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(too_large(limit));
    }
    let Some(second) = body.next().await.transpose()? else { return Ok(first) };
    let mut whole = BytesMut::from(first.as_ref());
    let mut piece = second;
    loop {
        // The pieces that one packet decompresses to must not keep the other requests of the worker waiting.
        tokio::task::yield_now().await;
        if whole.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&piece);
        match body.next().await.transpose()? {
            Some(next) => piece = next,
            None => return Ok(whole.freeze()),
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
