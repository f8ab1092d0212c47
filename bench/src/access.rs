//! Requests with one increment, without a key, with a key, and with tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::Setting;
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::wire;

/// The number of requests prepared in advance. That many tokens do not fit into the server's memory of verified ones,
/// so each is verified whenever it is sent.
const PREPARED: usize = 1 << 16;

/// A key whose secret has no bits, and its hash.
const KEY: &str = "rt_0000000000000000_0000000000000000000000000000000000000000000000000000000000000000";
const HASH: &str = "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925";
const SECRET: &str = "a secret of the benchmark, which signs tokens";

/// Measures the cost of a key, of a token that was seen lately, and of tokens that were not.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| anyhow!("no key can be made"))?;
    let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).map_err(|_| anyhow!("the key that was made is wrong"))?;
    let secret = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let mut redis = Redis::of_store(&setting.store).await?;
    let url = redis.as_ref().map(|redis| redis.url.as_str());
    let rolltop = Server::rolltop_with(&configuration(&pair), url).await?;
    let api = rolltop.api();
    api.define("access", "COUNT(24h, hit, post)", "1h").await?;

    let names: Vec<String> =
        subjects::draw(Skew::Zipf, setting.subjects, PREPARED).into_iter().map(subjects::name).collect();
    let plain: Vec<Bytes> = names.iter().map(|subject| wire::increment("access", subject)).collect();
    let with_key = plain.iter().map(|request| with_bearer(request, KEY)).collect::<Vec<_>>();
    let hs256 = |text: &[u8]| hmac::sign(&secret, text).as_ref().to_vec();
    let one = token("HS256", "00000000000000a1", &names[0], 0, &hs256)?;
    let cached = vec![with_bearer(&wire::increment("access", &names[0]), &one)];
    let signed = |alg: &str, kid: &str, sign: &dyn Fn(&[u8]) -> Vec<u8>| -> anyhow::Result<Vec<Bytes>> {
        let tokens = names.iter().enumerate().map(|(nth, subject)| token(alg, kid, subject, nth, sign));
        tokens.zip(&plain).map(|(token, request)| Ok(with_bearer(request, &token?))).collect()
    };
    let by_secret = signed("HS256", "00000000000000a1", &hs256)?;
    let by_pair = signed("EdDSA", "00000000000000a2", &|text| pair.sign(text).as_ref().to_vec())?;
    let mut sides = Vec::new();
    for (name, requests) in [
        ("without a key", plain),
        ("with a key", with_key),
        ("with a token, HS256, seen before", cached),
        ("with tokens, HS256, not seen before", by_secret),
        ("with tokens, EdDSA, not seen before", by_pair),
    ] {
        let load = setting.load(&api.address, requests);
        load.check("\"rejected\":[]").await.context(name)?;
        sides.push(Side::new(name, 1, load));
    }
    let title = format!("single increments by callers, {}, {} connections", setting.store, setting.connections);
    let mut table = Table { title, unit: "requests", sides };
    table.measure(setting, &mut redis).await?;
    report::show(&table)?;
    let [plain, others @ ..] = &table.sides[..] else { return Ok(()) };
    others.iter().try_for_each(|side| report::show_ratio(&format!("{} to without", side.name), side, plain))
}

/// Returns a configuration with a key and two signing keys, in which callers without a key may do as much.
fn configuration(pair: &Ed25519KeyPair) -> String {
    let x = URL_SAFE_NO_PAD.encode(pair.public_key());
    let key =
        |id: &str, more: &str| format!("[[keys]]\nid = \"{id}\"\nname = \"benchmark\"\nscopes = [\"write\"]\n{more}\n");
    [
        "anonymous = \"read,write,manage\"\n".to_owned(),
        key("0000000000000000", &format!("hash = \"{HASH}\"")),
        key("00000000000000a1", &format!("kind = \"signing\"\nsecret = \"{SECRET}\"")),
        key(
            "00000000000000a2",
            &format!("kind = \"signing\"\npublic_key = {{kty = \"OKP\", crv = \"Ed25519\", x = \"{x}\"}}"),
        ),
    ]
    .concat()
}

/// Returns a token for an increment of 1 of this subject.
fn token(alg: &str, kid: &str, subject: &str, nth: usize, sign: &dyn Fn(&[u8]) -> Vec<u8>) -> anyhow::Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let header = json!({"alg": alg, "kid": kid});
    let allowed = json!({"scopes": ["write"], "increment": {"subject": subject, "amount": 1}});
    let claims = json!({"aud": "rolltop", "exp": now + 43_200, "jti": nth.to_string(), "rolltop": allowed});
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{header}.{claims}");
    let signature = URL_SAFE_NO_PAD.encode(sign(text.as_bytes()));
    Ok(format!("{text}.{signature}"))
}

/// Returns a request with this key or token.
fn with_bearer(request: &Bytes, bearer: &str) -> Bytes {
    let line = request.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (line, rest) = request.split_at(line);
    [line, format!("authorization: Bearer {bearer}\r\n").as_bytes(), rest].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_is_a_header_of_the_request() {
        let request = with_bearer(&wire::get("/v1/boards"), "k");
        assert_eq!(request, "GET /v1/boards HTTP/1.1\r\nauthorization: Bearer k\r\nhost: localhost\r\n\r\n");
    }
}
