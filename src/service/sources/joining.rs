//! Where boards of a source begin, and how far they are.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};

use super::row::{Course, Source};
use super::{ATTEMPTS, SourceTable};
use crate::board::{Board, Mode, Position, SourceName, SourceNumber};
use crate::service::{Result, Service, ServiceError};
use crate::store::{Reached, StoreError};

/// The number of boards that are asked at the same time how far they are.
const AT_ONCE: usize = 64;

/// How far a board has counted a course.
pub(super) struct Place {
    pub board: Arc<Board>,
    pub course: Course,
    /// `None` if its data is damaged.
    pub reached: Option<Position>,
}

/// How far boards of a source have counted it.
pub(super) struct Places {
    /// Those that have joined.
    pub of_boards: Vec<Place>,
    /// The least position that one has reached.
    pub least: Option<Position>,
    /// What is wrong with one that is damaged.
    damage: Option<StoreError>,
}

impl Service {
    /// Has boards join a source that have not done so, and returns the source with them. The position at which a board joins
    /// is stored: whatever becomes of its first portion, it is known from where on it counts. Boards whose data is damaged,
    /// and those for which there is no room, do not join.
    ///
    /// A new board joins where the source is, so that its first item is one that all boards have before them. The first
    /// boards of a source join at `after`.
    pub(in crate::service) async fn joined(
        &self,
        mut table: Arc<SourceTable>,
        name: &SourceName,
        boards: &[Arc<Board>],
        after: Position,
    ) -> Result<Arc<Source>> {
        for _ in 0..ATTEMPTS {
            let source = table.source(name)?;
            let is_new = |board: &&Arc<Board>| !source.joined.contains_key(&board.generation());
            let new: Vec<_> = boards.iter().filter(is_new).cloned().collect();
            if new.is_empty() {
                return Ok(source.clone());
            }
            // Read after the row, so that a board that the row has and the list does not is gone.
            let all = self.registry.refresh_all().await?;
            let mut changed = Source::clone(source);
            changed.keep(&all, &self.registry.unreadable());
            let of_source: Vec<_> = all.iter().filter(|board| source.has(board)).cloned().collect();
            let places = self.places(source, &of_source, false).await?;
            if let Some(reached) = places.least.filter(|reached| *reached < after) {
                return Err(ServiceError::SourceBehind { source_name: name.clone(), fill: None, reached });
            }
            let place = match places.damage.filter(|_| places.least.is_none()) {
                Some(damage) => return Err(damage.into()),
                None => places.least.unwrap_or(after),
            };
            let generations: Vec<_> = new.iter().map(|board| board.generation()).collect();
            for (board, reached) in self.all_reached(new.into_iter().map(|board| (board, source.number))).await {
                match reached {
                    Ok(None) => drop(changed.joined.insert(board.generation(), place)),
                    // It has joined, and a failover has lost that it did.
                    Ok(Some(reached)) => {
                        changed.joined.insert(board.generation(), reached.least());
                        changed.rejoined.insert(board.generation());
                    }
                    Err(StoreError::Corrupt { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            changed.make_room(&all)?;
            changed.leave_out(&generations)?;
            match self.change_source(&table, name, Some(&changed)).await {
                Ok(true) => return Ok(Arc::new(changed)),
                Ok(false) => table = self.source_table().await?,
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) }.into())
    }

    /// Has a board of a source be filled with what was in the log before it joined, from the position `after` on, and
    /// returns the source with the fill.
    pub(in crate::service) async fn filled(
        &self,
        mut table: Arc<SourceTable>,
        name: &SourceName,
        board: &Arc<Board>,
        after: Position,
    ) -> Result<Arc<Source>> {
        let refused = |why: String| Err(ServiceError::FillRefused { board: board.name().clone(), why });
        let generation = board.generation();
        for _ in 0..ATTEMPTS {
            let source = table.source(name)?;
            if let Some((from, _)) = source.fills.get(&generation) {
                if after < *from {
                    return refused(format!("its fill has begun after {from}, and cannot begin earlier any more"));
                }
                return Ok(source.clone());
            }
            let Some(joined) = source.joined.get(&generation).copied() else {
                return refused(format!("it joins source '{name}' with the next request without 'fill'"));
            };
            if source.rejoined.contains(&generation) {
                let why =
                    "it has left the source and joined it again, so what it has counted is not one part of the log";
                return refused(why.to_owned());
            }
            if board.definition().mode == Mode::FromFirst {
                return refused("what it counts depends on the order of events (mode = \"from_first\")".to_owned());
            }
            // If it has reached something, its fill has begun, and a failover has lost where.
            let begun = self.store.reached(board, source.fill_number()).await?;
            let from = begun.map_or(after, |reached| reached.least()).min(joined);
            let mut changed = Source::clone(source);
            changed.fills.insert(generation, (from, joined));
            if self.change_source(&table, name, Some(&changed)).await? && from <= after {
                return Ok(Arc::new(changed));
            }
            table = self.source_table().await?;
        }
        Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) }.into())
    }

    /// Returns how far those of the boards that have joined a source have counted it, or how far those that are filled are.
    pub(super) async fn places(&self, source: &Source, boards: &[Arc<Board>], is_fill: bool) -> Result<Places> {
        let course = |board: &Arc<Board>| Some((board.clone(), source.course(board.generation(), is_fill)?));
        let (boards, courses): (Vec<_>, Vec<_>) = boards.iter().filter_map(course).unzip();
        let asked = boards.into_iter().zip(courses.iter().map(|course| course.number));
        let read = self.all_reached(asked).await;
        let mut places = Places { of_boards: Vec::with_capacity(courses.len()), least: None, damage: None };
        for (course, (board, reached)) in courses.into_iter().zip(read) {
            let Course { from, until, .. } = course;
            let reached = match reached {
                Ok(reached) => Some(reached.map_or(from, |reached| reached.least().max(from).min(until))),
                Err(error @ StoreError::Corrupt { .. }) => {
                    places.damage = Some(error);
                    None
                }
                Err(error) => return Err(error.into()),
            };
            places.least = places.least.into_iter().chain(reached).min();
            places.of_boards.push(Place { board, course, reached });
        }
        Ok(places)
    }

    /// Returns what boards have reached of sources, each with the board, in their order.
    async fn all_reached(
        &self,
        asked: impl Iterator<Item = (Arc<Board>, SourceNumber)>,
    ) -> Vec<(Arc<Board>, Result<Option<Reached>, StoreError>)> {
        let read = |(board, number)| async move {
            let reached = self.store.reached(&board, number).await;
            (board, reached)
        };
        // Collected, because the compiler cannot see that a future over a borrowed iterator may be sent to other threads.
        let reads: Vec<_> = asked.map(read).collect();
        stream::iter(reads).buffered(AT_ONCE).collect().await
    }
}
