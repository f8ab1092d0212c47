//! Auditing: comparison of the ranking with the slots, in bounded steps.
//!
//! One script finds subjects to compare, a second one reads the data of some of them. The cells are combined in this
//! process, so that the server is busy only while it reads. The size of a reading is bounded by the number of cells. A
//! subject with more cells is read in pieces; these are of one instant if the board version is the same in each. A
//! repair is made only if nothing has changed since the reading.

mod compare;
mod find;
mod progress;
mod read;
mod repair;

pub(super) use self::progress::AuditProgress;

use super::claim;
use super::part::Part;
use super::partitions::Parts;
use super::servers::ServerFailure;
use super::session::Session;
use crate::board::{Frame, Timestamp};
use crate::store::{AuditCursor, AuditStep, StoreError};

/// Makes one step of a requested audit. The parts of a track are audited one after the other.
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

/// Makes one step of an audit of a part. When the audit ends and nothing is left to repair, the part is no longer held.
async fn audit_step(
    session: &Session,
    part: &Part,
    cursor: AuditCursor,
    repair: bool,
) -> Result<AuditStep, StoreError> {
    let mut progress = AuditProgress::parse(&cursor, &part.track)
        .ok_or_else(|| StoreError::Setup { detail: format!("'{}' is not where an audit continues", cursor.0) })?;
    let error = |failure| session.servers.error(failure);
    let step = step(session, part, &mut progress, repair).await.map_err(error)?;
    if progress.is_done() {
        let is_right = progress.differences == progress.repaired && (repair || progress.missing_slots == 0);
        if is_right {
            match claim::found_whole(session, part).await {
                // The result of the audit is correct all the same, and nothing had to be repaired.
                Err(ServerFailure::ReadOnly(_)) => {}
                outcome => outcome.map_err(error)?,
            }
        }
        return Ok(step);
    }
    Ok(AuditStep { next: Some(progress.print()), ..step })
}

/// Looks for more subjects, or compares some that were found. With `repair`, repairs those that differ.
pub(super) async fn step(
    session: &Session,
    part: &Part,
    progress: &mut AuditProgress,
    repair: bool,
) -> Result<AuditStep, ServerFailure> {
    let mut found = None;
    if progress.pending.is_empty() {
        match progress.waiting.pop() {
            Some(waiting) => progress.add_found(waiting),
            None => found = find::find(session, part, progress, repair).await?,
        }
    }
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
        // The audit is done already, and its end is requested once more.
        None => step_of(read::read(session, part, &[], None, 1).await?.frame),
    };
    progress.count(&step);
    Ok(step)
}

fn step_of(frame: Frame) -> AuditStep {
    AuditStep { frame, checked: 0, differences: Vec::new(), repaired: 0, missing_slots: 0, next: None }
}
