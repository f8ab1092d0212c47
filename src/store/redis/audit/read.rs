//! Reading score, total and cells of subjects, in scripts that are bounded by the number of cells.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::{BoxFuture, try_join_all};

use crate::board::{Frame, Kind, Timestamp};
use crate::store::redis::kinds::{self, ValueLimits};
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::AUDIT;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ATTEMPTS, ScriptAnswer, Session};
use crate::store::redis::stretches::start_text;
use crate::store::rest;

/// The largest number of slots that one script looks at.
const SLOTS_READ: usize = 2_100;

/// The stored data of one subject.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub score: Vec<u8>,
    pub total: Vec<u8>,
    /// For each cell, the position of its slot among those that were read, and the cell.
    pub cells: Vec<(usize, Vec<u8>)>,
}

/// The result of one reading of some subjects.
pub(super) struct Piece {
    pub frame: Frame,
    version: String,
    held: Vec<Held>,
    /// The slots that were read.
    starts: Arc<[Timestamp]>,
    /// Whether these are all slots that exist from the first one on.
    is_last: bool,
}

impl Piece {
    /// Returns the data of its subjects, which one script has read completely.
    fn into_readings(self) -> impl Iterator<Item = Reading> {
        let Self { frame, version, held, starts, .. } = self;
        held.into_iter().map(move |held| {
            let (starts, version) = (starts.clone(), version.clone());
            Reading { frame, held, starts, version, is_one_piece: true, is_atomic: true }
        })
    }
}

/// The complete data of one subject.
pub(super) struct Reading {
    pub frame: Frame,
    pub held: Held,
    pub starts: Arc<[Timestamp]>,
    /// The board version of the first piece.
    pub version: String,
    /// Whether one script read everything.
    pub is_one_piece: bool,
    /// Whether all pieces are known to be of one instant.
    pub is_atomic: bool,
}

/// Returns how many subjects one script may read if this number of slots exists, and in how many slots. If a reading
/// finds as many slots as it may read, there may be more.
pub(super) fn portion(kind: Kind, slots: usize) -> (usize, usize) {
    let ValueLimits { audited_cells: cells, audited_slot: slot, .. } = kinds::of(kind).limits();
    let for_cells = cells.saturating_sub(slot * slots);
    let subjects = (for_cells / (slots + 1)).max(1);
    (subjects, (cells / subjects).min(SLOTS_READ))
}

/// Reads the data of subjects, of as many in one script as that may read. Several scripts are under way together if the
/// server is distant. If one script cannot read all slots, reads one subject after the other, in pieces.
pub(super) async fn read_all(session: &Session, part: &Part, names: &[String]) -> Result<Vec<Reading>, ServerFailure> {
    for _ in 0..ATTEMPTS {
        let (count, most) = portion(part.track.kind(), part.existing().slots.len());
        // Boxed, because the compiler would have to look deep into callers otherwise.
        let read = |some| -> BoxFuture<'_, _> { Box::pin(read(session, part, some, None, most)) };
        let pieces: Vec<Piece> = try_join_all(names.chunks(count).map(read)).await?;
        if pieces.iter().all(|piece| piece.is_last) {
            return Ok(pieces.into_iter().flat_map(Piece::into_readings).collect());
        }
        // There were more slots than this instance knew. Now it knows them.
        if portion(part.track.kind(), part.existing().slots.len()).1 <= most {
            break;
        }
    }
    let mut readings = Vec::with_capacity(names.len());
    for name in names {
        readings.push(read_whole(session, part, name).await?);
    }
    Ok(readings)
}

/// Reads the data of subjects in `most` slots, from one slot on.
pub(super) async fn read(
    session: &Session,
    part: &Part,
    names: &[String],
    from: Option<Timestamp>,
    most: usize,
) -> Result<Piece, ServerFailure> {
    let answer = session.step(part, &AUDIT, |moment, call| {
        let slots = slots_from(&moment.existing.slots, from, most);
        call.arg("from", start_text(from)).arg("slots", most).arg("subjects", names.len()).all(names);
        for start in slots {
            call.key(part.keys.slot(*start)).more(start.millis());
        }
        slots.to_vec()
    });
    let ScriptAnswer { frame, asked: starts, mut reply, .. } = answer.await?;
    let version = reply.text()?;
    let mut held = Vec::with_capacity(names.len());
    for _ in names {
        held.push(read_held(&mut reply)?);
    }
    let is_last = starts.len() < most;
    Ok(Piece { frame, version, held, starts: starts.into(), is_last })
}

fn read_held(reply: &mut Reply) -> Result<Held, ServerFailure> {
    let (score, total) = (reply.bytes()?, reply.bytes()?);
    let count = reply.count()?;
    let mut cells = Vec::new();
    for _ in 0..count {
        let place = reply.count()?.saturating_sub(1) as usize;
        cells.push((place, reply.bytes()?));
    }
    Ok(Held { score, total, cells })
}

/// Reads one subject in as many pieces as necessary. Between two pieces it pauses for as long as one piece took, so
/// that other requests are served.
async fn read_whole(session: &Session, part: &Part, name: &str) -> Result<Reading, ServerFailure> {
    let names = [name.to_owned()];
    let (_, most) = portion(part.track.kind(), usize::MAX / 4);
    let (mut from, mut starts): (Option<Timestamp>, Vec<Timestamp>) = (None, Vec::new());
    let (mut cells, mut first_version, mut is_atomic) = (Vec::new(), None, true);
    loop {
        let begun = Instant::now();
        let mut piece = read(session, part, &names, from, most).await?;
        let held = piece.held.pop().unwrap_or_default();
        from = piece.starts.last().map(|start| start.plus_millis(1));
        let is_one_piece = first_version.is_none();
        let version = first_version.get_or_insert_with(|| piece.version.clone());
        is_atomic &= is_one_piece || !piece.version.is_empty() && piece.version == *version;
        let before = starts.len();
        cells.extend(held.cells.into_iter().map(|(place, cell)| (before + place, cell)));
        starts.extend_from_slice(&piece.starts);
        if piece.is_last {
            let (frame, version) = (piece.frame, version.clone());
            let held = Held { score: held.score, total: held.total, cells };
            return Ok(Reading { frame, held, starts: starts.into(), version, is_one_piece, is_atomic });
        }
        rest(begun).await;
    }
}

/// Returns the oldest slots from a start on, oldest first, at most `most`.
fn slots_from(slots: &[Timestamp], from: Option<Timestamp>, most: usize) -> &[Timestamp] {
    let first = slots.partition_point(|start| from.is_some_and(|from| *start < from));
    let rest = &slots[first..];
    &rest[..rest.len().min(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_names_the_oldest_slots_from_a_start_on() {
        let at = Timestamp::from_millis;
        let slots: Vec<_> = (0..10).map(|i| at(i * 100)).collect();
        assert_eq!(slots_from(&slots, None, 3), &slots[..3]);
        assert_eq!(slots_from(&slots, Some(at(101)), 3), &slots[2..5]);
        assert_eq!(slots_from(&slots, Some(at(800)), 3), &slots[8..]);
        assert_eq!(slots_from(&slots, Some(at(901)), 3), &[] as &[Timestamp]);
    }

    #[test]
    fn an_audit_script_reads_a_bounded_number_of_cells() {
        for kind in [Kind::Sum, Kind::Sketch] {
            for slots in [0, 1, 24, 300, 399, 400, 500, 1_000, 2_000, 2_099, 2_100, 5_000] {
                let (subjects, most) = portion(kind, slots);
                let bound = kinds::of(kind).limits().audited_cells;
                assert!(subjects * most <= bound && subjects >= 1, "{kind:?}, {slots} slots: {subjects} in {most}");
                assert!(most > slots || subjects == 1, "{kind:?}, {slots} slots: {subjects} in {most}");
            }
        }
        assert_eq!(portion(Kind::Sum, 2_000), (1, SLOTS_READ));
        assert_eq!(portion(Kind::Sketch, usize::MAX / 4), (1, 400));
    }
}
