//! Seasons: a board over all time whose totals begin again with each period.
//!
//! A period is an [edition](Edition) of its own, which counts the items whose time is in it. While a period is over and
//! its grace is not, it stays beside the one that follows, and late items count in it. Then it is sealed: nothing is
//! written to it any more, and it is read for as long as it is in the archive.
//!
//! The stores make the [steps](Board::season_step) themselves, as a part of moving their clock forward: whoever calls a
//! board after the end of its period finds the next one.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{NaiveDate, TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use super::text::text;
use super::{
    ArchiveTop, Board, BoardEdition, Calendar, Definition, DefinitionError, Edition, EditionRole, EditionsChange,
    OtherEdition, SlotError, Span, SpanError, Starts, Timestamp, Unit, form,
};

/// The shortest period.
const HOUR: i64 = 3_600_000;
/// The longest period: ten years.
const LONGEST: i64 = 3_660 * DAY;
/// The time for which ids are remembered unless `dedupe` says another one.
const DAY: i64 = 86_400_000;

/// The length of the periods of a season.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodLength {
    /// Each ends where the next slot of this length begins.
    Span(Span),
    /// Each ends when somebody closes it.
    Manual,
}

/// The reason why a text is not the length of a period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; or 'manual', for periods that are closed by hand")]
pub struct PeriodLengthError(SpanError);

/// The names of the period that has not ended, and of the one before it.
const CURRENT: &str = "current";
const PREVIOUS: &str = "previous";

/// The text of [`PeriodLength::Manual`].
const MANUAL: &str = "manual";

impl FromStr for PeriodLength {
    type Err = PeriodLengthError;

    fn from_str(text: &str) -> Result<Self, PeriodLengthError> {
        match text {
            MANUAL => Ok(PeriodLength::Manual),
            text => text.parse().map(PeriodLength::Span).map_err(PeriodLengthError),
        }
    }
}

impl fmt::Display for PeriodLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeriodLength::Span(span) => span.fmt(f),
            PeriodLength::Manual => f.write_str(MANUAL),
        }
    }
}

/// The totals of a board that begin again with each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(from = "SeasonForm")]
pub struct Season {
    /// Length of a period: hours that divide a day, a number of whole days, `1w`, a number of months that divides a
    /// year, such as `1mo` and `3mo`, or `1y`; or `manual`: each ends with `POST /v1/boards/{board}/close`.
    #[serde(serialize_with = "form::text")]
    #[schema(value_type = String, example = "1mo", pattern = "^(manual|[1-9][0-9]{0,9}(h|d|w|mo|y))$")]
    pub every: PeriodLength,
    /// A day on which a period begins, for periods of a number of days. The board's `starts` says the same for periods of
    /// every length; it has one of the two. Default: 1970-01-01.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = Date, example = "2026-11-02", required = false)]
    pub start: Option<NaiveDate>,
    /// Time after the end of a period in which late items still count in it. At most half a period, and at most the
    /// time for which ids are remembered. Default: `1h`, or `30m` if `every` is `1h`.
    #[schema(value_type = String, example = "1h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$", required = false)]
    pub grace: Span,
    /// Number of ended periods that are kept. Default: 12.
    #[schema(minimum = 0, maximum = 100, required = false)]
    pub archive: u32,
    /// Number of lines that are kept of the ranking of an ended period, the best ones, or `all`. Other subjects are not
    /// known in it any more. Default: `all`.
    #[serde(skip_serializing_if = "form::is_default")]
    #[schema(schema_with = ArchiveTop::schema, required = false)]
    pub archive_top: ArchiveTop,
}

/// A season as it is given, without its defaults.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a season with 'every', and optionally 'start', 'grace', 'archive' and 'archive_top'"
)]
struct SeasonForm {
    #[serde(deserialize_with = "form::parsed")]
    every: PeriodLength,
    #[serde(default, deserialize_with = "form::date")]
    start: Option<NaiveDate>,
    #[serde(default)]
    grace: Option<Span>,
    #[serde(default = "form::twelve", deserialize_with = "form::archive")]
    archive: u32,
    #[serde(default)]
    archive_top: ArchiveTop,
}

impl From<SeasonForm> for Season {
    fn from(SeasonForm { every, start, grace, archive, archive_top }: SeasonForm) -> Self {
        let half_an_hour = Span::new(30, Unit::Minute).unwrap_or(Span::HOUR);
        let usual = if every == PeriodLength::Span(Span::HOUR) { half_an_hour } else { Span::HOUR };
        Self { every, start, grace: grace.unwrap_or(usual), archive, archive_top }
    }
}

/// The time of a period: `start <= t < end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub start: Timestamp,
    /// [`Timestamp::MAX`] until a period that is closed by hand is closed.
    pub end: Timestamp,
    /// 1 for the first period of the board.
    pub number: u64,
}

/// The name of a period, in the time zone of its board: `2026-11` of a month of the calendar, `2026` of a year of the
/// calendar, otherwise the day with which it begins, with the hour if it is shorter than a day: `2026-11-02`,
/// `2026-11-02T06`. Of one that is closed by hand it is its number.
///
/// Names of one board are in the order of its periods.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct PeriodName(String);

impl PeriodName {
    /// Reads a name that a caller gave. Any text is one; whether a board has such a period is another question.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns whether it names a period by its place before now, so that which one it is depends on the time.
    pub fn is_relative(&self) -> bool {
        matches!(self.as_str(), CURRENT | PREVIOUS)
    }

    /// Returns whether it has the form of this name, so that it may be that of a period of the same board.
    pub fn is_like(&self, other: &Self) -> bool {
        let is_number = |name: &Self| !name.0.is_empty() && name.0.bytes().all(|byte| byte.is_ascii_digit());
        let form = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
        match is_number(other) {
            true => is_number(self),
            false => self.0.bytes().map(form).eq(other.0.bytes().map(form)),
        }
    }
}

impl Ord for PeriodName {
    fn cmp(&self, other: &Self) -> Ordering {
        // Only numbers differ in length.
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for PeriodName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

text! { PeriodName: as_str, display; }

impl Period {
    /// Returns whether the instant is in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

impl Season {
    /// Returns the periods as the slots of a calendar.
    pub fn calendar(&self, definition: &Definition) -> Result<Calendar, SlotError> {
        let starts = self.start.map(Starts::from).or(definition.starts);
        match self.every {
            PeriodLength::Span(every) => Calendar::with_start(every, definition.timezone, starts),
            PeriodLength::Manual => Ok(Calendar::eternal()),
        }
    }

    /// Checks the season of a definition, and what it does not allow beside it.
    pub(super) fn check(&self, definition: &Definition) -> Result<(), DefinitionError> {
        let misplaced = |key, why| Err(DefinitionError::Misplaced { key, why });
        if definition.metric.window != super::WindowLength::All {
            return misplaced("season", "is allowed only with the window all: a period counts all its items");
        }
        if !definition.windows.is_empty() {
            return misplaced("windows", "is not allowed together with 'season'");
        }
        if definition.keep.is_some() {
            return misplaced("keep", "is not allowed together with 'season'");
        }
        self.calendar(definition).map_err(DefinitionError::Season)?;
        let (every, is_of_days) = match self.every {
            PeriodLength::Span(every) => (every.approximate_millis(), every.unit() == Unit::Day),
            PeriodLength::Manual => (i64::MAX, false),
        };
        if self.every != PeriodLength::Manual && !(HOUR..=LONGEST).contains(&every) {
            return misplaced("season", "must have an 'every' from 1h to 10y");
        }
        if self.every == PeriodLength::Manual && definition.shards.is_some() {
            return misplaced(
                "shards",
                "is not allowed with periods that are closed by hand, which must end at one time",
            );
        }
        if self.start.is_some() && !is_of_days {
            return misplaced(
                "season",
                "must have a 'start' only if 'every' is a number of days, such as 14d: 'starts', beside 'season', says with \
                 which day other periods begin",
            );
        }
        if self.archive_top != ArchiveTop::All && !definition.packs_periods() {
            return misplaced(
                "season",
                "must have no 'archive_top' on a board with BY or without a ranking: of these, all of an ended period is kept",
            );
        }
        let grace = self.grace.approximate_millis();
        if grace > every / 2 {
            return misplaced("season", "must have a 'grace' of at most half of 'every'");
        }
        if grace > definition.dedupe.map_or(DAY, Span::approximate_millis) {
            return misplaced(
                "season",
                "must have a 'grace' for which ids are remembered: at most 24h, or the time that 'dedupe' says",
            );
        }
        Ok(())
    }

    /// Returns the name of a period. `None` if it is not of a season of this definition.
    fn name_of(&self, definition: &Definition, period: Period) -> Option<PeriodName> {
        let PeriodLength::Span(every) = self.every else { return Some(PeriodName(period.number.to_string())) };
        if !every.is_a_day_or_longer() {
            let local = definition.timezone.from_utc_datetime(&period.start.to_utc().naive_utc());
            return Some(PeriodName(local.format("%Y-%m-%dT%H").to_string()));
        }
        let calendar = self.calendar(definition).ok()?;
        let is_moved = || Calendar::new(every, definition.timezone).as_ref() != Ok(&calendar);
        let form = match every.months() {
            Some(1) if !is_moved() => "%Y-%m",
            Some(12) if !is_moved() => "%Y",
            _ => "%Y-%m-%d",
        };
        Some(PeriodName(calendar.first_day(period.start).format(form).to_string()))
    }

    /// The largest number of sealed periods that are kept.
    pub(super) const MAX_ARCHIVE: u32 = 100;
}

/// The reason why a period cannot be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    #[error("it has no season")]
    NoSeason,
    #[error("its periods end by the calendar: only those of a season with 'every' manual are closed by hand")]
    ByCalendar,
    #[error("the period before still takes late items, until {0}")]
    InGrace(Timestamp),
    #[error("the period has just begun")]
    JustBegun,
}

impl Edition {
    /// Returns the name of its period, if it is one.
    pub fn period_name(&self) -> Option<PeriodName> {
        let definition = self.definition();
        definition.season?.name_of(definition, self.period()?)
    }
}

impl BoardEdition {
    /// Returns whether the edition is a period that is sealed: nothing is written to it any more.
    pub fn is_final(&self) -> bool {
        self.number() >= self.board().editions().len()
    }
}

impl Board {
    /// Returns the season of the board, if it has one.
    pub fn season(&self) -> Option<Season> {
        self.definition().season
    }

    /// Returns the period that contains `at`, after the one before it, if there is one. `None` if the board has no
    /// season.
    pub(super) fn period_at(&self, at: Timestamp, before: Option<Period>) -> Option<Period> {
        let calendar = self.season()?.calendar(self.definition()).ok()?;
        let (from, number) = before.map_or((Timestamp::EPOCH, 1), |before| (before.end, before.number + 1));
        let at = at.max(from);
        Some(Period { start: calendar.slot_of(at).max(from), end: calendar.next(at), number })
    }

    /// Returns the same board, whose period ends at `now` if the change closes it and it would end earlier: by the clock of
    /// the board, all items that were counted are of times before.
    #[must_use]
    pub fn closed_at(self, change: EditionsChange, now: Timestamp) -> Self {
        let period = self.edition().period().filter(|period| change == EditionsChange::Close && period.end < now);
        let Some(period) = period else { return self };
        let closed = self.edition().clone().in_period(Some(Period { end: now, ..period }));
        let editions = Edition::joined(std::iter::once(closed).chain(self.archive().iter().cloned()));
        self.with_editions(editions, None)
    }

    /// Returns the board whose current period ends at `now`. Returns why it cannot be closed.
    pub fn closed(&self, now: Timestamp) -> Result<Board, CloseError> {
        let Some(period) = self.edition().period() else {
            return Err(CloseError::NoSeason);
        };
        if !self.is_manual() {
            return Err(CloseError::ByCalendar);
        }
        if let Some(until) = self.other().and_then(|other| other.until) {
            return Err(CloseError::InGrace(until));
        }
        if self.other().is_some() || now <= period.start {
            return Err(CloseError::JustBegun);
        }
        let closed = self.edition().clone().in_period(Some(Period { end: now, ..period }));
        Ok(self.changed(std::iter::once(closed).chain(self.archive().iter().cloned()), None))
    }

    /// Returns the period of this name with the board. `current` and `previous` name the one that has not ended, and the
    /// one before it.
    pub fn period_named(self: &Arc<Self>, name: &PeriodName) -> Option<BoardEdition> {
        match name.as_str() {
            CURRENT => self.each_period().next(),
            PREVIOUS => self.each_period().nth(1),
            _ => self.each_period().find(|edition| edition.period_name().as_ref() == Some(name)),
        }
    }

    /// Returns whether its periods are closed by hand.
    pub fn is_manual(&self) -> bool {
        self.season().is_some_and(|season| season.every == PeriodLength::Manual)
    }

    /// Returns the time at which the next [step](Self::season_step) is due. `None` if the board has no season.
    pub fn season_step_at(&self) -> Option<Timestamp> {
        let period = self.edition().period()?;
        Some(match self.other() {
            None => period.end,
            Some(OtherEdition { role: EditionRole::Next, .. }) => Timestamp::EPOCH,
            Some(OtherEdition { role: EditionRole::Previous, until }) => until.unwrap_or(period.end),
        })
    }

    /// Returns the board after the next step of its season, if one is due at `now`. At the end of a period the next one
    /// is added, and becomes the current one. When the grace is over, the one that has ended is sealed, and the oldest
    /// of the archive leaves it if there are too many.
    ///
    /// Periods whose grace was over before anything could be written to them are left out.
    #[must_use]
    pub fn season_step(&self, now: Timestamp) -> Option<Board> {
        let (season, period) = (self.season()?, self.edition().period()?);
        if now < self.season_step_at()? {
            return None;
        }
        let grace = season.grace.approximate_millis();
        let current = self.edition().clone();
        let archive = self.archive().iter().cloned();
        let Some((other, edition)) = self.other().zip(self.editions().get(1).cloned()) else {
            let next = self.period_at(now.plus_millis(-grace), Some(period))?;
            let id = current.id().numbered(current.tracks().len());
            // The definition was checked when the board was created.
            let edition = Edition::new(id, current.definition().clone()).ok()?.in_period(Some(next));
            let other = OtherEdition { role: EditionRole::Next, until: None };
            return Some(self.changed([current, edition].into_iter().chain(archive), Some(other)));
        };
        match other.role {
            EditionRole::Next => {
                let until = Some(period.end.plus_millis(grace));
                let other = OtherEdition { role: EditionRole::Previous, until };
                Some(self.changed([edition, current].into_iter().chain(archive), Some(other)))
            }
            EditionRole::Previous => {
                let kept = std::iter::once(edition).chain(archive).take(season.archive as usize);
                Some(self.changed(std::iter::once(current).chain(kept), None))
            }
        }
    }
}

#[cfg(test)]
mod tests;
