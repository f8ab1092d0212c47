//! An end in front of a broker that asks for TLS, or for a proof of who a client is, and then passes on what it says.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use krafka::testing::FakeBroker;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, KeyPair};
use ring::{digest, hmac, pbkdf2};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

const HANDSHAKE: u16 = 17;
const AUTHENTICATE: u16 = 36;
const UNSUPPORTED: i16 = 33;
const FAILED: i16 = 58;
const ROUNDS: NonZeroU32 = NonZeroU32::new(4_096).unwrap();

/// What is asked for.
#[derive(Clone)]
pub enum ClientCheck {
    /// Nothing: the broker asks itself.
    Nothing,
    Tls(Arc<ServerConfig>),
    /// A password, by SCRAM with this digest, which RFC 5802 describes.
    Scram(&'static str, &'static str),
    /// A token (RFC 7628).
    Bearer(&'static str),
}

/// The end, which the broker says is its own.
pub struct Guard {
    pub address: String,
    /// How often a client has come.
    pub tries: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Guard {
    /// Begins to stand before a broker.
    pub async fn before(broker: &FakeBroker, demand: ClientCheck) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let behind = broker.broker_addr(0).unwrap();
        broker.with_state(|state| state.brokers[0].port = address.port().into());
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = tries.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let demand = demand.clone();
                tokio::spawn(async move { admit(client, demand, behind).await });
            }
        });
        Self { address: address.to_string(), tries, task }
    }
}

/// Passes on what a client says who shows what is demanded.
async fn admit(mut client: TcpStream, demand: ClientCheck, broker: SocketAddr) -> Option<()> {
    match demand {
        ClientCheck::Nothing => {}
        ClientCheck::Tls(config) => {
            let client = TlsAcceptor::from(config).accept(client).await.ok()?;
            return pass(client, broker).await;
        }
        ClientCheck::Scram(mechanism, password) => {
            handshake(&mut client, mechanism).await?;
            scram(&mut client, mechanism, password).await?;
        }
        ClientCheck::Bearer(token) => {
            handshake(&mut client, "OAUTHBEARER").await?;
            let (id, first) = said(&mut client).await?;
            let is_right = first == format!("n,,\u{1}auth=Bearer {token}\u{1}\u{1}");
            say(&mut client, id, if is_right { Ok("") } else { Err("invalid token") }).await?;
        }
    }
    pass(client, broker).await
}

async fn pass(mut client: impl AsyncRead + AsyncWrite + Unpin, broker: SocketAddr) -> Option<()> {
    let mut broker = TcpStream::connect(broker).await.ok()?;
    tokio::io::copy_bidirectional(&mut client, &mut broker).await.ok().map(drop)
}

/// An authority that signs certificates.
pub struct Authority {
    certificate: Certificate,
    key: KeyPair,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { certificate: params.self_signed(&key).unwrap(), key }
    }

    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Returns a certificate for a name and its key.
    pub fn sign(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.certificate, &self.key).unwrap(), key)
    }

    /// Returns the TLS of a broker whose certificate this authority has signed, and perhaps those of its clients, too.
    pub fn broker(&self, asks_clients: bool) -> ClientCheck {
        let (certificate, key) = self.sign("127.0.0.1");
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = match asks_clients {
            true => config.with_client_cert_verifier(verifier),
            false => config.with_no_client_auth(),
        };
        let chain = vec![certificate.der().clone()];
        ClientCheck::Tls(Arc::new(config.with_single_cert(chain, key.serialize_der().try_into().unwrap()).unwrap()))
    }
}

/// Agrees on a mechanism.
async fn handshake(client: &mut TcpStream, expected: &str) -> Option<()> {
    let (id, body) = request(client, HANDSHAKE).await?;
    let code: i16 = if body == short(expected) { 0 } else { UNSUPPORTED };
    let known = [&1_i32.to_be_bytes()[..], &short(expected)].concat();
    answer(client, id, &[&code.to_be_bytes()[..], &known].concat()).await?;
    (code == 0).then_some(())
}

async fn scram(client: &mut TcpStream, mechanism: &str, password: &str) -> Option<()> {
    let (digest, derived, hash) = match mechanism {
        "SCRAM-SHA-256" => (&digest::SHA256, pbkdf2::PBKDF2_HMAC_SHA256, hmac::HMAC_SHA256),
        _ => (&digest::SHA512, pbkdf2::PBKDF2_HMAC_SHA512, hmac::HMAC_SHA512),
    };
    let (id, first) = said(client).await?;
    let bare = first.strip_prefix("n,,")?;
    let nonce = format!("{}server", bare.split_once(",r=")?.1);
    let salt = b"salt of the user";
    let challenge = format!("r={nonce},s={},i={ROUNDS}", BASE64.encode(salt));
    say(client, id, Ok(&challenge)).await?;
    let (id, last) = said(client).await?;
    let (without, proof) = last.rsplit_once(",p=")?;
    let mut salted = vec![0; digest.output_len()];
    pbkdf2::derive(derived, ROUNDS, salt, password.as_bytes(), &mut salted);
    let sign = |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(hash, key), text).as_ref().to_vec();
    let all = format!("{bare},{challenge},{without}");
    let client_key = sign(&salted, b"Client Key");
    let signature = sign(digest::digest(digest, &client_key).as_ref(), all.as_bytes());
    let expected: Vec<u8> = client_key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
    let is_right = without == format!("c=biws,r={nonce}") && BASE64.decode(proof).ok()? == expected;
    if !is_right {
        return say(client, id, Err("invalid credentials")).await;
    }
    let signature = sign(&sign(&salted, b"Server Key"), all.as_bytes());
    say(client, id, Ok(&format!("v={}", BASE64.encode(signature)))).await
}

/// Returns the id of a request and what it says after its header. `None` if it is another one.
async fn request(client: &mut TcpStream, expected: u16) -> Option<(i32, Vec<u8>)> {
    let length = usize::try_from(client.read_i32().await.ok()?).ok().filter(|length| *length < 65_536)?;
    let mut frame = vec![0; length];
    client.read_exact(&mut frame).await.ok()?;
    let mut rest = frame.as_slice();
    let (key, _version, id) = (rest.read_u16().await.ok()?, rest.read_i16().await.ok()?, rest.read_i32().await.ok()?);
    let name = usize::try_from(rest.read_i16().await.ok()?).unwrap_or(0);
    (key == expected).then(|| (id, rest[name..].to_vec()))
}

/// Returns what a client says in its proof.
async fn said(client: &mut TcpStream) -> Option<(i32, String)> {
    let (id, body) = request(client, AUTHENTICATE).await?;
    Some((id, String::from_utf8(body.get(4..)?.to_vec()).ok()?))
}

/// Says the next word of the proof, or why it is none. `None` in that case.
async fn say(client: &mut TcpStream, id: i32, said: Result<&str, &str>) -> Option<()> {
    let (code, why, word) = match said {
        Ok(word) => (0, (-1_i16).to_be_bytes().to_vec(), word),
        Err(why) => (FAILED, short(why), ""),
    };
    let length = i32::try_from(word.len()).unwrap().to_be_bytes();
    let body = [&code.to_be_bytes()[..], &why, &length, word.as_bytes(), &0_i64.to_be_bytes()].concat();
    answer(client, id, &body).await?;
    said.is_ok().then_some(())
}

async fn answer(client: &mut TcpStream, id: i32, body: &[u8]) -> Option<()> {
    let length = i32::try_from(4 + body.len()).unwrap();
    client.write_all(&[&length.to_be_bytes()[..], &id.to_be_bytes(), body].concat()).await.ok()
}

fn short(text: &str) -> Vec<u8> {
    [&i16::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat()
}
