//! Walks over what subjects have in a track, in bounded steps.
//!
//! The parts of a track are walked one after the other. A ranked part is walked slot by slot. Where the data is in keys
//! of single subjects, these are found through the expiry periods in which they were written to. A subject may be in
//! the sets of several periods. It is returned with the newest of them, so each subject that is not written to is
//! returned once. A step of expiry that moves subjects changes the number of upheavals.
//!
//! Within a slot or a period the walk continues at a cursor of the server. Such a cursor has no meaning in a different
//! process of the server, which orders the same data in another way. So the position contains the run id of the server,
//! and the walk is lost if that has changed.

mod cells;
mod frames;
mod ranked;
mod subjects;
mod values;

pub(super) use self::frames::is_live;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::expiry;
use super::part::Part;
use super::partitions::Parts;
use super::servers::ServerFailure;
use super::session::Session;
use crate::board::{Frame, Subject};
use crate::store::{Content, ContentsCursor, ContentsStep, StoreError};

/// The number of contents that a step aims for, unless it finds few in each script.
const AIM: usize = 1_000;
/// The largest number of cells or values of one subject that are read together, and of several.
const MOST: usize = 3_000;

/// The result of a step of a walk over a part.
struct PartStep<P> {
    frame: Frame,
    contents: Vec<(Subject, Content)>,
    next: Option<P>,
}

/// The reason why a step of a walk was not made.
enum NoStep {
    /// The order of the server's data is not the one in which the walk has begun to read.
    Lost,
    Failed(ServerFailure),
}

impl From<ServerFailure> for NoStep {
    fn from(failure: ServerFailure) -> Self {
        NoStep::Failed(failure)
    }
}

/// Makes one step of a walk over a track.
pub(super) async fn step(session: &Session, parts: &Parts, cursor: ContentsCursor) -> Result<ContentsStep, StoreError> {
    let refused = || StoreError::Setup { detail: format!("'{}' is not where a walk continues", cursor.0) };
    let (number, within) = match cursor.0.split_once(':') {
        Some((number, within)) => (number.parse::<usize>().map_err(|_| refused())?, within),
        None if cursor.0.is_empty() => (0, ""),
        None => return Err(refused()),
    };
    let part = parts.all().get(number).ok_or_else(refused)?;
    let step = match expiry::has_subject_keys(&part.track) {
        true => printed(subjects::step(session, part, read(within).ok_or_else(refused)?).await),
        false => printed(ranked::step(session, part, read(within).ok_or_else(refused)?).await),
    };
    let step = step.map_err(|no_step| match no_step {
        NoStep::Lost => StoreError::WalkLost,
        NoStep::Failed(failure) => session.servers.error(failure),
    })?;
    let next = match step.next {
        Some(next) => Some(format!("{number}:{next}")),
        None => (number + 1 < parts.count()).then(|| format!("{}:", number + 1)),
    };
    Ok(ContentsStep { frame: step.frame, contents: step.contents, next: next.map(ContentsCursor) })
}

/// Reads a position in a part. An empty text is the beginning.
fn read<P: DeserializeOwned + Default>(text: &str) -> Option<P> {
    if text.is_empty() { Some(P::default()) } else { serde_json::from_str(text).ok() }
}

/// Returns the step with its position as text.
fn printed<P: Serialize>(step: Result<PartStep<P>, NoStep>) -> Result<PartStep<String>, NoStep> {
    let PartStep { frame, contents, next } = step?;
    // Serialization cannot fail: there are only texts and numbers.
    Ok(PartStep { frame, contents, next: next.map(|next| serde_json::to_string(&next).unwrap_or_default()) })
}

/// Identifies the process of the server that has a part: its cursors are valid as long as this stays the same.
fn run_of(session: &Session, part: &Part) -> String {
    match session.servers.run(part.slot()) {
        Some(run) => run.to_string(),
        // A server that does not tell its run id: its cursors are valid as long as its connections are.
        None => format!("incarnation-{}", session.servers.incarnation(part.slot())),
    }
}

/// Returns whether a text can be a cursor of the server, which reports others as an error of the script.
fn is_cursor(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
