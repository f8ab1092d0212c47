//! Admission: who a request comes from, and whether it may do what it asks for. Before the body is read.
//!
//! The checks come in this order: the rate of the client's address, so that guesses of keys and signatures of tokens
//! are limited; the host, the preflight of a browser, the key, the rate of the key, the scope, the kind of item that a
//! token is for, the origin of the page, and the board in the path. Other boards are checked where the service looks
//! them up.

use std::future::pending;
use std::time::Duration;

use actix_web::dev::{RequestHead, ServiceRequest};
use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::{HttpMessage, HttpResponse};
use tokio::sync::watch;
use tokio::time::Instant;

use super::access::Effect;
use super::call::Call;
use super::codes::Code;
use super::needs::{Needs, needs_of};
use super::problem::Problem;
use super::state::HttpState;
use super::{cors, path};
use crate::access::{Caller, Denial, Denied, KeyKind, Scope, TokenError};
use crate::board::Timestamp;
use crate::service::{KeyRejection, Keys};

/// Lets a request pass with its [`Caller`], or returns the response to it.
pub(super) fn admit(
    state: &HttpState,
    request: &ServiceRequest,
    path: &str,
    methods: &[(Method, Needs)],
) -> Option<Result<HttpResponse, Problem>> {
    let head = request.head();
    if is_limited(path)
        && let Err(problem) = state.limits.request_of_client(state.client(head))
    {
        return Some(Err(problem));
    }
    if let Err(problem) = state.access.check_host(head) {
        return Some(Err(problem));
    }
    if let Some(answer) = cors::preflight(state, head, methods) {
        return Some(answer);
    }
    // Other methods reach no handler.
    match caller_of(state, request, needs_of(&head.method, methods)?) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            None
        }
        Err(problem) => Some(Err(problem)),
    }
}

/// Returns whether requests to a path count for the rates of clients and keys. Probes do not: an instance that is busy
/// must not be taken for dead.
pub(super) fn is_limited(path: &str) -> bool {
    !matches!(path, "/healthz" | "/readyz")
}

/// Checks a request to what is not in the table of operations.
pub(super) fn admit_anybody(state: &HttpState, head: &RequestHead) -> Result<(), Problem> {
    state.limits.request_of_client(state.client(head))?;
    state.access.check_host(head)?;
    state.access.check_origin(head, Effect::Changes)
}

fn caller_of(state: &HttpState, request: &ServiceRequest, needs: Needs) -> Result<Caller, Problem> {
    let (head, keys) = (request.head(), state.service.keys());
    let caller = match (authenticate(keys, head.headers()), needs) {
        (Ok(caller), _) => caller,
        (Err(_), Needs::Nothing) => keys.anonymous(),
        (Err(problem), _) => return Err(problem),
    };
    if needs == Needs::Nothing {
        return Ok(caller);
    }
    state.limits.request_of_key(&caller)?;
    match needs.scope() {
        Some(scope) => caller.require(scope)?,
        None if caller.key().is_none() => return Err(key_required("the operation needs a key")),
        None => {}
    }
    if let Needs::Items(item) = needs {
        caller.require_item(item)?;
    }
    // A page that lacks a key is told so, and not which origins may do without.
    check_origin(state, head, &caller, needs.effect())?;
    if needs.scope().is_some()
        && !caller.sees_all()
        && let Some(board) = path::board_of(request)
    {
        caller.require_board(&board)?;
    }
    Ok(caller)
}

/// Returns the caller whose key or token the header `Authorization` has, or one without a key if there is no such
/// header.
fn authenticate(keys: &Keys, headers: &HeaderMap) -> Result<Caller, Problem> {
    let mut given = headers.get_all(AUTHORIZATION);
    let Some(header) = given.next() else { return Ok(keys.anonymous()) };
    if given.next().is_some() {
        return Err(invalid_key("give one 'Authorization' header"));
    }
    let bearer = header.to_str().ok().and_then(|text| text.split_once(' '));
    let Some(text) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, text)| text.trim())
    else {
        return Err(invalid_key("'Authorization' must be 'Bearer', a space and a key or a token"));
    };
    keys.authenticate(text).map_err(|rejection| {
        let detail = rejection.to_string();
        match rejection {
            KeyRejection::Unknown => invalid_key(&detail),
            KeyRejection::Expired => Problem::new(Code::KeyExpired, detail),
            KeyRejection::Token(TokenError::Expired | TokenError::KeyExpired) => {
                Problem::new(Code::TokenExpired, detail)
            }
            KeyRejection::Token(TokenError::Claim { claim, .. }) => {
                Problem::new(Code::InvalidToken, detail).with("claim", claim)
            }
            KeyRejection::Token(_) => Problem::new(Code::InvalidToken, detail),
        }
    })
}

/// Checks which page the request comes from, if it comes from one.
///
/// A browser sends a secret key only if a page has it, and then it is no secret. The origins of a publishable key hold
/// for every method; without a key a browser keeps the response to a safe method from pages of other origins.
fn check_origin(state: &HttpState, head: &RequestHead, caller: &Caller, effect: Effect) -> Result<(), Problem> {
    match caller.key() {
        None => state.access.check_origin(head, effect),
        Some(key) => state.access.foreign_origin(head, |origin| key.allows_origin(origin)).map_or(Ok(()), |origin| {
            let detail = match key.kind {
                KeyKind::Secret => {
                    format!("a secret key must not be used by pages, and not by one of origin '{origin}'")
                }
                KeyKind::Publishable => format!("the key is not for pages of origin '{origin}'"),
                KeyKind::Signing => {
                    format!(
                        "the signing key of the token has no origin '{origin}', so its tokens are not for its pages"
                    )
                }
            };
            Err(Problem::new(Code::ForeignOrigin, detail))
        }),
    }
}

/// Checks that the caller may do more than its operation needs: what its body asks for, which changes something.
pub(super) fn require_more(call: &Call, scope: Scope) -> Result<(), Problem> {
    call.caller.require(scope)?;
    check_origin(&call.state, call.request.head(), &call.caller, Needs::Scope(scope).effect())
}

/// Whether a caller is still valid, for what takes long.
#[derive(Clone)]
pub(super) struct Validity {
    caller: Caller,
    /// Notified when any credential has ended.
    ended: watch::Receiver<()>,
    /// The time at which the token of the caller ends, if it has one.
    token_end: Option<Instant>,
}

impl Validity {
    pub(super) fn of(caller: &Caller, state: &HttpState) -> Self {
        let keys = state.service.keys();
        let left = |until: Timestamp| until.millis().saturating_sub(keys.now().millis()).max(0).unsigned_abs();
        let token_end = caller.token_until().map(|until| Instant::now() + Duration::from_millis(left(until)));
        Self { token_end, ..Self::new(caller.clone(), keys.ended()) }
    }

    pub(super) fn new(caller: Caller, ended: watch::Receiver<()>) -> Self {
        Self { caller, ended, token_end: None }
    }

    /// Waits until the caller is not valid any more, and returns the problem to tell it. Cancel safe.
    pub(super) async fn end(&mut self) -> Problem {
        loop {
            if let Err(denied) = self.caller.require_current() {
                return denied.into();
            }
            let token_end = async {
                match self.token_end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = token_end => return Problem::new(Code::TokenExpired, TokenError::Expired.to_string()),
                changed = self.ended.changed() => if changed.is_err() {
                    // The keys are gone with the service, and no credential will end.
                    pending::<()>().await;
                }
            }
        }
    }
}

fn invalid_key(detail: &str) -> Problem {
    Problem::new(Code::InvalidKey, detail)
}

fn key_required(detail: &str) -> Problem {
    Problem::new(Code::KeyRequired, format!("{detail}; send 'Authorization: Bearer' with a key that allows it"))
}

/// A caller without a key could do more with one.
impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let detail = denied.to_string();
        let problem = match (denied.has_key, &denied.denial) {
            (_, Denial::Ended) => invalid_key(&detail),
            (_, Denial::TokenExpired) => Problem::new(Code::TokenExpired, detail),
            (true, _) => Problem::new(Code::Forbidden, detail),
            (false, _) => key_required(&detail),
        };
        match denied.denial {
            Denial::Scope(scope) => problem.with("scope", scope.as_str()),
            Denial::Board(board) | Denial::NotDistinct(board) => problem.with("board", board.as_str()),
            Denial::FreeSubject { board, field } => problem.with("board", board.as_str()).with("field", field),
            Denial::Boards(boards) => problem.with("boards", boards.to_string()),
            Denial::Source(source) | Denial::Sender(source) => problem.with("source", source.as_str()),
            Denial::NotSecret | Denial::Item(_) | Denial::Ended | Denial::TokenExpired => problem,
        }
    }
}
