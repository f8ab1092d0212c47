//! Keys of a running server: making, listing, rotating and revoking them through its API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, bail};
use rolltop_client::Method;
use serde_json::{Value, json};

use crate::access::{KeyId, Scope};
use crate::board::{Span, Timestamp};
use crate::cli::output::say;
use crate::cli::server::ServerArgs;

/// The time to wait for a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// Make a key, and print it to standard output; it is not shown again. Of a signing key, the id is printed
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct CreateArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// What the key is for
    #[arg(long)]
    name: String,
    /// What the key allows: view, read, write, manage, metrics, admin
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', required = true)]
    scopes: Vec<Scope>,
    /// The boards that the key is for, such as hot-posts or shop-* [default: all]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    boards: Option<Vec<String>>,
    /// Make a publishable key, for pages of these origins, such as https://shop.example; of a signing key, the origins
    /// of the pages that may use its tokens
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    origins: Option<Vec<String>>,
    /// Make a signing key, for tokens: a file with the public key (JWK), which `rolltop token key` prints
    #[arg(long, value_name = "PATH")]
    public_key: Option<PathBuf>,
    /// The time from which on the key is not valid [default: never]
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires_at: Option<Timestamp>,
}

/// List all keys
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct ListArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// Give a key another secret, and print it to standard output; it is not shown again
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct RotateArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The id of the key
    id: KeyId,
    /// The time for which the secret before stays valid [default: it ends at once]
    #[arg(long, value_name = "DURATION")]
    overlap: Option<Span>,
}

/// Revoke a key
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct RevokeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The id of the key
    id: KeyId,
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|error| error.to_string())
}

pub(super) async fn create(args: CreateArgs) -> anyhow::Result<()> {
    let CreateArgs { server, name, scopes, boards, origins, public_key, expires_at } = args;
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let mut body = json!({"name": name, "scopes": scopes});
    let public_key = public_key.map(|path| read_jwk(&path)).transpose()?;
    let kind = match (&public_key, &origins) {
        (Some(_), _) => Some(json!("signing")),
        (None, Some(_)) => Some(json!("publishable")),
        (None, None) => None,
    };
    let more = [
        ("boards", boards.map(Value::from)),
        ("origins", origins.map(Value::from)),
        ("kind", kind),
        ("public_key", public_key),
        ("expires_at", expires_at.map(|at| json!(at))),
    ];
    for (member, value) in more.into_iter().filter_map(|(member, value)| Some((member, value?))) {
        body[member] = value;
    }
    show_secret(&send(&server, Method::POST, "/v1/keys", Some(&body)).await?)
}

fn read_jwk(path: &Path) -> anyhow::Result<Value> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| anyhow!("--public-key: cannot read {shown}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| anyhow!("--public-key: {shown} is not a JWK: {error}"))
}

pub(super) async fn rotate(RotateArgs { server, id, overlap }: RotateArgs) -> anyhow::Result<()> {
    let body = overlap.map_or_else(|| json!({}), |overlap| json!({"overlap": overlap.to_string()}));
    show_secret(&send(&server, Method::POST, &format!("/v1/keys/{id}/rotate"), Some(&body)).await?)
}

pub(super) async fn revoke(RevokeArgs { server, id }: RevokeArgs) -> anyhow::Result<()> {
    let key = send(&server, Method::DELETE, &format!("/v1/keys/{id}"), None).await?;
    say!("revoked {}", line(&key))?;
    Ok(())
}

pub(super) async fn list(ListArgs { server }: ListArgs) -> anyhow::Result<()> {
    let keys = send(&server, Method::GET, "/v1/keys", None).await?;
    for key in keys["items"].as_array().into_iter().flatten() {
        say!("{}", line(key))?;
    }
    Ok(())
}

/// Prints the key alone to standard output (of a signing key, its id), and what else is known to standard error.
fn show_secret(made: &Value) -> anyhow::Result<()> {
    let Some(secret) = made["secret"].as_str().or_else(|| made["public_key"].as_object().and(made["id"].as_str()))
    else {
        bail!("the response has no key; it is not one of rolltop")
    };
    eprintln!("{}", line(made));
    say!("{secret}")?;
    Ok(())
}

/// Returns a key as one line of text.
fn line(key: &Value) -> String {
    let text = |member: &str| key[member].as_str().unwrap_or("-").to_owned();
    let list = |member: &str| {
        let items = key[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join(",")
    };
    let mut line = format!("{}  {}  {} on {}", text("id"), text("kind"), list("scopes"), list("boards"));
    for (member, says) in [("expires_at", "expires"), ("rotating_until", "rotating until"), ("last_used", "last used")]
    {
        if let Some(at) = key[member].as_str() {
            line.push_str(&format!("  {says} {at}"));
        }
    }
    for (member, says) in [("configured", "in the configuration"), ("revoked", "revoked")] {
        if key[member] == true {
            line.push_str(&format!("  {says}"));
        }
    }
    format!("{line}  {}", text("name"))
}

/// Sends a request, and returns the response.
async fn send(server: &ServerArgs, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
    let request = server.builder()?.timeout(PATIENCE).build()?.request(method, path);
    Ok(match body {
        Some(body) => request.json(body).await?,
        None => request.await?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line() {
        let key = json!({"id": "5f1c2a9d04b7e386", "name": "the shop", "kind": "secret", "scopes": ["read", "write"],
            "boards": ["shop-*"], "expires_at": null, "rotating_until": "2026-01-03T00:00:00Z", "last_used": null,
            "configured": false, "revoked": true, "secret": "rt_x"});
        let expected =
            "5f1c2a9d04b7e386  secret  read,write on shop-*  rotating until 2026-01-03T00:00:00Z  revoked  the shop";
        assert_eq!(line(&key), expected);
    }
}
