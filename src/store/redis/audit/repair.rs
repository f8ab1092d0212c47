//! Repair of subjects, many in one script, each only if nothing has changed since it was read.
//!
//! Changes are detected by the board version. If there are writes all the time, they are detected by the cells
//! themselves, which must then be sent to the server.

use std::ops::Range;

use super::read::Reading;
use crate::store::redis::kinds::Folded;
use crate::store::redis::part::Part;
use crate::store::redis::score_text::score_text;
use crate::store::redis::scripts::AUDIT_REPAIR;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;

/// The largest number of subjects that one script repairs.
const SUBJECTS: usize = 500;
/// The largest number of bytes that one script receives, unless a single subject has more.
const BYTES: usize = 128 * 1_024;

/// The data of a subject, and its correct score and total.
pub(super) struct Wrong {
    reading: Reading,
    score: String,
    total: Vec<u8>,
}

/// The means by which a script detects that nothing has changed.
#[derive(Clone, Copy)]
enum Proof<'a> {
    Version(&'a str),
    Cells,
}

impl Wrong {
    pub fn new(reading: Reading, folded: Folded) -> Self {
        Self { reading, score: score_text(folded.score), total: folded.total.unwrap_or_default() }
    }

    fn bytes(&self, name: &str, proof: Proof<'_>) -> usize {
        let held = &self.reading.held;
        let cells = match proof {
            Proof::Version(_) => 0,
            Proof::Cells => held.cells.iter().map(|(_, cell)| cell.len() + 8).sum(),
        };
        name.len() + held.score.len() + held.total.len() + self.score.len() + self.total.len() + cells
    }
}

/// Repairs subjects. Returns for each whether this was done, which is not the case if something has changed since it
/// was read. `of` returns name and data of each subject.
pub(super) async fn set_right<T>(
    session: &Session,
    part: &Part,
    subjects: &[T],
    of: impl FnMut(&T) -> (&String, &Wrong),
) -> Result<Vec<bool>, ServerFailure> {
    let subjects: Vec<(&str, &Wrong)> = subjects.iter().map(of).map(|(name, wrong)| (name.as_str(), wrong)).collect();
    let mut done = vec![false; subjects.len()];
    // A version at which subjects were read, and the version that a repair by this call has replaced it with.
    let mut renewed: Option<(&str, String)> = None;
    let size = |(name, wrong): &(&str, &Wrong)| wrong.bytes(name, Proof::Version(""));
    for batch in batches(&subjects, size, |(_, a), (_, b)| a.reading.version == b.reading.version) {
        let read_at = subjects[batch.start].1.reading.version.as_str();
        let is_readable_by_cells = subjects[batch.clone()].iter().all(|(_, wrong)| wrong.reading.is_one_piece);
        if read_at.is_empty() && is_readable_by_cells {
            continue;
        }
        let expected = match &renewed {
            Some((from, to)) if *from == read_at => to.as_str(),
            // No board has this version. So a board without a version gets one, and nothing is repaired.
            _ if read_at.is_empty() => "none",
            _ => read_at,
        };
        let token = session.token();
        let set = send(session, part, &subjects[batch.clone()], Proof::Version(expected), &token).await?;
        if set.contains(&true) {
            renewed = Some((read_at, token));
        }
        done[batch].copy_from_slice(&set);
    }
    let left: Vec<usize> =
        (0..subjects.len()).filter(|place| !done[*place] && subjects[*place].1.reading.is_one_piece).collect();
    let size = |place: &usize| subjects[*place].1.bytes(subjects[*place].0, Proof::Cells);
    let have_same_slots = |a: &usize, b: &usize| subjects[*a].1.reading.starts == subjects[*b].1.reading.starts;
    for batch in batches(&left, size, have_same_slots) {
        let places = &left[batch];
        let some: Vec<_> = places.iter().map(|place| subjects[*place]).collect();
        let set = send(session, part, &some, Proof::Cells, &session.token()).await?;
        for (place, is_set) in places.iter().zip(set) {
            done[*place] = is_set;
        }
    }
    Ok(done)
}

/// Divides a list into runs for one script each. In each run every element satisfies `go_together` with the first.
fn batches<T>(all: &[T], bytes: impl Fn(&T) -> usize, go_together: impl Fn(&T, &T) -> bool) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut room = 0;
    for (place, one) in all.iter().enumerate() {
        let size = bytes(one);
        match batches.last_mut() {
            Some(batch) if batch.len() < SUBJECTS && size <= room && go_together(&all[batch.start], one) => {
                batch.end += 1;
                room -= size;
            }
            _ => {
                batches.push(place..place + 1);
                room = BYTES.saturating_sub(size);
            }
        }
    }
    batches
}

/// Calls the script for one batch.
async fn send(
    session: &Session,
    part: &Part,
    batch: &[(&str, &Wrong)],
    proof: Proof<'_>,
    token: &str,
) -> Result<Vec<bool>, ServerFailure> {
    let answer = session.step(part, &AUDIT_REPAIR, |_, call| {
        call.arg("version", token);
        match (proof, batch.first()) {
            (Proof::Cells, Some((_, first))) => {
                let starts = &first.reading.starts;
                call.arg("read_at", "").arg("subjects", batch.len()).arg("slots", starts.len());
                for start in starts.iter() {
                    call.key(part.keys.slot(*start)).more(start.millis());
                }
            }
            (Proof::Version(version), _) => {
                call.arg("read_at", version).arg("subjects", batch.len()).arg("slots", 0);
            }
            (Proof::Cells, None) => {
                call.arg("read_at", "").arg("subjects", 0).arg("slots", 0);
            }
        }
        for (name, Wrong { reading, score, total }) in batch {
            let held = &reading.held;
            call.more(name).raw(held.score.clone()).raw(held.total.clone()).more(score).raw(total.clone());
            if let Proof::Cells = proof {
                call.more(held.cells.len());
                for (place, cell) in &held.cells {
                    call.more(place + 1).raw(cell.clone());
                }
            }
        }
    });
    let mut reply = answer.await?.reply;
    batch.iter().map(|_| Ok(reply.count()? == 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repair_batches_are_bounded_and_group_related_entries() {
        let ends = |all: &[(char, usize)]| -> Vec<usize> {
            batches(all, |(_, size)| *size, |a, b| a.0 == b.0).into_iter().map(|batch| batch.end).collect()
        };
        assert_eq!(ends(&[]), [0; 0]);
        assert_eq!(ends(&[('a', 1); 1_001]), [500, 1_000, 1_001]);
        assert_eq!(ends(&[('a', BYTES), ('a', 1), ('a', BYTES - 1), ('a', 9 * BYTES), ('a', 0)]), [1, 3, 5]);
        assert_eq!(ends(&[('a', 1), ('a', 1), ('b', 1), ('a', 1)]), [2, 3, 4]);
    }
}
