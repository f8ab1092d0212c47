//! Lines of a stream that arrives in pieces cut anywhere.

/// What one line turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Line<'a> {
    /// A line that is not blank, without its end.
    Text(&'a [u8]),
    /// A line of more bytes than allowed; its content is dropped as it arrives.
    TooLong,
}

/// Puts lines together again, in memory of one line at the most.
pub(super) struct Lines {
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    /// The line under way is beyond `longest`: wait for its end.
    too_long: bool,
    /// Lines that have ended so far, blank ones included.
    ended: u64,
    /// The most bytes a line may have, its end not counted.
    longest: usize,
}

impl Lines {
    pub(super) fn new(longest: usize) -> Self {
        Self { begun: Vec::new(), too_long: false, ended: 0, longest }
    }

    /// Takes a piece; calls `each` with the number, from 1, of every line that ends in it.
    pub(super) fn feed(&mut self, piece: &[u8], mut each: impl FnMut(u64, Line<'_>)) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            self.end_line(&piece[start..end], &mut each);
            start = end + 1;
        }
        self.keep(&piece[start..]);
    }

    /// The stream has ended; its last line may lack an end.
    pub(super) fn finish(&mut self, mut each: impl FnMut(u64, Line<'_>)) {
        if self.too_long || !self.begun.is_empty() {
            self.end_line(&[], &mut each);
        }
    }

    fn end_line(&mut self, rest: &[u8], each: &mut impl FnMut(u64, Line<'_>)) {
        self.ended += 1;
        if self.begun.is_empty() && !self.too_long && rest.len() <= self.longest {
            tell(self.ended, rest, each);
            return;
        }
        self.keep(rest);
        if self.too_long {
            each(self.ended, Line::TooLong);
        } else {
            tell(self.ended, &self.begun, each);
        }
        self.begun.clear();
        self.too_long = false;
    }

    fn keep(&mut self, rest: &[u8]) {
        if self.begun.len() + rest.len() > self.longest {
            self.too_long = true;
            self.begun.clear();
        }
        if !self.too_long {
            self.begun.extend_from_slice(rest);
        }
    }
}

fn tell(number: u64, line: &[u8], each: &mut impl FnMut(u64, Line<'_>)) {
    // A byte order mark is what some editors put before the first line.
    let line = if number == 1 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line };
    let text = line.trim_ascii();
    if !text.is_empty() {
        each(number, Line::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]], longest: usize) -> Vec<(u64, Option<String>)> {
        let mut seen = Vec::new();
        let mut each = |number, line: Line<'_>| {
            seen.push((
                number,
                match line {
                    Line::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                    Line::TooLong => None,
                },
            ));
        };
        let mut lines = Lines::new(longest);
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
    fn numbered_from_one_blank_ones_skipped_long_ones_named() {
        let seen = lines(&[b"\xEF\xBB\xBFab\r\n\n  \ncd", b"e\nfghijkl", b"mnop\nq"], 6);
        assert_eq!(seen, [some(1, "ab"), some(4, "cde"), (5, None), some(6, "q")]);
        assert_eq!(lines(&[b"12345"], 4), [(1, None)]);
        assert_eq!(lines(&[b"1234\n", b"12345\n1"], 4), [some(1, "1234"), (2, None), some(3, "1")]);
        assert_eq!(lines(&[], 4), []);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_pieces_are_cut(
            text in "[ab\n]{0,60}", cuts in proptest::collection::vec(0usize..60, 0..6), longest in 1usize..9,
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let expected: Vec<_> = text.split('\n').enumerate().filter(|(_, line)| !line.is_empty())
                .map(|(at, line)| (at as u64 + 1, (line.len() <= longest).then(|| line.to_owned()))).collect();
            prop_assert_eq!(lines(&pieces, longest), expected);
        }
    }
}
