//! `rolltop token inspect`: shows what is in a token, and what is wrong with it.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use chrono::Utc;
use serde_json::Value;

use super::signer::read_secret;
use crate::access::{Claims, MAX_TOKEN_BYTES, TokenRules, UnverifiedToken, Verifier};
use crate::board::{Span, Timestamp};
use crate::cli::output::say;

/// Show what is in a token, and whether a service would accept it
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct InspectArgs {
    /// The token [default: read from standard input]
    token: Option<String>,
    /// A file with the secret of the signing key, to check the signature (HS256)
    #[arg(long, value_name = "PATH", conflicts_with = "public_key")]
    secret_file: Option<PathBuf>,
    /// A file with the public key of the signing key (JWK), to check the signature
    #[arg(long, value_name = "PATH")]
    public_key: Option<PathBuf>,
    /// The audience: the setting token_audience of the service
    #[arg(long, value_name = "TEXT", default_value = "rolltop")]
    audience: String,
    /// The longest time until a token expires: the setting token_max_life of the service
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    max_life: Span,
}

pub(super) fn run(args: &InspectArgs) -> anyhow::Result<()> {
    let text = match &args.token {
        Some(token) => token.clone(),
        None => {
            let mut text = String::new();
            // Longer than any token.
            std::io::stdin().lock().take(2 * MAX_TOKEN_BYTES as u64).read_to_string(&mut text)?;
            text
        }
    };
    let token = UnverifiedToken::parse(text.trim())?;
    // Quoted, because whoever made the token may have put anything in.
    say!("kid: {:?}\nalg: {:?}", token.kid(), token.algorithm())?;
    match serde_json::from_slice::<Value>(token.claims()) {
        Ok(claims) => say!("{}", serde_json::to_string_pretty(&claims)?)?,
        Err(_) => say!("the claims are not JSON")?,
    }
    let claims = match verifier(args)? {
        Some(verifier) => token.verify(&verifier)?,
        None => Claims::parse(token.claims())?,
    };
    let rules = TokenRules { audience: args.audience.clone(), max_life: args.max_life.approximate_millis() };
    let until = claims.check(&rules, Timestamp::from_millis(Utc::now().timestamp_millis()))?;
    say!("valid until {until}, {} s of leeway included", TokenRules::LEEWAY / 1_000)?;
    match args.secret_file.is_some() || args.public_key.is_some() {
        true => say!("the signature is valid")?,
        false => say!("the signature was not checked: name a --secret-file or a --public-key")?,
    }
    Ok(())
}

fn verifier(args: &InspectArgs) -> anyhow::Result<Option<Verifier>> {
    if let Some(path) = &args.secret_file {
        return Ok(Some(read_secret(path)?.into()));
    }
    let Some(path) = &args.public_key else { return Ok(None) };
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| anyhow!("cannot read {shown}: {error}"))?;
    match serde_json::from_str::<crate::access::PublicKey>(&text) {
        Ok(key) => Ok(Some(key.into())),
        Err(error) => bail!("{shown}: {error}"),
    }
}
