//! Items that are sent in the background.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use tokio::sync::{Notify, Semaphore, TryAcquireError, watch};
use tokio::time::Instant;

use crate::answers::Rejection;
use crate::connection::{Connection, Sent};
use crate::delivery::{Delivery, Reports};
use crate::item::{Countable, Object};
use crate::queue::{Batching, Next, Queue};
use crate::sending::Sending;
use crate::{Counts, Error, Item, Result};

/// The settings of a [`Sender`].
#[derive(Debug)]
#[must_use = "nothing is sent until it is started"]
pub struct SenderBuilder<T> {
    connection: Arc<Connection>,
    path: Result<String>,
    batching: Batching,
    reports: Reports,
    kind: PhantomData<fn(T)>,
}

/// Sends items in the background, one batch at a time. It is cheap to clone; clones share what waits.
///
/// Each item has an id of its own and is sent again, with the same id, until the service has answered it. So nothing
/// that was added is lost or counted twice, whatever happens to the network or the service, as long as this process
/// lives and the board remembers ids (see [`unknown_for`](SenderBuilder::unknown_for)).
///
/// Close it at the end. When all clones are dropped without that, what waits is sent as long as the runtime lives, and
/// nobody is told whether it was: a program whose `main` ends loses it.
///
/// It belongs to the runtime in which it was started, and may be used in others.
pub struct Sender<T> {
    owner: Arc<Owner>,
    kind: PhantomData<fn(T)>,
}

/// What all clones share. The last one that is dropped ends the task.
struct Owner {
    shared: Arc<Shared>,
    /// The number of items that are done with. It is closed when the task ends.
    done: watch::Receiver<u64>,
}

/// What the clones and the task share.
struct Shared {
    queue: Mutex<Queue>,
    /// A permit for each item that may still be added.
    room: Semaphore,
    /// Told when the task has to look at the queue.
    changed: Notify,
    delivery: Delivery,
}

/// The task.
struct Worker {
    shared: Arc<Shared>,
    done: watch::Sender<u64>,
    connection: Arc<Connection>,
    path: String,
    list: &'static str,
}

impl<T: Countable> SenderBuilder<T> {
    pub(crate) fn new(connection: &Arc<Connection>, path: Result<String>) -> Self {
        let (batching, reports) = (Batching::default(), Reports::default());
        Self { connection: connection.clone(), path, batching, reports, kind: PhantomData }
    }

    /// Sets the largest number of items that wait. By default 10,000.
    pub fn max_items(mut self, items: usize) -> Self {
        self.batching.max_items = items;
        self
    }

    /// Sets the number of items of a batch: it is sent when there are so many. By default 500.
    pub fn batch(mut self, items: usize) -> Self {
        self.batching.items = items;
        self
    }

    /// Sets the time after which items are sent though there are fewer. By default a second.
    pub fn every(mut self, time: Duration) -> Self {
        self.batching.time = time;
        self
    }

    /// Adds amounts for equal subjects up to one item with one id, until they are sent.
    ///
    /// That saves memory of the service, which stores an id for as long as items can be repeated, and lets it combine
    /// what is left. It is for boards of COUNT and SUM. Items with more than a subject, a key and an amount are sent as
    /// they are, and so are amounts of more than 9 digits.
    pub fn coalesces(mut self, coalesces: bool) -> Self {
        self.batching.coalesces = coalesces;
        self
    }

    /// Sets what is called with an item that the service does not count, such as one that is too late. Without, that is
    /// logged.
    ///
    /// It is called in the task that sends, which waits for it: it must not block.
    pub fn on_rejected(mut self, report: impl Fn(&Item, &Rejection) + Send + Sync + 'static) -> Self {
        self.reports.on_rejected = Some(Box::new(report));
        self
    }

    /// Sets what is called with items of a request that the service refuses as a whole, or that were given up. Without,
    /// that is logged, and [`flush`](Sender::flush) and [`close`](Sender::close) return the first one.
    ///
    /// Items that were given up may have been counted, if an answer was lost before. To send them again with their ids
    /// is safe as long as the board remembers those.
    ///
    /// It is called in the task that sends, which waits for it: it must not block.
    pub fn on_failed(mut self, report: impl Fn(&[Item], &Error) + Send + Sync + 'static) -> Self {
        self.reports.on_failed = Some(Box::new(report));
        self
    }

    /// Sets the time for which a batch is sent again. By default for ever, if it certainly was not counted.
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.reports.give_up_after = Some(time);
        self
    }

    /// Sets the time for which a batch is sent again that may have been counted, because an answer was lost. By default
    /// 20 minutes.
    ///
    /// It must be shorter than the board remembers ids (`ids.horizon` of its status), or the batch may count twice.
    pub fn unknown_for(mut self, time: Duration) -> Self {
        self.reports.unknown_for = time;
        self
    }

    /// Starts sending in a task of this runtime.
    ///
    /// # Errors
    ///
    /// `invalid_setting`, if a batch is empty, nothing may wait, or outside of a runtime; `invalid_name` for
    /// a name that no board can have.
    pub fn start(self) -> Result<Sender<T>> {
        let Batching { items, max_items, .. } = self.batching;
        if items == 0 || max_items == 0 || max_items > Semaphore::MAX_PERMITS {
            return Err(Error::invalid_setting(
                "a batch must have an item, and an item must be able to wait".to_owned(),
            ));
        }
        let runtime = tokio::runtime::Handle::try_current();
        let runtime = runtime.map_err(|_| Error::invalid_setting("a sender needs a runtime of tokio".to_owned()))?;
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::new(Batching { items: items.min(max_items), ..self.batching })),
            room: Semaphore::new(max_items),
            changed: Notify::new(),
            delivery: Delivery::new(self.reports),
        });
        let (done, seen) = watch::channel(0);
        let (connection, path) = (self.connection, self.path?);
        let worker = Worker { shared: shared.clone(), done, connection, path, list: T::LIST };
        runtime.spawn(worker.run());
        Ok(Sender { owner: Arc::new(Owner { shared, done: seen }), kind: PhantomData })
    }
}

impl<T: Countable> Sender<T> {
    /// Adds an item. It waits while there is no room: then the service, or the network, is slower than the program.
    ///
    /// If the future is dropped before it is done, the item was not added.
    ///
    /// # Errors
    ///
    /// `invalid_item`, if something of it cannot be sent, such as an amount that is no number; `closed` after the sender was closed.
    pub async fn add(&self, item: T) -> Result<()> {
        let item = item.into_object().checked()?;
        let shared = &self.owner.shared;
        if shared.combine(&item)? {
            return Ok(());
        }
        let room = shared.room.acquire().await.map_err(|_| Error::closed())?;
        // What takes no room gives it back.
        if shared.put(item)? {
            room.forget();
        }
        Ok(())
    }

    /// Adds an item if there is room at once. Returns whether there was; if not, it is dropped, which
    /// [`counts`](Self::counts) says.
    ///
    /// # Errors
    ///
    /// See [`add`](Self::add).
    pub fn offer(&self, item: T) -> Result<bool> {
        let item = item.into_object().checked()?;
        let shared = &self.owner.shared;
        if shared.combine(&item)? {
            return Ok(true);
        }
        match shared.room.try_acquire() {
            Ok(room) => {
                if shared.put(item)? {
                    room.forget();
                }
                Ok(true)
            }
            Err(TryAcquireError::NoPermits) => {
                shared.delivery.count(|counts| counts.dropped += 1);
                Ok(false)
            }
            Err(TryAcquireError::Closed) => Err(Error::closed()),
        }
    }

    /// Waits until all that was added before was answered or given up.
    ///
    /// If the future is dropped before it is done, items are sent all the same.
    ///
    /// # Errors
    ///
    /// That of the first items that failed since the last call, unless there is an
    /// [`on_failed`](SenderBuilder::on_failed); `interrupted`, if the runtime of the sender has ended.
    pub async fn flush(&self) -> Result<()> {
        let shared = &self.owner.shared;
        let before = shared.queue().hurry();
        shared.changed.notify_one();
        let mut done = self.owner.done.clone();
        // Ended before that, unless all was done.
        let _ = done.wait_for(|done| *done >= before).await;
        self.owner.result(before)
    }

    /// Sends all that was added, and ends. For all clones: an [`add`](Self::add) that waits for room returns `closed`.
    ///
    /// It waits for the service for as long as that cannot be reached. To wait shorter, use it with a time-out; what
    /// was not answered then is in [`counts`](Self::counts), and sent as long as the runtime lives.
    ///
    /// # Errors
    ///
    /// See [`flush`](Self::flush).
    pub async fn close(&self) -> Result<()> {
        let shared = &self.owner.shared;
        shared.end();
        let mut done = self.owner.done.clone();
        // Until the task ends.
        while done.changed().await.is_ok() {}
        let added = shared.queue().added;
        self.owner.result(added)
    }

    /// Returns the numbers of items, by what became of them.
    pub fn counts(&self) -> Counts {
        // In this order what is on its way is not left out.
        let done = *self.owner.done.borrow();
        let queue = self.owner.shared.queue();
        Counts { combined: queue.combined, waiting: queue.added - done, ..self.owner.shared.delivery.counts() }
    }
}

impl Owner {
    /// Returns whether these first items were answered.
    fn result(&self, items: u64) -> Result<()> {
        if let Some(failure) = self.shared.delivery.take_failure() {
            return Err(failure);
        }
        match *self.done.borrow() >= items {
            true => Ok(()),
            false => Err(Error::interrupted("the runtime of the sender has ended, and not all items were answered")),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an amount to an item that waits. Returns whether it was.
    fn combine(&self, item: &Object) -> Result<bool> {
        let mut queue = self.queue();
        if queue.is_closing {
            return Err(Error::closed());
        }
        Ok(queue.combine(item))
    }

    /// Adds an item, for which there is room. Returns whether it takes any.
    fn put(&self, item: Object) -> Result<bool> {
        let mut queue = self.queue();
        if queue.is_closing {
            return Err(Error::closed());
        }
        // An item to which it is added may have come while this one waited for room.
        if queue.combine(&item) {
            return Ok(false);
        }
        let is_due = queue.add(item, Instant::now());
        drop(queue);
        if is_due {
            self.changed.notify_one();
        }
        Ok(true)
    }

    /// Lets the task end when all was sent.
    fn end(&self) {
        self.queue().is_closing = true;
        self.room.close();
        self.changed.notify_one();
    }
}

impl Worker {
    async fn run(self) {
        loop {
            // Not in the `match`, which would keep the queue locked.
            let next = self.shared.queue().next(Instant::now());
            match next {
                Next::Send(batch) => self.send(batch).await,
                Next::At(time) => {
                    let _ = tokio::time::timeout_at(time, self.shared.changed.notified()).await;
                }
                Next::Never => self.shared.changed.notified().await,
                Next::Ended => return,
            }
        }
    }

    /// Sends a batch until all of it was answered or given up.
    async fn send(&self, batch: Vec<Item>) {
        let items = batch.len();
        self.shared.room.add_permits(items);
        let mut sending = Sending::new(&self.shared.delivery, batch);
        loop {
            let body = sending.body(self.list);
            let sent = Sent {
                method: &Method::POST,
                path: &self.path,
                body: Some(&body),
                media_type: "application/json",
                accept: "application/json",
                headers: &[],
            };
            let answer = self.connection.fetch(&sent, self.connection.timeout).await;
            match sending.take(answer) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => break,
            }
        }
        self.done.send_modify(|done| *done += items as u64);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Also if the runtime ends: nobody must wait for a task that is not there.
        self.shared.end();
        let left = self.shared.queue().added - *self.done.borrow();
        if left > 0 {
            tracing::error!(items = left, "items were not sent, because the runtime has ended");
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { owner: self.owner.clone(), kind: PhantomData }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}
