//! A flight: questions that are sent together in one pipeline, and sent again if the replies require it.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use metrics::counter;
use redis::{Cmd, Value};

use super::asked::{Asked, Glance, Heard, OnLook, OnScript, Outgoing, Pending, Receiving};
use super::look::{self, Look};
use super::pages::Pages;
use super::pipeline::{Pipeline, Replies};
use super::question::Seen;
use super::subject::{self, SubjectRead};
use crate::store::redis::clock;
use crate::store::redis::part::Part;
use crate::store::redis::partition_clock::Belief;
use crate::store::redis::reply::{Reply, ScriptStatus};
use crate::store::redis::scripts::{Script, ScriptCall};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ATTEMPTS, Moment, Session, is_step_due};

/// The questions to one part.
type PartGroup = (Arc<Part>, Vec<Box<dyn Pending>>);

/// Sends questions, and sends each answer to all its callers.
pub(super) async fn fly(session: &Session, channel: Channel, pages: &Pages, taken: Vec<Box<dyn Pending>>) {
    let mut left = taken;
    for _ in 0..ATTEMPTS {
        if left.is_empty() {
            return;
        }
        left = round(session, channel, pages, left).await;
    }
    for pending in left {
        let board = pending.part().track.board().name().as_str();
        tracing::warn!(board, "the window moved at every attempt to read");
        pending.fail(ServerFailure::KeptChanging);
    }
}

/// Asks all of these questions once. Returns those that must be asked again.
async fn round(
    session: &Session,
    channel: Channel,
    pages: &Pages,
    left: Vec<Box<dyn Pending>>,
) -> Vec<Box<dyn Pending>> {
    let Some(first) = left.first() else { return left };
    let now = match session.time_for(&first.part().clock, None).await {
        Ok(now) => now,
        Err(failure) => {
            left.into_iter().for_each(|pending| pending.fail(failure.clone()));
            return Vec::new();
        }
    };
    let groups = by_part(left);
    let mut pipeline = Pipeline::default();
    let mut sent = Vec::with_capacity(groups.len());
    let parts: Vec<Arc<Part>> = groups.iter().map(|(part, _)| part.clone()).collect();
    for (part, (_, group)) in parts.iter().zip(groups) {
        if session.simulated {
            part.clock.learn(now, session.monotonic());
        }
        let mut batch = PartQuestions::new(session, pages, part, &group);
        if is_step_due(part, batch.moment.now) {
            group.into_iter().for_each(|pending| pending.fail(ServerFailure::StepDue));
            continue;
        }
        group.into_iter().for_each(|pending| batch.add(pending));
        sent.push(batch.end(&mut pipeline));
    }
    let mut replies = pipeline.send(session, channel).await;
    let mut again = Vec::new();
    for sent in sent {
        sent.receive(session, &mut Receiving { pages, again: &mut again, is_advanced: false }, &mut replies);
    }
    again
}

/// Groups questions by part. The questions of each part keep their order.
fn by_part(all: Vec<Box<dyn Pending>>) -> Vec<PartGroup> {
    let mut groups: Vec<PartGroup> = Vec::new();
    for pending in all {
        match groups.iter_mut().find(|(part, _)| Arc::ptr_eq(part, pending.part())) {
            Some((_, group)) => group.push(pending),
            None => groups.push((pending.part().clone(), vec![pending])),
        }
    }
    groups
}

/// The questions to one part that are about to be sent.
struct PartQuestions<'a> {
    session: &'a Session,
    pages: &'a Pages,
    part: &'a Arc<Part>,
    moment: Moment<'a>,
    belief: Belief,
    /// The incarnation of the part's node before anything was sent.
    incarnation: u64,
    scripts: Vec<(&'static Script, ScriptCall, OnScript)>,
    looks: Vec<(Vec<Cmd>, OnLook)>,
    /// The questions that share calls of `subjects.lua`, a list for each call.
    subjects: Vec<Vec<Asked<SubjectRead>>>,
}

impl<'a> PartQuestions<'a> {
    fn new(session: &'a Session, pages: &'a Pages, part: &'a Arc<Part>, group: &[Box<dyn Pending>]) -> Self {
        let belief = part.clock.belief(session.monotonic());
        let last_time = group.iter().filter_map(|pending| pending.last_time()).max();
        let now = match session.simulated {
            true => last_time.map_or(belief.expected, |last_time| last_time.max(belief.expected)),
            false => last_time.unwrap_or(belief.expected),
        };
        let at_least = group.iter().filter_map(|pending| pending.at_least()).max();
        let moment = session.moment(part, now, at_least);
        let incarnation = session.servers.incarnation(part.slot());
        let (scripts, looks, subjects) = (Vec::new(), Vec::new(), Vec::new());
        Self { session, pages, part, moment, belief, incarnation, scripts, looks, subjects }
    }

    /// Adds a question.
    fn add(&mut self, pending: Box<dyn Pending>) {
        // Only questions about subjects of a ranked track share calls.
        let pending = if self.part.track.is_ranked() && (&*pending as &dyn Any).is::<Asked<SubjectRead>>() {
            let Ok(asked) = (pending as Box<dyn Any>).downcast() else { return };
            return subject::group(&mut self.subjects, *asked);
        } else {
            pending
        };
        match pending.send(self.session, &self.moment, self.pages) {
            Outgoing::Script(script, call, on_script) => self.scripts.push((script, call, on_script)),
            Outgoing::Look(commands, on_look) => self.looks.push((commands, on_look)),
        }
    }

    /// Adds the commands to the pipeline.
    fn end(mut self, pipeline: &mut Pipeline) -> SentQuestions<'a> {
        for all in std::mem::take(&mut self.subjects) {
            let mut call = self.session.begin(&self.moment);
            let Some((script, range)) = subject::call_together(&self.moment, &all, &mut call) else { continue };
            let on_script = move |heard: Heard<'_>, receiving: &mut Receiving<'_>| {
                subject::hear_together(all, &range, heard, receiving);
            };
            self.scripts.push((script, call, Box::new(on_script)));
        }
        let Self { session, part, moment, belief, incarnation, scripts, looks, .. } = self;
        let call = |(script, call, on_script): (_, ScriptCall, _)| (pipeline.call(part, script, &call), on_script);
        let scripts = scripts.into_iter().map(call).collect();
        // Looks come after the scripts, which may have advanced the part.
        let mut look = None;
        let mut placed = Vec::with_capacity(looks.len());
        if !looks.is_empty() {
            let time = (!session.simulated).then(|| pipeline.time(part, session.servers.place(part.slot())));
            for (commands, on_look) in looks {
                let mut places = 0..0;
                for (i, command) in commands.into_iter().enumerate() {
                    let place = pipeline.read(part, command);
                    places = place - i..place + 1;
                }
                placed.push((places, on_look));
            }
            look = Some((time, pipeline.read(part, look::command(part))));
        }
        SentQuestions { moment, belief, incarnation, scripts, looks: placed, look }
    }
}

/// The commands that were sent to one part, with the positions of their replies.
struct SentQuestions<'a> {
    moment: Moment<'a>,
    belief: Belief,
    incarnation: u64,
    scripts: Vec<(usize, OnScript)>,
    looks: Vec<(Range<usize>, OnLook)>,
    /// The positions of the replies with the time, unless it is simulated, and with the meta key.
    look: Option<(Option<usize>, usize)>,
}

impl SentQuestions<'_> {
    fn receive(self, session: &Session, receiving: &mut Receiving<'_>, replies: &mut Replies) {
        let Self { moment, belief, incarnation, scripts, looks, look } = self;
        // If a connection was replaced, the incarnation changed before the first reply on the new one.
        let incarnation = (incarnation == session.servers.incarnation(moment.part.slot())).then_some(incarnation);
        for (place, on_script) in scripts {
            let incarnation = incarnation.filter(|_| !replies.is_single(place));
            match replies.take(place).and_then(|value| read_status(session, &moment, value)) {
                Ok((ScriptStatus::Done(header), mut reply)) => {
                    let seen = Seen { frame: header.frame(moment.window), incarnation };
                    on_script(Heard::Done { moment: &moment, seen, reply: &mut reply }, receiving);
                }
                Ok((ScriptStatus::Stale { now, .. }, _)) => on_script(Heard::Stale(now), receiving),
                Ok((ScriptStatus::Missing { header, .. } | ScriptStatus::StaleKeys { header, .. }, _)) => {
                    on_script(Heard::Stale(header.now), receiving);
                }
                Err(failure) => on_script(Heard::Failed(failure), receiving),
            }
        }
        let Some((time, meta)) = look else { return };
        // A command that was redirected, or sent once more, was not executed in the order that a look requires. And the
        // time may be that of a node that no longer has the part.
        let places = time.into_iter().chain([meta]).chain(looks.iter().flat_map(|(places, _)| places.clone()));
        let in_order = incarnation.is_some() && !places.into_iter().any(|place| replies.is_single(place));
        let reading = time.map_or(Ok(belief.expected), |time| replies.share(time).and_then(clock::server_time));
        let looked = reading.and_then(|reading| Look::read(moment.part, belief, reading, replies.take(meta)?));
        let looked = looked.map(|look| look.in_incarnation(incarnation));
        let outcome = if looked.is_ok() { "ok" } else { "failed" };
        counter!("rolltop_store_calls_total", "call" => "look", "outcome" => outcome).increment(1);
        if looked.as_ref().is_err_and(ServerFailure::is_outdated) {
            session.forget(moment.part.track.board());
        }
        if let Ok(look) = &looked {
            moment.part.clock.learn(look.reading, session.monotonic());
        }
        for (places, on_look) in looks {
            let glance = match &looked {
                Err(failure) => Glance::Failed(failure.clone()),
                Ok(look) if !in_order => Glance::OutOfOrder(look.now),
                Ok(look) => Glance::Done {
                    moment: &moment,
                    look,
                    fit: look.fit(&moment.window),
                    values: places.map(|place| replies.take(place)).collect::<Result<Vec<Value>, _>>(),
                },
            };
            on_look(glance, receiving);
        }
    }
}

/// Reads the status at the beginning of a script's reply, and records what it reveals.
fn read_status(session: &Session, moment: &Moment<'_>, value: Value) -> Result<(ScriptStatus, Reply), ServerFailure> {
    let mut reply = Reply::new(value)?;
    Ok((session.learn(moment.part, &mut reply)?, reply))
}
