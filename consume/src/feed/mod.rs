//! One log: asks the service where to go on, reads, sends, and asks again whenever something is not as expected.

mod outcome;
mod turns;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use tokio::sync::watch;

use crate::config::{Begin, Decision};
use crate::dead_letters::DeadLetters;
use crate::events::Mapping;
use crate::log::{After, Log, LogError, MAX_MESSAGES, Message, Place};
use crate::portion::{Poison, Portion};
use crate::seen::{Seen, State};
use crate::source::{Reached, Source};

/// After this long without messages it is asked whether the service still is where it was: a restored backup is not.
const IDLE: Duration = Duration::from_secs(5);
/// The longest pause after failures.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How long is waited where somebody has to do something.
const LOOKED_AT: Duration = Duration::from_secs(30);
/// After so many portions that were all counted before it is found out whether another program reads the same log.
const REPEATED: u32 = 3;
const MOMENT: Duration = Duration::from_secs(1);
/// How often it is asked how long a log is.
const REFRESH: Duration = Duration::from_secs(5);

/// What a feed does where it has a choice.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    pub begin: Begin,
    pub on_unreadable: Decision,
    pub on_gap: Decision,
    /// How long a source must stand still until a program that stands by takes over.
    pub take_over: Duration,
    /// Whether to end with the log.
    pub until_end: bool,
}

/// A log and its source.
pub struct Feed {
    pub source: Source,
    pub log: Box<dyn Log>,
    pub mapping: Arc<Mapping>,
    pub choices: Choices,
    pub dead_letters: Option<DeadLetters>,
    pub seen: Arc<Seen>,
    /// The boards with which the source is defined, once, if the service does not know it.
    pub define: Option<Vec<String>>,
    pub stop: watch::Receiver<bool>,
    pub memory: Memory,
}

/// What a feed knows beside where it is.
#[derive(Debug)]
pub struct Memory {
    /// The largest number of messages in a portion: fewer while it is found out which one the service refuses.
    limit: usize,
    poison: Option<Poison>,
    /// Number of portions in a row that were all counted before.
    repeated: u32,
    failures: u32,
    /// The place for which a gap was said.
    gap: Option<Place>,
    /// Whether it was said that no board counts the events.
    passed_all: bool,
    left_out: Vec<String>,
}

impl Default for Memory {
    fn default() -> Self {
        let (poison, gap, left_out) = (None, None, Vec::new());
        Self { limit: MAX_MESSAGES, poison, repeated: 0, failures: 0, gap, passed_all: false, left_out }
    }
}

/// How a feed has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Filled,
    /// It was told to.
    Told,
    /// The log has nothing more, and all of it is counted.
    Through,
    /// The log is not what it was.
    Stopped,
}

/// Why it is asked again where to go on.
enum Turn {
    /// The service is not where it was thought to be.
    Again,
    /// Something is to pass first.
    Wait(State, Duration),
    Fail(anyhow::Error, Option<Duration>),
    /// Another program is ahead.
    StandBy,
    End(Ended, Option<anyhow::Error>),
}

impl From<LogError> for Turn {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Later(error) => Turn::Fail(error, None),
            LogError::Stop(error) => Turn::End(Ended::Stopped, Some(error)),
        }
    }
}

impl Feed {
    /// Reads the log until it is told to stop, or is not what it was, or the fill has ended.
    pub async fn run(mut self) -> Ended {
        loop {
            let Err(turn) = self.session().await;
            let (state, pause) = match turn {
                Turn::End(ended, why) => {
                    match (ended, why) {
                        (Ended::Filled, _) => self.seen.set(State::Filled),
                        (_, Some(why)) => self.seen.set(State::Stopped(format!("{why:#}"))),
                        _ => {}
                    }
                    return ended;
                }
                Turn::Again => (None, if self.memory.failures == 0 { Duration::ZERO } else { self.growing() }),
                Turn::Wait(state, pause) => (Some(state), pause),
                Turn::Fail(error, asked) => {
                    self.seen.failures.increment(1);
                    (Some(State::Failing(format!("{error:#}"))), asked.unwrap_or_else(|| self.growing()))
                }
                Turn::StandBy => {
                    self.seen.set(State::StandingBy);
                    self.stand_by().await;
                    (None, Duration::ZERO)
                }
            };
            self.memory.failures = self.memory.failures.saturating_add(1);
            state.into_iter().for_each(|state| self.seen.set(state));
            if self.pause(pause).await {
                return Ended::Told;
            }
        }
    }

    /// Reads and sends for as long as all goes as expected.
    async fn session(&mut self) -> Result<Infallible, Turn> {
        let reached = match self.source.ask().await {
            Ok(reached) => reached,
            Err(error) => return Err(self.unanswered(error).await),
        };
        let (mut after, place) = match reached {
            None => (None, Place::Begin(self.choices.begin)),
            Some(Reached::Start) => (None, Place::Begin(Begin::Earliest)),
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
                self.send(&mut after, Portion::passing(begin)).await?
            }
            _ => self.log.read().await?,
        };
        let (mut heard, mut refreshed) = (Instant::now(), Instant::now());
        loop {
            if *self.stop.borrow() {
                return Err(Turn::End(Ended::Told, None));
            }
            if messages.is_empty() && self.choices.until_end {
                return Err(Turn::End(Ended::Through, None));
            }
            let portion = self.portion(messages);
            if portion.lines.is_empty() && portion.stopped.is_none() && heard.elapsed() < IDLE {
                messages = self.log.read().await?;
                self.seen.set(State::Reading);
                self.say_behind(&messages);
                self.memory.failures = 0;
                continue;
            }
            let (is_cut, stopped) = (portion.is_cut, portion.stopped.clone());
            if !portion.lines.is_empty() || stopped.is_none() {
                messages = self.send(&mut after, portion).await?;
            } else {
                messages = Vec::new();
            }
            heard = Instant::now();
            if let Some(why) = stopped {
                return Err(Turn::Wait(State::Stopped(why), LOOKED_AT));
            }
            if is_cut {
                self.memory.limit = (self.memory.limit * 2).min(MAX_MESSAGES);
                self.memory.failures = 0;
                return Err(Turn::Again);
            }
            if refreshed.elapsed() >= REFRESH {
                self.log.refresh().await?;
                refreshed = Instant::now();
            }
            self.say_behind(&messages);
        }
    }

    /// Makes a portion of messages.
    fn portion(&mut self, messages: Vec<Message>) -> Portion {
        let Memory { limit, poison, .. } = &self.memory;
        Portion::of(messages, *limit, &self.mapping, self.choices.on_unreadable, poison.as_ref())
    }

    /// Sends a portion, and reads what follows it in the meantime.
    async fn send(&mut self, after: &mut After, portion: Portion) -> Result<Vec<Message>, Turn> {
        self.keep(&portion.unreadable).await?;
        self.seen.unreadable.increment(portion.unreadable.len() as u64);
        let lines = portion.lines.clone();
        let (answer, next) = tokio::join!(self.source.send(*after, lines), self.log.read());
        let receipt = match answer {
            Ok(receipt) => receipt,
            Err(error) => return Err(self.refused(error, &portion)),
        };
        self.take(&receipt, &portion).await?;
        let expected = portion.last.or(*after);
        let reached = match receipt.source.reached {
            None if portion.lines.is_empty() => return Ok(next?),
            None => {
                let text = "no board of the source is defined yet".to_owned();
                return Err(Turn::Wait(State::Waiting(text), IDLE));
            }
            Some(Reached::Start) => None,
            Some(Reached::At(position)) => Some(position),
        };
        if receipt.source.filled {
            return Err(Turn::End(Ended::Filled, None));
        }
        if receipt.source.waiting > 0 {
            let codes: Vec<&str> = receipt.source.waiting_for.keys().map(String::as_str).collect();
            let text = format!("{} events wait ({})", receipt.source.waiting, codes.join(", "));
            return Err(Turn::Wait(State::Waiting(text), MOMENT));
        }
        if reached > expected {
            return Err(Turn::StandBy);
        }
        if reached < expected {
            return Err(Turn::Wait(State::Waiting("a board is behind".to_owned()), MOMENT));
        }
        self.memory.failures = 0;
        self.seen.set(State::Reading);
        *after = reached;
        if portion.events > 0 {
            let is_repeated = receipt.source.repeated >= portion.events as u64;
            self.memory.repeated = if is_repeated { self.memory.repeated + 1 } else { 0 };
            if self.memory.repeated >= REPEATED {
                self.memory.repeated = 0;
                return Err(self.find_other(reached).await);
            }
        }
        Ok(next?)
    }

    /// Sets how far the log is ahead of what is counted, of which these messages are read.
    fn say_behind(&self, read: &[Message]) {
        let behind = self.log.behind();
        let items = behind.items.map(|items| items + read.len() as u64);
        let now = Utc::now().timestamp_millis();
        let oldest = read
            .first()
            .and_then(|message| message.time.or_else(|| self.mapping.time_of(message.value.as_ref()?, None)));
        let seconds = match oldest {
            Some(oldest) => Some((now - oldest).max(0) as f64 / 1_000.0),
            None => read.is_empty().then_some(0.0),
        };
        self.seen.set_behind(items, seconds);
    }

    /// Pauses. Returns whether the feed was told to stop.
    async fn pause(&mut self, time: Duration) -> bool {
        let told = self.stop.wait_for(|stop| *stop);
        tokio::time::timeout(time, told).await.is_ok()
    }

    fn growing(&self) -> Duration {
        (Duration::from_millis(200) * 2_u32.saturating_pow(self.memory.failures.min(10))).min(MAX_PAUSE)
    }
}
