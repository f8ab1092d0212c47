//! `rolltop token sign`: signs a token.

use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use rand::TryRngCore;
use rand::rngs::OsRng;
use serde_json::{Value, json};

use super::signer::{Signer, SignerArgs};
use crate::access::{Claims, MAX_TOKEN_BYTES, TokenRules};
use crate::board::{Span, Timestamp};
use crate::cli::output::say;

/// Sign a token, and print it to standard output
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct SignArgs {
    #[command(flatten)]
    signer: SignerArgs,
    /// The id of the signing key, which the token names as `kid`
    #[arg(long, value_name = "ID")]
    kid: String,
    /// The audience: the setting token_audience of the service
    #[arg(long, value_name = "TEXT", default_value = "rolltop")]
    audience: String,
    /// The time for which the token is valid
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    expires_in: Span,
    /// The id of the token; with "once" in the claim, an item counts once for each id [default: a random one]
    #[arg(long, value_name = "ID")]
    jti: Option<String>,
    /// What the token allows: the claim `rolltop`, such as
    /// {"scopes":["write"],"event":{"type":"like","fields":{"post_id":"p1","user_id":"u7"}},"once":true}
    #[arg(value_name = "JSON")]
    claim: String,
}

pub(super) fn run(args: SignArgs) -> anyhow::Result<()> {
    let SignArgs { signer, kid, audience, expires_in, jti, claim } = args;
    let (signer, now) = (Signer::open(&signer)?, Utc::now().timestamp_millis());
    let claim: Value = serde_json::from_str(&claim).map_err(|error| anyhow!("the claim is not valid JSON: {error}"))?;
    let jti = jti.map_or_else(random, Ok)?;
    let seconds = |millis: i64| millis.div_euclid(1_000);
    let expires_at = now.saturating_add(expires_in.approximate_millis());
    let claims =
        json!({"aud": audience, "iat": seconds(now), "exp": seconds(expires_at), "jti": jti, "rolltop": claim});
    let header = json!({"alg": signer.algorithm(), "kid": kid, "typ": "JWT"});

    // What the service would refuse is not signed. How long a token may live is known there only.
    let rules = TokenRules { audience, max_life: i64::MAX / 4 };
    let text = claims.to_string();
    Claims::parse(text.as_bytes())?.check(&rules, Timestamp::from_millis(now))?;
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(text));
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes())?));
    if token.len() > MAX_TOKEN_BYTES {
        bail!("the token has {} bytes; at most {MAX_TOKEN_BYTES} are allowed", token.len());
    }
    say!("{token}")?;
    Ok(())
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    OsRng.try_fill_bytes(&mut bytes).context("the system has no random numbers")?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
