//! Making, rotating and revoking keys, and reading them from the store.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Keys, KnownKey, Result, Service, ServiceError};
use crate::access::{
    Caller, Grant, Key, KeyError, KeyId, KeyKind, KeyRates, KeySecret, PublicKey, Scope, Secret, SecretError,
};
use crate::board::Timestamp;
use crate::store::{StoreError, TableName};

/// The time that the store has to return the keys.
const PATIENCE: Duration = Duration::from_secs(1);

/// A key to be made.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    pub kind: KeyKind,
    pub grant: Grant,
    pub origins: Vec<String>,
    pub expires_at: Option<Timestamp>,
    pub rates: KeyRates,
    /// Of a signing key.
    pub public_key: Option<PublicKey>,
}

impl Service {
    /// Returns the keys that this instance knows, for authentication.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns all keys, by id, with the last use of each through any instance as far as it is recorded. Two store
    /// calls.
    pub async fn list_keys(&self, caller: &Caller) -> Result<Vec<KnownKey>> {
        caller.require(Scope::Admin)?;
        self.read_keys().await?;
        let mut all = self.keys.all();
        let uses = self.store.rows(TableName::KeyUses, None).await?.map(|uses| uses.rows).unwrap_or_default();
        for known in &mut all {
            let recorded = uses.get(&known.key.id.to_string()).and_then(|text| Timestamp::parse(text).ok());
            known.used_at = known.used_at.max(recorded);
        }
        Ok(all)
    }

    /// Returns one key.
    pub async fn find_key(&self, caller: &Caller, id: KeyId) -> Result<KnownKey> {
        let all = self.list_keys(caller).await?;
        all.into_iter().find(|known| known.key.id == id).ok_or(ServiceError::UnknownKey(id))
    }

    /// Makes a key. Returns it with its secret, which is stored nowhere; a signing key has none.
    ///
    /// Returns [`KeyError`] if the parts of the key do not fit together, or if it would allow more than the caller may.
    pub async fn create_key(&self, caller: &Caller, new: NewKey) -> Result<(Key, Option<Secret>)> {
        caller.require(Scope::Admin)?;
        let now = self.keys.now();
        let NewKey { name, kind, grant, origins, expires_at, rates, public_key } = new;
        let id = KeyId::draw()?;
        let secret = match kind {
            KeyKind::Signing => None,
            KeyKind::Secret | KeyKind::Publishable => Some(Secret::draw_for(kind, id)?),
        };
        let secrets = secret.iter().map(|secret| KeySecret { hash: secret.hash(), until: None }).collect();
        let created_at = Some(now);
        let key = Key { id, name, kind, grant, origins, created_at, expires_at, secrets, public_key, rates };
        key.check_stored()?;
        if key.expires_at.is_some_and(|at| at <= now) {
            return Err(KeyError::Expired.into());
        }
        check_width(caller, &key)?;
        self.change_key(key.id, None, Some(&key)).await?;
        Ok((key, secret))
    }

    /// Gives a key another secret. Those before are valid for this time. Returns the key with the new secret.
    pub async fn rotate_key(&self, caller: &Caller, id: KeyId, overlap: Duration) -> Result<(Key, Secret)> {
        caller.require(Scope::Admin)?;
        let (mut key, row) = self.stored_key(id).await?;
        if key.kind == KeyKind::Signing {
            return Err(KeyError::NoSecret.into());
        }
        check_width(caller, &key)?;
        let secret = Secret::draw_for(key.kind, id).map_err(KeyError::from)?;
        let overlap = i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX);
        key.rotate(secret.hash(), self.keys.now().plus_millis(overlap));
        self.change_key(id, Some(&row), Some(&key)).await?;
        Ok((key, secret))
    }

    /// Revokes a key. When this returns, this instance does not accept it any more, and the others will not within two
    /// seconds while they reach the store.
    pub async fn revoke_key(&self, caller: &Caller, id: KeyId) -> Result<Key> {
        caller.require(Scope::Admin)?;
        let (key, row) = self.stored_key(id).await?;
        self.change_key(id, Some(&row), None).await?;
        Ok(key)
    }

    async fn stored_key(&self, id: KeyId) -> Result<(Key, String)> {
        if self.keys.is_configured(id) {
            return Err(ServiceError::ConfiguredKey(id));
        }
        self.read_keys().await?;
        self.keys.stored(id).ok_or(ServiceError::UnknownKey(id))
    }

    async fn change_key(&self, id: KeyId, from: Option<&str>, to: Option<&Key>) -> Result<()> {
        let text = to.map(serde_json::to_string).transpose();
        let text = text.map_err(|error| StoreError::Backend { source: Box::new(error) })?;
        // An answer to an earlier question must not replace what is changed here.
        let _one_at_a_time = self.reading_keys.lock().await;
        if !self.store.change_row(TableName::Keys, &id.to_string(), from, text.as_deref()).await? {
            return Err(ServiceError::KeyChanged(id));
        }
        self.keys.set_row(id, to.cloned().zip(text));
        Ok(())
    }

    /// Reads the keys from the store, if they have changed. One store call.
    pub async fn read_keys(&self) -> Result<()> {
        // One at a time: an answer that is older must not replace one that is newer.
        let _one_at_a_time = self.reading_keys.lock().await;
        let rows = self.store.rows(TableName::Keys, self.keys.version()).await;
        self.keys.note_read(rows.as_ref().err());
        if let Some(rows) = rows? {
            self.keys.set_stored(rows);
        }
        Ok(())
    }

    /// Reads the keys from the store, if they have changed and it answers within a second, and ends what has expired.
    /// Call it about once a second.
    pub async fn keep_keys(&self) {
        if tokio::time::timeout(PATIENCE, self.read_keys()).await.is_err() {
            let at = "its address".to_owned();
            self.keys.note_read(Some(&StoreError::TimedOut { at }));
        }
        self.keys.end_expired();
    }

    /// Records in the store when each key was last used through this instance, if that is later than what is recorded
    /// there. Call it about once a minute. Two store calls, and one for each key that was used in between.
    pub async fn record_key_uses(&self) -> Result<()> {
        let known: BTreeMap<String, Option<Timestamp>> =
            self.keys.all().into_iter().map(|known| (known.key.id.to_string(), known.used_at)).collect();
        let recorded = self.store.rows(TableName::KeyUses, None).await?.map(|uses| uses.rows).unwrap_or_default();
        for (id, used_at) in &known {
            let Some(used_at) = used_at else { continue };
            let before = recorded.get(id);
            if before.and_then(|text| Timestamp::parse(text).ok()).is_none_or(|before| before < *used_at) {
                let text = used_at.to_string();
                // If another instance was faster, its time is as good.
                self.store.change_row(TableName::KeyUses, id, before.map(String::as_str), Some(&text)).await?;
            }
        }
        // What is not known here may be a key of another instance's configuration, which is in use if it is recent.
        let is_old = |text: &str| {
            let day_ago = self.keys.now().plus_millis(-86_400_000);
            Timestamp::parse(text).ok().is_none_or(|at| at < day_ago)
        };
        for (id, text) in recorded.iter().filter(|(id, text)| !known.contains_key(*id) && is_old(text)) {
            self.store.change_row(TableName::KeyUses, id, Some(text), None).await?;
        }
        Ok(())
    }
}

/// Returns an error if the key allows more than the caller may, faster, or for longer.
fn check_width(caller: &Caller, key: &Key) -> Result<(), KeyError> {
    // Of a secret that a rotation ends soon, too.
    let is_longer = caller.until().is_some_and(|end| key.expires_at.is_none_or(|at| at > end));
    if !caller.covers(&key.grant) || is_longer {
        return Err(KeyError::Wider);
    }
    if caller.key().is_some_and(|own| !key.rates.are_within(&own.rates)) {
        return Err(KeyError::WiderRates);
    }
    Ok(())
}

impl From<SecretError> for ServiceError {
    fn from(error: SecretError) -> Self {
        KeyError::from(error).into()
    }
}
