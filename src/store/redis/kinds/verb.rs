//! Verbs: what entries do, in the terms of `lua/kind`.

use crate::board::Change;
use crate::store::redis::numbers::exact_or_refused;

/// The effect of an entry.
#[derive(Debug)]
pub(in crate::store::redis) struct Verb<'a> {
    pub verb: &'static str,
    pub a: VerbWord<'a>,
    pub b: i64,
}

/// A number; or the text of a counted value, or a sketch.
#[derive(Debug)]
pub(in crate::store::redis) enum VerbWord<'a> {
    Number(i64),
    Bytes(&'a [u8]),
}

impl<'a> Verb<'a> {
    /// Returns the verb that changes nothing: for this reason some items do not count, if there is one.
    pub fn look(reason: &'static str, items: usize) -> Self {
        Self { verb: "look", a: VerbWord::Bytes(reason.as_bytes()), b: items as i64 }
    }

    /// Returns the verb that most kinds have for such a change.
    pub fn usual(change: &'a Change, undoes: bool) -> Self {
        let number = |number: i64| VerbWord::Number(exact_or_refused(number));
        match change {
            Change::Amount(amount) => Self { verb: if undoes { "undo" } else { "add" }, a: number(amount.0), b: 0 },
            Change::Set { sum, count } => Self { verb: "set", a: number(sum.0), b: exact_or_refused(*count) },
            Change::Seen(value) => {
                Self { verb: if undoes { "gone" } else { "seen" }, a: VerbWord::Bytes(value.as_str().as_bytes()), b: 0 }
            }
            Change::Forget(value) => Self { verb: "forget", a: VerbWord::Bytes(value.as_str().as_bytes()), b: 0 },
            Change::Not(_) => Self::look("", 0),
        }
    }
}
