//! Reads the replies of scripts. A reply of an unexpected form is [`ServerFailure::Corrupt`], never a panic.

use redis::Value;

use super::kinds;
use super::numbers::read_amount;
use super::servers::{NotPassed, ServerFailure};
use crate::board::{Aggregate, Amount, Counted, Frame, Kind, Moderation, Subject, Timestamp, Value as Score, Window};
use crate::store::Reached;

/// The values of a reply that have not been read yet.
#[derive(Debug)]
pub(super) struct Reply(std::vec::IntoIter<Value>);

/// Reads the stored form of what a partition has reached of a source. An empty text stands for one that has not joined.
pub(super) fn reached_of(text: &str) -> Result<Option<Reached>, ServerFailure> {
    let damaged = || ServerFailure::Corrupt(format!("what is reached of a source is '{text}'"));
    if text.is_empty() { Ok(None) } else { Reached::parse(text).map(Some).ok_or_else(damaged) }
}

/// The status of a script about a board.
#[derive(Debug)]
pub(super) enum ScriptStatus {
    /// The script has done its work. The rest of the reply depends on the script.
    Done(Header),
    /// Nothing was done: the arguments are not valid at the time `now`.
    Stale { now: Timestamp, reading: Timestamp },
    /// Nothing was done except advancing: the call must name these slots of each track too.
    Missing { header: Header, slots: Vec<Vec<Timestamp>> },
    /// Nothing was done except advancing: these slots and dedupe buckets exist.
    StaleKeys { header: Header, slots: Vec<Timestamp>, buckets: Vec<i64>, head_before: Timestamp },
}

/// The beginning of every reply of a script that has done its work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// The time that the script used.
    pub now: Timestamp,
    /// The reading of the server's clock.
    pub reading: Timestamp,
    /// The number of slots that are not fully subtracted.
    pub retiring: u64,
}

impl Header {
    /// Returns the frame of an answer about this window. Its time is not before the head, because a part may have
    /// advanced to the head of a different part before its own clock has reached it.
    pub fn frame(&self, window: Window) -> Frame {
        Frame { window, as_of: self.now.max(window.head), retiring: self.retiring }
    }
}

impl Reply {
    pub fn new(value: Value) -> Result<Self, ServerFailure> {
        match value {
            Value::Array(values) => Ok(Self(values.into_iter())),
            other => Err(unreadable("a list", &other)),
        }
    }

    /// Reads the texts in the reply to a command, which is a list or a set.
    pub fn texts(value: Value) -> Result<Vec<String>, ServerFailure> {
        match value {
            Value::Array(values) | Value::Set(values) => values.into_iter().map(text).collect(),
            other => Err(unreadable("a list", &other)),
        }
    }

    /// Returns whether the reply is this word alone.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.0.as_slice(), [Value::BulkString(only)] if only == word.as_bytes())
    }

    /// Reads the status of a script about a board.
    pub fn status(&mut self) -> Result<ScriptStatus, ServerFailure> {
        match self.text()?.as_str() {
            "ok" => Ok(ScriptStatus::Done(self.header()?)),
            "stale" => Ok(ScriptStatus::Stale { now: self.time()?, reading: self.time()? }),
            "stale_keys" => Ok(ScriptStatus::StaleKeys {
                header: self.header()?,
                slots: self.times()?,
                buckets: self.list()?.map(|value| integer(&value)).collect::<Result<_, _>>()?,
                head_before: self.time()?,
            }),
            "missing" => Ok(ScriptStatus::Missing { header: self.header()?, slots: self.times_of_windows()? }),
            "board_changed" => Err(ServerFailure::BoardChanged),
            "stale_epoch" => Err(ServerFailure::StaleEpoch),
            "importing" => Err(ServerFailure::ImportOpen),
            "no_import" => Err(ServerFailure::NoImport(self.text()?)),
            "elsewhere" => Err(ServerFailure::NotPassed(NotPassed::Elsewhere(reached_of(&self.text()?)?))),
            "singly" => Err(ServerFailure::NotPassed(NotPassed::Singly)),
            "too_large" => Err(ServerFailure::NotPassed(NotPassed::TooLarge)),
            "halved" => Err(ServerFailure::NotPassed(NotPassed::Halved)),
            "waits" => {
                let number = |entry: Value| integer(&entry).map(|entry| usize::try_from(entry).unwrap_or(usize::MAX));
                let entries = self.list()?.map(number).collect::<Result<_, _>>()?;
                Err(ServerFailure::NotPassed(NotPassed::Importing(entries)))
            }
            "superseded" => Err(ServerFailure::Unknown("a later write of this instance was done first".to_owned())),
            "damaged" => Err(ServerFailure::Corrupt(self.text()?)),
            other => Err(ServerFailure::Corrupt(format!("unexpected reply of a script: '{other}'"))),
        }
    }

    fn header(&mut self) -> Result<Header, ServerFailure> {
        Ok(Header { now: self.time()?, reading: self.time()?, retiring: self.count()? })
    }

    pub fn text(&mut self) -> Result<String, ServerFailure> {
        text(self.next()?)
    }

    /// Reads the letters of a subject, which has none if nothing is set for it.
    pub fn moderation(&mut self) -> Result<Moderation, ServerFailure> {
        let letters = self.maybe_text()?.unwrap_or_default();
        let corrupt = || ServerFailure::Corrupt(format!("the letters '{letters}' of a moderated subject"));
        Moderation::of_letters(&letters).ok_or_else(corrupt)
    }

    /// Reads a text. Bytes that are not UTF-8 become replacement characters: others may have written them, and must not
    /// hide what comes after.
    pub fn lossy_text(&mut self) -> Result<String, ServerFailure> {
        match self.next()? {
            Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            other => text(other),
        }
    }

    /// Reads an integer, or `None` for nil.
    pub fn maybe_integer(&mut self) -> Result<Option<i64>, ServerFailure> {
        match self.next()? {
            Value::Nil => Ok(None),
            value => integer(&value).map(Some),
        }
    }

    pub fn integer(&mut self) -> Result<i64, ServerFailure> {
        integer(&self.next()?)
    }

    pub fn count(&mut self) -> Result<u64, ServerFailure> {
        self.integer().and_then(count)
    }

    /// Reads a count, or `None` for nil.
    pub fn maybe_count(&mut self) -> Result<Option<u64>, ServerFailure> {
        self.maybe_integer()?.map(count).transpose()
    }

    pub fn time(&mut self) -> Result<Timestamp, ServerFailure> {
        self.integer().map(Timestamp::from_millis)
    }

    pub fn subject(&mut self) -> Result<Subject, ServerFailure> {
        self.text().map(Subject::from_stored)
    }

    /// Reads a value that a subject was seen with.
    pub fn counted(&mut self) -> Result<Counted, ServerFailure> {
        self.text().map(Counted::from_stored)
    }

    /// Reads a time, or `None` for an empty text and for nil.
    pub fn maybe_time(&mut self) -> Result<Option<Timestamp>, ServerFailure> {
        match self.next()? {
            Value::Nil => Ok(None),
            value => Ok(amount(&value)?.map(|Amount(millis)| Timestamp::from_millis(millis))),
        }
    }

    /// Reads a score of a board of this kind, or `None` for an empty text.
    pub fn score(&mut self, kind: Kind) -> Result<Option<Score>, ServerFailure> {
        let value = self.next()?;
        if !kind.has_fractions() {
            return amount(&value).map(|amount| amount.map(Score::Exact));
        }
        match &value {
            Value::BulkString(text) if text.is_empty() => Ok(None),
            // Adding 0.0 turns −0 into 0.
            _ => float(&value).map(|real| Some(Score::Real(real + 0.0))),
        }
    }

    /// Reads a score that must be present.
    pub fn line_score(&mut self, kind: Kind) -> Result<Score, ServerFailure> {
        self.score(kind)?.ok_or_else(|| ServerFailure::Corrupt("a reply lacks a score".to_owned()))
    }

    /// Reads a cell of a board of this kind, or `None` for an empty text and for nil.
    pub fn aggregate(&mut self, kind: Kind) -> Result<Option<Aggregate>, ServerFailure> {
        aggregate(&self.next()?, kind)
    }

    fn times(&mut self) -> Result<Vec<Timestamp>, ServerFailure> {
        self.list()?.map(|value| integer(&value).map(Timestamp::from_millis)).collect()
    }

    fn times_of_windows(&mut self) -> Result<Vec<Vec<Timestamp>>, ServerFailure> {
        self.list()?
            .map(|starts| Self::new(starts)?.0.map(|v| integer(&v).map(Timestamp::from_millis)).collect())
            .collect()
    }

    pub fn list(&mut self) -> Result<std::vec::IntoIter<Value>, ServerFailure> {
        Ok(self.part()?.0)
    }

    /// Reads a list within the reply.
    pub fn part(&mut self) -> Result<Self, ServerFailure> {
        Self::new(self.next()?)
    }

    /// Reads a text, or `None` for nil.
    pub fn maybe_text(&mut self) -> Result<Option<String>, ServerFailure> {
        match self.next()? {
            Value::Nil => Ok(None),
            value => text(value).map(Some),
        }
    }

    /// Reads a text as it is stored, which need not be UTF-8.
    pub fn bytes(&mut self) -> Result<Vec<u8>, ServerFailure> {
        match self.next()? {
            Value::BulkString(bytes) => Ok(bytes),
            other => Err(unreadable("a text", &other)),
        }
    }

    /// Reads the name of a hash field as a time. Returns `None` if the name is not a time.
    pub fn field_time(&mut self) -> Result<Option<Timestamp>, ServerFailure> {
        let bytes = self.bytes()?;
        Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok()).map(Timestamp::from_millis))
    }

    /// Reads a time that is a score of a sorted set.
    pub fn time_of_score(&mut self) -> Result<Timestamp, ServerFailure> {
        self.maybe_time()?.ok_or_else(|| ServerFailure::Corrupt("a reply lacks a time".to_owned()))
    }

    /// Returns the number of values that have not been read yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    fn next(&mut self) -> Result<Value, ServerFailure> {
        self.0.next().ok_or_else(|| ServerFailure::Corrupt("a reply is too short".to_owned()))
    }
}

fn text(value: Value) -> Result<String, ServerFailure> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes)
            .map_err(|error| ServerFailure::Corrupt(format!("a text that is not UTF-8: {error}"))),
        Value::SimpleString(text) => Ok(text),
        other => Err(unreadable("a text", &other)),
    }
}

fn count(value: i64) -> Result<u64, ServerFailure> {
    u64::try_from(value).map_err(|_| ServerFailure::Corrupt(format!("a count of {value}")))
}

fn integer(value: &Value) -> Result<i64, ServerFailure> {
    let read = match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    read.ok_or_else(|| unreadable("a whole number", value))
}

fn amount(value: &Value) -> Result<Option<Amount>, ServerFailure> {
    match value {
        Value::BulkString(text) if text.is_empty() => Ok(None),
        Value::BulkString(text) => read_amount(text).map(Some).ok_or_else(|| unreadable("a whole amount", value)),
        _ => Err(unreadable("an amount", value)),
    }
}

fn float(value: &Value) -> Result<f64, ServerFailure> {
    let read = match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<f64>().ok()),
        _ => None,
    };
    read.filter(|real| real.is_finite()).ok_or_else(|| unreadable("a number", value))
}

fn aggregate(value: &Value, kind: Kind) -> Result<Option<Aggregate>, ServerFailure> {
    let read = match value {
        Value::Nil => return Ok(None),
        Value::BulkString(text) if text.is_empty() => return Ok(None),
        Value::BulkString(text) => kinds::of(kind).read_cell(text),
        _ => None,
    };
    read.map(Some).ok_or_else(|| unreadable("what a subject has in a slot", value))
}

fn unreadable(wanted: &str, value: &Value) -> ServerFailure {
    let shown: String = format!("{value:?}").chars().take(80).collect();
    ServerFailure::Corrupt(format!("expected {wanted}, found {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn amounts_may_be_absent() {
        assert_eq!(amount(&bulk("17")).unwrap(), Some(Amount(17)));
        assert_eq!(amount(&bulk("")).unwrap(), None);
        assert!(amount(&bulk("1.5")).is_err());
        assert!(amount(&Value::Nil).is_err());
    }

    #[test]
    fn cells_and_scores_are_parsed_by_kind() {
        let mean = Aggregate::Mean { sum: Amount(-7), count: 2 };
        assert_eq!(aggregate(&bulk("-7,2"), Kind::Mean).unwrap(), Some(mean));
        assert_eq!(aggregate(&bulk("-7"), Kind::Max).unwrap(), Some(Aggregate::Extreme(Amount(-7))));
        assert_eq!(aggregate(&bulk(""), Kind::Sum).unwrap(), None);
        assert!(matches!(aggregate(&bulk("\0\u{1}\u{2}"), Kind::Sketch).unwrap(), Some(Aggregate::Sketch(_))));
        for (bad, kind) in [("7", Kind::Mean), ("7,x", Kind::Mean), ("1.5", Kind::Min), ("ab", Kind::Sketch)] {
            assert!(aggregate(&bulk(bad), kind).is_err(), "{bad}");
        }
        let mut reply = Reply::new(Value::Array(vec![bulk("3.3333333333333335"), bulk("-0"), bulk("nan")])).unwrap();
        assert_eq!(reply.score(Kind::Mean).unwrap(), Score::mean(10, 3));
        assert_eq!(reply.score(Kind::Mean).unwrap(), Score::mean(0, 1));
        assert!(reply.score(Kind::Mean).is_err());
    }

    #[test]
    fn malformed_replies_are_errors() {
        for value in [Value::Nil, Value::Int(1), Value::Okay] {
            assert!(matches!(Reply::new(value), Err(ServerFailure::Corrupt(_))));
        }
        for values in [
            vec![],
            vec![bulk("what")],
            vec![bulk("ok"), Value::Int(1)],
            vec![bulk("ok"), Value::Int(1), Value::Int(1), Value::Int(-1)],
            vec![bulk("stale"), bulk("x"), Value::Int(1)],
            vec![Value::BulkString(vec![0xff])],
        ] {
            let status = Reply::new(Value::Array(values)).unwrap().status();
            assert!(matches!(status, Err(ServerFailure::Corrupt(_))), "{status:?}");
        }
    }
}
