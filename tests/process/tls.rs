//! Tests of https: versions and protocols, the commands as clients, the replacement of the certificate, and clients
//! that do not complete a handshake.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use serde_json::{Value, json};

use crate::event_stream::Follower;
use crate::running::{Running, program};
use crate::waiting::{PATIENCE, Wait};

/// With a certificate other machines are expected, so callers without a key may do nothing by default.
const TLS: [&str; 6] = ["--tls-cert", "server.pem", "--tls-key", "server.key", "--anonymous", "all"];

/// A certificate authority. Its certificate is in `ca.pem`.
pub struct Authority {
    folder: PathBuf,
    certificate: Certificate,
    key: KeyPair,
}

impl Authority {
    pub fn new(folder: &Path) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("ca.pem"), certificate.pem()).unwrap();
        Self { folder: folder.to_owned(), certificate, key }
    }

    /// Returns a certificate for these names, and its key.
    fn issue(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        (params.signed_by(&key, &self.certificate, &self.key).unwrap().pem(), key.serialize_pem())
    }

    /// Writes such a certificate and its key where the service reads them. Returns the certificate.
    pub fn install(&self, names: &[&str]) -> String {
        let (certificate, key) = self.issue(names);
        self.write("server.pem", &certificate);
        self.write("server.key", &key);
        certificate
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.join(file), text).unwrap();
    }

    fn client(&self) -> reqwest::Client {
        let _ = ring::default_provider().install_default();
        let trusted = reqwest::Certificate::from_pem(self.certificate.pem().as_bytes()).unwrap();
        reqwest::Client::builder().tls_built_in_root_certs(false).add_root_certificate(trusted).build().unwrap()
    }

    /// Starts the service with a certificate of this authority.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut service = Running::start(&self.folder, &[&TLS, args].concat());
        assert!(service.base.starts_with("https://"), "{}", service.base);
        service.client = self.client();
        service
    }

    /// Makes a handshake. Returns the version, the protocol and the certificate of the service.
    fn shake_hands(
        &self,
        address: &str,
        version: &'static SupportedProtocolVersion,
        protocols: &[&str],
    ) -> Result<(ProtocolVersion, Option<Vec<u8>>, CertificateDer<'static>), std::io::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_protocol_versions(&[version]).unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let mut connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        let certificate = connection.peer_certificates().unwrap()[0].clone().into_owned();
        Ok((connection.protocol_version().unwrap(), connection.alpn_protocol().map(<[u8]>::to_vec), certificate))
    }
}

/// Sends bytes. Returns everything that the service answers until it closes the connection.
fn answer(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}; read before: {answer:?}"),
        _ => answer,
    }
}

/// Returns the first message of a client that speaks TLS 1.1 at most.
fn hello_of_tls_1_1() -> Vec<u8> {
    // Version, 32 random bytes, no session, one cipher suite, no compression, signatures by ECDSA.
    let signatures = [0, 8, 0, 13, 0, 4, 0, 2, 4, 3];
    let body = [&[3, 2][..], &[7; 32], &[0], &[0, 2, 0xc0, 9], &[1, 0], &signatures].concat();
    let length = u8::try_from(body.len()).unwrap();
    [&[0x16, 3, 1, 0, length + 4, 1, 0, 0, length][..], &body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_1_2_and_1_3_are_spoken_with_http_1_1() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.install(&["localhost"]);
    let service = authority.start(&[]);
    let address = service.address();
    for (version, expected) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        let (spoken, protocol, _) = authority.shake_hands(address, version, &["h2", "http/1.1"]).unwrap();
        assert_eq!((spoken, protocol.as_deref()), (expected, Some(&b"http/1.1"[..])));
        assert_eq!(authority.shake_hands(address, version, &[]).unwrap().1, None);
        let refused = authority.shake_hands(address, version, &["h2"]).unwrap_err().to_string();
        assert!(refused.contains("NoApplicationProtocol"), "{refused}");
    }
    // A fatal alert: protocol_version.
    let alert = answer(address, &hello_of_tls_1_1());
    assert!(alert.first() == Some(&0x15) && alert.ends_with(&[2, 70]), "{alert:?}");
    // HTTP without TLS is not answered, and does not wait for anything.
    let said = answer(address, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_uploads_and_exports_work_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.install(&["127.0.0.1"]);
    let mut service = authority.start(&[]);
    let follow = format!("{}/v1/boards/hot-posts/stream", service.base);
    let mut follower = Follower::reading(service.client.get(follow).send().await.unwrap());
    assert_eq!(follower.expect("page").await.data["items"], json!([]));
    let count = 200_000;
    let lines = (0..count).map(|n| format!("{{\"subject\":\"post-{n}\",\"amount\":{}}}\n", n + 1)).collect();
    assert_eq!(service.ndjson("hot-posts", lines).await["accepted"], count);
    let top = |data: &Value| data["rows"][0]["subject"].clone();
    let wait = Wait::begin("the highest subject in the stream");
    while top(&follower.expect("change").await.data) != json!(format!("post-{}", count - 1)) {
        wait.rest("others").await;
    }
    let export = format!("{}/v1/boards/hot-posts/rankings", service.base);
    let export = service.client.get(export).header("accept", "application/x-ndjson").send().await.unwrap();
    let text = export.text().await.unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["complete"], &last["lines"]), (&json!(true), &json!(count)), "{last}");
    // A stop ends the stream, and does not wait for its client.
    assert!(tokio::task::block_in_place(|| service.terminate()).success());
    while follower.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_trust_the_given_authority_only() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.install(&["rolltop.example"]);
    std::fs::write(folder.path().join("log.ndjson"), "{\"post\":\"a\"}\n{\"post\":\"b\"}\n").unwrap();
    let service = authority.start(&["--backup-dir", "backups", "--hosts", "rolltop.example"]);
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = program(folder.path());
        command.args(args).envs(environment.iter().copied());
        let output = tokio::task::block_in_place(|| command.output()).unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let url = service.base.replace("127.0.0.1", "rolltop.example");
    let server = ["--url", &url, "--connect-to", "127.0.0.1", "--ca", "ca.pem"];
    let replay = ["replay", "log.ndjson", "--board", "hot-posts", "--subject", "post"];
    for command in [&["healthcheck"][..], &["healthcheck", "--ready"], &["backup"], &replay] {
        let (succeeded, said) = run(&[command, &server[..]].concat(), &[]);
        assert!(succeeded, "{command:?}: {said}");
        let (succeeded, said) = run(&[command, &server[..4]].concat(), &[]);
        assert!(!succeeded && said.to_lowercase().contains("certificate"), "{command:?}: {said}");
    }
    let environment = [("ROLLTOP_URL", url.as_str()), ("ROLLTOP_CA", "ca.pem"), ("ROLLTOP_CONNECT_TO", "127.0.0.1")];
    assert!(run(&["healthcheck"], &environment).0);
    for (ca, says) in [("none.pem", "--ca: cannot read none.pem"), ("server.key", "contains no certificate")] {
        let (succeeded, said) = run(&["healthcheck", "--url", &url, "--ca", ca], &[]);
        assert!(!succeeded && said.contains(says), "{said}");
    }
    // The certificate is not that of this host.
    let (succeeded, said) = run(&["healthcheck", "--url", &service.base, "--ca", "ca.pem"], &[]);
    assert!(!succeeded && said.to_lowercase().contains("not valid for name"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_certificate_is_used_and_an_invalid_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    let first = authority.install(&["localhost"]);
    let service = authority.start(&[]);
    // A connection from before.
    service.client.get(format!("{}/metrics", service.base.replace("127.0.0.1", "localhost"))).send().await.unwrap();
    let expect = async |pem: &str| {
        let wait = Wait::begin("the certificate");
        let expected = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        while authority.shake_hands(service.address(), &TLS13, &[]).unwrap().2 != expected {
            wait.rest("another certificate").await;
        }
    };
    let errors = async |count: usize| {
        let wait = Wait::begin("errors in the log");
        while service.log().iter().filter(|line| line.contains("ERROR")).count() < count {
            wait.rest(service.log()).await;
        }
        // None of them is repeated.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let log = service.log();
        let errors: Vec<&String> = log.iter().filter(|line| line.contains("ERROR")).collect();
        assert_eq!(errors.len(), count, "{errors:#?}");
        errors.last().copied().cloned().unwrap_or_default()
    };
    let reload_failed = async || {
        let url = format!("{}/metrics", service.base.replace("127.0.0.1", "localhost"));
        let text = authority.client().get(url).send().await.unwrap().text().await.unwrap();
        text.lines().find_map(|line| line.strip_prefix("rolltop_tls_reload_failed ").map(str::to_owned)).unwrap()
    };
    expect(&first).await;
    assert_eq!(reload_failed().await, "0");
    let second = authority.install(&["localhost"]);
    expect(&second).await;
    assert_eq!(errors(0).await, "");
    assert_eq!(reload_failed().await, "0");

    let (third, third_key) = authority.issue(&["localhost"]);
    authority.write("server.pem", &third);
    assert!(errors(1).await.contains("does not belong to the certificate"));
    expect(&second).await;
    assert_eq!(reload_failed().await, "1");
    authority.write("server.key", &third_key);
    expect(&third).await;
    assert_eq!(reload_failed().await, "0");

    authority.write("server.pem", "no certificate");
    assert!(errors(2).await.contains("is not a file of certificates in PEM format"));
    std::fs::remove_file(folder.path().join("server.pem")).unwrap();
    assert!(errors(3).await.contains("cannot read server.pem"));
    expect(&third).await;
    let last = authority.install(&["localhost"]);
    expect(&last).await;
    assert_eq!(errors(3).await, service.log().iter().rfind(|line| line.contains("ERROR")).cloned().unwrap());
}

/// More than the 256 for each worker at which the library stops accepting by default.
#[tokio::test(flavor = "multi_thread")]
async fn half_open_handshakes_do_not_delay_others() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.install(&["127.0.0.1"]);
    let service = authority.start(&["--workers", "2"]);
    let mut attempts = 0;
    let idle = loop {
        let idle: Vec<TcpStream> = (0..700)
            .map(|n| {
                let mut socket = TcpStream::connect(service.address()).unwrap();
                // Half of them have begun a handshake.
                socket.write_all(if n % 2 == 0 { b"" } else { b"\x16\x03\x01\x02\x00\x01" }).unwrap();
                socket
            })
            .collect();
        let answer = authority.client().get(format!("{}/readyz", service.base)).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        let is_open = |mut socket: &TcpStream| {
            socket.set_nonblocking(true).unwrap();
            matches!(socket.read(&mut [0; 64]), Err(error) if error.kind() == ErrorKind::WouldBlock)
        };
        if idle.iter().all(is_open) {
            break idle;
        }
        // The machine is too busy to answer before the first handshake has timed out.
        attempts += 1;
        assert!(attempts < 5, "handshakes delay others until they time out");
    };
    let wait = Wait::begin("the end of the handshakes");
    for mut socket in &idle {
        while matches!(socket.read(&mut [0; 64]), Err(error) if error.kind() == ErrorKind::WouldBlock) {
            wait.rest("an open connection").await;
        }
    }
}

#[test]
fn a_start_without_a_valid_pair_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.install(&["localhost"]);
    authority.write("other.key", &authority.issue(&["localhost"]).1);
    for (cert, key, says) in [
        (Some("server.pem"), None, "tls_key: not set, but tls_cert is"),
        (None, Some("server.key"), "tls_cert: not set, but tls_key is"),
        (Some("none.pem"), Some("server.key"), "tls_cert: cannot read none.pem"),
        (Some("server.pem"), Some("none.key"), "tls_key: cannot read none.key"),
        (Some("server.key"), Some("server.key"), "tls_cert: server.key is not a file of certificates in PEM format"),
        (Some("server.pem"), Some("server.pem"), "tls_key: server.pem is not a private key in PEM format"),
        (Some("server.pem"), Some("other.key"), "tls_key: the key in other.key does not belong to the certificate in"),
    ] {
        let mut command = program(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.args(cert.iter().flat_map(|path| ["--tls-cert", path]));
        command.args(key.iter().flat_map(|path| ["--tls-key", path]));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(says), "{cert:?} {key:?}: {said}");
    }
    assert!(!folder.path().join("data").exists());
}
