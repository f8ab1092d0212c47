//! Protection against web pages that send requests to a service on the user's own machine or network.
//!
//! A page of any origin may send requests that change something without being able to read the response. And its owner
//! may let a host name resolve to an address of the user's machine, which makes the page part of the same origin (DNS
//! rebinding). So a request that changes something is refused if it comes from another origin, and a service that
//! listens on the loopback interface only is not available under other host names.
//!
//! Browsers name the origin in `Origin`, and newer ones say in `Sec-Fetch-Site` how it relates to the service. Both
//! must allow the request.

use std::net::{IpAddr, SocketAddrV4};

use actix_web::dev::RequestHead;
use actix_web::http::Method;
use actix_web::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use actix_web::http::uri::{Authority, Scheme, Uri};

use super::codes::Code;
use super::problem::Problem;

/// How the origin of the page relates to the service: `same-origin`, `same-site`, `cross-site`, or `none` if the user
/// caused the request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a request does to what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Changes,
}

/// The origins and hosts for which requests are accepted.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The origins, besides the service's own, whose pages may read.
    readers: Vec<String>,
    /// The origins, besides the service's own, whose pages may read and change everything.
    writers: Vec<String>,
    /// Host names without a port, in lower case. `None` accepts any.
    hosts: Option<Vec<String>>,
    /// Whether requests that a proxy has forwarded are refused, because everybody who reaches the service may do
    /// everything.
    is_for_this_machine_only: bool,
}

/// Headers that only proxies add. Without configuration not every proxy adds one.
const FORWARDED_BY_PROXIES: [&str; 11] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
];

impl Access {
    /// Returns the rules for pages of origins that may read, and of those that may also change everything. Requests may
    /// be addressed to these hosts besides those of the loopback interface; `None` accepts any.
    pub(super) fn new(readers: &[String], writers: &[String], hosts: Option<&[String]>) -> Self {
        let lower_case = |hosts: &[String]| hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let (readers, writers, hosts) = (readers.to_vec(), writers.to_vec(), hosts.map(lower_case));
        Self { readers, writers, hosts, is_for_this_machine_only: false }
    }

    /// Returns these rules, with whether requests that a proxy has forwarded are refused.
    pub(super) fn for_this_machine_only(self, is_for_this_machine_only: bool) -> Self {
        Self { is_for_this_machine_only, ..self }
    }

    /// Returns whether pages of other origins may use the service at all.
    pub(super) fn has_origins(&self) -> bool {
        !self.readers.is_empty() || !self.writers.is_empty()
    }

    /// Returns whether pages of every origin may read.
    pub(super) fn is_public(&self) -> bool {
        self.readers.iter().chain(&self.writers).any(|known| known == "*")
    }

    /// Returns whether a page of this foreign origin may send a request with this effect.
    pub(super) fn allows(&self, origin: &str, effect: Effect) -> bool {
        let is_among = |origins: &[String]| origins.iter().any(|known| known == "*" || known == origin);
        is_among(&self.writers) || (effect == Effect::Reads && is_among(&self.readers))
    }

    /// Returns the problem of a request from a page of this foreign origin.
    pub(super) fn foreign(origin: &str, effect: Effect) -> Problem {
        let (refused, setting) = match effect {
            Effect::Reads => ("send this request", "cors_origins"),
            Effect::Changes => ("change anything", "cors_write_origins"),
        };
        let origin = shortened(origin);
        let detail = format!(
            "pages of origin '{origin}' may not {refused}; add it to the setting '{setting}', or use a key with this origin"
        );
        Problem::new(Code::ForeignOrigin, detail)
    }

    /// Checks the `Host` of a request, and that no proxy has forwarded it if none is expected.
    pub(super) fn check_host(&self, head: &RequestHead) -> Result<(), Problem> {
        if self.is_for_this_machine_only
            && is_forwarded(head.headers())
            && let Some(name) = FORWARDED_BY_PROXIES.iter().find(|name| head.headers().contains_key(**name))
        {
            let detail = format!(
                "the request has the header '{name}', so a proxy has forwarded it; without keys the service is for \
                 this machine only: make a key, or name the proxy in 'trusted_proxies', or set 'anonymous'"
            );
            return Err(Problem::new(Code::Forwarded, detail));
        }
        let host = host_of(head);
        if let (Some(hosts), Some(host)) = (&self.hosts, host)
            && !is_known_host(host, hosts)
        {
            let detail = format!(
                "the service listens on the loopback interface and does not answer for host '{}'; add it to the \
                 setting 'hosts'",
                shortened(host)
            );
            return Err(Problem::new(Code::UnknownHost, detail));
        }
        Ok(())
    }

    /// Checks the `Origin` of a request without a key, unless its method is a safe one.
    ///
    /// Programs other than browsers send no `Origin`, so nothing is required of them. A browser does not let a page
    /// read the response to a safe method unless [`cors`](super::cors) adds its origin.
    pub(super) fn check_origin(&self, head: &RequestHead, effect: Effect) -> Result<(), Problem> {
        if matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        match self.foreign_origin(head, |origin| self.allows(origin, effect)) {
            Some(origin) => Err(Self::foreign(&origin, effect)),
            None => Ok(()),
        }
    }

    /// Returns the origin of the page that the request comes from, unless it is the service's own or `allowed`.
    pub(super) fn foreign_origin(&self, head: &RequestHead, allowed: impl Fn(&str) -> bool) -> Option<String> {
        let site = head.headers().get(SEC_FETCH_SITE);
        let is_foreign = site.is_some_and(|site| site == "cross-site" || site == "same-site");
        let is_accepted = |origin: &str| (is_same_host(origin, host_of(head)) && !is_foreign) || allowed(origin);
        let mut origins = head.headers().get_all(ORIGIN).map(|origin| origin.to_str().unwrap_or_default()).peekable();
        let unnamed = (is_foreign && origins.peek().is_none()).then_some("unknown");
        unnamed.or_else(|| origins.find(|origin| !is_accepted(origin))).map(shortened)
    }
}

/// Returns whether a request has a header that only proxies add.
fn is_forwarded(headers: &HeaderMap) -> bool {
    // A request has fewer headers than there are to look for.
    headers.keys().any(|name| FORWARDED_BY_PROXIES.contains(&name.as_str()))
}

/// Returns the host that the request is addressed to.
fn host_of(head: &RequestHead) -> Option<&str> {
    // A name that is not ASCII is not a known name.
    let header = head.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    // A request to a proxy names the host in its target instead, which has precedence.
    head.uri.authority().map(Authority::as_str).or(header)
}

/// Returns whether a `Host` header names the loopback interface or one of `hosts`.
fn is_known_host(header: &str, hosts: &[String]) -> bool {
    // Most requests on the loopback interface name its address and port. This needs no copy, and `Authority` makes one.
    if header.parse::<SocketAddrV4>().is_ok_and(|address| address.ip().is_loopback()) {
        return true;
    }
    let Some((host, _)) = host_and_port(header) else { return false };
    let address = || host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let domain = host.rsplit_once('.').map_or(host, |(_, domain)| domain);
    address().is_ok_and(|address| address.to_canonical().is_loopback())
        || domain.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
}

/// Splits the text of a host with an optional port. The host is without the dot of the root. Returns `None` if the text
/// has another form, such as one with a user name.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let authority: Authority = text.parse().ok()?;
    let named = authority.host();
    let (host, port) = text.split_at_checked(named.len())?;
    let port = match port {
        // After a user name the host is not at the beginning, or something else follows it.
        _ if host != named => return None,
        "" | ":" => None,
        port => Some(port.strip_prefix(':')?.parse().ok()?),
    };
    Some((host.strip_suffix('.').unwrap_or(host), port))
}

/// Returns whether an origin has the host and port of the request. The scheme may differ, because a proxy may have
/// received the request over TLS; without a port, it is that of the origin's scheme.
fn is_same_host(origin: &str, host: Option<&str>) -> bool {
    let (Ok(origin), Some(host)) = (origin.parse::<Uri>(), host) else { return false };
    let default_port = match origin.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => 80,
        Some(scheme) if *scheme == Scheme::HTTPS => 443,
        _ => return false,
    };
    let (Some(authority), Some((host, port))) = (origin.authority(), host_and_port(host)) else { return false };
    host_and_port(authority.as_str()).is_some_and(|(own, own_port)| {
        own.eq_ignore_ascii_case(host) && own_port.unwrap_or(default_port) == port.unwrap_or(default_port)
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(128).collect()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;

    use super::*;

    fn check(access: &Access, head: &RequestHead, effect: Effect) -> Result<(), Problem> {
        access.check_host(head)?;
        access.check_origin(head, effect)
    }

    fn code(access: &Access, method: Method, headers: &[(&'static str, &'static str)]) -> Option<Code> {
        let request = headers.iter().fold(TestRequest::default().method(method), |r, header| r.insert_header(*header));
        check(access, request.to_srv_request().head(), Effect::Changes).err().map(|problem| problem.code())
    }

    #[test]
    fn only_known_origins_may_change_something() {
        let writers = |origin: &str| Access::new(&[], &[origin.to_owned()], None);
        let (access, any) = (writers("https://app.example"), writers("*"));
        for (origin, is_accepted) in [
            ("http://rolltop.local:8080", true),
            ("http://rolltop.local.:8080", true),
            ("ftp://rolltop.local:8080", false),
            ("rolltop.local:8080", false),
            ("http://user@rolltop.local:8080", false),
            ("https://Rolltop.local:8080", true),
            ("https://app.example", true),
            ("http://rolltop.local", false),
            ("http://rolltop.local:8081", false),
            ("https://app.example.evil", false),
            ("http://evil.example", false),
            ("null", false),
            ("", false),
        ] {
            let headers = [("host", "rolltop.local:8080"), ("origin", origin)];
            let expected = (!is_accepted).then_some(Code::ForeignOrigin);
            assert_eq!(code(&access, Method::POST, &headers), expected, "{origin}");
            assert_eq!(code(&access, Method::DELETE, &headers), expected, "{origin}");
            assert_eq!(code(&access, Method::GET, &headers), None, "{origin}");
            assert_eq!(code(&any, Method::POST, &headers), None, "{origin}");
        }
        for (host, origin, is_accepted) in [
            ("rolltop.local:80", "http://rolltop.local", true),
            ("rolltop.local", "http://rolltop.local:80", true),
            ("rolltop.local:443", "https://rolltop.local", true),
            ("rolltop.local", "https://rolltop.local", true),
            ("rolltop.local:80", "https://rolltop.local", false),
            ("rolltop.local", "https://rolltop.local:8443", false),
        ] {
            let expected = (!is_accepted).then_some(Code::ForeignOrigin);
            assert_eq!(code(&access, Method::POST, &[("host", host), ("origin", origin)]), expected, "{host} {origin}");
        }
        // A page of the same host and another scheme belongs to another site.
        for (site, is_accepted) in
            [("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false), ("new-value", true)]
        {
            let own = [("host", "rolltop.local"), ("origin", "http://rolltop.local"), ("sec-fetch-site", site)];
            let expected = (!is_accepted).then_some(Code::ForeignOrigin);
            assert_eq!(code(&access, Method::POST, &own), expected, "{site}");
            assert_eq!(code(&access, Method::POST, &[own[0], own[2]]), expected, "{site} without an origin");
            assert_eq!(code(&access, Method::GET, &own), None, "{site}");
            let listed = [own[0], ("origin", "https://app.example"), own[2]];
            assert_eq!(code(&access, Method::POST, &listed), None, "{site}");
        }
        let two = TestRequest::post().insert_header(("host", "rolltop.local"));
        let two =
            two.append_header(("origin", "http://rolltop.local")).append_header(("origin", "http://evil.example"));
        assert!(check(&access, two.to_srv_request().head(), Effect::Changes).is_err());
        assert_eq!(code(&access, Method::PUT, &[("host", "rolltop.local:8080")]), None);
        assert_eq!(code(&access, Method::PUT, &[("origin", "http://a")]), Some(Code::ForeignOrigin));
    }

    #[test]
    fn readers_may_not_change_anything() {
        let read_by = |origin: &str| Access::new(&[origin.to_owned()], &["https://b".to_owned()], None);
        for access in [read_by("https://a"), read_by("*")] {
            let post =
                TestRequest::post().insert_header(("host", "rolltop.local")).insert_header(("origin", "https://a"));
            let post = post.to_srv_request();
            assert!(check(&access, post.head(), Effect::Reads).is_ok());
            let problem = check(&access, post.head(), Effect::Changes).unwrap_err();
            assert!(problem.to_string().contains("'https://a'") && problem.to_string().contains("cors_write_origins"));
            assert!(access.allows("https://b", Effect::Reads) && access.allows("https://b", Effect::Changes));
        }
        assert!(!read_by("https://a").allows("https://c", Effect::Reads));
        assert!(!read_by("*").allows("https://c", Effect::Changes));
    }

    #[test]
    fn hosts_are_those_of_the_loopback_interface_and_the_listed_ones() {
        let known = |hosts: Option<Vec<String>>| Access::new(&[], &[], hosts.as_deref());
        let (access, any) = (known(Some(vec!["rolltop.example".into()])), known(None));
        for (host, is_known) in [
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("rolltop.localhost", true),
            ("127.0.0.1:8080", true),
            ("127.9.9.9", true),
            ("[::1]:8080", true),
            ("Rolltop.Example:80", true),
            ("rolltop.example.evil", false),
            ("localhost.", true),
            ("[::ffff:127.0.0.1]:8080", true),
            ("notlocalhost", false),
            ("localhost..", false),
            ("127.0.0.1.evil.example", false),
            ("192.168.0.1", false),
            ("192.168.0.1:8080", false),
            ("[::ffff:192.168.0.1]:8080", false),
            ("[::1%1]:8080", false),
            ("evil.example:8080", false),
            ("", false),
            ("a b", false),
            ("localhost:", true),
            ("localhost:abc", false),
            ("localhost:99999", false),
            ("user:password@localhost", false),
            ("localhost:80@evil.example", false),
            ("[::1]x", false),
            ("[::1]x:80", false),
            ("localhost@localhost:80", false),
        ] {
            let expected = (!is_known).then_some(Code::UnknownHost);
            assert_eq!(code(&access, Method::GET, &[("host", host)]), expected, "{host}");
            assert_eq!(code(&any, Method::GET, &[("host", host)]), None, "{host}");
        }
        assert_eq!(code(&access, Method::GET, &[]), None);
        let target = TestRequest::default().uri("http://evil.example/v1/boards").insert_header(("host", "localhost"));
        assert!(check(&access, target.to_srv_request().head(), Effect::Reads).is_err());
        let latin = HeaderValue::from_bytes(b"evil\xff").unwrap();
        let request = TestRequest::default().insert_header((HOST, latin)).to_srv_request();
        assert!(check(&access, request.head(), Effect::Reads).is_err());
    }
}
