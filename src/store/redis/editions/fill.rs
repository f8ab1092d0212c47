//! Filling of the tracks of one edition with what subjects have in those of the other one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use redis::cmd;

use super::dual_run::dual_run;
use crate::board::{Board, BoardTrack, Counted, Kind, Subject, Timestamp, Window};
use crate::store::Content;
use crate::store::redis::contents::is_live;
use crate::store::redis::entries::{NumberedSubjects, SentEntry, TrackEntries, likely_slots};
use crate::store::redis::kinds::{self, Verb, VerbWord};
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{END_FILL, ScriptCall};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;
use crate::store::redis::several_tracks::{Attempt, call};

/// The largest number of slots of the track that gives of which one script reads the cells, unless a single slot of the
/// other one has more.
const SLOTS: usize = 1_000;
/// The number of partitions that are filled at the same time, and of scripts for each. They wait for their turns.
const TOGETHER: usize = 8;
/// The approximate number of values that are read at once.
const VALUES: usize = 500;

/// What one script gives.
enum Given<'a> {
    /// What the subject has in the slot of the track that receives with this start.
    Cell { subject: &'a Subject, slot: Timestamp },
    /// A value of the subject, or the time of one that was dropped.
    Value { subject: &'a Subject, content: Content },
}

/// Gives subjects what they have in one track in another one: see [`Store::fill`](crate::store::Store::fill).
pub(in crate::store::redis) async fn fill(
    session: &Session,
    from: &BoardTrack,
    to: &BoardTrack,
    cells: &[(Subject, Timestamp)],
) -> Result<(), ServerFailure> {
    let parts = [from, to].map(|track| session.parts_of(track));
    let mut shares: Vec<Vec<&(Subject, Timestamp)>> = vec![Vec::new(); parts[0].count()];
    for cell in cells {
        shares[parts[0].number_of(&cell.0)].push(cell);
    }
    let mut calls = Vec::new();
    for (number, share) in shares.into_iter().enumerate() {
        if !share.is_empty() {
            calls.push(fill_share(session, parts.each_ref().map(|parts| parts.all()[number].clone()), share));
        }
    }
    stream::iter(calls).buffer_unordered(TOGETHER).try_collect().await
}

/// Gives what subjects of one partition have.
async fn fill_share(
    session: &Session,
    parts: [Arc<Part>; 2],
    cells: Vec<&(Subject, Timestamp)>,
) -> Result<(), ServerFailure> {
    match parts[0].track.kind().remembers_values() {
        true => fill_values(session, &parts, cells).await,
        false => fill_cells(session, &parts, cells).await,
    }
}

async fn fill_cells<'a>(
    session: &'a Session,
    parts: &'a [Arc<Part>; 2],
    cells: Vec<&'a (Subject, Timestamp)>,
) -> Result<(), ServerFailure> {
    let [from, to] = [&parts[0].track, &parts[1].track];
    let mut known = HashSet::new();
    let mut wanted: Vec<(&'a Subject, Timestamp)> = Vec::with_capacity(cells.len());
    for (subject, slot) in cells {
        let cell = (subject, to.calendar().slot_of(*slot));
        if known.insert(cell) {
            wanted.push(cell);
        }
    }
    // As many as the longest slot has.
    let within = |(_, slot): &(&Subject, Timestamp)| slots_within(from, to, *slot).take(SLOTS).count().max(1);
    let slots = wanted.iter().map(within).max().unwrap_or(1);
    let most = kinds::of(to.kind()).limits().ranked_changes;
    let most = if to.kind() == Kind::Sketch { most / slots } else { most.min(SLOTS / slots) };
    let mut calls: Vec<BoxFuture<'a, Result<(), ServerFailure>>> = Vec::new();
    for some in wanted.chunks(most.max(1)) {
        let given: Vec<Given<'a>> = some.iter().map(|(subject, slot)| Given::Cell { subject, slot: *slot }).collect();
        calls.push(Box::pin(async move { give(session, parts, &given).await }));
    }
    stream::iter(calls).buffer_unordered(TOGETHER).try_collect().await
}

/// Gives all values of subjects. These are read in pieces without a script, because what happens to a value meanwhile
/// happens in both tracks, and of two times of a value the later one counts, in whichever order they come.
async fn fill_values<'a>(
    session: &'a Session,
    parts: &'a [Arc<Part>; 2],
    cells: Vec<&'a (Subject, Timestamp)>,
) -> Result<(), ServerFailure> {
    let subjects: HashSet<&Subject> = cells.into_iter().map(|(subject, _)| subject).collect();
    let mut calls: Vec<BoxFuture<'a, Result<(), ServerFailure>>> = Vec::new();
    for subject in subjects {
        calls.push(Box::pin(fill_values_of(session, parts, subject)));
    }
    stream::iter(calls).buffer_unordered(TOGETHER).try_collect().await
}

async fn fill_values_of(session: &Session, parts: &[Arc<Part>; 2], subject: &Subject) -> Result<(), ServerFailure> {
    let most = kinds::of(parts[1].track.kind()).limits().ranked_changes;
    for gone in [false, true] {
        let key = if gone { parts[0].keys.gone(subject) } else { parts[0].keys.seen(subject) };
        let mut cursor = "0".to_owned();
        loop {
            let (next, contents) = values(session, &key, gone, &cursor).await?;
            let given: Vec<Given<'_>> = contents.into_iter().map(|content| Given::Value { subject, content }).collect();
            for some in given.chunks(most) {
                give(session, parts, some).await?;
            }
            if next == "0" {
                break;
            }
            cursor = next;
        }
    }
    Ok(())
}

/// Reads some values of a subject, and the cursor with which to continue. A value that is there during the whole walk
/// is returned.
async fn values(
    session: &Session,
    key: &str,
    gone: bool,
    cursor: &str,
) -> Result<(String, Vec<Content>), ServerFailure> {
    let mut command = cmd("ZSCAN");
    command.arg(key).arg(cursor).arg("COUNT").arg(VALUES);
    let mut reply = Reply::new(session.servers.read(Channel::Bulk, &command).await?)?;
    let (next, mut members) = (reply.text()?, reply.part()?);
    let mut contents = Vec::new();
    while !members.is_empty() {
        let (member, at) = (members.text()?, members.time_of_score()?);
        contents.extend(match (gone, member.strip_prefix('t')) {
            (false, _) => Some(Content::Value { value: Counted::from_stored(member), at, retracted: false }),
            (true, Some(value)) => Some(Content::Value { value: Counted::from_stored(value), at, retracted: true }),
            (true, None) => (member == "c").then_some(Content::Dropped { at }),
        });
    }
    Ok((next, contents))
}

/// Returns the starts of the slots of a track within the slot of another one, if each of its slots is in one of these.
/// The first one is the start of that slot.
fn slots_within<'a>(
    from: &'a BoardTrack,
    to: &BoardTrack,
    slot: Timestamp,
) -> impl Iterator<Item = Timestamp> + use<'a> {
    let calendar = from.calendar();
    let end = if to.is_all_time() { Timestamp::MAX } else { to.calendar().next(slot) };
    let is_alike = from.is_all_time() == to.is_all_time();
    let first = (is_alike && calendar.slot_of(slot) == slot).then_some(slot);
    let is_single = from.is_all_time();
    let after = move |start: &Timestamp| (!is_single).then(|| calendar.next(*start));
    let starts = std::iter::successors(first, after);
    // A slot that begins in the slot and ends after it is in none.
    starts.take_while(move |start| is_single || calendar.next(*start) <= end)
}

/// Sends one script.
async fn give(session: &Session, parts: &[Arc<Part>; 2], given: &[Given<'_>]) -> Result<(), ServerFailure> {
    let parts = parts.each_ref().map(|part| &**part);
    let script = kinds::fill_script(parts.map(|part| &*part.track));
    let token = session.token();
    call(session, &parts, script, &token, |attempt| plan(parts, given, attempt).into()).await.map(drop)
}

/// What an entry gives.
struct Gift<'a> {
    subject: &'a Subject,
    /// The start of the slot of the track that receives.
    slot: Timestamp,
    verb: &'static str,
    word: GiftWord<'a>,
}

enum GiftWord<'a> {
    /// The starts of slots of the track that gives.
    Slots(Vec<Timestamp>),
    Value(&'a str, Timestamp),
}

/// Returns the keys and arguments of a call.
fn plan(parts: [&Part; 2], given: &[Given<'_>], attempt: &Attempt) -> [ScriptCall; 2] {
    let windows = [0, 1].map(|number| &attempt.windows[number].window);
    let gifts: Vec<Gift<'_>> = given.iter().filter_map(|given| gift(parts, windows, attempt.now, given)).collect();
    let subjects: NumberedSubjects<'_> = gifts.iter().map(|gift| gift.subject).collect();
    let of_from = gifts.iter().flat_map(|gift| match &gift.word {
        GiftWord::Slots(starts) => &starts[..],
        GiftWord::Value(..) => &[],
    });
    let mut of_to = likely_slots(parts[1], windows[1]);
    of_to.extend(gifts.iter().map(|gift| gift.slot).chain(attempt.needed[1].iter().copied()));
    let from = TrackEntries::new(parts[0], (windows[0], attempt.now), of_from.copied(), &subjects, None);
    let to = TrackEntries::new(parts[1], (windows[1], attempt.now), of_to, &subjects, None);
    let mut calls = [own_call(&from, 0), own_call(&to, gifts.len())];
    for Gift { subject, slot, verb, word } in &gifts {
        let (a, at) = match word {
            GiftWord::Slots(starts) => {
                let positions: Vec<String> = starts.iter().map(|start| from.position(*start).to_string()).collect();
                (Cow::from(positions.join(",")), None)
            }
            GiftWord::Value(value, at) => (Cow::from(*value), Some(*at)),
        };
        let verb = Verb { verb, a: VerbWord::Bytes(a.as_bytes()), b: 0 };
        to.add(&SentEntry { slot: Some(*slot), subject, verb, at, code: 0, id: "" }, calls[1].rest());
    }
    for (call, part) in calls.iter_mut().zip(parts) {
        call.more(kinds::option(&part.track));
    }
    calls
}

/// Returns the entry for what is given, if it is live in both tracks.
fn gift<'a>(parts: [&Part; 2], windows: [&Window; 2], now: Timestamp, given: &'a Given<'a>) -> Option<Gift<'a>> {
    let [from, to] = parts;
    match given {
        Given::Cell { subject, slot } => {
            let within = slots_within(&from.track, &to.track, *slot).take_while(|start| *start <= windows[0].head);
            let starts: Vec<Timestamp> = within.collect();
            let is_live = *slot >= windows[1].floor && starts.first().is_some_and(|first| *first >= windows[0].floor);
            is_live.then_some(Gift { subject, slot: *slot, verb: "fill", word: GiftWord::Slots(starts) })
        }
        Given::Value { subject, content } => {
            let (verb, value, at) = match content {
                Content::Value { value, at, .. } if let Kind::Capped { .. } = to.track.kind() => {
                    ("put", value.as_str(), *at)
                }
                Content::Value { value, at, retracted } => {
                    (if *retracted { "gone" } else { "seen" }, value.as_str(), *at)
                }
                Content::Dropped { at } => ("dropped", "", *at),
                Content::Cell { .. } | Content::Counter { .. } => return None,
            };
            let is_live = (0..2).all(|number| is_live(parts[number], windows[number], now, content));
            let slot = to.track.calendar().slot_of(at);
            let word = GiftWord::Value(value, at);
            (is_live && slot <= windows[1].head).then_some(Gift { subject, slot, verb, word })
        }
    }
}

/// Returns the keys and arguments about one of the tracks, without its entries.
fn own_call(own: &TrackEntries<'_>, entries: usize) -> ScriptCall {
    let mut call = ScriptCall::default();
    own.add_to(&mut call, entries);
    // What is given is in the other track already, so no key is refused. It has no ids.
    call.arg("most_keys", "").arg("bucket", "").arg("horizon", 0).arg("first_bucket_key", 0).arg("buckets", 0);
    call.arg("edition", "").arg("fence", "");
    own.add_lists(call.rest());
    call
}

/// Ends a fill: see [`Store::end_fill`](crate::store::Store::end_fill).
pub(in crate::store::redis) async fn end_fill(
    session: &Session,
    board: &Arc<Board>,
    tracks: &[(usize, usize)],
) -> Result<(), ServerFailure> {
    let partitions = session.partitions_of(board);
    if dual_run(session, board).await?.is_none() {
        return Ok(());
    }
    // Without tracks, only the time is noted.
    let main = (0, board.edition().numbers().end);
    let pairs: Vec<(usize, usize)> = tracks.iter().copied().chain(tracks.is_empty().then_some(main)).collect();
    for partition in partitions.all() {
        let meta = &partition.main().keys.meta;
        for (nth, (from, to)) in pairs.iter().copied().enumerate() {
            let parts = [from, to].map(|number| partition.parts().get(number));
            let [Some(from), Some(to)] = parts else { continue };
            let parts = [&**from, &**to];
            let run = session.servers.run(from.slot());
            let is_counted = !tracks.is_empty();
            call(session, &parts, &END_FILL, "", |attempt| {
                let ends = if nth + 1 == pairs.len() { "ends" } else { "" };
                let mut own = [ScriptCall::default(), ScriptCall::default()];
                for own in &mut own {
                    own.arg("run", run.as_deref().unwrap_or_default()).arg("ends", ends);
                }
                own[0].key(meta).all(if is_counted { events(parts, attempt) } else { Vec::new() });
                own.into()
            })
            .await?;
        }
    }
    Ok(())
}

/// Returns the slots of the second track that get a number of items, each followed by the number of those of the first
/// track that begin in it and their starts.
fn events(parts: [&Part; 2], attempt: &Attempt) -> Vec<i64> {
    let to = &parts[1].track;
    let [from_slots, to_slots] = [&attempt.windows[0], &attempt.windows[1]];
    let mut arguments = Vec::new();
    for slot in to_slots.starts.iter().copied().filter(|slot| *slot >= from_slots.window.floor) {
        let end = if to.is_all_time() { Timestamp::MAX } else { to.calendar().next(slot) };
        let later = &from_slots.starts[from_slots.starts.partition_point(|start| *start < slot)..];
        let starts: Vec<i64> = later.iter().take_while(|start| **start < end).map(|start| start.millis()).collect();
        arguments.extend([slot.millis(), starts.len() as i64].into_iter().chain(starts));
    }
    arguments
}
