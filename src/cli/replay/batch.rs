//! Batches: increments gathered into the NDJSON bodies of requests.

use serde::Serialize;
use serde_json::value::RawValue;

use super::record::Record;
use crate::board::{Calendar, Timestamp};

/// The largest number of lines in one request.
pub const MAX_LINES: usize = 5_000;

/// The largest size of one request, in bytes. One further line may still be added.
const MAX_BYTES: usize = 1 << 20;

/// The longest time that a batch covers where there are no slots, in milliseconds.
const HOUR: i64 = 3_600_000;

/// The body of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The NDJSON text.
    pub body: Vec<u8>,
    /// The line number in the log of each increment, in order.
    pub lines: Vec<u64>,
    /// The time to which to set the clock before this is posted, if the log drives the clock.
    pub clock: Option<Timestamp>,
}

/// Gathers increments into batches.
///
/// If the log drives the clock, a batch never extends over the start of a slot. Everything in a batch is posted at the
/// newest time up to its end, so each line meets the same window as if the clock had been set line by line.
pub struct Batcher {
    batch: Batch,
    clock: Option<LogClock>,
}

struct LogClock {
    calendar: Calendar,
    newest: Timestamp,
    /// The end of the slot that contains `newest`, or of the batch where there are no slots.
    end: Timestamp,
}

#[derive(Serialize)]
struct SentLine<'r> {
    subject: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<&'r RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r str>,
}

impl Batcher {
    /// Creates a batcher. With a calendar, the log drives the clock of a board with these slots.
    pub fn new(calendar: Option<Calendar>) -> Self {
        let clock = calendar.map(|calendar| LogClock { calendar, newest: Timestamp::EPOCH, end: Timestamp::EPOCH });
        Self { batch: Batch::default(), clock }
    }

    /// Adds an increment. If the batch was full before, returns that batch.
    pub fn push(&mut self, line: u64, record: &Record<'_>) -> serde_json::Result<Option<Batch>> {
        let is_full = self.batch.lines.len() >= MAX_LINES || self.batch.body.len() >= MAX_BYTES;
        let crosses = match (&self.clock, record.at) {
            (Some(clock), Some(at)) => at >= clock.end,
            _ => false,
        };
        let full = if is_full || crosses { self.take() } else { None };
        if let (Some(clock), Some(at)) = (&mut self.clock, record.at)
            && at > clock.newest
        {
            clock.newest = at;
            if at >= clock.end {
                clock.end = match clock.calendar.slot() {
                    Some(_) => clock.calendar.next(at),
                    // Over all time nothing but ids expires.
                    None => at.plus_millis(HOUR),
                };
            }
        }
        let amount = record.amount.as_deref().map(serde_json::from_str::<&RawValue>).transpose()?;
        let (by, value) = (record.by.as_deref(), record.value.as_deref());
        let increment =
            SentLine { subject: &record.subject, amount, by, value, at: record.at, id: record.id.as_deref() };
        serde_json::to_writer(&mut self.batch.body, &increment)?;
        self.batch.body.push(b'\n');
        self.batch.lines.push(line);
        Ok(full)
    }

    /// Takes the increments gathered since the last batch. Returns `None` if there are none.
    pub fn take(&mut self) -> Option<Batch> {
        if self.batch.lines.is_empty() {
            return None;
        }
        self.batch.clock = self.clock.as_ref().map(|clock| clock.newest);
        Some(std::mem::take(&mut self.batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn record(subject: &'static str, time: &str) -> Record<'static> {
        Record { subject: subject.into(), at: Some(at(time)), ..Record::default() }
    }

    #[test]
    fn batches_are_written_in_the_format_of_the_api() {
        let mut batcher = Batcher::new(None);
        let full = Record {
            subject: "a \"b\"\u{e9}".into(),
            amount: Some("-2.50".into()),
            at: Some(at("2015-05-17T10:05:03Z")),
            id: Some("x-1".into()),
            ..Record::default()
        };
        assert_eq!(batcher.push(7, &full).unwrap(), None);
        assert_eq!(batcher.push(9, &Record { subject: "b".into(), ..Record::default() }).unwrap(), None);
        let batch = batcher.take().unwrap();
        assert_eq!(
            std::str::from_utf8(&batch.body).unwrap(),
            "{\"subject\":\"a \\\"b\\\"é\",\"amount\":-2.50,\"at\":\"2015-05-17T10:05:03Z\",\"id\":\"x-1\"}\n{\"subject\":\"b\"}\n"
        );
        assert_eq!((batch.lines, batch.clock), (vec![7, 9], None));
        assert_eq!(batcher.take(), None);
    }

    #[test]
    fn the_number_of_lines_in_a_batch_is_limited() {
        let mut batcher = Batcher::new(None);
        let mut sizes = Vec::new();
        for line in 0..12_000 {
            sizes.extend(batcher.push(line, &record("a", "2015-05-17T10:05:03Z")).unwrap().map(|b| b.lines.len()));
        }
        sizes.extend(batcher.take().map(|b| b.lines.len()));
        assert_eq!(sizes, [MAX_LINES, MAX_LINES, 2_000]);
    }

    #[test]
    fn batches_do_not_cross_slots_with_the_log_clock() {
        let calendar = Calendar::new("1h".parse().unwrap(), chrono_tz::UTC).unwrap();
        let mut batcher = Batcher::new(Some(calendar));
        let mut batches = Vec::new();
        for (line, time) in [
            (1, "2015-05-17T10:59:59.999Z"),
            (2, "2015-05-17T10:30:00Z"),
            (3, "2015-05-17T11:00:00Z"),
            (4, "2015-05-17T09:00:00Z"),
            (5, "2015-05-17T11:59:59Z"),
            (6, "2015-05-19T00:00:00Z"),
        ] {
            batches.extend(batcher.push(line, &record("a", time)).unwrap());
        }
        batches.extend(batcher.take());
        let seen: Vec<_> = batches.iter().map(|b| (b.lines.clone(), b.clock.unwrap().to_string())).collect();
        assert_eq!(
            seen,
            [
                (vec![1, 2], "2015-05-17T10:59:59.999Z".to_owned()),
                (vec![3, 4, 5], "2015-05-17T11:59:59Z".to_owned()),
                (vec![6], "2015-05-19T00:00:00Z".to_owned()),
            ]
        );
    }
}
