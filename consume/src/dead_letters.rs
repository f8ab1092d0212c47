//! Messages that were not counted, kept in a file for people to look at.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::log::Message;

/// A message that was not counted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    position: u128,
    /// `unreadable`, or the code of the board that rejected it.
    code: String,
    detail: String,
    board: Option<String>,
    message: Option<Value>,
}

/// The file.
#[derive(Debug)]
pub struct DeadLetters {
    path: PathBuf,
    file: File,
    /// Whether a line may have been written in part.
    is_broken: bool,
}

impl DeadLetter {
    /// Returns a message that makes no event.
    pub fn unreadable(message: &Message, detail: String) -> Self {
        let (position, message) = (message.position, shown(message));
        Self { position, code: "unreadable".to_owned(), detail, board: None, message }
    }

    /// Returns one of which a board has rejected an event.
    pub fn rejected(message: &Message, board: Option<String>, code: String, detail: String) -> Self {
        Self { position: message.position, code, detail, board, message: shown(message) }
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
}

/// Returns the value of a message: as text, or as the bytes that it has, in Base64.
fn shown(message: &Message) -> Option<Value> {
    let value = message.value.as_ref()?;
    Some(std::str::from_utf8(value).map_or_else(|_| json!({"base64": BASE64_STANDARD.encode(value)}), Value::from))
}

impl DeadLetters {
    /// Opens the file, to which what follows is appended.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { path: path.to_owned(), file, is_broken: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends letters, which are on the disk then.
    pub fn append(&mut self, source: &str, letters: &[DeadLetter]) -> io::Result<()> {
        let mut lines = if self.is_broken { vec![b'\n'] } else { Vec::new() };
        for letter in letters {
            let DeadLetter { position, code, detail, board, message } = letter;
            let mut line = json!({"source": source, "position": position.to_string(), "code": code, "detail": detail});
            if let Some(board) = board {
                line["board"] = json!(board);
            }
            if let Some(message) = message {
                line["message"] = message.clone();
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
