//! The users that `docs/redis.md` says the service needs. Tests run with exactly their permissions, so that the
//! document cannot differ from what the service uses.

use crate::redis_server::RedisServer;

const DOCUMENT: &str = include_str!("../../docs/redis.md");

/// Returns the rules of the user of a data server.
pub fn rules() -> Vec<&'static str> {
    rules_of("`ACL SETUSER app ")
}

/// Returns the rules of the user of a Sentinel.
#[allow(dead_code, reason = "not every test program has Sentinels")]
pub fn rules_on_sentinels() -> Vec<&'static str> {
    rules_of("`ACL SETUSER watcher ")
}

fn rules_of(begin: &str) -> Vec<&'static str> {
    let (_, rest) = DOCUMENT.split_once(begin).unwrap_or_else(|| panic!("docs/redis.md has no {begin}"));
    let (rules, _) = rest.split_once('`').expect("the end of the command");
    rules.split_whitespace().collect()
}

/// Gives a server the user `app` with these rules, and no others.
pub fn create(server: &RedisServer, rules: &[&str]) {
    server.ask::<()>(&[&["ACL", "SETUSER", "app", "reset"], rules].concat()).expect("a user");
}

/// Returns the URL of the same servers for the user.
pub fn url(url: &str) -> String {
    url.replacen("://", "://app:password@", 1)
}
