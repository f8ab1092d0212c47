//! Profiles: servers with their keys, by name, in a file of the user.
//!
//! ```toml
//! [default]
//! url = "http://127.0.0.1:8080"
//!
//! [production]
//! url = "https://ranks.example"
//! key = "rt_…"
//! ca = "ranks.pem"
//! ```

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

/// A server, and the key for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub url: String,
    #[serde(default)]
    pub key: Option<String>,
    /// The certificates to trust (PEM): a path, from the folder of the file on.
    #[serde(default)]
    pub ca: Option<PathBuf>,
}

impl Profile {
    pub fn of_url(url: &str) -> Self {
        Self { url: url.to_owned(), key: None, ca: None }
    }
}

/// Returns the profile of this name.
pub fn read(name: &str) -> anyhow::Result<Profile> {
    let Some(path) = path() else { bail!("profile '{name}': there is no file of profiles, because HOME is not set") };
    let shown = path.display();
    let mut profiles = all(&path)?.with_context(|| format!("profile '{name}': there is no file {shown}"))?;
    let Some(profile) = profiles.remove(name) else {
        let names: Vec<_> = profiles.into_keys().collect();
        bail!("{shown} has no profile '{name}'; it has: {}", names.join(", "));
    };
    Ok(profile)
}

/// Returns the profile named `default`, if there is one.
pub fn default() -> anyhow::Result<Option<Profile>> {
    let Some(path) = path() else { return Ok(None) };
    Ok(all(&path)?.and_then(|mut profiles| profiles.remove("default")))
}

/// Returns where the file is, as the XDG Base Directory Specification has it.
fn path() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("rolltop/profiles.toml"))
}

/// Returns all profiles, or `None` if there is no file.
fn all(path: &Path) -> anyhow::Result<Option<BTreeMap<String, Profile>>> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("cannot read {shown}: {error}"),
    };
    let mut profiles: BTreeMap<String, Profile> = toml::from_str(&text).with_context(|| format!("{shown} is wrong"))?;
    let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode()).unwrap_or_default();
    if mode & 0o077 != 0 && profiles.values().any(|profile| profile.key.is_some()) {
        bail!("{shown} has a key, and others may read it: chmod 600 {shown}");
    }
    let folder = path.parent().unwrap_or(path);
    for profile in profiles.values_mut() {
        profile.ca = profile.ca.take().map(|ca| folder.join(ca));
    }
    Ok(Some(profiles))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_servers_by_name_and_may_keep_keys_only_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profiles.toml");
        assert_eq!(all(&path).unwrap(), None);
        std::fs::write(&path, "[a]\nurl = \"http://a\"\n[b]\nurl = \"https://b\"\nkey = \"rt_1\"\nca = \"b.pem\"\n")
            .unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let error = all(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let profiles = all(&path).unwrap().unwrap();
        assert_eq!(profiles["a"], Profile::of_url("http://a"));
        assert_eq!(profiles["b"].ca, Some(folder.path().join("b.pem")));
        std::fs::write(&path, "[a]\nurl = \"http://a\"\nkeys = 1\n").unwrap();
        let error = format!("{:#}", all(&path).unwrap_err());
        assert!(error.contains("profiles.toml") && error.contains("keys"), "{error}");
    }
}
