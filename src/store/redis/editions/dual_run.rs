//! What is noted about the two editions of a board while it has them.

use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::cmd;

use crate::board::{Board, Edition, Epoch, NotCounted, Timestamp};
use crate::store::DualRun;
use crate::store::redis::part::Part;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;

/// What one partition has noted.
struct OfPartition {
    since: Option<Timestamp>,
    filled: Option<Timestamp>,
    /// Whether its server is the one that has done all writes since then.
    is_same_run: bool,
    /// By edition, in the order of [`NotCounted::COUNTED`].
    not_counted: [Vec<u64>; 2],
}

/// Returns the state of the two editions of a board, or `None` if it has one.
pub(in crate::store::redis) async fn dual_run(
    session: &Session,
    board: &Arc<Board>,
) -> Result<Option<DualRun>, ServerFailure> {
    let partitions = session.partitions_of(board);
    let all = try_join_all(partitions.all().iter().map(|partition| read(session, board, partition.main()))).await?;
    if board.other().is_none() {
        return Ok(None);
    }
    let missing = || ServerFailure::Corrupt("the time since which a partition has two editions is missing".to_owned());
    let since = all.iter().map(|own| own.since.ok_or_else(missing)).collect::<Result<Vec<_>, _>>()?;
    let filled = all.iter().map(|own| own.filled).collect::<Option<Vec<_>>>();
    let counts = |edition: usize| {
        let counted = |(at, reason)| (reason, all.iter().map(|own| own.not_counted[edition][at]).sum::<u64>());
        NotCounted::COUNTED.into_iter().enumerate().map(counted).filter(|(_, items)| *items > 0).collect()
    };
    Ok(Some(DualRun {
        since: since.into_iter().max().unwrap_or_default(),
        not_counted: [counts(0), counts(1)],
        filled: filled.and_then(|filled| filled.into_iter().max()),
        is_exact: all.iter().all(|own| own.is_same_run).then_some(true),
        server_runs: session.server_runs(board),
    }))
}

async fn read(session: &Session, board: &Board, part: &Part) -> Result<OfPartition, ServerFailure> {
    let mut fields = cmd("HMGET");
    fields.arg(&part.keys.meta).arg("generation").arg("epoch").arg("n:since").arg("n:filled").arg("n:run");
    for edition in board.editions().iter().map(Edition::id) {
        for reason in NotCounted::COUNTED {
            fields.arg(format!("n:{edition}:{}", reason.code()));
        }
    }
    let mut reply = session.read(&fields).await?;
    if reply.maybe_text()?.is_none_or(|generation| generation != part.generation().to_string()) {
        return Err(ServerFailure::BoardChanged);
    }
    if Epoch::of_stored(reply.maybe_text()?.as_deref()) != Some(board.epoch()) {
        return Err(ServerFailure::StaleEpoch);
    }
    let (since, filled, run) = (reply.maybe_time()?, reply.maybe_time()?, reply.maybe_text()?);
    let is_same_run = session.servers.run(part.slot()).is_some_and(|now| run.as_deref() == Some(&*now));
    let mut not_counted = [Vec::new(), Vec::new()];
    for own in not_counted.iter_mut().take(board.editions().len()) {
        for _ in NotCounted::COUNTED {
            own.push(reply.maybe_count()?.unwrap_or_default());
        }
    }
    Ok(OfPartition { since, filled, is_same_run, not_counted })
}
