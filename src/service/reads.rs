//! Reads of rankings and of single subjects. A share of those of a board with a successor is mirrored.

use super::about::about;
use super::mirror::{self, MirroredRead};
use super::{About, Result, Service, ServiceError, WindowChoice};
use crate::access::Caller;
use crate::board::{BoardName, BoardTrack, Kind, Percentile, Subject, Value, Visibility};
use crate::store::{
    self, Distribution, Lookup, Page, PageStart, SlotContents, SlotRange, Standing, StoreError, Values,
};

/// Returns an error if the track has no ranking.
pub(super) fn ranked(track: &BoardTrack) -> Result<()> {
    if track.is_ranked() { Ok(()) } else { Err(ServiceError::NotRanked(track.board().name().clone())) }
}

/// Returns the subjects of the lines of a page, without those that were removed.
pub(super) fn subjects_of(page: &Page) -> impl Iterator<Item = &Subject> {
    page.items.iter().map(|line| &line.subject).filter(|subject| subject.removed_line().is_none())
}

/// Returns the scores of the lines of a page.
fn scores(page: &Page) -> mirror::Answered {
    page.items.iter().map(|line| (line.subject.clone(), Some(line.score))).collect()
}

/// Returns an error if the track does not store its values.
pub(super) fn remembers_values(track: &BoardTrack) -> Result<()> {
    match track.kind() == Kind::Distinct {
        true => Ok(()),
        false => Err(ServiceError::NoValues(track.board().name().clone())),
    }
}

impl Service {
    /// Returns the ranking from position `offset`, at most `limit` lines.
    ///
    /// Like every read, it is about one track of a board: the [main](crate::board::Board::main) one, or a
    /// [window](Self::window).
    ///
    /// Like [`neighbors`](Self::neighbors) and [`lookup`](Self::lookup), returns [`ServiceError::NotRanked`] on an
    /// unranked board.
    pub async fn page(&self, track: &BoardTrack, offset: u64, limit: u32) -> Result<About<Page>> {
        let start = PageStart::Offset(offset);
        let mut read = about!(self, track, ranked, |current| self.rankings.page_from(current, &start, limit))?;
        if let Some(mirror) = self.mirror.get() {
            let answer = (read.answer.frame.as_of, || scores(&read.answer));
            mirror.read(&self.store, &read.of, MirroredRead::Page, answer, |store, track| async move {
                Ok(scores(&store.page(&track, offset, limit).await?))
            });
        }
        self.add_earlier_ranks(&mut read.of, read.answer.frame.as_of).await;
        if let Some(reading) = self.add_attributes(&mut read.of, subjects_of(&read.answer)) {
            reading.await?;
        }
        Ok(read)
    }

    /// Returns the first lines of a window, for a page that many callers share. Whoever shows it to a caller must ask
    /// whether the caller may [use the board](Caller::require_board).
    pub async fn shared_page(&self, board: &BoardName, window: WindowChoice, limit: u32) -> Result<About<Page>> {
        let track = self.window(&Caller::trusted(), board, window, None).await?;
        self.page(&track, 0, limit).await
    }

    /// Returns the lines around a subject.
    pub async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> Result<About<Page>> {
        let mut read = about!(self, track, ranked, |current| self.rankings.neighbors(current, subject, radius))?;
        if let Some(mirror) = self.mirror.get() {
            let (answer, subject) = ((read.answer.frame.as_of, || scores(&read.answer)), subject.clone());
            mirror.read(&self.store, &read.of, MirroredRead::Neighbors, answer, |store, track| async move {
                Ok(scores(&store.neighbors(&track, &subject, radius).await?))
            });
        }
        self.add_earlier_ranks(&mut read.of, read.answer.frame.as_of).await;
        if let Some(reading) = self.add_attributes(&mut read.of, subjects_of(&read.answer)) {
            reading.await?;
        }
        Ok(read)
    }

    /// Returns the scores of the given subjects and, with `ranks`, their ranks in the whole ranking.
    pub async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Result<About<Lookup>> {
        let mut read = about!(self, track, ranked, |current| self.rankings.lookup(current, subjects, ranks))?;
        if let Some(mirror) = self.mirror.get() {
            let found = |found: &Lookup| subjects.iter().cloned().zip(found.scores.iter().copied()).collect();
            let (answer, subjects) = ((read.answer.frame.as_of, || found(&read.answer)), subjects.to_vec());
            mirror.read(&self.store, &read.of, MirroredRead::Lookup, answer, |store, track| async move {
                let found = store.lookup(&track, &subjects, ranks).await?;
                Ok(subjects.into_iter().zip(found.scores).collect())
            });
        }
        self.add_earlier_ranks(&mut read.of, read.answer.frame.as_of).await;
        if let Some(reading) = self.add_attributes(&mut read.of, subjects.iter()) {
            reading.await?;
        }
        Ok(read)
    }

    /// Returns the scores at percentiles of a ranking, and the numbers of subjects around scores. O(log n) for each.
    ///
    /// Returns [`StoreError::BoardChanged`] if the board has been defined again with other scores.
    pub async fn distribution(
        &self,
        track: &BoardTrack,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<About<Distribution>> {
        let read = about!(self, track, ranked, |current| self.rankings.distribution(current, percentiles, scores))?;
        match (read.of.kind(), read.of.scale()) == (track.kind(), track.scale()) {
            true => Ok(read),
            false => Err(StoreError::BoardChanged.into()),
        }
    }

    /// Returns the score, rank and slots of one subject.
    pub async fn standing(&self, track: &BoardTrack, subject: &Subject) -> Result<About<Standing>> {
        let mut read = about!(self, track, |current| self.standing_on(current, subject))?;
        self.mirror_standing(&read.of, &read.answer, subject);
        self.add_earlier_ranks(&mut read.of, read.answer.frame.as_of).await;
        if let Some(reading) = self.add_attributes(&mut read.of, std::iter::once(subject)) {
            reading.await?;
        }
        Ok(read)
    }

    /// Lets the successor return a standing too, perhaps.
    pub(super) fn mirror_standing(&self, track: &BoardTrack, standing: &Standing, subject: &Subject) {
        let Some(mirror) = self.mirror.get().filter(|_| !track.is_from_first()) else { return };
        let (answer, subject) = ((standing.frame.as_of, || vec![(subject.clone(), standing.score)]), subject.clone());
        mirror.read(&self.store, track, MirroredRead::Standing, answer, |store, track| async move {
            let score = store.standing(&track, &subject).await?.score;
            Ok(vec![(subject, score)])
        });
    }

    /// Reads the standing in this track. On a `from_first` board the window is the subject's own, and only a read of
    /// its slots returns it.
    pub(super) async fn standing_on(&self, track: &BoardTrack, subject: &Subject) -> store::Result<Standing> {
        if !track.is_from_first() {
            return self.rankings.standing(track, subject).await;
        }
        let contents = self.store.count(track, subject, SlotRange::Slots(1)).await?;
        let score = contents.value(track);
        let SlotContents { frame, aggregates, capped, .. } = contents;
        Ok(Standing {
            frame,
            total: 0,
            score,
            rank: None,
            visibility: Visibility::Visible,
            better: 0,
            not_worse: None,
            slots: aggregates,
            capped,
        })
    }

    /// Returns the values that a subject was seen with, newest first. Returns [`ServiceError::NoValues`] unless the
    /// board is COUNT_DISTINCT.
    pub async fn values(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        offset: u64,
        limit: u32,
    ) -> Result<About<Values>> {
        about!(self, track, remembers_values, |current| self.store.values(current, subject, offset, limit))
    }
}
