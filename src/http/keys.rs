//! Keys: making, listing, rotating and revoking them.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::parameters::Plain;
use super::problem::Problem;
use super::{object, response, schemas};
use crate::access::{Caller, Grant, Key, KeyKind, KeyRates, PublicKey, Scope, Scopes, Secret};
use crate::board::{Span, Timestamp};
use crate::service::{KnownKey, NewKey, ServiceError};

/// The longest time for which the secrets before a rotation may stay valid.
const LONGEST_OVERLAP: Duration = Duration::from_secs(90 * 86_400);

/// A key without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key, example = example)]
pub(super) struct KeyShown {
    /// Id of the key: 16 hexadecimal digits.
    #[schema(example = "5f1c2a9d04b7e386")]
    id: String,
    /// What the key is for.
    #[schema(example = "the shop")]
    name: String,
    /// `secret`; `publishable` for a key in web pages; `signing` for one that verifies tokens; `token` for the token of
    /// this request.
    #[schema(value_type = String, example = "secret")]
    kind: &'static str,
    /// What the key allows: `view`, `read`, `write`, `manage`, `admin`, `metrics`.
    #[schema(example = json!(["read", "write"]))]
    scopes: Vec<&'static str>,
    /// The boards that the key is for: names, and beginnings of names with `*` after them.
    #[schema(value_type = Vec<String>, example = json!(["shop-*"]))]
    boards: Value,
    /// The origins of the pages that may use a publishable key, or tokens of a signing key.
    #[schema(example = json!([]))]
    origins: Vec<String>,
    /// The public key (JWK) of a signing key that does not have it in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false, nullable = false)]
    public_key: Option<PublicKey>,
    /// How fast the key may be used, through each instance.
    #[schema(value_type = RatesShown)]
    rates: KeyRates,
    /// Time when the key was made; null for a key of the configuration.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    created_at: Option<Timestamp>,
    /// Time from which on the key is not valid; null if it does not expire.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    expires_at: Option<Timestamp>,
    /// Time until which the secret before the last rotation is valid; null if there is none.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    rotating_until: Option<Timestamp>,
    /// Time of the last request with the key, to the minute; null if there was none.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    last_used: Option<Timestamp>,
    /// Whether the key is one of the configuration, which can be changed only there.
    configured: bool,
    /// Whether the configuration lists the key as revoked.
    revoked: bool,
}

/// A key with its secret, which is not shown again. A signing key has none.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyMade {
    #[serde(flatten)]
    key: KeyShown,
    /// The key to send in the header `Authorization: Bearer`. It is stored nowhere and cannot be shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "rt_5f1c2a9d04b7e386_…", required = false, nullable = false)]
    secret: Option<String>,
}

/// The keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyList {
    /// The keys, ordered by id.
    items: Vec<KeyShown>,
    /// Always null: the list has one page.
    #[schema(value_type = Option<String>, required = true)]
    next: (),
}

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey)]
pub(super) struct NewKeyBody {
    /// What the key is for.
    #[schema(min_length = 1, max_length = 128)]
    name: String,
    /// `secret` (the default), `publishable` for a key in web pages, or `signing` for one that verifies tokens.
    #[serde(default = "secret")]
    #[schema(value_type = String, required = false, pattern = "^(secret|publishable|signing)$")]
    kind: KeyKind,
    /// What the key allows.
    #[schema(value_type = Vec<String>, min_items = 1)]
    scopes: crate::access::Scopes,
    /// The boards that the key is for: names, and beginnings of names with `*` after them. Default: all.
    #[serde(default = "crate::access::BoardPatterns::all")]
    #[schema(value_type = Vec<String>, required = false, min_items = 1, max_items = 64)]
    boards: crate::access::BoardPatterns,
    /// The origins of the pages that may use a publishable key, or tokens of a signing key.
    #[serde(default)]
    #[schema(max_items = 32)]
    origins: Vec<String>,
    /// The public key of a signing key as a JWK: Ed25519 (tokens with EdDSA), P-256 (ES256), or RSA (RS256).
    #[serde(default)]
    #[schema(value_type = Object, required = false)]
    public_key: Option<PublicKey>,
    /// Time from which on the key is not valid. Default: never.
    #[serde(default)]
    #[schema(schema_with = schemas::time, required = false)]
    expires_at: Option<Timestamp>,
    /// How fast the key may be used, through each instance. Default: as fast as addresses may be.
    #[serde(default)]
    #[schema(value_type = RatesShown, required = false)]
    rates: KeyRates,
}

/// The limits of a key. What is absent is not limited. A rate is a number in a second, minute or hour, and the largest
/// number at once, which is the same number if none is given.
#[derive(ToSchema)]
#[schema(as = KeyRates)]
#[expect(dead_code, reason = "it only describes KeyRates")]
pub(super) struct RatesShown {
    /// Requests of all kinds.
    #[schema(value_type = String, required = false, example = "50/s")]
    requests: (),
    /// Increments, samples and events.
    #[schema(value_type = String, required = false, example = "6000/m burst 1000")]
    items: (),
    /// The number of streams and exports that are open at a time.
    #[schema(value_type = u32, required = false, example = 100)]
    streams: (),
}

/// A rotation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Rotation)]
pub(super) struct RotationBody {
    /// The time for which the secret before stays valid, at most 90 days.
    #[serde(default)]
    #[schema(value_type = String, required = false, example = "24h")]
    overlap: Option<Span>,
}

fn secret() -> KeyKind {
    KeyKind::Secret
}

/// An example of a key in a response.
fn example() -> Value {
    json!({"id": "5f1c2a9d04b7e386", "name": "the shop", "kind": "secret", "scopes": ["read", "write"],
        "boards": ["shop-*"], "origins": [], "rates": {"requests": "50/s"}, "created_at": "2026-01-02T09:00:00Z", "expires_at": null,
        "rotating_until": null, "last_used": "2026-01-02T10:07:00Z", "configured": false, "revoked": false})
}

fn example_with_secret() -> Value {
    let mut example = example();
    example["secret"] = json!(format!("rt_5f1c2a9d04b7e386_{}", "0".repeat(64)));
    example["last_used"] = Value::Null;
    example
}

impl KeyShown {
    fn of(known: KnownKey) -> Self {
        let KnownKey { key, is_configured, is_revoked, used_at } = known;
        let Key { id, name, kind, grant, origins, created_at, expires_at, secrets, public_key, rates } = key;
        Self {
            id: id.to_string(),
            name,
            kind: kind.as_str(),
            scopes: names(grant.scopes),
            boards: json!(grant.boards),
            origins,
            public_key,
            rates,
            created_at,
            expires_at,
            rotating_until: secrets.get(1).and_then(|before| before.until),
            last_used: used_at,
            configured: is_configured,
            revoked: is_revoked,
        }
    }

    /// Shows what the token of a caller allows in place of what its signing key does.
    fn of_token(self, caller: &Caller) -> Self {
        Self {
            id: self.id,
            name: "a token of this key".to_owned(),
            kind: "token",
            scopes: names(caller.scopes()),
            boards: json!(caller.boards()),
            expires_at: caller.until(),
            // The rest is for its owner.
            origins: Vec::new(),
            public_key: None,
            rates: KeyRates::default(),
            created_at: None,
            rotating_until: None,
            last_used: None,
            configured: self.configured,
            revoked: false,
        }
    }

    fn of_new(key: Key) -> Self {
        Self::of(KnownKey { key, is_configured: false, is_revoked: false, used_at: None })
    }
}

fn names(scopes: Scopes) -> Vec<&'static str> {
    scopes.iter().map(Scope::as_str).collect()
}

fn made(status: StatusCode, key: Key, secret: Option<&Secret>) -> HttpResponse {
    response::json_with(status, &KeyMade { key: KeyShown::of_new(key), secret: secret.map(Secret::reveal) })
}

/// List keys
///
/// Returns all keys, those of the configuration included, ordered by id. Secrets are stored nowhere.
#[utoipa::path(
    get, path = "/v1/keys", operation_id = "listKeys", tag = "keys",
    responses((status = 200, description = "The keys.", body = KeyList,
        example = json!({"items": [example()], "next": null}))),
)]
pub(super) async fn list(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let keys = call.service().list_keys(&call.caller).await?;
    Ok(response::json(&KeyList { items: keys.into_iter().map(KeyShown::of).collect(), next: () }))
}

/// Make a key
///
/// Returns the key with its secret, which is not shown again. This instance accepts the key at once, others of the same
/// store within two seconds.
#[utoipa::path(
    post, path = "/v1/keys", operation_id = "createKey", tag = "keys",
    request_body(content = NewKeyBody, description = "The key.", examples(
        ("a backend" = (value = json!({"name": "the shop", "scopes": ["read", "write"], "boards": ["shop-*"]}))),
        ("a web page" = (value = json!({"name": "the front page", "kind": "publishable", "scopes": ["view"],
            "boards": ["hot-posts"], "origins": ["https://shop.example"], "rates": {"requests": "100/s burst 500"}}))),
        ("tokens" = (value = json!({"name": "likes of the shop", "kind": "signing", "scopes": ["write"],
            "boards": ["hot-*"], "origins": ["https://shop.example"], "public_key": {"kty": "OKP", "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}}))),
        ("monitoring" = (value = json!({"name": "Prometheus", "scopes": ["metrics"]}))),
    )),
    responses((status = 201, description = "The key was made.", body = KeyMade, example = json!(example_with_secret()))),
)]
pub(super) async fn create(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let body = call.json(payload).await?;
    let NewKeyBody { name, kind, scopes, boards, origins, expires_at, rates, public_key } = object::parse(&body)?;
    let new = NewKey { name, kind, grant: Grant { scopes, boards }, origins, expires_at, rates, public_key };
    let (key, secret) = call.service().create_key(&call.caller, new).await?;
    Ok(made(StatusCode::CREATED, key, secret.as_ref()))
}

/// Get a key
#[utoipa::path(
    get, path = "/v1/keys/{key}", operation_id = "getKey", tag = "keys",
    responses((status = 200, description = "The key.", body = KeyShown, example = json!(example()))),
)]
pub(super) async fn get(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let id = call.key_id()?;
    Ok(response::json(&KeyShown::of(call.service().find_key(&call.caller, id).await?)))
}

/// Get the key of this request
///
/// Returns the key that the request has, with what it allows; for a token, the key that signed it, with what the token
/// allows.
#[utoipa::path(
    get, path = "/v1/keys/self", operation_id = "getOwnKey", tag = "keys",
    responses((status = 200, description = "The key.", body = KeyShown, example = json!(example()))),
)]
pub(super) async fn own(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let known = call.caller.key_id().and_then(|id| call.service().keys().find(id));
    // It was valid a moment ago.
    let known = known.ok_or_else(|| Problem::from(ServiceError::from(call.caller.ended())))?;
    let shown = KeyShown::of(known);
    Ok(response::json(&if call.caller.has_token() { shown.of_token(&call.caller) } else { shown }))
}

/// Rotate a key
///
/// Gives the key another secret, which is not shown again. The one before stays valid for the time `overlap`, and any
/// older one ends.
#[utoipa::path(
    post, path = "/v1/keys/{key}/rotate", operation_id = "rotateKey", tag = "keys",
    request_body(content = RotationBody, description = "How long the secret before stays valid.",
        example = json!({"overlap": "24h"})),
    responses((status = 200, description = "The key with its new secret.", body = KeyMade,
        example = json!(example_with_secret()))),
)]
pub(super) async fn rotate(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let id = call.key_id()?;
    let body = call.json(payload).await?;
    let RotationBody { overlap } = object::parse(&body)?;
    let overlap = overlap.map_or(0, Span::approximate_millis).unsigned_abs();
    let overlap = Duration::from_millis(overlap);
    if overlap > LONGEST_OVERLAP {
        return Err(Problem::field("overlap", "'overlap' must be at most 90d"));
    }
    let (key, secret) = call.service().rotate_key(&call.caller, id, overlap).await?;
    Ok(made(StatusCode::OK, key, Some(&secret)))
}

/// Revoke a key
///
/// Returns the revoked key. This instance does not accept it any more and ends its streams, exports and uploads; other
/// instances of the same store do so within two seconds.
#[utoipa::path(
    delete, path = "/v1/keys/{key}", operation_id = "revokeKey", tag = "keys",
    responses((status = 200, description = "The revoked key.", body = KeyShown, example = json!(example()))),
)]
pub(super) async fn revoke(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let key = call.service().revoke_key(&call.caller, call.key_id()?).await?;
    Ok(response::json(&KeyShown::of_new(key)))
}
