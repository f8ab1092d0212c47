//! A table `[[keys]]` of the configuration file.

use std::path::PathBuf;

use serde::Deserialize;

use crate::access::{
    BoardPatterns, Grant, HmacSecret, Key, KeyId, KeyKind, KeyRates, KeySecret, PublicKey, Scopes, SecretHash, Verifier,
};
use crate::board::Timestamp;
use crate::service::ConfiguredVerifier;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [[keys]] with 'id', 'hash', 'name' and 'scopes'")]
pub(super) struct KeyTable {
    id: KeyId,
    #[serde(default)]
    hash: Option<SecretHash>,
    /// Of a signing key for HS256.
    #[serde(default)]
    secret: Option<HmacSecret>,
    /// Of a signing key: a JWK.
    #[serde(default)]
    public_key: Option<PublicKey>,
    /// Of a signing key: a file with a key set (JWKS).
    #[serde(default)]
    jwks: Option<PathBuf>,
    name: String,
    #[serde(default = "secret")]
    kind: KeyKind,
    scopes: Scopes,
    #[serde(default = "BoardPatterns::all")]
    boards: BoardPatterns,
    #[serde(default)]
    origins: Vec<String>,
    #[serde(default)]
    expires_at: Option<Timestamp>,
    #[serde(default)]
    rates: KeyRates,
}

/// A key of the file, with what verifies its tokens if that is not part of it.
pub(super) struct CheckedKey {
    pub(super) key: Key,
    pub(super) verifier: Option<ConfiguredVerifier>,
    /// The file with a key set.
    pub(super) key_set: Option<PathBuf>,
}

fn secret() -> KeyKind {
    KeyKind::Secret
}

impl KeyTable {
    /// Checks that the parts of the key fit together. Errors quote no secret.
    pub(super) fn check(self) -> Result<CheckedKey, String> {
        let Self { id, hash, secret, public_key, jwks, name, kind, scopes, boards, origins, expires_at, rates } = self;
        let ways = [secret.is_some(), public_key.is_some(), jwks.is_some()].into_iter().filter(|is| *is).count();
        match (kind, hash.is_some(), ways) {
            (KeyKind::Signing, false, 1) | (KeyKind::Secret | KeyKind::Publishable, true, 0) => {}
            (KeyKind::Signing, ..) => {
                return Err(
                    "a signing key has one of 'secret' (for HS256), 'public_key' (a JWK) and 'jwks' (a file), and \
                            no 'hash'"
                        .to_owned(),
                );
            }
            (KeyKind::Secret | KeyKind::Publishable, false, _) => return Err("missing field `hash`".to_owned()),
            (KeyKind::Secret | KeyKind::Publishable, true, _) => {
                return Err("'secret', 'public_key' and 'jwks' are for kind = \"signing\"".to_owned());
            }
        }
        let secrets = hash.into_iter().map(|hash| KeySecret { hash, until: None }).collect();
        let (grant, created_at) = (Grant { scopes, boards }, None);
        let key = Key { id, name, kind, grant, origins, created_at, expires_at, secrets, public_key, rates };
        key.check().map_err(|error| error.to_string())?;
        let verifier = secret.map(Verifier::from);
        let verifier = verifier.map(|verifier| ConfiguredVerifier { key: id, kid: None, verifier });
        Ok(CheckedKey { key, verifier, key_set: jwks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(more: &str) -> Result<CheckedKey, String> {
        let text = format!("id = \"00000000000000a1\"\nname = \"k\"\nscopes = [\"write\"]\n{more}");
        toml::from_str::<KeyTable>(&text).map_err(|error| error.message().to_owned())?.check()
    }

    #[test]
    fn a_signing_key_has_one_way_to_verify_tokens() {
        let hash = format!("hash = \"{}\"\n", "0".repeat(64));
        let secret = "secret = \"0123456789abcdef0123456789abcdef\"\n";
        let jwk =
            "public_key = {kty = \"OKP\", crv = \"Ed25519\", x = \"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}\n";
        let (kind, jwks) = ("kind = \"signing\"\n", "jwks = \"keys.json\"\n");
        let of = |parts: &[&str]| check(&parts.concat());
        let found = |parts: &[&str]| {
            of(parts).map(|found| (found.key.public_key.is_some(), found.verifier.is_some(), found.key_set.is_some()))
        };
        assert_eq!(found(&[&hash]), Ok((false, false, false)));
        assert_eq!(found(&[kind, secret]), Ok((false, true, false)));
        assert_eq!(found(&[kind, jwk]), Ok((true, false, false)));
        assert_eq!(found(&[kind, jwks]), Ok((false, false, true)));
        for wrong in [
            &[][..],
            &[secret],
            &[&hash, secret],
            &[&hash, jwks],
            &[kind],
            &[kind, &hash],
            &[kind, &hash, secret],
            &[kind, secret, jwk],
            &[kind, "secret = \"too short for HS256\"\n"],
            &[kind, "scopes = [\"admin\"]\n", secret],
        ] {
            let error = of(wrong).err().unwrap_or_else(|| panic!("{wrong:?}"));
            assert!(!error.contains("0123") && !error.contains("too short for"), "a secret is quoted: {error}");
        }
        let short = of(&[kind, "secret = \"too short for HS256\"\n"]).err().unwrap();
        assert!(short.contains("at least 32 bytes"), "{short}");
    }
}
