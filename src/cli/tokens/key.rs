//! `rolltop token key`: the public key of a private key, for `POST /v1/keys`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use anyhow::anyhow;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::TryRngCore;
use rand::rngs::OsRng;

use super::signer::Signer;
use crate::cli::output::say;

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
    say!("{}", serde_json::to_string(&public)?)?;
    Ok(())
}

/// What stands before the 32 bytes of an Ed25519 key in PKCS #8, version 1 (RFC 8410, section 7), which all libraries
/// read.
const PKCS8_OF_ED25519: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

fn write_new(args: &KeyArgs) -> anyhow::Result<()> {
    let mut der = PKCS8_OF_ED25519.to_vec();
    let mut seed = [0; 32];
    OsRng.try_fill_bytes(&mut seed).map_err(|error| anyhow!("no key can be made: {error}"))?;
    der.extend(seed);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = || options.open(&args.private_key)?.write_all(pem.as_bytes());
    write().map_err(|error: std::io::Error| anyhow!("cannot write {}: {error}", args.private_key.display()))
}
