//! The removal of a subject from packed rankings: its line stays, without a name.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::Rankings;
use super::sheet::{Head, LineSheet, Registered, sheets_of};
use crate::board::{Board, BoardTrack, Subject};
use crate::store::{self, SheetId, Store, StoreError};

/// The number of periods from which a subject is removed at the same time.
const AT_ONCE: usize = 8;
/// The number of attempts to change a sheet while others change it.
const ATTEMPTS: usize = 16;

impl Rankings {
    /// Takes a subject that was removed from a board out of the sheets of its ended periods. Returns the number of periods
    /// that had it. Three store calls for a period that has it, otherwise one or two.
    ///
    /// Call it after the removal: of a period that is being packed, either this finds the line, or whoever packs it finds
    /// that the subject was removed.
    pub(in crate::service) async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> store::Result<u64> {
        let packs = board.definition().packs_periods();
        let periods = board.each_period().filter(|period| packs && period.is_final());
        let remove = |track: BoardTrack| async move { remove_from(&*self.store, &track, subject).await };
        let mut removals = stream::iter(periods).map(|period| remove(period.main_track())).buffer_unordered(AT_ONCE);
        let mut removed = 0;
        while let Some(was_there) = removals.try_next().await? {
            removed += u64::from(was_there);
        }
        Ok(removed)
    }
}

/// Takes a subject out of the sheets of a period. Returns whether they had it.
pub(super) async fn remove_from(store: &dyn Store, track: &BoardTrack, subject: &Subject) -> store::Result<bool> {
    let Some(head) = text_of(store, track, SheetId::Head).await? else { return Ok(false) };
    let registered = Registered::of(subject.as_str(), sheets_of(Head::read(&head)?.lines));
    let register = SheetId::Register(registered.sheet);
    // While the period is being packed, the register may not be there yet.
    let Some(text) = text_of(store, track, register).await? else { return Ok(false) };
    for sheet in registered.candidates(&text) {
        let without = |text: &str| {
            let mut lines = LineSheet::read(track, text)?;
            let Some(at) = lines.position(subject) else { return Ok(None) };
            lines.lines[at].subject = None;
            Ok(Some(lines.print()))
        };
        if change(store, track, SheetId::Lines(sheet), without).await? {
            // Whoever remembers where the line of the subject is learns that it has none.
            let counted = |text: &str| {
                let head = Head::read(text)?;
                Ok(Some(Head { removed: head.removed + 1, ..head }.print()))
            };
            change(store, track, SheetId::Head, counted).await?;
            let unregistered = |text: &str| Ok(Some(registered.without(text, sheet)));
            change(store, track, register, unregistered).await?;
            return Ok(true);
        }
    }
    Ok(false)
}

async fn text_of(store: &dyn Store, track: &BoardTrack, id: SheetId) -> store::Result<Option<Arc<str>>> {
    Ok(store.sheets(track, &[id]).await?.texts.pop().flatten())
}

/// Replaces a sheet by what `to` makes of it, which is `None` if it stays as it is. Returns whether it was changed.
async fn change(
    store: &dyn Store,
    track: &BoardTrack,
    id: SheetId,
    to: impl Fn(&str) -> store::Result<Option<String>>,
) -> store::Result<bool> {
    for _ in 0..ATTEMPTS {
        let Some(from) = text_of(store, track, id).await? else { return Ok(false) };
        let Some(to) = to(&from)? else { return Ok(false) };
        if store.change_sheet(track, id, Some(&from), &to).await? {
            return Ok(true);
        }
    }
    Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) })
}
