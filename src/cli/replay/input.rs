//! The source of a log: a file or standard input, plain or gzip, read as a stream in constant memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

/// The longest line that is read, in bytes. Longer lines are skipped, so that memory stays bounded.
pub const MAX_LINE_BYTES: usize = 1 << 20;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// An opened log.
pub struct Input {
    /// The log's text, decompressed.
    pub reader: Box<dyn BufRead + Send>,
    /// The size as stored, in bytes. `None` where it is unknown (standard input).
    pub size: Option<u64>,
    /// The number of stored bytes read so far, for a progress bar.
    pub position: Arc<AtomicU64>,
}

impl Input {
    /// Opens a file, or standard input for `-`. Gzip is recognized by its first bytes, not by the name.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Self::new(io::stdin(), None);
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        Self::new(file, metadata.is_file().then_some(metadata.len()))
    }

    fn new(source: impl Read + Send + 'static, size: Option<u64>) -> io::Result<Self> {
        let position = Arc::new(AtomicU64::new(0));
        let (reader, _) = text(Counted { source, position: Arc::clone(&position) })?;
        Ok(Self { reader, size, position })
    }

    /// Returns up to `count` of the first lines without consuming them.
    pub fn peek_lines(&mut self, count: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut head = Vec::new();
        for _ in 0..count {
            if self.reader.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut head)? == 0 {
                break;
            }
        }
        let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = Box::new(Cursor::new(head).chain(rest));
        Ok(lines)
    }
}

/// Returns the text of a source, and whether the source is gzip, which its first bytes say.
pub fn text(mut source: impl Read + Send + 'static) -> io::Result<(Box<dyn BufRead + Send>, bool)> {
    let mut head = Vec::new();
    source.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head)?;
    let is_gzip = head == GZIP_MAGIC;
    let whole = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(source));
    let reader: Box<dyn BufRead + Send> =
        if is_gzip { Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole))) } else { Box::new(whole) };
    Ok((reader, is_gzip))
}

/// A reader that counts the bytes read.
struct Counted<R> {
    source: R,
    position: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.position.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The lines of a text, numbered from 1, without their line ends.
pub struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
}

/// The error that a line is longer than [`MAX_LINE_BYTES`]. The lines after it can still be read.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// The number of a line and its bytes.
pub type Line<'l> = (u64, Result<&'l [u8], TooLong>);

impl<R: BufRead> Lines<R> {
    /// Creates an iterator over the lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), number: 0 }
    }

    /// Returns the next line and its number, or `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        if self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > MAX_LINE_BYTES {
            self.reader.skip_until(b'\n')?;
            return Ok(Some((self.number, Err(TooLong))));
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some((self.number, Ok(without_byte_order_mark(line, self.number)))))
    }
}

fn without_byte_order_mark(line: &[u8], number: u64) -> &[u8] {
    if number == 1 { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) } else { line }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(text: &[u8]) -> Vec<Result<Vec<u8>, TooLong>> {
        let mut lines = Lines::new(text);
        let mut seen = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            assert_eq!(number, seen.len() as u64 + 1);
            seen.push(line.map(<[u8]>::to_vec));
        }
        seen
    }

    #[test]
    fn lines_end_with_lf_crlf_or_end_of_input() {
        assert_eq!(lines(b"\xef\xbb\xbfa\r\n\nb\n"), [Ok(b"a".to_vec()), Ok(vec![]), Ok(b"b".to_vec())]);
        assert_eq!(lines(b"a\nb"), [Ok(b"a".to_vec()), Ok(b"b".to_vec())]);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn an_overlong_line_is_skipped_and_the_next_is_read() {
        let mut text = vec![b'x'; MAX_LINE_BYTES];
        text.push(b'\n');
        text.extend(vec![b'y'; 3 * MAX_LINE_BYTES]);
        text.extend(b"\nnext");
        let seen = lines(&text);
        assert_eq!(seen[0].as_ref().unwrap().len(), MAX_LINE_BYTES);
        assert_eq!(seen[1..], [Err(TooLong), Ok(b"next".to_vec())]);
    }

    #[test]
    fn gzip_is_detected_by_its_magic_bytes_without_losing_input() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"one\ntwo\nthree\n").unwrap();
        let mut twice = packed.finish().unwrap();
        twice.extend(twice.clone());
        let size = twice.len() as u64;
        for (stored, text) in
            [(twice, "one\ntwo\nthree\none\ntwo\nthree\n"), (b"x".to_vec(), "x"), (vec![0x1f], "\u{1f}"), (vec![], "")]
        {
            let mut input = Input::new(Cursor::new(stored), Some(size)).unwrap();
            let peeked = input.peek_lines(2).unwrap();
            assert!(text.as_bytes().starts_with(&peeked[0]));
            let mut read = String::new();
            input.reader.read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }
}
