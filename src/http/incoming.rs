//! The body of a request as it arrives: decompressed, and counted with the [memory](super::body_memory) of all bodies.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, ContentEncoding};
use actix_web::web::{Bytes, Payload};
use async_compression::tokio::bufread::GzipDecoder;
use futures_util::{Stream, StreamExt, stream};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use tokio_util::io::{ReaderStream, StreamReader};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

use super::body_memory::Hold;
use super::codes::Code;
use super::problem::Problem;

/// The size in bytes of the pieces in which a decompressed body arrives.
const PIECE: usize = 64 << 10;

/// The most compressed bytes that are decoded at a time. Empty members of gzip are the slowest: 200 of them take 1 to 2 ms.
const DECODED_AT_ONCE: usize = 4 << 10;

/// The number of times by which a body may be larger than its compressed form. Lines of events compress to about a
/// twentieth; only a body made for it exceeds this.
const MAX_RATIO: u64 = 250;
/// The number of decompressed bytes to which the ratio does not apply.
const WITHOUT_RATIO: u64 = 1 << 20;

/// The largest window of a zstd body, as a power of 2: 8 MiB, the size that RFC 8878 recommends decoders to support.
/// The decoder of a stream keeps the window in memory while the stream is open.
const MAX_WINDOW_LOG: u32 = 23;

/// The memory of a decoder of gzip with its window and the present piece.
const GZIP_DECODER: usize = 128 << 10;
/// The memory of a decoder of zstd with its input and the present piece, without the window.
const ZSTD_DECODER: usize = 384 << 10;

/// The body of a request as it arrives, decompressed.
pub(super) struct Incoming {
    source: Source,
    hold: Hold,
}

enum Source {
    Plain(Payload),
    Compressed {
        pieces: ReaderStream<Pin<Box<dyn AsyncRead>>>,
        coding: ContentEncoding,
        /// Number of compressed bytes received so far, and the maximum.
        received: Rc<Cell<u64>>,
        max_received: u64,
        /// Number of decompressed bytes so far.
        decompressed: u64,
        /// Number of bytes that the window of the decoder has. It fills as bytes are decompressed.
        window: Rc<Cell<usize>>,
    },
}

impl Incoming {
    /// Returns the body of a request, which takes the memory of `hold`. Reads at most `max_received` compressed bytes.
    /// Fails if its coding is not supported, or if the bodies in progress take too much memory.
    pub(super) fn new(request: &HttpRequest, payload: Payload, max_received: u64, hold: Hold) -> Result<Self, Problem> {
        let Some(coding) = coding(request)? else { return Ok(Self { source: Source::Plain(payload), hold }) };
        let received = Rc::new(Cell::new(0));
        let window = Rc::new(Cell::new(0));
        let compressed = StreamReader::new(counted(payload, received.clone(), max_received));
        let reader: Pin<Box<dyn AsyncRead>> = if coding == ContentEncoding::Gzip {
            let mut decoder = GzipDecoder::new(compressed);
            decoder.multiple_members(true);
            Box::pin(decoder)
        } else {
            Box::pin(Zstd::new(compressed, window.clone())?)
        };
        let pieces = ReaderStream::with_capacity(reader, PIECE);
        let source = Source::Compressed { pieces, coding, received, max_received, decompressed: 0, window };
        let mut incoming = Self { source, hold };
        incoming.hold(0)?;
        Ok(incoming)
    }

    /// Changes the number of bytes that the receiver has of the body, in whatever form. Fails if the bodies in progress
    /// take too much memory.
    pub(super) fn hold(&mut self, received: usize) -> Result<(), Problem> {
        self.hold.set(self.source.decoder() + received)
    }

    /// Changes the number of bytes like [`hold`](Self::hold), and waits for a while for memory that other bodies
    /// return.
    pub(super) async fn obtain(&mut self, received: usize) -> Result<(), Problem> {
        self.hold.obtain(self.source.decoder() + received).await
    }

    /// Returns the memory that the body takes, now that it has arrived. The decoder is gone.
    pub(super) fn into_hold(self) -> Hold {
        self.hold
    }

    /// Returns a number that changes whenever compressed bytes arrive.
    pub(super) fn received(&self) -> u64 {
        match &self.source {
            Source::Plain(_) => 0,
            Source::Compressed { received, .. } => received.get(),
        }
    }

    /// Returns the next piece of the body, at most 64 KiB if it is compressed. One packet may decompress to many
    /// pieces, so a caller must yield between them to the other requests of its worker. Cancel safe: if the future is
    /// dropped before it is ready, no piece is lost.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Problem>> {
        match &mut self.source {
            Source::Plain(payload) => payload.next().await.map(|piece| piece.map_err(incomplete)),
            Source::Compressed { pieces, coding, received, max_received, decompressed, .. } => {
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

impl Source {
    /// Returns the memory that the decoder uses.
    fn decoder(&self) -> usize {
        match self {
            Source::Plain(_) => 0,
            Source::Compressed { coding: ContentEncoding::Gzip, .. } => GZIP_DECODER,
            // A window is allocated as a whole, but takes memory only as far as it is filled.
            Source::Compressed { decompressed, window, .. } => {
                ZSTD_DECODER + window.get().min(usize::try_from(*decompressed).unwrap_or(usize::MAX))
            }
        }
    }
}

/// Returns the coding of a body; `None` if it is not compressed. Fails if it is not supported.
fn coding(request: &HttpRequest) -> Result<Option<ContentEncoding>, Problem> {
    let mut declared = request.headers().get_all(CONTENT_ENCODING).map(|coding| coding.to_str().unwrap_or("?"));
    let Some(mut text) = declared.next().map(str::to_owned) else { return Ok(None) };
    // Several headers mean the same as a list.
    for coding in declared {
        text = format!("{text}, {coding}");
    }
    let text = text.trim().to_ascii_lowercase();
    match text.as_str() {
        "identity" => Ok(None),
        "gzip" | "x-gzip" => Ok(Some(ContentEncoding::Gzip)),
        "zstd" => Ok(Some(ContentEncoding::Zstd)),
        _ => {
            let text: String = text.chars().take(64).collect();
            let detail = format!("content encoding '{text}' is not supported; use gzip, zstd or none");
            Err(Problem::new(Code::UnsupportedMediaType, detail))
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

/// Adds the sizes of the pieces to `received` as they arrive, fails beyond the maximum, and divides them into what a
/// decoder takes at once.
///
/// Before each of these parts it yields to the other requests of the worker: a decoder may consume many of them without
/// any output, and it is the number of its members and frames that takes time, not that of their bytes.
fn counted(payload: Payload, received: Rc<Cell<u64>>, max: u64) -> Pin<Box<dyn Stream<Item = io::Result<Bytes>>>> {
    Box::pin(stream::unfold((payload, Bytes::new()), move |(mut payload, mut arrived)| {
        let received = received.clone();
        async move {
            tokio::task::yield_now().await;
            if arrived.is_empty() {
                match payload.next().await? {
                    Ok(piece) => {
                        received.set(received.get() + piece.len() as u64);
                        arrived = piece;
                    }
                    Err(error) => return Some((Err(io::Error::other(error)), (payload, arrived))),
                }
            }
            if received.get() > max {
                return Some((Err(io::Error::other("too many bytes")), (payload, arrived)));
            }
            let part = arrived.split_to(arrived.len().min(DECODED_AT_ONCE));
            Some((Ok(part), (payload, arrived)))
        }
    }))
}

/// A decoder of zstd that says how much memory its window has. That of `async-compression` does not.
struct Zstd<R> {
    from: R,
    context: DCtx<'static>,
    window: Rc<Cell<usize>>,
    /// Size of the context without a window.
    without_window: usize,
    is_between_frames: bool,
}

impl<R> Zstd<R> {
    fn new(from: R, window: Rc<Cell<usize>>) -> Result<Self, Problem> {
        let context = DCtx::try_create().and_then(|mut context| {
            context.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).ok()?;
            Some(context)
        });
        let context =
            context.ok_or_else(|| Problem::new(Code::Internal, "there is no memory for a decoder of zstd"))?;
        Ok(Self { without_window: context.sizeof(), from, context, window, is_between_frames: false })
    }
}

impl<R: AsyncBufRead + Unpin> AsyncRead for Zstd<R> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let bytes = ready!(Pin::new(&mut this.from).poll_fill_buf(task))?;
            let has_ended = bytes.is_empty();
            if has_ended && this.is_between_frames {
                return Poll::Ready(Ok(()));
            }
            let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(to.initialize_unfilled()));
            let remaining = this.context.decompress_stream(&mut output, &mut input);
            let remaining = remaining.map_err(|code| io::Error::other(get_error_name(code)))?;
            let (read, written) = (input.pos(), output.pos());
            to.advance(written);
            Pin::new(&mut this.from).consume(read);
            this.is_between_frames = remaining == 0;
            this.window.set(this.context.sizeof().saturating_sub(this.without_window));
            if written > 0 {
                return Poll::Ready(Ok(()));
            }
            if has_ended {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write;
    use std::pin::pin;

    use actix_web::FromRequest;
    use actix_web::test::TestRequest;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::body_memory::BodyMemory;
    use super::super::client::Client;
    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(256);
        zstd_safe::compress(&mut frame, text, 3).unwrap();
        frame
    }

    #[actix_web::test]
    async fn what_decompresses_to_nothing_leaves_time_to_other_requests() {
        let skippable = [&0x184D_2A50_u32.to_le_bytes()[..], &[0; 4]].concat();
        for (coding, text, empty) in
            [("gzip", gzip(b"text"), gzip(b"")), ("zstd", zstd(b"text"), zstd(b"")), ("zstd", zstd(b"text"), skippable)]
        {
            let body = [&text[..], &empty.repeat((256 << 10) / empty.len())].concat();
            let turns = body.len() / DECODED_AT_ONCE;
            let request = TestRequest::post().insert_header((CONTENT_ENCODING, coding)).set_payload(body);
            let (request, mut payload) = request.to_http_parts();
            let payload = Payload::from_request(&request, &mut payload).await.unwrap();
            let hold = BodyMemory::new(1 << 30).hold(Client::at(None));
            let mut incoming = Incoming::new(&request, payload, u64::MAX, hold).unwrap();
            let mut polls = 0;
            let mut reading = pin!(async {
                let mut text = Vec::new();
                while let Some(piece) = incoming.next().await {
                    text.extend_from_slice(&piece.unwrap());
                }
                text
            });
            let text = poll_fn(|task| {
                polls += 1;
                reading.as_mut().poll(task)
            })
            .await;
            assert_eq!(text, b"text", "{coding}");
            assert!(polls >= turns, "{coding}: {polls} turns for {turns} parts");
        }
    }
}
