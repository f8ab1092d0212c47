//! `rolltop token key`: the public key of a private key, for `POST /v1/keys`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;

use super::signer::Signer;

/// Print the public key (JWK) that belongs to a private key, for `rolltop keys create --public-key`
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct KeyArgs {
    /// The file with the private key (PEM, PKCS #8)
    #[arg(value_name = "PATH")]
    private_key: PathBuf,
    /// Make a private key (Ed25519) and write it to the file, which must not exist
    #[arg(long)]
    new: bool,
}

pub(super) fn run(args: &KeyArgs) -> anyhow::Result<()> {
    if args.new {
        write_new(args)?;
    }
    let public = Signer::read(&args.private_key)?.public_key();
    println!("{}", serde_json::to_string(&public)?);
    Ok(())
}

fn write_new(args: &KeyArgs) -> anyhow::Result<()> {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
    let der = der.map_err(|_| anyhow!("no key can be made: the system has no random numbers"))?;
    let text = STANDARD.encode(der.as_ref());
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = || options.open(&args.private_key)?.write_all(pem.as_bytes());
    write().with_context(|| format!("cannot write {}", args.private_key.display()))
}
