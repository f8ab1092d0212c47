//! Auditing: comparing what the ranking says with what the slots say, in bounded steps.
//!
//! One script names subjects to compare, another reads what a few of them have, and the cells are put together here, so
//! that the server is busy for as long as reading takes. How much one script reads is bounded by cells: a subject with
//! more of them is read in pieces, which are of one instant if the version of what the board holds is the same at each.
//! A repair is made only where nothing has changed since the reading.

mod compare;
mod find;
mod progress;
mod read;
mod repair;

pub(super) use self::progress::Progress;

use super::healing;
use super::part::Part;
use super::parts::Parts;
use super::servers::Failure;
use super::session::Session;
use crate::board::{Frame, Timestamp};
use crate::store::{AuditCursor, AuditStep, StoreError};

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

/// Looks for some more subjects, or compares some that were found, and sets right those that differ if told to.
pub(super) async fn step(
    session: &Session,
    part: &Part,
    progress: &mut Progress,
    repair: bool,
) -> Result<AuditStep, Failure> {
    let mut found = match progress.pending.is_empty() {
        true => find::find(session, part, progress, repair).await?,
        false => None,
    };
    let further = match progress.below.map(Timestamp::from_millis) {
        Some(below) => Some(step_of(find::leave_out(session, part, progress, below).await?)),
        None => compare::compare(session, part, progress, repair).await?,
    };
    if let Some(mut further) = further {
        further.missing_slots = found.map_or(0, |step| step.missing_slots);
        found = Some(further);
    }
    let step = match found {
        Some(step) => step,
        // The audit was done before: its end is asked for once more.
        None => step_of(read::read(session, part, &[], None, 1).await?.frame),
    };
    progress.count(&step);
    Ok(step)
}

fn step_of(frame: Frame) -> AuditStep {
    AuditStep { frame, checked: 0, differences: Vec::new(), repaired: 0, missing_slots: 0, next: None }
}
