//! The body of a stream: the events of the views that one client listens to.

use std::time::Duration;

use actix_web::web::Bytes;
use futures_util::stream::{self, BoxStream, SelectAll, Stream, StreamExt};
use metrics::{Counter, counter, describe_counter, describe_gauge, gauge};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::super::admission::Validity;
use super::super::limits::Open;
use super::super::metrics::InProgress;
use super::sse::{Event, HEARTBEAT, RETRY};
use super::views::Subscription;

/// A gauge: the number of open streams.
const LISTENERS: &str = "rolltop_live_listeners";
/// The number of streams that were ended because their client did not read fast enough.
const DROPPED: &str = "rolltop_live_listeners_dropped_total";

/// Registers the descriptions of the metrics with the recorder.
pub(super) fn describe() {
    describe_gauge!(LISTENERS, "Open streams of live rankings");
    describe_counter!(DROPPED, "Streams of live rankings that were ended because their client read too slowly");
    // What Prometheus has not seen at 0 has not increased.
    counter!(DROPPED).increment(0);
    gauge!(LISTENERS).increment(0.0);
}

/// A view of a stream: its name, if the stream has several, and its events, or else the problem that it has.
pub(super) struct Listened {
    pub(super) name: Option<String>,
    pub(super) view: Result<Subscription, Event>,
}

/// A client of a stream.
struct Listener {
    /// The bytes to send first, until they are sent.
    first: Option<Bytes>,
    /// The texts of the events of all views.
    events: SelectAll<BoxStream<'static, Result<Bytes, TooFarBehind>>>,
    silence: Duration,
    validity: Validity,
    _open: Option<Open>,
    dropped: Counter,
    _in_progress: InProgress,
}

/// The client has not read events that are no longer there.
struct TooFarBehind;

/// Returns the body of a stream of these views, which has something to send at least once in the time `silence`. It
/// ends when all views have ended, when the client is too far behind, or when its caller is not valid any more.
pub(super) fn body(
    views: Vec<Listened>,
    silence: Duration,
    validity: Validity,
    open: Option<Open>,
) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
    let (mut first, mut events) = (RETRY.to_vec(), SelectAll::new());
    for Listened { name, view } in views {
        let (begin, receiver) = match view {
            Ok(Subscription { first, events, .. }) => (first, Some(events)),
            Err(problem) => (vec![problem], None),
        };
        for event in begin {
            first.extend_from_slice(&text(name.as_deref(), &event));
        }
        events.extend(receiver.map(|receiver| received(name, receiver)));
    }
    let in_progress = InProgress::new(gauge!(LISTENERS));
    let first = Some(first.into());
    let listener = Listener {
        first,
        events,
        silence,
        validity,
        _open: open,
        dropped: counter!(DROPPED),
        _in_progress: in_progress,
    };
    stream::unfold(listener, |mut listener| async {
        let bytes = listener.next().await?;
        Some((Ok(bytes), listener))
    })
}

/// Returns the texts of the events of a view until it ends.
fn received(name: Option<String>, receiver: Receiver<Event>) -> BoxStream<'static, Result<Bytes, TooFarBehind>> {
    let next = |(name, mut receiver): (Option<String>, Receiver<Event>)| async move {
        let received = match receiver.recv().await {
            Ok(event) => Ok(text(name.as_deref(), &event)),
            Err(RecvError::Lagged(_)) => Err(TooFarBehind),
            Err(RecvError::Closed) => return None,
        };
        Some((received, (name, receiver)))
    };
    stream::unfold((name, receiver), next).boxed()
}

fn text(name: Option<&str>, event: &Event) -> Bytes {
    name.map_or_else(|| event.text(), |name| event.text_of_view(name))
}

impl Listener {
    /// Returns the next bytes of the body, or `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let next = async {
            tokio::select! {
                biased;
                problem = self.validity.end() => {
                    tracing::debug!(%problem, "a stream ends with its caller");
                    None
                }
                event = self.events.next() => event,
            }
        };
        match timeout(self.silence, next).await {
            Err(_) => Some(HEARTBEAT),
            Ok(None) => None,
            Ok(Some(Ok(event))) => Some(event),
            Ok(Some(Err(TooFarBehind))) => {
                self.dropped.increment(1);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{broadcast, watch};

    use super::*;
    use crate::access::{Caller, Credential, Grant, Key, KeyKind, KeyRates, KeySecret, Secret};

    /// Returns a caller that stays valid.
    fn for_ever() -> Validity {
        Validity::new(Caller::trusted(), watch::channel(()).1)
    }

    #[tokio::test]
    async fn a_stream_in_which_nothing_happens_ends_with_its_caller() {
        let secret = Secret::draw(KeyKind::Secret).unwrap();
        let secrets = vec![KeySecret { hash: secret.hash(), until: None }];
        let (id, kind, grant, origins) = (secret.id(), KeyKind::Secret, Grant::all(), Vec::new());
        let key = Key {
            id,
            name: "k".to_owned(),
            kind,
            grant,
            origins,
            created_at: None,
            expires_at: None,
            secrets,
            public_key: None,
            rates: KeyRates::default(),
        };
        let (ended, receiver) = watch::channel(());
        let credential = Arc::new(Credential::new(&key, key.secrets[0]));
        let validity = Validity::new(Caller::with_key(credential.clone()), receiver);
        let (_sender, events) = broadcast::channel(2);
        let view = Ok(Subscription { first: Vec::new(), events, interval: 1 });
        let mut body = Box::pin(body(vec![Listened { name: None, view }], Duration::from_secs(3_600), validity, None));
        assert_eq!(text(&mut body).await.unwrap(), "retry: 2000\n\n");
        let end = async {
            // Another credential ends first.
            ended.send_replace(());
            tokio::task::yield_now().await;
            credential.end();
            ended.send_replace(());
        };
        assert_eq!(tokio::join!(text(&mut body), end).0, None);
    }

    fn event(number: usize) -> Event {
        Event::new("change", None, number.to_string().into_bytes())
    }

    async fn text(body: &mut (impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Unpin)) -> Option<String> {
        Some(String::from_utf8(body.next().await?.unwrap().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_client_that_is_too_far_behind_is_dropped() {
        let (sender, events) = broadcast::channel(2);
        let view = Ok(Subscription { first: vec![event(0)], events, interval: 1 });
        let mut body = Box::pin(body(vec![Listened { name: None, view }], Duration::from_secs(60), for_ever(), None));
        assert_eq!(text(&mut body).await.unwrap(), "retry: 2000\n\nevent: change\ndata: 0\n\n");
        sender.send(event(1)).unwrap();
        sender.send(event(2)).unwrap();
        assert_eq!(text(&mut body).await.unwrap(), "event: change\ndata: 1\n\n");
        for number in 3..6 {
            sender.send(event(number)).unwrap();
        }
        assert_eq!(text(&mut body).await, None);
    }

    #[tokio::test]
    async fn a_stream_ends_with_the_last_of_its_views() {
        let (first, second) = (broadcast::channel(2), broadcast::channel(2));
        let views = [("a", first.1), ("b", second.1)].map(|(name, events)| Listened {
            name: Some(name.to_owned()),
            view: Ok(Subscription { first: Vec::new(), events, interval: 1 }),
        });
        let mut body = Box::pin(body(views.into(), Duration::from_millis(1), for_ever(), None));
        assert_eq!(text(&mut body).await.unwrap(), "retry: 2000\n\n");
        assert_eq!(text(&mut body).await.unwrap(), ": heartbeat\n\n", "nothing happens");
        drop(first.0);
        second.0.send(event(7)).unwrap();
        let named = loop {
            match text(&mut body).await.unwrap() {
                heartbeat if heartbeat.starts_with(':') => {}
                named => break named,
            }
        };
        assert_eq!(named, "event: change\ndata: {\"view\":\"b\",\"change\":7}\n\n");
        drop(second.0);
        assert_eq!(text(&mut body).await, None);
    }
}
