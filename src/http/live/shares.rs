//! The shares of client addresses in what live views take: reads of the store, and memory.
//!
//! An address may take as much as is still free. So one address never takes more than half, and there is always some
//! left for another one.

use std::collections::HashMap;

use super::super::client::Client;

/// The reads a minute that views may take together at the intervals that clients ask for: those of 1,000 views at 1 s.
const READS: u64 = 60_000;
/// The shortest interval, in seconds, of views for which an address has no reads left.
pub(super) const LONGER_INTERVAL: u32 = 15;
/// The memory that all views together may take.
const BYTES: u64 = 128 << 20;
/// The memory that a view takes, and what each of its lines adds with a name of usual length.
const BYTES_OF_VIEW: u64 = 4 << 10;
const BYTES_OF_LINE: u64 = 512;

/// What one or more views take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Reads a minute.
    reads: u64,
    bytes: u64,
}

impl Cost {
    /// Returns the cost of a view with this many lines that is read at this interval, in seconds.
    fn of_view(lines: u32, interval: u32) -> Self {
        let bytes = BYTES_OF_VIEW + BYTES_OF_LINE * u64::from(lines);
        Self { reads: 60 / u64::from(interval.max(1)), bytes }
    }
}

/// A view that a client may have: what it costs and the interval at which it is read, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) cost: Cost,
    pub(super) interval: u32,
}

/// What the views of an instance take, by the client that was the first to ask for them.
#[derive(Debug, Default)]
pub(super) struct ViewShares {
    by_client: HashMap<Client, Cost>,
    all: Cost,
}

impl ViewShares {
    /// Returns at which interval a client may have another view: the one that it asks for, or at least
    /// [`LONGER_INTERVAL`]. Returns `None` if it may have none, because too little memory is left.
    pub(super) fn grant(&self, client: Client, lines: u32, interval: u32) -> Option<Granted> {
        let own = self.by_client.get(&client).copied().unwrap_or_default();
        let cost = Cost::of_view(lines, interval);
        if own.bytes + cost.bytes > BYTES.saturating_sub(self.all.bytes) {
            return None;
        }
        if own.reads + cost.reads <= READS.saturating_sub(self.all.reads) {
            return Some(Granted { cost, interval });
        }
        let interval = interval.max(LONGER_INTERVAL);
        Some(Granted { cost: Cost::of_view(lines, interval), interval })
    }

    /// Records a view that was granted to a client.
    pub(super) fn take(&mut self, client: Client, cost: Cost) {
        for sum in [self.by_client.entry(client).or_default(), &mut self.all] {
            sum.reads += cost.reads;
            sum.bytes += cost.bytes;
        }
    }

    /// Records the end of such a view.
    pub(super) fn give_back(&mut self, client: Client, cost: Cost) {
        let less = |sum: &mut Cost| {
            sum.reads = sum.reads.saturating_sub(cost.reads);
            sum.bytes = sum.bytes.saturating_sub(cost.bytes);
        };
        less(&mut self.all);
        if let Some(own) = self.by_client.get_mut(&client) {
            less(own);
            if *own == Cost::default() {
                self.by_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn client(number: u32) -> Client {
        Client::at(Some(Ipv4Addr::from(number).into()))
    }

    /// Takes views until no more are granted at this interval. Returns their number, and what is granted then.
    fn take_all(shares: &mut ViewShares, client: Client, lines: u32, interval: u32) -> (usize, Option<Granted>) {
        let mut taken = 0;
        loop {
            match shares.grant(client, lines, interval) {
                Some(granted) if granted.interval == interval => shares.take(client, granted.cost),
                other => return (taken, other),
            }
            taken += 1;
        }
    }

    #[test]
    fn each_client_gets_as_much_as_is_free_and_more_at_a_longer_interval() {
        let mut shares = ViewShares::default();
        for (number, expected) in [(1, 500), (2, 250), (3, 125), (4, 63)] {
            let (taken, more) = take_all(&mut shares, client(number), 10, 1);
            assert_eq!((taken, more.map(|more| more.interval)), (expected, Some(LONGER_INTERVAL)));
        }
        assert_eq!(shares.grant(client(5), 10, 1).map(|granted| granted.interval), Some(1));
        assert_eq!(shares.grant(client(1), 10, 60).map(|granted| granted.interval), Some(60), "a longer one stays");
    }

    #[test]
    fn memory_is_the_only_reason_to_refuse() {
        let mut shares = ViewShares::default();
        let mut slow = |number| take_all(&mut shares, client(number), 100, 60);
        let ((first, refused), (second, _)) = (slow(1), slow(2));
        assert!((1_000..1_300).contains(&first) && second >= first / 2 && refused.is_none(), "{first} and {second}");
        assert!(shares.grant(client(3), 100, 1).is_some());
    }

    #[test]
    fn what_is_given_back_is_free_again() {
        let mut shares = ViewShares::default();
        let granted = shares.grant(client(1), 10, 1).unwrap();
        shares.take(client(1), granted.cost);
        shares.take(client(1), granted.cost);
        shares.give_back(client(1), granted.cost);
        assert_eq!(shares.by_client[&client(1)], granted.cost);
        shares.give_back(client(1), granted.cost);
        assert!(shares.by_client.is_empty() && shares.all == Cost::default());
    }
}
