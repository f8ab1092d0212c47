//! Live views: the first lines of rankings, read at an interval as long as somebody listens.
//!
//! A view is read, serialized and compared once, however many listeners it has. Each view is a task, which ends when
//! the view has no listeners.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio::time::MissedTickBehavior;

use super::super::client::Client;
use super::super::codes::Code;
use super::super::problem::Problem;
use super::super::rankings::Ranking;
use super::super::request_id::RequestId;
use super::super::{caching, response};
use super::change::RankingChange;
use super::shares::{Cost, Granted, ViewShares};
use super::sse::Event;
use crate::access::Caller;
use crate::board::BoardName;
use crate::service::{About, Page, Service, WindowChoice};

/// The number of events that a listener may be behind. After more it is dropped.
const MAX_BEHIND: usize = 16;
/// The time after which a client may try again if its views take too much memory.
const RETRY_VIEWS: Duration = Duration::from_secs(10);

/// A gauge: the number of live views.
const VIEWS: &str = "rolltop_live_views";

/// The number of views that were begun at a longer interval than the client asked for.
const SLOWED: &str = "rolltop_live_views_slowed_total";

/// Registers the descriptions of the metrics with the recorder.
pub(super) fn describe() {
    describe_gauge!(VIEWS, "Live views: first lines of rankings that at least one stream follows");
    describe_counter!(SLOWED, "Live views that are read less often than requested, because many come from one address");
    // What Prometheus has not seen at 0 has not increased.
    counter!(SLOWED).increment(0);
    gauge!(VIEWS).increment(0.0);
}

/// What identifies a view. Requests with the same key share the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ViewKey {
    pub(super) board: BoardName,
    pub(super) window: WindowChoice,
    pub(super) limit: u32,
    /// The time between two reads, in seconds.
    pub(super) interval: u32,
}

/// All live views of an instance.
pub struct LiveViews {
    service: Arc<Service>,
    /// The runtime of the tasks. Those of the HTTP workers end while the service still answers.
    runtime: Handle,
    /// The length of a second.
    second: Duration,
    registry: Mutex<ViewRegistry>,
}

#[derive(Default)]
struct ViewRegistry {
    views: HashMap<ViewKey, Arc<View>>,
    shares: ViewShares,
    is_closed: bool,
}

/// One view. Locked after the registry, if both are.
struct View {
    /// The client that was the first to ask for the view, and what the view takes of its share.
    client: Client,
    cost: Cost,
    state: Mutex<ViewState>,
}

struct ViewState {
    /// The entity tag of the page.
    tag: String,
    /// The event with the page.
    page: Event,
    /// The event with the problem that the view has since the page was read.
    problem: Option<Event>,
    /// Sends the events after these; `None` once the view has ended.
    events: Option<broadcast::Sender<Event>>,
}

/// A listener's part in a view.
pub(super) struct Subscription {
    /// The events to begin with: the page, unless the listener has it, and the problem of the view, if it has one.
    pub(super) first: Vec<Event>,
    /// The events after these.
    pub(super) events: broadcast::Receiver<Event>,
    /// The time between two reads, in seconds.
    pub(super) interval: u32,
}

impl LiveViews {
    /// Creates the views of an instance. Must be called within a runtime, which will run them.
    pub fn new(service: Arc<Service>) -> Arc<Self> {
        Self::at_pace(service, Duration::from_secs(1))
    }

    /// Creates the views of an instance for which this is the length of a second. For tests, which do not wait for the
    /// real one.
    pub fn at_pace(service: Arc<Service>, second: Duration) -> Arc<Self> {
        Arc::new(Self { service, runtime: Handle::current(), second, registry: Mutex::default() })
    }

    /// Returns a number of seconds.
    pub(super) fn seconds(&self, seconds: u32) -> Duration {
        self.second * seconds
    }

    /// Ends all views and with them all streams, and accepts no more.
    pub fn close(&self) {
        let mut registry = self.registry.lock();
        registry.is_closed = true;
        registry.shares = ViewShares::default();
        registry.views.drain().for_each(|(_, view)| view.end());
        gauge!(VIEWS).set(0.0);
    }

    /// Adds a listener to a view, and creates the view if there is none. `known` is the entity tag of the page that the
    /// listener has. One store call for a new view, otherwise none.
    ///
    /// If the client has used up its share of reads, the view is read less often than asked for.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        caller: &Caller,
        mut key: ViewKey,
        known: Option<&str>,
        client: Client,
    ) -> Result<Subscription, Problem> {
        // A view that exists is not asked for from the service.
        caller.require_board(&key.board)?;
        if let Some(subscription) = self.registry.lock().existing(&key, known)? {
            return Ok(subscription);
        }
        let read = self.read(&key).await?;
        let state = ViewState::new(&read)?;
        let (view, subscription) = {
            let mut registry = self.registry.lock();
            if let Some(subscription) = registry.existing(&key, known)? {
                return Ok(subscription);
            }
            let Granted { cost, interval } = registry.grant(client, &key)?;
            if interval != key.interval {
                counter!(SLOWED).increment(1);
                key.interval = interval;
                if let Some(subscription) = registry.existing(&key, known)? {
                    return Ok(subscription);
                }
            }
            let (view, subscription) = View::new(state, known, (client, cost), interval);
            registry.shares.take(client, cost);
            registry.views.insert(key.clone(), view.clone());
            gauge!(VIEWS).set(registry.views.len() as f64);
            (view, subscription)
        };
        self.runtime.spawn(self.clone().refresh(key, view, read));
        Ok(subscription)
    }

    async fn read(&self, key: &ViewKey) -> Result<About<Page>, Problem> {
        Ok(self.service.shared_page(&key.board, key.window.clone(), key.limit).await?)
    }

    /// Reads a view at its interval and sends what has changed, until it has no listeners or can no longer be read.
    async fn refresh(self: Arc<Self>, key: ViewKey, view: Arc<View>, mut before: About<Page>) {
        let mut ticks = tokio::time::interval(self.seconds(key.interval));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is immediate, and the page was just read.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            if !view.has_listeners() && self.remove_unused(&key, &view) {
                return;
            }
            let published = match self.read(&key).await {
                Ok(now) => view.publish(&before, &now).map(|()| now),
                Err(problem) => Err(problem),
            };
            match published {
                Ok(now) => before = now,
                // Another instance has defined the board again: the next read knows it.
                Err(problem) if problem.code() == Code::BoardChanged => {}
                Err(problem) => {
                    view.fail(&problem);
                    if problem.code().status().is_client_error() {
                        self.registry.lock().remove(&key, &view);
                        return;
                    }
                }
            }
        }
    }

    /// Removes a view unless it has got a listener. Returns whether it is removed.
    fn remove_unused(&self, key: &ViewKey, view: &Arc<View>) -> bool {
        let mut registry = self.registry.lock();
        // Listeners are added under the lock of the registry.
        let is_unused = !view.has_listeners();
        if is_unused {
            registry.remove(key, view);
        }
        is_unused
    }
}

impl ViewRegistry {
    /// Adds a listener to a view that exists. Returns an error if there are to be no more listeners.
    fn existing(&self, key: &ViewKey, known: Option<&str>) -> Result<Option<Subscription>, Problem> {
        if self.is_closed {
            return Err(Problem::new(Code::Overloaded, "this instance is stopping").retry_after(RETRY_VIEWS));
        }
        Ok(self.views.get(key).and_then(|view| view.subscribe(known, key.interval)))
    }

    /// Returns the interval at which a client may have a view that does not exist yet, and what the view takes.
    fn grant(&mut self, client: Client, key: &ViewKey) -> Result<Granted, Problem> {
        // A line with attributes may take so many times as much.
        let lines = key.limit * if key.window.attributes.is_some() { 8 } else { 1 };
        let grant = |shares: &ViewShares| shares.grant(client, lines, key.interval);
        if grant(&self.shares).is_none_or(|granted| granted.interval != key.interval) {
            // Views whose interval is long may have been without listeners for a while.
            self.remove_all_unused();
        }
        grant(&self.shares).ok_or_else(|| {
            let detail = "the live views that this address follows take all memory that it may use; follow fewer \
                          views, or views with a smaller limit";
            Problem::new(Code::Overloaded, detail).retry_after(RETRY_VIEWS)
        })
    }

    /// Removes all views that have no listeners. O(views).
    fn remove_all_unused(&mut self) {
        let Self { views, shares, .. } = self;
        views.retain(|_, view| {
            let is_used = view.has_listeners();
            if !is_used {
                view.end();
                shares.give_back(view.client, view.cost);
            }
            is_used
        });
    }

    fn remove(&mut self, key: &ViewKey, view: &Arc<View>) {
        if let Entry::Occupied(entry) = self.views.entry(key.clone())
            && Arc::ptr_eq(entry.get(), view)
        {
            entry.remove();
            self.shares.give_back(view.client, view.cost);
        }
        view.end();
        gauge!(VIEWS).set(self.views.len() as f64);
    }
}

impl View {
    /// Creates a view with its first listener, which is its client.
    fn new(
        mut state: ViewState,
        known: Option<&str>,
        (client, cost): (Client, Cost),
        interval: u32,
    ) -> (Arc<Self>, Subscription) {
        let (sender, events) = broadcast::channel(MAX_BEHIND);
        state.events = Some(sender);
        let subscription = Subscription { first: state.first(known), events, interval };
        (Arc::new(Self { client, cost, state: Mutex::new(state) }), subscription)
    }

    /// Adds a listener, unless the view has ended.
    fn subscribe(&self, known: Option<&str>, interval: u32) -> Option<Subscription> {
        let state = self.state.lock();
        let events = state.events.as_ref()?.subscribe();
        Some(Subscription { first: state.first(known), events, interval })
    }

    fn has_listeners(&self) -> bool {
        self.state.lock().events.as_ref().is_some_and(|events| events.receiver_count() > 0)
    }

    /// Makes a page the current one, and sends what has changed since the page before, if anything has. After a problem
    /// it is sent even if nothing has, and says that the problem is over.
    fn publish(&self, before: &About<Page>, now: &About<Page>) -> Result<(), Problem> {
        let (tag, page) = page_event(now)?;
        let mut state = self.state.lock();
        if tag != state.tag || state.problem.is_some() {
            let event = if before.of.id() == now.of.id() {
                let change = RankingChange::between(&now.of, (&before.of, &before.answer), &now.answer);
                Event::new("change", Some(&tag), response::to_json(&change)?)
            } else {
                page.clone()
            };
            state.send(event);
        }
        (state.tag, state.page, state.problem) = (tag, page, None);
        Ok(())
    }

    /// Sends the problem that the view has, if it has not had one before.
    fn fail(&self, problem: &Problem) {
        let mut state = self.state.lock();
        if state.problem.is_none() {
            let event = problem_event(problem);
            state.problem = Some(event.clone());
            state.send(event);
        }
    }

    /// Ends the streams of all listeners, after the events that were sent.
    fn end(&self) {
        self.state.lock().events = None;
    }
}

impl ViewState {
    /// Returns the state of a view of this page that has no listeners yet.
    fn new(read: &About<Page>) -> Result<Self, Problem> {
        let (tag, page) = page_event(read)?;
        Ok(Self { tag, page, problem: None, events: None })
    }

    /// Returns the events with which a listener begins.
    fn first(&self, known: Option<&str>) -> Vec<Event> {
        let page = (known != Some(self.tag.as_str())).then_some(&self.page);
        page.into_iter().chain(&self.problem).cloned().collect()
    }

    fn send(&self, event: Event) {
        if let Some(events) = &self.events {
            // Fails only if there are no listeners.
            let _ = events.send(event);
        }
    }
}

/// Returns the entity tag of a page, and the event with the page: the same as the response to a request of the page.
fn page_event(read: &About<Page>) -> Result<(String, Event), Problem> {
    let About { of: track, answer: page } = read;
    let body = response::to_json(&Ranking::new(track, page.clone(), None))?;
    let tag = caching::entity_tag(&body).0.to_string();
    let event = Event::new("page", Some(&tag), body);
    Ok((tag, event))
}

/// Returns the event of a problem that a view has.
pub(super) fn problem_event(problem: &Problem) -> Event {
    let shown = problem.redacted(&RequestId::current()).into_owned();
    Event::new("problem", None, response::to_json(&shown).unwrap_or_else(|_| b"{}".to_vec()))
}
