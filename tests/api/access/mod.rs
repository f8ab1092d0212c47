//! Who may do what: every operation with every kind of caller, and what callers learn of boards that are not theirs.

mod attributes;
mod boards_of_others;
mod callers;
mod keys;
mod operations;
mod rates;
mod taken_back;
mod tokens;

use std::sync::Arc;

use reqwest::Method;
use rolltop::access::{BoardPattern, Grant, Key, KeyKind, KeyRates, KeySecret, Scope, Secret};
use rolltop::board::Timestamp;
use rolltop::http::HttpOptions;
use rolltop::service::{ConfiguredKeys, Keys, Service};
use serde_json::Value;

use crate::client::{Answer, Client};
use crate::site::Site;

/// A key for tests.
pub struct TestKey {
    pub key: Key,
    pub secret: Secret,
}

/// Returns a secret key for these scopes and boards.
pub fn key(scopes: &[Scope], boards: &[&str]) -> TestKey {
    key_of(KeyKind::Secret, scopes, boards, &[])
}

pub fn key_of(kind: KeyKind, scopes: &[Scope], boards: &[&str], origins: &[&str]) -> TestKey {
    let secret = Secret::draw(kind).unwrap();
    let boards = boards.iter().map(|text| text.parse::<BoardPattern>().unwrap()).collect();
    let grant = Grant { scopes: scopes.iter().copied().collect(), boards };
    let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    let secrets = vec![KeySecret { hash: secret.hash(), until: None }];
    let (name, created_at, expires_at) = ("a test".to_owned(), None, None);
    let key = Key {
        id: secret.id(),
        name,
        kind,
        grant,
        origins,
        created_at,
        expires_at,
        secrets,
        public_key: None,
        rates: KeyRates::default(),
    };
    key.check().unwrap();
    TestKey { key, secret }
}

impl TestKey {
    pub fn expired(mut self) -> Self {
        self.key.expires_at = Some(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
        self
    }

    pub fn limited(mut self, rates: KeyRates) -> Self {
        self.key.rates = rates;
        self
    }

    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.secret.reveal())
    }
}

/// Returns keys of a configuration, and what callers without one may do.
pub fn keys(anonymous: Grant, keys: &[&TestKey]) -> Keys {
    let keys = keys.iter().map(|key| key.key.clone()).collect();
    Keys::new(anonymous, ConfiguredKeys { keys, ..ConfiguredKeys::default() })
}

/// A site whose boards `shop-a` and `other` were defined without keys, and an instance of it with keys.
pub struct Guarded {
    pub site: Site,
    pub client: Client,
    pub service: Arc<Service>,
}

impl Guarded {
    pub async fn new(keys: Keys) -> Self {
        Self::with(keys, |_| ()).await
    }

    pub async fn with(keys: Keys, change: impl FnOnce(&mut HttpOptions)) -> Self {
        let site = Site::new().await;
        for board in ["shop-a", "other"] {
            site.client.define(board, "COUNT(24h, like, post_id)", "1h").await;
        }
        let (client, service) = site.instance_with_keys(keys, change);
        Self { site, client, service }
    }

    /// Sends a request with this header `Authorization`, if any.
    pub async fn send(&self, authorization: Option<&str>, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let kind = body.map(|_| ("content-type", "application/json"));
        let headers: Vec<(&str, &str)> =
            authorization.map(|text| ("authorization", text)).into_iter().chain(kind).collect();
        self.client.send_with(method, path, &headers, body.map(Value::to_string).unwrap_or_default()).await
    }

    pub async fn get(&self, key: &TestKey, path: &str) -> Answer {
        self.send(Some(&key.bearer()), Method::GET, path, None).await
    }

    pub async fn post(&self, key: &TestKey, path: &str, body: &Value) -> Answer {
        self.send(Some(&key.bearer()), Method::POST, path, Some(body)).await
    }
}
