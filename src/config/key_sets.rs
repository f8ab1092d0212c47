//! The key sets (JWKS) of signing keys: files that are read again while the service runs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::ConfigError;
use crate::access::{KeyId, Verifier, parse_key_set};
use crate::service::ConfiguredVerifier;

/// The largest key set, in bytes.
const LARGEST: usize = 1 << 20;

/// The key sets of the configuration, each with the content that is in effect.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySets(Vec<KeySet>);

#[derive(Clone, Debug)]
struct KeySet {
    key: KeyId,
    path: PathBuf,
    /// The content that was judged last, or why it could not be read.
    judged: Result<String, String>,
    /// The keys of the last valid content.
    valid: Vec<ConfiguredVerifier>,
}

impl KeySets {
    /// Reads the key sets of these signing keys. Of one that cannot be read or has no usable keys, the last valid
    /// content stays; without one it is an error.
    pub(super) fn read(&self, sets: &[(KeyId, PathBuf)]) -> Result<Self, ConfigError> {
        let read = |(key, path): &(KeyId, PathBuf)| {
            let judged = read_text(path);
            let valid = judged.as_deref().map_err(Clone::clone).and_then(|text| parse(*key, text));
            match (valid, self.0.iter().find(|known| known.key == *key && known.path == *path)) {
                (Ok(valid), _) => Ok(KeySet { key: *key, path: path.clone(), judged, valid }),
                (Err(_), Some(known)) => Ok(known.clone()),
                (Err(why), None) => Err(ConfigError::KeySet { path: path.display().to_string(), key: *key, why }),
            }
        };
        sets.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Returns what verifies tokens with the keys of all sets.
    pub(super) fn verifiers(&self) -> impl Iterator<Item = ConfiguredVerifier> {
        self.0.iter().flat_map(|set| &set.valid).cloned()
    }

    /// Reads the sets again. Returns whether any has changed and is valid. The last valid content of another stays.
    pub(super) async fn look(&mut self) -> bool {
        let mut has_changed = false;
        for set in &mut self.0 {
            let path = set.path.clone();
            let read = tokio::task::spawn_blocking(move || read_text(&path)).await;
            let Ok(read) = read else { continue };
            if read == set.judged {
                continue;
            }
            match read.as_deref().map_err(Clone::clone).and_then(|text| parse(set.key, text)) {
                Ok(valid) => (set.valid, has_changed) = (valid, true),
                Err(why) => {
                    let path = set.path.display();
                    tracing::error!(%path, why, "a key set cannot be used any more; its keys stay as they were");
                }
            }
            set.judged = read;
        }
        has_changed
    }
}

/// Reads a file, but not much more than a key set may have.
fn read_text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    // Opening a pipe would wait for somebody who writes.
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LARGEST as u64 + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn parse(key: KeyId, text: &str) -> Result<Vec<ConfiguredVerifier>, String> {
    if text.len() > LARGEST {
        return Err(format!("it has more than {LARGEST} bytes"));
    }
    let keys = parse_key_set(text).map_err(|error| error.to_string())?;
    let verifier = |(kid, public)| ConfiguredVerifier { key, kid: Some(kid), verifier: Verifier::from(public) };
    Ok(keys.into_iter().map(verifier).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(kids: &[&str]) -> String {
        let key = |kid: &&str| {
            format!(
                r#"{{"kid":"{kid}","kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}}"#
            )
        };
        format!(r#"{{"keys":[{}]}}"#, kids.iter().map(key).collect::<Vec<_>>().join(","))
    }

    #[tokio::test]
    async fn the_last_valid_content_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jwks.json");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        let of = [(KeyId::parse("0000000000000001").unwrap(), path.clone())];
        let missing = KeySets::default().read(&of).err().unwrap().to_string();
        assert!(missing.contains("jwks.json"), "{missing}");
        write(&set(&[]));
        assert!(KeySets::default().read(&of).is_err());
        write(&set(&["a"]));
        let mut sets = KeySets::default().read(&of).unwrap();
        let kids = |sets: &KeySets| sets.verifiers().filter_map(|one| one.kid).collect::<Vec<_>>();
        assert!(!sets.look().await && kids(&sets) == ["a"]);
        write(&set(&["a", "b"]));
        assert!(sets.look().await && kids(&sets) == ["a", "b"]);
        for wrong in ["", "{", &set(&[]), &" ".repeat(LARGEST + 1)] {
            write(wrong);
            assert!(!sets.look().await && kids(&sets) == ["a", "b"], "{wrong:.9}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(!sets.look().await && kids(&sets) == ["a", "b"]);
        // Also when the configuration is read again.
        assert_eq!(kids(&sets.read(&of).unwrap()), ["a", "b"]);
        write(&set(&["b"]));
        assert!(sets.look().await && kids(&sets) == ["b"]);
    }
}
