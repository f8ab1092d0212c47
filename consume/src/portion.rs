//! What is sent at once: the events of consecutive messages.

use std::fmt::Write as _;

use chrono::{SecondsFormat, Utc};

use crate::choices::Decision;
use crate::dead_letters::DeadLetter;
use crate::events::Mapping;
use crate::log::{MAX_BYTES, Message};

/// The type of an event that no board counts. The service passes it, and has then reached its position: so what makes no event
/// is not read again and again.
const PASSED: &str = "rolltop.passed";

/// Events as lines, with what they were made of.
#[derive(Debug, Default)]
pub struct Portion {
    pub lines: String,
    pub messages: Vec<Message>,
    /// For each line the message of which it was made.
    pub made_of: Vec<usize>,
    /// Number of lines that are events; one more may say that what follows them is passed.
    pub events: usize,
    /// The position of the last line.
    pub last: Option<u128>,
    /// The messages that make no event.
    pub unreadable: Vec<DeadLetter>,
    /// The messages that follow, which are not part of it.
    pub rest: Vec<Message>,
    /// Why nothing of what follows may be sent.
    pub stopped: Option<String>,
}

/// A message that the service refuses whatever comes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poison {
    pub position: u128,
    pub why: String,
}

impl Portion {
    /// Makes a portion of the first messages, at most `limit`, and of about as many bytes as one may have.
    pub fn of(
        mut messages: Vec<Message>,
        limit: usize,
        mapping: &Mapping,
        decision: Decision,
        poison: Option<&Poison>,
    ) -> Self {
        let mut portion = Self::default();
        let mut taken = 0;
        for (at, message) in messages.iter().enumerate().take(limit) {
            if portion.lines.len() > MAX_BYTES {
                break;
            }
            let refused = poison.filter(|poison| poison.position == message.position).map(|poison| poison.why.clone());
            let made = match refused {
                Some(why) => Err(why),
                None => mapping.append(message, &mut portion.lines).map_err(|error| error.to_string()),
            };
            match made {
                Ok(events) => portion.made_of.extend(std::iter::repeat_n(at, events)),
                Err(why) if decision == Decision::Stop => {
                    portion.stopped = Some(format!("the message at {} makes no event: {why}", message.position));
                    break;
                }
                Err(why) => portion.unreadable.push(DeadLetter::unreadable(message, why)),
            }
            taken = at + 1;
        }
        portion.rest = messages.split_off(taken);
        portion.messages = messages;
        portion.events = portion.made_of.len();
        if let Some(message) = portion.messages.last() {
            let position = mapping.passed(message.position);
            // The last event of a message may have a smaller position than its message has.
            if portion.made_of.last().is_none_or(|made_of| made_of + 1 < portion.messages.len())
                || mapping.has_several()
            {
                portion.pass(position);
                portion.made_of.push(portion.messages.len() - 1);
            }
            portion.last = Some(position);
        }
        portion
    }

    /// Returns a portion without events, after which the service has reached a position.
    pub fn passing(position: u128) -> Self {
        let mut portion = Self { last: Some(position), ..Self::default() };
        portion.pass(position);
        portion
    }

    fn pass(&mut self, position: u128) {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let _ = writeln!(
            self.lines,
            "{{\"position\":\"{position}\",\"type\":\"{PASSED}\",\"fields\":{{}},\"at\":\"{now}\"}}"
        );
    }

    /// Returns the message of which a line was made; lines are counted from 1.
    pub fn message(&self, line: usize) -> Option<&Message> {
        self.messages.get(*self.made_of.get(line.checked_sub(1)?)?)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn portion(values: &[&str], limit: usize, decision: Decision, poison: Option<u128>) -> Portion {
        let message = |(at, value): (usize, &&str)| {
            let value = Some(Bytes::from((*value).to_owned())).filter(|value| !value.is_empty());
            Message { position: 10 + at as u128, value, ..Message::default() }
        };
        let messages = values.iter().enumerate().map(message).collect();
        let poison = poison.map(|position| Poison { position, why: "refused".to_owned() });
        Portion::of(messages, limit, &Mapping::new(Default::default()), decision, poison.as_ref())
    }

    const EVENT: &str = r#"{"type":"a","at":"2026-01-01T00:00:00Z"}"#;

    #[test]
    fn what_makes_no_event_at_the_end_is_said_to_be_passed() {
        let made = portion(&[EVENT, "", "x", EVENT], 9, Decision::Pass, None);
        assert_eq!((made.events, made.last, made.lines.lines().count(), made.unreadable.len()), (2, Some(13), 2, 1));
        assert_eq!((made.message(1).unwrap().position, made.message(2).unwrap().position), (10, 13));
        assert!(made.message(0).is_none() && made.message(3).is_none());
        let passed = portion(&[EVENT, "x", ""], 9, Decision::Pass, None);
        assert_eq!((passed.events, passed.last, passed.lines.lines().count()), (1, Some(12), 2));
        assert!(passed.lines.lines().last().unwrap().starts_with(r#"{"position":"12","type":"rolltop.passed""#));
        let nothing = portion(&[], 9, Decision::Pass, None);
        assert_eq!((nothing.last, nothing.lines.as_str()), (None, ""));
    }

    #[test]
    fn a_portion_ends_before_what_stops_it_and_at_its_limit() {
        let stopped = portion(&[EVENT, "x", EVENT], 9, Decision::Stop, None);
        assert_eq!(
            (stopped.events, stopped.last, stopped.rest.len(), stopped.stopped.is_some()),
            (1, Some(10), 2, true)
        );
        let cut = portion(&[EVENT, EVENT, EVENT], 2, Decision::Pass, None);
        assert_eq!((cut.events, cut.last, cut.rest.len(), cut.stopped), (2, Some(11), 1, None));
        let poison = portion(&[EVENT, EVENT], 9, Decision::Pass, Some(11));
        assert_eq!((poison.events, poison.last, poison.unreadable.len()), (1, Some(11), 1));
    }
}
