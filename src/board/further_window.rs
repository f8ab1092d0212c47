//! A further window of a board: its length and its slots.

use std::fmt;
use std::str::FromStr;

use super::{Span, SpanError, WindowLength};

/// A further window of a board. Parses and prints as `7d/6h`, a window of 7 days in slots of 6 hours, or as `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FurtherWindow {
    pub length: WindowLength,
    /// The length of a slot, or `None` if the window is all time.
    pub slot: Option<Span>,
}

/// The reason why a text is not a further window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FurtherWindowError {
    #[error("'{text}' has no slot; expected a window and a slot, such as 7d/6h, or all")]
    NoSlot { text: String },
    #[error("an all-time window has no slots; expected all without a slot")]
    SlotOfAllTime,
    #[error(transparent)]
    Span(#[from] SpanError),
}

impl FromStr for FurtherWindow {
    type Err = FurtherWindowError;

    fn from_str(text: &str) -> Result<Self, FurtherWindowError> {
        let (length, slot) = match text.split_once('/') {
            Some((length, slot)) => (length.trim(), Some(slot.trim())),
            None => (text.trim(), None),
        };
        let length: WindowLength = length.parse()?;
        let slot = slot.map(str::parse).transpose()?;
        match (length, slot) {
            (WindowLength::All, Some(_)) => Err(FurtherWindowError::SlotOfAllTime),
            (WindowLength::Span(_), None) => Err(FurtherWindowError::NoSlot { text: length.to_string() }),
            (length, slot) => Ok(Self { length, slot }),
        }
    }
}

impl fmt::Display for FurtherWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slot {
            Some(slot) => write!(f, "{}/{slot}", self.length),
            None => self.length.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_windows_round_trip() {
        for (text, canonical) in [("7d/6h", "7d/6h"), ("all", "all"), (" 1h / 1m ", "1h/1m"), ("ALL", "all")] {
            let window: FurtherWindow = text.parse().unwrap();
            assert_eq!(window.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(window));
        }
    }

    #[test]
    fn errors_say_what_is_expected() {
        for (text, says) in [
            ("7d", "'7d' has no slot; expected a window and a slot, such as 7d/6h, or all"),
            ("all/1h", "an all-time window has no slots"),
            ("7d/", "is not a duration"),
            ("/1h", "is not a duration"),
            ("7d/6h/1h", "is not a duration"),
        ] {
            let error = text.parse::<FurtherWindow>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
