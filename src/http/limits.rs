//! The limits of clients and keys: rates of requests and items, and the number of open streams. Each instance has its
//! own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::client::Client;
use super::codes::Code;
use super::problem::Problem;
use super::rates::{Exceeded, Rates, What, Whose};
use crate::access::{Caller, Rate};

/// The time after which a client may try again to open a stream: when another one ends is not known.
const RETRY_STREAM: Duration = Duration::from_secs(5);

/// The limits of each client (address). What is `None` is not limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientLimits {
    pub(super) requests: Option<Rate>,
    pub(super) items: Option<Rate>,
    /// The number of streams and exports that are open at a time.
    pub(super) streams: u32,
}

/// The limits, and what of them is used.
pub(super) struct Limits {
    of_client: ClientLimits,
    rates: Rates,
    /// How many streams and exports are open. Those who have none are not there.
    open: Mutex<HashMap<Whose, u32>>,
}

impl Limits {
    pub(super) fn new(of_client: ClientLimits) -> Arc<Self> {
        Arc::new(Self { of_client, rates: Rates::new(), open: Mutex::default() })
    }

    /// Counts a request of a client, or refuses it.
    pub(super) fn request_of_client(&self, client: Client) -> Result<(), Problem> {
        self.request(Whose::Client(client), self.of_client.requests)
    }

    /// Counts a request of a caller's key, or refuses it.
    pub(super) fn request_of_key(&self, caller: &Caller) -> Result<(), Problem> {
        caller.key().map_or(Ok(()), |key| self.request(Whose::Key(key.id), key.rates.requests))
    }

    fn request(&self, whose: Whose, rate: Option<Rate>) -> Result<(), Problem> {
        let Some(rate) = rate else { return Ok(()) };
        let taken = self.rates.take(whose, What::Requests, rate, 1);
        taken.map_err(|exceeded| rate_exceeded(exceeded, whose, What::Requests, rate))
    }

    /// Returns the limits of the items of a request.
    pub(super) fn items(self: &Arc<Self>, client: Client, caller: &Caller) -> ItemLimits {
        let of_client = self.of_client.items.map(|rate| (Whose::Client(client), rate));
        let of_key = caller.key().and_then(|key| Some((Whose::Key(key.id), key.rates.items?)));
        ItemLimits { limits: self.clone(), of_client, of_key }
    }

    /// Counts a stream or an export as open until what is returned is dropped, or refuses it.
    pub(super) fn open(self: &Arc<Self>, client: Client, caller: &Caller) -> Result<Open, Problem> {
        let of_key = caller.key().and_then(|key| Some((Whose::Key(key.id), key.rates.streams?)));
        let of_client = (Whose::Client(client), self.of_client.streams);
        let whose: Vec<(Whose, u32)> = [of_client].into_iter().chain(of_key).collect();
        let mut open = self.open.lock();
        for (whose, most) in &whose {
            if open.get(whose).copied().unwrap_or(0) >= *most {
                let detail = format!("{} has {most} streams and exports open, and may have no more", name(*whose));
                let problem = Problem::new(Code::TooManyStreams, detail).with("limit", *most);
                return Err(problem.retry_after(RETRY_STREAM));
            }
        }
        for (whose, _) in &whose {
            *open.entry(*whose).or_default() += 1;
        }
        drop(open);
        let whose = whose.into_iter().map(|(whose, _)| whose).collect();
        Ok(Open { limits: self.clone(), whose })
    }
}

/// A stream or an export that is open.
pub(super) struct Open {
    limits: Arc<Limits>,
    whose: Vec<Whose>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut open = self.limits.open.lock();
        for whose in &self.whose {
            if let Some(number) = open.get_mut(whose) {
                *number -= 1;
                if *number == 0 {
                    open.remove(whose);
                }
            }
        }
    }
}

/// The limits of the items of one request.
#[derive(Clone)]
pub(super) struct ItemLimits {
    limits: Arc<Limits>,
    of_client: Option<(Whose, Rate)>,
    of_key: Option<(Whose, Rate)>,
}

impl ItemLimits {
    /// Returns the largest number of items at once, if it is limited.
    pub(super) fn burst(&self) -> Option<u32> {
        self.all().map(|(_, rate)| rate.burst()).min()
    }

    fn all(&self) -> impl Iterator<Item = (Whose, Rate)> {
        self.of_client.into_iter().chain(self.of_key)
    }

    /// Counts the items of a body, all of them or none.
    pub(super) fn take(&self, items: usize) -> Result<(), Problem> {
        let number = u32::try_from(items).unwrap_or(u32::MAX);
        let exceeded = |(whose, rate), exceeded| rate_exceeded(exceeded, whose, What::Items, rate);
        // What one of them refuses must not be taken from the other.
        for (whose, rate) in self.all() {
            self.limits.rates.look(whose, What::Items, rate, number).map_err(|e| exceeded((whose, rate), e))?;
        }
        for (whose, rate) in self.all() {
            self.limits.rates.take(whose, What::Items, rate, number).map_err(|e| exceeded((whose, rate), e))?;
        }
        Ok(())
    }

    /// Counts some items of a stream, at most [`burst`](Self::burst). Returns the time to wait before it is called
    /// again if they exceed a rate now.
    pub(super) fn take_or_wait(&self, items: usize) -> Result<(), Duration> {
        let number = u32::try_from(items).unwrap_or(u32::MAX);
        for is_look in [true, false] {
            for (whose, rate) in self.all() {
                let number = number.min(rate.burst());
                let (rates, what) = (&self.limits.rates, What::Items);
                let taken =
                    if is_look { rates.look(whose, what, rate, number) } else { rates.take(whose, what, rate, number) };
                if let Err(Exceeded::For(time)) = taken {
                    return Err(time);
                }
            }
        }
        Ok(())
    }
}

/// Returns the name of a client or key for messages. It does not tell the address, which may be that of a proxy.
fn name(whose: Whose) -> &'static str {
    match whose {
        Whose::Client(_) => "the address of the client",
        Whose::Key(_) => "the key",
    }
}

fn rate_exceeded(exceeded: Exceeded, whose: Whose, what: What, rate: Rate) -> Problem {
    let (name, things) = (name(whose), if what == What::Items { "items" } else { "requests" });
    match exceeded {
        Exceeded::For(time) => {
            let detail = format!("{name} may send {things} at the rate {rate}, and has sent more");
            Problem::new(Code::RateLimited, detail).retry_after(time)
        }
        Exceeded::Burst(most) => {
            let detail = format!("{name} may send at most {most} {things} at once (rate {rate}); divide them");
            Problem::new(Code::TooLarge, detail).with("limit", most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Client {
        Client::at(Some([192, 0, 2, number].into()))
    }

    #[test]
    fn streams_count_while_they_are_open() {
        let limits = Limits::new(ClientLimits { requests: None, items: None, streams: 2 });
        let caller = Caller::trusted();
        let open = |number| limits.open(client(number), &caller);
        let (first, second) = (open(1).unwrap(), open(1).unwrap());
        let problem = open(1).err().unwrap();
        assert!(problem.code() == Code::TooManyStreams && problem.has_retry_after(), "{problem}");
        let other = open(2).unwrap();
        drop(first);
        let third = open(1).unwrap();
        drop((other, third, second));
        assert!(limits.open.lock().is_empty());
    }

    #[test]
    fn more_items_than_a_burst_are_too_many_for_one_body() {
        let rate = Some("10/h".parse().unwrap());
        let limits = Limits::new(ClientLimits { requests: None, items: rate, streams: 2 });
        let items = limits.items(client(1), &Caller::trusted());
        assert_eq!(items.burst(), Some(10));
        assert_eq!(items.take(11).unwrap_err().code(), Code::TooLarge);
        assert!(items.take(8).is_ok());
        let problem = items.take(3).unwrap_err();
        assert!(problem.code() == Code::RateLimited && problem.has_retry_after(), "{problem}");
        assert!(items.take_or_wait(3).is_err() && items.take_or_wait(2).is_ok());
        assert!(limits.items(client(2), &Caller::trusted()).take(10).is_ok());
    }
}
