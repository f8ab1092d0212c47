//! Compression of responses.

use std::error::Error;
use std::future::poll_fn;

use actix_web::body::{BodyStream, BoxBody, MessageBody};
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
use futures_util::{FutureExt, stream};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bodies below this size in bytes are not compressed: they fit into one packet in any case.
const MIN_BYTES: usize = 1_024;

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

/// Compresses the body of a response that is a stream, if the client accepts a supported coding.
///
/// Each piece of the body becomes a piece of compressed bytes from which it can be decompressed at once. The next one is
/// read when the client has taken it.
pub(super) fn compress_stream(
    request: &HttpRequest,
    mut response: HttpResponse<()>,
    body: BoxBody,
) -> HttpResponse<BoxBody> {
    let coding = if request.headers().contains_key(ACCEPT_ENCODING) { accepted(request) } else { None };
    let Some(coding) = coding else { return response.set_body(body) };
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    let pieces = stream::unfold(Some((Encoder::new(coding), body)), |state| async {
        let (mut encoder, mut body) = state?;
        Some(match poll_fn(|context| body.as_pin_mut().poll_next(context)).await {
            Some(Ok(piece)) => (encoder.piece(&piece).await, Some((encoder, body))),
            Some(Err(error)) => (Err(error), None),
            None => (encoder.end().await, None),
        })
    });
    response.set_body(BoxBody::new(BodyStream::new(pieces)))
}

/// The window of a compressed stream, as a power of 2: 256 KiB. With their tables, encoders keep 0.2 MB (gzip) to about 2.5
/// MB (br) in memory while the stream is open; with the windows of single responses they would keep more.
const WINDOW_LOG: u32 = 18;

/// An encoder of a stream, with the compressed bytes that were not taken yet.
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

    /// Returns the compressed bytes of a piece. Writing to memory never waits.
    async fn piece(&mut self, piece: &[u8]) -> Result<Bytes, Box<dyn Error>> {
        let writer = self.writer();
        writer.write_all(piece).await?;
        writer.flush().await?;
        Ok(self.take())
    }

    /// Returns the compressed bytes that end the stream.
    async fn end(&mut self) -> Result<Bytes, Box<dyn Error>> {
        self.writer().shutdown().await?;
        Ok(self.take())
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
    use std::io;

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

    fn streamed<E: Into<Box<dyn Error>> + 'static>(
        accept: &str,
        pieces: Vec<Result<Bytes, E>>,
    ) -> HttpResponse<BoxBody> {
        let request = TestRequest::get().insert_header((ACCEPT_ENCODING, accept)).to_http_request();
        let body = BoxBody::new(BodyStream::new(stream::iter(pieces)));
        compress_stream(&request, HttpResponse::Ok().finish().drop_body(), body)
    }

    async fn next(body: &mut BoxBody) -> Option<Result<Bytes, Box<dyn Error>>> {
        poll_fn(|context| body.as_pin_mut().poll_next(context)).await
    }

    #[actix_web::test]
    async fn each_piece_of_a_compressed_stream_can_be_read_when_it_arrives() {
        let line = |n: u32| format!("{{\"rank\":{n},\"subject\":\"post-{n}\"}}\n");
        let pieces: Vec<Bytes> = [1..1_000, 1_000..1_001, 1_001..9_000]
            .map(|lines| lines.map(line).collect())
            .map(|text: String| text.into())
            .into();
        for coding in ["gzip", "br", "zstd"] {
            let mut body = streamed(coding, pieces.iter().cloned().map(Ok::<_, io::Error>).collect()).into_body();
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for piece in &pieces {
                bytes.extend(next(&mut body).await.unwrap().unwrap());
                expected.extend(piece);
                assert!(decompressed(coding, &bytes).await.0 == expected, "{coding}");
            }
            while let Some(end) = next(&mut body).await {
                bytes.extend(end.unwrap());
            }
            assert!(decompressed(coding, &bytes).await == (expected, true), "{coding}");
        }
    }

    #[actix_web::test]
    async fn an_error_ends_a_compressed_stream() {
        for accept in ["gzip", "br", "zstd", "identity"] {
            let pieces = vec![Ok(Bytes::from_static(b"one")), Err(io::Error::other("lost")), Ok(Bytes::new())];
            let response = streamed(accept, pieces);
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), accept != "identity");
            let mut body = response.into_body();
            let one = next(&mut body).await.unwrap().unwrap();
            let text = if accept == "identity" { one.to_vec() } else { decompressed(accept, &one).await.0 };
            assert_eq!(text, b"one", "{accept}");
            assert!(next(&mut body).await.unwrap().is_err(), "{accept}");
        }
    }
}
