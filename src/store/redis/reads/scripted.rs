//! Questions that a script answers, so that the whole answer is of one instant.

use super::question::{Answer, Question, What};
use super::share::{About, Cells, Share, Stamp};
use super::windows::{self, Range};
use crate::board::{Board, Frame, Kind, Order, Subject, Value};
use crate::store::redis::keys::BoardKeys;
use crate::store::redis::merge::{Between, Center, Lines, Located, Near, Sampled, Scored, Scores, Stretch};
use crate::store::redis::reply::Reply;
use crate::store::redis::score_text::score_text;
use crate::store::redis::scripts::{
    BESIDE, BETWEEN, LINES, LOOKUP, NEIGHBORS, PAGE, READ_SLOTS, Script, ScriptCall, VALUES,
};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Moment;
use crate::store::{Direction, Lookup, NextTo, Page, Place, Ranked, Standing, Values, ValuesStart};

/// A position beyond any sorted set, which is exact in Lua.
const FARTHEST: u64 = 1 << 52;

fn order(board: &Board) -> &'static str {
    match board.order() {
        Order::Desc => "desc",
        Order::Asc => "asc",
    }
}

/// Adds the arguments that follow those of every script about a board, and returns the script that answers the
/// question.
pub(super) fn script(question: &Question, moment: &Moment<'_>, call: &mut ScriptCall) -> &'static Script {
    let board = &*question.part.board;
    match &*question.what {
        What::Page { offset, limit } => {
            let first = (*offset).min(FARTHEST);
            // The range from 1 to 0 is empty. 0 to -1 would be all lines.
            let (first, last) = if *limit == 0 { (1, 0) } else { (first, first + u64::from(*limit) - 1) };
            call.arg("order", order(board)).arg("first", first).arg("last", last);
            &PAGE
        }
        What::Neighbors { subject, radius } => {
            call.arg("order", order(board)).arg("subject", subject).arg("radius", radius);
            &NEIGHBORS
        }
        What::Beside { next_to, limit } => {
            let NextTo { place, direction, .. } = next_to;
            let is_after = next_to.is_boundary_after_line();
            call.arg("order", order(board)).arg("score", score_text(Some(place.score))).arg("subject", &place.subject);
            call.arg("boundary", if is_after { "after" } else { "before" });
            call.arg("direction", if *direction == Direction::Forward { "forward" } else { "backward" });
            call.arg("limit", limit);
            &BESIDE
        }
        What::Lookup { subjects, ranks } => {
            call.arg("order", order(board)).arg("ranks", if *ranks { "ranks" } else { "" });
            call.arg("near", 0).arg("subjects", subjects.len());
            call.all(subjects);
            &LOOKUP
        }
        What::Scores(Scores { subjects, better_than, near }) => {
            call.arg("order", order(board)).arg("ranks", "").arg("near", near).arg("subjects", subjects.len());
            call.all(&**subjects);
            call.all(better_than.iter().map(|score| score_text(Some(*score))));
            &LOOKUP
        }
        What::Values { subject, start, limit } => {
            call.key(question.part.keys.seen(subject)).key(question.part.keys.gone(subject));
            let (offset, last_seen, value) = match start {
                ValuesStart::Offset(offset) => ((*offset).min(u32::MAX.into()), String::new(), ""),
                ValuesStart::After(place) => (0, place.last_seen.millis().to_string(), place.value.as_str()),
            };
            // Values are ordered as the lines of a `desc` board are, with the time as their score.
            call.arg("order", "desc")
                .arg("offset", offset)
                .arg("last_seen", last_seen)
                .arg("value", value)
                .arg("limit", limit);
            &VALUES
        }
        What::Lines { near, with_slots } => {
            ask_for_lines(question, moment, near, *with_slots, call);
            &LINES
        }
        What::Between(between) => {
            let Between { lo, hi, samples, all_up_to } = between;
            let score =
                |place: &Option<Place>| place.as_ref().map_or_else(String::new, |place| score_text(Some(place.score)));
            let subject =
                |place: &Option<Place>| place.as_ref().map_or_else(String::new, |place| place.subject.to_string());
            call.arg("order", order(board));
            call.arg("from_score", score(lo)).arg("from_subject", subject(lo));
            call.arg("till_score", score(hi)).arg("till_subject", subject(hi));
            call.arg("samples", samples).arg("all_up_to", (*all_up_to).min(FARTHEST));
            &BETWEEN
        }
        What::Standing(subject) | What::Window { subject, .. } => {
            windows::ask_by_script(question, moment, subject, call);
            &READ_SLOTS
        }
    }
}

/// Reads the reply to [`script`]. `epoch` is the epoch of the part's node, or `None` if it changed in the meantime. The
/// second value is present if the script returns the version and the answer may be cached as long as the version stays
/// the same.
pub(super) fn read(
    question: &Question,
    moment: &Moment<'_>,
    frame: Frame,
    epoch: Option<u64>,
    reply: &mut Reply,
) -> Result<(Answer, Option<Stamp>), ServerFailure> {
    let kind = question.part.board.kind();
    let answer = match &*question.what {
        What::Page { offset, .. } => {
            let (total, better, version) = (reply.count()?, reply.count()?, reply.text()?);
            let first = (*offset).min(total);
            let items = lines(reply, kind, first, better)?.into();
            return Ok((Answer::Page(Page { frame, total, first, items }), Stamp::new(&version, epoch)));
        }
        What::Neighbors { .. } | What::Beside { .. } => {
            let (total, first, better) = (reply.count()?, reply.count()?, reply.count()?);
            Answer::Page(Page { frame, total, first, items: lines(reply, kind, first, better)?.into() })
        }
        What::Lookup { subjects, ranks } => {
            let total = reply.count()?;
            let scores: Vec<_> = subjects.iter().map(|_| reply.score(kind)).collect::<Result<_, _>>()?;
            let rank = |score: &Option<Value>| match ranks {
                true => reply.count().map(|better| score.map(|_| better + 1)),
                false => Ok(None),
            };
            let ranks = scores.iter().map(rank).collect::<Result<_, _>>()?;
            Answer::Lookup(Lookup { frame, total, scores, ranks })
        }
        What::Scores(asked) => Answer::Scored(Share { frame, version: None, said: read_scores(asked, reply, kind)? }),
        What::Values { .. } => Answer::Values(values(reply, frame)?),
        What::Lines { near, .. } => {
            let (said, version) = read_lines(question, moment, near, reply)?;
            let version = Stamp::new(&version, epoch);
            return Ok((Answer::Lines(Share { frame, version: version.clone(), said }), version));
        }
        What::Between(_) => {
            let (said, version) = read_between(reply, kind)?;
            Answer::Sampled(Share { frame, version: Stamp::new(&version, epoch), said })
        }
        What::Standing(_) | What::Window { .. } => {
            let (capped, held) = windows::scripted(reply, kind)?;
            windows::answer(question, moment, frame, capped, held)
        }
    };
    Ok((answer, None))
}

/// Adds the arguments of `lines.lua`.
fn ask_for_lines(question: &Question, moment: &Moment<'_>, near: &Near, with_slots: bool, call: &mut ScriptCall) {
    let (board, keys) = (&*question.part.board, &question.part.keys);
    let (how, score, subject) = match &near.center {
        Center::Start => ("start", None, None),
        Center::Place(place) => ("place", Some(place.score), Some(&place.subject)),
        Center::Subject { subject, absent } => ("subject", Some(*absent), Some(subject)),
    };
    let asks_for_slots = with_slots && how == "subject";
    let capped = asks_for_slots && windows::may_be_capped(board);
    if let Some(subject) = subject.filter(|_| capped) {
        call.key(keys.gone(subject));
    }
    if asks_for_slots {
        for start in windows::range(question, moment).starts.iter() {
            call.key(keys.slot(*start));
        }
    }
    call.arg("order", order(board)).arg("from", how).arg("score", score_text(score));
    call.arg("subject", subject.map_or("", Subject::as_str));
    call.arg("before", near.before.min(FARTHEST)).arg("after", near.after.min(FARTHEST));
    call.arg("capped", if capped { "capped" } else { "" });
}

/// Reads the reply of `lines.lua`, and the part's version.
fn read_lines(
    question: &Question,
    moment: &Moment<'_>,
    near: &Near,
    reply: &mut Reply,
) -> Result<(Lines<About>, String), ServerFailure> {
    let kind = question.part.board.kind();
    let (total, first, better, version) = (reply.count()?, reply.count()?, reply.count()?, reply.text()?);
    let mut located = reply.part()?;
    let (score, capped) = (located.score(kind)?, located.maybe_time()?);
    let slots = positioned(&mut located, &windows::range(question, moment), kind)?;
    let is_about_subject = matches!(near.center, Center::Subject { .. });
    let subject = is_about_subject.then_some(Located { score, extra: About { slots, capped } });
    let mut lines = Vec::with_capacity(reply.len() / 2);
    while !reply.is_empty() {
        let subject = reply.subject()?;
        lines.push(Place { score: reply.line_score(kind)?, subject });
    }
    Ok((Lines { total, first, better, lines, subject }, version))
}

/// Reads the reply of `between.lua`, and the part's version.
fn read_between(reply: &mut Reply, kind: Kind) -> Result<(Sampled, String), ServerFailure> {
    let (total, before_lo, better_than_lo) = (reply.count()?, reply.count()?, reply.count()?);
    let (before_hi, version) = (reply.count()?, reply.text()?);
    let mut lines = Vec::with_capacity(reply.len() / 3);
    while !reply.is_empty() {
        let (position, subject) = (reply.count()?, reply.subject()?);
        lines.push((position, Place { score: reply.line_score(kind)?, subject }));
    }
    Ok((Sampled { total, before_lo, better_than_lo, before_hi, lines }, version))
}

/// Reads the reply of `lookup.lua` about one of several parts.
fn read_scores(asked: &Scores, reply: &mut Reply, kind: Kind) -> Result<Scored, ServerFailure> {
    let total = reply.count()?;
    let scores = asked.subjects.iter().map(|_| reply.score(kind)).collect::<Result<_, _>>()?;
    let (mut better, mut near) = (Vec::with_capacity(asked.better_than.len()), Vec::new());
    for _ in &*asked.better_than {
        better.push(reply.count()?);
        if asked.near > 0 {
            let mut lines = reply.part()?;
            let (first, better) = (lines.count()?, lines.count()?);
            let scores = (0..lines.len()).map(|_| lines.line_score(kind)).collect::<Result<_, _>>()?;
            near.push(Stretch { first, better, scores });
        }
    }
    Ok(Scored { total, scores, better, near })
}

/// Reads cells. Each is preceded by the position of its slot in the range, from 1.
fn positioned(reply: &mut Reply, range: &Range, kind: Kind) -> Result<Cells, ServerFailure> {
    let mut held = Vec::with_capacity(reply.len() / 2);
    while !reply.is_empty() {
        let position = reply.count()?;
        let start = usize::try_from(position).ok().and_then(|position| range.starts.get(position.checked_sub(1)?));
        let start = *start.ok_or_else(|| ServerFailure::Corrupt(format!("a slot at position {position}")))?;
        held.extend(reply.aggregate(kind)?.map(|aggregate| (start, aggregate)));
    }
    Ok(held)
}

/// Reads lines that begin at position `first` (from 0). `better` subjects are strictly better than the first line.
fn lines(reply: &mut Reply, kind: Kind, first: u64, better: u64) -> Result<Vec<Ranked>, ServerFailure> {
    let mut items: Vec<Ranked> = Vec::with_capacity(reply.len() / 2);
    let mut place = first;
    while !reply.is_empty() {
        let (subject, score) = (reply.subject()?, reply.line_score(kind)?);
        let rank = match items.last() {
            None => better + 1,
            Some(before) if before.score == score => before.rank,
            Some(_) => place + 1,
        };
        items.push(Ranked { rank, subject, score });
        place += 1;
    }
    Ok(items)
}

fn values(reply: &mut Reply, frame: Frame) -> Result<Values, ServerFailure> {
    let capped = reply.maybe_time()?.is_some_and(|time| time >= frame.window.floor);
    let (total, first) = (reply.count()?, reply.count()?);
    let mut items = Vec::new();
    while !reply.is_empty() {
        let value = reply.counted()?;
        items.extend(reply.maybe_time()?.map(|time| (value, time)));
    }
    Ok(Values { frame, total, first, items, capped })
}

/// Adds the arguments of `subjects.lua`, for subjects whose questions are about the same slots.
pub(super) fn ask_of_subjects(
    board: &Board,
    keys: &BoardKeys,
    subjects: &[&Subject],
    range: &Range,
    standing: bool,
    call: &mut ScriptCall,
) {
    let capped = windows::may_be_capped(board);
    if capped {
        for subject in subjects {
            call.key(keys.gone(subject));
        }
    }
    for start in range.starts.iter() {
        call.key(keys.slot(*start));
    }
    call.arg("order", if standing { order(board) } else { "" }).arg("subjects", subjects.len());
    call.arg("capped", if capped { "capped" } else { "" });
    call.all(subjects);
}

/// Reads the reply of `subjects.lua` about one subject.
pub(super) fn read_subject(
    question: &Question,
    moment: &Moment<'_>,
    range: &Range,
    frame: Frame,
    total: u64,
    reply: &mut Reply,
) -> Result<Answer, ServerFailure> {
    let kind = question.part.board.kind();
    let (score, better, capped) = (reply.score(kind)?, reply.count()?, reply.maybe_time()?);
    let held = positioned(reply, range, kind)?;
    if let What::Standing(_) = &*question.what {
        let capped = capped.is_some_and(|time| time >= frame.window.floor);
        let rank = score.map(|_| better + 1);
        let score = score.or(kind.absent());
        return Ok(Answer::Standing(Standing { frame, total, score, rank, better, slots: held, capped }));
    }
    Ok(windows::answer(question, moment, frame, capped, held))
}
