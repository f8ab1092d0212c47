//! The id of a request, by which a client, a proxy and the log refer to it, and the trace that it is part of.

use std::future::Future;
use std::sync::Arc;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use super::trace_parent::TraceParent;

/// The header with the id, in requests and responses.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id of a client in bytes.
const MAX_BYTES: usize = 128;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// The id of a request: that of the client or proxy, or a new one. Shared, because it is kept in several futures of the
/// request, and swapped whenever they are polled.
#[derive(Clone, Debug)]
pub(super) struct RequestId(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    id: HeaderValue,
    trace: Option<TraceParent>,
}

impl RequestId {
    /// Returns the id in the headers if it is visible ASCII of at most 128 bytes, otherwise a new one.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let given = headers.get(X_REQUEST_ID).filter(|id| is_valid(id.as_bytes()));
        let id = given.map_or_else(Self::random, HeaderValue::clone);
        Self(Arc::new(Identity { id, trace: TraceParent::from_headers(headers) }))
    }

    /// Creates a random id, outside of a trace.
    fn new() -> Self {
        Self(Arc::new(Identity { id: Self::random(), trace: None }))
    }

    fn random() -> HeaderValue {
        let mut text = [0; 16];
        let random = rand::random::<u64>().to_be_bytes();
        for (digits, byte) in text.chunks_exact_mut(2).zip(random) {
            digits[0] = DIGITS[usize::from(byte >> 4)];
            digits[1] = DIGITS[usize::from(byte & 15)];
        }
        HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("none"))
    }

    /// Returns the id of the request that the current task handles, or a new one outside of a request.
    pub(super) fn current() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_else(|_| Self::new())
    }

    /// Returns the id of the request that the current task handles. Outside of a request, returns the id in the
    /// headers, or a new one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_else(|_| Self::from_headers(headers))
    }

    /// Runs a future as the handling of the request with this id.
    pub(super) fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// Runs a function as part of the handling of the request with this id.
    pub(super) fn sync_scope<T>(self, function: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, function)
    }

    /// Returns the id as text.
    pub(super) fn as_str(&self) -> &str {
        self.0.id.to_str().unwrap_or_default()
    }

    /// Returns the id of the trace that the request is part of, for the log.
    pub(super) fn trace_id(&self) -> Option<&str> {
        self.0.trace.as_ref().map(TraceParent::trace_id)
    }

    /// Returns the id of the caller's part of that trace.
    pub(super) fn parent_id(&self) -> Option<&str> {
        self.0.trace.as_ref().map(TraceParent::parent_id)
    }

    /// Returns the value of the header.
    pub(super) fn header_value(&self) -> &HeaderValue {
        &self.0.id
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn is_valid(id: &[u8]) -> bool {
    (1..=MAX_BYTES).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(given: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
        RequestId::from_headers(&headers).as_str().to_owned()
    }

    #[test]
    fn a_valid_id_is_kept_and_others_are_replaced() {
        let longest = "a".repeat(128);
        for id in ["a", "7f3c/2=~!", longest.as_str()] {
            assert_eq!(id_for(id.as_bytes()), id);
        }
        for id in ["", "a b", "\u{e9}", &"a".repeat(129)] {
            let made = id_for(id.as_bytes());
            assert!(made.len() == 16 && made.bytes().all(|b| b.is_ascii_hexdigit()), "{id}: {made}");
        }
        assert_ne!(id_for(b""), id_for(b""));
    }

    #[actix_web::test]
    async fn the_current_id_is_that_of_the_scope() {
        let id = RequestId(Arc::new(Identity { id: HeaderValue::from_static("r-1"), trace: None }));
        assert_eq!(id.scope(async { RequestId::current().as_str().to_owned() }).await, "r-1");
        assert_ne!(RequestId::current().as_str(), "r-1");
    }
}
