//! Reads of a packed ranking. They return what the store would return of the ranking if it were not packed, with a line
//! without a name for each subject that was removed.

use std::cmp::Ordering;

use super::finding::{self, Finder, FoundLine, TOGETHER};
use super::hidden::{self, HiddenLines, KnownLines};
use super::sheet::{Head, LINES, LineSheet};
use crate::board::{BoardTrack, Frame, Packed, Percentile, Ranks, Subject, Value, Visibility};
use crate::store::{
    self, AtScore, Distribution, Lookup, Page, PageStart, Ranked, SheetId, Sheets, Standing, Store, StoreError,
    compare_scores,
};

/// A packed ranking at one instant.
pub(super) struct Reading<'a> {
    finder: Finder<'a>,
    packed: Packed,
    hidden: HiddenLines,
    removals: u64,
    frame: Frame,
}

/// What the lines that a packed ranking shows follow from: they are the same while it is.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::service) struct Shown {
    removals: u64,
    hidden: Vec<u64>,
}

impl<'a> Reading<'a> {
    pub(super) async fn begin(
        store: &'a dyn Store,
        known: &KnownLines,
        track: &'a BoardTrack,
        packed: Packed,
    ) -> store::Result<Self> {
        // In this order: a subject that is hidden again after its removal is found with the number of removals.
        let hidden = hidden::subjects(store, track.board()).await?;
        let Sheets { frame, texts } = store.sheets(track, &[SheetId::Head]).await?;
        let head = texts.into_iter().next().flatten().ok_or_else(|| finding::missing(SheetId::Head))?;
        let head = Head::read(&head)?;
        let removals = head.removals;
        let hidden = known.lines_of(store, track, head, hidden).await?;
        let finder = Finder { store, track, lines: packed.lines };
        Ok(Self { finder, packed, hidden, removals, frame })
    }

    pub(super) fn version(&self) -> Shown {
        Shown { removals: self.removals, hidden: self.hidden.lines.clone() }
    }

    fn track(&self) -> &BoardTrack {
        self.finder.track
    }

    /// Returns the number of ranked subjects that are shown.
    fn total(&self) -> u64 {
        self.packed.total.saturating_sub(self.hidden.lines.len() as u64)
    }

    /// Returns the number of lines that are shown.
    fn shown(&self) -> u64 {
        self.hidden.shown_before(self.packed.lines)
    }

    /// Returns the number of shown lines that have a better rank than a line, of which the first with its score is given
    /// too.
    fn ranked_before(&self, line: u64, tied_from: u64) -> u64 {
        self.hidden.shown_before(if self.track().ranks() == Ranks::Ordinal { line } else { tied_from })
    }

    fn compare(&self, a: Value, b: Value) -> Ordering {
        compare_scores(a, b, self.track().order())
    }

    /// Returns the number of shown subjects with a better score, of those whose lines are kept.
    async fn better(&self, score: Value) -> store::Result<u64> {
        let lines = self.finder.count(|other| self.compare(*other, score) == Ordering::Less).await?;
        Ok(self.hidden.shown_before(lines))
    }

    /// Returns the number of shown subjects whose score is not worse. Where the lines that tie with the last one may not be
    /// kept, it is not known, and all of them count, so that no tier by share has too many.
    async fn not_worse(&self, score: Value) -> store::Result<u64> {
        let lines = self.finder.count(|other| self.compare(*other, score) != Ordering::Greater).await?;
        match self.packed.is_cut() && lines == self.packed.lines {
            true => Ok(self.total()),
            false => Ok(self.hidden.shown_before(lines)),
        }
    }

    async fn not_worse_if_counted(&self, score: Option<Value>) -> store::Result<Option<u64>> {
        match score.filter(|_| self.track().counts_ties()) {
            Some(score) => self.not_worse(score).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns at most `limit` shown lines after the first `first` ones. One store call for each 4,096 lines.
    async fn lines(&self, first: u64, limit: u64) -> store::Result<Page> {
        let shown = self.shown();
        let until = first.saturating_add(limit).min(shown);
        let mut items: Vec<Ranked> = Vec::with_capacity(until.saturating_sub(first) as usize);
        if first < until {
            let (from, last) = (self.hidden.line_of(first), self.hidden.line_of(until - 1));
            let sheets: Vec<u64> = (from / LINES..=last / LINES).collect();
            for some in sheets.chunks(TOGETHER) {
                let ids: Vec<_> = some.iter().map(|sheet| SheetId::Lines(*sheet)).collect();
                for (text, number) in self.finder.texts(&ids).await?.iter().zip(some) {
                    let sheet = LineSheet::read(self.track(), text)?;
                    let before = number * LINES;
                    let mut tied_from = sheet.tied_from;
                    for (at, line) in sheet.lines.iter().enumerate() {
                        let number = before + at as u64;
                        if at > 0 && sheet.lines[at - 1].score != line.score {
                            tied_from = number;
                        }
                        if !(from..=last).contains(&number) || self.hidden.is_hidden(number) {
                            continue;
                        }
                        let subject = line.subject.map_or_else(|| Subject::removed(number), Subject::from_stored);
                        items.push(Ranked {
                            rank: self.ranked_before(number, tied_from) + 1,
                            subject,
                            score: line.score,
                        });
                    }
                }
            }
        }
        let not_worse = self.not_worse_if_counted(items.last().map(|last| last.score)).await?;
        Ok(Page { frame: self.frame, total: self.total(), first: first.min(shown), items: items.into(), not_worse })
    }

    pub(super) async fn page_from(&self, start: &PageStart, limit: u32) -> store::Result<Page> {
        let (first, count) = match start {
            PageStart::Offset(offset) => (*offset, u64::from(limit)),
            PageStart::Place(next_to) => {
                let subject = &next_to.place.subject;
                let line = match subject.removed_line() {
                    Some(line) => Some(line.min(self.packed.lines)),
                    None => {
                        let found = self.finder.find(&[subject]).await?.pop().flatten();
                        found.filter(|found| found.score == next_to.place.score).map(|found| found.line)
                    }
                };
                let boundary = match line {
                    Some(line) => line + u64::from(next_to.is_boundary_after_line()),
                    None => self.finder.before_place(&next_to.place).await?,
                };
                next_to.span(self.hidden.shown_before(boundary), u64::from(limit))
            }
        };
        self.lines(first, count).await
    }

    pub(super) async fn neighbors(&self, subject: &Subject, radius: u32) -> store::Result<Page> {
        let found = self.finder.find(&[subject]).await?.pop().flatten();
        match found.filter(|found| !self.hidden.is_hidden(found.line)) {
            Some(found) => {
                let place = self.hidden.shown_before(found.line);
                let from = place.saturating_sub(radius.into());
                self.lines(from, place - from + 1 + u64::from(radius)).await
            }
            None => self.lines(0, 0).await,
        }
    }

    pub(super) async fn lookup(&self, subjects: &[Subject], with_ranks: bool) -> store::Result<Lookup> {
        let wanted: Vec<&Subject> = subjects.iter().collect();
        let found = self.finder.find(&wanted).await?;
        let shown: Vec<Option<FoundLine>> =
            found.into_iter().map(|found| found.filter(|found| !self.hidden.is_hidden(found.line))).collect();
        let mut not_worse = Vec::with_capacity(shown.len());
        let mut last = None;
        for found in &shown {
            let score = found.filter(|_| with_ranks).map(|found| found.score);
            // Subjects that are asked for together often tie.
            let known = last.filter(|(of, _)| Some(*of) == score).map(|(_, known)| known);
            let counted = match known {
                Some(known) => known,
                None => self.not_worse_if_counted(score).await?,
            };
            last = score.map(|score| (score, counted));
            not_worse.push(counted);
        }
        let rank = |found: &Option<FoundLine>| {
            found.filter(|_| with_ranks).map(|found| self.ranked_before(found.line, found.tied_from) + 1)
        };
        Ok(Lookup {
            frame: self.frame,
            total: self.total(),
            scores: shown.iter().map(|found| found.map(|found| found.score)).collect(),
            ranks: shown.iter().map(rank).collect(),
            not_worse,
        })
    }

    pub(super) async fn standing(&self, subject: &Subject) -> store::Result<Standing> {
        let found = self.finder.find(&[subject]).await?.pop().flatten();
        let visibility = self.hidden.subjects.get(subject).copied().unwrap_or(Visibility::Visible);
        let absent = self.track().kind().absent();
        let better = match (found, absent) {
            (Some(found), _) => self.ranked_before(found.line, found.tied_from),
            (None, Some(score)) => self.better(score).await?,
            // Any score is better than none.
            (None, None) => self.total(),
        };
        let ranked = found.filter(|_| visibility.sees_rank());
        Ok(Standing {
            frame: self.frame,
            total: self.total(),
            score: found.map(|found| found.score).or(absent),
            rank: ranked.map(|_| better + 1),
            visibility,
            better,
            not_worse: self.not_worse_if_counted(ranked.map(|found| found.score)).await?,
            slots: Vec::new(),
            capped: found.is_some_and(|found| found.is_capped),
        })
    }

    /// Returns an error if lines are missing: then it is not known where their scores are.
    pub(super) async fn distribution(
        &self,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> store::Result<Distribution> {
        if self.packed.is_cut() {
            let detail = format!(
                "the distribution of a period of which only the first {} of {} lines are kept",
                self.packed.lines, self.packed.total
            );
            return Err(StoreError::Unsupported { detail });
        }
        let total = self.total();
        let mut answer = Distribution { frame: self.frame, total, percentiles: Vec::new(), scores: Vec::new() };
        for percentile in percentiles {
            let score = match percentile.position(total) {
                Some(position) => self.lines(position, 1).await?.items.first().map(|line| line.score),
                None => None,
            };
            answer.percentiles.push(score);
        }
        for score in scores {
            let better = self.better(*score).await?;
            answer.scores.push(AtScore { better, equal: self.not_worse(*score).await? - better });
        }
        Ok(answer)
    }
}
