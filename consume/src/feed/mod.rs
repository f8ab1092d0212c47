//! One log: asks the service where to go on, reads, sends, and asks again whenever something is not as expected.

mod detours;
mod outcome;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use futures_util::FutureExt;
use tokio::sync::watch;

use crate::choices::{Begin, Choices};
use crate::dead_letters::DeadLetters;
use crate::events::Mapping;
use crate::log::{After, GroupOffsets, Log, LogError, LogPlace, MAX_MESSAGES, Message};
use crate::portion::{Poison, Portion};
use crate::seen::{FeedSeen, FeedState};
use crate::source::{Reached, ServiceSource};

/// After this long without messages it is asked whether the service still is where it was: a restored backup is not.
const IDLE: Duration = Duration::from_secs(5);
/// The longest pause after failures.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How long is waited where somebody has to do something.
const LOOKED_AT: Duration = Duration::from_secs(30);
/// After so many portions that were all counted before it is found out whether another program reads the same log.
const REPEATED: u32 = 3;
const MOMENT: Duration = Duration::from_secs(1);
/// The longest pause while events wait for a board.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// How long somebody waits who waits for the end, if the log or the service cannot be reached.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long a log has to be at its end before a fill ends there: a broker that has just become the leader of a partition may say
/// too early that nothing is left.
const SETTLED: Duration = Duration::from_secs(2);
/// How often it is asked how long a log is.
const REFRESH: Duration = Duration::from_secs(5);

/// A log and its source.
pub struct Feed {
    pub source: ServiceSource,
    pub log: Box<dyn Log>,
    pub mapping: Arc<Mapping>,
    pub choices: Choices,
    pub dead_letters: Option<DeadLetters>,
    /// What says how far the log is counted to those who watch it.
    pub group: Option<Arc<GroupOffsets>>,
    pub seen: Arc<FeedSeen>,
    /// The boards with which the source is defined, once, if the service does not know it.
    pub define: Option<Vec<String>>,
    pub stop: watch::Receiver<bool>,
    pub remembered: Remembered,
}

/// What a feed knows beside where it is.
#[derive(Debug)]
pub struct Remembered {
    /// The largest number of messages in a portion: fewer while it is found out which one the service refuses.
    limit: usize,
    poison: Option<Poison>,
    /// Up to where messages that make no event have been kept: they are not kept again when a portion is sent again.
    kept: Option<u128>,
    /// Number of portions in a row that were all counted before.
    repeated: u32,
    failures: u32,
    /// The place for which a gap was said.
    gap: Option<LogPlace>,
    /// Whether it was said that no board counts the events.
    passed_all: bool,
    left_out: Vec<String>,
}

impl Default for Remembered {
    fn default() -> Self {
        let (poison, kept, gap, left_out) = (None, None, None, Vec::new());
        Self { limit: MAX_MESSAGES, poison, kept, repeated: 0, failures: 0, gap, passed_all: false, left_out }
    }
}

/// How a feed has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEnd {
    Filled,
    /// It was told to.
    Told,
    /// The log has nothing more, and all of it is counted.
    Through,
    /// The log is not what it was.
    Stopped,
}

/// Why a session has ended, and it is asked again where to go on.
enum Detour {
    /// The service is not where it was thought to be.
    Again,
    /// It is found out which message the service refuses.
    Narrower,
    /// Something is to pass first.
    Wait(FeedState, Duration),
    Fail(anyhow::Error, Option<Duration>),
    /// Another program is ahead.
    StandBy,
    End(FeedEnd, Option<anyhow::Error>),
}

impl From<LogError> for Detour {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Later(error) => Detour::Fail(error, None),
            LogError::Stop(error) => Detour::End(FeedEnd::Stopped, Some(error)),
        }
    }
}

impl Feed {
    /// Reads the log until it is told to stop, or is not what it was, or the fill has ended.
    pub async fn run(self) -> FeedEnd {
        let seen = self.seen.clone();
        ended(&seen, self.go_on()).await
    }

    async fn go_on(mut self) -> FeedEnd {
        let mut failing: Option<Instant> = None;
        loop {
            let Err(detour) = self.session().await;
            let (state, pause) = match detour {
                Detour::End(ended, why) => {
                    match (ended, why) {
                        (FeedEnd::Filled, _) => self.seen.set(FeedState::Filled),
                        (_, Some(why)) => self.seen.set(FeedState::Stopped(format!("{why:#}"))),
                        _ => {}
                    }
                    return ended;
                }
                Detour::Narrower => continue,
                Detour::Again => (None, if self.remembered.failures == 0 { Duration::ZERO } else { self.growing() }),
                Detour::Wait(state @ FeedState::Stopped(_), _) if self.is_for_once() => {
                    self.seen.set(state);
                    return FeedEnd::Stopped;
                }
                Detour::Wait(state, pause) => (Some(state), pause),
                Detour::Fail(error, asked) => {
                    self.seen.failures.increment(1);
                    // What was counted in the meantime was counted well.
                    let since = *failing.filter(|_| self.remembered.failures > 0).get_or_insert_with(Instant::now);
                    failing = Some(since);
                    if self.is_for_once() && since.elapsed() >= PATIENCE {
                        self.seen.set(FeedState::Stopped(format!("{error:#}")));
                        return FeedEnd::Stopped;
                    }
                    (Some(FeedState::Failing(format!("{error:#}"))), asked.unwrap_or_else(|| self.growing()))
                }
                Detour::StandBy => {
                    self.seen.set(FeedState::StandingBy);
                    self.stand_by().await;
                    (None, Duration::ZERO)
                }
            };
            self.remembered.failures = self.remembered.failures.saturating_add(1);
            state.into_iter().for_each(|state| self.seen.set(state));
            if self.pause(pause).await {
                return FeedEnd::Told;
            }
        }
    }

    /// Reads and sends for as long as all goes as expected.
    async fn session(&mut self) -> Result<Infallible, Detour> {
        let reached = match self.source.ask().await {
            Ok(reached) => reached,
            Err(error) => return Err(self.unanswered(error).await),
        };
        if let Some(board) = self.source.fill.clone().filter(|_| reached.is_none()) {
            self.join(&board).await?;
        }
        let (mut after, place) = match reached {
            None => (None, LogPlace::Begin(self.choices.begin)),
            Some(Reached::Start) => (None, LogPlace::Begin(Begin::Earliest)),
            Some(Reached::At(position)) => self.mapping.go_on(position),
        };
        let found = self.log.go_to(place).await?;
        if let Some(gap) = found.gap {
            self.say_gap(place, gap)?;
        }
        let mut messages = match (reached, found.after) {
            // The beginning is kept: otherwise it would be another one after a crash before the first event.
            (None, Some(begin)) => {
                let begin = self.mapping.passed(begin);
                after = begin.checked_sub(1);
                self.send(&mut after, Portion::passing(begin), Vec::new()).await?
            }
            _ => self.read().await?,
        };
        let (mut heard, mut refreshed, mut at_end) = (Instant::now(), Instant::now(), None);
        loop {
            if *self.stop.borrow() {
                return Err(Detour::End(FeedEnd::Told, None));
            }
            let mut portion = self.portion(messages);
            if !portion.messages.is_empty() || portion.stopped.is_some() {
                at_end = None;
            } else if self.is_for_once() && self.log.is_at_end().await? {
                let since = *at_end.get_or_insert_with(Instant::now);
                if self.source.fill.is_none() {
                    return Err(Detour::End(FeedEnd::Through, None));
                }
                if since.elapsed() >= SETTLED {
                    portion = self.rest_of_fill(after).await?;
                }
            }
            if portion.lines.is_empty() && portion.stopped.is_none() && heard.elapsed() < IDLE {
                messages = self.read().await?;
                self.seen.set(FeedState::Reading);
                self.remembered.failures = 0;
            } else {
                let (stopped, rest) = (portion.stopped.take(), std::mem::take(&mut portion.rest));
                // What is before the message that stops the source is counted.
                if stopped.is_none() || !portion.lines.is_empty() {
                    messages = self.send(&mut after, portion, rest).await?;
                    heard = Instant::now();
                } else {
                    messages = rest;
                }
                if let Some(why) = stopped {
                    return Err(Detour::Wait(FeedState::Stopped(why), LOOKED_AT));
                }
            }
            if refreshed.elapsed() >= REFRESH {
                self.log.refresh().await?;
                refreshed = Instant::now();
            }
            self.say_behind(&messages);
        }
    }

    /// Has the board that is filled join the source: boards do so with the next item, and there may be none for long. So the
    /// place up to which all is counted is sent once more. If nothing is counted, nothing is to be filled.
    async fn join(&mut self, board: &String) -> Result<(), Detour> {
        let joined = async {
            let all = self.source.of_all_boards();
            let Some(Reached::At(reached)) = all.ask().await? else { return Ok(None) };
            all.send(reached.checked_sub(1), Portion::passing(reached).lines).await.map(Some)
        };
        match joined.await {
            Ok(Some(receipt)) if receipt.source.left_out.contains(board) => {
                let why = anyhow::anyhow!(
                    "'{board}' cannot join the source: its data is damaged, or the source has all the boards that it can have"
                );
                Err(Detour::End(FeedEnd::Stopped, Some(why)))
            }
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Detour::End(FeedEnd::Filled, None)),
            Err(error) if error.code() == "source_behind" => Err(Detour::Again),
            Err(error) => Err(self.unanswered(error).await),
        }
    }

    /// At the end of the log: returns what says that nothing is left of it up to where the source is, beyond which nothing is
    /// filled. The newest of what is counted may be deleted from the log, and would be waited for.
    async fn rest_of_fill(&mut self, after: After) -> Result<Portion, Detour> {
        if !self.log.is_there() {
            let text =
                "the log is not there, so nobody knows what is left to fill; the same command goes on where it was";
            return Err(LogError::stop(text).into());
        }
        match self.source.of_all_boards().ask().await {
            // The board joined there or before, and before the end of the log was looked at.
            Ok(Some(Reached::At(reached))) if Some(reached) > after => Ok(Portion::passing(reached)),
            Ok(Some(Reached::At(_))) => {
                Err(Detour::Wait(FeedState::Waiting("another board is behind".to_owned()), MOMENT))
            }
            Ok(_) => Err(Detour::End(FeedEnd::Filled, None)),
            Err(error) => Err(self.unanswered(error).await),
        }
    }

    async fn read(&mut self) -> Result<Vec<Message>, LogError> {
        read_unless(self.log.as_mut(), self.stop.clone()).await
    }

    /// Makes a portion of messages.
    fn portion(&mut self, messages: Vec<Message>) -> Portion {
        let Remembered { limit, poison, .. } = &self.remembered;
        Portion::of(messages, *limit, &self.mapping, self.choices.on_unreadable, poison.as_ref())
    }

    /// Sends a portion. Returns what follows it: the rest of what was read, or what is read in the meantime.
    async fn send(
        &mut self,
        after: &mut After,
        mut portion: Portion,
        rest: Vec<Message>,
    ) -> Result<Vec<Message>, Detour> {
        self.keep_unreadable(&portion).await?;
        let answer = self.source.send(*after, std::mem::take(&mut portion.lines));
        let (answer, next) = match rest.is_empty() {
            true => tokio::join!(answer, read_unless(self.log.as_mut(), self.stop.clone())),
            false => (answer.await, Ok(rest)),
        };
        let receipt = match answer {
            Ok(receipt) => receipt,
            Err(error) => return Err(self.refused(error, &portion)),
        };
        self.record(&receipt, &portion).await?;
        let expected = portion.last.or(*after);
        let reached = match receipt.source.reached {
            None if portion.last.is_none() => return Ok(next?),
            None => {
                let text = "no board of the source is defined yet".to_owned();
                return Err(Detour::Wait(FeedState::Waiting(text), IDLE));
            }
            Some(Reached::Start) => None,
            Some(Reached::At(position)) => Some(position),
        };
        let is_repeated = portion.events > 0 && receipt.source.repeated >= portion.events as u64;
        // Another program that is ahead says it itself.
        if !is_repeated && reached <= expected {
            self.say_counted(reached);
        }
        if receipt.source.filled {
            return Err(Detour::End(FeedEnd::Filled, None));
        }
        if receipt.source.waiting > 0 {
            let codes: Vec<&str> = receipt.source.waiting_for.keys().map(String::as_str).collect();
            let text = format!("{} events wait ({})", receipt.source.waiting, codes.join(", "));
            return Err(Detour::Wait(FeedState::Waiting(text), self.growing().clamp(MOMENT, MAX_WAIT)));
        }
        if reached > expected {
            return Err(Detour::StandBy);
        }
        if reached < expected {
            return Err(Detour::Wait(FeedState::Waiting("a board is behind".to_owned()), MOMENT));
        }
        self.remembered.failures = 0;
        self.seen.set(FeedState::Reading);
        *after = reached;
        self.remembered.limit = (self.remembered.limit * 2).min(MAX_MESSAGES);
        if portion.events > 0 {
            self.remembered.repeated = if is_repeated { self.remembered.repeated + 1 } else { 0 };
            if self.remembered.repeated >= REPEATED {
                self.remembered.repeated = 0;
                return Err(self.find_other(reached).await);
            }
        }
        Ok(next?)
    }

    /// Says how far the log is counted: which message would be read next.
    fn say_counted(&self, reached: After) {
        let (Some(group), Some((topic, partition)), Some(reached)) = (&self.group, self.log.partition(), reached)
        else {
            return;
        };
        match self.mapping.go_on(reached).1 {
            LogPlace::After(message) => group.set(topic, partition, message.saturating_add(1)),
            LogPlace::Again(message) => group.set(topic, partition, message),
            LogPlace::Begin(_) => {}
        }
    }

    /// Sets how far the log is ahead of what is counted, of which these messages are read.
    fn say_behind(&self, read: &[Message]) {
        let behind = self.log.left().map(|left| left + self.log.size(read));
        let now = Utc::now().timestamp_millis();
        let oldest = read
            .first()
            .and_then(|message| message.time.or_else(|| self.mapping.time_of(message.value.as_ref()?, None)));
        let seconds = match oldest {
            Some(oldest) => Some((now - oldest).max(0) as f64 / 1_000.0),
            None => read.is_empty().then_some(0.0),
        };
        self.seen.set_behind(behind, seconds);
    }

    /// Returns whether somebody waits for the end: of a fill, or of the log.
    fn is_for_once(&self) -> bool {
        self.choices.until_end || self.source.fill.is_some()
    }

    /// Pauses. Returns whether the feed was told to stop.
    async fn pause(&mut self, time: Duration) -> bool {
        let told = self.stop.wait_for(|stop| *stop);
        tokio::time::timeout(time, told).await.is_ok()
    }

    fn growing(&self) -> Duration {
        (Duration::from_millis(200) * 2_u32.saturating_pow(self.remembered.failures.min(10))).min(MAX_PAUSE)
    }
}

/// Reads a log, unless told to stop: a read that hangs would hold up what the service answers at the same time. Nothing is
/// read of the log any more then.
async fn read_unless(log: &mut dyn Log, mut stop: watch::Receiver<bool>) -> Result<Vec<Message>, LogError> {
    tokio::select! {
        read = log.read() => read,
        Ok(_) = stop.wait_for(|stop| *stop) => Ok(Vec::new()),
    }
}

/// Returns how a feed ends. One that panics is seen as stopped: nobody waits for it while others go on.
async fn ended(seen: &FeedSeen, feed: impl Future<Output = FeedEnd>) -> FeedEnd {
    AssertUnwindSafe(feed).catch_unwind().await.unwrap_or_else(|_| {
        seen.set(FeedState::Stopped(
            "this is a bug, please report it with the log; start it again to go on".to_owned(),
        ));
        FeedEnd::Stopped
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Arrival;

    struct Hangs;

    #[async_trait::async_trait]
    impl Log for Hangs {
        async fn go_to(&mut self, _: LogPlace) -> Result<Arrival, LogError> {
            Ok(Arrival::default())
        }

        async fn read(&mut self) -> Result<Vec<Message>, LogError> {
            std::future::pending().await
        }

        fn left(&self) -> Option<u64> {
            None
        }

        async fn is_at_end(&mut self) -> Result<bool, LogError> {
            Ok(false)
        }
    }

    #[tokio::test]
    async fn a_read_that_hangs_ends_when_told_to_stop() {
        let (tell, stop) = watch::channel(false);
        let mut log = Hangs;
        let read = tokio::time::timeout(Duration::from_secs(60), read_unless(&mut log, stop));
        let (read, ()) = tokio::join!(read, async { tell.send(true).unwrap() });
        assert!(read.unwrap().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_feed_that_panics_is_seen_as_stopped() {
        let seen = FeedSeen::new("likes");
        seen.set(FeedState::Reading);
        assert_eq!(ended(&seen, async { panic!("as it is tested") }).await, FeedEnd::Stopped);
        assert!(matches!(seen.state(), FeedState::Stopped(why) if why.contains("bug")));
    }
}
