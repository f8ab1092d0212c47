//! Compression of responses.

use std::io;

use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CONTENT_ENCODING, ContentEncoding, Encoding, Header, HeaderValue,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use async_compression::Level;
use async_compression::brotli::EncoderParams;
use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZstdEncoder};
use async_compression::tokio::write;
use async_compression::zstd::CParameter;
use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bodies below this size in bytes are not compressed: they fit into one packet in any case.
const MIN_BYTES: usize = 1_024;

/// Compresses the body of a response if it is large enough, not compressed yet, and the client accepts a supported
/// coding. O(bytes).
///
/// This is not asynchronous, because an encoder takes kilobytes, and every request would carry them in its future.
pub(super) fn compress(request: &HttpRequest, mut response: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    if response.body().len() < MIN_BYTES || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let Some(coding) = accepted(request) else { return response };
    let Some(compressed) = compressed(coding, response.body()) else { return response };
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    response.set_body(compressed)
}

/// Returns the compressed form of a body. O(bytes).
pub(super) fn compressed(coding: ContentEncoding, body: &[u8]) -> Option<Bytes> {
    let mut compressed = Vec::with_capacity(body.len() / 4);
    let level = level(coding);
    // Reading from memory never waits.
    let done = match coding {
        ContentEncoding::Zstd => ZstdEncoder::with_quality(body, level).read_to_end(&mut compressed).now_or_never(),
        ContentEncoding::Brotli => BrotliEncoder::with_quality(body, level).read_to_end(&mut compressed).now_or_never(),
        _ => GzipEncoder::with_quality(body, level).read_to_end(&mut compressed).now_or_never(),
    };
    if !matches!(done, Some(Ok(_))) {
        tracing::debug!(?done, "a response was not compressed");
        return None;
    }
    Some(compressed.into())
}

/// Returns the coding that the client prefers: of equally preferred ones br, zstd, gzip.
pub(super) fn accepted(request: &HttpRequest) -> Option<ContentEncoding> {
    if !request.headers().contains_key(ACCEPT_ENCODING) {
        return None;
    }
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

/// The window of a compressed stream, as a power of 2: 256 KiB. With their tables, encoders keep 0.2 MB (gzip) to about
/// 2.5 MB (br) in memory while the stream is open; with the windows of single responses they would keep more.
const WINDOW_LOG: u32 = 18;

/// The encoder of a body that is a stream. Each piece of the body becomes a piece of compressed bytes from which it can
/// be decompressed at once.
pub(super) struct StreamEncoder {
    coding: ContentEncoding,
    encoder: Encoder,
}

impl StreamEncoder {
    /// Returns an encoder of the coding that the client prefers, or `None` if it accepts none.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        let coding = accepted(request)?;
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

#[cfg(test)]
mod tests {

    use actix_web::test::TestRequest;
    use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZstdDecoder};

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
