//! No text makes authentication panic, and none is a key or token: nobody has the secrets.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rolltop::access::{Grant, HmacSecret, Key, KeyId, KeyKind, KeyRates, Scope, Verifier};
use rolltop::service::{ConfiguredKeys, ConfiguredVerifier, Keys};

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let id = KeyId::parse("00000000000000a1").unwrap();
    let boards = ["*".parse().unwrap()].into_iter().collect();
    let grant = Grant { scopes: [Scope::View, Scope::Write].into_iter().collect(), boards };
    let key = Key {
        id,
        name: "fuzz".to_owned(),
        kind: KeyKind::Signing,
        grant,
        origins: Vec::new(),
        created_at: None,
        expires_at: None,
        secrets: Vec::new(),
        public_key: None,
        rates: KeyRates::default(),
    };
    let verifier = Verifier::from(HmacSecret::new("a secret that the fuzzer does not know").unwrap());
    let verifiers = vec![ConfiguredVerifier { key: id, kid: None, verifier }];
    Keys::new(Grant::none(), ConfiguredKeys { keys: vec![key], verifiers, ..ConfiguredKeys::default() })
});

fuzz_target!(|text: &str| {
    assert!(KEYS.authenticate(text).is_err());
});
