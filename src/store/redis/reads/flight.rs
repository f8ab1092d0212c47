//! A flight: questions that are sent together in one pipeline, and sent again if the replies require it.

use std::sync::Arc;

use metrics::counter;
use redis::Value;

use super::first;
use super::lane::Waiting;
use super::look::{self, Belief, Look, Verdict};
use super::pages::{CachedPage, Pages, is_kept};
use super::pending::{Pending, by_part, fail_all};
use super::pipeline::{Pipeline, Replies};
use super::question::{Answer, Question, What};
use super::scripted;
use super::share::{About, Share, Stamp};
use super::windows::{self, Range};
use crate::board::{Frame, Timestamp};
use crate::store::SlotRange;
use crate::store::redis::clock;
use crate::store::redis::merge::Lines;
use crate::store::redis::part::Part;
use crate::store::redis::reply::{Reply, Status};
use crate::store::redis::scripts::{SUBJECTS, ScriptCall};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ATTEMPTS, Moment, Session};

/// The largest number of subjects in one call of `subjects.lua`: Lua unpacks some thousand values at most.
const TOGETHER: usize = 1_000;

/// Sends questions, and sends each answer to all its callers.
pub(super) async fn fly(session: &Session, channel: Channel, pages: &Pages, taken: Vec<(Question, Waiting)>) {
    let mut left: Vec<Pending> = taken.into_iter().map(Pending::new).collect();
    for _ in 0..ATTEMPTS {
        if left.is_empty() {
            return;
        }
        left = Round::of(session, channel, pages, left).await;
    }
    for pending in left {
        tracing::warn!(board = pending.board().name().as_str(), "the window moved at every attempt to read");
        pending.answer(Err(ServerFailure::KeptChanging));
    }
}

/// The slots that questions about subjects of a ranked board ask for. Questions with equal slots share a call, which
/// names the slots once.
#[derive(PartialEq, Eq)]
enum Slots {
    Standing,
    Window(SlotRange, Option<Timestamp>),
}

/// The commands that were sent for one part.
struct Sent<'a> {
    moment: Moment<'a>,
    belief: Belief,
    /// The epoch of the part's node before anything was sent.
    epoch: u64,
    /// The scripts, each with the position of its reply.
    scripts: Vec<(usize, Asked)>,
    /// The positions of the replies with the time, unless it is simulated, and with the meta key.
    look: Option<(Option<usize>, usize)>,
    kept: Vec<(Pending, Arc<CachedPage>)>,
    /// The questions for the first lines of the part.
    first: Vec<(first::Asked, Pending)>,
    direct: Vec<(usize, Pending, Range)>,
}

/// The questions that a script answers.
enum Asked {
    One(Pending),
    Subjects(Vec<Pending>, Range),
}

impl Asked {
    fn into_pending(self) -> Vec<Pending> {
        match self {
            Asked::One(pending) => vec![pending],
            Asked::Subjects(all, _) => all,
        }
    }
}

/// One pipeline of a flight.
struct Round<'s> {
    session: &'s Session,
    pages: &'s Pages,
    /// The questions that must be asked again.
    again: Vec<Pending>,
}

impl<'s> Round<'s> {
    /// Asks all of these questions once. Returns those that must be asked again.
    async fn of(session: &'s Session, channel: Channel, pages: &'s Pages, left: Vec<Pending>) -> Vec<Pending> {
        let simulated = match left.first() {
            Some(first) => session.read_simulated(&first.question.part).await,
            None => return Vec::new(),
        };
        let simulated = match simulated {
            Ok(simulated) => simulated,
            Err(failure) => return fail_all(left, &failure),
        };
        let mut round = Round { session, pages, again: Vec::new() };
        let groups = by_part(left);
        let mut pipeline = Pipeline::default();
        let mut sent = Vec::with_capacity(groups.len());
        let parts: Vec<Arc<Part>> = groups.iter().map(|(part, _)| part.clone()).collect();
        for (part, (_, group)) in parts.iter().zip(groups) {
            if let Some(now) = simulated {
                part.learn_time(now, session.monotonic());
            }
            sent.push(round.send(part, group, simulated.is_some(), &mut pipeline));
        }
        let mut replies = pipeline.send(session, channel).await;
        for sent in sent {
            round.receive(sent, &mut replies);
        }
        round.again
    }

    /// Adds the commands for the questions to a part to the pipeline.
    fn send<'a>(&self, part: &'a Arc<Part>, group: Vec<Pending>, simulated: bool, pipeline: &mut Pipeline) -> Sent<'a> {
        let (estimate, latest) = part.estimate(self.session.monotonic());
        let told = group.iter().filter_map(|pending| pending.told).max();
        let now = if simulated { told.map_or(estimate, |told| told.max(estimate)) } else { told.unwrap_or(estimate) };
        let at_least = group.iter().filter_map(|pending| pending.question.at_least).max();
        let moment = self.session.moment(part, now, at_least);
        let belief = Belief { estimate, latest };
        let epoch = self.session.servers.epoch(part.slot());
        let (scripts, kept, first, direct) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut sent = Sent { moment, belief, epoch, scripts, look: None, kept, first, direct };
        let (mut looking, mut first) = (Vec::new(), Vec::new());
        let mut together: Vec<(Slots, Vec<Pending>)> = Vec::new();
        for pending in group {
            let what = pending.question.what.clone();
            match &*what {
                What::Standing(_) | What::Window { .. } if part.board.is_ranked() => {
                    let slots = match &*what {
                        What::Window { range, as_of, .. } => Slots::Window(*range, *as_of),
                        _ => Slots::Standing,
                    };
                    match together.iter_mut().find(|(of, all)| *of == slots && all.len() < TOGETHER) {
                        Some((_, all)) => all.push(pending),
                        None => together.push((slots, vec![pending])),
                    }
                }
                What::Standing(subject) | What::Window { subject, .. } if !pending.by_script => {
                    let range = windows::range(&pending.question, &sent.moment);
                    match windows::command(&pending.question, subject, &range) {
                        Some(command) => looking.push((command, pending, range)),
                        None => self.send_script(&mut sent, pending, pipeline),
                    }
                }
                asked if !pending.by_script && is_kept(asked) => {
                    let held = self.pages.get(part, &what).filter(|held| !pending.outdated && held.is_worth_a_look());
                    match (held, asked) {
                        (Some(held), _) => sent.kept.push((pending, held)),
                        (None, What::Lines { near, .. }) => first.push((near.clone(), pending)),
                        (None, _) => self.send_script(&mut sent, pending, pipeline),
                    }
                }
                _ => self.send_script(&mut sent, pending, pipeline),
            }
        }
        for (slots, all) in together {
            self.send_subjects(&mut sent, slots == Slots::Standing, all, pipeline);
        }
        // These come after the scripts, which may have advanced the board.
        if !looking.is_empty() || !first.is_empty() || !sent.kept.is_empty() {
            let node = self.session.servers.place(part.slot());
            let time = (!simulated).then(|| pipeline.time(part, node));
            for (near, pending) in first {
                sent.first.push((first::Asked::send(part, &near, pipeline), pending));
            }
            for (command, pending, range) in looking {
                sent.direct.push((pipeline.read(part, command), pending, range));
            }
            sent.look = Some((time, pipeline.read(part, look::command(part))));
        }
        sent
    }

    fn send_script(&self, sent: &mut Sent<'_>, pending: Pending, pipeline: &mut Pipeline) {
        let mut call = self.session.begin(&sent.moment);
        let script = scripted::script(&pending.question, &sent.moment, &mut call);
        sent.scripts.push((pipeline.call(sent.moment.part, script, &call), Asked::One(pending)));
    }

    fn send_subjects(&self, sent: &mut Sent<'_>, standing: bool, all: Vec<Pending>, pipeline: &mut Pipeline) {
        let Some(first) = all.first() else { return };
        let part = sent.moment.part;
        let range = windows::range(&first.question, &sent.moment);
        let subjects: Vec<_> = all.iter().filter_map(|pending| pending.question.subject()).collect();
        let mut call: ScriptCall = self.session.begin(&sent.moment);
        scripted::ask_of_subjects(&part.board, &part.keys, &subjects, &range, standing, &mut call);
        sent.scripts.push((pipeline.call(part, &SUBJECTS, &call), Asked::Subjects(all, range)));
    }

    fn receive(&mut self, sent: Sent<'_>, replies: &mut Replies) {
        let Sent { moment, belief, epoch, scripts, look, kept, first, direct } = sent;
        // If a connection was replaced, the epoch changed before the first reply on the new one.
        let epoch = (epoch == self.session.servers.epoch(moment.part.slot())).then_some(epoch);
        for (place, asked) in scripts {
            let epoch = epoch.filter(|_| !replies.is_single(place));
            match replies.take(place) {
                Ok(value) => self.receive_script(&moment, asked, value, epoch),
                Err(failure) => drop(fail_all(asked.into_pending(), &failure)),
            }
        }
        let Some((time, meta)) = look else { return };
        // A command that was redirected, or sent once more, was not executed in the order that a look requires. And the
        // time may be that of a node that no longer has the part.
        let places = time.into_iter().chain([meta]).chain(direct.iter().map(|(place, ..)| *place));
        let mut places = places.chain(first.iter().flat_map(|(asked, _)| asked.places()));
        let in_order = epoch.is_some() && !places.any(|place| replies.is_single(place));
        let reading = time.map_or(Ok(belief.estimate), |time| replies.share(time).and_then(clock::server_time));
        let looked = reading.and_then(|reading| Look::read(moment.part, belief, reading, replies.take(meta)?));
        let outcome = if looked.is_ok() { "ok" } else { "failed" };
        counter!("rolltop_store_calls_total", "call" => "look", "outcome" => outcome).increment(1);
        let look = match looked {
            Ok(look) => look,
            Err(failure) => {
                if matches!(failure, ServerFailure::BoardChanged) {
                    self.session.forget(&moment.part.board);
                }
                return drop(fail_all(all_looking(kept, first, direct), &failure));
            }
        };
        moment.part.learn_time(look.reading, self.session.monotonic());
        if !in_order {
            let told = Some(look.now);
            let by_script = |pending| Pending { told, by_script: true, ..pending };
            return self.again.extend(all_looking(kept, first, direct).map(by_script));
        }
        let verdict = look.judge(&moment.window);
        for (pending, held) in kept {
            self.receive_kept(pending, &held, verdict, &look, epoch);
        }
        for (asked, pending) in first {
            let read = asked.read(moment.part, moment.window, &look, epoch, replies);
            self.receive_first(pending, verdict, &look, read);
        }
        for (place, pending, range) in direct {
            self.receive_direct(&moment, pending, &range, verdict, &look, replies.take(place));
        }
    }

    fn receive_kept(
        &mut self,
        mut pending: Pending,
        held: &CachedPage,
        verdict: Verdict,
        look: &Look,
        epoch: Option<u64>,
    ) {
        if verdict == Verdict::Right && held.is_right(epoch, &look.version, look.head) {
            return pending.answer(Ok(held.answer.clone().at(look.now)));
        }
        // If the part's head is old, the part must be advanced, which only a script does.
        let by_script = matches!(held.answer, Answer::Page(_)) || verdict == Verdict::Behind;
        (pending.told, pending.by_script, pending.outdated) = (Some(look.now), by_script, true);
        self.again.push(pending);
    }

    fn receive_first(
        &mut self,
        mut pending: Pending,
        verdict: Verdict,
        look: &Look,
        read: Result<Option<Share<Lines<About>>>, ServerFailure>,
    ) {
        match read {
            Ok(Some(share)) if verdict == Verdict::Right => {
                let (head, stamp) = (share.frame.window.head, share.version.clone());
                let answer = Answer::Lines(share);
                self.keep(&pending.question, head, &answer, stamp);
                pending.answer(Ok(answer));
            }
            Ok(_) => {
                // If this was already an attempt with the time that the part returned, and the window is wrong again,
                // then the clock has not reached the window, or the window ends with the last possible slot, which has
                // no end. A script handles both.
                let by_script = verdict != Verdict::Moved || pending.told.is_some();
                (pending.told, pending.by_script) = (Some(look.now), by_script);
                self.again.push(pending);
            }
            Err(failure) => pending.answer(Err(failure)),
        }
    }

    fn receive_direct(
        &mut self,
        moment: &Moment<'_>,
        mut pending: Pending,
        range: &Range,
        verdict: Verdict,
        look: &Look,
        value: Result<Value, ServerFailure>,
    ) {
        if verdict != Verdict::Right {
            pending.told = Some(look.now);
            // One script advances the board for all questions that follow it in the same pipeline.
            let part = &pending.question.part;
            let advanced = |other: &Pending| other.by_script && Arc::ptr_eq(&other.question.part, part);
            pending.by_script = verdict == Verdict::Behind && !self.again.iter().any(advanced);
            self.again.push(pending);
            return;
        }
        let read = value.and_then(Reply::new);
        match read.and_then(|reply| windows::read(&pending.question, range, look.now, reply)) {
            Ok(Some(held)) => {
                // An unranked board has no retiring slots.
                let frame = Frame { window: moment.window, as_of: look.now, retiring: 0 };
                let answer = windows::answer(&pending.question, moment, frame, None, held);
                pending.answer(Ok(answer));
            }
            Ok(None) => {
                (pending.told, pending.by_script) = (Some(look.now), true);
                self.again.push(pending);
            }
            Err(failure) => pending.answer(Err(failure)),
        }
    }

    fn receive_script(&mut self, moment: &Moment<'_>, asked: Asked, value: Value, epoch: Option<u64>) {
        let read = Reply::new(value).and_then(|mut reply| Ok((self.session.learn(moment.part, &mut reply)?, reply)));
        let (status, mut reply) = match read {
            Ok(read) => read,
            Err(failure) => return drop(fail_all(asked.into_pending(), &failure)),
        };
        let header = match status {
            Status::Done(header) => header,
            Status::Stale { now, .. } => return self.ask_again(asked, now),
            Status::Missing { header, .. } | Status::StaleKeys { header, .. } => {
                return self.ask_again(asked, header.now);
            }
        };
        let frame = header.frame(moment.window);
        match asked {
            Asked::One(pending) => match scripted::read(&pending.question, moment, frame, epoch, &mut reply) {
                Ok((answer, stamp)) => {
                    self.keep(&pending.question, frame.window.head, &answer, stamp);
                    pending.answer(Ok(answer));
                }
                Err(failure) => pending.answer(Err(failure)),
            },
            Asked::Subjects(all, range) => {
                let total = match reply.count() {
                    Ok(total) => total,
                    Err(failure) => return drop(fail_all(all, &failure)),
                };
                for pending in all {
                    let question = &pending.question;
                    let answer = reply.part().and_then(|mut reply| {
                        scripted::read_subject(question, moment, &range, frame, total, &mut reply)
                    });
                    pending.answer(answer);
                }
            }
        }
    }

    fn ask_again(&mut self, asked: Asked, now: Timestamp) {
        self.again.extend(asked.into_pending().into_iter().map(|pending| Pending { told: Some(now), ..pending }));
    }

    fn keep(&self, question: &Question, head: Timestamp, answer: &Answer, stamp: Option<Stamp>) {
        if stamp.is_some() && is_kept(&question.what) {
            self.pages.put(&question.part, &question.what, CachedPage::new(answer.clone(), head, vec![stamp]));
        }
    }
}

/// Returns all questions that need a look.
fn all_looking(
    kept: Vec<(Pending, Arc<CachedPage>)>,
    first: Vec<(first::Asked, Pending)>,
    direct: Vec<(usize, Pending, Range)>,
) -> impl Iterator<Item = Pending> {
    let kept = kept.into_iter().map(|(pending, _)| pending);
    let first = first.into_iter().map(|(_, pending)| pending);
    kept.chain(first).chain(direct.into_iter().map(|(_, pending, _)| pending))
}
