//! Contents as lines, and lines as contents.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::lines::{ContentsAttributes, ContentsLine};
use crate::board::{
    Aggregate, Amount, Attributes, AttributesChange, Counted, DayCount, EXACT_MAX, Kind, Moderation, RankingKey,
    Sketch, Subject, Timestamp,
};
use crate::service::{Content, ImportPart};

/// The largest number of contents in a line.
const MOST: usize = 1_000;
/// The largest number of slots in `events`: a window has 2,000, and some more are kept.
const MOST_EVENTS: usize = 2_008;
/// The numbers of lines are less.
pub(super) const MAX_NUMBER: u64 = 1 << 40;
/// The bytes of texts after which a line is full. With its other characters it stays below the default of `max_line`.
const FULL: usize = 24 << 10;
/// The bytes of a content apart from its texts.
const BESIDE_TEXTS: usize = 24;

/// The lines of which a content may be a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    Cells(Timestamp),
    Values,
    Retracted,
    Dropped,
    Counters,
}

fn list_of(content: &Content) -> List {
    match content {
        Content::Cell { slot, .. } => List::Cells(*slot),
        Content::Value { retracted: false, .. } => List::Values,
        Content::Value { retracted: true, .. } => List::Retracted,
        Content::Dropped { .. } => List::Dropped,
        Content::Counter { .. } => List::Counters,
    }
}

/// Divides contents of one track into lines, which have no numbers yet.
pub(super) fn lines(contents: &[(Subject, Content)], kind: Kind) -> Vec<ContentsLine<'_>> {
    let mut by_list: BTreeMap<List, Vec<&(Subject, Content)>> = BTreeMap::new();
    for content in contents {
        by_list.entry(list_of(&content.1)).or_default().push(content);
    }
    let mut lines = Vec::new();
    for (list, contents) in by_list {
        let slot = if let List::Cells(slot) = list { Some(slot.millis()) } else { None };
        let new = || ContentsLine { slot, ..ContentsLine::default() };
        let (mut line, mut count, mut bytes) = (new(), 0, 0);
        for (subject, content) in contents {
            if count == MOST || bytes > FULL {
                lines.push(std::mem::replace(&mut line, new()));
                (count, bytes) = (0, 0);
            }
            count += 1;
            line.by.extend(subject.key().map(Cow::Borrowed));
            bytes += BESIDE_TEXTS + subject.as_str().len() + push(&mut line, subject.name(), content, kind);
        }
        lines.push(line);
    }
    lines
}

/// Adds a content to a line. Returns the bytes of its texts apart from the subject.
fn push<'a>(line: &mut ContentsLine<'a>, subject: &'a str, content: &'a Content, kind: Kind) -> usize {
    let subject = Cow::Borrowed(subject);
    match content {
        Content::Cell { aggregate, .. } => match aggregate {
            Aggregate::Sum(amount) => line.sums.push((subject, amount.0)),
            Aggregate::Mean { sum, count } => line.means.push((subject, sum.0, *count)),
            Aggregate::Extreme(amount) => line.extremes.push((subject, amount.0)),
            Aggregate::Last { at, value } => line.newest.push((subject, value.0, at.millis())),
            Aggregate::Sketch(sketch) => {
                let text = STANDARD.encode(sketch.as_bytes());
                let bytes = text.len();
                line.sketches.push((subject, text.into()));
                return bytes;
            }
        },
        Content::Value { value, at, .. } if let Kind::Capped { .. } = kind => {
            let Some(DayCount { day, person, count }) = DayCount::read(value.as_str(), *at) else { return 0 };
            line.counts.push((subject, person.into(), day.millis(), count));
            return person.len();
        }
        Content::Value { value, at, retracted } => {
            let list = if *retracted { &mut line.retracted } else { &mut line.values };
            list.push((subject, Cow::Borrowed(value.as_str()), at.millis()));
            return value.as_str().len();
        }
        Content::Dropped { at } => line.dropped.push((subject, at.millis())),
        Content::Counter { start, amount } => line.counters.push((subject, amount.0, start.millis())),
    }
    0
}

/// Divides moderated subjects into lines, which have no numbers yet.
pub(super) fn moderated_lines(moderated: &[(Subject, Moderation)]) -> Vec<ContentsLine<'_>> {
    lines_of_subjects(moderated, |line, subject, moderation| {
        line.moderated.push((subject, moderation.letters().into()));
        0
    })
}

/// Divides subjects with their attributes into lines, which have no numbers yet.
pub(super) fn described_lines(described: &[(Subject, Attributes)]) -> Vec<ContentsLine<'_>> {
    lines_of_subjects(described, |line, subject, attributes| {
        line.attributes.push((subject, ContentsAttributes::Written(attributes)));
        attributes.stored().len()
    })
}

/// Divides subjects into lines. `push` adds one to a line and returns the bytes that it takes beside the subject.
fn lines_of_subjects<'a, T>(
    subjects: &'a [(Subject, T)],
    push: impl Fn(&mut ContentsLine<'a>, Cow<'a, str>, &'a T) -> usize,
) -> Vec<ContentsLine<'a>> {
    let (mut lines, mut bytes) = (Vec::new(), FULL + 1);
    for (subject, what) in subjects {
        if bytes > FULL {
            lines.push(ContentsLine::default());
            bytes = 0;
        }
        let Some(line) = lines.last_mut() else { continue };
        line.by.extend(subject.key().map(Cow::Borrowed));
        bytes += BESIDE_TEXTS + subject.as_str().len() + push(line, subject.name().into(), what);
    }
    lines
}

/// Reads the moderated subjects of a line, which has no contents then.
pub(super) fn moderated(line: &ContentsLine<'_>, has_keys: bool) -> Result<Vec<(Subject, Moderation)>, String> {
    subjects_of_line("moderated subject", &line.by, &line.moderated, has_keys, |letters| {
        Moderation::of_letters(letters).ok_or_else(|| "the letters of a moderated subject are not valid".to_owned())
    })
}

/// Reads the attributes of subjects of a line, which has no contents then.
pub(super) fn described(line: &ContentsLine<'_>, has_keys: bool) -> Result<Vec<(Subject, AttributesChange)>, String> {
    subjects_of_line("subject with attributes", &line.by, &line.attributes, has_keys, |attributes| match attributes {
        ContentsAttributes::Received(raw) => AttributesChange::replacing(raw).map_err(|error| error.to_string()),
        ContentsAttributes::Written(attributes) => Ok(attributes.change()),
    })
}

/// Reads what a line has of subjects, each in the ranking of a key or not.
fn subjects_of_line<T, U>(
    thing: &str,
    by: &[Cow<'_, str>],
    subjects: &[(Cow<'_, str>, T)],
    has_keys: bool,
    read: impl Fn(&T) -> Result<U, String>,
) -> Result<Vec<(Subject, U)>, String> {
    if subjects.len() > MOST {
        return Err(format!("a line may have at most {MOST} of a {thing}"));
    }
    if subjects.is_empty() {
        return Ok(Vec::new());
    }
    let keys = keys(by, thing, subjects.len(), has_keys)?;
    let parsed = subjects.iter().enumerate();
    parsed.map(|(at, (subject, what))| Ok((named(subject)?.in_ranking(keys.get(at)), read(what)?))).collect()
}

/// Reads a line as a part of an import of this kind, whose subjects have keys or not.
pub(super) fn part(line: &ContentsLine<'_>, kind: Kind, has_keys: bool) -> Result<ImportPart, String> {
    let ContentsLine {
        n,
        prev,
        track,
        slot,
        by,
        sums,
        means,
        extremes,
        newest,
        sketches,
        values,
        retracted,
        counts,
        dropped,
        counters,
        moderated,
        attributes,
        events,
        ..
    } = line;
    if !(1..MAX_NUMBER).contains(n) || prev >= n {
        return Err(format!("'n' must be from 1 to {}, and 'prev' less", MAX_NUMBER - 1));
    }
    if !counters.is_empty() {
        return Err("'counters' cannot be merged".to_owned());
    }
    let mut contents = Vec::new();
    let cells = |has_such: bool, name: &str, is_empty: bool| match is_empty {
        true => Ok(Timestamp::EPOCH),
        false if !has_such => Err(format!("the metric has no '{name}'")),
        false => slot.ok_or_else(|| format!("'{name}' need a 'slot'")).and_then(time),
    };
    let start = cells(kind.is_sum(), "sums", sums.is_empty())?;
    for (subject, sum) in sums {
        contents.push((named(subject)?, Content::Cell { slot: start, aggregate: Aggregate::Sum(amount(*sum)?) }));
    }
    let start = cells(kind == Kind::Mean, "means", means.is_empty())?;
    for (subject, sum, count) in means {
        // A retraction whose measurement is elsewhere has a negative number of measurements.
        let aggregate = Aggregate::Mean { sum: amount(*sum)?, count: amount(*count)?.0 };
        contents.push((named(subject)?, Content::Cell { slot: start, aggregate }));
    }
    let start = cells(matches!(kind, Kind::Min | Kind::Max), "extremes", extremes.is_empty())?;
    for (subject, extreme) in extremes {
        let aggregate = Aggregate::Extreme(amount(*extreme)?);
        contents.push((named(subject)?, Content::Cell { slot: start, aggregate }));
    }
    let start = cells(kind == Kind::Last, "newest", newest.is_empty())?;
    for (subject, value, at) in newest {
        let aggregate = Aggregate::Last { at: time(*at)?, value: amount(*value)? };
        contents.push((named(subject)?, Content::Cell { slot: start, aggregate }));
    }
    let start = cells(kind == Kind::Sketch, "sketches", sketches.is_empty())?;
    for (subject, text) in sketches {
        let bytes = STANDARD.decode(text.as_bytes()).ok();
        let sketch = bytes.and_then(|bytes| Sketch::from_bytes(&bytes)).ok_or("a sketch is not valid")?;
        contents.push((named(subject)?, Content::Cell { slot: start, aggregate: Aggregate::Sketch(sketch) }));
    }
    if !(values.is_empty() && retracted.is_empty()) && kind != Kind::Distinct {
        return Err("the metric has no 'values' or 'retracted'".to_owned());
    }
    if !counts.is_empty() && !matches!(kind, Kind::Capped { .. }) {
        return Err("the board has no cap, and so no 'counts'".to_owned());
    }
    if !dropped.is_empty() && !kind.remembers_values() {
        return Err("the metric has no 'dropped'".to_owned());
    }
    for (list, retracted) in [(values, false), (retracted, true)] {
        for (subject, value, at) in list {
            let value = Counted::parse(value).map_err(|error| error.to_string())?;
            contents.push((named(subject)?, Content::Value { value, at: time(*at)?, retracted }));
        }
    }
    for (subject, person, day, count) in counts {
        let counter = DayCount::checked(time(*day)?, person, *count).map_err(|error| error.to_string())?;
        let counter = counter.ok_or_else(|| format!("the count {count} is out of range"))?;
        contents.push((named(subject)?, Content::Value { value: counter.text(), at: counter.at(), retracted: false }));
    }
    for (subject, at) in dropped {
        contents.push((named(subject)?, Content::Dropped { at: time(*at)? }));
    }
    if [contents.is_empty(), moderated.is_empty(), attributes.is_empty()].iter().filter(|is| !**is).count() > 1 {
        return Err("a line must have only one of contents, 'moderated' and 'attributes'".to_owned());
    }
    let keys = keys(by, "content", contents.len() + moderated.len() + attributes.len(), has_keys)?;
    for ((subject, _), key) in contents.iter_mut().zip(&keys) {
        *subject = subject.clone().in_ranking(Some(key));
    }
    if contents.len() > MOST {
        return Err(format!("a line may have at most {MOST} contents"));
    }
    if events.len() > MOST_EVENTS {
        return Err("a line has more 'events' than a window has slots".to_owned());
    }
    let events = events.iter().map(|(start, items)| match *items <= EXACT_MAX as u64 {
        true => Ok((time(*start)?, *items)),
        false => Err("a number of items is too large".to_owned()),
    });
    Ok(ImportPart {
        number: *n,
        previous: *prev,
        track: *track,
        contents,
        events: events.collect::<Result<_, String>>()?,
    })
}

/// Reads the keys of a line that has this number of a thing, each in the ranking of a key or not.
fn keys(by: &[Cow<'_, str>], thing: &str, number: usize, has_keys: bool) -> Result<Vec<RankingKey>, String> {
    if by.len() != if has_keys { number } else { 0 } {
        return Err(match has_keys {
            true => format!("'by' must have a key for each {thing} of the line"),
            false => "the metric has no BY, so 'by' must be absent".to_owned(),
        });
    }
    by.iter().map(|key| RankingKey::parse(key).map_err(|error| error.to_string())).collect()
}

fn named(subject: &str) -> Result<Subject, String> {
    Subject::parse(subject).map_err(|error| error.to_string())
}

fn amount(units: i64) -> Result<Amount, String> {
    match (-EXACT_MAX..=EXACT_MAX).contains(&units) {
        true => Ok(Amount(units)),
        false => Err(format!("the amount {units} is out of range")),
    }
}

fn time(millis: i64) -> Result<Timestamp, String> {
    let time = Timestamp::from_millis(millis);
    if time.millis() == millis { Ok(time) } else { Err(format!("{millis} is not a time")) }
}
