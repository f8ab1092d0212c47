//! Content codings: compression of responses and decompression of request bodies.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use actix_web::error::PayloadError;
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CONTENT_ENCODING, ContentEncoding, Encoding, Header, HeaderValue,
};
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpRequest, HttpResponse};
use async_compression::Level;
use async_compression::brotli::EncoderParams;
use async_compression::tokio::bufread::{BrotliEncoder, GzipDecoder, GzipEncoder, ZstdDecoder, ZstdEncoder};
use async_compression::tokio::write;
use async_compression::zstd::{CParameter, DParameter};
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::io::{ReaderStream, StreamReader};

use super::codes::Code;
use super::problem::Problem;

/// Bodies below this size in bytes are not compressed: they fit into one packet in any case.
const MIN_BYTES: usize = 1_024;

/// The size in bytes of the pieces in which a decompressed body arrives.
const PIECE: usize = 64 << 10;

/// The number of times by which a body may be larger than its compressed form. Lines of events compress to about a
/// twentieth; only a body made for it exceeds this.
const MAX_RATIO: u64 = 250;
/// The number of decompressed bytes to which the ratio does not apply.
const WITHOUT_RATIO: u64 = 1 << 20;

/// Compresses the body of a response if it is large enough and the client accepts a supported coding. O(bytes).
///
/// This is not asynchronous, because an encoder takes kilobytes, and every request would carry them in its future.
pub(super) fn compress(request: &HttpRequest, mut response: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    if response.body().len() < MIN_BYTES || !request.headers().contains_key(ACCEPT_ENCODING) {
        return response;
    }
    let Some(coding) = accepted(request) else { return response };
    let mut compressed = Vec::with_capacity(response.body().len() / 4);
    let body = &response.body()[..];
    let level = level(coding);
    // Reading from memory never waits.
    let done = match coding {
        ContentEncoding::Zstd => ZstdEncoder::with_quality(body, level).read_to_end(&mut compressed).now_or_never(),
        ContentEncoding::Brotli => BrotliEncoder::with_quality(body, level).read_to_end(&mut compressed).now_or_never(),
        _ => GzipEncoder::with_quality(body, level).read_to_end(&mut compressed).now_or_never(),
    };
    if !matches!(done, Some(Ok(_))) {
        tracing::debug!(?done, "a response was not compressed");
        return response;
    }
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    response.set_body(compressed.into())
}

/// Returns the coding that the client prefers: of equally preferred ones br, zstd, gzip.
fn accepted(request: &HttpRequest) -> Option<ContentEncoding> {
    let supported = [Encoding::zstd(), Encoding::brotli(), Encoding::gzip(), Encoding::identity()];
    match AcceptEncoding::parse(request).ok()?.negotiate(supported.iter())? {
        Encoding::Known(ContentEncoding::Identity) | Encoding::Unknown(_) => None,
        Encoding::Known(coding) => Some(coding),
    }
}

/// Returns the level at which responses are compressed.
fn level(coding: ContentEncoding) -> Level {
    Level::Precise(if coding == ContentEncoding::Zstd { 3 } else { 4 })
}

/// The window of a compressed stream, as a power of 2: 256 KiB. With their tables, encoders keep 0.2 MB (gzip) to about 2.5
/// MB (br) in memory while the stream is open; with the windows of single responses they would keep more.
const WINDOW_LOG: u32 = 18;

/// The encoder of a body that is a stream. Each piece of the body becomes a piece of compressed bytes from which it can be
/// decompressed at once.
pub(super) struct StreamEncoder {
    coding: ContentEncoding,
    encoder: Encoder,
}

impl StreamEncoder {
    /// Returns an encoder of the coding that the client prefers, or `None` if it accepts none.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        let coding = if request.headers().contains_key(ACCEPT_ENCODING) { accepted(request) } else { None }?;
        Some(Self { coding, encoder: Encoder::new(coding) })
    }

    /// Returns the value of the header that names the coding.
    pub(super) fn coding(&self) -> HeaderValue {
        HeaderValue::from_static(self.coding.as_str())
    }

    /// Returns the compressed bytes of a piece, and of the end of the body if it is the last one. O(bytes).
    pub(super) fn encode(&mut self, piece: &[u8], is_last: bool) -> io::Result<Bytes> {
        let writer = self.encoder.writer();
        let written = async {
            writer.write_all(piece).await?;
            if is_last { writer.shutdown().await } else { writer.flush().await }
        };
        written.now_or_never().unwrap_or_else(|| Err(io::Error::other("writing to memory waits")))?;
        Ok(self.encoder.take())
    }
}

/// An encoder of a coding, with the compressed bytes that were not taken yet.
enum Encoder {
    Gzip(write::GzipEncoder<Vec<u8>>),
    Brotli(Box<write::BrotliEncoder<Vec<u8>>>),
    Zstd(write::ZstdEncoder<Vec<u8>>),
}

impl Encoder {
    fn new(coding: ContentEncoding) -> Self {
        let (to, level) = (Vec::new(), level(coding));
        match coding {
            ContentEncoding::Zstd => {
                let window = [CParameter::window_log(WINDOW_LOG)];
                Self::Zstd(write::ZstdEncoder::with_quality_and_params(to, level, &window))
            }
            ContentEncoding::Brotli => {
                let params = EncoderParams::default().quality(level).window_size(WINDOW_LOG as i32);
                Self::Brotli(Box::new(write::BrotliEncoder::with_params(to, params)))
            }
            _ => Self::Gzip(write::GzipEncoder::with_quality(to, level)),
        }
    }

    fn writer(&mut self) -> &mut (dyn AsyncWrite + Unpin) {
        match self {
            Self::Gzip(encoder) => encoder,
            Self::Brotli(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
        }
    }

    fn take(&mut self) -> Bytes {
        let compressed = match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        };
        std::mem::take(compressed).into()
    }
}

/// The largest window of a zstd body, as a power of 2: 8 MiB, the size that RFC 8878 recommends decoders to support. The
/// decoder of a stream keeps the window in memory while the stream is open.
const MAX_WINDOW_LOG: u32 = 23;

/// The body of a request as it arrives, decompressed.
pub(super) enum Incoming {
    Plain(Payload),
    Compressed {
        pieces: ReaderStream<Pin<Box<dyn AsyncRead>>>,
        coding: ContentEncoding,
        /// Number of compressed bytes received so far, and the maximum.
        received: Rc<Cell<u64>>,
        max_received: u64,
        /// Number of decompressed bytes so far.
        decompressed: u64,
    },
}

impl Incoming {
    /// Returns the body of a request, of which at most `max_received` compressed bytes are read. Fails if its coding is
    /// not supported.
    pub(super) fn new(request: &HttpRequest, payload: Payload, max_received: u64) -> Result<Self, Problem> {
        let mut declared = request.headers().get_all(CONTENT_ENCODING).map(|coding| coding.to_str().unwrap_or("?"));
        let Some(mut text) = declared.next().map(str::to_owned) else { return Ok(Incoming::Plain(payload)) };
        // Several headers mean the same as a list.
        for coding in declared {
            text = format!("{text}, {coding}");
        }
        let text = text.trim().to_ascii_lowercase();
        let coding = match text.as_str() {
            "identity" => return Ok(Incoming::Plain(payload)),
            "gzip" | "x-gzip" => ContentEncoding::Gzip,
            "zstd" => ContentEncoding::Zstd,
            _ => {
                let text: String = text.chars().take(64).collect();
                let detail = format!("content encoding '{text}' is not supported; use gzip, zstd or none");
                return Err(Problem::new(Code::UnsupportedMediaType, detail));
            }
        };
        let received = Rc::new(Cell::new(0));
        let compressed = StreamReader::new(counted(payload, received.clone(), max_received));
        let reader: Pin<Box<dyn AsyncRead>> = if coding == ContentEncoding::Gzip {
            let mut decoder = GzipDecoder::new(compressed);
            decoder.multiple_members(true);
            Box::pin(decoder)
        } else {
            let mut decoder = ZstdDecoder::with_params(compressed, &[DParameter::window_log_max(MAX_WINDOW_LOG)]);
            decoder.multiple_members(true);
            Box::pin(decoder)
        };
        let pieces = ReaderStream::with_capacity(reader, PIECE);
        Ok(Incoming::Compressed { pieces, coding, received, max_received, decompressed: 0 })
    }

    /// Returns a number that changes whenever compressed bytes arrive.
    pub(super) fn received(&self) -> u64 {
        match self {
            Incoming::Plain(_) => 0,
            Incoming::Compressed { received, .. } => received.get(),
        }
    }

    /// Returns the next piece of the body, at most 64 KiB if it is compressed. One packet may decompress to many pieces, so
    /// a caller must yield between them to the other requests of its worker. Cancel safe: if the future is dropped
    /// before it is ready, no piece is lost.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Problem>> {
        match self {
            Incoming::Plain(payload) => payload.next().await.map(|piece| piece.map_err(incomplete)),
            Incoming::Compressed { pieces, coding, received, max_received, decompressed } => {
                // Nothing may wait after a piece is taken: a caller that stops polling would lose it.
                let piece = match pieces.next().await? {
                    Ok(piece) => piece,
                    Err(_) if received.get() > *max_received => {
                        let detail = format!("a compressed JSON body may have at most {max_received} bytes");
                        return Some(Err(Problem::new(Code::TooLarge, detail).with("limit", *max_received)));
                    }
                    Err(error) => {
                        let detail = format!("the body is not complete and valid {}: {error}", coding.as_str());
                        return Some(Err(Problem::new(Code::IncompleteBody, detail)));
                    }
                };
                *decompressed += piece.len() as u64;
                if *decompressed > WITHOUT_RATIO + MAX_RATIO * received.get() {
                    let detail = format!("the body decompresses to more than {MAX_RATIO} times its size");
                    return Some(Err(Problem::new(Code::TooLarge, detail).with("limit", MAX_RATIO)));
                }
                Some(Ok(piece))
            }
        }
    }
}

/// Returns the problem of a body that ended before it was complete.
fn incomplete(error: PayloadError) -> Problem {
    match error {
        PayloadError::Overflow => Problem::new(Code::TooLarge, "the body is larger than allowed"),
        other => Problem::new(Code::IncompleteBody, format!("the body is incomplete: {other}")),
    }
}

/// Adds the sizes of the pieces to `received` as they pass, and fails beyond the maximum.
///
/// Each piece yields to the other requests of the worker, because a decoder may consume many pieces without any output.
fn counted(payload: Payload, received: Rc<Cell<u64>>, max: u64) -> Pin<Box<dyn Stream<Item = io::Result<Bytes>>>> {
    Box::pin(payload.then(move |piece| {
        let received = received.clone();
        async move {
            tokio::task::yield_now().await;
            let piece = piece.map_err(io::Error::other)?;
            received.set(received.get() + piece.len() as u64);
            if received.get() > max { Err(io::Error::other("too many bytes")) } else { Ok(piece) }
        }
    }))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use async_compression::tokio::bufread::BrotliDecoder;

    use super::*;

    async fn compressed(accept: &str, len: usize) -> (Option<String>, usize) {
        let request = TestRequest::get().insert_header((ACCEPT_ENCODING, accept)).to_http_request();
        let response = HttpResponse::Ok().finish().set_body(Bytes::from("ab".repeat(len / 2)));
        let response = compress(&request, response);
        let coding = response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap().to_owned());
        (coding, response.body().len())
    }

    #[actix_web::test]
    async fn the_preferred_coding_is_used_for_large_bodies() {
        for (accept, coding) in [
            ("gzip, deflate, br, zstd", Some("br")),
            ("gzip, zstd", Some("zstd")),
            ("gzip, deflate, br", Some("br")),
            ("gzip", Some("gzip")),
            ("br;q=0.5, gzip;q=0.9", Some("gzip")),
            ("deflate", None),
            ("identity", None),
            ("gzip;q=0", None),
            ("zstd, br;q=0.9", Some("zstd")),
            ("*", None),
            ("", None),
        ] {
            let (used, len) = compressed(accept, 10_000).await;
            assert_eq!(used.as_deref(), coding, "{accept}");
            assert_eq!(len < 200, coding.is_some(), "{accept}: {len}");
            assert_eq!(compressed(accept, 1_000).await, (None, 1_000), "{accept}");
        }
    }

    /// Returns the text of compressed bytes, as far as they have arrived.
    async fn decompressed(coding: &str, bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut text = Vec::new();
        let read = match coding {
            "gzip" => GzipDecoder::new(bytes).read_to_end(&mut text).await,
            "br" => BrotliDecoder::new(bytes).read_to_end(&mut text).await,
            _ => ZstdDecoder::new(bytes).read_to_end(&mut text).await,
        };
        (text, read.is_ok())
    }

    fn encoder(accept: &str) -> Option<StreamEncoder> {
        StreamEncoder::of(&TestRequest::get().insert_header((ACCEPT_ENCODING, accept)).to_http_request())
    }

    #[actix_web::test]
    async fn each_piece_of_a_compressed_stream_can_be_read_when_it_arrives() {
        let line = |n: u32| format!("{{\"rank\":{n},\"subject\":\"post-{n}\"}}\n");
        let pieces: [String; 3] = [1..1_000, 1_000..1_001, 1_001..9_000].map(|lines| lines.map(line).collect());
        for coding in ["gzip", "br", "zstd"] {
            let mut encoder = encoder(coding).unwrap();
            assert_eq!(encoder.coding(), coding);
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for piece in &pieces {
                bytes.extend(encoder.encode(piece.as_bytes(), false).unwrap());
                expected.extend(piece.as_bytes());
                assert!(decompressed(coding, &bytes).await.0 == expected, "{coding}");
            }
            bytes.extend(encoder.encode(b"the end", true).unwrap());
            expected.extend(b"the end");
            assert!(decompressed(coding, &bytes).await == (expected, true), "{coding}");
        }
        assert!(encoder("identity").is_none());
    }
}
