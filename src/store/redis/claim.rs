//! Claims: one instance at a time heals a part, and all instances know which parts are whole or held.

use std::time::Duration;

use metrics::gauge;

use super::part::Part;
use super::scripts::{HEAL, ScriptCall};
use super::servers::ServerFailure;
use super::session::Session;

/// The time for which a claim is valid without being renewed. If an instance ends, a different one can continue after
/// this time.
const LEASE: Duration = Duration::from_secs(30);
/// The name of the gauge of boards that are held.
pub(super) const HELD: &str = "rolltop_held_boards";

/// The reply of `heal.lua`.
pub(super) enum Claim {
    Yours,
    Busy,
    Whole,
    Held(String),
    Gone,
}

/// Records that a requested audit has found no differences, or has repaired them, so that the part is no longer held.
pub(super) async fn found_whole(session: &Session, part: &Part) -> Result<(), ServerFailure> {
    let run = session.servers.run(part.slot());
    let run_id = run.as_deref().unwrap_or_default();
    if matches!(act(session, part, "whole", run_id, "").await?, Claim::Whole) {
        session.health.findings(|findings| {
            findings.release(part);
            gauge!(HELD).set(findings.held_boards().len() as f64);
        });
    }
    Ok(())
}

pub(super) async fn claim(session: &Session, part: &Part, run_id: &str) -> Result<Claim, ServerFailure> {
    act(session, part, "claim", run_id, "").await
}

pub(super) async fn act(
    session: &Session,
    part: &Part,
    action: &str,
    run_id: &str,
    reason: &str,
) -> Result<Claim, ServerFailure> {
    let mut call = ScriptCall::default();
    call.key(&part.keys.meta)
        .arg("generation", part.generation())
        .arg("epoch", part.track.board().epoch())
        .arg("action", action);
    call.arg("instance", &session.instance).arg("run", run_id);
    call.arg("duration", LEASE.as_millis()).arg("reason", reason);
    let mut reply = session.call(&HEAL, &call).await?;
    Ok(match reply.text()?.as_str() {
        "gone" => Claim::Gone,
        "stale_epoch" => return Err(ServerFailure::StaleEpoch),
        "busy" => Claim::Busy,
        "whole" => Claim::Whole,
        "yours" => Claim::Yours,
        "held" => Claim::Held(reply.text()?),
        other => return Err(ServerFailure::Corrupt(format!("unexpected reply to a claim: '{other}'"))),
    })
}
