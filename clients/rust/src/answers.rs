//! The answers of the service.
//!
//! They have the members that most callers need, and ignore what they do not know, so that a newer service can be
//! asked. [`Request::text`](crate::Request::text) returns an answer whole.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Decimal;

/// Reads a member that may be null, if it is there.
pub(crate) fn if_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What orders subjects with the same score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Tie {
    /// The second key, on a board whose definition has `tie_break`.
    Key(i64),
    /// The time, on a board whose definition has `ties`.
    Time(DateTime<Utc>),
}

impl fmt::Display for Tie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tie::Key(key) => key.fmt(f),
            Tie::Time(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        }
    }
}

/// The attributes of a subject, by name.
pub type Attributes = BTreeMap<String, Json>;

/// A value as JSON, with the digits of its numbers as they were sent.
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the value, in which a number may be rounded.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

/// Shows a string as what it stands for, and any other value as JSON.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match serde_json::from_str::<String>(self.0.get()) {
            Ok(text) => f.write_str(&text),
            Err(_) => f.write_str(self.0.get()),
        }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// Answers: structs of public members that may get more of them.
macro_rules! answers {
    ($($(#[$about:meta])* $name:ident { $($(#[$of_member:meta])* $member:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$of_member])* pub $member: $kind,)*
        }
    )*};
}

answers! {
    /// The time that an answer covers: from `from` on, up to but without `to`.
    Window {
        /// The beginning of the first slot. None over all time.
        from: Option<DateTime<Utc>>,
        /// The end of the last slot, which lies ahead. None over all time.
        to: Option<DateTime<Utc>>,
        /// The number of slots.
        slots: u64,
    }

    /// A line of a ranking.
    Line {
        /// The rank, from 1. Lines that tie have the same, unless ranks are ordinal.
        rank: u64,
        /// The subject. None if it was removed from a final period, in which its line keeps its place, so that the
        /// ranks of the others stay.
        subject: Option<String>,
        /// The score. None if it is not known at present.
        score: Option<Decimal>,
        /// What orders the line among equal scores, on a board whose definition has `tie_break` or `ties`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tie: Option<Tie>,
        /// The name of the best [tier](crate::Board::tiers) that the subject reaches. None if it reaches none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<String>,
        /// The rank just before the earlier time `from_as_of`, on a board whose definition has `movement`. None if the ranks then
        /// are not known, and `Some(None)` if the subject was not among the first 1,000.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_present")]
        from: Option<Option<u64>>,
        /// The attributes that are asked for with `attributes`, by name. None if none are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<Attributes>,
    }

    /// A page of a ranking, or what a live ranking is now.
    Ranking {
        /// The board.
        board: String,
        /// The key, on a board whose metric has `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The period that was read, on a board with a season.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<Period>,
        /// The time that is counted.
        window: Window,
        /// The time of the answer, by the clock of the service.
        as_of: DateTime<Utc>,
        /// The number of slots that have left the window, and whose subjects are still being subtracted: scores are
        /// exact at 0.
        retiring: u64,
        /// The time whose ranks `from` of the lines shows, on a board whose definition has `movement`. None if the ranks then
        /// are not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_as_of: Option<DateTime<Utc>>,
        /// The number of ranked subjects. None while it is not known.
        total: Option<u64>,
        /// The metric, such as `COUNT(24h, like, post_id)`.
        metric: String,
        /// The lines.
        items: Vec<Line>,
        /// The cursor of the next page. None on the last one.
        #[serde(default)]
        next: Option<String>,
        /// The cursor of the page before. None on the first one.
        #[serde(default)]
        prev: Option<String>,
    }

    /// A slot of a subject.
    Slot {
        /// The beginning of the slot.
        from: DateTime<Utc>,
        /// The end of the slot.
        to: DateTime<Utc>,
        /// What was counted in it, on boards of COUNT.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<Decimal>,
        /// The sum, on boards of SUM and AVG.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sum: Option<Decimal>,
        /// The value, on boards of MIN, MAX and LAST.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Decimal>,
    }

    /// Where a subject stands.
    Standing {
        /// The board.
        board: String,
        /// The key, on a board whose metric has `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The period that was read, on a board with a season.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<Period>,
        /// The time that is counted.
        window: Window,
        /// The time of the answer.
        as_of: DateTime<Utc>,
        /// See [`Ranking::retiring`].
        retiring: u64,
        /// The number of ranked subjects.
        total: Option<u64>,
        /// The subject.
        subject: String,
        /// The score.
        score: Option<Decimal>,
        /// The rank, from 1. None if the subject is not ranked.
        rank: Option<u64>,
        /// Whether the subject is hidden, so that no ranking has it. False too if it is shadowed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hidden: bool,
        /// How many of all ranked subjects have no better score, in percent.
        percentile: Option<f64>,
        /// What orders the line among equal scores, on a board whose definition has `tie_break` or `ties`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tie: Option<Tie>,
        /// The name of the best [tier](crate::Board::tiers) that the subject reaches. None if it reaches none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<String>,
        /// The rank just before the earlier time `from_as_of`, on a board whose definition has `movement`. None if the ranks then
        /// are not known, and `Some(None)` if the subject was not among the first 1,000.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_present")]
        from: Option<Option<u64>>,
        /// The attributes that are asked for with `attributes`, by name. None if none are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<Attributes>,
        /// The slots in which something was counted.
        #[serde(default)]
        slots: Vec<Slot>,
    }

    /// The lines around a subject.
    Neighbors {
        /// The board.
        board: String,
        /// The period that was read, on a board with a season.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<Period>,
        /// The time that is counted.
        window: Window,
        /// The time of the answer.
        as_of: DateTime<Utc>,
        /// The number of ranked subjects.
        total: Option<u64>,
        /// The subject.
        subject: String,
        /// The lines, with that of the subject.
        items: Vec<Line>,
    }

    /// A line of a [look-up](crate::Board::lookup).
    LookedLine {
        /// The rank in the ranking. None if the subject is not ranked.
        rank: Option<u64>,
        /// The rank among the subjects of the request.
        rank_among: Option<u64>,
        /// The subject.
        subject: String,
        /// The score.
        score: Option<Decimal>,
        /// How many of all ranked subjects have no better score, in percent.
        percentile: Option<f64>,
        /// What orders the line among equal scores, on a board whose definition has `tie_break` or `ties`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tie: Option<Tie>,
        /// The name of the best [tier](crate::Board::tiers) that the subject reaches. None if it reaches none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<String>,
        /// The rank just before the earlier time `from_as_of`, on a board whose definition has `movement`. None if the ranks then
        /// are not known, and `Some(None)` if the subject was not among the first 1,000.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_present")]
        from: Option<Option<u64>>,
        /// The attributes that are asked for with `attributes`, by name. None if none are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<Attributes>,
    }

    /// Ranks and scores of some subjects, the best first.
    Looked {
        /// The board.
        board: String,
        /// The period that was read, on a board with a season.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<Period>,
        /// The time that is counted.
        window: Window,
        /// The time of the answer.
        as_of: DateTime<Utc>,
        /// See [`Ranking::retiring`].
        #[serde(default)]
        retiring: u64,
        /// The number of ranked subjects.
        total: Option<u64>,
        /// The lines. Subjects that are not ranked are at the end.
        items: Vec<LookedLine>,
    }

    /// How the scores of a ranking are distributed.
    Distribution {
        /// The board.
        board: String,
        /// The key, on a board whose metric has `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The period that was read, on a board with a season.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<Period>,
        /// The time that is counted.
        window: Window,
        /// The time of the answer.
        as_of: DateTime<Utc>,
        /// See [`Ranking::retiring`].
        retiring: u64,
        /// The number of ranked subjects. None while it is not known.
        total: Option<u64>,
        /// The metric.
        metric: String,
        /// The scores at the percentiles of the request, in their order.
        percentiles: Vec<ScoreAtPercentile>,
        /// The ranges between the scores of the request, the lowest first: one more than there are scores, or none.
        ranges: Vec<ScoreRange>,
    }

    /// The score at a percentile.
    ScoreAtPercentile {
        /// The percentile, from 0 to 100.
        percentile: f64,
        /// The worst score of the subjects that have at least this percentile. None if no subject is ranked.
        score: Option<Decimal>,
    }

    /// The subjects with scores in a range.
    ScoreRange {
        /// The lowest score of the range. None if it has none.
        from: Option<Decimal>,
        /// The score at which the range ends, which is not part of it. None if it has no end.
        to: Option<Decimal>,
        /// The number of ranked subjects.
        subjects: u64,
    }

    /// A period of a board with a season: from `start` on, up to but without `end`.
    Period {
        /// The name, such as `2026-11`.
        name: String,
        /// The beginning.
        start: DateTime<Utc>,
        /// The end. None of the current period where periods are closed by hand.
        end: Option<DateTime<Utc>>,
        /// Whether nothing counts in it any more.
        #[serde(rename = "final")]
        is_final: bool,
    }

    /// The periods of a board.
    Periods {
        /// The board.
        board: String,
        /// The periods, the oldest first.
        items: Vec<PeriodWithWinners>,
    }

    /// The periods before and after one was closed.
    ClosedPeriod {
        /// The board.
        board: String,
        /// The period that was closed.
        closed: Period,
        /// The period that is current now.
        current: Period,
    }

    /// A period, with the first lines of its ranking.
    PeriodWithWinners {
        /// The name, such as `2026-11`.
        name: String,
        /// The beginning.
        start: DateTime<Utc>,
        /// The end. None of the current period where periods are closed by hand.
        end: Option<DateTime<Utc>>,
        /// Whether nothing counts in it any more.
        #[serde(rename = "final")]
        is_final: bool,
        /// The number of ranked subjects. None on a board without a ranking, and on one with `BY` where no key is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
        /// The lines. Empty where `total` is None.
        #[serde(default)]
        winners: Vec<Line>,
    }

    /// The tiers of a board.
    Tiers {
        /// The board.
        board: String,
        /// The tiers, the best first. A subject is in the first one that it reaches.
        tiers: Vec<Tier>,
    }

    /// A part of a ranking with a name. It has one bound: `rank`, `top` or `score`.
    Tier {
        /// The name.
        name: String,
        /// The last rank of the tier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rank: Option<u64>,
        /// The share of the ranked subjects that the tier and those before it have at most, in percent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top: Option<f64>,
        /// The worst score of the tier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        score: Option<Decimal>,
    }

    /// What a subject has in a window.
    WindowValue {
        /// The board.
        board: String,
        /// The subject.
        subject: String,
        /// The time that is counted.
        window: Window,
        /// The time of the answer.
        as_of: DateTime<Utc>,
        /// The value.
        value: Option<Decimal>,
    }

    /// Keys of the rankings of a board whose metric has `BY`.
    KeyPage {
        /// The board.
        board: String,
        /// The keys, by name.
        items: Vec<KeyLine>,
        /// The cursor of the next page. None on the last one.
        next: Option<String>,
    }

    /// A key.
    KeyLine {
        /// The key.
        by: String,
    }

    /// The first lines of the rankings of some keys.
    Rankings {
        /// The board.
        board: String,
        /// The metric.
        metric: String,
        /// The rankings, in the order of the keys in the request.
        rankings: Vec<RankingOfKey>,
    }

    /// The first lines of the ranking of a key.
    RankingOfKey {
        /// The key.
        by: String,
        /// The number of ranked subjects.
        total: Option<u64>,
        /// The lines.
        items: Vec<Line>,
    }

    /// What a board is.
    Defined {
        /// The name.
        board: String,
        /// The metric.
        metric: String,
        /// The length of a slot. None over all time.
        slot: Option<String>,
        /// The time zone in which slots of days and longer begin.
        timezone: String,
        /// The further windows with their slots, such as `7d/6h`.
        #[serde(default)]
        windows: Vec<String>,
        /// The number of decimals of its scores.
        decimals: u32,
        /// `desc` or `asc`: whether the largest or the smallest score is the best.
        order: String,
        /// Whether it has a ranking, or only counts.
        ranked: bool,
        /// The current period, on a board with a season.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<Period>,
        /// All other members of the definition.
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
    }

    /// All boards.
    Boards {
        /// The boards, by name.
        items: Vec<Defined>,
    }

    /// What a board is and holds.
    Status {
        /// The name.
        board: String,
        /// The metric.
        metric: String,
        /// The length of a slot. None over all time.
        slot: Option<String>,
        /// The further windows with their slots, such as `7d/6h`.
        #[serde(default)]
        windows: Vec<String>,
        /// The current period, on a board with a season.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<Period>,
        /// The board that keeps the attributes of the subjects, if it is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<String>,
        /// The time that is counted.
        window: Window,
        /// The time of the answer.
        as_of: DateTime<Utc>,
        /// See [`Ranking::retiring`].
        retiring: u64,
        /// The number of ranked subjects. None while it is not known, and on a board with a ranking for each key.
        #[serde(default)]
        total: Option<u64>,
    }

    /// What defining a board would do.
    Preview {
        /// The name.
        board: String,
        /// The metric, as the service writes it.
        metric: String,
        /// The length of a slot. None over all time.
        slot: Option<String>,
        /// Whether there is such a board.
        exists: bool,
        /// How the board that exists differs. None if it does not.
        conflict: Option<Conflict>,
        /// What the service has to say about it.
        #[serde(default)]
        notes: Vec<String>,
        /// What a subject takes in the store.
        bytes_per_subject: BytesPerSubject,
        /// All other members.
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
    }

    /// How a definition differs from that of the board.
    Conflict {
        /// The members that differ.
        keys: Vec<String>,
        /// Members of the board's definition.
        existing: BTreeMap<String, Value>,
    }

    /// The bytes that a subject takes.
    BytesPerSubject {
        /// If it is counted in one slot.
        one_slot: u64,
        /// If it is counted in every slot.
        all_slots: u64,
    }

    /// What a rollover did.
    Rollover {
        /// The board.
        board: String,
        /// The beginning of the slot that is counted now.
        head: Option<DateTime<Utc>>,
        /// The beginning of the oldest slot of the window.
        floor: Option<DateTime<Utc>>,
        /// The number of slots by which the window has moved.
        slots_advanced: u64,
        /// The number of slots that were subtracted.
        slots_retired: u64,
        /// The number of subjects whose score has changed.
        subjects_touched: u64,
        /// The milliseconds that it took.
        took_ms: u64,
    }

    /// What an audit found.
    Audit {
        /// The board.
        board: String,
        /// The number of subjects whose score was compared with its slots.
        subjects_checked: u64,
        /// How many differed.
        differences: u64,
        /// The largest difference.
        worst: Option<Decimal>,
        /// Some of those that differed.
        examples: Vec<Difference>,
        /// How many were corrected.
        repaired: u64,
        /// The number of slots that are missing in the store.
        missing_slots: u64,
        /// The damaged sheets of packed periods, and what is wrong with each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        damaged_sheets: Vec<String>,
        /// The milliseconds that it took.
        took_ms: u64,
    }

    /// A score that is not what its slots say.
    Difference {
        /// The subject.
        subject: String,
        /// The key, on a board whose metric has `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The window, on a board with several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<String>,
        /// The score in the ranking.
        score: Option<Decimal>,
        /// The score by the slots.
        slots: Option<Decimal>,
    }

    /// A subject that was removed.
    Removed {
        /// The board.
        board: String,
        /// The subject.
        subject: String,
        /// The score that it had.
        score: Option<Decimal>,
        /// The number of slots in which it was counted.
        live_slots: u64,
    }

    /// Whether a subject is hidden.
    Hiding {
        /// The board.
        board: String,
        /// The key, on a board whose metric has `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The subject.
        subject: String,
        /// Whether it is in no ranking.
        hidden: bool,
        /// Whether its own standing has a rank all the same.
        shadow: bool,
    }

    /// Whether a subject is frozen.
    Freezing {
        /// The board.
        board: String,
        /// The key, on a board whose metric has `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The subject.
        subject: String,
        /// Whether nothing counts for it.
        frozen: bool,
    }

    /// What became of several subjects to hide, to freeze or to describe.
    Moderations {
        /// The number of subjects that are as the request wants them.
        accepted: u64,
        /// The subjects that were not, and why.
        rejected: Vec<Rejection>,
    }

    /// A page of hidden or frozen subjects.
    ModeratedPage {
        /// The board.
        board: String,
        /// The number of all of them.
        total: u64,
        /// The subjects, by key and name.
        items: Vec<ModeratedSubject>,
        /// The cursor of the next page. None on the last one.
        next: Option<String>,
    }

    /// A hidden or frozen subject.
    ModeratedSubject {
        /// The key, on a board whose metric has `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The subject.
        subject: String,
        /// Whether it is in no ranking.
        hidden: bool,
        /// Whether its own standing has a rank all the same.
        shadow: bool,
        /// Whether nothing counts for it.
        frozen: bool,
    }

    /// A subject with its attributes.
    Described {
        /// The board that was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
        /// The key, if the board that keeps them has a metric with `BY`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The subject.
        subject: String,
        /// The attributes, by name. None for a key that may not see them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<Attributes>,
    }

    /// A page of the subjects that have attributes.
    DescribedPage {
        /// The board.
        board: String,
        /// The number of all of them.
        total: u64,
        /// The subjects, by key and name.
        items: Vec<Described>,
        /// The cursor of the next page. None on the last one.
        next: Option<String>,
    }

    /// What a removal of several subjects, or from several rankings, did.
    Removals {
        /// The board.
        board: String,
        /// The number of subjects that were removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subjects: Option<u64>,
        /// The number of keys in whose rankings the subject was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys: Option<u64>,
        /// The number of values that were found; each counts once for each subject that had it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        values: Option<u64>,
        /// The number of those that stay, because they are in final periods.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        final_periods: Option<u64>,
        /// Whether an edition of the board counts approximately, so that what it has counted of a value stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approximate: Option<bool>,
    }

    /// What became of items.
    Added {
        /// The number of items that were counted; of events, those that at least one board counted.
        accepted: u64,
        /// The number of items that had been counted before.
        duplicates: u64,
        /// The items that are not counted.
        rejected: Vec<Rejection>,
        /// The items that are counted, and whose attributes were not set.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes_rejected: Vec<Rejection>,
        /// The types of events that no board counts, with the number of their events.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        unknown_types: BTreeMap<String, u64>,
    }

    /// An item that is not counted.
    Rejection {
        /// Its index in the request.
        #[serde(default)]
        index: usize,
        /// Of an event, the board that does not count it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
        /// Why, such as `too_late`.
        code: String,
        /// Why, for people.
        detail: String,
    }

    /// The verdicts of rules.
    Evaluations {
        /// Whether any of them holds.
        hit: bool,
        /// One for each rule.
        rules: Vec<Verdict>,
    }

    /// Whether a rule holds.
    Verdict {
        /// The rule.
        rule: String,
        /// Whether it holds.
        hit: bool,
        /// The comparisons of the rule with their values.
        sides: Vec<Value>,
    }

    /// Answers to several questions, in their order.
    Answers {
        /// The answers; one with `error` for a question that cannot be answered.
        answers: Vec<Value>,
    }
}

impl Ranking {
    /// Returns whether the scores are exact now: nothing that has left the window is still in them.
    pub fn is_exact(&self) -> bool {
        self.retiring == 0
    }
}

impl Tier {
    /// Returns the tier of the subjects with a rank of at most this.
    pub fn rank(name: &str, rank: u64) -> Self {
        Self { rank: Some(rank), ..Self::unbounded(name) }
    }

    /// Returns the tier of the best subjects, of which there are at most this many percent. The service takes up to three
    /// digits after the point.
    pub fn top(name: &str, percent: f64) -> Self {
        Self { top: Some(percent), ..Self::unbounded(name) }
    }

    /// Returns the tier of the subjects with this score or a better one.
    pub fn score(name: &str, score: impl Into<Decimal>) -> Self {
        Self { score: Some(score.into()), ..Self::unbounded(name) }
    }

    fn unbounded(name: &str) -> Self {
        Self { name: name.to_owned(), rank: None, top: None, score: None }
    }
}
