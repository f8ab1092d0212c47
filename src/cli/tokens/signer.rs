//! What signs tokens: a secret, or a private key in a file.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use crate::access::{HmacSecret, PublicKey};

/// The file with what signs. A flag with the secret itself could be seen by other users of the machine.
#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct SignerArgs {
    /// A file with the secret of a signing key of the configuration, for HS256; white space at its ends does not count
    #[arg(long, value_name = "PATH")]
    secret_file: Option<PathBuf>,
    /// A file with a private key (PEM, PKCS #8): Ed25519 for EdDSA, P-256 for ES256, RSA for RS256
    #[arg(long, value_name = "PATH")]
    private_key: Option<PathBuf>,
}

/// What signs tokens.
pub(super) enum Signer {
    Hmac(HmacSecret),
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// Reads the secret of a signing key from a file.
pub(super) fn read_secret(path: &Path) -> anyhow::Result<HmacSecret> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| anyhow!("cannot read {shown}: {error}"))?;
    let too_short = || anyhow!("{shown}: a secret has at least {} bytes", HmacSecret::SHORTEST);
    HmacSecret::new(text.trim()).ok_or_else(too_short)
}

impl Signer {
    pub(super) fn open(args: &SignerArgs) -> anyhow::Result<Self> {
        match (&args.secret_file, &args.private_key) {
            (Some(path), _) => read_secret(path).map(Self::Hmac),
            (None, Some(path)) => Self::read(path),
            (None, None) => bail!("name a --secret-file or a --private-key"),
        }
    }

    /// Reads a private key. Errors show nothing of it.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let pem = std::fs::read(path).map_err(|error| anyhow!("cannot read {shown}: {error}"))?;
        let Ok(der) = PrivatePkcs8KeyDer::from_pem_slice(&pem) else {
            bail!("{shown} is not a private key in PEM format: expected PKCS #8 ('-----BEGIN PRIVATE KEY-----')");
        };
        let der = der.secret_pkcs8_der();
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(Self::Ed25519(key));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new()) {
            return Ok(Self::P256(key));
        }
        match RsaKeyPair::from_pkcs8(der) {
            Ok(key) => Ok(Self::Rsa(key)),
            Err(_) => bail!("{shown}: the key cannot be used: expected Ed25519, P-256, or RSA with 2048 bits or more"),
        }
    }

    pub(super) fn algorithm(&self) -> &'static str {
        match self {
            Signer::Hmac(_) => "HS256",
            Signer::Ed25519(_) => "EdDSA",
            Signer::P256(_) => "ES256",
            Signer::Rsa(_) => "RS256",
        }
    }

    /// Returns the public key. A secret has none.
    pub(super) fn public_key(&self) -> Option<PublicKey> {
        match self {
            Signer::Hmac(_) => None,
            Signer::Ed25519(key) => key.public_key().as_ref().try_into().ok().map(PublicKey::Ed25519),
            Signer::P256(key) => key.public_key().as_ref().try_into().ok().map(PublicKey::P256),
            Signer::Rsa(key) => {
                let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                Some(PublicKey::Rsa { n: n.into(), e: e.into() })
            }
        }
    }

    pub(super) fn sign(&self, text: &[u8]) -> anyhow::Result<Vec<u8>> {
        let failed = |_| anyhow!("the text cannot be signed: the system has no random numbers");
        match self {
            Signer::Hmac(secret) => Ok(secret.sign(text)),
            Signer::Ed25519(key) => Ok(key.sign(text).as_ref().to_vec()),
            Signer::P256(key) => key.sign(&SystemRandom::new(), text).map(|of| of.as_ref().to_vec()).map_err(failed),
            Signer::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).map_err(failed)?;
                Ok(signature)
            }
        }
    }
}
