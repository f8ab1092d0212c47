//! What a caller needs to know of a board to judge for itself what a script would: the time, and some fields of the
//! board's meta key.
//!
//! `TIME` is sent first, then what reads subjects, each with one command, then `HMGET` of the meta key; all in one
//! pipeline. The answer is as of the time read, and holds what its command found an instant later. It is right if all of
//! this is so, and else asked again:
//!
//! - The generation is the board's. It never comes back, so it was there when the subjects were read.
//! - The stored head is that of the window of the time read. Head and floor move forward only, so nobody had moved them
//!   beyond when the subjects were read, and nothing that the window needs had been cleaned up. If the stored head is
//!   *behind*, nobody has advanced the board yet: a script does, so that no later answer, by a clock that jumped back,
//!   is about an older window.
//! - The time read is believed, or doubted and replaced by what it should be, just as in the scripts (`clock.lua`); a
//!   time before the stored head counts as the head.

use redis::{Cmd, Value, cmd};

use crate::board::{Timestamp, Window};
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::servers::Failure;

/// What was read.
#[derive(Debug)]
pub(super) struct Look {
    /// The time to go by, and what the clock read.
    pub now: Timestamp,
    pub reading: Timestamp,
    pub head: Timestamp,
    /// Empty if answers must not be kept.
    pub version: String,
    /// How many slots are retiring; `None` where a script must count them.
    pub retiring: Option<u64>,
    belief: Belief,
}

/// What the server's clock is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    /// What time it should be.
    pub estimate: Timestamp,
    /// The latest reading to believe.
    pub latest: Timestamp,
}

/// Whether what was read with a look can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    /// The board must be advanced first.
    Behind,
    /// The window is another by now.
    Moved,
}

impl Belief {
    /// The time to go by when the clock reads this.
    fn now(&self, reading: Timestamp) -> Timestamp {
        if reading > self.latest { self.estimate } else { reading }
    }
}

/// The command that reads the meta key.
pub(super) fn command(part: &Part) -> Cmd {
    let mut command = cmd("HMGET");
    command.arg(&part.keys.meta).arg("generation").arg("head").arg("version").arg("retiring");
    command
}

impl Look {
    /// Reads what [`command`] answered when the clock read `reading`.
    pub fn read(part: &Part, belief: Belief, reading: Timestamp, meta: Value) -> Result<Self, Failure> {
        let mut meta = Reply::new(meta)?;
        if meta.maybe_text()?.is_none_or(|generation| generation != part.board.generation().to_string()) {
            return Err(Failure::BoardChanged);
        }
        let head = meta.maybe_time()?.ok_or_else(|| Failure::Corrupt("a board without a head".to_owned()))?;
        let version = meta.maybe_text()?.unwrap_or_default();
        let retiring = meta.maybe_integer()?.and_then(|count| u64::try_from(count).ok());
        Ok(Self { now: belief.now(reading).max(head), reading, head, version, retiring, belief })
    }

    /// What the same command answered earlier, when the clock had been read already.
    pub fn before(&self, part: &Part, meta: Value) -> Result<Self, Failure> {
        Self::read(part, self.belief, self.reading, meta)
    }

    /// Whether what was asked for the sake of this window is an answer.
    pub fn judge(&self, window: &Window) -> Verdict {
        if !window.holds_at(self.now) {
            return Verdict::Moved;
        }
        // The window holds the time, and the time is not before the stored head.
        if self.head == window.head { Verdict::Right } else { Verdict::Behind }
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
    fn a_look_is_judged_as_a_script_would() {
        let part = part("COUNT(2h, e, s)", "1h", false);
        let generation = part.board.generation().to_string();
        let belief = Belief { estimate: at(1_800), latest: at(5_400) };
        let window = part.board.window_at(at(1_800));
        let look = |reading: i64, head: i64| {
            let meta = Value::Array(vec![bulk(&generation), bulk(at(head).millis()), Value::Nil, Value::Nil]);
            Look::read(&part, belief, at(reading), meta).unwrap()
        };
        let judged = |reading, head| (look(reading, head).now, look(reading, head).judge(&window));
        assert_eq!(judged(1_801, 0), (at(1_801), Verdict::Right));
        // Nobody has advanced the board to this window yet.
        assert_eq!(judged(1_801, -3_600), (at(1_801), Verdict::Behind));
        // The next slot has begun, or the one before has not ended.
        assert_eq!(judged(3_600, 0), (at(3_600), Verdict::Moved));
        assert_eq!(judged(-1, -3_600), (at(-1), Verdict::Moved));
        // A clock that jumped back moves nothing back; one far ahead is not believed.
        assert_eq!(judged(-1, 0), (at(0), Verdict::Right));
        assert_eq!(judged(1_801, 3_600), (at(3_600), Verdict::Moved));
        assert_eq!(judged(5_401, 0), (at(1_800), Verdict::Right));
    }

    #[test]
    fn a_board_that_is_gone_or_damaged_is_an_error() {
        let part = part("COUNT(2h, e, s)", "1h", false);
        let belief = Belief { estimate: at(0), latest: at(5) };
        let read = |meta| Look::read(&part, belief, at(0), Value::Array(meta));
        let generation = part.board.generation();
        let nil = || Value::Nil;
        assert!(matches!(read(vec![nil(), nil(), nil(), nil()]), Err(Failure::BoardChanged)));
        assert!(matches!(read(vec![bulk("x"), bulk(0), nil(), nil()]), Err(Failure::BoardChanged)));
        assert!(matches!(read(vec![bulk(generation), nil(), nil(), nil()]), Err(Failure::Corrupt(_))));
        let look = read(vec![bulk(generation), bulk(0), bulk("v"), bulk(3)]).unwrap();
        assert_eq!((look.version.as_str(), look.retiring), ("v", Some(3)));
        assert_eq!(server_time(Value::Array(vec![bulk(5), bulk(1_999)])).unwrap(), Timestamp::from_millis(5_001));
    }
}
