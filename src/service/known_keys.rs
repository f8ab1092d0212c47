//! The keys of the configuration and of the store, and the table of those that are valid.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::keys::{ConfiguredKeys, ConfiguredVerifier, KnownKey};
use crate::access::{Credential, Key, KeyId, KeyKind, KeySecret, Verifier};

/// Where keys come from.
#[derive(Default)]
pub(super) struct KeySources {
    pub(super) configured: ConfiguredKeys,
    /// The keys of the store, each with the text of its row.
    pub(super) stored: HashMap<KeyId, (Key, String)>,
    /// The version of the store's table.
    pub(super) version: Option<u64>,
    /// The ids of rows of the store that are no keys.
    pub(super) unreadable: Vec<String>,
    /// Why the table could not be read the last time.
    pub(super) failure: Option<String>,
}

/// The keys that are valid, apart from their expiry.
#[derive(Default)]
pub(super) struct KeyTable {
    /// The credentials of each key: one, and after a rotation two; of a signing key one for each `kid`.
    pub(super) by_id: HashMap<KeyId, Vec<Arc<Credential>>>,
    /// What verifies tokens, by what they name as `kid`.
    pub(super) signers: HashMap<Box<str>, Signer>,
    /// The origins of all publishable and signing keys.
    pub(super) origins: BTreeSet<String>,
}

/// What verifies the tokens of a signing key.
pub(super) struct Signer {
    pub(super) credential: Arc<Credential>,
    pub(super) verifier: Verifier,
}

impl KeyTable {
    pub(super) fn credentials(&self) -> impl Iterator<Item = &Arc<Credential>> {
        self.by_id.values().flatten()
    }
}

impl KeySources {
    /// Returns the keys, each id once. Those of the configuration come before those of the store.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        let stored = self.stored.values().map(|(key, _)| key).filter(|key| !self.is_configured(key.id));
        self.configured.keys.iter().chain(stored)
    }

    /// Returns whether the configuration has a key with this id.
    pub(super) fn is_configured(&self, id: KeyId) -> bool {
        self.configured.keys.iter().any(|key| key.id == id)
    }

    pub(super) fn known(&self, key: &Key, table: &KeyTable) -> KnownKey {
        KnownKey {
            key: key.clone(),
            is_configured: self.is_configured(key.id),
            is_revoked: self.configured.revoked.contains(&key.id),
            used_at: table.by_id.get(&key.id).into_iter().flatten().filter_map(|one| one.used_at()).max(),
        }
    }

    /// Returns the table of the valid keys. A credential of the table before is used again if it still allows the same.
    pub(super) fn table(&self, before: &KeyTable) -> KeyTable {
        let mut table = KeyTable::default();
        let mut of_sets: Vec<(&str, Signer)> = Vec::new();
        let mut configured: HashMap<KeyId, Vec<&ConfiguredVerifier>> = HashMap::new();
        for verifier in &self.configured.verifiers {
            configured.entry(verifier.key).or_default().push(verifier);
        }
        for key in self.keys().filter(|key| !self.configured.revoked.contains(&key.id)) {
            let known = before.by_id.get(&key.id).map_or(&[][..], Vec::as_slice);
            let credential = |secret| {
                let same = known.iter().find(|one: &&Arc<Credential>| one.renew(key, secret));
                same.cloned().unwrap_or_else(|| Arc::new(Credential::new(key, secret)))
            };
            let mut credentials: Vec<_> = key.secrets.iter().copied().map(credential).collect();
            if key.kind == KeyKind::Signing {
                let own = key.public_key.clone().map(|public| (None, Verifier::from(public)));
                let configured = configured.remove(&key.id).unwrap_or_default();
                let configured = configured.into_iter().map(|one| (one.kid.as_deref(), one.verifier.clone()));
                for (kid, verifier) in own.into_iter().chain(configured) {
                    let credential = credential(KeySecret { hash: verifier.hash(), until: None });
                    credentials.push(credential.clone());
                    let signer = Signer { credential, verifier };
                    match kid {
                        Some(kid) => of_sets.push((kid, signer)),
                        None => drop(table.signers.insert(key.id.to_string().into(), signer)),
                    }
                }
            }
            table.by_id.insert(key.id, credentials);
            table.origins.extend(key.origins.iter().cloned());
        }
        // The ids of keys come first, so that no key set takes their place.
        for (kid, signer) in of_sets {
            if let Some(other) = table.signers.get(kid) {
                let (key, other) = (signer.credential.key.id, other.credential.key.id);
                tracing::warn!(kid, %key, %other, "two signing keys have the same kid; tokens with it are those of the other");
                continue;
            }
            table.signers.insert(kid.into(), signer);
        }
        table
    }
}
