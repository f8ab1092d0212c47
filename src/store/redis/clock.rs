//! The key of the store's clock: its mode, the time of a simulated clock, and the time recorded by instances.

use redis::{Cmd, Value, cmd};

use super::hash_slot::HashSlot;
use super::keys::StoreKeys;
use super::reply::Reply;
use super::scripts::{SET_CLOCK, ScriptCall};
use super::servers::{Channel, Request, ServerFailure, Servers};
use crate::board::{BoardName, Timestamp};
use crate::store::{ClockMode, StoreError};

/// Sets the mode of the store's clock, if it has none yet, and reads the clock.
pub(super) async fn open(servers: &Servers, keys: &StoreKeys, clock: ClockMode) -> Result<Timestamp, StoreError> {
    let (wanted, start) = match clock {
        ClockMode::System => ("system", Timestamp::EPOCH),
        ClockMode::Simulated(start) => ("simulated", start),
    };
    let mut call = ScriptCall::default();
    call.key(keys.clock()).arg("action", "open").arg("mode", wanted).arg("time", start.millis());
    let opened = self::call(servers, &call).await.map_err(|failure| servers.error(failure))?;
    if !opened.done {
        let stored = if opened.simulated { "simulated" } else { "system" };
        return Err(StoreError::ClockModeMismatch { stored, wanted });
    }
    read(servers, keys, opened.simulated).await.map_err(|failure| servers.error(failure))
}

/// The reply of `set_clock.lua`.
struct ClockReply {
    done: bool,
    simulated: bool,
    now: Timestamp,
}

async fn call(servers: &Servers, call: &ScriptCall) -> Result<ClockReply, ServerFailure> {
    let mut reply = Reply::new(servers.call(Channel::Calls, &SET_CLOCK, call).await?)?;
    Ok(ClockReply { done: reply.text()? == "done", simulated: reply.text()? == "simulated", now: reply.time()? })
}

/// Moves a simulated clock forward and returns the new time.
pub(super) async fn set(servers: &Servers, keys: &StoreKeys, to: Timestamp) -> Result<Timestamp, StoreError> {
    let mut call = ScriptCall::default();
    call.key(keys.clock()).arg("action", "set").arg("mode", "simulated").arg("time", to.millis());
    let clock = self::call(servers, &call).await;
    match clock.map_err(|failure| servers.error(failure))? {
        ClockReply { done: true, now, .. } => Ok(now),
        ClockReply { simulated: true, now, .. } => Err(StoreError::ClockBackward { now }),
        ClockReply { .. } => Err(servers.error(ServerFailure::Emptied)),
    }
}

/// Reads the clock.
pub(super) async fn read(servers: &Servers, keys: &StoreKeys, simulated: bool) -> Result<Timestamp, ServerFailure> {
    if !simulated {
        let (slot, command) = (HashSlot::of_key(keys.clock().as_bytes()), cmd("TIME"));
        return server_time(servers.request(Channel::Calls, Request::read(slot, &command)).await?);
    }
    let mut command = cmd("HMGET");
    command.arg(keys.clock()).arg("now");
    match servers.read(Channel::Calls, &command).await? {
        Value::Array(fields) if fields == [Value::Nil] => Err(ServerFailure::Emptied),
        answer => Reply::new(answer)?.time(),
    }
}

/// Reads the reply to `TIME`.
pub(super) fn server_time(answer: Value) -> Result<Timestamp, ServerFailure> {
    let mut reply = Reply::new(answer)?;
    let (seconds, micros) = (reply.integer()?, reply.integer()?);
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)))
}

/// Returns the time that instances recorded. If a version that recorded none wrote the data, returns the latest head of
/// any board.
pub(super) async fn recorded(servers: &Servers, keys: &StoreKeys) -> Result<Option<Timestamp>, ServerFailure> {
    let field = |key: String, field: &str| {
        let mut command = cmd("HMGET");
        command.arg(key).arg(field);
        command
    };
    let seen = field(keys.clock(), "seen");
    let mut reply = Reply::new(servers.read(Channel::Calls, &seen).await?)?;
    if let Some(seen) = reply.maybe_integer()? {
        return Ok(Some(Timestamp::from_millis(seen)));
    }
    let mut names = cmd("SMEMBERS");
    names.arg(keys.names());
    let mut latest = None;
    let names = Reply::texts(servers.read(Channel::Calls, &names).await?)?;
    let metas = names.iter().filter_map(|name| Some(keys.meta(&BoardName::parse(name).ok()?)));
    let heads: Vec<Cmd> = metas.map(|meta| field(meta, "head")).collect();
    let requests: Vec<Request<'_>> = heads.iter().map(|head| Request::read(HashSlot::of_command(head), head)).collect();
    for answer in servers.requests(Channel::Calls, &requests).await {
        latest = latest.max(Reply::new(answer?)?.maybe_integer()?.map(Timestamp::from_millis));
    }
    Ok(latest)
}
