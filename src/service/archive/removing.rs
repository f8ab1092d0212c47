//! The removal of a subject from packed rankings: its line stays, without a name.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::Rankings;
use super::finding::text_of;
use super::sheet::{Head, LINES, LineSheet, Registered, sheets_of};
use crate::board::{Board, BoardTrack, ModerationList, Subject};
use crate::store::{self, SheetId, Store, StoreError, TextRange};

/// The number of periods from which a subject is removed at the same time.
const AT_ONCE: usize = 8;
/// The number of attempts to change a sheet while other instances change it.
const ATTEMPTS: usize = 100;
/// The largest number of lines that stay left out, which each read has to know. Beyond it, lines are without names.
const MOST_LEFT_OUT: usize = 10_000;
/// The longest pause before another attempt, in milliseconds.
const LONGEST_PAUSE: u64 = 20;

impl Rankings {
    /// Returns whether a subject is hidden, if the board has ended periods from which it may have to be removed.
    pub(in crate::service) async fn was_hidden(&self, board: &Arc<Board>, subject: &Subject) -> store::Result<bool> {
        if !board.definition().packs_periods() || board.archive().is_empty() {
            return Ok(false);
        }
        let range = TextRange { prefix: subject.as_str(), after: None };
        let first = self.store.moderated(board, ModerationList::Hidden, range, 1).await?.items.pop();
        Ok(first.is_some_and(|(first, _)| first == *subject))
    }

    /// Takes a subject that was removed from a board out of the sheets of its ended periods. Returns the number of periods
    /// that had it. About eight store calls for a period that has it, otherwise one or two. The line of one that
    /// `was_hidden` stays left out, and so does that in a period which is still being packed: until then the ranking itself
    /// is read, which has the line no more.
    ///
    /// Call it after the removal. Then of a period that is being packed, either this finds the line, or the packing finds
    /// that the subject was removed.
    pub(in crate::service) async fn remove(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
        was_hidden: bool,
    ) -> store::Result<u64> {
        let packs = board.definition().packs_periods();
        let periods = board.each_period().filter(|period| packs && period.is_final());
        let remove = |track: BoardTrack| async move {
            // All removals from a period change the same sheet.
            let turn = &self.removing[usize::try_from(track.id().0).unwrap_or_default() % self.removing.len()];
            let _one_at_a_time = turn.lock().await;
            remove_from(&*self.store, &track, subject, was_hidden || track.packed().is_none()).await
        };
        let mut removals = stream::iter(periods).map(|period| remove(period.main_track())).buffer_unordered(AT_ONCE);
        let mut removed = 0;
        while let Some(was_there) = removals.try_next().await? {
            removed += u64::from(was_there);
        }
        Ok(removed)
    }
}

/// Takes a subject out of the sheets of a period. Its line `stays_out` of what is read, or is one without a name. Returns
/// whether they had it. Repeating a call that ended halfway completes it.
pub(super) async fn remove_from(
    store: &dyn Store,
    track: &BoardTrack,
    subject: &Subject,
    stays_out: bool,
) -> store::Result<bool> {
    let Some(head) = text_of(store, track, SheetId::Head).await? else { return Ok(false) };
    let sheets = sheets_of(Head::read(&head)?.lines);
    let registered = Registered::of(subject.as_str(), sheets);
    let register = SheetId::Register(registered.sheet);
    // While the period is being packed, the register may not be there yet.
    let Some(text) = text_of(store, track, register).await? else { return Ok(false) };
    let mut was_there = false;
    for sheet in registered.candidates(&text) {
        let Some(text) = text_of(store, track, SheetId::Lines(sheet)).await? else { continue };
        let lines = LineSheet::read(track, &text)?;
        let line = lines.position(subject).map(|at| sheet * LINES + at as u64);
        let others = lines.lines.iter().filter_map(|line| line.subject).filter(|other| *other != subject.as_str());
        if line.is_none() && others.clone().any(|other| Registered::of(other, sheets) == registered) {
            // The entry is that of another subject.
            continue;
        }
        let counted = |text: &str| {
            let mut head = Head::read(text)?;
            let left_out =
                line.filter(|line| stays_out && head.left_out.len() < MOST_LEFT_OUT && !head.left_out.contains(line));
            head.left_out.extend(left_out);
            head.removals = head.removals.wrapping_add(1);
            Ok(Some(head.print()))
        };
        let without = |text: &str| {
            let mut lines = LineSheet::read(track, text)?;
            let Some(at) = lines.position(subject) else { return Ok(None) };
            (lines.lines[at].subject, lines.lines[at].is_capped) = (None, false);
            Ok(Some(lines.print()))
        };
        // The line is left out before it loses its name, and instances that remember the line look for it again.
        if line.is_some() && stays_out {
            change(store, track, SheetId::Head, counted).await?;
        }
        was_there |= change(store, track, SheetId::Lines(sheet), without).await?;
        change(store, track, SheetId::Head, counted).await?;
        let unregistered = |text: &str| Ok(Some(registered.without(text, sheet)));
        change(store, track, register, unregistered).await?;
    }
    Ok(was_there)
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
        tokio::time::sleep(Duration::from_millis(rand::random_range(1..=LONGEST_PAUSE))).await;
    }
    Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) })
}
