//! The clients among which what is shared is divided.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A client: its address, or for IPv6 its network of 64 bits, because one client has all addresses of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client(IpAddr);

impl Client {
    /// Returns the client with this address. Those without an address count as one client.
    pub(super) fn at(address: Option<IpAddr>) -> Self {
        Self(match address.map(|address| address.to_canonical()) {
            None => Ipv4Addr::UNSPECIFIED.into(),
            Some(IpAddr::V6(address)) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            Some(address) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let address = |text: &str| Client::at(Some(text.parse().unwrap()));
        assert_eq!(address("2001:db8:1:2::3"), address("2001:db8:1:2:ffff::4"));
        assert_ne!(address("2001:db8:1:2::3"), address("2001:db8:1:3::3"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
    }

    #[test]
    fn a_client_is_an_address_or_a_network_of_64_bits() {
        let at = |text: &str| Client::at(Some(text.parse().unwrap()));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.2"), at("192.0.2.1"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:0:0:2"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
    }
}
