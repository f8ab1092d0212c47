//! Addresses of Redis servers and logins, read from a URL.
//!
//! | form | deployment |
//! |---|---|
//! | `redis://[user:password@]host[:port][/database]` | one server |
//! | `redis+sentinel://[user:password@]host[:port],…/master[/database]` | the master that Sentinels name |
//! | `redis+cluster://[user:password@]host[:port],…` | a cluster, found through any of its nodes |
//!
//! `rediss` in place of `redis` uses TLS. User and password are those of the servers. If the Sentinels require a login,
//! `?sentinel_user=…&sentinel_password=…` at the end gives it. Errors never quote the text, because it may contain a
//! password.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// The addresses of the servers, and the login.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(super) deployment: Deployment,
    /// The server, or the Sentinels or nodes of the cluster to ask first.
    pub(super) hosts: Vec<Host>,
    pub(super) tls: bool,
    pub(super) login: Login,
    pub(super) database: i64,
}

/// The kind of deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deployment {
    Single,
    /// Sentinels know which server is the master of this name. `login` is for the Sentinels.
    Sentinel {
        master: String,
        login: Login,
    },
    Cluster,
}

/// The address of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Host {
    pub name: String,
    pub port: u16,
}

/// User and password, if the servers require them.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
}

/// The reason why a text is not an address. It says what is wrong and where, and quotes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; {FORMS}")]
pub struct AddressError(String);

const FORMS: &str = "an address is redis://[user:password@]host[:port][/database], \
                     redis+sentinel://host[:port],host[:port]/master-name or redis+cluster://host[:port],host[:port], \
                     with rediss in place of redis for TLS";

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

impl Address {
    /// The schemes with which addresses begin.
    pub const SCHEMES: [&str; 6] =
        ["redis://", "rediss://", "redis+sentinel://", "rediss+sentinel://", "redis+cluster://", "rediss+cluster://"];
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = |what: &str| Err(AddressError(what.to_owned()));
        let Some((scheme, rest)) = text.split_once("://") else { return fail("the address lacks '://'") };
        let (tls, kind) = match scheme {
            "redis" => (false, ""),
            "rediss" => (true, ""),
            "redis+sentinel" => (false, "sentinel"),
            "rediss+sentinel" => (true, "sentinel"),
            "redis+cluster" => (false, "cluster"),
            "rediss+cluster" => (true, "cluster"),
            _ => return fail("the address begins with an unknown scheme"),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains('@')
            || query.split('&').next().is_some_and(|first| first.contains('@') && !first.contains('='))
        {
            return fail("there is a '/' or '?' before the '@': write '/' as %2F and '?' as %3F in a password");
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (read_login(login)?, hosts),
            None => (Login::default(), authority),
        };
        let port = if kind == "sentinel" { SENTINEL_PORT } else { PORT };
        let hosts = read_hosts(hosts, port)?;
        let mut path = path.split('/');
        let deployment = match kind {
            "sentinel" => match path.next().filter(|name| !name.is_empty()) {
                Some(name) => Deployment::Sentinel {
                    master: decode(name, "the master's name")?,
                    login: read_sentinel_login(query)?,
                },
                None => return fail("the name of the master is missing after the Sentinels: …/master-name"),
            },
            _ if !query.is_empty() => return fail("options after '?' are for Sentinels only"),
            "cluster" => Deployment::Cluster,
            _ if hosts.len() > 1 => {
                return fail(
                    "several hosts are given: write redis+cluster:// for a cluster, redis+sentinel:// for Sentinels",
                );
            }
            _ => Deployment::Single,
        };
        let database = match path.next() {
            None | Some("") => 0,
            Some(_) if kind == "cluster" => return fail("a cluster has no databases to choose from"),
            Some(number) => match number.parse::<u16>() {
                Ok(number) => i64::from(number),
                Err(_) => return fail("the database after '/' is not a number"),
            },
        };
        if path.next().is_some() {
            return fail("there is an extra '/'");
        }
        Ok(Self { deployment, hosts, tls, login, database })
    }
}

fn read_hosts(text: &str, port: u16) -> Result<Vec<Host>, AddressError> {
    let host = |(place, text): (usize, &str)| {
        Host::read(text, port).map_err(|wrong| AddressError(format!("host {}: {wrong}", place + 1)))
    };
    text.split(',').enumerate().map(host).collect()
}

impl Host {
    /// Reads `host`, `host:port` or `[address]:port`.
    fn read(text: &str, default: u16) -> Result<Self, &'static str> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let Some((name, rest)) = rest.split_once(']') else {
                    return Err("the ']' of an IPv6 address is missing");
                };
                match rest.strip_prefix(':') {
                    Some(port) => (name, Some(port)),
                    None if rest.is_empty() => (name, None),
                    None => return Err("after the ']' of an IPv6 address comes ':' and the port"),
                }
            }
            None => match text.split_once(':') {
                Some((_, rest)) if rest.contains(':') => return Err("an IPv6 address must be enclosed in '[' and ']'"),
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("the name is missing or has a space in it");
        }
        let port = match port {
            None => default,
            Some(port) => match port.parse() {
                Ok(port) if port != 0 => port,
                _ => return Err("the port is not a number from 1 to 65535"),
            },
        };
        Ok(Self { name: name.to_owned(), port })
    }

    /// Reads the address `host:port` of a different server, as this server returned it. An empty host (or `?`, if none
    /// is known) means this server's own host.
    pub fn named_by(&self, text: &str) -> Option<Self> {
        let (name, port) = text.rsplit_once(':')?;
        // Older servers append their internal port.
        let port = port.split('@').next()?.parse().ok()?;
        let name = if name.is_empty() || name == "?" { &self.name } else { name };
        Some(Self { name: name.to_owned(), port })
    }
}

fn read_login(text: &str) -> Result<Login, AddressError> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    let some = |text: String| (!text.is_empty()).then_some(text);
    let user = some(decode(user, "the user")?);
    let password = password.map(|password| decode(password, "the password")).transpose()?.and_then(some);
    if user.is_some() && password.is_none() {
        return Err(AddressError("there is a user without a password: write user:password@, or :password@".to_owned()));
    }
    Ok(Login { user, password })
}

fn read_sentinel_login(query: &str) -> Result<Login, AddressError> {
    let mut login = Login::default();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("sentinel_user", user)) => login.user = Some(decode(user, "sentinel_user")?),
            Some(("sentinel_password", password)) => login.password = Some(decode(password, "sentinel_password")?),
            _ => return Err(AddressError("the options after '?' are sentinel_user and sentinel_password".to_owned())),
        }
    }
    if login.user.is_some() && login.password.is_none() {
        return Err(AddressError("there is a sentinel_user without a sentinel_password".to_owned()));
    }
    Ok(login)
}

fn decode(text: &str, what: &str) -> Result<String, AddressError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| AddressError(format!("{what} is not valid UTF-8 after percent-decoding")))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// Prints the address for messages, without users and passwords.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if place == 0 { "" } else { "," })?;
        }
        match &self.deployment {
            Deployment::Sentinel { master, .. } => write!(f, "/{master}"),
            Deployment::Single | Deployment::Cluster => Ok(()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Login::default() { "none" } else { "hidden" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(user: &str, password: &str) -> Login {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Login { user: some(user), password: some(password) }
    }

    fn read(text: &str) -> Address {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn single_server_addresses_are_parsed() {
        for (text, at, tls, user, password, database) in [
            ("redis://localhost", "localhost:6379", false, "", "", 0),
            ("redis://localhost/", "localhost:6379", false, "", "", 0),
            ("redis://10.0.0.1:7000/3", "10.0.0.1:7000", false, "", "", 3),
            ("rediss://db.example.com:6380", "db.example.com:6380", true, "", "", 0),
            ("redis://:secret@h", "h:6379", false, "", "secret", 0),
            ("redis://me:secret@h:1/15", "h:1", false, "me", "secret", 15),
            ("redis://me:p%40ss%2Fw%3Ford%25@h", "h:6379", false, "me", "p@ss/w?ord%", 0),
            ("redis://me:a@b:c,d@h", "h:6379", false, "me", "a@b:c,d", 0),
            ("redis://[::1]", "[::1]:6379", false, "", "", 0),
            ("redis://u:p@[fe80::1]:7/1", "[fe80::1]:7", false, "u", "p", 1),
            ("redis://@h", "h:6379", false, "", "", 0),
        ] {
            let address = read(text);
            assert_eq!((address.to_string().as_str(), address.tls, address.database), (at, tls, database), "{text}");
            assert_eq!((&address.deployment, &address.login), (&Deployment::Single, &login(user, password)), "{text}");
        }
    }

    #[test]
    fn sentinel_and_cluster_addresses_are_parsed() {
        let address = read("redis+sentinel://a,b:1,[::2]:3/my%20master/2");
        let master = "my master".to_owned();
        assert_eq!(address.deployment, Deployment::Sentinel { master, login: Login::default() });
        assert_eq!((address.to_string().as_str(), address.database), ("a:26379,b:1,[::2]:3/my master", 2));
        let address = read("rediss+sentinel://u:p@a/m?sentinel_user=s&sentinel_password=x%26y@z");
        assert!(address.tls);
        assert_eq!(address.login, login("u", "p"));
        assert_eq!(address.deployment, Deployment::Sentinel { master: "m".to_owned(), login: login("s", "x&y@z") });
        let address = read("redis+cluster://u:p@a:1,b,c:3");
        assert_eq!((address.deployment.clone(), address.to_string().as_str()), (Deployment::Cluster, "a:1,b:6379,c:3"));
        assert_eq!((address.login.clone(), address.tls), (login("u", "p"), false));
        assert!(read("rediss+cluster://a/").tls);
    }

    #[test]
    fn address_errors_state_the_reason_without_the_password() {
        for (text, says) in [
            ("", "lacks '://'"),
            ("localhost:6379", "lacks '://'"),
            ("mysql://u:hunter2@h", "unknown scheme"),
            ("redis+unix:///run/hunter2", "unknown scheme"),
            ("redis://", "host 1: the name is missing"),
            ("redis://u:hunter2@", "host 1: the name is missing"),
            ("redis://u:hunter2@h:port", "host 1: the port is not a number"),
            ("redis://u:hunter2@h:0", "host 1: the port is not a number"),
            ("redis://u:hunter2@h:70000", "host 1: the port is not a number"),
            ("redis://u:hunter2@h/one", "not a number"),
            ("redis://u:hunter2@h/-1", "not a number"),
            ("redis://u:hunter2@h/1/2", "an extra '/'"),
            ("redis://u:hun/ter2@h", "write '/' as %2F"),
            ("redis://u:hun?ter2@h", "write '/' as %2F"),
            ("redis://u:hunter2%ff@h", "the password is not valid UTF-8"),
            ("redis://hunter2@h", "a user without a password"),
            ("redis://u:hunter2@h?protocol=resp3", "for Sentinels only"),
            ("redis://u:hunter2@a,b", "redis+cluster://"),
            ("redis://::1", "must be enclosed in '[' and ']'"),
            ("redis://[::1", "']' of an IPv6 address is missing"),
            ("redis://[::1]6379", "comes ':' and the port"),
            ("redis+cluster://u:hunter2@a,,b", "host 2: the name is missing"),
            ("redis+cluster://u:hunter2@a:1,b:x", "host 2: the port"),
            ("redis+cluster://u:hunter2@a/1", "no databases"),
            ("redis+sentinel://u:hunter2@a", "name of the master is missing"),
            ("redis+sentinel://u:hunter2@a/", "name of the master is missing"),
            ("redis+sentinel://a/m/x", "not a number"),
            ("redis+sentinel://a/m?password=hunter2", "sentinel_user and sentinel_password"),
            ("redis+sentinel://a/m?sentinel_user=hunter2", "without a sentinel_password"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(error.contains("an address is redis://"), "{text}: {error}");
            for secret in ["hunter2", "hun", "ter2"] {
                assert!(!error.contains(secret), "{text}: {error}");
            }
        }
    }

    #[test]
    fn display_and_debug_hide_passwords() {
        let address = read("rediss+sentinel://me:hunter2@a/m?sentinel_user=s&sentinel_password=hunter2");
        for printed in [format!("{address}"), format!("{address:?}"), format!("{:?}", address.deployment)] {
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }

    #[test]
    fn host_names_given_by_servers_are_parsed() {
        let here = Host { name: "here".to_owned(), port: 1 };
        for (text, named) in [
            ("10.0.0.2:7001", Some("10.0.0.2:7001")),
            (":7001", Some("here:7001")),
            ("?:7001", Some("here:7001")),
            ("::1:7001", Some("[::1]:7001")),
            ("h:7001@17001", Some("h:7001")),
            ("h", None),
            ("h:x", None),
        ] {
            assert_eq!(here.named_by(text).map(|host| host.to_string()).as_deref(), named, "{text}");
        }
    }
}
