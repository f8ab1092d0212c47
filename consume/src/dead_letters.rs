//! Messages that were not counted, kept in a file or a topic for people to look at.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::log::{Message, TopicWriter};

/// What the names of the headers begin with that a dead letter has beside those of its message.
const HEADERS: &str = "rolltop.";

/// Where the dead letters of a source are kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a path, or { topic = \"…\" }")]
pub enum DeadLetterPlace {
    File(PathBuf),
    Topic(DeadLetterTopic),
}

/// A topic, of the brokers that the source has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterTopic {
    pub topic: String,
}

/// A message that was not counted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    position: u128,
    /// `unreadable`, or the code of the board that rejected it.
    code: String,
    detail: String,
    board: Option<String>,
    message: Option<Message>,
}

/// What dead letters are written to.
#[derive(Debug)]
pub enum DeadLetters {
    File(DeadLetterFile),
    /// A topic, and the one from which they come.
    Topic(Arc<TopicWriter>, (String, i32)),
}

#[derive(Debug)]
pub struct DeadLetterFile {
    path: PathBuf,
    file: File,
    /// Whether a line may have been written in part.
    is_broken: bool,
}

impl DeadLetter {
    /// Returns a message that makes no event.
    pub fn unreadable(message: &Message, detail: String) -> Self {
        let (position, message) = (message.position, message.clone());
        Self { position, code: "unreadable".to_owned(), detail, board: None, message: Some(message) }
    }

    /// Returns one of which a board has rejected an event.
    pub fn rejected(message: &Message, board: Option<String>, code: String, detail: String) -> Self {
        Self { position: message.position, code, detail, board, message: Some(message.clone()) }
    }

    /// Returns the word that more were rejected than the service lists.
    pub fn more(position: u128, number: u64) -> Self {
        let detail = format!("the service lists the first 1,000 rejections of a portion; {number} more are not here");
        Self { position, code: "more".to_owned(), detail, board: None, message: None }
    }

    pub fn position(&self) -> u128 {
        self.position
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the message as it was, with headers that say where it comes from and why it is here.
    fn with_headers(&self, source: &str, (topic, partition): &(String, i32)) -> Option<Message> {
        let mut message = self.message.clone()?;
        message.value = message.encoded.take().or(message.value);
        // One that was written to its topic again does not become longer each time.
        message.headers.retain(|(name, _)| !name.starts_with(HEADERS));
        let said = [
            ("source", Some(source.to_owned())),
            ("topic", Some(topic.clone())),
            ("partition", Some(partition.to_string())),
            ("offset", Some(self.position.to_string())),
            ("code", Some(self.code.clone())),
            ("detail", Some(self.detail.clone())),
            ("board", self.board.clone()),
        ];
        let said = said.into_iter().filter_map(|(name, value)| Some((format!("{HEADERS}{name}"), Some(value?.into()))));
        message.headers.extend(said);
        Some(message)
    }
}

/// Returns what is kept of a dead letter that is too long: why it is one, and how long its value was. Otherwise nothing after it
/// would ever be counted.
fn without_content(letter: &Message) -> Message {
    let bytes = letter.value.as_ref().map_or(0, |value| value.len());
    let said = letter.headers.iter().filter(|(name, _)| name.starts_with(HEADERS)).cloned();
    let headers = said.chain([(format!("{HEADERS}too_long"), Some(bytes.to_string().into()))]).collect();
    Message { headers, ..Message::default() }
}

/// Returns the value of a message: as text, or as the bytes that it has, in Base64.
fn shown(message: &Message) -> Option<Value> {
    let value = message.value.as_ref()?;
    Some(std::str::from_utf8(value).map_or_else(|_| json!({"base64": BASE64_STANDARD.encode(value)}), Value::from))
}

impl DeadLetters {
    /// Keeps letters. Returns how many of the first ones are kept, and why the next one is not.
    pub async fn append(&mut self, source: &str, letters: &[DeadLetter]) -> (usize, anyhow::Result<()>) {
        match self {
            Self::File(file) => match tokio::task::block_in_place(|| file.append(source, letters)) {
                Ok(()) => (letters.len(), Ok(())),
                Err(error) => (0, Err(error).with_context(|| format!("cannot write {}", file.path.display()))),
            },
            Self::Topic(writer, from) => {
                let messages: Vec<Message> =
                    letters.iter().filter_map(|letter| letter.with_headers(source, from)).collect();
                let (written, result) = writer.write(&messages, without_content).await;
                if result.is_err() {
                    return (written, result);
                }
                // What is no message is not for a topic.
                for letter in letters.iter().filter(|letter| letter.message.is_none()) {
                    tracing::warn!(source, "{}", letter.detail);
                }
                (letters.len(), Ok(()))
            }
        }
    }
}

impl DeadLetterFile {
    /// Opens the file, to which what follows is appended.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { path: path.to_owned(), file, is_broken: false })
    }

    /// Appends letters, which are on the disk then.
    fn append(&mut self, source: &str, letters: &[DeadLetter]) -> io::Result<()> {
        let mut lines = if self.is_broken { vec![b'\n'] } else { Vec::new() };
        for letter in letters {
            let DeadLetter { position, code, detail, board, message } = letter;
            let mut line = json!({"source": source, "position": position.to_string(), "code": code, "detail": detail});
            if let Some(board) = board {
                line["board"] = json!(board);
            }
            if let Some(message) = message.as_ref().and_then(shown) {
                line["message"] = message;
            }
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
        }
        let written = self.file.write_all(&lines);
        self.is_broken = written.is_err();
        written?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_letter_has_the_message_and_says_why() {
        let old = ("rolltop.code".to_owned(), Some(Bytes::from("old")));
        let null = ("trace".to_owned(), None);
        let (key, headers) = (Some(Bytes::from("k")), vec![null.clone(), old]);
        let encoded = Some(Bytes::from("encoded"));
        let message = Message { position: 7, key, headers, encoded, ..Message::default() };
        let letter = DeadLetter::rejected(&message, Some("b".to_owned()), "too_late".to_owned(), "why".to_owned());
        let made = letter.with_headers("s", &("t".to_owned(), 3)).unwrap();
        let said = [
            ("source", "s"),
            ("topic", "t"),
            ("partition", "3"),
            ("offset", "7"),
            ("code", "too_late"),
            ("detail", "why"),
            ("board", "b"),
        ];
        let said = said.map(|(name, value)| (format!("rolltop.{name}"), Some(Bytes::from(value))));
        assert_eq!(made.headers, [&[null], &said[..]].concat());
        assert_eq!((made.key, made.value, made.encoded), (message.key, message.encoded, None));
        assert_eq!(DeadLetter::more(7, 3).with_headers("s", &("t".to_owned(), 3)), None);
    }
}
