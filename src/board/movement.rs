//! Movement: the ranks that subjects had at an earlier boundary.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Calendar, Definition, DefinitionError, Mode, Ranks, Span, Subject, Timestamp, WindowLength};

/// The instants just before which lines show their ranks beside the present ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Movement {
    /// The beginning of each hour.
    #[serde(rename = "1h")]
    Hour,
    /// The beginning of each day, in the time zone of the board, at the hour of its [`starts`](Definition::starts).
    #[serde(rename = "1d")]
    Day,
    /// The end of the period before, on a board with a season.
    #[serde(rename = "period")]
    Period,
}

/// The instants of the time zone at which it is checked whether hours and days begin with a slot: the first days of a
/// winter and of a summer, in milliseconds. Rules of the past do not change, so what was accepted stays accepted.
const CHECKED_DAYS: [i64; 4] = [1_704_067_200_000, 1_719_792_000_000, 1_577_836_800_000, 1_593_561_600_000];

impl Movement {
    /// Returns the length of time between two boundaries, unless they are the ends of periods.
    fn span(self) -> Option<Span> {
        match self {
            Movement::Hour => Some(Span::HOUR),
            Movement::Day => Some(Span::DAY),
            Movement::Period => None,
        }
    }
}

impl Definition {
    /// Checks whether the ranking can have ranks of an earlier time. Further windows whose slots do not begin with each
    /// boundary have none, so this is checked for the whole definition only.
    pub(super) fn check_movement(&self) -> Result<(), DefinitionError> {
        let Some(movement) = self.movement else { return Ok(()) };
        let misplaced = |why| Err(DefinitionError::Misplaced { key: "movement", why });
        if !self.ranked || self.mode == Mode::FromFirst {
            return misplaced("is allowed only with ranked = true: other boards have no ranks");
        }
        if self.metric.by.is_some() {
            return misplaced("is not allowed for a metric with BY");
        }
        if movement == Movement::Period && self.season.is_none() {
            return misplaced("must be 1h or 1d on a board without a season, which has no periods");
        }
        if movement != Movement::Period && self.boundaries_of_track(self).is_none() {
            return misplaced("must be a whole number of slots, so that each hour or day begins with a slot");
        }
        Ok(())
    }

    /// Returns the calendar whose slots begin with the boundaries at which the track of this definition notes its
    /// ranks, if it does: if each boundary is the beginning of a slot, or if the track has one slot for all time.
    /// Time zone and `starts` of the boundaries are those of the edition, because a total over all time has none.
    pub(super) fn boundaries_of_track(&self, edition: &Definition) -> Option<Calendar> {
        let span = edition.movement.filter(|_| self.ranked && edition.metric.by.is_none())?.span()?;
        let boundaries = Calendar::with_start(span, edition.timezone, edition.starts).ok()?;
        let (WindowLength::Span(_), Some(slot)) = (self.metric.window, self.slot) else {
            return (self.metric.window == WindowLength::All).then_some(boundaries);
        };
        let slots = Calendar::with_start(slot, self.timezone, self.starts).ok()?;
        let is_whole = span.seconds().zip(slot.seconds()).is_some_and(|(span, slot)| span % slot == 0);
        let begins_with_slot = |day: &i64| {
            let boundary = boundaries.slot_of(Timestamp::from_millis(*day));
            slots.slot_of(boundary) == boundary
        };
        (is_whole && CHECKED_DAYS.iter().all(begins_with_slot)).then_some(boundaries)
    }
}

/// A rank at an earlier time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRank {
    pub rank: u64,
    /// The subject, or `None` if it was removed since.
    pub subject: Option<Subject>,
}

/// The first lines of a ranking as they were just before a boundary: what leaves the window there still counts.
#[derive(Clone, Debug)]
pub struct EarlierRanks {
    at: Timestamp,
    lines: Option<Vec<EarlierRank>>,
    by_subject: OnceLock<HashMap<Subject, u64>>,
}

impl EarlierRanks {
    /// The largest number of lines.
    pub const MOST: usize = 1_000;

    /// Returns the ranks at a boundary, best first.
    pub fn new(at: Timestamp, lines: Vec<EarlierRank>) -> Self {
        Self { at, lines: Some(lines), by_subject: OnceLock::new() }
    }

    /// Returns that the ranks at a boundary are not known.
    pub fn unknown(at: Timestamp) -> Self {
        Self { at, lines: None, by_subject: OnceLock::new() }
    }

    /// Returns the ranks of the first lines of a ranking, given with their scores, best first. Lines of one score have one
    /// rank, unless ranks are ordinal.
    pub fn of_lines<S: PartialEq>(
        at: Timestamp,
        of: Ranks,
        lines: impl IntoIterator<Item = (S, Option<Subject>)>,
    ) -> Self {
        let (mut ranks, mut last) = (Vec::<EarlierRank>::new(), None);
        for (score, subject) in lines.into_iter().take(Self::MOST) {
            let rank = match (&last, ranks.last()) {
                (Some(last), Some(EarlierRank { rank, .. })) if *last == score && of == Ranks::Shared => *rank,
                _ => ranks.len() as u64 + 1,
            };
            last = Some(score);
            ranks.push(EarlierRank { rank, subject });
        }
        Self::new(at, ranks)
    }

    /// Returns the boundary.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the lines, best first, or `None` if they are not known.
    pub fn lines(&self) -> Option<&[EarlierRank]> {
        self.lines.as_deref()
    }

    /// Returns the rank that the subject had, or `None` if it was not among the first lines. O(1), and the first time
    /// O(lines).
    pub fn rank_of(&self, subject: &Subject) -> Option<u64> {
        let named = |line: &EarlierRank| Some((line.subject.clone()?, line.rank));
        let ranks = self.by_subject.get_or_init(|| self.lines.iter().flatten().filter_map(named).collect());
        ranks.get(subject).copied()
    }

    /// Returns the same without the name of a subject, if it has the subject. The others keep their ranks.
    pub fn without(&self, subject: &str) -> Option<Self> {
        let lines = self.lines.as_ref()?;
        let is_of = |line: &EarlierRank| line.subject.as_ref().is_some_and(|own| own.as_str() == subject);
        let at = lines.iter().position(is_of)?;
        let mut lines = lines.clone();
        lines[at].subject = None;
        Some(Self::new(self.at, lines))
    }

    /// Returns about how many bytes it uses, with what [`rank_of`](Self::rank_of) makes.
    pub fn memory_bytes(&self) -> usize {
        let lines = self.lines.iter().flatten();
        let texts: usize = lines.map(|line| 2 * line.subject.as_ref().map_or(0, |own| own.as_str().len() + 16)).sum();
        let count = self.lines.as_ref().map_or(0, Vec::len);
        size_of::<Self>() + texts + count * (size_of::<EarlierRank>() + 2 * size_of::<(Subject, u64)>())
    }
}

/// Lines of one rank have no order: where one has lost its subject, stores keep it at different places among them.
impl PartialEq for EarlierRanks {
    fn eq(&self, other: &Self) -> bool {
        let lines = |ranks: &Self| {
            ranks.lines().map(|lines| {
                let mut lines: Vec<_> = lines.iter().map(|line| (line.rank, line.subject.clone())).collect();
                lines.sort();
                lines
            })
        };
        self.at == other.at && lines(self) == lines(other)
    }
}

impl Eq for EarlierRanks {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Generation};

    fn t(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn subject(text: &str) -> Subject {
        Subject::parse(text).unwrap()
    }

    fn board(definition: &str) -> Result<Board, DefinitionError> {
        let definition = serde_json::from_str(definition).unwrap();
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition)
    }

    fn refusal(definition: &str) -> String {
        let error = board(definition).unwrap_err();
        assert_eq!(error.field(), "movement", "{definition}");
        error.to_string()
    }

    #[test]
    fn boundaries_are_those_of_the_time_zone() {
        for (metric, slot, movement, zone, at, boundary) in [
            ("24h", r#""1h""#, "1h", "UTC", "2026-01-02T10:07:00Z", "2026-01-02T10:00:00Z"),
            ("24h", r#""5m""#, "1d", "Europe/Berlin", "2026-01-02T10:07:00Z", "2026-01-01T23:00:00Z"),
            ("7d", r#""1d""#, "1d", "America/New_York", "2026-07-02T10:07:00Z", "2026-07-02T04:00:00Z"),
            ("24h", r#""1h""#, "1h", "Asia/Kathmandu", "2026-01-02T10:07:00Z", "2026-01-02T09:15:00Z"),
            ("all", "null", "1d", "Asia/Kathmandu", "2026-01-02T10:07:00Z", "2026-01-01T18:15:00Z"),
        ] {
            let text = format!(
                r#"{{"metric": "COUNT({metric}, a, b)", "slot": {slot}, "movement": "{movement}", "timezone": "{zone}"}}"#
            );
            let board = board(&text).unwrap();
            let boundaries = board.tracks()[0].boundaries().unwrap();
            assert_eq!(boundaries.slot_of(t(at)), t(boundary), "{text}");
        }
    }

    #[test]
    fn a_board_without_ranks_at_boundaries_is_refused() {
        let whole = "must be a whole number of slots, so that each hour or day begins with a slot";
        for (definition, why) in [
            (r#"{"metric": "COUNT(24h, a, b)", "slot": "2h", "movement": "1h"}"#, whole),
            (r#"{"metric": "COUNT(14d, a, b)", "slot": "2d", "movement": "1d"}"#, whole),
            (r#"{"metric": "COUNT(2mo, a, b)", "slot": "1mo", "movement": "1d"}"#, whole),
            // Half hours begin with those of UTC, and days there a quarter of an hour before.
            (r#"{"metric": "COUNT(24h, a, b)", "slot": "30m", "movement": "1d", "timezone": "Asia/Kathmandu"}"#, whole),
            (
                r#"{"metric": "COUNT(24h, a, b BY c)", "slot": "1h", "movement": "1h"}"#,
                "is not allowed for a metric with BY",
            ),
            (
                r#"{"metric": "COUNT(24h, a, b)", "slot": "1h", "movement": "1h", "ranked": false}"#,
                "is allowed only with ranked = true: other boards have no ranks",
            ),
            (
                r#"{"metric": "COUNT(24h, a, b)", "mode": "from_first", "movement": "1h", "ranked": false}"#,
                "is allowed only with ranked = true: other boards have no ranks",
            ),
            (
                r#"{"metric": "COUNT(all, a, b)", "movement": "period"}"#,
                "must be 1h or 1d on a board without a season, which has no periods",
            ),
        ] {
            assert_eq!(refusal(definition), format!("'movement' {why}"), "{definition}");
        }
        let other: Result<Definition, _> = serde_json::from_str(r#"{"metric": "COUNT(all, a, b)", "movement": "1w"}"#);
        assert!(other.unwrap_err().to_string().contains("`1h`, `1d`"));
    }

    #[test]
    fn the_windows_of_a_board_that_have_boundaries_are_those_whose_slots_begin_with_them() {
        let text =
            r#"{"metric": "COUNT(24h, a, b)", "slot": "1h", "windows": ["7d/6h", "30d/1d", "all"], "movement": "1h"}"#;
        let has = |board: Board| board.tracks().iter().map(|track| track.boundaries().is_some()).collect::<Vec<_>>();
        assert_eq!(has(board(text).unwrap()), [true, false, false, true]);
        assert_eq!(has(board(&text.replace(r#""movement": "1h""#, r#""movement": "1d""#)).unwrap()), [true; 4]);
        let kept = r#"{"metric": "COUNT(all, a, b)", "slot": "1h", "keep": "24h", "movement": "1h"}"#;
        assert_eq!(has(board(kept).unwrap()), [true, false]);
        // The ranks of periods are those of the period before.
        let season = r#"{"metric": "COUNT(all, a, b)", "season": {"every": "1d"}, "movement": "period"}"#;
        assert_eq!(has(board(season).unwrap()), [false]);
    }

    #[test]
    fn ranks_of_ties_are_shared() {
        let lines = [(9, "a"), (7, "c"), (7, "b"), (4, "d")];
        let lines = lines.map(|(score, name)| (score, Some(subject(name))));
        let ranks = EarlierRanks::of_lines(t("2026-01-02T10:00:00Z"), Ranks::Shared, lines);
        let of = |ranks: &EarlierRanks| ["a", "b", "c", "d", "e"].map(|name| ranks.rank_of(&subject(name)));
        assert_eq!(of(&ranks), [Some(1), Some(2), Some(2), Some(4), None]);
        // The ranks of the others stay.
        let rest = ranks.without("c").unwrap();
        assert_eq!(of(&rest), [Some(1), Some(2), None, Some(4), None]);
        assert_eq!(rest.lines().unwrap().len(), 4);
        assert_eq!(rest.without("c"), None);
        assert_eq!(EarlierRanks::unknown(ranks.at()).without("a"), None);
    }

    #[test]
    fn no_more_than_a_thousand_lines_are_kept() {
        let lines = (0..1_500).map(|line| (line, Some(subject(&line.to_string()))));
        let ranks = EarlierRanks::of_lines(t("2026-01-02T10:00:00Z"), Ranks::Shared, lines);
        assert_eq!(ranks.rank_of(&subject("999")), Some(1_000));
        assert_eq!(ranks.rank_of(&subject("1000")), None);
        assert!(ranks.memory_bytes() > 100_000 && ranks.memory_bytes() < 250_000, "{}", ranks.memory_bytes());
    }
}
