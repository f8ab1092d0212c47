//! TLS: the certificate of the service, and its replacement while the service runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::TlsFiles;

/// Whether the files of the certificate and its key are not valid at the moment, so that an earlier pair is used.
pub const RELOAD_FAILED: &str = "rolltop_tls_reload_failed";

/// The interval at which the files are read again.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The reason why a certificate and its key cannot be used. Nothing of a key is shown.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{setting}: cannot read {}: {source}", path.display())]
    Unreadable { setting: &'static str, path: PathBuf, source: std::io::Error },
    #[error(
        "tls_cert: {} is not a file of certificates in PEM format: expected '-----BEGIN CERTIFICATE-----' with the \
         certificate of the service, then those of the authorities between it and the root",
        .0.display()
    )]
    NoCertificate(PathBuf),
    #[error("tls_cert: certificate {number} of {} cannot be parsed: {source}", path.display())]
    Certificate { path: PathBuf, number: usize, source: rustls::Error },
    #[error(
        "tls_key: {} is not a private key in PEM format: expected PKCS #8 ('-----BEGIN PRIVATE KEY-----'), PKCS #1 or \
         SEC 1, without a password",
        .0.display()
    )]
    NoKey(PathBuf),
    #[error(
        "tls_key: the key in {} cannot be used: expected RSA with 2048 to 8192 bits, ECDSA with P-256 or P-384, or \
         Ed25519",
        .0.display()
    )]
    UnusableKey(PathBuf),
    #[error("tls_key: the key in {} does not belong to the certificate in {}", .0.key.display(), .0.cert.display())]
    OtherKey(TlsFiles),
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

/// The certificate with which new connections are answered, and the files that it comes from.
pub struct Tls {
    files: TlsFiles,
    provider: Arc<CryptoProvider>,
    used: Arc<Used>,
    /// What the files had when they were last judged.
    judged: LoadedPair,
}

/// The content of the two files.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    cert: Vec<u8>,
    key: Vec<u8>,
}

/// The content of the files, or why they cannot be read.
type LoadedPair = Result<Pair, String>;

/// The certificate in use, with its key.
#[derive(Debug)]
struct Used(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Used {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl Tls {
    /// Reads the certificate and its key.
    pub fn open(files: &TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let pair = Pair::read(files)?;
        let used = Arc::new(Used(RwLock::new(pair.parse(files, &provider)?.into())));
        Ok(Self { files: files.clone(), provider, used, judged: Ok(pair) })
    }

    /// Returns what the server needs: TLS 1.2 and 1.3, without certificates of clients. The server adds the protocol
    /// HTTP/1.1.
    pub fn server_config(&self) -> Result<ServerConfig, TlsError> {
        let config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?;
        Ok(config.with_no_client_auth().with_cert_resolver(self.used.clone()))
    }

    /// Looks at the files again and again, and replaces the certificate when their content has changed. Never ends.
    pub async fn follow(mut self) {
        metrics::describe_gauge!(
            RELOAD_FAILED,
            "1 if the files of the certificate are not valid, so that it is not replaced"
        );
        metrics::gauge!(RELOAD_FAILED).set(0.0);
        let mut before = self.judged.clone();
        loop {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let files = self.files.clone();
            let read = move || Pair::read(&files).map_err(|error| error.to_string());
            let Ok(found) = tokio::task::spawn_blocking(read).await else { continue };
            // Two files cannot be replaced at once. What two looks find was not read between the two.
            if found == before && found != self.judged {
                self.judge(found.clone());
            }
            before = found;
        }
    }

    /// Uses the pair that was found if it is valid. Otherwise logs why it is not.
    fn judge(&mut self, found: LoadedPair) {
        let parse = |pair: &Pair| pair.parse(&self.files, &self.provider).map_err(|error| error.to_string());
        let failed = match found.as_ref().map_err(String::clone).and_then(parse) {
            Ok(key) => {
                *self.used.0.write() = key.into();
                tracing::info!("the certificate in {} is used from now on", self.files.cert.display());
                0.0
            }
            Err(why) => {
                tracing::error!("the certificate is not replaced, and the previous one is used: {why}");
                1.0
            }
        };
        metrics::gauge!(RELOAD_FAILED).set(failed);
        self.judged = found;
    }
}

impl Pair {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |setting, path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::Unreadable { setting, path: path.to_owned(), source })
        };
        Ok(Self { cert: read("tls_cert", &files.cert)?, key: read("tls_key", &files.key)? })
    }

    /// Parses the certificates and the key, and checks that they belong together.
    fn parse(&self, files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.cert).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::NoCertificate(files.cert.clone()))?;
        for (certificate, number) in chain.iter().zip(1..) {
            let invalid = |source| TlsError::Certificate { path: files.cert.clone(), number, source };
            ParsedCertificate::try_from(certificate).map_err(invalid)?;
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| TlsError::NoKey(files.key.clone()))?;
        let key = provider.key_provider.load_private_key(key);
        let certified = CertifiedKey::new(chain, key.map_err(|_| TlsError::UnusableKey(files.key.clone()))?);
        certified.keys_match().map_err(|_| TlsError::OtherKey(files.clone()))?;
        Ok(certified)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        (cert.pem(), key.serialize_pem())
    }

    #[test]
    fn a_certificate_is_used_with_its_key_only() {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
        let open = |cert: &str, key: &str| {
            std::fs::write(&files.cert, cert).unwrap();
            std::fs::write(&files.key, key).unwrap();
            Tls::open(&files).and_then(|tls| tls.server_config()).map(drop).map_err(|error| error.to_string())
        };
        let ((cert, key), (other_cert, other_key)) = (pair(), pair());
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let encrypted = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
        for (cert, key, says) in [
            (&*cert, &*key, None),
            (&format!("{cert}{other_cert}"), &key, None),
            (&format!("{cert}{key}"), &format!("{cert}{key}"), None),
            (&cert, &other_key, Some("tls_key: the key in")),
            (&format!("{other_cert}{cert}"), &key, Some("does not belong to the certificate in")),
            (&key, &key, Some("tls_cert: ")),
            ("", &key, Some("is not a file of certificates in PEM format")),
            (&cert[..cert.len() / 2], &key, Some("is not a file of certificates in PEM format")),
            (&format!("{cert}{damaged}"), &key, Some("tls_cert: certificate 2 of ")),
            (&cert, &cert, Some("tls_key: ")),
            (&cert, "", Some("is not a private key in PEM format")),
            (&cert, &encrypted, Some("without a password")),
            (&cert, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", Some("cannot be used")),
        ] {
            let said = open(cert, key);
            match says {
                None => assert_eq!(said, Ok(())),
                Some(says) => assert!(said.as_ref().unwrap_err().contains(says), "{says}: {said:?}"),
            }
        }
        std::fs::remove_file(&files.key).unwrap();
        let said = Tls::open(&files).err().unwrap().to_string();
        assert!(said.starts_with("tls_key: cannot read ") && said.contains("key.pem"), "{said}");
    }
}
