//! What others meet: the address, the certificate, keys, and a service that runs already.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rolltop_client::{Method, Service};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use crate::access::{Grant, Key};
use crate::board::Timestamp;
use crate::config::Config;
use crate::tls::Tls;

use super::finding::{Finding, Findings};

/// The time to wait for a service.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time before the end of a key from which on it should be replaced, in milliseconds.
const SOON: i64 = 14 * 86_400_000;

pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let mut keys = Findings::about("keys");
    look_at_keys(&mut keys, config, Timestamp::from_millis(chrono::Utc::now().timestamp_millis()));
    let mut tls = Findings::about("tls");
    match config.tls.as_ref().map(Tls::open) {
        None => {}
        Some(Ok(_)) => tls.good("the certificate and its key can be used; when it ends is to be watched from outside"),
        Some(Err(error)) => tls.wrong(error.to_string()),
    }
    let mut service = Findings::about("service");
    look_at_address(&mut service, config).await;
    [keys.found, tls.found, service.found].into_iter().flatten().collect()
}

/// Judges the keys of the file. Those in the store are not seen.
fn look_at_keys(findings: &mut Findings, config: &Config, now: Timestamp) {
    let keys = &config.keys.keys;
    let is_open = config.anonymous.covers(&Grant::all());
    if config.is_for_this_machine_only && keys.is_empty() {
        findings.good("no keys: on this machine everybody may do everything, and others cannot reach it");
    } else if is_open {
        findings.warning(format!(
            "everybody who reaches {} may do everything (anonymous = \"all\"): make keys with `rolltop keys hash`",
            config.listen
        ));
    } else if keys.is_empty() && !config.is_anonymous_explicit {
        findings.warning(
            "there are no keys in the file: unless the store has some, the service does not start on this address; `rolltop keys \
             hash` makes the first one",
        );
    } else {
        findings.good(format!("{} keys in the file", keys.len()));
    }
    for Key { name, expires_at, .. } in keys {
        match expires_at.map(|end| end.millis() - now.millis()) {
            Some(..=0) => {
                findings.warning(format!("the key '{name}' has ended: replace it, or remove it from the file"))
            }
            Some(left @ 1..SOON) => {
                findings.warning(format!("the key '{name}' ends in {} days: make another one", left / 86_400_000));
            }
            _ => {}
        }
    }
}

/// Asks who listens on the address. If nobody does, looks whether a service could.
async fn look_at_address(findings: &mut Findings, config: &Config) {
    let address = reachable(config.listen);
    let is_taken = matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)));
    if !is_taken {
        return match TcpListener::bind(config.listen).await {
            Ok(_) => findings.good(format!("nobody listens on {}: a service can be started there", config.listen)),
            Err(error) => {
                findings.wrong(format!(
                    "nobody can listen on {}: {error}; choose another address with --listen",
                    config.listen
                ));
            }
        };
    }
    if config.tls.is_some() {
        return findings.good(format!(
            "something listens on {}: `rolltop healthcheck --ready --url https://… --connect-to {}` asks how it is",
            config.listen,
            address.ip()
        ));
    }
    let url = format!("http://{address}");
    let service = match Service::builder(&url).repeat_for(Duration::ZERO).timeout(PATIENCE).build() {
        Ok(service) => service,
        Err(error) => return findings.wrong(format!("{url} cannot be asked: {error}")),
    };
    match service.request::<Value>(Method::GET, "/readyz").await {
        Ok(ready) => match ready.get("warnings").and_then(Value::as_array).filter(|warnings| !warnings.is_empty()) {
            None => findings.good(format!("the service on {} is ready", config.listen)),
            Some(warnings) => warnings.iter().for_each(|warning| {
                findings.warning(format!("the service on {} says: {}", config.listen, warning.as_str().unwrap_or_default()));
            }),
        },
        Err(error) if error.status().is_some() => {
            findings.wrong(format!("the service on {} is not ready: {}", config.listen, error.detail()));
        }
        Err(error) => findings.wrong(format!(
            "something listens on {} that does not answer as Rolltop does: {error}; stop it, or choose another address with --listen",
            config.listen
        )),
    }
}

/// Returns the address at which this machine reaches what listens on another one.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
