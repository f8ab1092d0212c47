//! The data with which a caller checks what a script would check: the time, and some fields of the board's meta key.
//!
//! One pipeline has `TIME` first, then the commands that read subjects, one for each, then `HMGET` of the meta key. The
//! answer is as of the time that was read, and contains the data that its command found an instant later. It is correct
//! if all of the following is true. Otherwise the question is asked again.
//!
//! - The generation and the epoch are those of the board. Neither ever comes back, so they were the same when the
//!   subjects were read.
//! - The stored head is that of the window of the time that was read. Head and floor only move forward, so they had not
//!   moved further when the subjects were read, and nothing that the window needs had been deleted. If the stored head
//!   is *behind*, the board has not been advanced yet, and a script must do so. Otherwise a later answer, given after
//!   the clock was set back, could be about an older window.
//! - The time that was read is believed, or doubted and replaced by the expected time, exactly as in the scripts
//!   (`clock.lua`). A time before the stored head counts as the head.

use redis::{Cmd, Value, cmd};

use crate::board::{Epoch, Timestamp, Window};
use crate::store::redis::part::Part;
use crate::store::redis::partition_clock::Belief;
use crate::store::redis::reply::Reply;
use crate::store::redis::servers::ServerFailure;

/// The result of a look.
#[derive(Debug)]
pub(super) struct Look {
    /// The time to use.
    pub now: Timestamp,
    pub reading: Timestamp,
    pub head: Timestamp,
    /// The board version. Empty if answers must not be cached.
    pub version: String,
    /// The number of retiring slots, or `None` if a script must count them.
    pub retiring: Option<u64>,
    /// The incarnation of the part's node, or `None` if it changed in the meantime.
    pub incarnation: Option<u64>,
    belief: Belief,
}

/// Whether the data that was read with a look is about the window of that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Right,
    /// The board must be advanced first.
    Behind,
    /// The window has changed.
    Moved,
}

/// Returns the command that reads the meta key.
pub(super) fn command(part: &Part) -> Cmd {
    let mut command = cmd("HMGET");
    command.arg(&part.keys.meta).arg("generation").arg("head").arg("version").arg("retiring").arg("epoch");
    command
}

impl Look {
    /// Reads the reply to [`command`], given the reading of the clock. The incarnation is not known yet.
    pub fn read(part: &Part, belief: Belief, reading: Timestamp, meta: Value) -> Result<Self, ServerFailure> {
        let mut meta = Reply::new(meta)?;
        let generation = meta.maybe_text()?;
        let (head, version) = (meta.maybe_time()?, meta.maybe_text()?.unwrap_or_default());
        let retiring = meta.maybe_count()?;
        let epoch = meta.maybe_text()?;
        let is_generation = generation.is_some_and(|generation| generation == part.generation().to_string());
        if !is_generation {
            return Err(ServerFailure::BoardChanged);
        }
        if Epoch::of_stored(epoch.as_deref()) != Some(part.track.board().epoch()) {
            return Err(ServerFailure::StaleEpoch);
        }
        let head = head.ok_or_else(|| ServerFailure::Corrupt("a board without a head".to_owned()))?;
        Ok(Self { now: belief.now(reading).max(head), reading, head, version, retiring, incarnation: None, belief })
    }

    /// Sets the incarnation.
    pub fn in_incarnation(self, incarnation: Option<u64>) -> Self {
        Self { incarnation, ..self }
    }

    /// Returns whether an earlier reply to the same command, which was sent after the clock was read, has the same
    /// version and head.
    pub fn is_same(&self, part: &Part, meta: Value) -> Result<bool, ServerFailure> {
        let before = Self::read(part, self.belief, self.reading, meta)?;
        Ok(before.version == self.version && before.head == self.head)
    }

    /// Returns whether the data that was read for this window is an answer.
    pub fn fit(&self, window: &Window) -> Fit {
        if !window.holds_at(self.now) {
            return Fit::Moved;
        }
        // The window contains the time, and the time is not before the stored head.
        if self.head == window.head { Fit::Right } else { Fit::Behind }
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::tests::part;
    use super::*;
    use crate::store::redis::clock::server_time;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::parse("2026-01-01T09:00:00Z").unwrap().plus_millis(seconds * 1_000)
    }

    fn bulk(text: impl ToString) -> Value {
        Value::BulkString(text.to_string().into_bytes())
    }

    #[test]
    fn a_look_is_judged_by_time_head_and_window() {
        let part = part("COUNT(2h, e, s)", "1h", false);
        let generation = part.generation().to_string();
        let belief = Belief { expected: at(1_800), latest: at(5_400) };
        let window = part.track.window_at(at(1_800));
        let look = |reading: i64, head: i64| {
            let meta =
                Value::Array(vec![bulk(&generation), bulk(at(head).millis()), Value::Nil, Value::Nil, Value::Nil]);
            Look::read(&part, belief, at(reading), meta).unwrap()
        };
        let judged = |reading, head| (look(reading, head).now, look(reading, head).fit(&window));
        assert_eq!(judged(1_801, 0), (at(1_801), Fit::Right));
        // The board has not been advanced to this window yet.
        assert_eq!(judged(1_801, -3_600), (at(1_801), Fit::Behind));
        // The next slot has begun, or the previous one has not ended.
        assert_eq!(judged(3_600, 0), (at(3_600), Fit::Moved));
        assert_eq!(judged(-1, -3_600), (at(-1), Fit::Moved));
        // If the clock was set back, the time does not move back. A reading far ahead is not believed.
        assert_eq!(judged(-1, 0), (at(0), Fit::Right));
        assert_eq!(judged(1_801, 3_600), (at(3_600), Fit::Moved));
        assert_eq!(judged(5_401, 0), (at(1_800), Fit::Right));
    }

    #[test]
    fn a_look_at_a_missing_or_damaged_board_is_an_error() {
        let part = part("COUNT(2h, e, s)", "1h", false);
        let belief = Belief { expected: at(0), latest: at(5) };
        let read = |meta| Look::read(&part, belief, at(0), Value::Array(meta));
        let generation = part.generation();
        let nil = || Value::Nil;
        assert!(matches!(read(vec![nil(), nil(), nil(), nil(), nil()]), Err(ServerFailure::BoardChanged)));
        assert!(matches!(read(vec![bulk("x"), bulk(0), nil(), nil(), nil()]), Err(ServerFailure::BoardChanged)));
        assert!(matches!(read(vec![bulk(generation), nil(), nil(), nil(), nil()]), Err(ServerFailure::Corrupt(_))));
        let of_epoch = |epoch| read(vec![bulk(generation), bulk(0), bulk("v"), bulk(3), epoch]);
        for epoch in ["1", "x", "", "00", "2.1"] {
            assert!(matches!(of_epoch(bulk(epoch)), Err(ServerFailure::StaleEpoch)), "{epoch:?}");
        }
        let look = of_epoch(nil()).unwrap();
        assert_eq!((look.version.as_str(), look.retiring), ("v", Some(3)));
        assert_eq!(server_time(Value::Array(vec![bulk(5), bulk(1_999)])).unwrap(), Timestamp::from_millis(5_001));
    }
}
