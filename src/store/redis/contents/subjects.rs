//! The walk over the subjects of a part whose data is in keys of single subjects.

use serde::{Deserialize, Serialize};

use super::cells::cells;
use super::frames::retain_live;
use super::values::{self, LargePlace};
use super::{AIM, MOST, NoStep, PartStep, is_cursor, run_of};
use crate::board::{Frame, Subject};
use crate::store::Content;
use crate::store::redis::expiry;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{CONTENTS_FIND, CONTENTS_READ};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ATTEMPTS, Moment, ScriptAnswer, Session};

/// The number of subjects of a period that one script looks at. They are part of the position until they were read.
const SUBJECTS: usize = 250;
/// The largest number of times that one step looks for subjects.
const ROUNDS: usize = 8;

/// The position of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubjectPlace {
    /// The period in which to look for subjects, and the server's cursor within it, empty at its beginning, as is
    /// `run`. `None` before the first period.
    period: Option<i64>,
    cursor: String,
    run: String,
    /// Whether all periods were looked through.
    is_end: bool,
    /// The periods that existed from that one on when this was last known.
    periods: Vec<i64>,
    /// The subjects that were found and not read yet.
    pending: Vec<String>,
    /// The position within the first of these, if it has much.
    large: Option<LargePlace>,
}

/// Reads some subjects.
pub(super) async fn step(
    session: &Session,
    part: &Part,
    mut place: SubjectPlace,
) -> Result<PartStep<SubjectPlace>, NoStep> {
    let mut contents = Vec::new();
    let mut latest: Option<Frame> = None;
    for _ in 0..ROUNDS {
        let frame = match (place.pending.first(), place.large.take()) {
            (Some(subject), Some(large)) => {
                let subject = Subject::from_stored(subject.as_str());
                let page = values::page(session, part, &subject, large).await?;
                contents.extend(page.contents.into_iter().map(|content| (subject.clone(), content)));
                place.large = page.next;
                if place.large.is_none() {
                    place.pending.remove(0);
                }
                page.frame
            }
            (Some(_), None) => read(session, part, &mut place, &mut contents).await?,
            (None, _) => find(session, part, &mut place).await?,
        };
        if latest.is_some_and(|latest| latest.window.head < frame.window.head) {
            retain_live(part, &frame, &mut contents);
        }
        latest = Some(frame);
        let is_done = place.is_end && place.pending.is_empty();
        if is_done || contents.len() >= AIM {
            break;
        }
    }
    let frame = latest.ok_or(ServerFailure::KeptChanging)?;
    let is_done = place.is_end && place.pending.is_empty();
    Ok(PartStep { frame, contents, next: (!is_done).then_some(place) })
}

/// Looks for some subjects, and moves the place on.
async fn find(session: &Session, part: &Part, place: &mut SubjectPlace) -> Result<Frame, NoStep> {
    let before = run_of(session, part);
    if !place.cursor.is_empty() && (place.run != before || !is_cursor(&place.cursor)) {
        return Err(NoStep::Lost);
    }
    for _ in 0..ATTEMPTS {
        let answer = session.step(part, &CONTENTS_FIND, |moment, call| {
            let from = first_period(moment).max(place.period);
            let periods: Vec<i64> = place.periods.iter().copied().filter(|period| Some(*period) >= from).collect();
            // If the period in which to continue no longer exists, the next one is begun.
            let is_there = !place.cursor.is_empty() && periods.first().copied() == place.period;
            call.key(&part.keys.periods);
            // The script has a key for one period at least.
            for period in periods.iter().copied().chain(periods.is_empty().then_some(0)) {
                call.key(part.keys.written(period));
            }
            call.arg("from", from.map_or_else(|| "-inf".to_owned(), |from| from.to_string()));
            call.arg("cursor", if is_there { &place.cursor } else { "0" }).arg("subjects", SUBJECTS);
            call.all(&periods);
            (periods, is_there)
        });
        let ScriptAnswer { frame, asked: (periods, is_continued), mut reply, .. } = answer.await?;
        let after = run_of(session, part);
        if is_continued && after != before {
            return Err(NoStep::Lost);
        }
        if reply.text()? == "periods" {
            place.periods.clear();
            while !reply.is_empty() {
                place.periods.push(reply.integer()?);
            }
            continue;
        }
        let cursor = reply.text()?;
        while !reply.is_empty() {
            let subject = reply.text()?;
            // The server may return a subject twice in one reply.
            if !place.pending.contains(&subject) {
                place.pending.push(subject);
            }
        }
        place.periods = periods;
        if cursor != "0" {
            place.period = place.periods.first().copied();
            (place.cursor, place.run) = (cursor, after);
            return Ok(frame);
        }
        (place.cursor, place.run) = Default::default();
        place.period = place.periods.get(1).copied();
        place.is_end = place.period.is_none();
        place.periods.drain(..1.min(place.periods.len()));
        return Ok(frame);
    }
    Err(ServerFailure::KeptChanging.into())
}

/// Returns the oldest period in which subjects may have been written to that have something now, or `None` if every
/// period may be. Subjects of older periods are in a later one too, or have expired.
fn first_period(moment: &Moment<'_>) -> Option<i64> {
    let part = moment.part;
    // Over all time, values stay for ever.
    (part.track.tombstone_life().is_none()).then(|| expiry::oldest_needed(part, &moment.window, moment.now))
}

/// Reads some of the pending subjects. If the first of them has much, notes that it has to be read in pieces.
async fn read(
    session: &Session,
    part: &Part,
    place: &mut SubjectPlace,
    contents: &mut Vec<(Subject, Content)>,
) -> Result<Frame, NoStep> {
    let (track, keys) = (&part.track, &part.keys);
    let by_values = track.kind().remembers_values();
    let weight = usize::try_from(kinds::of(track.kind()).read_weight()).unwrap_or(1);
    let subjects: Vec<Subject> = place.pending.iter().map(|text| Subject::from_stored(text.as_str())).collect();
    let answer = session.step(part, &CONTENTS_READ, |moment, call| {
        let (stored, kept) = match track.is_from_first() {
            true => ("counter", track.length().approximate_millis()),
            false if by_values => ("seen", 0),
            false => ("subject", part.kept(&moment.window).oldest.millis()),
        };
        call.arg("stored", stored).arg("kept", kept).arg("most", MOST / weight);
        for subject in &subjects {
            if by_values {
                call.key(keys.seen(subject)).key(keys.gone(subject));
            } else {
                call.key(keys.subject(subject));
            }
        }
    });
    let ScriptAnswer { frame, mut reply, .. } = answer.await?;
    let mut done = 0;
    for subject in &subjects {
        if reply.is_empty() {
            break;
        }
        let mut held = reply.part()?;
        if held.is_word("large") {
            if done == 0 {
                place.large = Some(LargePlace::default());
            }
            break;
        }
        let of_subject = match by_values {
            true => values::read(part, &frame, &mut held)?,
            false => cells(part, subject, &mut held)?,
        };
        contents.extend(of_subject.into_iter().map(|content| (subject.clone(), content)));
        done += 1;
    }
    place.pending.drain(..done);
    Ok(frame)
}
