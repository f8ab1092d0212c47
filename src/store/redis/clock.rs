//! Trust in the server's clock: the time that was recorded before this instance started, and the time that the store as
//! a whole believes now. Each part of a board judges readings itself (see [`Part`]), because the window determines how
//! large a jump may be.

use std::time::Duration;

use metrics::{describe_gauge, gauge};
use parking_lot::Mutex;
use redis::{Cmd, Value, cmd};

use super::hash_slot::HashSlot;
use super::keys::StoreKeys;
use super::part::Part;
use super::reply::Reply;
use super::scripts::{Call, SET_CLOCK};
use super::servers::{Channel, Request, ServerFailure, Servers};
use super::session::Session;
use crate::board::{BoardName, Timestamp};
use crate::store::{ClockMode, ClockTrust, StoreError};

/// The smallest distance, in milliseconds, by which a first reading may be ahead of the recorded time. It is longer
/// than the interval between two records of the time, and longer than a restart takes.
pub(super) const RESTART: i64 = 60_000;
/// The largest such distance, in milliseconds, with which a board may be defined. A board that is defined in the future
/// accepts nothing until that time.
const DEFINING: i64 = 86_400_000;

const DOUBTED: &str = "rolltop_clock_doubted";

/// The belief of the store as a whole in a system clock.
#[derive(Debug)]
pub(super) struct StoreClock {
    /// The last time recorded before this instance started. `None` if there was none, or if the clock is to be trusted.
    recorded: Option<Timestamp>,
    first: Timestamp,
    state: Mutex<State>,
}

#[derive(Clone, Debug)]
struct State {
    trust: ClockTrust,
    believed: Timestamp,
    at: Duration,
}

/// The state of a clock with which a part starts.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub trust: ClockTrust,
    pub believed: Timestamp,
    pub at: Duration,
}

impl Start {
    /// Creates a start from a reading that is believed, taken when this instance started.
    pub fn believed(reading: Timestamp) -> Self {
        Start { trust: ClockTrust::new(reading, Duration::ZERO), believed: reading, at: Duration::ZERO }
    }
}

impl StoreClock {
    /// Creates the clock from the first reading and the time recorded before.
    pub fn new(recorded: Option<Timestamp>, first: Timestamp) -> Self {
        let start = Self::start(recorded, first, 0);
        let state = State { trust: start.trust, believed: start.believed, at: Duration::ZERO };
        Self { recorded, first, state: Mutex::new(state) }
    }

    fn start(recorded: Option<Timestamp>, first: Timestamp, window: i64) -> Start {
        let Some(recorded) = recorded else { return Start::believed(first) };
        let mut trust = ClockTrust::resumed(recorded);
        let believed = trust.believe(first, Duration::ZERO, window.max(RESTART));
        Start { trust, believed, at: Duration::ZERO }
    }

    /// Returns the start for a part of a board with this window. If the store believes its clock by now, so does the
    /// part.
    pub fn for_part(&self, window: i64, monotonic: Duration) -> Start {
        let state = self.state.lock();
        match state.trust.is_standing(monotonic) {
            Some(_) => Self::start(self.recorded, self.first, window),
            None => Start { trust: state.trust.clone(), believed: state.believed, at: state.at },
        }
    }

    /// Records a reading and returns the time to use.
    pub fn learn(&self, reading: Timestamp, monotonic: Duration) -> Timestamp {
        let mut state = self.state.lock();
        let window = if state.trust.is_standing(monotonic).is_some() { RESTART } else { 0 };
        state.believed = state.trust.believe(reading, monotonic, window);
        state.at = monotonic;
        state.believed
    }

    /// Returns the believed time to record, or `None` while a reading is doubted.
    fn to_record(&self) -> Option<Timestamp> {
        let state = self.state.lock();
        state.trust.doubted().is_none().then_some(state.believed)
    }

    /// Returns the error that refuses to define a board now, if there is one.
    pub fn refusal_to_define(&self, monotonic: Duration) -> Option<StoreError> {
        let state = self.state.lock();
        let retry_after = state.trust.is_standing(monotonic)?;
        let (recorded, reading) = (self.recorded?, state.trust.doubted()?);
        (reading > recorded.plus_millis(DEFINING)).then_some(StoreError::ClockDoubted {
            reading,
            recorded,
            retry_after,
        })
    }

    fn is_doubted(&self) -> bool {
        self.state.lock().trust.doubted().is_some()
    }
}

/// Sets the mode of the store's clock, if it has none yet, and reads the clock.
pub(super) async fn open(servers: &Servers, keys: &StoreKeys, clock: ClockMode) -> Result<Timestamp, StoreError> {
    let (wanted, start) = match clock {
        ClockMode::System => ("system", Timestamp::EPOCH),
        ClockMode::Simulated(start) => ("simulated", start),
    };
    let mut call = Call::default();
    call.key(keys.clock()).arg("open").arg(wanted).arg(start.millis());
    let opened = self::call(servers, keys, &call).await.map_err(|failure| servers.error(failure))?;
    if !opened.done {
        let stored = if opened.simulated { "simulated" } else { "system" };
        return Err(StoreError::ClockModeMismatch { stored, wanted });
    }
    read(servers, keys, opened.simulated).await.map_err(|failure| servers.error(failure))
}

/// The reply of `set_clock.lua`.
struct Clock {
    done: bool,
    simulated: bool,
    now: Timestamp,
}

async fn call(servers: &Servers, keys: &StoreKeys, call: &Call) -> Result<Clock, ServerFailure> {
    let mut reply =
        Reply::new(servers.call(keys.clock_slot(), Channel::Calls, &SET_CLOCK, &SET_CLOCK.command(call)).await?)?;
    Ok(Clock { done: reply.text()? == "done", simulated: reply.text()? == "simulated", now: reply.time()? })
}

/// Moves a simulated clock forward and returns the new time.
pub(super) async fn set(session: &Session, to: Timestamp) -> Result<Timestamp, StoreError> {
    let mut call = Call::default();
    call.key(session.keys.clock()).arg("set").arg("simulated").arg(to.millis());
    let clock = self::call(&session.servers, &session.keys, &call).await;
    match clock.map_err(|failure| session.servers.error(failure))? {
        Clock { done: true, now, .. } => Ok(now),
        Clock { simulated: true, now, .. } => Err(StoreError::ClockBackward { now }),
        Clock { .. } => Err(session.servers.error(ServerFailure::Emptied)),
    }
}

/// Reads the clock.
pub(super) async fn read(servers: &Servers, keys: &StoreKeys, simulated: bool) -> Result<Timestamp, ServerFailure> {
    if !simulated {
        return server_time(servers.read(keys.clock_slot(), Channel::Calls, &cmd("TIME")).await?);
    }
    let mut command = cmd("HMGET");
    command.arg(keys.clock()).arg("now");
    match servers.read(keys.clock_slot(), Channel::Calls, &command).await? {
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
    let mut reply = Reply::new(servers.read(keys.clock_slot(), Channel::Calls, &seen).await?)?;
    if let Some(seen) = reply.maybe_integer()? {
        return Ok(Some(Timestamp::from_millis(seen)));
    }
    let mut names = cmd("SMEMBERS");
    names.arg(keys.names());
    let mut latest = None;
    let names = Reply::texts(servers.read(keys.names_slot(), Channel::Calls, &names).await?)?;
    let metas = names.iter().filter_map(|name| Some(keys.meta(&BoardName::parse(name).ok()?)));
    let heads: Vec<(HashSlot, Cmd)> =
        metas.map(|meta| (HashSlot::of_key(meta.as_bytes()), field(meta, "head"))).collect();
    let requests: Vec<Request<'_>> = heads.iter().map(|(slot, head)| Request::read(*slot, head)).collect();
    for answer in servers.requests(Channel::Calls, &requests).await {
        latest = latest.max(Reply::new(answer?)?.maybe_integer()?.map(Timestamp::from_millis));
    }
    Ok(latest)
}

/// Reads the server's clock, passes the reading to everything that judges it, and returns the time to use.
pub(super) async fn look(session: &Session) -> Result<Timestamp, ServerFailure> {
    let reading = read(&session.servers, &session.keys, session.simulated).await?;
    if session.simulated {
        return Ok(reading);
    }
    let monotonic = session.monotonic();
    for part in session.parts() {
        if part.is_standing() {
            part.learn_time(reading, monotonic);
        }
    }
    Ok(session.clock.learn(reading, monotonic))
}

/// Records the believed time, for instances that start later.
pub(super) async fn record(session: &Session) -> Result<(), ServerFailure> {
    if session.simulated {
        return Ok(());
    }
    look(session).await?;
    if let Some(believed) = session.clock.to_record() {
        let mut command = cmd("HSET");
        command.arg(session.keys.clock()).arg("seen").arg(believed.millis());
        session.servers.set(session.keys.clock_slot(), Channel::Calls, &command).await?;
    }
    Ok(())
}

/// Returns an error if the clock of a part has been doubted since this instance started, so that the part must not be
/// written to.
pub(super) async fn admit(session: &Session, part: &Part) -> Result<Result<(), StoreError>, ServerFailure> {
    if !part.is_standing() {
        return Ok(Ok(()));
    }
    look(session).await?;
    Ok(part.doubt(session.monotonic()).map_or(Ok(()), Err))
}

/// Returns the reason why writes to some board are refused, if the clock has been doubted since this instance started.
/// Also exports whether the clock is doubted at all as a metric.
pub(super) fn check(session: &Session) -> Result<(), StoreError> {
    let monotonic = session.monotonic();
    let doubt = session.parts().iter().find_map(|part| part.doubt(monotonic));
    describe_gauge!(DOUBTED, "1 while the system clock is further ahead than expected and not believed yet");
    gauge!(DOUBTED).set(if doubt.is_some() || session.clock.is_doubted() { 1.0 } else { 0.0 });
    doubt.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn t(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_part_starts_as_the_store_does_or_by_its_own_window() {
        let clock = StoreClock::new(None, t(0));
        assert_eq!(clock.for_part(HOUR, s(1)).believed, t(0));
        let clock = StoreClock::new(Some(t(0)), t(2 * HOUR));
        assert_eq!(clock.for_part(HOUR, s(1)).believed, t(0));
        assert_eq!(clock.for_part(3 * HOUR, s(1)).believed, t(2 * HOUR));
        assert_eq!(clock.to_record(), None);
        assert!(clock.refusal_to_define(s(1)).is_none(), "two hours do no harm to a new board");
        assert_eq!(clock.learn(t(2 * HOUR + 61_000), s(61)), t(2 * HOUR + 61_000));
        assert_eq!(clock.for_part(HOUR, s(62)).believed, t(2 * HOUR + 61_000));
        assert_eq!(clock.to_record(), Some(t(2 * HOUR + 61_000)));
    }

    #[test]
    fn no_board_is_defined_far_in_the_future() {
        let clock = StoreClock::new(Some(t(0)), t(9_000 * HOUR));
        assert!(matches!(
            clock.refusal_to_define(s(10)),
            Some(StoreError::ClockDoubted { retry_after, .. }) if retry_after == s(50)
        ));
        assert_eq!(clock.learn(t(12_000), s(12)), t(12_000));
        assert!(clock.refusal_to_define(s(12)).is_none());
        assert_eq!(clock.for_part(HOUR, s(13)).believed, t(12_000));
    }
}
