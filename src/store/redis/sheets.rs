//! The sheets of ended periods: see [`Store::sheets`](crate::store::Store::sheets). A part of a track has a hash of them,
//! by their names, and those of a track are spread over its parts by their numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::part::Part;
use super::partitions::Parts;
use super::scripts::{CHANGE_SHEET, TEXTS};
use super::servers::ServerFailure;
use super::session::{ScriptAnswer, Session};
use crate::board::{BoardTrack, Frame};
use crate::store::{SheetId, Sheets};

/// Returns the index of the part that has a sheet.
fn part_of(parts: &Parts, id: SheetId) -> usize {
    usize::try_from(id.number() % parts.count() as u64).unwrap_or_default()
}

/// Reads sheets, those of each part in one step.
pub(super) async fn read(session: &Session, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets, ServerFailure> {
    let parts = session.parts_of(track);
    let mut by_part: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, id) in ids.iter().enumerate() {
        by_part.entry(part_of(&parts, *id)).or_default().push(at);
    }
    if by_part.is_empty() {
        by_part.insert(0, Vec::new());
    }
    let calls = by_part.iter().map(|(part, places)| {
        let wanted: Vec<SheetId> = places.iter().map(|at| ids[*at]).collect();
        read_of_part(session, parts.all()[*part].clone(), wanted)
    });
    let answers = try_join_all(calls).await?;
    let mut texts = vec![None; ids.len()];
    let mut frames = Vec::with_capacity(answers.len());
    for ((frame, found), places) in answers.into_iter().zip(by_part.into_values()) {
        frames.push(frame);
        for (at, text) in places.into_iter().zip(found) {
            texts[at] = text;
        }
    }
    // The parts have the same window, over all time.
    let frame = frames.into_iter().max_by_key(|frame| frame.as_of).ok_or(ServerFailure::KeptChanging)?;
    Ok(Sheets { frame, texts })
}

async fn read_of_part(
    session: &Session,
    part: Arc<Part>,
    ids: Vec<SheetId>,
) -> Result<(Frame, Vec<Option<Arc<str>>>), ServerFailure> {
    let answer = session.ask(&part, &TEXTS, |moment, call| {
        call.key(moment.part.keys.sheets());
        for id in &ids {
            call.more(id);
        }
    });
    let ScriptAnswer { frame, mut reply, .. } = answer.await?;
    let mut texts = Vec::with_capacity(ids.len());
    for _ in &ids {
        texts.push(reply.maybe_text()?.map(Arc::from));
    }
    Ok((frame, texts))
}

/// Replaces a sheet, if it is `from`. Returns whether it was.
pub(super) async fn change(
    session: &Session,
    track: &BoardTrack,
    id: SheetId,
    (from, to): (Option<&str>, &str),
) -> Result<bool, ServerFailure> {
    let parts = session.parts_of(track);
    let part = &parts.all()[part_of(&parts, id)];
    let from = from.map_or_else(String::new, |text| format!("={text}"));
    let answer = session.ask(part, &CHANGE_SHEET, |moment, call| {
        call.key(moment.part.keys.sheets());
        call.arg("id", id).arg("from", &from).arg("to", to);
    });
    Ok(answer.await?.reply.count()? == 1)
}
