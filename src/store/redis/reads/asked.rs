//! Questions with the callers that wait for the answer.

use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::sync::Arc;

use redis::{Cmd, Value};
use tokio::sync::oneshot;

use super::lane::Queued;
use super::look::{Fit, Look};
use super::pages::Pages;
use super::question::{PeekReader, Question, Read, Seen};
use crate::board::Timestamp;
use crate::store::receive::receive;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{Script, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{Moment, Session};

/// The receiver of an answer.
pub(super) type Answered<T> = oneshot::Receiver<Result<T, ServerFailure>>;

/// The callers that wait for an answer.
#[derive(Debug)]
pub(super) struct Callers<T>(Vec<oneshot::Sender<Result<T, ServerFailure>>>);

impl<T: Clone> Callers<T> {
    /// Returns a caller, and the receiver of its answer.
    pub fn one() -> (Self, Answered<T>) {
        let (answer, answered) = oneshot::channel();
        (Self(vec![answer]), answered)
    }

    pub fn join(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns whether no caller waits any longer.
    pub fn are_gone(&self) -> bool {
        self.0.iter().all(oneshot::Sender::is_closed)
    }

    /// Sends the answer to all callers. Receivers may be dropped already.
    pub fn answer(mut self, answer: Result<T, ServerFailure>) {
        let last = self.0.pop();
        for caller in self.0 {
            drop(caller.send(answer.clone()));
        }
        if let Some(last) = last {
            drop(last.send(answer));
        }
    }
}

/// Waits for an answer that a different thread sends.
pub(super) async fn answer_of<T>(answered: Answered<T>) -> Result<T, ServerFailure> {
    receive(answered).await.unwrap_or_else(|_| Err(stopped()))
}

/// Waits for an answer that this thread sends.
pub(super) async fn answer_from_here<T>(answered: Answered<T>) -> Result<T, ServerFailure> {
    answered.await.unwrap_or_else(|_| Err(stopped()))
}

fn stopped() -> ServerFailure {
    ServerFailure::Unknown("the read thread has stopped".to_owned())
}

/// A question that is not answered yet.
#[derive(Debug)]
pub(super) struct Asked<R: Read> {
    pub question: Question<R>,
    callers: Callers<R::Reply>,
    /// The time according to the last attempt.
    last_time: Option<Timestamp>,
    /// Whether only a script can answer.
    by_script: bool,
    /// Whether the cached answer was found to be outdated.
    is_outdated: bool,
}

/// An [`Asked`] of any kind of read.
pub(super) trait Pending: Any + Debug + Send {
    fn part(&self) -> &Arc<Part>;
    fn at_least(&self) -> Option<Timestamp>;
    fn last_time(&self) -> Option<Timestamp>;
    fn weight(&self) -> u64;
    fn hash(&self, hasher: &rapidhash::fast::RandomState) -> u64;
    fn is_abandoned(&self) -> bool;
    /// Adds the callers of an equal question. Returns a question that is not equal.
    fn join(&mut self, other: Box<dyn Pending>) -> Option<Box<dyn Pending>>;
    /// Returns what is sent for the question by itself.
    fn send(self: Box<Self>, session: &Session, moment: &Moment<'_>, pages: &Pages) -> Outgoing;
    fn fail(self: Box<Self>, failure: ServerFailure);
}

/// Receives the outcome of a script for the questions that it answers.
pub(super) type OnScript = Box<dyn FnOnce(Heard<'_>, &mut Receiving<'_>) + Send>;
/// Receives the outcome of a look for the question that it answers.
pub(super) type OnLook = Box<dyn FnOnce(Glance<'_>, &mut Receiving<'_>) + Send>;

/// What is sent for a question, and what receives the outcome.
pub(super) enum Outgoing {
    Script(&'static Script, ScriptCall, OnScript),
    /// Commands that a look follows.
    Look(Vec<Cmd>, OnLook),
}

/// The outcome of a script.
pub(super) enum Heard<'a> {
    /// The script has done its work, and this is the rest of its reply.
    Done {
        moment: &'a Moment<'a>,
        seen: Seen,
        reply: &'a mut Reply,
    },
    /// The script must be called again for this time.
    Stale(Timestamp),
    Failed(ServerFailure),
}

/// The outcome of a look.
pub(super) enum Glance<'a> {
    Done {
        moment: &'a Moment<'a>,
        look: &'a Look,
        fit: Fit,
        values: Result<Vec<Value>, ServerFailure>,
    },
    /// The commands were not executed in the order that a look requires, at this time.
    OutOfOrder(Timestamp),
    Failed(ServerFailure),
}

/// What answering the questions to one part needs and leaves.
pub(super) struct Receiving<'a> {
    pub pages: &'a Pages,
    pub again: &'a mut Vec<Box<dyn Pending>>,
    /// Whether a question that is asked again advances the part by its script.
    pub is_advanced: bool,
}

impl<R: Read> Asked<R> {
    pub fn new(question: Question<R>) -> (Self, Answered<R::Reply>) {
        let (callers, answered) = Callers::one();
        (Self { question, callers, last_time: None, by_script: false, is_outdated: false }, answered)
    }

    #[cfg(test)]
    pub fn callers(&self) -> usize {
        self.callers.0.len()
    }

    pub fn answer(self, answer: Result<R::Reply, ServerFailure>) {
        self.callers.answer(answer);
    }

    /// Answers with a reply that was read, and caches it.
    fn keep_and_answer(self, read: Result<R::Reply, ServerFailure>, pages: &Pages) {
        let Question { part, key, read: asked, .. } = &self.question;
        let reply = read.map(|reply| asked.keep(part, key.as_ref(), reply, pages));
        self.callers.answer(reply);
    }

    /// Puts the question among those to ask again for this time.
    pub fn ask_again(self, last_time: Timestamp, receiving: &mut Receiving<'_>) {
        receiving.again.push(Box::new(Self { last_time: Some(last_time), ..self }));
    }

    /// Receives the outcome of a script.
    fn hear(self, heard: Heard<'_>, receiving: &mut Receiving<'_>) {
        match heard {
            Heard::Done { moment, seen, reply } => {
                let read = self.question.read.read(moment, seen, reply);
                self.keep_and_answer(read, receiving.pages);
            }
            Heard::Stale(now) => self.ask_again(now, receiving),
            Heard::Failed(failure) => self.answer(Err(failure)),
        }
    }

    /// Receives the outcome of a look.
    fn glance(mut self, read: PeekReader<R>, is_cached: bool, glance: Glance<'_>, receiving: &mut Receiving<'_>) {
        let (moment, look, fit, values) = match glance {
            Glance::Done { moment, look, fit, values } => (moment, look, fit, values),
            Glance::OutOfOrder(now) => {
                self.by_script = true;
                return self.ask_again(now, receiving);
            }
            Glance::Failed(failure) => return self.answer(Err(failure)),
        };
        let reply = match fit {
            Fit::Right => values.and_then(|values| read(&self.question.read, moment, look, values)),
            Fit::Behind | Fit::Moved => Ok(None),
        };
        match reply {
            Ok(Some(reply)) if is_cached => return self.answer(Ok(reply)),
            Ok(Some(reply)) => return self.keep_and_answer(Ok(reply), receiving.pages),
            Err(failure) => return self.answer(Err(failure)),
            Ok(None) => {}
        }
        self.is_outdated |= is_cached;
        self.by_script = match fit {
            Fit::Right => !is_cached,
            // One script advances the part for all questions that follow it in the same pipeline.
            Fit::Behind => !std::mem::replace(&mut receiving.is_advanced, true),
            // If this was already an attempt with the time that the part returned, and the window is wrong again,
            // then the clock has not reached the window, or the window ends with the last possible slot, which has no
            // end. A script handles both.
            Fit::Moved => !is_cached && self.last_time.is_some(),
        };
        self.ask_again(look.now, receiving);
    }
}

impl<R: Read> Pending for Asked<R> {
    fn part(&self) -> &Arc<Part> {
        &self.question.part
    }

    fn at_least(&self) -> Option<Timestamp> {
        self.question.at_least
    }

    fn last_time(&self) -> Option<Timestamp> {
        self.last_time
    }

    fn weight(&self) -> u64 {
        self.question.weight()
    }

    fn hash(&self, hasher: &rapidhash::fast::RandomState) -> u64 {
        hasher.hash_one((TypeId::of::<R>(), &self.question))
    }

    fn is_abandoned(&self) -> bool {
        self.callers.are_gone()
    }

    fn join(&mut self, other: Box<dyn Pending>) -> Option<Box<dyn Pending>> {
        let is_equal = (&*other as &dyn Any).downcast_ref().is_some_and(|other: &Self| other.question == self.question);
        if !is_equal {
            return Some(other);
        }
        if let Ok(other) = (other as Box<dyn Any>).downcast::<Self>() {
            self.callers.join(other.callers);
        }
        None
    }

    fn send(self: Box<Self>, session: &Session, moment: &Moment<'_>, pages: &Pages) -> Outgoing {
        let pages = (!self.is_outdated).then_some(pages);
        let peek = match self.by_script {
            true => None,
            false => self.question.read.peek(&self.question.part, self.question.key.as_ref(), moment, pages),
        };
        if let Some(peek) = peek {
            let on_look = move |glance: Glance<'_>, receiving: &mut Receiving<'_>| {
                self.glance(peek.read, peek.is_cached, glance, receiving);
            };
            return Outgoing::Look(peek.commands, Box::new(on_look));
        }
        let mut call = session.begin(moment);
        let script = self.question.read.call(moment, self.question.key.as_ref(), &mut call);
        Outgoing::Script(script, call, Box::new(move |heard, receiving| self.hear(heard, receiving)))
    }

    fn fail(self: Box<Self>, failure: ServerFailure) {
        self.answer(Err(failure));
    }
}

impl Queued for Box<dyn Pending> {
    fn weight(&self) -> u64 {
        (**self).weight()
    }

    fn hash(&self, hasher: &rapidhash::fast::RandomState) -> u64 {
        (**self).hash(hasher)
    }

    fn is_abandoned(&self) -> bool {
        (**self).is_abandoned()
    }

    fn join(&mut self, other: Self) -> Option<Self> {
        (**self).join(other)
    }
}
