//! The keys of the configuration file, read again when the file, or a key set that it names, changes while the service
//! runs.

use std::path::PathBuf;

use super::key_sets::KeySets;
use super::{Config, ConfigError, Settings};
use crate::service::ConfiguredKeys;

/// The configuration file, of which the keys are read again.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// The settings of the command line and the environment, which take precedence.
    given: Settings,
    /// The content that is in effect.
    known: String,
    /// The content of the last look, if it differs. It may be written just now.
    changing: Option<String>,
    /// Why the content of the last look was refused.
    failure: Option<String>,
    /// The keys of the content that is in effect, without those of the key sets.
    keys: ConfiguredKeys,
    sets: KeySets,
}

impl KeyFile {
    /// Reads the key sets that the content names. Returns the file, and all its keys.
    pub(super) fn new(
        path: PathBuf,
        given: Settings,
        known: String,
        config: &Config,
    ) -> Result<(Self, ConfiguredKeys), ConfigError> {
        let (keys, sets) = (config.keys.clone(), KeySets::default().read(&config.key_sets)?);
        let file = Self { path, given, known, changing: None, failure: None, keys, sets };
        let all = file.all();
        Ok((file, all))
    }

    /// Returns the keys that are in effect.
    fn all(&self) -> ConfiguredKeys {
        let mut all = self.keys.clone();
        all.verifiers.extend(self.sets.verifiers());
        all
    }

    /// Reads the file, and returns its keys if it has changed since they were returned. Call it about once a second: a
    /// change is taken over when two looks find the same, because a file that is being written may be valid and have no
    /// keys. A file that cannot be read or is not valid changes nothing.
    pub async fn look(&mut self) -> Option<ConfiguredKeys> {
        let mut has_changed = false;
        if let Ok(text) = tokio::fs::read_to_string(&self.path).await
            && let Some((keys, sets)) = self.take(text)
        {
            (self.keys, self.sets, has_changed) = (keys, sets, true);
        }
        has_changed |= self.sets.look().await;
        has_changed.then(|| self.all())
    }

    fn take(&mut self, text: String) -> Option<(ConfiguredKeys, KeySets)> {
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
        let source = self.path.display().to_string();
        let config = Config::from_text(&source, &text, self.given.clone());
        match config.and_then(|config| Ok((config.keys, self.sets.read(&config.key_sets)?))) {
            Ok(keys) => {
                (self.known, self.changing, self.failure) = (text, None, None);
                Some(keys)
            }
            // It is tried again at the next look: a key set that it names may be there then.
            Err(error) => {
                let error = error.to_string();
                if self.failure.as_ref() != Some(&error) {
                    tracing::error!(
                        error,
                        "the configuration file has changed and is not valid; its keys stay as they were"
                    );
                }
                self.failure = Some(error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_revocation_does_not_wait_for_a_key_set() {
        let folder = tempfile::tempdir().unwrap();
        let (path, sets) = (folder.path().join("rolltop.toml"), folder.path().join("jwks.json"));
        let set =
            r#"{"keys":[{"kid":"a","kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        let text = |revoked: &str, more: &str| {
            format!(
                "revoked_keys = [{revoked}]\n[[keys]]\nid = \"00000000000000a1\"\nname = \"k\"\nkind = \"signing\"\n\
                 scopes = [\"view\"]\njwks = {sets:?}\n{more}"
            )
        };
        std::fs::write(&sets, set).unwrap();
        std::fs::write(&path, text("", "")).unwrap();
        let Config { key_file, keys, .. } = Config::load(Some(&path), Settings::default()).unwrap();
        let mut file = key_file.unwrap();
        assert_eq!((keys.verifiers.len(), keys.revoked.len()), (1, 0));
        let mut looks = async || (file.look().await, file.look().await);
        let found = |(first, second): (Option<ConfiguredKeys>, Option<ConfiguredKeys>)| {
            first.or(second).map(|keys| (keys.verifiers.len(), keys.revoked.len()))
        };
        std::fs::write(&sets, "{").unwrap();
        std::fs::write(&path, text("\"0000000000000002\"", "")).unwrap();
        assert_eq!(found(looks().await), Some((1, 1)), "the last valid content of the set stays");
        // A new set that is not there is an error, until it is there.
        let other = folder.path().join("other.json");
        let more = format!(
            "[[keys]]\nid = \"00000000000000a2\"\nname = \"k\"\nkind = \"signing\"\nscopes = [\"view\"]\njwks = {other:?}\n"
        );
        std::fs::write(&path, text("", &more)).unwrap();
        assert_eq!(found(looks().await), None);
        std::fs::write(&other, set).unwrap();
        assert_eq!(found(looks().await), Some((2, 0)));
    }

    #[test]
    fn keys_are_taken_over_when_the_file_has_settled_and_is_valid() {
        let key = |id: &str| {
            format!("[[keys]]\nid = \"{id}\"\nhash = \"{}\"\nname = \"k\"\nscopes = [\"view\"]\n", "0".repeat(64))
        };
        let (one, two) = (key("0000000000000001"), format!("{}{}", key("0000000000000001"), key("0000000000000002")));
        let config = Config::from_text("f", &one, Settings::default()).unwrap();
        let (mut file, all) = KeyFile::new("f".into(), Settings::default(), one.clone(), &config).unwrap();
        assert_eq!(all.keys.len(), 1);
        let mut take = |text: &str| file.take(text.to_owned()).map(|(keys, _)| (keys.keys.len(), keys.revoked.len()));
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
