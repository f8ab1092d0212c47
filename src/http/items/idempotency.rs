//! The ids of items that have none: from the `Idempotency-Key` of the request, which makes it safe to send the whole
//! request again, or from a token for an item that counts once.
//!
//! With a key, the id of an item is computed from the key and the item's position. So a repeated request counts none of
//! its items twice, and its receipt reports them as duplicates. Nothing else is stored: ids are remembered for the
//! dedupe horizon of each board, and the bodies are not compared.

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;
use xxhash_rust::xxh3::Xxh3Default;

use super::pinned;
use crate::access::Caller;
use crate::board::EventId;
use crate::http::problem::Problem;

/// The header with the key.
pub(in crate::http) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Maximum length of a key in bytes.
const MAX_BYTES: usize = 255;

/// The ids of the items of a request that have none.
#[derive(Clone, Debug)]
pub(in crate::http) enum ItemIds {
    /// Computed from the `Idempotency-Key`.
    OfKey(Box<[u8]>),
    /// The one of a token, which is for one item.
    OfToken(EventId),
}

impl ItemIds {
    /// Returns the ids that the headers of a request, or the token of its caller, give to items. `None` if neither
    /// does.
    pub(in crate::http) fn from_request(request: &HttpRequest, caller: &Caller) -> Result<Option<Self>, Problem> {
        let mut given = request.headers().get_all(IDEMPOTENCY_KEY);
        let Some(key) = given.next() else { return Ok(caller.once().cloned().map(Self::OfToken)) };
        if caller.pin().is_some() {
            return Err(pinned::forbidden("the token does not allow the header 'Idempotency-Key'"));
        }
        let key = key.as_bytes();
        let is_valid = (1..=MAX_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
        if !is_valid || given.next().is_some() {
            let detail = format!("'Idempotency-Key' must be one text of 1 to {MAX_BYTES} visible ASCII characters");
            return Err(Problem::field(IDEMPOTENCY_KEY.as_str(), detail));
        }
        Ok(Some(Self::OfKey(key.into())))
    }

    /// Returns the id of the item with this number: its index in a batch, or its line in a stream.
    pub(in crate::http) fn id_of(&self, number: u64) -> Option<EventId> {
        let key = match self {
            ItemIds::OfKey(key) => key,
            ItemIds::OfToken(id) => return Some(id.clone()),
        };
        let mut hash = Xxh3Default::new();
        hash.update(key);
        hash.update(&number.to_be_bytes());
        EventId::parse(&format!("key:{:032x}", hash.digest128())).ok()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn keys_are_visible_ascii_of_limited_length() {
        let key = |given: &[&str]| {
            let request = given.iter().fold(TestRequest::post(), |r, key| r.append_header((IDEMPOTENCY_KEY, *key)));
            ItemIds::from_request(&request.to_http_request(), &Caller::trusted())
        };
        let longest = "a".repeat(255);
        for valid in ["a", "8e03978e-40d5-43e8-bc93-6894a57f9324", "\"quoted\"", longest.as_str()] {
            assert!(matches!(key(&[valid]), Ok(Some(_))), "{valid}");
        }
        assert!(matches!(key(&[]), Ok(None)));
        let too_long = "a".repeat(256);
        for invalid in [&[""][..], &["two words"], &["\u{e9}"], &[&too_long], &["a", "b"]] {
            assert!(key(invalid).is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn ids_depend_on_key_and_number_and_never_change() {
        let id = |key: &str, number| ItemIds::OfKey(key.as_bytes().into()).id_of(number).unwrap();
        // Clients may repeat a request after the service was updated.
        assert_eq!(id("a", 0).as_str(), "key:fd9065b8bc74010c4871d24ba9b0e935");
        let ids = [id("a", 0), id("a", 1), id("b", 0), id("ab", 0)];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[..at].contains(id), "{id:?}");
        }
    }
}
