//! Walks over contents, and imports of what they return.

use std::sync::Arc;
use std::time::Duration;

use rolltop::board::BoardTrack;
use rolltop::store::{ImportBegun, ImportId, Merged, Piece, Store};

use super::seen::{Seen, seen};
use super::sequence::Import;
use super::side::{Outcome, Side};
use crate::carrying::{pieces, sum, walk};

impl Side {
    pub async fn walk(&self, track: &BoardTrack) -> Outcome<Seen> {
        Ok(Seen::Contents(walk(&self.instances, track).await?))
    }

    pub async fn import(&mut self, import: &Import) -> Outcome<Vec<Seen>> {
        let (store, to) = (self.instance(import.through), self.boards[import.to].clone());
        let same = self.boards[import.from].definition() == to.definition();
        let from = if same { self.boards[import.from].clone() } else { to };
        let (mut of_tracks, mut all) = (Vec::new(), Vec::new());
        for track in from.each_track() {
            let contents = walk(&self.instances, &track).await?;
            let status = store.status(&track).await.map_err(|error| format!("{error:?}"))?;
            of_tracks.push(pieces(&contents, &status.events, import.size));
            all.push(Seen::Contents(contents));
        }
        if let Some(leap) = import.leap {
            all.push(self.leap(leap).await?);
        }
        let to = &self.boards[import.to];
        let id = ImportId(import.id);
        let begun = seen(&*store, store.begin_import(to, id).await)?;
        let is_open = matches!(begun, Seen::Begun(ImportBegun::Open { .. }));
        all.push(begun);
        if !is_open {
            return Ok(all);
        }
        for (track, pieces) in to.each_track().zip(&of_tracks) {
            let mut merged = Merged::default();
            for (nth, piece) in pieces.iter().enumerate() {
                merged.add(self.merge(&track, piece, import, nth).await?);
            }
            // Of a call that was interrupted it is not known what it did.
            all.push(if import.interruptions.is_empty() { Seen::Merged(merged) } else { Seen::Done });
        }
        if import.end && !store.end_import(to, id).await.map_err(|error| format!("{error:?}"))? {
            return Err("the open import was not open when it was ended".to_owned());
        }
        Ok(all)
    }

    /// Merges a piece after some calls for it that were interrupted.
    async fn merge(&self, track: &BoardTrack, piece: &Piece, import: &Import, nth: usize) -> Outcome<Merged> {
        let id = ImportId(import.id);
        for (call, micros) in import.interruptions.iter().enumerate() {
            let store = self.instance(import.through + nth + call);
            tokio::time::timeout(Duration::from_micros(*micros), store.merge(track, id, piece)).await.ok();
        }
        let merge = async |store: Arc<dyn Store>| {
            let merged = store.merge(track, id, piece).await.map_err(|error| format!("{error:?}"))?;
            match sum(merged) == piece.contents.len() as u64 {
                true => Ok(merged),
                false => Err(format!("{merged:?} of {} contents", piece.contents.len())),
            }
        };
        let mut merged = merge(self.instance(import.through + nth)).await?;
        if import.twice {
            let again = merge(self.instance(import.through + nth + 1)).await?;
            if again.repeated != piece.contents.len() as u64 {
                return Err(format!("{again:?} of a piece that was merged before"));
            }
            merged.add(again);
        }
        Ok(merged)
    }
}
