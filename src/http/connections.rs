//! The connections of all clients, and the share of each: a client that opens as many as it can must leave some to the
//! others.
//!
//! A connection beyond the share of its client is closed before anything is read from it. The client is the address of
//! the connection; trusted proxies have no share, because their connections are those of many clients.

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use metrics::{Counter, counter, describe_counter};
use parking_lot::Mutex;
use socket2::SockRef;

use super::client::Client;
use super::outermost;
use super::proxies::Network;
use super::shares::Shares;

/// A counter: connections that were closed because their client had its share.
const REFUSED: &str = "rolltop_http_refused_connections_total";

/// The shortest time between two log lines about refused connections.
const PAUSE: Duration = Duration::from_secs(60);

/// The connections that are open.
pub struct Connections {
    shares: Shares,
    trusted: Vec<Network>,
    refused: Counter,
    /// When a refused connection was last logged.
    logged: Mutex<Option<Instant>>,
}

/// A connection of a client, until it is dropped.
struct Open {
    connections: Arc<Connections>,
    client: Client,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.shares.change(self.client, 1, 0);
    }
}

impl Connections {
    /// Returns the shares of `most` connections. Those of trusted proxies are not counted.
    pub fn new(most: usize, trusted: Vec<Network>) -> Arc<Self> {
        describe_counter!(
            REFUSED,
            "Connections that were closed because their client had its share of all connections"
        );
        let (shares, refused) = (Shares::new(most), counter!(REFUSED));
        Arc::new(Self { shares, trusted, refused, logged: Mutex::default() })
    }

    /// Counts a connection from an address as open until what is returned is dropped: `None` for a trusted proxy. Fails
    /// if the client has its share.
    fn open(self: &Arc<Self>, address: IpAddr) -> Result<Option<Open>, ()> {
        let address = address.to_canonical();
        if self.trusted.iter().any(|network| network.contains(address)) {
            return Ok(None);
        }
        let client = Client::at(Some(address));
        match self.shares.change(client, 0, 1) {
            Some(_) => Ok(Some(Open { connections: self.clone(), client })),
            None => Err(()),
        }
    }

    fn note_refused(&self, address: IpAddr) {
        self.refused.increment(1);
        let mut logged = self.logged.lock();
        if logged.is_none_or(|last| last.elapsed() >= PAUSE) {
            *logged = Some(Instant::now());
            tracing::warn!(
                client = %address, most = self.shares.limit(),
                "a connection was closed, because its client has as many as it leaves to others; if it is a proxy, \
                 name it in 'trusted_proxies'"
            );
        }
    }
}

/// Prepares each new connection. Give it to the server:
/// `HttpServer::new(…).on_connect(http::on_connect(Connections::new(…)))`.
pub fn on_connect(connections: Arc<Connections>) -> impl Fn(&dyn Any, &mut Extensions) + Send + Sync + 'static {
    move |stream, data| {
        outermost::prepare(data);
        let tls = stream.downcast_ref::<TlsStream<TcpStream>>().map(|stream| stream.get_ref().0);
        let Some(stream) = tls.or_else(|| stream.downcast_ref()) else { return };
        let Ok(address) = stream.peer_addr() else { return };
        match connections.open(address.ip()) {
            Ok(open) => {
                if let Some(open) = open {
                    data.insert(open);
                }
            }
            Err(()) => {
                connections.note_refused(address.ip());
                // The server finds the connection at its end. If it cannot be shut down, it has ended already.
                SockRef::from(stream).shutdown(std::net::Shutdown::Both).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    #[test]
    fn a_client_that_takes_all_it_can_leaves_connections_to_others() {
        let connections = Connections::new(100, Vec::new());
        let take_all = |number| std::iter::from_fn(|| connections.open(address(number)).ok()).collect::<Vec<_>>();
        let (first, second) = (take_all(1), take_all(2));
        assert_eq!((first.len(), second.len()), (50, 25));
        assert!(connections.open(address(3)).is_ok(), "the next client is served");
        drop((first, second));
        assert!(connections.shares.is_free());
    }

    #[test]
    fn trusted_proxies_have_no_share() {
        let connections = Connections::new(4, vec!["192.0.2.1".parse().unwrap()]);
        assert!((0..100).all(|_| connections.open(address(1)).is_ok()));
        let other: Vec<_> = (0..3).map(|_| connections.open(address(2))).collect();
        assert_eq!(other.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
        // An IPv4 address of a socket of IPv6 is the same client.
        assert!(connections.open("::ffff:192.0.2.2".parse().unwrap()).is_err());
    }
}
