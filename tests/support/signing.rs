//! Tokens for tests, signed by another implementation than the one that is tested.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use serde_json::{Value, json};

/// A secret of at least 32 bytes.
pub const SECRET: &str = "a secret of the tests, of 40 characters.";

/// An RSA key that is used nowhere else, and its public part.
const RSA: &str = include_str!("../fixtures/signing-rsa.pem");
const RSA_MODULUS: &str = "z62-ZS6HmskrHWaA5PKpRvaqWqntgGN_WR7ENOblU2yONQvZ91iMfR1JhD8nWhok5uy4P-UnuIBtq3ogQBzf92d6sGs3hCq7JyfGD4KDhbQ8uCv50r0yJg0w-emV3-_5UXuB57S2TRv5wrp6JabScVbOMpa4poqyqjIW3Uckiv8ZT6VKVb69SXefno-VbZWsS8esrtbOANohDIRSUJ5AxXx8UiFoTcgRB-_Snln9oluVxIWj2DKfFvbdJahvlDtJT8maLc6_-IQL0w3yW3J6bK5m9_Pn-2xXuu-2BT70peXJNR_Eedu4TtFjdS-K9xbhTrkbDBoS_1OvBKTQATJygQ";

/// What signs tokens, and the public key that verifies them as a JWK, if there is one.
pub struct Signing {
    algorithm: Algorithm,
    key: EncodingKey,
    /// The private key (PEM). Empty for HS256.
    #[allow(dead_code, reason = "not every test program has a file of it")]
    pub pem: String,
    /// The public key as a JWK. Null for HS256.
    pub public: Value,
}

impl Signing {
    pub fn hs256() -> Self {
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        Self { algorithm: Algorithm::HS256, key, pem: String::new(), public: Value::Null }
    }

    pub fn ed25519() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let pem = pair.serialize_pem();
        let key = EncodingKey::from_ed_pem(pem.as_bytes()).unwrap();
        let public = json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key_raw())});
        Self { algorithm: Algorithm::EdDSA, key, pem, public }
    }

    pub fn p256() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let (pem, point) = (pair.serialize_pem(), pair.public_key_raw());
        let key = EncodingKey::from_ec_pem(pem.as_bytes()).unwrap();
        let public = json!({"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])});
        Self { algorithm: Algorithm::ES256, key, pem, public }
    }

    pub fn rsa() -> Self {
        let key = EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap();
        let public = json!({"kty": "RSA", "n": RSA_MODULUS, "e": "AQAB"});
        Self { algorithm: Algorithm::RS256, key, pem: RSA.to_owned(), public }
    }

    /// Signs claims.
    pub fn sign(&self, kid: &str, claims: &Value) -> String {
        let header = Header { kid: Some(kid.to_owned()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).unwrap()
    }

    /// Signs a token that allows this for five minutes.
    pub fn token(&self, kid: &str, allowed: &Value) -> String {
        self.sign(kid, &claims(allowed))
    }
}

/// Returns the claims of a token that allows this for five minutes, with an id of its own.
pub fn claims(allowed: &Value) -> Value {
    let jti = format!("{:032x}", rand::random::<u128>());
    json!({"aud": "rolltop", "exp": Utc::now().timestamp() + 300, "jti": jti, "rolltop": allowed})
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
