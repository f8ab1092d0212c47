//! The address of a client behind proxies: what a trusted proxy says of it.
//!
//! A proxy adds the address of its own client to the end of a list in a header. So the list is read from its end, past
//! the addresses of trusted proxies: the first other address is that of the client. What is before it, the client may
//! have written itself.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use actix_web::dev::RequestHead;
use actix_web::http::header::{FORWARDED, HeaderName};

/// An address, or a network such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// The number of leading bits that all addresses of the network share.
    prefix: u32,
}

/// A text is not an address or a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an address or a network, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32, without bits after the prefix"
)]
pub struct NetworkError;

/// Returns the number of bits of an address, and the address as a number.
fn bits(address: IpAddr) -> (u32, u128) {
    match address {
        IpAddr::V4(address) => (32, address.to_bits().into()),
        IpAddr::V6(address) => (128, address.to_bits()),
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let all = bits(address).0;
        let prefix = prefix.map_or(Ok(all), |text| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse().map_err(|_| NetworkError) } else { Err(NetworkError) }
        })?;
        // An IPv4 address that is written as one of IPv6.
        let canonical = address.to_canonical();
        let (len, number) = bits(canonical);
        let prefix = prefix.checked_sub(all - len).filter(|prefix| *prefix <= len).ok_or(NetworkError)?;
        let is_whole = number.checked_shl(128 - (len - prefix)).unwrap_or(0) == 0 || prefix == len;
        if is_whole { Ok(Self { address: canonical, prefix }) } else { Err(NetworkError) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Network {
    /// Returns whether the network has this address, which must be canonical.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let ((len, own), (other_len, other)) = (bits(self.address), bits(address));
        len == other_len && (own ^ other).checked_shr(len - self.prefix).unwrap_or(0) == 0
    }
}

/// The header in which trusted proxies list the addresses of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader(HeaderName);

impl Default for ProxyHeader {
    fn default() -> Self {
        Self(HeaderName::from_static("x-forwarded-for"))
    }
}

impl FromStr for ProxyHeader {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        text.parse().map(Self).map_err(|_| "expected the name of a header, such as x-forwarded-for or forwarded")
    }
}

/// The proxies that are trusted, and their header.
#[derive(Clone, Debug)]
pub(super) struct Proxies {
    trusted: Vec<Network>,
    header: ProxyHeader,
}

impl Proxies {
    pub(super) fn new(trusted: Vec<Network>, header: ProxyHeader) -> Self {
        Self { trusted, header }
    }

    /// Returns the address of the client that a request comes from: that of the connection, or if it is a trusted
    /// proxy, the last address in the header that is not one. The lines of the header are one list. If its end cannot
    /// be read, the address is that of the connection; if it has trusted proxies only, it is the first one.
    pub(super) fn client(&self, head: &RequestHead) -> Option<IpAddr> {
        let peer = head.peer_addr?.ip().to_canonical();
        if !self.trusts(peer) {
            return Some(peer);
        }
        let mut client = peer;
        let lines: Vec<_> = head.headers().get_all(&self.header.0).collect();
        for line in lines.into_iter().rev() {
            let Ok(line) = line.to_str() else { return Some(peer) };
            for element in elements(line).rev() {
                let address = if self.header.0 == FORWARDED { forwarded_for(element) } else { Some(element) };
                let Some(address) = address.and_then(parse_address) else { return Some(peer) };
                client = address;
                if !self.trusts(address) {
                    return Some(client);
                }
            }
        }
        Some(client)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }
}

/// Returns the elements of a list that are not empty. No address has a comma, so one in quotes makes an element that
/// cannot be read.
fn elements(line: &str) -> impl DoubleEndedIterator<Item = &str> {
    line.split(',').map(str::trim).filter(|element| !element.is_empty())
}

/// Returns the value of `for` in an element of `Forwarded`, as RFC 7239 defines it.
fn forwarded_for(element: &str) -> Option<&str> {
    let mut pairs = element.split(';').map(|pair| pair.trim().split_once('='));
    // Quotes that are open at the end of the element would belong to others, too.
    let is_whole = element.bytes().filter(|byte| *byte == b'"').count() % 2 == 0 && !element.contains('\\');
    let (_, value) = pairs.find_map(|pair| pair.filter(|(name, _)| name.eq_ignore_ascii_case("for")))?;
    let unquoted = value.strip_prefix('"').map_or(Some(value), |rest| rest.strip_suffix('"'));
    unquoted.filter(|_| is_whole)
}

/// Parses an address, perhaps in brackets, and perhaps with a port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok().map(IpAddr::V6);
    let address = text.parse().ok().or_else(in_brackets);
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn networks_are_parsed_strictly() {
        for (text, shown) in [
            ("192.0.2.1", "192.0.2.1/32"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:192.0.2.1", "192.0.2.1/32"),
        ] {
            assert_eq!(network(text).to_string(), shown);
        }
        for wrong in ["", "a", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/-1", "2001:db8::1/64"]
        {
            assert_eq!(wrong.parse::<Network>(), Err(NetworkError), "{wrong}");
        }
        for wrong in ["::/129", "::ffff:10.0.0.0/90", "10.0.0.0/8/8", "localhost", "10.0.0.0/4294967304"] {
            assert_eq!(wrong.parse::<Network>(), Err(NetworkError), "{wrong}");
        }
    }

    #[test]
    fn a_network_has_the_addresses_with_its_prefix() {
        let contains = |text: &str, address: &str| network(text).contains(address.parse().unwrap());
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("0.0.0.0/0", "255.1.2.3") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "2001:db8::1") && !contains("::/0", "10.0.0.1"));
        assert!(contains("2001:db8::/33", "2001:db8:7fff::1") && !contains("2001:db8::/33", "2001:db8:8000::"));
        assert!(contains("192.0.2.1", "192.0.2.1") && !contains("192.0.2.1", "192.0.2.0"));
    }

    /// Returns the client of a request from this peer whose header has these lines.
    fn client(header: &str, peer: &str, lines: &[&str]) -> String {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"].map(network).to_vec();
        let proxies = Proxies::new(trusted, header.parse().unwrap());
        let request = TestRequest::default().peer_addr(SocketAddr::new(peer.parse().unwrap(), 1));
        let request = lines.iter().fold(request, |request, line| request.append_header((header, *line)));
        proxies.client(request.to_srv_request().head()).unwrap().to_string()
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_trusted() {
        let client = |peer: &str, lines: &[&str]| client("x-forwarded-for", peer, lines);
        assert_eq!(client("192.0.2.9", &["192.0.2.1"]), "192.0.2.9", "the peer is not trusted");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["192.0.2.1"]), "192.0.2.1");
        assert_eq!(client("::ffff:10.0.0.1", &["::ffff:192.0.2.1"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &["203.0.113.7, 192.0.2.1 ,10.0.0.2, , 2001:db8::1"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &["203.0.113.7", "192.0.2.1", "10.0.0.2"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &["nonsense, 192.0.2.1"]), "192.0.2.1", "what the client wrote is not read");
        assert_eq!(client("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(client("10.0.0.1", &["192.0.2.1:4711"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &["[2001:dbf::1]:80, [2001:db8::2]"]), "2001:dbf::1");
        for wrong in ["unknown", "192.0.2.1, 300.0.0.1", "192.0.2.1 10.0.0.2", "192.0.2.1\u{e9}", "[192.0.2.1]"] {
            assert_eq!(client("10.0.0.1", &["192.0.2.1", wrong]), "10.0.0.1", "{wrong}");
        }
    }

    #[test]
    fn the_standard_header_names_the_client_in_for() {
        let client = |lines: &[&str]| client("forwarded", "10.0.0.1", lines);
        assert_eq!(client(&["for=192.0.2.1"]), "192.0.2.1");
        assert_eq!(client(&["for=203.0.113.7, For=\"192.0.2.1:80\";proto=https;by=10.0.0.1"]), "192.0.2.1");
        assert_eq!(client(&["proto=http; for=\"[2001:dbf::1]:80\"", "for=\"[2001:db8::1]\""]), "2001:dbf::1");
        for wrong in ["for=_hidden", "for=unknown", "proto=https", "for=\"192.0.2.1", "for=192.0.2.1\"", "192.0.2.1"] {
            assert_eq!(client(&["for=192.0.2.1", wrong]), "10.0.0.1", "{wrong}");
        }
        // A client that opens quotes does not hide what the proxy adds.
        assert_eq!(client(&["for=\"203.0.113.7, for=192.0.2.1"]), "192.0.2.1");
    }
}
