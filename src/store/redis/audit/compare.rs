//! Comparison of the ranking with the values computed from the slots.

use super::progress::AuditProgress;
use super::read::{Reading, portion, read_all};
use super::repair::{Wrong, set_right};
use super::step_of;
use crate::board::{Aggregate, Subject, Timestamp};
use crate::store::redis::kinds::{self, Folded};
use crate::store::redis::part::Part;
use crate::store::redis::score_text::read_score;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;
use crate::store::{AuditStep, Difference};

/// The largest number of times that one step reads a subject which changes while it is read.
const ATTEMPTS: usize = 6;

/// The data found for a subject: its stored score, its stored total, and the result computed from its slots.
type SeenSubject = (Vec<u8>, Option<Vec<u8>>, Folded);

/// A subject that is not known to be correct.
struct Suspect {
    name: String,
    /// The data found in the last reading.
    last: Option<SeenSubject>,
    /// The last difference that certainly existed.
    found: Option<Difference>,
}

/// Compares as many of the pending subjects as one script reads, or several if the server is distant. With `repair`,
/// repairs those that differ. Subjects that change in the meantime are read again, together.
pub(super) async fn compare(
    session: &Session,
    part: &Part,
    progress: &mut AuditProgress,
    repair: bool,
) -> Result<Option<AuditStep>, ServerFailure> {
    let (count, _) = portion(part.track.kind(), part.existing().slots.len());
    let count = count.saturating_mul(session.servers.at_once(part.slot()));
    let names = progress.pending.split_off(progress.pending.len().saturating_sub(count));
    let since = progress.since.map(Timestamp::from_millis);
    let mut open: Vec<Suspect> = names.into_iter().map(|name| Suspect { name, last: None, found: None }).collect();
    let mut step: Option<AuditStep> = None;
    for attempt in 0..ATTEMPTS {
        let names: Vec<String> = open.iter().map(|suspect| suspect.name.clone()).collect();
        let readings = read_all(session, part, &names).await?;
        let Some(last) = readings.last() else { break };
        let step = step.get_or_insert_with(|| step_of(last.frame));
        step.frame = last.frame;
        let (mut doubtful, mut wrong) = (Vec::new(), Vec::new());
        for (suspect, reading) in open.into_iter().zip(readings) {
            if attempt == 0 {
                if was_compared(&reading, since) {
                    continue;
                }
                step.checked += 1;
            }
            match judge(part, suspect, &reading) {
                Judgement::Right => {}
                Judgement::Doubtful(suspect) => doubtful.push(suspect),
                Judgement::Wrong(suspect, folded) if repair => wrong.push((suspect, Wrong::new(reading, folded))),
                Judgement::Wrong(suspect, _) => step.differences.extend(suspect.found),
            }
        }
        let done = set_right(session, part, &wrong, |(suspect, wrong)| (&suspect.name, wrong)).await?;
        for ((suspect, _), is_done) in wrong.into_iter().zip(done) {
            match is_done {
                true => {
                    step.repaired += 1;
                    step.differences.extend(suspect.found);
                }
                false => doubtful.push(suspect),
            }
        }
        open = doubtful;
        if open.is_empty() {
            break;
        }
    }
    if let Some(step) = &mut step {
        step.differences.extend(open.into_iter().filter_map(|suspect| suspect.found));
    }
    Ok(step)
}

/// Returns whether the subject has data in a slot before those that are being looked through. Then it was compared when
/// its oldest slot was looked through.
fn was_compared(reading: &Reading, since: Option<Timestamp>) -> bool {
    let oldest = reading.held.cells.iter().filter_map(|(place, _)| reading.starts.get(*place)).min();
    since.is_some_and(|since| oldest.is_some_and(|oldest| *oldest < since))
}

enum Judgement {
    Right,
    Wrong(Suspect, Folded),
    /// The subject was read in pieces while others wrote.
    Doubtful(Suspect),
}

fn judge(part: &Part, suspect: Suspect, reading: &Reading) -> Judgement {
    let kind = part.track.kind();
    let folded = folded(part, reading);
    let score = read_score(&reading.held.score, kind);
    let total = Some(reading.held.total.clone()).filter(|total| !total.is_empty());
    if score == folded.score && (!kinds::of(kind).has_totals() || total == folded.total) {
        return Judgement::Right;
    }
    let Suspect { name, last, found } = suspect;
    let seen: SeenSubject = (reading.held.score.clone(), total, folded);
    // If a subject was read in pieces while others wrote, it counts as different if two readings in a row give the same
    // data.
    if !reading.is_atomic && last.as_ref() != Some(&seen) {
        return Judgement::Doubtful(Suspect { name, last: Some(seen), found });
    }
    let shown = |score: Option<crate::board::Value>| score.or(kind.absent());
    let (score, slots) = (shown(score), shown(seen.2.score));
    let found = Some(Difference { subject: Subject::from_stored(name.clone()), score, slots });
    let folded = seen.2.clone();
    Judgement::Wrong(Suspect { name, last: Some(seen), found }, folded)
}

fn folded(part: &Part, reading: &Reading) -> Folded {
    let kind = kinds::of(part.track.kind());
    let sound = |cell: &[u8]| kind.read_cell(cell).filter(|cell| kind.is_sound(cell));
    let cells: Vec<(Timestamp, Aggregate)> = reading
        .held
        .cells
        .iter()
        .filter_map(|(place, cell)| Some((*reading.starts.get(*place)?, sound(cell)?)))
        .collect();
    kind.fold(&part.track, &cells)
}
