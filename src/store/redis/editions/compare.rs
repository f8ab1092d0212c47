//! What subjects have in a track of each edition.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};

use crate::board::{Aggregate, Amount, BoardTrack, Frame, Subject, Timestamp, Value};
use crate::store::Compared;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{COMPARE, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;
use crate::store::redis::several_tracks::{Answer, call};

/// The number of scripts that are called at the same time.
const TOGETHER: usize = 8;
/// The approximate number of cells that one script reads.
const CELLS: usize = 4_000;

/// How a track stores subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Ranked,
    Subject,
    Seen,
    Counter,
}

impl Stored {
    fn of(track: &BoardTrack) -> Self {
        match track.is_ranked() {
            true => Self::Ranked,
            false if track.is_from_first() => Self::Counter,
            false if track.kind().remembers_values() => Self::Seen,
            false => Self::Subject,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ranked => "ranked",
            Self::Subject => "subject",
            Self::Seen => "seen",
            Self::Counter => "counter",
        }
    }

    /// Returns the keys of a subject.
    fn key(self, part: &Part, subject: &Subject) -> Option<String> {
        match self {
            Self::Ranked => None,
            Self::Subject | Self::Counter => Some(part.keys.subject(subject)),
            Self::Seen => Some(part.keys.seen(subject)),
        }
    }
}

/// Returns what subjects have in both tracks. What each of them has is of one instant, and so are those of a partition
/// that one script reads.
pub(in crate::store::redis) async fn compare(
    session: &Session,
    tracks: [&BoardTrack; 2],
    subjects: &[Subject],
) -> Result<Compared, ServerFailure> {
    let parts = tracks.map(|track| session.parts_of(track));
    let cells = |track: &BoardTrack| if Stored::of(track) == Stored::Subject { track.kept() as usize } else { 1 };
    let most = (CELLS / tracks.map(cells).into_iter().max().unwrap_or(1)).max(1);
    let mut shares: Vec<Vec<usize>> = vec![Vec::new(); parts[0].count()];
    for (place, subject) in subjects.iter().enumerate() {
        shares[parts[0].number_of(subject)].push(place);
    }
    // Without subjects only the frames are asked for.
    if subjects.is_empty() {
        return read(session, [parts[0].first(), parts[1].first()], &[]).await;
    }
    let mut calls = Vec::new();
    for (number, share) in shares.iter().enumerate() {
        let own = [&parts[0].all()[number], &parts[1].all()[number]];
        for places in share.chunks(most) {
            calls.push(async move {
                let chosen: Vec<&Subject> = places.iter().map(|place| &subjects[*place]).collect();
                read(session, own, &chosen).await.map(|compared| (places, compared))
            });
        }
    }
    let mut all: Option<Compared> = None;
    let mut values = vec![[None, None]; subjects.len()];
    let mut calls = stream::iter(calls).buffer_unordered(TOGETHER);
    while let Some(compared) = calls.next().await {
        let (places, compared) = compared?;
        for (place, found) in places.iter().zip(&compared.values) {
            values[*place] = *found;
        }
        let frames = all.map_or(compared.frames, |before| later(before.frames, compared.frames));
        all = Some(Compared { frames, values: Vec::new() });
    }
    let frames = all.map(|all| all.frames).ok_or(ServerFailure::KeptChanging)?;
    Ok(Compared { frames, values })
}

/// Returns the later frame of each track, with the larger number of retiring slots.
fn later(a: [Frame; 2], b: [Frame; 2]) -> [Frame; 2] {
    [0, 1].map(|n| {
        let later = if (a[n].window.head, a[n].as_of) <= (b[n].window.head, b[n].as_of) { b[n] } else { a[n] };
        Frame { retiring: a[n].retiring.max(b[n].retiring), ..later }
    })
}

async fn read(session: &Session, parts: [&Arc<Part>; 2], subjects: &[&Subject]) -> Result<Compared, ServerFailure> {
    let both = parts.map(|part| &**part);
    let answer = call(session, &both, &COMPARE, "", |_| {
        Vec::from(parts.map(|part| {
            let stored = Stored::of(&part.track);
            let life = match stored {
                Stored::Counter => part.track.length().approximate_millis().to_string(),
                _ => String::new(),
            };
            let mut call = ScriptCall::default();
            call.keys(subjects.iter().filter_map(|subject| stored.key(part, subject)));
            call.arg("stored", stored.name()).arg("life", life).all(subjects);
            call
        }))
    });
    let Answer { header, attempt, mut reply } = answer.await?;
    let mut frames = [0, 1].map(|number: usize| header.frame(attempt.windows[number].window));
    let mut values = vec![[None, None]; subjects.len()];
    for (number, part) in parts.into_iter().enumerate() {
        frames[number].retiring = reply.count()?;
        for found in &mut values {
            found[number] = value(part, &mut reply)?;
        }
    }
    Ok(Compared { frames, values })
}

/// Reads what a subject has in a track.
fn value(part: &Part, reply: &mut Reply) -> Result<Option<Value>, ServerFailure> {
    let track = &part.track;
    match Stored::of(track) {
        Stored::Ranked | Stored::Seen => reply.score(track.kind()),
        Stored::Counter => {
            let mut counter = reply.part()?;
            if counter.is_empty() {
                return Ok(None);
            }
            counter.time()?;
            Ok(Some(Value::Exact(Amount(counter.integer()?))))
        }
        Stored::Subject => {
            let (mut cells, mut held) = (Vec::<(Timestamp, Aggregate)>::new(), reply.part()?);
            while !held.is_empty() {
                let start = held.time()?;
                cells.extend(held.aggregate(track.kind())?.map(|cell| (start, cell)));
            }
            // Of LAST the newest slot has the value. The fields of a hash have no order.
            cells.sort_by_key(|(start, _)| *start);
            Ok(if cells.is_empty() { None } else { track.value(cells.iter().map(|(_, cell)| cell)) })
        }
    }
}
