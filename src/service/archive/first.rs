//! The first lines of an ended period, whose ranks the lines of the next one show beside their own: those that its page
//! shows, of the lines that are kept of it. They follow from what the store has, and from nothing else: who asks when, and
//! whether the period is packed, changes nothing.

use std::cmp::Ordering;

use futures_util::future::try_join_all;

use super::reading::{Reading, Shown};
use super::{Rankings, about_period, hidden};
use crate::board::BoardTrack;
use crate::store::{self, Lines, PageStart, Place, Ranked, StoreError};

/// The largest number of hidden subjects of which it is found out, for each answer, whether their lines are kept.
const MOST_HIDDEN: usize = 200;

/// What the first lines of a period follow from: they are the same while it is.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::service) enum Version {
    Ranking(Lines),
    Packed(Shown),
}

impl Rankings {
    /// Returns the first lines of the ranking of a period, at most this many, or `None` if they are those that `known` is
    /// the version of. Two store calls if the period is packed and nothing has changed, and otherwise hardly more.
    pub(in crate::service) async fn first_lines(
        &self,
        track: &BoardTrack,
        most: u32,
        known: Option<&Version>,
    ) -> store::Result<Option<(Lines, Version)>> {
        if let Some(packed) = track.packed() {
            let read = async {
                let reading = Reading::begin(&*self.store, &self.known, track, packed).await?;
                let version = Version::Packed(reading.version());
                if known == Some(&version) {
                    return Ok::<_, StoreError>(None);
                }
                Ok(Some((reading.page_from(&PageStart::Offset(0), most).await?.items, version)))
            };
            return read.await.map_err(|error| about_period(track, error));
        }
        let lines = self.store.page_from(track, &PageStart::Offset(0), most).await?.items;
        let kept = self.kept_of(track, &lines).await?;
        let lines =
            if kept < lines.len() { lines.iter().take(kept).cloned().collect::<Vec<Ranked>>().into() } else { lines };
        let version = Version::Ranking(lines.clone());
        Ok((known != Some(&version)).then_some((lines, version)))
    }

    /// Returns how many of the first lines of a ranking are kept when it is packed. Those of hidden subjects are kept like
    /// others, so they count here, too.
    async fn kept_of(&self, track: &BoardTrack, lines: &Lines) -> store::Result<usize> {
        let top = track.board().season().and_then(|season| season.archive_top.limit());
        let Some(top) = top.and_then(|top| usize::try_from(top).ok()) else { return Ok(lines.len()) };
        let hidden = hidden::subjects(&*self.store, track.board()).await?;
        if hidden.is_empty() || lines.len() + hidden.len() <= top {
            return Ok(lines.len().min(top));
        }
        if hidden.len() > MOST_HIDDEN {
            let detail = format!("which lines are kept of a period, with more than {MOST_HIDDEN} hidden subjects");
            return Err(StoreError::Unsupported { detail });
        }
        let standings = hidden.iter().map(|(subject, _)| self.store.standing(track, subject));
        let scores =
            try_join_all(standings).await?.into_iter().map(|own| own.score.filter(|_| track.kind().ranks(own.score)));
        let places = hidden.into_iter().zip(scores);
        let places: Vec<Place> =
            places.filter_map(|((subject, _), score)| Some(Place { score: score?, subject })).collect();
        let is_kept = |(at, line): (usize, &Ranked)| {
            let own = Place::of(line);
            let is_before = |place: &&Place| place.compare(&own, track.order()) == Ordering::Less;
            at + places.iter().filter(is_before).count() < top
        };
        Ok(lines.iter().enumerate().take_while(|line| is_kept(*line)).count())
    }
}
