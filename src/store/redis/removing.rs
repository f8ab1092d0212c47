//! What boards leave behind when they are removed: deleted in bounded steps, by any instance.
//!
//! Without its meta key nothing of a board is read or written any more, so what is left can be deleted without haste
//! and without scripts. Its name and generation are noted before the meta key goes, and forgotten after the last of
//! its keys, so an instance that ends half way leaves nothing that another one does not find.

use futures_util::future::try_join_all;
use redis::{Cmd, cmd};

use super::clock;
use super::expiry;
use super::hash_slot::HashSlot;
use super::keys::BoardKeys;
use super::partition::Partition;
use super::parts;
use super::reply::Reply;
use super::servers::{Failure, Line};
use super::session::Session;
use crate::board::{Board, BoardName, Generation, Timestamp};

/// How many slots or buckets one step deletes at most.
const KEYS: usize = 200;
/// How many steps whoever removes a board takes before leaving the rest to the scheduler.
const AT_ONCE: usize = 20;

/// For how long after its parts were noted a board may come to be.
pub(super) const UNBORN: i64 = 60_000;
/// How long after that its parts are left alone still: longer than clocks of servers differ.
const GRACE: i64 = 240_000;

/// A generation of a board of which something may be left, as the store notes it: `<generation>:<name>` and, of a board
/// that is divided, `/<its parts>`; of one that is about to come to be also `@<when that was noted>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    name: BoardName,
    generation: Generation,
    parts: Option<String>,
    unborn: Option<Timestamp>,
}

impl Noted {
    /// That a board is about to be removed.
    pub fn removed(board: &Board) -> Self {
        let parts = board.parts().map(str::to_owned);
        Self { name: board.name().clone(), generation: board.generation(), parts, unborn: None }
    }

    /// That parts of a board are about to be created, now, before the board itself is.
    pub fn unborn(board: &Board, now: Timestamp) -> Self {
        Self { unborn: Some(now), ..Self::removed(board) }
    }

    /// Until when the board may come to be.
    pub fn until(&self) -> Timestamp {
        self.unborn.map_or(Timestamp::MAX, |noted| noted.plus_millis(UNBORN))
    }

    fn parse(text: &str) -> Option<Self> {
        let (generation, rest) = text.split_once(':')?;
        let generation = Generation(u64::from_str_radix(generation, 16).ok()?);
        let (rest, unborn) = match rest.split_once('@') {
            Some((rest, noted)) => (rest, Some(Timestamp::from_millis(noted.parse().ok()?))),
            None => (rest, None),
        };
        let (name, parts) = match rest.split_once('/') {
            Some((name, parts)) => (name, Some(parts.to_owned())),
            None => (rest, None),
        };
        let name = BoardName::parse(name).ok()?;
        if let Some(parts) = &parts {
            Partition::read(&name, parts::count(parts), parts).ok()?;
        }
        Some(Self { name, generation, parts, unborn })
    }

    fn print(&self) -> String {
        let parts = self.parts.as_ref().map_or_else(String::new, |parts| format!("/{parts}"));
        let unborn = self.unborn.map_or_else(String::new, |noted| format!("@{}", noted.millis()));
        format!("{}:{}{parts}{unborn}", self.generation, self.name)
    }

    /// Writes the note down.
    pub async fn write(&self, session: &Session) -> Result<(), Failure> {
        let mut command = cmd("SADD");
        command.arg(session.keys.removed()).arg(self.print());
        session.servers.set(session.keys.removed_slot(), Line::Calls, &command).await.map(drop)
    }

    /// Takes the note off again: nothing is left, or the board has come to be.
    pub async fn strike(&self, session: &Session) -> Result<(), Failure> {
        let mut command = cmd("SREM");
        command.arg(session.keys.removed()).arg(self.print());
        session.servers.set(session.keys.removed_slot(), Line::Calls, &command).await.map(drop)
    }

    /// The keys of its parts.
    fn keys(&self, session: &Session) -> Vec<BoardKeys> {
        let partition = parts::partition(&self.name, self.parts.as_deref());
        parts::keys(&session.keys, &self.name, self.generation, &partition)
    }

    /// Removes the meta keys of its parts, if it has several: from then on nothing of them is read or written.
    pub async fn close(&self, session: &Session) -> Result<(), Failure> {
        if self.parts.is_none() {
            return Ok(());
        }
        let close = |keys: BoardKeys| async move {
            let slot = HashSlot::of_key(keys.meta.as_bytes());
            session.servers.set(slot, Line::Calls, &unlink([&keys.meta])).await
        };
        try_join_all(self.keys(session).into_iter().map(close)).await.map(drop)
    }
}

/// Deletes what a removed board left, or most of it.
pub(super) async fn begin(session: &Session, removed: &Noted) -> Result<(), Failure> {
    for _ in 0..AT_ONCE {
        if step(session, removed).await? {
            break;
        }
    }
    Ok(())
}

/// Deletes the parts of a board that certainly never comes to be.
pub(super) async fn clear(session: &Session, unborn: &Noted) -> Result<(), Failure> {
    unborn.close(session).await?;
    unborn.strike(session).await
}

/// One bounded step for each of the removed boards; answers whether nothing is left of any. One that cannot be worked on
/// keeps nothing from being done for the others.
pub(super) async fn go_on(session: &Session) -> Result<bool, Failure> {
    let mut command = cmd("SMEMBERS");
    command.arg(session.keys.removed());
    let (mut done, mut failed) = (true, None);
    for text in texts(session, session.keys.removed_slot(), &command).await? {
        match Noted::parse(&text) {
            Some(noted) => match step(session, &noted).await {
                Ok(is_done) => done &= is_done,
                Err(failure) => failed = Some(failure),
            },
            None => tracing::warn!(text, "a removed board is noted in words this version does not know"),
        }
    }
    failed.map_or(Ok(done), Err)
}

/// Deletes a bounded part of what the board holds; answers whether nothing is left to do now.
async fn step(session: &Session, noted: &Noted) -> Result<bool, Failure> {
    let meta = session.keys.meta(&noted.name);
    let slot = HashSlot::of_key(meta.as_bytes());
    let mut generation = cmd("HMGET");
    generation.arg(meta).arg("generation");
    let mut reply = Reply::new(session.servers.read(slot, Line::Calls, &generation).await?)?;
    if reply.text_or_none()?.is_some_and(|found| found == noted.generation.to_string()) {
        // Its removal has not come to that, and perhaps never will. Or it was about to come to be, and has.
        if noted.unborn.is_some() {
            noted.strike(session).await?;
        }
        return Ok(true);
    }
    if noted.unborn.is_some() && clock::look(session).await? < noted.until().plus_millis(GRACE) {
        return Ok(true);
    }
    noted.close(session).await?;
    let steps = try_join_all(noted.keys(session).into_iter().map(|keys| step_of_part(session, keys))).await?;
    if steps.contains(&false) {
        return Ok(false);
    }
    noted.strike(session).await?;
    Ok(true)
}

/// Deletes a bounded part of what one part holds; answers whether nothing is left.
async fn step_of_part(session: &Session, keys: BoardKeys) -> Result<bool, Failure> {
    let slot = HashSlot::of_key(keys.index.as_bytes());
    let work = leftovers(session, slot, &keys).await?;
    for command in &work {
        session.servers.set(slot, Line::Calls, command).await?;
    }
    if work.is_empty() {
        session.servers.set(slot, Line::Calls, &unlink([&keys.ranking, &keys.totals])).await?;
    }
    Ok(work.is_empty())
}

/// The commands that delete some of the keys whose names are kept in others; each of these names goes after its key.
async fn leftovers(session: &Session, slot: HashSlot, keys: &BoardKeys) -> Result<Vec<Cmd>, Failure> {
    let oldest = |key: &str, some: usize| {
        let mut command = cmd("ZRANGE");
        command.arg(key).arg(0).arg(some - 1);
        command
    };
    for (index, is_slot) in [(&keys.index, true), (&keys.buckets, false)] {
        let numbers = texts(session, slot, &oldest(index, KEYS)).await?;
        if !numbers.is_empty() {
            let named = numbers.iter().filter_map(|number| number.parse::<i64>().ok());
            let held = named.map(|number| match is_slot {
                true => keys.slot(Timestamp::from_millis(number)),
                false => keys.dedupe(number),
            });
            return Ok(vec![unlink(held), taken_off("ZREM", index, &numbers)]);
        }
    }
    let periods = texts(session, slot, &oldest(&keys.periods, 1)).await?;
    let Some(number) = periods.into_iter().next() else { return Ok(Vec::new()) };
    let written = keys.written(number.parse().unwrap_or_default());
    let subjects = expiry::members(session, slot, &written).await?;
    if subjects.is_empty() {
        return Ok(vec![taken_off("ZREM", &keys.periods, &[number])]);
    }
    let held = subjects.iter().flat_map(|subject| [keys.subject(subject), keys.seen(subject), keys.gone(subject)]);
    let names: Vec<String> = subjects.iter().map(|subject| subject.as_str().to_owned()).collect();
    Ok(vec![unlink(held), taken_off("SREM", &written, &names)])
}

fn unlink<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Cmd {
    let mut command = cmd("UNLINK");
    for key in keys {
        command.arg(key.as_ref());
    }
    command
}

fn taken_off(verb: &str, key: &str, members: &[String]) -> Cmd {
    let mut command = cmd(verb);
    command.arg(key).arg(members);
    command
}

/// The texts that a command answers, which is sent once more where its answer is lost.
async fn texts(session: &Session, slot: HashSlot, command: &Cmd) -> Result<Vec<String>, Failure> {
    Reply::texts(session.servers.read(slot, Line::Calls, command).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_read_back_as_they_were_written() {
        let name = BoardName::parse("hot-posts").unwrap();
        let removed = Noted { name, generation: Generation(7), parts: None, unborn: None };
        let divided = Noted { parts: Some("5,0,12".to_owned()), ..removed.clone() };
        let unborn = Noted { unborn: Some(Timestamp::from_millis(9)), ..divided.clone() };
        for (noted, text) in [
            (removed, "0000000000000007:hot-posts"),
            (divided, "0000000000000007:hot-posts/5,0,12"),
            (unborn, "0000000000000007:hot-posts/5,0,12@9"),
        ] {
            assert_eq!(noted.print(), text);
            assert_eq!(Noted::parse(text), Some(noted));
        }
        for bad in ["", "7", "x:b", "7:", "7:{", "7:b/", "7:b/1,1", "7:b/1@", "7:b/x"] {
            assert!(Noted::parse(bad).is_none(), "{bad}");
        }
    }
}
