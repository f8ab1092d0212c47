//! What all clients share of one thing that is limited, such as memory or connections.
//!
//! A client may have at most as much as it leaves to others. So one alone has half of it, and however many there are, the
//! next one still finds some. (Known from the buffers of switches as *dynamic thresholds*: Choudhury and Hahne, 1998.)

use std::collections::HashMap;

use parking_lot::Mutex;

use super::client::Client;

/// A limit, and what each client has of it.
pub(super) struct Shares {
    limit: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    total: usize,
    by_client: HashMap<Client, usize>,
}

impl Shares {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: Mutex::default() }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns how much all clients have.
    #[cfg(test)]
    pub(super) fn total(&self) -> usize {
        self.held.lock().total
    }

    /// Returns whether no client has any.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        let held = self.held.lock();
        held.total == 0 && held.by_client.is_empty()
    }

    /// Changes a part of what a client has. Returns the new total, or `None` if it would be more than its share: then
    /// nothing has changed.
    pub(super) fn change(&self, client: Client, from: usize, to: usize) -> Option<usize> {
        let mut held = self.held.lock();
        let own = held.by_client.get(&client).copied().unwrap_or(0) + to - from;
        let total = held.total + to - from;
        if to > from && own > self.limit.saturating_sub(total) {
            return None;
        }
        held.total = total;
        if own == 0 {
            held.by_client.remove(&client);
        } else {
            held.by_client.insert(client, own);
        }
        Some(total)
    }
}
