//! The position after a line of contents, as text: URL-safe Base64 of `<export>:<number of the line>:<track>:<position
//! within the track>`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::service::{ContentsCursor, ContentsPosition, ImportId};

/// The longest text.
const MAX_LENGTH: usize = 4_096;

/// The position after a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct After {
    pub(super) export: ImportId,
    /// The number of the line.
    pub(super) n: u64,
    pub(super) position: ContentsPosition,
}

impl After {
    pub(super) fn print(&self) -> String {
        let After { export, n, position: ContentsPosition { track, cursor } } = self;
        URL_SAFE_NO_PAD.encode(format!("{export}:{n}:{track}:{}", cursor.0))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.as_bytes().get(..MAX_LENGTH).unwrap_or(text.as_bytes())).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut parts = text.splitn(4, ':');
        let export = ImportId::parse(parts.next()?)?;
        let (n, track) = (parts.next()?.parse().ok().filter(|n| *n < 1 << 40)?, parts.next()?.parse().ok()?);
        Some(Self { export, n, position: ContentsPosition { track, cursor: ContentsCursor(parts.next()?.to_owned()) } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_other_texts_are_none() {
        let position = ContentsPosition { track: 1, cursor: ContentsCursor("3:a:b".to_owned()) };
        let after = After { export: ImportId(0x5f1c), n: 17, position };
        assert_eq!(After::parse(&after.print()), Some(after));
        for text in ["", "x", "日本", "MTI6MTI6MTI6", &"A".repeat(10_000)] {
            assert_eq!(After::parse(text), None, "{text}");
        }
    }
}
