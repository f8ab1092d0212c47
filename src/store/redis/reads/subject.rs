//! The slots of one subject, and its standing.
//!
//! On a ranked board, questions about the same slots share a call of `subjects.lua`, which names the slots once. On an
//! unranked board, the subject's only key is read by one command, and the caller checks what a script would check
//! ([`look`](super::look)). Boards with `max_values` and subjects with many values need a script.

use std::cmp::Ordering;
use std::sync::Arc;

use redis::Value;

use super::asked::{Asked, Heard, Receiving};
use super::counts::{rank_of, ranks_asked};
use super::look::Look;
use super::pages::Pages;
use super::question::{Peek, Question, Read, Seen, add_ranking, cells};
use super::share::Cells;
use super::slot_range::Range;
use super::subject_keys;
use crate::board::{Aggregate, Frame, Kind, RankingKey, Subject, Timestamp, Track, Value as Score, Visibility, Window};
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{READ_SLOTS, SUBJECTS, Script, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Moment;
use crate::store::{SlotContents, SlotRange, Standing, StoreError};

/// The largest number of subjects in one call of `subjects.lua`: Lua unpacks some thousand values at most.
const TOGETHER: usize = 1_000;

/// A read of slots of a subject, and of its score and rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SubjectRead {
    /// The subject as it is stored, with its key if it has one.
    pub subject: Subject,
    pub scope: Scope,
    /// Whether score and rank are requested, on a ranked board.
    pub with_rank: bool,
    /// Whether to count the subjects whose score is not worse, too.
    pub ties: bool,
}

/// The slots that are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    Window,
    Slots { range: SlotRange, as_of: Option<Timestamp> },
}

/// What a part has of a subject.
#[derive(Clone, Debug)]
pub(super) struct SubjectSlots {
    frame: Frame,
    /// The number of subjects of the ranking, or 0 on an unranked board.
    total: u64,
    /// The score, if it was requested and the subject has one.
    score: Option<Score>,
    /// Whether the subject is in the ranking if it has a score. Known if the score was requested.
    visibility: Visibility,
    /// The number of subjects with a strictly better score.
    better: u64,
    /// The number of subjects whose score is not worse, if requested and the subject has one.
    not_worse: Option<u64>,
    /// The slots that were read, or the oldest slot that can be requested.
    range: Result<Range, Timestamp>,
    cells: Cells,
    /// The time of the latest value that was dropped because of `max_values`.
    capped: Option<Timestamp>,
}

impl SubjectRead {
    /// Returns a read of the standing of a subject.
    pub fn standing(subject: Subject, ties: bool) -> Self {
        Self { subject, scope: Scope::Window, with_rank: true, ties }
    }

    /// Compares questions, so that those about the same slots of a part are next to each other when sorted, and so
    /// are equal questions.
    pub fn order(one: &Question<Self>, other: &Question<Self>) -> Ordering {
        let slots = |question: &Question<Self>| match question.read.scope {
            Scope::Slots { range: SlotRange::Slots(slots), as_of } => Some((i64::from(slots), 0, as_of)),
            Scope::Slots { range: SlotRange::From(time), as_of } => Some((0, time.millis(), as_of)),
            Scope::Window => None,
        };
        let part = |question: &Question<Self>| Arc::as_ptr(&question.part);
        let by_slots = part(one).cmp(&part(other)).then_with(|| slots(one).cmp(&slots(other)));
        by_slots.then_with(|| one.read.subject.cmp(&other.read.subject))
    }

    /// Returns whether one call of `subjects.lua` can answer both.
    fn has_slots_of(&self, other: &Self) -> bool {
        (self.scope, self.with_rank, self.ties) == (other.scope, other.with_rank, other.ties)
    }

    /// Returns the slots to read. Returns none if not all of them exist: the time must be read all the same.
    fn range(&self, moment: &Moment<'_>) -> Range {
        self.existing_range(moment).unwrap_or_else(|_| Range::nothing(moment))
    }

    /// Returns the slots to read, or the oldest slot that can be requested if not all of them exist.
    fn existing_range(&self, moment: &Moment<'_>) -> Result<Range, Timestamp> {
        match self.scope {
            Scope::Slots { range, as_of } if !moment.part.track.is_from_first() => Range::of(moment, range, as_of),
            _ => Ok(Range::whole(moment)),
        }
    }

    /// Returns the reply with these cells.
    fn found(&self, moment: &Moment<'_>, frame: Frame, capped: Option<Timestamp>, cells: Cells) -> SubjectSlots {
        let range = match self.scope {
            Scope::Slots { as_of: Some(time), .. } if time > frame.as_of && !moment.part.track.is_from_first() => {
                Err(moment.part.kept(&moment.window).oldest)
            }
            _ => self.existing_range(moment),
        };
        let visibility = Visibility::Visible;
        SubjectSlots { frame, total: 0, score: None, visibility, better: 0, not_worse: None, range, cells, capped }
    }
}

impl Read for SubjectRead {
    type Reply = SubjectSlots;

    fn cells(&self, track: &Track) -> u64 {
        match self.scope {
            Scope::Slots { range: SlotRange::Slots(slots), .. } => cells(track, slots),
            Scope::Slots { range: SlotRange::From(_), .. } | Scope::Window => cells(track, track.slots()),
        }
    }

    fn call(&self, moment: &Moment<'_>, _: Option<&RankingKey>, call: &mut ScriptCall) -> &'static Script {
        subject_keys::call(moment, &self.subject, &self.range(moment), false, call);
        &READ_SLOTS
    }

    fn read(&self, moment: &Moment<'_>, seen: Seen, reply: &mut Reply) -> Result<SubjectSlots, ServerFailure> {
        let (capped, held) = subject_keys::scripted(reply, moment.part.track.kind())?;
        Ok(self.found(moment, seen.frame, capped, held))
    }

    fn peek(
        &self,
        _: &Arc<Part>,
        _: Option<&RankingKey>,
        moment: &Moment<'_>,
        _: Option<&Pages>,
    ) -> Option<Peek<Self>> {
        let range = self.range(moment);
        let command = subject_keys::command(moment.part, &self.subject, &range)?;
        let read = move |read: &Self, moment: &Moment<'_>, look: &Look, values: Vec<Value>| {
            let now = look.now;
            // There is one value for the one command.
            let Some(value) = values.into_iter().next() else { return Ok(None) };
            let held = subject_keys::read(&moment.part.track, &range, now, Reply::new(value)?)?;
            // An unranked board has no retiring slots.
            let frame = Frame { window: moment.window, as_of: now, retiring: 0 };
            Ok(held.map(|held| read.found(moment, frame, None, held)))
        };
        Some(Peek { commands: vec![command], is_cached: false, read: Box::new(read) })
    }
}

impl SubjectSlots {
    /// Returns the standing of the subject, given its board.
    pub fn standing(self, track: &Track) -> Standing {
        let Self { frame, total, score: ranked, visibility, better, not_worse, cells: slots, capped, .. } = self;
        let capped = capped.is_some_and(|time| time >= frame.window.floor);
        let (score, rank) = match track.is_ranked() {
            true => (ranked.or(track.kind().absent()), ranked.filter(|_| visibility.sees_rank()).map(|_| better + 1)),
            false => (track.value(slots.iter().map(|(_, aggregate)| aggregate)), None),
        };
        let not_worse = not_worse.filter(|_| rank.is_some());
        Standing { frame, total, score, rank, visibility, better, not_worse, slots, capped }
    }

    /// Returns the contents of the requested slots, given the board.
    pub fn contents(self, track: &Track) -> Result<SlotContents, StoreError> {
        let Self { mut frame, range, cells: aggregates, capped, .. } = self;
        if track.is_from_first() {
            frame.window = life(track, &frame, &aggregates);
            return Ok(SlotContents { frame, slots: 1, aggregates, capped: false });
        }
        let range = range.map_err(|floor| StoreError::BeyondWindow { floor })?;
        frame.window = range.window(frame.window);
        let slots = u32::try_from(range.starts.len()).unwrap_or(u32::MAX);
        let capped = capped.is_some_and(|time| time >= frame.window.floor);
        Ok(SlotContents { frame, slots, aggregates, capped })
    }
}

/// Adds a question to those that share a call of `subjects.lua`: those about the same slots, up to a number of
/// subjects.
pub(super) fn group(groups: &mut Vec<Vec<Asked<SubjectRead>>>, asked: Asked<SubjectRead>) {
    let same = |group: &&mut Vec<Asked<SubjectRead>>| {
        let is_alike = |first: &Asked<SubjectRead>| {
            let (one, other) = (&first.question, &asked.question);
            one.key == other.key && one.read.has_slots_of(&other.read)
        };
        group.first().is_some_and(is_alike) && group.len() < TOGETHER
    };
    match groups.iter_mut().find(same) {
        Some(group) => group.push(asked),
        None => groups.push(vec![asked]),
    }
}

/// Adds the arguments of `subjects.lua`, for subjects whose questions are about the same slots. Returns these slots.
pub(super) fn call_together(
    moment: &Moment<'_>,
    all: &[Asked<SubjectRead>],
    call: &mut ScriptCall,
) -> Option<(&'static Script, Range)> {
    let question = &all.first()?.question;
    let (part, first) = (moment.part, &question.read);
    let range = first.range(moment);
    let capped = part.track.max_values().is_some();
    let subjects = || all.iter().map(|asked| &asked.question.read.subject);
    call.key(&part.keys.ranking);
    if capped {
        for subject in subjects() {
            call.key(part.keys.gone(subject));
        }
    }
    for start in range.starts.iter() {
        call.key(part.keys.slot(*start));
    }
    add_ranking(part, question.key.as_ref(), call);
    call.arg("ranks", ranks_asked(first.with_rank, first.ties)).arg("rank_of", rank_of(&part.track));
    call.arg("subjects", all.len()).arg("capped", if capped { "capped" } else { "" });
    call.all(subjects());
    Some((&SUBJECTS, range))
}

/// Receives the outcome of the call of `subjects.lua`.
pub(super) fn hear_together(
    all: Vec<Asked<SubjectRead>>,
    range: &Range,
    heard: Heard<'_>,
    receiving: &mut Receiving<'_>,
) {
    let (moment, frame, reply) = match heard {
        Heard::Done { moment, seen, reply } => (moment, seen.frame, reply),
        Heard::Stale(now) => return all.into_iter().for_each(|asked| asked.ask_again(now, receiving)),
        Heard::Failed(failure) => return all.into_iter().for_each(|asked| asked.answer(Err(failure.clone()))),
    };
    let total = reply.count();
    for asked in all {
        let read = total.clone().and_then(|total| {
            let found = read_together(&asked.question.read, moment, range, frame, &mut reply.part()?)?;
            Ok(SubjectSlots { total, ..found })
        });
        asked.answer(read);
    }
}

/// Reads the reply of `subjects.lua` about one subject.
fn read_together(
    read: &SubjectRead,
    moment: &Moment<'_>,
    range: &Range,
    frame: Frame,
    reply: &mut Reply,
) -> Result<SubjectSlots, ServerFailure> {
    let kind = moment.part.track.kind();
    let (score, better, not_worse) = (reply.score(kind)?, reply.count()?, reply.maybe_count()?);
    let (visibility, capped) = (reply.moderation()?.visibility, reply.maybe_time()?);
    let held = positioned(reply, range, kind)?;
    Ok(SubjectSlots { score, visibility, better, not_worse, ..read.found(moment, frame, capped, held) })
}

/// Reads cells. Each is preceded by the position of its slot in the range, from 1.
pub(super) fn positioned(reply: &mut Reply, range: &Range, kind: Kind) -> Result<Cells, ServerFailure> {
    let mut held = Vec::with_capacity(reply.len() / 2);
    while !reply.is_empty() {
        let position = reply.count()?;
        let start = usize::try_from(position).ok().and_then(|position| range.starts.get(position.checked_sub(1)?));
        let start = *start.ok_or_else(|| ServerFailure::Corrupt(format!("a slot at position {position}")))?;
        held.extend(reply.aggregate(kind)?.map(|aggregate| (start, aggregate)));
    }
    Ok(held)
}

/// Returns the window that a counter's answer is about.
fn life(track: &Track, frame: &Frame, held: &[(Timestamp, Aggregate)]) -> Window {
    let start = held.first().map_or(frame.as_of, |(start, _)| *start);
    let end = start.plus_millis(track.length().approximate_millis());
    Window { floor: start, head: start, end }
}
