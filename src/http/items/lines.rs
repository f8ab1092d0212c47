//! Splitting a stream, which arrives in pieces of any length, into lines.

/// One line of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum NdjsonLine<'a> {
    /// A line that is not blank, without its line break.
    Text(&'a [u8]),
    /// A line that exceeds the maximum length; its content is discarded as it arrives.
    TooLong,
}

/// Splits a stream into lines, buffering at most one line.
pub(super) struct NdjsonLines {
    /// The start of a line whose end has not arrived.
    partial: Vec<u8>,
    /// Whether the current line exceeds `max_len`, so that the rest of it is skipped.
    too_long: bool,
    /// Number of lines that have ended, including blank ones.
    ended: u64,
    /// Maximum number of bytes in a line, without its line break.
    max_len: usize,
}

impl NdjsonLines {
    pub(super) fn new(max_len: usize) -> Self {
        Self { partial: Vec::new(), too_long: false, ended: 0, max_len }
    }

    /// Returns the number of bytes of the line whose end has not arrived.
    pub(super) fn held(&self) -> usize {
        self.partial.len()
    }

    /// Processes the next piece: calls `each` with every line that ends in it and its number, from 1.
    pub(super) fn feed(&mut self, piece: &[u8], mut each: impl FnMut(u64, NdjsonLine<'_>)) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            self.end_line(&piece[start..end], &mut each);
            start = end + 1;
        }
        self.buffer(&piece[start..]);
    }

    /// Processes the end of the stream, whose last line may lack a line break.
    pub(super) fn finish(&mut self, mut each: impl FnMut(u64, NdjsonLine<'_>)) {
        if self.too_long || !self.partial.is_empty() {
            self.end_line(&[], &mut each);
        }
    }

    fn end_line(&mut self, rest: &[u8], each: &mut impl FnMut(u64, NdjsonLine<'_>)) {
        self.ended += 1;
        if self.partial.is_empty() && !self.too_long && rest.len() <= self.max_len {
            call_unless_blank(self.ended, rest, each);
            return;
        }
        self.buffer(rest);
        if self.too_long {
            each(self.ended, NdjsonLine::TooLong);
        } else {
            call_unless_blank(self.ended, &self.partial, each);
        }
        self.partial.clear();
        self.too_long = false;
    }

    fn buffer(&mut self, rest: &[u8]) {
        if self.partial.len() + rest.len() > self.max_len {
            self.too_long = true;
            self.partial.clear();
        }
        if !self.too_long {
            self.partial.extend_from_slice(rest);
        }
    }
}

fn call_unless_blank(number: u64, line: &[u8], each: &mut impl FnMut(u64, NdjsonLine<'_>)) {
    // Some editors write a byte order mark before the first line.
    let line = if number == 1 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line };
    let text = line.trim_ascii();
    if !text.is_empty() {
        each(number, NdjsonLine::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]], max_len: usize) -> Vec<(u64, Option<String>)> {
        let mut seen = Vec::new();
        let mut each = |number, line: NdjsonLine<'_>| {
            seen.push((
                number,
                match line {
                    NdjsonLine::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                    NdjsonLine::TooLong => None,
                },
            ));
        };
        let mut lines = NdjsonLines::new(max_len);
        for piece in pieces {
            lines.feed(piece, &mut each);
        }
        lines.finish(&mut each);
        seen
    }

    fn some(number: u64, text: &str) -> (u64, Option<String>) {
        (number, Some(text.to_owned()))
    }

    #[test]
    fn lines_are_numbered_blanks_skipped_and_long_lines_marked() {
        let seen = lines(&[b"\xEF\xBB\xBFab\r\n\n  \ncd", b"e\nfghijkl", b"mnop\nq"], 6);
        assert_eq!(seen, [some(1, "ab"), some(4, "cde"), (5, None), some(6, "q")]);
        assert_eq!(lines(&[b"12345"], 4), [(1, None)]);
        assert_eq!(lines(&[b"1234\n", b"12345\n1"], 4), [some(1, "1234"), (2, None), some(3, "1")]);
        assert_eq!(lines(&[], 4), []);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_chunk_sizes(
            text in "[ab\n]{0,60}", cuts in proptest::collection::vec(0usize..60, 0..6), max_len in 1usize..9,
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let expected: Vec<_> = text.split('\n').enumerate().filter(|(_, line)| !line.is_empty())
                .map(|(at, line)| (at as u64 + 1, (line.len() <= max_len).then(|| line.to_owned()))).collect();
            prop_assert_eq!(lines(&pieces, max_len), expected);
        }
    }
}
