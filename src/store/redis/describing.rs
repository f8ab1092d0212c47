//! The attributes of the subjects of a board: see [`Store::set_attributes`](crate::store::Store::set_attributes).
//!
//! Each partition has those of its subjects in a hash, and a list of the subjects that have some. They belong to no
//! track.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all, try_join_all};

use super::part::Part;
use super::partition::Partition;
use super::reads;
use super::reply::Reply;
use super::scripts::{LISTED, SET_ATTRIBUTES, TEXTS};
use super::servers::ServerFailure;
use super::session::{ScriptAnswer, Session};
use crate::board::{
    Attributes, AttributesChange, AttributesError, Board, ChangeMode, MAX_ATTRIBUTES, MAX_ATTRIBUTES_BYTES, Subject,
};
use crate::store::{Described, TextRange};

/// The number of subjects that one script changes: 2 ms if each has as many attributes as it may have.
const TOGETHER: usize = 32;
/// The number of subjects that are read at a time to copy them: at most 1 MB.
const COPIED_TOGETHER: u32 = 1_000;

/// Whether there was room for the attributes of a subject.
type Outcome = Result<(), AttributesError>;
/// Those of a partition, each with its position among the changes.
type ShareOutcomes = Result<Vec<(usize, Outcome)>, ServerFailure>;

/// Changes the attributes of subjects.
pub(super) async fn set(
    session: &Session,
    board: &Arc<Board>,
    changes: &[(Subject, AttributesChange)],
) -> Result<Vec<Outcome>, ServerFailure> {
    let parts = session.parts_of(&board.main());
    let mut shares: Vec<Vec<usize>> = vec![Vec::new(); parts.count()];
    for (at, (subject, _)) in changes.iter().enumerate() {
        shares[parts.number_of(subject)].push(at);
    }
    let mut calls: Vec<BoxFuture<'_, ShareOutcomes>> = Vec::with_capacity(shares.len());
    for (part, share) in parts.all().iter().zip(shares) {
        if !share.is_empty() {
            // Boxed, because the compiler would have to look deep into callers otherwise.
            calls.push(Box::pin(set_share(session, part.clone(), changes, share)));
        }
    }
    let mut outcomes = vec![Ok(()); changes.len()];
    // What one part has no memory for does not keep the others from theirs.
    for share in join_all(calls).await {
        for (at, outcome) in share? {
            outcomes[at] = outcome;
        }
    }
    Ok(outcomes)
}

async fn set_share(
    session: &Session,
    part: Arc<Part>,
    changes: &[(Subject, AttributesChange)],
    share: Vec<usize>,
) -> ShareOutcomes {
    let mut outcomes = Vec::with_capacity(share.len());
    let (mut left, mut is_full) = (share.chunks(TOGETHER).rev().collect::<Vec<_>>(), None);
    while let Some(some) = left.pop() {
        let answer = session.ask(&part, &SET_ATTRIBUTES, |_, call| {
            call.key(part.keys.attributes()).key(part.keys.described());
            call.arg("most", MAX_ATTRIBUTES).arg("most_bytes", MAX_ATTRIBUTES_BYTES);
            for (subject, change) in some.iter().map(|at| &changes[*at]) {
                let mode = match change.mode() {
                    ChangeMode::Merge => "merge",
                    ChangeMode::Replace => "replace",
                    ChangeMode::Begin => "begin",
                };
                call.all([subject.as_str(), mode, change.text()]);
            }
        });
        let ScriptAnswer { mut reply, .. } = match answer.await {
            // Those that take less than before are set without memory for the others.
            Err(error) if error.is_out_of_memory() => {
                match some.split_at(some.len() / 2) {
                    ([], _) => is_full = Some(error),
                    (first, second) => left.extend([second, first]),
                }
                continue;
            }
            answer => answer?,
        };
        for at in some {
            let outcome = match reply.text()?.as_str() {
                "done" => Ok(()),
                "many" => Err(AttributesError::TooMany),
                "long" => Err(AttributesError::TooLong),
                other => return Err(ServerFailure::Corrupt(format!("the outcome '{other}' of attributes"))),
            };
            outcomes.push((*at, outcome));
        }
    }
    is_full.map_or(Ok(outcomes), Err)
}

/// Returns the attributes of subjects, in their order.
pub(super) async fn read(
    session: &Session,
    board: &Arc<Board>,
    subjects: &[Subject],
) -> Result<Vec<Attributes>, ServerFailure> {
    let parts = session.parts_of(&board.main());
    let mut shares: Vec<Vec<usize>> = vec![Vec::new(); parts.count()];
    for (at, subject) in subjects.iter().enumerate() {
        shares[parts.number_of(subject)].push(at);
    }
    let shares = parts.all().iter().zip(shares).filter(|(_, share)| !share.is_empty());
    let calls = shares.map(|(part, share)| async move {
        let answer = session.ask(part, &TEXTS, |_, call| {
            call.key(part.keys.attributes());
            for at in &share {
                call.more(&subjects[*at]);
            }
        });
        let ScriptAnswer { mut reply, .. } = answer.await?;
        let attributes: Result<Vec<_>, _> = share.into_iter().map(|at| Ok((at, attributes(&mut reply)?))).collect();
        attributes
    });
    let mut all = vec![Attributes::default(); subjects.len()];
    for (at, attributes) in try_join_all(calls).await?.into_iter().flatten() {
        all[at] = attributes;
    }
    Ok(all)
}

fn attributes(reply: &mut Reply) -> Result<Attributes, ServerFailure> {
    let text = reply.maybe_text()?.unwrap_or_default();
    Attributes::of_stored(&text).ok_or_else(|| ServerFailure::Corrupt("attributes of a subject".to_owned()))
}

/// Returns subjects that have attributes, of all partitions. What one of a list has lost meanwhile is empty.
pub(super) async fn list(
    session: &Session,
    board: &Arc<Board>,
    range: TextRange<'_>,
    limit: u32,
) -> Result<Described, ServerFailure> {
    let partitions = session.partitions_of(board);
    // The names only, because each partition may have all that are wanted.
    let lists = partitions.all().iter().map(|partition| names(session, partition, range, limit));
    let (mut total, mut subjects) = (0, Vec::new());
    for (of_partition, names) in try_join_all(lists).await? {
        total += of_partition;
        subjects.extend(names);
    }
    subjects.sort_unstable_by(|one: &Subject, other| one.as_str().cmp(other.as_str()));
    subjects.truncate(limit as usize);
    let attributes = read(session, board, &subjects).await?;
    Ok(Described { total, items: subjects.into_iter().zip(attributes).collect() })
}

/// Returns the number of subjects of a partition that have attributes, and those of a range.
async fn names(
    session: &Session,
    partition: &Partition,
    range: TextRange<'_>,
    limit: u32,
) -> Result<(u64, Vec<Subject>), ServerFailure> {
    let part = partition.main();
    let answer = session.ask(part, &LISTED, |_, call| {
        call.key(part.keys.described()).key(part.keys.attributes());
        call.arg("from", reads::range_start(range)).arg("prefix", range.prefix).arg("limit", limit).arg("texts", 0);
    });
    let ScriptAnswer { mut reply, .. } = answer.await?;
    let (total, mut subjects) = (reply.count()?, Vec::new());
    while !reply.is_empty() {
        subjects.push(Subject::from_stored(reply.text()?));
    }
    Ok((total, subjects))
}

/// Copies the attributes of the subjects of a frozen board to its copy. `keep` is called after each step.
pub(super) async fn copy<F>(
    session: &Session,
    (from, to): (&Arc<Board>, &Arc<Board>),
    keep: impl Fn(usize) -> F,
) -> Result<(), ServerFailure>
where
    F: Future<Output = Result<(), ServerFailure>>,
{
    for partition in session.partitions_of(from).all() {
        let mut after: Option<Subject> = None;
        loop {
            let range = TextRange { prefix: "", after: after.as_ref().map(Subject::as_str) };
            let (_, mut subjects) = names(session, partition, range, COPIED_TOGETHER).await?;
            let attributes = read(session, from, &subjects).await?;
            let changes: Vec<(Subject, AttributesChange)> =
                subjects.iter().cloned().zip(attributes.iter().map(Attributes::change)).collect();
            set(session, to, &changes).await?;
            keep(changes.len()).await?;
            match subjects.pop() {
                Some(last) => after = Some(last),
                None => break,
            }
        }
    }
    Ok(())
}
