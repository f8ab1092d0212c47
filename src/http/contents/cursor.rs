//! The position after a line of contents, as text: URL-safe Base64 of `<export>:<number of the line>:<numbers of the
//! last line of each track, separated by dots>:<track>:<position within the track>`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::parts::MAX_NUMBER;
use crate::service::{ContentsCursor, ContentsPosition, ImportId};

/// The longest text.
const MAX_LENGTH: usize = 4_096;

/// The position after a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct After {
    pub(super) export: ImportId,
    /// The number of the line, and the number of the last line of each track so far.
    pub(super) n: u64,
    pub(super) last: Vec<u64>,
    pub(super) position: ContentsPosition,
}

impl After {
    pub(super) fn print(&self) -> String {
        let After { export, n, last, position: ContentsPosition { track, cursor } } = self;
        let last: Vec<String> = last.iter().map(u64::to_string).collect();
        URL_SAFE_NO_PAD.encode(format!("{export}:{n}:{}:{track}:{}", last.join("."), cursor.0))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let mut parts = text.splitn(5, ':');
        let export = ImportId::parse(parts.next()?)?;
        let number = |text: &str| text.parse().ok().filter(|n| *n < MAX_NUMBER);
        let n = number(parts.next()?)?;
        let last = parts.next()?.split('.').map(number).collect::<Option<Vec<u64>>>()?;
        let (track, cursor) = (parts.next()?.parse().ok()?, ContentsCursor(parts.next()?.to_owned()));
        Some(Self { export, n, last, position: ContentsPosition { track, cursor } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_other_texts_are_none() {
        let position = ContentsPosition { track: 1, cursor: ContentsCursor("3:a:b".to_owned()) };
        let after = After { export: ImportId(0x5f1c), n: 17, last: vec![17, 0], position };
        assert_eq!(After::parse(&after.print()).as_ref(), Some(&after));
        for text in [
            "",
            "x",
            "日本",
            "MTI6MTI6MTI6",
            &"A".repeat(10_000),
            &format!("{}{}", after.print(), "A".repeat(MAX_LENGTH)),
        ] {
            assert_eq!(After::parse(text), None, "{text}");
        }
    }
}
