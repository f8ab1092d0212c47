//! The application of stored operations to a board's state.

use super::board_state::BoardState;
use super::log_operations::LogOperation;
use crate::board::{Attributes, Sketch, Timestamp};
use crate::store::Reached;

/// Applies an operation to the track with this number; `None` stands for a track that the board no longer has, of which
/// only operations that are about the whole board are applied. Operations of the store itself change nothing.
///
/// The operations of a checkpoint, followed by those of the log since the checkpoint began, end in the state that
/// memory had, however often any part of the log is applied. [`BoardState::rebuild`] completes the state. What has
/// expired at the board's time is left out.
///
/// Returns a description of what is not valid if the operation cannot be applied.
pub(super) fn replay(
    state: &mut BoardState,
    number: Option<usize>,
    operation: LogOperation,
) -> Result<(), &'static str> {
    match operation {
        // The tracks of a board have one time.
        LogOperation::Advanced { now } => state.move_clock(Timestamp::from_millis(now)),
        LogOperation::Id { arrival, fingerprint } => state.ids.restore(fingerprint, arrival, state.now().millis()),
        LogOperation::Sampled { any } => state.imports.restore_sampled(any),
        LogOperation::ImportBegun { import } => state.imports.restore_begun(import),
        LogOperation::ImportEnded { import } => state.imports.restore_ended(import),
        LogOperation::Counts { editions, counts } => {
            if let Some(dual) = &mut state.dual {
                dual.restore(editions, counts);
            }
        }
        LogOperation::Moderated { subject, moderation } => state.moderated.restore(subject, moderation),
        LogOperation::Attributes { subject, text } => {
            state.described.set(subject, Attributes::of_stored(text).ok_or("attributes are not valid")?);
        }
        LogOperation::Reached { source, text } => {
            let reached = Reached::parse(text).ok_or("what is reached of a source is not valid")?;
            state.reached.insert(source, reached);
        }
        operation => {
            if let Some(number) = number {
                return replay_in_track(state, number, operation);
            }
        }
    }
    Ok(())
}

fn replay_in_track(state: &mut BoardState, number: usize, operation: LogOperation) -> Result<(), &'static str> {
    let is_packed = state.board.tracks().get(number).is_some_and(|track| track.packed().is_some());
    let data = state.tracks.get_mut(number).ok_or("the board has no such track")?;
    if let LogOperation::Sheet { id, text } = operation {
        data.sheets.set(id, text.into());
        return Ok(());
    }
    if is_packed {
        // It is from the time before.
        return Ok(());
    }
    let floors = data.floors();
    let holdings = &mut data.holdings;
    match operation {
        LogOperation::Amount { slot, amount, subject } => holdings.restore_amount(subject.into(), slot, amount),
        LogOperation::Samples { slot, sum, count, subject } => {
            holdings.restore_samples(subject.into(), slot, (sum, count))
        }
        LogOperation::Last { slot, at, value, subject } => holdings.restore_last(subject.into(), slot, at, value),
        LogOperation::Marked { slot, mark, subject } => holdings.restore_mark(subject.into(), slot, mark),
        LogOperation::Sketch { slot, sketch, subject } => {
            let sketch = Sketch::from_bytes(sketch).ok_or("a sketch is not valid")?;
            holdings.restore_sketch(subject.into(), slot, sketch);
        }
        LogOperation::Value { last_seen, subject, value } => {
            holdings.kind.restore_value(holdings, subject.into(), value, last_seen, floors)
        }
        LogOperation::Capped { at, subject } => holdings.restore_capped(subject.into(), at, floors),
        LogOperation::Events { slot, count } => data.events.restore(slot, count),
        LogOperation::Earlier { at, lines } => return data.noted.restore(at, lines),
        LogOperation::Removed { subject } => holdings.restore_removed(subject.into()),
        LogOperation::Merged { import, progress } => state.imports.set_progress(import, number, progress),
        LogOperation::Advanced { .. }
        | LogOperation::Id { .. }
        | LogOperation::Sampled { .. }
        | LogOperation::ImportBegun { .. }
        | LogOperation::ImportEnded { .. }
        | LogOperation::Counts { .. }
        | LogOperation::Moderated { .. }
        | LogOperation::Attributes { .. }
        | LogOperation::Reached { .. }
        | LogOperation::Sheet { .. }
        | LogOperation::Track(_)
        | LogOperation::Editions { .. }
        | LogOperation::Defined { .. }
        | LogOperation::DefinedAt { .. }
        | LogOperation::Undefined { .. }
        | LogOperation::Clock(_)
        | LogOperation::Simulated { .. }
        | LogOperation::Row { .. } => {}
    }
    Ok(())
}
