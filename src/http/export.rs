//! Exports of rankings: streams of lines as NDJSON or CSV.
//!
//! A page is read when the client has taken the lines of the previous one. So an export keeps one page in memory,
//! however long the ranking is and however slowly the client reads.
//!
//! Pages are read in [turns](TURNS), and written and compressed on a separate thread. So exports, however many there
//! are, delay other requests of a worker by the time of reading a page.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::http::header::{Accept, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, Header, HeaderValue, Quality};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use csv::{Terminator, WriterBuilder};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::caching::ROLLTOP_AS_OF;
use super::codes::Code;
use super::compression::StreamEncoder;
use super::frame::RankingFrame;
use super::limits::Open;
use super::problem::Problem;
use super::ranking_lines::{RankingLine, RankingLines};
use super::request_id::RequestId;
use super::{cursor, response};
use crate::board::{BoardTrack, Shown, Timestamp};
use crate::service::{About, Export, Page};

/// The turns of exports: as many pages are read and written at a time as half of the processors can. A turn is for one
/// page, so a client that stops reading has none. Tokio's semaphore is fair.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, |number| number.get());
    Semaphore::new((processors / 2).max(1))
});

/// The time for which a read of a page keeps its turn. A store that takes longer is not busy with it, but does not
/// respond, and must not delay exports of boards elsewhere.
const PATIENCE: Duration = Duration::from_millis(20);

/// A format of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// One JSON object per line. The last line says whether the export is complete.
    Ndjson,
    /// Comma-separated values as defined by RFC 4180, with a header.
    Csv,
}

/// The columns of every board; one with second keys has `tie` too, and one with tiers `tier`. Then follow the attributes
/// that are asked for.
const CSV_HEADER: [&str; 3] = ["rank", "subject", "score"];

/// Returns an error if the attributes that are asked for cannot be columns.
pub(super) fn check_columns(track: &BoardTrack) -> Result<(), Problem> {
    let Some(shown) = track.shown_attributes() else { return Ok(()) };
    let is_taken = |name: &str| CSV_HEADER.iter().chain(&["tie", "tier"]).any(|column| name == *column);
    match shown.names.named() {
        [] => Err(Problem::field("attributes", "CSV has a column for each attribute, so 'attributes' must name them")),
        names => match names.iter().find(|name| is_taken(name)) {
            Some(name) => Err(Problem::field("attributes", format!("in CSV, '{name}' is another column"))),
            None => Ok(()),
        },
    }
}

impl Format {
    /// Returns the format that the client prefers to JSON, if there is one. A format must be named in `Accept`: what
    /// only a wildcard matches is not used. If a format and JSON are named as equally preferred, the answer is JSON.
    pub(super) fn requested(request: &HttpRequest) -> Option<Self> {
        let accept = Accept::parse(request).ok()?;
        let quality = |range: &str| {
            let same = accept.iter().filter(|given| given.item.essence_str().eq_ignore_ascii_case(range));
            same.map(|given| given.quality).max()
        };
        let (ndjson, csv) = (quality("application/x-ndjson"), quality("text/csv"));
        let format = if csv > ndjson { Format::Csv } else { Format::Ndjson };
        let preferred = ndjson.max(csv).filter(|quality| *quality > Quality::ZERO)?;
        let is_preferred = match quality("application/json") {
            Some(json) => preferred > json,
            // Of a wildcard and a name of equal quality, the name says what the client is made for.
            None => quality("application/*").or_else(|| quality("*/*")).is_none_or(|json| preferred >= json),
        };
        is_preferred.then_some(format)
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Format::Ndjson => "application/x-ndjson",
            Format::Csv => "text/csv; charset=utf-8; header=present",
        })
    }
}

/// The last line of an NDJSON export. Window, time and total are those of the last page.
#[derive(Serialize, ToSchema)]
pub(super) struct ExportEnd {
    /// Whether all requested lines were sent. An export that ends without this line is not complete either.
    complete: bool,
    #[serde(flatten)]
    frame: RankingFrame,
    /// The board's metric in its canonical form.
    #[schema(value_type = String, example = "COUNT(24h, like, post_id)")]
    metric: Arc<str>,
    /// The instant of the first page. Lines show instants between this one and `as_of`.
    #[schema(value_type = String, format = DateTime)]
    first_as_of: Timestamp,
    /// Number of lines before this one.
    lines: u64,
    /// Cursor at which another export continues after the last line; null at the end of the ranking, and if the board
    /// was removed.
    #[schema(required = true, max_length = 712)]
    next: Option<String>,
    /// The error that ended the export; null if it is complete.
    #[schema(required = true)]
    problem: Option<Problem>,
}

/// Reads the first page, so that its errors are answered as usual. Returns a response that streams this page and the
/// others.
pub(super) async fn respond(
    request: &HttpRequest,
    open: Open,
    format: Format,
    mut export: Export,
) -> Result<HttpResponse, Problem> {
    // A response without a body waits for no turn: nothing of it is written.
    let first = match *request.method() {
        Method::HEAD => export.next_page().await?,
        _ => read(&mut export).await.0?,
    };
    let first = first.ok_or_else(|| Problem::new(Code::Internal, "an export has no first page"))?;
    let as_of = first.answer.frame.as_of;
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, format.content_type()));
    response.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
    response.insert_header((ROLLTOP_AS_OF, as_of.to_string()));
    let encoder = StreamEncoder::of(request);
    if let Some(encoder) = &encoder {
        response.insert_header((CONTENT_ENCODING, encoder.coding()));
    }
    let writing = Writing {
        frame: frame_of(&first),
        first_as_of: as_of,
        format,
        export,
        lines: 0,
        encoder,
        // The body is written after the handler has returned.
        request: RequestId::current(),
        _open: open,
    };
    Ok(response.streaming(stream::unfold((Some(first), Some(writing)), |(first, writing)| async {
        let mut writing = writing?;
        let (page, turn) = match first {
            Some(first) => (Ok(Some(first)), TURNS.acquire().await.ok()),
            None => read(&mut writing.export).await,
        };
        let (piece, writing) = writing.write(page, turn).await;
        Some((piece, (None, writing)))
    })))
}

/// Reads the next page in turn. The turn lasts until the permit is dropped.
async fn read(export: &mut Export) -> (Result<Option<About<Page>>, Problem>, Option<SemaphorePermit<'static>>) {
    // The semaphore is never closed.
    let turn = TURNS.acquire().await.ok();
    let mut reading = std::pin::pin!(export.next_page());
    let (read, turn) = match timeout(PATIENCE, &mut reading).await {
        Ok(read) => (read, turn),
        Err(_) => {
            drop(turn);
            (reading.await, TURNS.acquire().await.ok())
        }
    };
    (read.map_err(Problem::from), turn)
}

/// An export that is being written.
struct Writing {
    format: Format,
    export: Export,
    /// The frame and the metric of the last page.
    frame: (RankingFrame, Arc<str>),
    first_as_of: Timestamp,
    /// The number of lines written.
    lines: u64,
    /// `None` if the client accepts no coding.
    encoder: Option<StreamEncoder>,
    request: RequestId,
    _open: Open,
}

fn frame_of(read: &About<Page>) -> (RankingFrame, Arc<str>) {
    let About { of: track, answer: page } = read;
    (RankingFrame::of(track, &page.frame, page.total), track.canonical_metric().clone())
}

impl Writing {
    /// Writes a page that was read, or the end of the body, on a separate thread. The turn ends with it. Also returns
    /// what writes the next page, unless this was the end.
    async fn write(
        mut self,
        read: Result<Option<About<Page>>, Problem>,
        turn: Option<SemaphorePermit<'static>>,
    ) -> (Result<Bytes, Problem>, Option<Self>) {
        let writing = spawn_blocking(move || {
            let _turn = turn;
            let written = match read {
                Ok(Some(read)) => self.page(&read).and_then(|text| self.encode(text, false)),
                Ok(None) => return (self.last_piece(None), None),
                Err(problem) => Err(problem),
            };
            match written {
                Ok(piece) => (Ok(piece), Some(self)),
                Err(problem) => (self.last_piece(Some(problem)), None),
            }
        });
        writing.await.unwrap_or_else(|error| {
            let problem = Problem::new(Code::Internal, format!("the thread of an export failed: {error}"));
            (Err(problem), None)
        })
    }

    fn last_piece(&mut self, problem: Option<Problem>) -> Result<Bytes, Problem> {
        let text = self.end(problem)?;
        self.encode(text, true)
    }

    /// Returns the bytes of the body for a text, compressed if the client accepts it.
    fn encode(&mut self, text: Vec<u8>, is_last: bool) -> Result<Bytes, Problem> {
        let Some(encoder) = &mut self.encoder else { return Ok(text.into()) };
        encoder
            .encode(&text, is_last)
            .map_err(|error| Problem::new(Code::Internal, format!("an export could not be compressed: {error}")))
    }

    /// Returns the lines of a page.
    fn page(&mut self, read: &About<Page>) -> Result<Vec<u8>, Problem> {
        let About { of: track, answer: page } = read;
        let lines = RankingLines::new(track, page.clone());
        let text = match self.format {
            Format::Ndjson => ndjson(lines.iter())?,
            Format::Csv => {
                let names = track.shown_attributes().map_or(&[][..], |shown| shown.names.named());
                csv(lines.iter(), [track.scale().has_keys(), track.tiers().is_some()], names, self.lines == 0)?
            }
        };
        self.frame = frame_of(read);
        self.lines += page.items.len() as u64;
        Ok(text)
    }

    /// Ends the body. NDJSON has a line that says so; CSV has no such line, so an export that ends early is an error,
    /// which cuts the connection.
    fn end(&mut self, problem: Option<Problem>) -> Result<Vec<u8>, Problem> {
        if let Some(problem) = &problem {
            let (id, code, lines) = (self.request.as_str(), problem.code().as_str(), self.lines);
            let (trace_id, parent_id) = (self.request.trace_id(), self.request.parent_id());
            tracing::info!(request_id = id, trace_id, parent_id, code, lines, "an export ended early");
        }
        let problem = problem.map(|problem| {
            let shown = problem.redacted(&self.request).into_owned();
            shown.with("request_id", self.request.as_str())
        });
        if self.format == Format::Csv {
            return problem.map_or(Ok(Vec::new()), Err);
        }
        // A client error means that the board no longer exists. Its cursors are useless.
        let can_continue = problem.as_ref().is_none_or(|problem| problem.code().status().is_server_error());
        let next = self.export.next().filter(|_| can_continue);
        let (frame, metric) = self.frame.clone();
        ndjson([ExportEnd {
            complete: problem.is_none(),
            next: next.map(|next| cursor::encode(next, frame.key())),
            frame,
            metric,
            first_as_of: self.first_as_of,
            lines: self.lines,
            problem,
        }])
    }
}

/// Returns values as lines of JSON.
fn ndjson(values: impl IntoIterator<Item = impl Serialize>) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    for value in values {
        response::append_line(&mut text, &value)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Returns lines as CSV.
fn csv<'p>(
    lines: impl IntoIterator<Item = RankingLine<'p>>,
    [with_ties, with_tiers]: [bool; 2],
    names: &[Box<str>],
    with_header: bool,
) -> Result<Vec<u8>, Problem> {
    let not_written = |error: &dyn std::fmt::Display| {
        Problem::new(Code::Internal, format!("a line could not be written as CSV: {error}"))
    };
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let mut write =
        |[rank, subject, score]: [&str; CSV_HEADER.len()], tie: &str, tier: &str, attributes: Vec<Cow<'_, str>>| {
            let more = with_ties.then_some(tie).into_iter().chain(with_tiers.then_some(tier));
            let more = more.chain(attributes.iter().map(|text| &**text));
            writer.write_record([rank, subject, score].into_iter().chain(more)).map_err(|error| not_written(&error))
        };
    if with_header {
        write(CSV_HEADER, "tie", "tier", names.iter().map(|name| Cow::Borrowed(&**name)).collect())?;
    }
    for RankingLine { rank, subject, score, tie, tier, attributes, .. } in lines {
        let attributes = attributes.unwrap_or_default();
        let cells = names.iter().map(|name| attributes.text(name)).collect();
        let (rank, score) = (rank.to_string(), score.as_ref().map(Shown::to_string).unwrap_or_default());
        let tie = tie.map_or_else(String::new, |tie| tie.to_string());
        // No subject is empty, so an empty field is that of a line whose subject was removed.
        let name = subject.removed_line().map_or(subject.as_str(), |_| "");
        write([&rank, name, &score], &tie, tier.map_or("", |tier| tier), cells)?;
    }
    writer.into_inner().map_err(|error| not_written(&error))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::ACCEPT;
    use actix_web::test::TestRequest;
    use serde_json::Value as Json;

    use super::*;
    use crate::board::{Amount, Decimals, Subject, Value};

    fn requested(accept: &[&str]) -> Option<Format> {
        let request = accept.iter().fold(TestRequest::get(), |request, value| request.append_header((ACCEPT, *value)));
        Format::requested(&request.to_http_request())
    }

    #[test]
    fn a_format_is_used_if_it_is_named_and_preferred() {
        use Format::{Csv, Ndjson};
        for (accept, format) in [
            (&[][..], None),
            (&[""], None),
            (&["*/*"], None),
            (&["application/*"], None),
            (&["text/*"], None),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], None),
            (&["image/png"], None),
            (&["no media type, ;q=1"], None),
            (&["application/json"], None),
            (&["application/x-ndjson"], Some(Ndjson)),
            (&["text/csv"], Some(Csv)),
            (&["Text/CSV; header=present; charset=UTF-8"], Some(Csv)),
            (&["application/x-ndjson, */*"], Some(Ndjson)),
            (&["application/x-ndjson, application/*"], Some(Ndjson)),
            (&["application/x-ndjson;q=0.5, */*"], None),
            (&["application/x-ndjson;q=0.5, */*;q=0.1"], Some(Ndjson)),
            (&["text/csv;q=0.5, application/*;q=0.1, */*"], Some(Csv)),
            (&["application/json, application/x-ndjson"], None),
            (&["application/x-ndjson, application/json"], None),
            (&["application/x-ndjson, application/json;q=0.9"], Some(Ndjson)),
            (&["application/json;q=0.9, text/csv"], Some(Csv)),
            (&["application/json;q=0.2, text/csv;q=0.3, application/x-ndjson;q=0.4"], Some(Ndjson)),
            (&["text/csv, application/x-ndjson"], Some(Ndjson)),
            (&["text/csv, application/x-ndjson;q=0.9"], Some(Csv)),
            (&["text/csv;q=0"], None),
            (&["application/json;q=0, text/csv;q=0.001"], Some(Csv)),
            (&["application/json;q=0.5", "text/csv"], Some(Csv)),
        ] {
            assert_eq!(requested(accept), format, "{accept:?}");
        }
    }

    fn line(rank: u64, subject: &str, score: Option<Value>) -> RankingLine<'static> {
        let decimals = Decimals::new(2).unwrap();
        RankingLine {
            rank,
            subject: Box::leak(Box::new(Subject::parse(subject).unwrap())),
            score: score.map(|score| score.shown(decimals)),
            tie: None,
            attributes: None,
            tier: None,
            from: None,
        }
    }

    fn lines() -> Vec<RankingLine<'static>> {
        vec![
            line(1, "plain", Some(Value::Exact(Amount(1_250)))),
            line(2, r#"["a, b","c"]"#, Some(Value::Exact(Amount(-300)))),
            line(3, " spaces ", Some(Value::Real(1_000.0 / 3.0))),
            line(4, "日本 🎉", Some(Value::Exact(Amount((1 << 53) - 1)))),
            line(5, "=1+2", None),
        ]
    }

    #[test]
    fn a_line_whose_subject_was_removed_keeps_its_place() {
        let removed = Subject::removed(1);
        let nameless = || [line(1, "a", None), RankingLine { subject: &removed, ..line(2, "b", None) }];
        let json = String::from_utf8(ndjson(nameless()).unwrap()).unwrap();
        assert_eq!(json.lines().nth(1), Some(r#"{"rank":2,"subject":null,"score":null}"#));
        assert_eq!(String::from_utf8(csv(nameless(), [false; 2], &[], false).unwrap()).unwrap(), "1,a,\r\n2,,\r\n");
    }

    #[test]
    fn lines_of_json() {
        let text = String::from_utf8(ndjson(lines()).unwrap()).unwrap();
        let expected = [
            r#"{"rank":1,"subject":"plain","score":12.5}"#,
            r#"{"rank":2,"subject":"[\"a, b\",\"c\"]","score":-3}"#,
            r#"{"rank":3,"subject":" spaces ","score":3.333333333333333}"#,
            r#"{"rank":4,"subject":"日本 🎉","score":90071992547409.91}"#,
            r#"{"rank":5,"subject":"=1+2","score":null}"#,
        ];
        assert_eq!(text, expected.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn lines_of_csv_are_quoted_where_they_must_be() {
        let text = String::from_utf8(csv(lines(), [false; 2], &[], true).unwrap()).unwrap();
        let expected = [
            "rank,subject,score",
            "1,plain,12.5",
            r#"2,"[""a, b"",""c""]",-3"#,
            "3, spaces ,3.333333333333333",
            "4,日本 🎉,90071992547409.91",
            "5,=1+2,",
        ];
        assert_eq!(text, expected.map(|line| format!("{line}\r\n")).concat());
        assert_eq!(csv(Vec::new(), [false; 2], &[], false).unwrap(), b"");
    }

    #[test]
    fn csv_and_json_have_the_same_numbers() {
        let (json, csv) = (ndjson(lines()).unwrap(), csv(lines(), [false; 2], &[], true).unwrap());
        let mut reader = csv::Reader::from_reader(&csv[..]);
        let records: Vec<_> = reader.records().map(Result::unwrap).collect();
        for (line, record) in json.split(|b| *b == b'\n').zip(&records) {
            let line: Json = serde_json::from_slice(line).unwrap();
            let score = if line["score"].is_null() { String::new() } else { line["score"].to_string() };
            assert_eq!([&record[0], &record[1]], [&line["rank"].to_string(), line["subject"].as_str().unwrap()]);
            // Integers of a board with decimals have no point in either.
            assert_eq!(record[2].parse::<f64>().ok(), score.parse::<f64>().ok());
        }
        assert_eq!(records.len(), 5);
    }
}
