//! The keys of the configuration file, read again when the file changes while the service runs.

use std::path::PathBuf;

use super::{Config, Settings};
use crate::service::ConfiguredKeys;

/// The configuration file, of which the keys are read again.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// The settings of the command line and the environment, which take precedence.
    given: Settings,
    /// The content that is in effect, or was refused.
    known: String,
    /// The content of the last look, if it differs. It may be written just now.
    changing: Option<String>,
}

impl KeyFile {
    pub(super) fn new(path: PathBuf, given: Settings, known: String) -> Self {
        Self { path, given, known, changing: None }
    }

    /// Reads the file, and returns its keys if it has changed since they were returned. Call it about once a second: a
    /// change is taken over when two looks find the same, because a file that is being written may be valid and have no
    /// keys. A file that cannot be read or is not valid changes nothing.
    pub async fn look(&mut self) -> Option<ConfiguredKeys> {
        let text = tokio::fs::read_to_string(&self.path).await.ok()?;
        self.take(text)
    }

    fn take(&mut self, text: String) -> Option<ConfiguredKeys> {
        if text == self.known {
            self.changing = None;
            return None;
        }
        if text.trim().is_empty() {
            // A disk that is full leaves such a file, which is valid and revokes no key.
            if self.changing.as_ref() != Some(&text) {
                tracing::error!("the configuration file is empty now; its keys stay as they were");
            }
            self.changing = Some(text);
            return None;
        }
        if self.changing.as_ref() != Some(&text) {
            self.changing = Some(text);
            return None;
        }
        self.changing = None;
        self.known = text;
        let source = self.path.display().to_string();
        match Config::from_text(&source, &self.known, self.given.clone()) {
            Ok(config) => Some(config.keys),
            Err(error) => {
                tracing::error!(%error, "the configuration file has changed and is not valid; its keys stay as they were");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_over_when_the_file_has_settled_and_is_valid() {
        let key = |id: &str| {
            format!("[[keys]]\nid = \"{id}\"\nhash = \"{}\"\nname = \"k\"\nscopes = [\"view\"]\n", "0".repeat(64))
        };
        let (one, two) = (key("0000000000000001"), format!("{}{}", key("0000000000000001"), key("0000000000000002")));
        let mut file = KeyFile::new("f".into(), Settings::default(), one.clone());
        let mut take = |text: &str| file.take(text.to_owned()).map(|keys| (keys.keys.len(), keys.revoked.len()));
        assert_eq!(take(&one), None);
        assert_eq!(take(&two), None, "it may be half written");
        assert_eq!(take(&two), Some((2, 0)));
        assert_eq!(take(&two), None);
        let revoked = format!("revoked_keys = [\"0000000000000002\"]\n{two}");
        assert_eq!((take(&revoked), take(&revoked)), (None, Some((2, 1))));
        for wrong in ["[[keys]]\nid = 5\n", "\0"] {
            assert_eq!((take(wrong), take(wrong), take(wrong)), (None, None, None), "{wrong}");
        }
        assert_eq!((take(""), take(""), take(" \n"), take(" \n")), (None, None, None, None), "a full disk");
        assert_eq!((take("# no keys"), take("# no keys")), (None, Some((0, 0))));
    }
}
