//! The text of server-sent events, in the format of the HTML standard.

use actix_web::web::Bytes;
use serde_json::Value as Json;

use crate::http::response::escape_line_ends;

/// The first bytes of a stream: the time in milliseconds after which a client connects again.
pub(super) const RETRY: Bytes = Bytes::from_static(b"retry: 2000\n\n");

/// A comment, which keeps proxies from closing a stream without events.
pub(super) const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// An event of a live view. Clones share the text.
#[derive(Clone, Debug)]
pub(super) struct Event {
    name: &'static str,
    /// JSON without line breaks.
    data: Bytes,
    /// The text of the event on a stream of one view.
    text: Bytes,
}

impl Event {
    /// Creates an event with the entity tag of the page after it, if it has one. The data must be JSON without line
    /// breaks.
    pub(super) fn new(name: &'static str, tag: Option<&str>, mut data: Vec<u8>) -> Self {
        escape_line_ends(&mut data, 0);
        let mut text = format!("event: {name}\n").into_bytes();
        if let Some(tag) = tag {
            text.extend_from_slice(format!("id: {tag}\n").as_bytes());
        }
        text.extend_from_slice(b"data: ");
        text.extend_from_slice(&data);
        text.extend_from_slice(b"\n\n");
        Self { name, data: data.into(), text: text.into() }
    }

    /// Returns the text of the event on a stream of one view.
    pub(super) fn text(&self) -> Bytes {
        self.text.clone()
    }

    /// Returns the text of the event on a stream of several views, where the data names the view.
    pub(super) fn text_of_view(&self, view: &str) -> Bytes {
        let (name, view) = (self.name, Json::from(view));
        let mut text = format!("event: {name}\ndata: {{\"view\":{view},\"{name}\":").into_bytes();
        escape_line_ends(&mut text, 0);
        text.extend_from_slice(&self.data);
        text.extend_from_slice(b"}\n\n");
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_a_name_an_id_and_one_line_of_data() {
        let page = Event::new("page", Some("W/\"0a\""), br#"{"total":3}"#.to_vec());
        assert_eq!(page.text(), "event: page\nid: W/\"0a\"\ndata: {\"total\":3}\n\n");
        assert_eq!(
            page.text_of_view("a\nb,limit=10"),
            "event: page\ndata: {\"view\":\"a\\nb,limit=10\",\"page\":{\"total\":3}}\n\n"
        );
        let subject = Event::new("change", None, "{\"subject\":\"a\u{2028}b\"}".into());
        assert_eq!(subject.text(), "event: change\ndata: {\"subject\":\"a\\u2028b\"}\n\n");
        assert!(subject.text_of_view("a\u{85}").starts_with(
            br#"event: change
data: {"view":"a\u0085","change""#
        ));
        assert_eq!(Event::new("problem", None, b"{}".to_vec()).text(), "event: problem\ndata: {}\n\n");
    }
}
