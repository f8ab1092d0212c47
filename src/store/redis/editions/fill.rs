//! Filling of the tracks of one edition with what subjects have in those of the other one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use redis::cmd;

use super::dual_run::dual_run;
use crate::board::{Board, BoardTrack, Counted, Kind, Subject, Timestamp, Window};
use crate::store::Content;
use crate::store::redis::contents::is_live;
use crate::store::redis::expiry;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::END_FILL;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;
use crate::store::redis::several_tracks::{Attempt, OwnCall, call};

/// The largest number of slots of the track that gives of which one script reads the cells, unless a single slot of the
/// other one has more.
const SLOTS: usize = 1_000;
/// The number of partitions that are filled at the same time, and of scripts for each. They wait for their turns.
const TOGETHER: usize = 8;
/// The approximate number of values that are read at once.
const VALUES: usize = 500;
/// On a ranked COUNT_DISTINCT board, the number of newest slots that every call names.
const LIKELY: usize = 32;

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
            let (next, contents) = values(session, &parts[0], &key, gone, &cursor).await?;
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
    part: &Part,
    key: &str,
    gone: bool,
    cursor: &str,
) -> Result<(String, Vec<Content>), ServerFailure> {
    let mut command = cmd("ZSCAN");
    command.arg(key).arg(cursor).arg("COUNT").arg(VALUES);
    let mut reply = Reply::new(session.servers.read(part.slot(), Channel::Bulk, &command).await?)?;
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
    let [from, to] = [&*parts[0], &*parts[1]];
    let script = kinds::fill_script([&from.track, &to.track]);
    let token = session.token();
    call(session, &[from, to], script, &token, |attempt| plan(parts, given, attempt).into()).await.map(drop)
}

/// Returns the keys and arguments of a call.
fn plan(parts: &[Arc<Part>; 2], given: &[Given<'_>], attempt: &Attempt) -> [OwnCall; 2] {
    let [from, to] = [&*parts[0], &*parts[1]];
    let windows = [&attempt.windows[0].window, &attempt.windows[1].window];
    let mut subjects: Vec<&Subject> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    // The slots of each track, and the entries with the starts of their slots.
    let mut entries: Vec<(Timestamp, usize, &'static str, EntryWord<'_>)> = Vec::new();
    let mut of_from: Vec<Timestamp> = Vec::new();
    for given in given {
        let (subject, entry) = match given {
            Given::Cell { subject, slot } => {
                let head = windows[0].head;
                let within = slots_within(&from.track, &to.track, *slot).take_while(|start| *start <= head);
                let starts: Vec<Timestamp> = within.collect();
                let is_live =
                    *slot >= windows[1].floor && starts.first().is_some_and(|first| *first >= windows[0].floor);
                if !is_live {
                    continue;
                }
                of_from.extend(&starts);
                (*subject, (*slot, "fill", EntryWord::Slots(starts)))
            }
            Given::Value { subject, content } => {
                let Some(entry) = value_entry(to, windows, attempt.now, parts, content) else { continue };
                (*subject, entry)
            }
        };
        let place = *places.entry(subject.as_str()).or_insert_with(|| {
            subjects.push(subject);
            subjects.len()
        });
        entries.push((entry.0, place, entry.1, entry.2));
    }
    let mut of_to: Vec<Timestamp> = entries.iter().map(|(slot, ..)| *slot).collect();
    of_to.extend(&attempt.needed[1]);
    if to.track.kind().remembers_values() && to.track.is_ranked() {
        of_to.extend(attempt.windows[1].starts.iter().rev().take(LIKELY));
    }
    let numbered = |mut starts: Vec<Timestamp>| -> BTreeMap<Timestamp, usize> {
        starts.sort_unstable();
        starts.dedup();
        starts.into_iter().zip(1..).collect()
    };
    let slots = [numbered(of_from), numbered(of_to)];
    let position = |slots: &BTreeMap<Timestamp, usize>, start| slots.get(&start).copied().unwrap_or_default();
    let mut own = [0, 1].map(|number| {
        let count = if number == 0 { 0 } else { entries.len() };
        own_call(&parts[number], &slots[number], &subjects, count, windows[number], attempt.now)
    });
    let text = |number: usize| number.to_string().into_bytes();
    for (slot, place, verb, word) in entries {
        let (a, at) = match word {
            EntryWord::Slots(starts) => {
                let positions: Vec<String> =
                    starts.into_iter().map(|start| position(&slots[0], start).to_string()).collect();
                (positions.join(",").into_bytes(), String::new())
            }
            EntryWord::Value(value, at) => (value.as_bytes().to_vec(), at.millis().to_string()),
        };
        let slot = text(position(&slots[1], slot));
        own[1].more.extend([
            slot,
            text(place),
            verb.into(),
            a,
            b"0".to_vec(),
            at.into_bytes(),
            b"0".to_vec(),
            Vec::new(),
        ]);
    }
    for (number, own) in own.iter_mut().enumerate() {
        own.more.push(kinds::option(&parts[number].track).into_bytes());
    }
    own
}

/// What an entry gives.
enum EntryWord<'a> {
    /// The starts of slots of the track that gives.
    Slots(Vec<Timestamp>),
    Value(&'a str, Timestamp),
}

/// Returns the entry for a value, if it is live in both tracks.
fn value_entry<'a>(
    to: &Part,
    windows: [&Window; 2],
    now: Timestamp,
    parts: &[Arc<Part>; 2],
    content: &'a Content,
) -> Option<(Timestamp, &'static str, EntryWord<'a>)> {
    let (verb, value, at) = match content {
        Content::Value { value, at, retracted } => (if *retracted { "gone" } else { "seen" }, value.as_str(), *at),
        Content::Dropped { at } => ("dropped", "", *at),
        Content::Cell { .. } | Content::Counter { .. } => return None,
    };
    let is_live = (0..2).all(|number| is_live(&parts[number], windows[number], now, content));
    let slot = to.track.calendar().slot_of(at);
    (is_live && slot <= windows[1].head).then_some((slot, verb, EntryWord::Value(value, at)))
}

/// Returns the keys and arguments about one of the tracks, without its entries.
fn own_call(
    part: &Part,
    slots: &BTreeMap<Timestamp, usize>,
    subjects: &[&Subject],
    entries: usize,
    window: &Window,
    now: Timestamp,
) -> OwnCall {
    let (track, keys) = (&part.track, &part.keys);
    let mut own = OwnCall::default();
    if track.is_ranked() {
        own.keys.extend(slots.keys().map(|start| keys.slot(*start)));
    }
    let first_subject_key = 6 + own.keys.len();
    for subject in subjects {
        if track.kind().remembers_values() {
            own.keys.extend([keys.seen(subject), keys.gone(subject)]);
        } else if !track.is_ranked() {
            own.keys.push(keys.subject(subject));
        }
    }
    let period = expiry::has_subject_keys(track).then(|| expiry::period(track, now));
    if let Some(period) = period {
        own.keys.extend([keys.periods.clone(), keys.written(period)]);
    }
    own.named = vec![
        ("bound", track.slot_bound().0.to_string()),
        // What is given is in the other track already, so no key is refused.
        ("most_keys", String::new()),
        ("slots", slots.len().to_string()),
        ("subjects", subjects.len().to_string()),
        ("entries", entries.to_string()),
        ("bucket", String::new()),
        ("horizon", "0".to_owned()),
        ("first_subject_key", first_subject_key.to_string()),
        ("first_bucket_key", "0".to_owned()),
        ("buckets", "0".to_owned()),
        ("oldest", part.kept(window).oldest.millis().to_string()),
        ("period", period.map_or_else(String::new, |period| period.to_string())),
        ("edition", String::new()),
    ];
    own.more.extend(slots.keys().map(|start| start.millis().to_string().into_bytes()));
    own.more.extend(subjects.iter().map(|subject| subject.as_str().as_bytes().to_vec()));
    own
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
                let named = || vec![("run", run.as_deref().unwrap_or_default().to_owned()), ("ends", ends.to_owned())];
                let more = if is_counted { events(parts, attempt) } else { Vec::new() };
                let first = OwnCall { keys: vec![meta.clone()], named: named(), more };
                vec![first, OwnCall { named: named(), ..OwnCall::default() }]
            })
            .await?;
        }
    }
    Ok(())
}

/// Returns the slots of the second track that get a number of items, each followed by the number of those of the first
/// track that begin in it and their starts.
fn events(parts: [&Part; 2], attempt: &Attempt) -> Vec<Vec<u8>> {
    let to = &parts[1].track;
    let [from_slots, to_slots] = [&attempt.windows[0], &attempt.windows[1]];
    let mut arguments = Vec::new();
    for slot in to_slots.starts.iter().copied().filter(|slot| *slot >= from_slots.window.floor) {
        let end = if to.is_all_time() { Timestamp::MAX } else { to.calendar().next(slot) };
        let later = &from_slots.starts[from_slots.starts.partition_point(|start| *start < slot)..];
        let starts: Vec<i64> = later.iter().take_while(|start| **start < end).map(|start| start.millis()).collect();
        let numbers = [slot.millis(), starts.len() as i64].into_iter().chain(starts);
        arguments.extend(numbers.map(|number| number.to_string().into_bytes()));
    }
    arguments
}
