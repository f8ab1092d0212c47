//! The contents of a board as a stream of lines.
//!
//! A few steps are read when the client has taken the lines of the previous ones, so a request keeps only these in
//! memory.

use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::cursor::After;
use super::lines::{ContentsEnd, ContentsHeader, ContentsLine, TrackState, VERSION};
use super::parts;
use crate::board::{Attributes, Moderation, ModerationList, Subject};
use crate::http::codes::Code;
use crate::http::compression::StreamEncoder;
use crate::http::limits::Open;
use crate::http::problem::Problem;
use crate::http::request_id::RequestId;
use crate::http::response;
use crate::service::{self, Content, ContentsWalk, ImportId, Status, is_unchanged};

/// The number of contents from which a piece has enough. The more there are, the fewer lines they are divided into: a
/// step of the embedded store has contents of all slots.
const ENOUGH: usize = 16_000;
/// The number of moderated subjects of a piece.
const MODERATED: u32 = 1_000;
/// The number of subjects with attributes of a piece: at most 1 MB.
const DESCRIBED: u32 = 1_000;
/// The largest number of steps of a piece, however few contents they have.
const MOST_STEPS: usize = 32;

/// Returns a response that streams the header and everything after the position.
pub(super) fn respond(
    request: &HttpRequest,
    open: Open,
    after: &After,
    is_continued: bool,
    walk: ContentsWalk,
    before: Vec<Status>,
) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")));
    response.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
    let encoder = StreamEncoder::of(request);
    if let Some(encoder) = &encoder {
        response.insert_header((CONTENT_ENCODING, encoder.coding()));
    }
    if *request.method() == Method::HEAD {
        return response.finish();
    }
    let writing = Writing {
        export: after.export,
        n: after.n,
        last: after.last.clone(),
        walk,
        before,
        is_continued,
        encoder,
        request: RequestId::current(),
        _open: open,
    };
    response.streaming(stream::unfold(Some((Stage::Header, writing)), |state| async {
        let (stage, writing) = state?;
        let (piece, next) = writing.piece(stage).await;
        Some((piece, next))
    }))
}

/// What is written next.
enum Stage {
    Header,
    /// The subjects of this list after this one.
    Moderated(ModerationList, Option<Subject>),
    /// The subjects with attributes after this one.
    Described(Option<Subject>),
    Steps,
    /// The numbers of counted items, and the end.
    End,
}

/// Contents that are being written.
struct Writing {
    export: ImportId,
    /// The number of the last line, and of that of each track.
    n: u64,
    last: Vec<u64>,
    walk: ContentsWalk,
    before: Vec<Status>,
    is_continued: bool,
    encoder: Option<StreamEncoder>,
    request: RequestId,
    _open: Open,
}

/// What a piece is written from.
enum Read {
    Moderated(ModerationList, Vec<(Subject, Moderation)>),
    Described(Vec<(Subject, Attributes)>),
    Contents(usize, Vec<(Subject, Content)>),
    After(Vec<Status>),
}

impl Writing {
    /// Returns the next piece of the body, and what writes the one after it.
    async fn piece(mut self, stage: Stage) -> (Result<Bytes, Problem>, Option<(Stage, Self)>) {
        let read = match stage {
            Stage::Header => {
                let piece = self.beginning().and_then(|text| self.encode(&text, false));
                let is_written = piece.is_ok();
                let next = match self.is_continued {
                    true => Stage::Steps,
                    false => Stage::Moderated(ModerationList::Hidden, None),
                };
                return (piece, is_written.then_some((next, self)));
            }
            Stage::Moderated(list, after) => {
                let moderated = self.walk.moderated(list, after.as_ref(), MODERATED).await;
                moderated.map(|moderated| Read::Moderated(list, moderated))
            }
            Stage::Described(after) => self.walk.described(after.as_ref(), DESCRIBED).await.map(Read::Described),
            Stage::Steps => match self.steps().await {
                Ok(Some((track, contents))) => Ok(Read::Contents(track, contents)),
                Ok(None) => return (Ok(Bytes::new()), Some((Stage::End, self))),
                Err(error) => Err(error),
            },
            Stage::End => self.walk.statuses().await.map(Read::After),
        };
        // Thousands of lines are written and compressed elsewhere, so that they do not delay the other requests of this
        // thread.
        let written = spawn_blocking(move || match read {
            Ok(Read::Moderated(list, moderated)) => {
                let next = match moderated.last() {
                    Some((last, _)) => Stage::Moderated(list, Some(last.clone())),
                    None if list == ModerationList::Hidden => Stage::Moderated(ModerationList::Frozen, None),
                    None => Stage::Described(None),
                };
                match self.moderated(list, moderated).and_then(|text| self.encode(&text, false)) {
                    Ok(piece) => (Ok(piece), Some((next, self))),
                    Err(problem) => (self.end(None, Some(problem)), None),
                }
            }
            Ok(Read::Described(described)) => {
                let next = match described.last() {
                    Some((last, _)) => Stage::Described(Some(last.clone())),
                    None => Stage::Steps,
                };
                let lines = self.lines_of_subjects(parts::described_lines(&described));
                match lines.and_then(|text| self.encode(&text, false)) {
                    Ok(piece) => (Ok(piece), Some((next, self))),
                    Err(problem) => (self.end(None, Some(problem)), None),
                }
            }
            Ok(Read::Contents(track, contents)) => {
                match self.contents(track, &contents).and_then(|text| self.encode(&text, false)) {
                    Ok(piece) => (Ok(piece), Some((Stage::Steps, self))),
                    Err(problem) => (self.end(None, Some(problem)), None),
                }
            }
            Ok(Read::After(after)) => (self.end(Some(&after), None), None),
            Err(error) => (self.end(None, Some(error.into())), None),
        });
        written.await.unwrap_or_else(|error| {
            (Err(Problem::new(Code::Internal, format!("the thread that writes contents failed: {error}"))), None)
        })
    }

    /// Returns the first line, and unless the walk is continued, the numbers of items that were counted before it.
    fn beginning(&mut self) -> Result<Vec<u8>, Problem> {
        let board = self.walk.board().clone();
        let tracks =
            board.edition().tracks().iter().zip(&self.before).map(|(track, status)| TrackState::of(track, status));
        let as_of = self.before.iter().map(|status| status.frame.as_of).min().unwrap_or_default();
        let mut text = line(&ContentsHeader {
            contents: VERSION,
            export: self.export.to_string(),
            board: board.name().to_string(),
            definition: board.definition().clone(),
            as_of,
            tracks: tracks.collect(),
        })?;
        if !self.is_continued {
            for number in 0..self.before.len() {
                let before = items_by_slot(&self.before[number]);
                if !before.is_empty() {
                    // It is no part of what an import merges.
                    self.n += 1;
                    let n = self.n;
                    text.append(&mut line(&ContentsLine { n, track: number, before, ..ContentsLine::default() })?);
                }
            }
        }
        Ok(text)
    }

    /// Returns moderated subjects as lines. Those of the list of frozen ones are left out if they are hidden, because that
    /// list comes later.
    fn moderated(
        &mut self,
        list: ModerationList,
        mut moderated: Vec<(Subject, Moderation)>,
    ) -> Result<Vec<u8>, Problem> {
        if list == ModerationList::Frozen {
            moderated.retain(|(_, moderation)| !moderation.is_in(ModerationList::Hidden));
        }
        self.lines_of_subjects(parts::moderated_lines(&moderated))
    }

    fn lines_of_subjects(&mut self, lines: Vec<ContentsLine<'_>>) -> Result<Vec<u8>, Problem> {
        let mut text = Vec::new();
        for mut part in lines {
            (part.prev, part.n) = self.next(0);
            text.append(&mut line(&part)?);
        }
        Ok(text)
    }

    /// Reads some steps of one track. Returns the number of the track with its contents, or `None` at the end.
    async fn steps(&mut self) -> service::Result<Option<(usize, Vec<(Subject, Content)>)>> {
        let Some((track, step)) = self.walk.next_step().await? else { return Ok(None) };
        let mut contents = step.contents;
        for _ in 1..MOST_STEPS {
            let is_same_track = self.walk.position().is_some_and(|position| position.track == track);
            if !is_same_track || contents.len() >= ENOUGH {
                break;
            }
            let Some((_, step)) = self.walk.next_step().await? else { break };
            contents.extend(step.contents);
        }
        Ok(Some((track, contents)))
    }

    /// Returns contents as lines. The last one has the cursor after it.
    fn contents(&mut self, track: usize, contents: &[(Subject, Content)]) -> Result<Vec<u8>, Problem> {
        let mut text = Vec::new();
        let mut lines = parts::lines(contents, self.walk.board().kind()).into_iter().peekable();
        while let Some(mut part) = lines.next() {
            (part.prev, part.n) = self.next(track);
            part.track = track;
            if lines.peek().is_none() {
                part.cursor = self.walk.position().map(|position| {
                    let last = self.last.clone();
                    After { export: self.export, n: part.n, last, position: position.clone() }.print().into()
                });
            }
            text.append(&mut line(&part)?);
        }
        Ok(text)
    }

    /// Returns the number of the last line about this track, and that of the next line, which is about it.
    fn next(&mut self, track: usize) -> (u64, u64) {
        self.n += 1;
        let last = self.last.get_mut(track).map_or(0, |last| std::mem::replace(last, self.n));
        (last, self.n)
    }

    /// Returns the end of the body, with the numbers of counted items if the walk has reached its end.
    fn end(&mut self, after: Option<&Vec<Status>>, problem: Option<Problem>) -> Result<Bytes, Problem> {
        let board = self.walk.board().clone();
        let tracks = || board.edition().tracks().iter().zip(after.into_iter().flatten());
        let mut text = Vec::new();
        for (number, (_, status)) in tracks().enumerate() {
            let events = items_by_slot(status);
            if !events.is_empty() {
                let (prev, n) = self.next(number);
                text.append(&mut line(&ContentsLine { n, prev, track: number, events, ..ContentsLine::default() })?);
            }
        }
        let unchanged = tracks().zip(&self.before).map(|((track, after), before)| {
            is_unchanged(before, after, !track.is_from_first()).filter(|_| !self.is_continued)
        });
        let unchanged: Vec<Option<bool>> = unchanged.collect();
        let problem = problem.map(|problem| {
            let shown = problem.redacted(&self.request).into_owned();
            shown.with("request_id", self.request.as_str())
        });
        text.append(&mut line(&ContentsEnd {
            complete: problem.is_none(),
            export: self.export.to_string(),
            unchanged: match unchanged.contains(&Some(false)) {
                true => Some(false),
                false => {
                    unchanged.into_iter().collect::<Option<Vec<bool>>>().filter(|all| !all.is_empty()).map(|_| true)
                }
            },
            as_of: tracks().map(|(_, status)| status.frame.as_of).max(),
            tracks: tracks().map(|(track, status)| TrackState::of(track, status)).collect(),
            last: self.last.clone(),
            problem,
        })?);
        self.encode(&text, true)
    }

    /// Returns the bytes of the body for a text, compressed if the client accepts it.
    fn encode(&mut self, text: &[u8], is_last: bool) -> Result<Bytes, Problem> {
        let Some(encoder) = &mut self.encoder else { return Ok(text.to_vec().into()) };
        encoder
            .encode(text, is_last)
            .map_err(|error| Problem::new(Code::Internal, format!("contents could not be compressed: {error}")))
    }
}

fn items_by_slot(status: &Status) -> Vec<(i64, u64)> {
    status.events.iter().map(|(start, items)| (start.millis(), *items)).collect()
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    response::append_line(&mut text, value)?;
    text.push(b'\n');
    Ok(text)
}
