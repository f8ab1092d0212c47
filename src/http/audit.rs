//! The record of administrative acts: a log event of its own for each, under the target `audit`.
//!
//! It says who did what, from where, and with which result. It has no secrets: neither headers nor bodies, and no key
//! that somebody has put into a path.

use std::borrow::Cow;
use std::net::IpAddr;

use actix_web::dev::ServiceRequest;
use actix_web::http::{Method, StatusCode};
use percent_encoding::percent_decode_str;

use super::needs::Needs;
use super::proxies::Proxies;
use super::request_id::RequestId;
use crate::access::{Caller, Scope, without_secrets};

/// Longer targets are cut off.
const MAX_TARGET: usize = 1_024;
/// The same for requests that were refused: anybody can send them.
const MAX_REFUSED_TARGET: usize = 128;

/// An administrative act that was asked for. It is recorded when it has a result; if the client is gone before, when it
/// is dropped: the act may have been done.
pub(super) struct Act {
    method: Method,
    target: String,
    from: Option<IpAddr>,
    caller: String,
    scope: Scope,
    id: RequestId,
    status: Option<StatusCode>,
}

impl Act {
    /// Returns the act that a request asks for, unless it reads, or only sends data. `caller` is the one that was
    /// admitted, if the request was not refused.
    pub(super) fn of(
        request: &ServiceRequest,
        needs: Needs,
        proxies: &Proxies,
        caller: Option<&Caller>,
        id: &RequestId,
    ) -> Option<Self> {
        let Needs::Scope(scope @ (Scope::Manage | Scope::Admin)) = needs else { return None };
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let target = request.uri().path_and_query().map_or("", |target| target.as_str());
        let most = if caller.is_some() { MAX_TARGET } else { MAX_REFUSED_TARGET };
        Some(Self {
            method: request.method().clone(),
            target: shown(target).chars().take(most).collect(),
            from: proxies.client(request.head()),
            caller: caller.map_or_else(|| "refused".to_owned(), ToString::to_string),
            scope,
            id: id.clone(),
            status: None,
        })
    }

    /// Records the act with its result.
    pub(super) fn end(mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

/// Returns a target without secrets. One that has a secret in percent-encoding is shown decoded.
fn shown(target: &str) -> String {
    let decoded = percent_decode_str(target).decode_utf8_lossy();
    match (without_secrets(target), without_secrets(&decoded)) {
        (masked, Cow::Borrowed(_)) => masked.into_owned(),
        (_, masked) => masked.escape_debug().collect(),
    }
}

impl Drop for Act {
    fn drop(&mut self) {
        let Self { method, target, from, caller, scope, id, status } = self;
        let from = from.map_or_else(String::new, |from| from.to_string());
        let status = status.map_or(0, |status| status.as_u16());
        let message = if status == 0 { "an administrative act whose client is gone" } else { "an administrative act" };
        tracing::info!(
            target: "audit", %caller, from, %method, path = target, %scope, request_id = id.as_str(), status,
            "{message}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_shown_without_secrets_however_they_are_written() {
        let bits = "0".repeat(64);
        for (target, expected) in [
            ("/v1/boards/a%2Fb?x=1".to_owned(), "/v1/boards/a%2Fb?x=1"),
            (format!("/v1/rt_5f1c2a9d04b7e386_{bits}"), "/v1/rt_…"),
            (format!("/v1/rt%5F5f1c2a9d04b7e386%5f{bits}%0Ax"), "/v1/rt_…\\nx"),
            ("/v1/%65yJhbGciOiJIUzI1NiJ9.eyJh.x".to_owned(), "/v1/eyJ…"),
            (format!("/v1/keys/rt_5f1c2a9d04b7e386/{bits}"), "/v1/keys/rt_5f1c2a9d04b7e386/…"),
            (format!("/v1/keys/rt_5f1c2a9d04b7e386%2F{bits}/x"), "/v1/keys/rt_5f1c2a9d04b7e386/…/x"),
            ("/v1/keys/rt_5f1c2a9d04b7e386/rotate".to_owned(), "/v1/keys/rt_5f1c2a9d04b7e386/rotate"),
        ] {
            assert_eq!(shown(&target), expected);
        }
    }
}
