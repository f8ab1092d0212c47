//! Auditing: comparing what the ranking says with what the slots say, in bounded steps.
//!
//! One script names subjects to compare, another reads what a few of them have, and the cells are put together here, so
//! that the server is busy for as long as reading takes. How much one script reads is bounded by cells: a subject with
//! more of them is read in pieces, which are of one instant if the version of what the board holds is the same at each.
//! A repair is made only where nothing has changed since the reading.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::fold::{Folded, fold, has_totals, read_cell, read_score, score_text};
use super::healing;
use super::part::Part;
use super::parts::Parts;
use super::reply::Reply;
use super::scripts::{AUDIT, AUDIT_FIND, AUDIT_REPAIR};
use super::servers::Failure;
use super::session::{Answer, Session};
use crate::board::{Board, Frame, Kind, Subject, Tally, Timestamp};
use crate::store::{AuditCursor, AuditStep, Difference, StoreError};

/// How many cells one script reads, a slot that is looked at counting as two: about 2 ms.
const CELLS: usize = 5_000;
/// How many slots one script looks at, at most.
const SLOTS_READ: usize = 2_100;
/// How many sketches, of 2,048 bytes at most.
const SKETCHES: usize = 400;
/// How many subjects of a slot or of the ranking one script looks at.
const LOOKED_AT: usize = 1_000;
/// How many bytes of totals or cells it looks at, if they are large.
const BYTES: usize = 250_000;
/// How many slots one script looks through for subjects.
const SLOTS: usize = 200;
/// How often a subject that changes while it is read is read again.
const ATTEMPTS: usize = 6;

/// Where an audit goes on, and what it has found so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    place: Place,
    /// Subjects found there and not yet compared.
    pending: Vec<String>,
    /// Slots: the first of those that the pending subjects were found in.
    since: Option<i64>,
    pub checked: u64,
    pub differences: u64,
    pub repaired: u64,
    pub missing_slots: u64,
}

/// Where subjects are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    /// All subjects with a total, on boards that keep totals.
    Totals { cursor: String },
    /// Ranked subjects without a total.
    Ranking { cursor: String },
    /// Subjects that neither the ranking nor the totals know, in the first slot from this start on and those after it.
    Slots { from: Option<i64>, cursor: String },
    /// Nowhere: all is done.
    End,
}

/// What one script says of one subject.
#[derive(Debug, Default)]
struct Held {
    /// As they are stored.
    score: Vec<u8>,
    total: Vec<u8>,
    /// Place of the slot in what was read, and the cell.
    cells: Vec<(usize, Vec<u8>)>,
}

/// One reading of some subjects.
struct Piece {
    frame: Frame,
    version: String,
    held: Vec<Held>,
    /// The slots that were read.
    starts: Vec<Timestamp>,
    /// These are all there are from the first one on.
    is_last: bool,
}

/// All that one subject has.
struct Reading {
    frame: Frame,
    held: Held,
    starts: Vec<Timestamp>,
    /// Of the first piece.
    version: String,
    pieces: usize,
    /// All pieces are known to be of one instant.
    is_atomic: bool,
}

impl Progress {
    /// Where an audit of such a board begins.
    pub fn start(board: &Board) -> Self {
        let cursor = "0".to_owned();
        let place = match board.is_ranked() {
            true if has_totals(board.kind()) => Place::Totals { cursor },
            true => Place::Ranking { cursor },
            // Without a ranking there is nothing to compare slots with.
            false => Place::End,
        };
        let (checked, differences, repaired, missing_slots) = (0, 0, 0, 0);
        Self { place, pending: Vec::new(), since: None, checked, differences, repaired, missing_slots }
    }

    fn parse(cursor: &AuditCursor, board: &Board) -> Option<Self> {
        if cursor.0.is_empty() {
            return Some(Self::start(board));
        }
        serde_json::from_str(&cursor.0).ok().filter(Self::is_sound)
    }

    /// Whether its numbers are numbers: the server would refuse others as an error of the script.
    fn is_sound(&self) -> bool {
        match &self.place {
            Place::Totals { cursor } | Place::Ranking { cursor } | Place::Slots { cursor, .. } => {
                !cursor.is_empty() && cursor.bytes().all(|byte| byte.is_ascii_digit())
            }
            Place::End => true,
        }
    }

    fn print(&self) -> AuditCursor {
        // Texts and numbers: there is nothing that could fail to be JSON.
        AuditCursor(serde_json::to_string(self).unwrap_or_default())
    }

    pub fn is_done(&self) -> bool {
        self.place == Place::End && self.pending.is_empty()
    }
}

/// One step of an audit that was asked for, of one part of a board after the other.
pub(super) async fn step_of_parts(
    session: &Session,
    parts: &Parts,
    cursor: AuditCursor,
    repair: bool,
) -> Result<AuditStep, StoreError> {
    if let Some(part) = parts.only() {
        return audit_step(session, part, cursor, repair).await;
    }
    let refused = || StoreError::Setup { detail: format!("'{}' is not where an audit continues", cursor.0) };
    let (number, within) = match cursor.0.split_once(':') {
        Some((number, within)) => (number.parse::<usize>().map_err(|_| refused())?, within),
        None if cursor.0.is_empty() => (0, ""),
        None => return Err(refused()),
    };
    let part = parts.all().get(number).ok_or_else(refused)?;
    let step = audit_step(session, part, AuditCursor(within.to_owned()), repair).await?;
    let next = match step.next {
        Some(next) => Some(format!("{number}:{}", next.0)),
        None => (number + 1 < parts.count()).then(|| format!("{}:", number + 1)),
    };
    Ok(AuditStep { next: next.map(AuditCursor), ..step })
}

/// One step of an audit of a part. Its end clears what healing has left for a person to decide, if nothing is
/// left to set right.
async fn audit_step(
    session: &Session,
    part: &Part,
    cursor: AuditCursor,
    repair: bool,
) -> Result<AuditStep, StoreError> {
    let mut progress = Progress::parse(&cursor, &part.board)
        .ok_or_else(|| StoreError::Setup { detail: format!("'{}' is not where an audit continues", cursor.0) })?;
    let error = |failure| session.servers.error(failure);
    let step = step(session, part, &mut progress, repair).await.map_err(error)?;
    if progress.is_done() {
        let is_right = progress.differences == progress.repaired && (repair || progress.missing_slots == 0);
        if is_right {
            match healing::found_whole(session, part).await {
                // What was found is true all the same, and nothing had to be set right.
                Err(Failure::ReadOnly(_)) => {}
                outcome => outcome.map_err(error)?,
            }
        }
        return Ok(step);
    }
    Ok(AuditStep { next: Some(progress.print()), ..step })
}

/// Compares some more subjects, and sets right those that differ if told to.
pub(super) async fn step(
    session: &Session,
    part: &Part,
    progress: &mut Progress,
    repair: bool,
) -> Result<AuditStep, Failure> {
    let mut done = match progress.pending.is_empty() {
        true => find(session, part, progress, repair).await?,
        false => None,
    };
    if !progress.pending.is_empty() {
        let (checked, missing_slots) = (0, done.as_ref().map_or(0, |step| step.missing_slots));
        let mut step = compare(session, part, progress, repair).await?;
        step.missing_slots = missing_slots;
        step.checked += checked;
        done = Some(step);
    }
    let step = match done {
        Some(step) => step,
        // The audit was done before: its end is asked for once more.
        None => empty_step(session, part).await?,
    };
    progress.checked += step.checked;
    progress.differences += step.differences.len() as u64;
    progress.repaired += step.repaired;
    progress.missing_slots += step.missing_slots;
    Ok(step)
}

async fn empty_step(session: &Session, part: &Part) -> Result<AuditStep, Failure> {
    let piece = read(session, part, &[], None, 1).await?;
    Ok(step_of(piece.frame))
}

fn step_of(frame: Frame) -> AuditStep {
    AuditStep { frame, checked: 0, differences: Vec::new(), repaired: 0, missing_slots: 0, next: None }
}

/// Looks for subjects to compare, at the place where the audit is, and moves it on.
async fn find(
    session: &Session,
    part: &Part,
    progress: &mut Progress,
    repair: bool,
) -> Result<Option<AuditStep>, Failure> {
    let (place, cursor, from) = match &progress.place {
        Place::Totals { cursor } => ("totals", cursor, None),
        Place::Ranking { cursor } => ("ranking", cursor, None),
        Place::Slots { from, cursor } => ("slots", cursor, from.map(Timestamp::from_millis)),
        Place::End => return Ok(None),
    };
    let looks_at_slots = place == "slots";
    let most = if looks_at_slots { SLOTS } else { 0 };
    let answer = session.ask(part, &AUDIT_FIND, |moment, call| {
        let slots = slots_from(&moment.existing.slots, from, most);
        // Where the slot to go on in has gone, the next one is begun.
        let is_there = from.is_none() || slots.first().copied() == from;
        call.arg(place).arg(if is_there { cursor } else { "0" }).arg(looked_at(part, looks_at_slots));
        call.arg(if repair { session.token() } else { String::new() });
        call.arg(start_text(from)).arg(most);
        for start in slots {
            call.key(part.keys.slot(*start)).arg(start.millis());
        }
        slots.to_vec()
    });
    let Answer { frame, asked: slots, mut reply, .. } = answer.await?;
    let (cursor, whole, missing_slots) = (reply.text()?, reply.count()? as usize, reply.count()?);
    let mut seen = HashSet::new();
    while !reply.is_empty() {
        let subject = reply.text()?;
        if seen.insert(subject.clone()) {
            progress.pending.push(subject);
        }
    }
    progress.since = slots.first().filter(|_| looks_at_slots).map(|start| start.millis());
    let beginning = || "0".to_owned();
    progress.place = match (&progress.place, cursor == "0") {
        (Place::Totals { .. }, false) => Place::Totals { cursor },
        (Place::Totals { .. }, true) => Place::Ranking { cursor: beginning() },
        (Place::Ranking { .. }, false) => Place::Ranking { cursor },
        (Place::Ranking { .. }, true) => Place::Slots { from: None, cursor: beginning() },
        (Place::Slots { .. }, is_at_start) => match slots.get(whole) {
            Some(start) => {
                Place::Slots { from: Some(start.millis()), cursor: if is_at_start { beginning() } else { cursor } }
            }
            // There may be more than this call named.
            None if slots.len() == most => {
                Place::Slots { from: slots.last().map(|last| last.millis() + 1), cursor: beginning() }
            }
            None => Place::End,
        },
        (Place::End, _) => Place::End,
    };
    Ok(Some(AuditStep { missing_slots, ..step_of(frame) }))
}

/// How many subjects a script may look at where the totals, or the cells, of such a board are that large.
fn looked_at(part: &Part, looks_at_slots: bool) -> usize {
    let board = &*part.board;
    let bytes = match board.kind() {
        Kind::Sketch => crate::board::Sketch::MOST_BYTES,
        Kind::Min | Kind::Max if !looks_at_slots => 16 * board.slots() as usize,
        _ => 1,
    };
    (BYTES / bytes).clamp(10, LOOKED_AT)
}

fn start_text(from: Option<Timestamp>) -> String {
    from.map_or_else(|| "-inf".to_owned(), |start| start.millis().to_string())
}

fn slots_from(slots: &[Timestamp], from: Option<Timestamp>, most: usize) -> &[Timestamp] {
    let first = slots.partition_point(|start| from.is_some_and(|from| *start < from));
    let rest = &slots[first..];
    &rest[..rest.len().min(most)]
}

/// How many subjects one script may read where so many slots exist, and in how many slots. A reading that finds as many
/// slots as it may read does not know whether these are all.
fn portion(kind: Kind, slots: usize) -> (usize, usize) {
    let is_sketch = kind == Kind::Sketch;
    let (cells, most) = if is_sketch { (SKETCHES, SKETCHES) } else { (CELLS, SLOTS_READ) };
    let for_cells = if is_sketch { cells } else { cells.saturating_sub(2 * slots) };
    let subjects = (for_cells / (slots + 1)).max(1);
    (subjects, (cells / subjects).min(most))
}

/// Compares as many of the pending subjects as one script reads; or one, in pieces.
async fn compare(session: &Session, part: &Part, progress: &mut Progress, repair: bool) -> Result<AuditStep, Failure> {
    let (count, most) = portion(part.board.kind(), part.existing().slots.len());
    let names = progress.pending.split_off(progress.pending.len().saturating_sub(count));
    let piece = read(session, part, &names, None, most).await?;
    let mut step = step_of(piece.frame);
    let since = progress.since.map(Timestamp::from_millis);
    if piece.is_last {
        let Piece { frame, version, held, starts, .. } = piece;
        for (name, held) in names.into_iter().zip(held) {
            let (starts, version) = (starts.clone(), version.clone());
            let reading = Reading { frame, held, starts, version, pieces: 1, is_atomic: true };
            settle(session, part, name, reading, since, repair, &mut step).await?;
        }
    } else {
        // There are more slots than were known, or more than one script reads: one subject at a time.
        for name in names {
            let reading = read_whole(session, part, &name).await?;
            settle(session, part, name, reading, since, repair, &mut step).await?;
        }
    }
    Ok(step)
}

/// Reads what subjects have in the slots from one on, `most` of them.
async fn read(
    session: &Session,
    part: &Part,
    names: &[String],
    from: Option<Timestamp>,
    most: usize,
) -> Result<Piece, Failure> {
    let answer = session.ask(part, &AUDIT, |moment, call| {
        let slots = slots_from(&moment.existing.slots, from, most);
        call.arg(start_text(from)).arg(most).arg(names.len()).args(names);
        for start in slots {
            call.key(part.keys.slot(*start)).arg(start.millis());
        }
        slots.to_vec()
    });
    let Answer { frame, asked: starts, mut reply, .. } = answer.await?;
    let version = reply.text()?;
    let mut held = Vec::with_capacity(names.len());
    for _ in names {
        held.push(read_held(&mut reply)?);
    }
    let is_last = starts.len() < most;
    Ok(Piece { frame, version, held, starts, is_last })
}

fn read_held(reply: &mut Reply) -> Result<Held, Failure> {
    let (score, total) = (reply.bytes()?, reply.bytes()?);
    let count = reply.count()?;
    let mut cells = Vec::new();
    for _ in 0..count {
        let place = reply.count()?.saturating_sub(1) as usize;
        cells.push((place, reply.bytes()?));
    }
    Ok(Held { score, total, cells })
}

/// Reads one subject in as many pieces as it takes; between two of them others are served for as long as one took.
async fn read_whole(session: &Session, part: &Part, name: &str) -> Result<Reading, Failure> {
    let names = [name.to_owned()];
    let (_, most) = portion(part.board.kind(), usize::MAX / 4);
    let (mut from, mut whole): (Option<Timestamp>, Option<Reading>) = (None, None);
    loop {
        let begun = Instant::now();
        let mut piece = read(session, part, &names, from, most).await?;
        let held = piece.held.pop().unwrap_or_default();
        from = piece.starts.last().map(|start| start.plus_millis(1));
        let is_last = piece.is_last;
        let reading = match whole.take() {
            None => Reading {
                frame: piece.frame,
                held,
                starts: piece.starts,
                version: piece.version,
                pieces: 1,
                is_atomic: true,
            },
            Some(mut reading) => {
                let before = reading.starts.len();
                reading.is_atomic &= !piece.version.is_empty() && piece.version == reading.version;
                reading.pieces += 1;
                reading.frame = piece.frame;
                reading.held.score = held.score;
                reading.held.total = held.total;
                reading.held.cells.extend(held.cells.into_iter().map(|(place, cell)| (before + place, cell)));
                reading.starts.extend(piece.starts);
                reading
            }
        };
        if is_last {
            return Ok(reading);
        }
        whole = Some(reading);
        pause(begun.elapsed()).await;
    }
}

async fn pause(took: Duration) {
    tokio::time::sleep(took).await;
}

/// Notes whether one subject is right, and sets it right if told to and nothing has changed since it was read.
async fn settle(
    session: &Session,
    part: &Part,
    name: String,
    mut reading: Reading,
    since: Option<Timestamp>,
    repair: bool,
    step: &mut AuditStep,
) -> Result<(), Failure> {
    // A subject of several slots was compared where its oldest was looked through.
    let oldest = reading.held.cells.iter().filter_map(|(place, _)| reading.starts.get(*place)).min();
    if since.is_some_and(|since| oldest.is_some_and(|oldest| *oldest < since)) {
        return Ok(());
    }
    step.checked += 1;
    let mut found: Option<Difference> = None;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let folded = folded(part, &reading);
        let kind = part.board.kind();
        let score = read_score(&reading.held.score, kind);
        let total = Some(reading.held.total.clone()).filter(|total| !total.is_empty());
        let is_right = score == folded.score && (!has_totals(kind) || total == folded.total);
        if is_right {
            found = None;
            break;
        }
        let seen = (reading.held.score.clone(), total, folded);
        // What was read in pieces, while others wrote, differs if it does so twice in the same way.
        let is_sure = reading.is_atomic || last.as_ref() == Some(&seen);
        let (_, _, folded) = &seen;
        if is_sure {
            let shown = |score: Option<crate::board::Value>| score.or(kind.absent());
            let difference = Difference {
                subject: Subject::from_stored(name.clone()),
                score: shown(score),
                slots: shown(folded.score),
            };
            found = Some(difference);
            if !repair {
                break;
            }
            if set_right(session, part, &name, &reading, folded).await? {
                step.repaired += 1;
                break;
            }
        }
        last = Some(seen);
        reading = read_whole(session, part, &name).await?;
    }
    step.frame = reading.frame;
    step.differences.extend(found);
    Ok(())
}

fn folded(part: &Part, reading: &Reading) -> Folded {
    let kind = part.board.kind();
    let cells: Vec<(Timestamp, Tally)> = reading
        .held
        .cells
        .iter()
        .filter_map(|(place, cell)| Some((*reading.starts.get(*place)?, read_cell(cell.clone(), kind)?)))
        .collect();
    fold(&part.board, &cells)
}

/// Answers whether it was done: not if something has changed since.
async fn set_right(
    session: &Session,
    part: &Part,
    name: &str,
    reading: &Reading,
    folded: &Folded,
) -> Result<bool, Failure> {
    let answer = session.ask(part, &AUDIT_REPAIR, |_, call| {
        call.arg(name).raw(reading.held.score.clone()).raw(reading.held.total.clone());
        call.arg(score_text(folded.score)).raw(folded.total.clone().unwrap_or_default()).arg(session.token());
        if reading.pieces > 1 {
            call.arg(if reading.version.is_empty() { "none" } else { &reading.version });
            return;
        }
        call.arg("");
        let mut cells = reading.held.cells.iter().peekable();
        for (place, start) in reading.starts.iter().enumerate() {
            call.key(part.keys.slot(*start)).arg(start.millis());
            let cell = cells.next_if(|(at, _)| *at == place);
            call.raw(cell.map_or_else(Vec::new, |(_, cell)| cell.clone()));
        }
    });
    Ok(answer.await?.reply.count()? == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    fn board(metric: &str, ranked: bool) -> Board {
        let definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        let name = BoardName::parse("b").unwrap();
        Board::new(name, Generation(1), Definition { ranked, ..definition }).unwrap()
    }

    #[test]
    fn cursors_read_back_and_others_are_refused() {
        let sum = board("SUM(3h, e, v, s)", true);
        let start = |board: &Board| Progress::parse(&AuditCursor::default(), board).map(|progress| progress.place);
        let cursor = "0".to_owned();
        assert_eq!(start(&sum), Some(Place::Ranking { cursor: cursor.clone() }));
        assert_eq!(start(&board("AVG(3h, e, v, s)", true)), Some(Place::Totals { cursor }));
        assert_eq!(start(&board("AVG(3h, e, v, s)", false)), Some(Place::End));
        for place in [
            Place::Totals { cursor: "184467".to_owned() },
            Place::Ranking { cursor: "7".to_owned() },
            Place::Slots { from: Some(3_600_000), cursor: "0".to_owned() },
            Place::End,
        ] {
            let pending = vec!["a".to_owned(), "\"{ä}".to_owned()];
            let progress = Progress { place, pending, since: Some(5), ..Progress::start(&sum) };
            assert_eq!(Progress::parse(&progress.print(), &sum), Some(progress));
        }
        let bad_place = Progress { place: Place::Totals { cursor: "x".to_owned() }, ..Progress::start(&sum) };
        for bad in ["x", "r:0", "{}", "[]", &bad_place.print().0] {
            assert_eq!(Progress::parse(&AuditCursor(bad.to_owned()), &sum), None, "{bad}");
        }
    }

    #[test]
    fn a_script_reads_all_slots_that_are_known_or_one_subject() {
        for kind in [Kind::Sum, Kind::Sketch] {
            for slots in [0, 1, 24, 300, 399, 400, 500, 1_000, 2_000, 2_099, 2_100, 5_000] {
                let (subjects, most) = portion(kind, slots);
                let bound = if kind == Kind::Sketch { SKETCHES } else { CELLS };
                assert!(subjects * most <= bound && subjects >= 1, "{kind:?}, {slots} slots: {subjects} in {most}");
                assert!(most > slots || subjects == 1, "{kind:?}, {slots} slots: {subjects} in {most}");
            }
        }
        assert_eq!(portion(Kind::Sum, 2_000), (1, SLOTS_READ));
        assert_eq!(portion(Kind::Sketch, usize::MAX / 4), (1, SKETCHES));
    }

    #[test]
    fn a_script_is_told_of_a_bounded_part_of_the_slots() {
        let at = Timestamp::from_millis;
        let slots: Vec<_> = (0..10).map(|i| at(i * 100)).collect();
        assert_eq!(slots_from(&slots, None, 3), &slots[..3]);
        assert_eq!(slots_from(&slots, Some(at(101)), 3), &slots[2..5]);
        assert_eq!(slots_from(&slots, Some(at(800)), 3), &slots[8..]);
        assert_eq!(slots_from(&slots, Some(at(901)), 3), &[] as &[Timestamp]);
    }
}
