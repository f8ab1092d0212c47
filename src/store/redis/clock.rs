//! Trust in the server's clock: what was recorded of it before this instance started, and what the store as a whole
//! believes now. Each part of a board judges readings for itself ([`Part`]), for it is its window that says how far a
//! leap may go.

use std::time::Duration;

use metrics::{describe_gauge, gauge};
use parking_lot::Mutex;
use redis::{Cmd, Value, cmd};

use super::hash_slot::HashSlot;
use super::keys::StoreKeys;
use super::part::Part;
use super::reply::Reply;
use super::scripts::{Call, SET_CLOCK};
use super::servers::{Failure, Line, Request, Servers};
use super::session::Session;
use crate::board::{BoardName, Timestamp};
use crate::store::{ClockMode, ClockTrust, StoreError};

/// How far beyond the recorded time a first reading may be in any case, in milliseconds: longer than instances leave
/// between two records, and than a restart takes.
pub(super) const RESTART: i64 = 60_000;
/// How far it may be for a board to be defined: a board defined in the future takes nothing in until it has come.
const DEFINING: i64 = 86_400_000;

const DOUBTED: &str = "rolltop_clock_doubted";

/// What the store as a whole believes of a system clock.
#[derive(Debug)]
pub(super) struct StoreClock {
    /// The last time recorded before this instance started, unless there was none or the clock is trusted.
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

/// What a part starts with.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub trust: ClockTrust,
    pub believed: Timestamp,
    pub at: Duration,
}

impl Start {
    /// With a reading that is believed, taken when this instance started.
    pub fn believed(reading: Timestamp) -> Self {
        Start { trust: ClockTrust::new(reading, Duration::ZERO), believed: reading, at: Duration::ZERO }
    }
}

impl StoreClock {
    /// Starts from the first reading, with what was recorded before.
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

    /// What a part of a board with this window starts with. Where the store believes its clock by now, so does the part.
    pub fn for_part(&self, window: i64, monotonic: Duration) -> Start {
        let state = self.state.lock();
        match state.trust.is_standing(monotonic) {
            Some(_) => Self::start(self.recorded, self.first, window),
            None => Start { trust: state.trust.clone(), believed: state.believed, at: state.at },
        }
    }

    /// Takes in a reading and answers the time to go by.
    pub fn learn(&self, reading: Timestamp, monotonic: Duration) -> Timestamp {
        let mut state = self.state.lock();
        let window = if state.trust.is_standing(monotonic).is_some() { RESTART } else { 0 };
        state.believed = state.trust.believe(reading, monotonic, window);
        state.at = monotonic;
        state.believed
    }

    /// The believed time, to be recorded; `None` while a reading is doubted.
    fn to_record(&self) -> Option<Timestamp> {
        let state = self.state.lock();
        state.trust.doubted().is_none().then_some(state.believed)
    }

    /// Why no board is to be defined now.
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

/// Makes the store's clock of the wanted mode, if it has none yet, and reads it.
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

/// What `set_clock.lua` answered.
struct Clock {
    done: bool,
    simulated: bool,
    now: Timestamp,
}

async fn call(servers: &Servers, keys: &StoreKeys, call: &Call) -> Result<Clock, Failure> {
    let mut reply =
        Reply::new(servers.call(keys.clock_slot(), Line::Calls, &SET_CLOCK, &SET_CLOCK.command(call)).await?)?;
    Ok(Clock { done: reply.text()? == "done", simulated: reply.text()? == "simulated", now: reply.time()? })
}

/// Moves a simulated clock forward and answers the new time.
pub(super) async fn set(session: &Session, to: Timestamp) -> Result<Timestamp, StoreError> {
    let mut call = Call::default();
    call.key(session.keys.clock()).arg("set").arg("simulated").arg(to.millis());
    let clock = self::call(&session.servers, &session.keys, &call).await;
    match clock.map_err(|failure| session.servers.error(failure))? {
        Clock { done: true, now, .. } => Ok(now),
        Clock { simulated: true, now, .. } => Err(StoreError::ClockBackward { now }),
        Clock { .. } => Err(session.servers.error(Failure::Emptied)),
    }
}

/// What the clock reads.
pub(super) async fn read(servers: &Servers, keys: &StoreKeys, simulated: bool) -> Result<Timestamp, Failure> {
    if !simulated {
        return server_time(servers.read(keys.clock_slot(), Line::Calls, &cmd("TIME")).await?);
    }
    let mut command = cmd("HMGET");
    command.arg(keys.clock()).arg("now");
    match servers.read(keys.clock_slot(), Line::Calls, &command).await? {
        Value::Array(fields) if fields == [Value::Nil] => Err(Failure::Emptied),
        answer => Reply::new(answer)?.time(),
    }
}

/// What a server answered to `TIME`.
pub(super) fn server_time(answer: Value) -> Result<Timestamp, Failure> {
    let mut reply = Reply::new(answer)?;
    let (seconds, micros) = (reply.integer()?, reply.integer()?);
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)))
}

/// What instances recorded of the clock; from a version that recorded none, the latest head that a board has reached.
pub(super) async fn recorded(servers: &Servers, keys: &StoreKeys) -> Result<Option<Timestamp>, Failure> {
    let field = |key: String, field: &str| {
        let mut command = cmd("HMGET");
        command.arg(key).arg(field);
        command
    };
    let seen = field(keys.clock(), "seen");
    let mut reply = Reply::new(servers.read(keys.clock_slot(), Line::Calls, &seen).await?)?;
    if let Some(seen) = reply.maybe_integer()? {
        return Ok(Some(Timestamp::from_millis(seen)));
    }
    let mut names = cmd("SMEMBERS");
    names.arg(keys.names());
    let mut latest = None;
    let names = Reply::texts(servers.read(keys.names_slot(), Line::Calls, &names).await?)?;
    let metas = names.iter().filter_map(|name| Some(keys.meta(&BoardName::parse(name).ok()?)));
    let heads: Vec<(HashSlot, Cmd)> =
        metas.map(|meta| (HashSlot::of_key(meta.as_bytes()), field(meta, "head"))).collect();
    let requests: Vec<Request<'_>> = heads.iter().map(|(slot, head)| Request::read(*slot, head)).collect();
    for answer in servers.requests(Line::Calls, &requests).await {
        latest = latest.max(Reply::new(answer?)?.maybe_integer()?.map(Timestamp::from_millis));
    }
    Ok(latest)
}

/// Reads the server's clock for all that judge it, and answers the time to go by.
pub(super) async fn look(session: &Session) -> Result<Timestamp, Failure> {
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
pub(super) async fn record(session: &Session) -> Result<(), Failure> {
    if session.simulated {
        return Ok(());
    }
    look(session).await?;
    if let Some(believed) = session.clock.to_record() {
        let mut command = cmd("HSET");
        command.arg(session.keys.clock()).arg("seen").arg(believed.millis());
        session.servers.set(session.keys.clock_slot(), Line::Calls, &command).await?;
    }
    Ok(())
}

/// Refuses to write to a part whose clock is doubted since this instance started.
pub(super) async fn admit(session: &Session, part: &Part) -> Result<Result<(), StoreError>, Failure> {
    if !part.is_standing() {
        return Ok(Ok(()));
    }
    look(session).await?;
    Ok(part.doubt(session.monotonic()).map_or(Ok(()), Err))
}

/// Why the store takes no writes to some board, if it doubts the clock since this instance started; and says in the
/// metrics whether the clock is doubted at all.
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
