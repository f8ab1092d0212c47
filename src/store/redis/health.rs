//! Checks, while this instance runs, that the servers accept writes, evict nothing, and still have their data.

use std::time::Duration;

use futures_util::future::join3;
use redis::{Value, cmd};

use super::servers::{Channel, ServerFailure};
use super::session::Session;
use super::{boards, clock};
use crate::store::{Result, StoreError};

/// The interval at which the server's eviction policy is read. It may be changed while the server runs.
const POLICY: Duration = Duration::from_secs(2);

/// Checks that the server accepts writes, does not evict, and has the data that it had when it was opened.
pub(super) async fn check(session: &Session) -> Result<()> {
    let mut set = cmd("SET");
    set.arg(session.keys.check()).arg(&session.instance).arg("PX").arg(60_000);
    let written = session.servers.set(Channel::Calls, &set);
    let (written, mark, policy) = join3(written, read_mark(session), check_policy(session)).await;
    written.map_err(|failure| session.servers.error(failure))?;
    let mark = mark.map_err(|failure| session.servers.error(failure))?;
    if mark != *session.health.mark.lock() || mark.is_none() {
        return Err(StoreError::Emptied { at: session.servers.at().to_string() });
    }
    policy
}

async fn check_policy(session: &Session) -> Result<()> {
    let now = session.monotonic();
    let is_known = session.health.policy_read.lock().is_some_and(|read| now.saturating_sub(read) < POLICY);
    if is_known {
        return Ok(());
    }
    for node in session.servers.nodes() {
        boards::check_policy(&node).await?;
    }
    *session.health.policy_read.lock() = Some(now);
    Ok(())
}

/// Reads the mark that distinguishes this store from one that was emptied in the meantime. It is drawn when the clock
/// is opened, and stored in the same key.
async fn read_mark(session: &Session) -> Result<Option<String>, ServerFailure> {
    let mut command = cmd("HMGET");
    command.arg(session.keys.clock()).arg("mode").arg("born");
    match session.servers.read(Channel::Calls, &command).await? {
        Value::Array(fields) => Ok(match fields.as_slice() {
            [Value::BulkString(_), Value::BulkString(born)] => Some(String::from_utf8_lossy(born).into_owned()),
            _ => None,
        }),
        other => Err(ServerFailure::Corrupt(format!("unexpected reply to HMGET: {other:?}"))),
    }
}

/// Draws the mark of a store that has none, and records it.
pub(super) async fn mark(session: &Session) -> Result<(), ServerFailure> {
    let mut command = cmd("HSETNX");
    command.arg(session.keys.clock()).arg("born").arg(format!("{:016x}", rand::random::<u64>()));
    session.servers.set(Channel::Calls, &command).await?;
    let mark = read_mark(session).await?;
    *session.health.mark.lock() = mark;
    Ok(())
}

/// Gives a store that was emptied a clock again.
pub(super) async fn reopen(session: &Session) -> Result<()> {
    session.drop_beliefs();
    session.health.findings(|findings| {
        findings.whole.clear();
        findings.held.clear();
    });
    clock::open(&session.servers, &session.keys, session.health.clock).await?;
    mark(session).await.map_err(|failure| session.servers.error(failure))
}
