//! Bringing a partition from the epoch in which it is to that of its board.

use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::cmd;

use super::steps::{Pair, Step};
use crate::board::{Board, Epoch, Timestamp, TrackId, Window};
use crate::store::redis::division::Division;
use crate::store::redis::edition_tracks::EditionTracks;
use crate::store::redis::part::Part;
use crate::store::redis::partition::Partition;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{EDITIONS, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ATTEMPTS, Preamble, Session};

/// What follows the epoch in a partition that is brought forward in several steps, once for each step before the last
/// one. No instance reads or writes in such an epoch.
const HALFWAY: char = '~';

/// What the meta key of a partition says about its editions.
#[derive(Clone, Debug)]
struct CurrentState {
    /// As it is stored.
    epoch: String,
    pair: Pair,
}

/// The fields of the own meta key of a board that say what its editions are.
pub(super) struct Form {
    pub definition: String,
    pub editions: String,
}

impl Form {
    pub fn of(board: &Board) -> Result<Self, ServerFailure> {
        let unwritable = || ServerFailure::Corrupt("the editions of a board cannot be written as JSON".to_owned());
        let definition = serde_json::to_string(board.definition()).map_err(|_| unwritable())?;
        Ok(Self { definition, editions: board.stored_editions().ok_or_else(unwritable)? })
    }
}

impl CurrentState {
    async fn read(session: &Session, partition: &Partition) -> Result<Self, ServerFailure> {
        let (part, board) = (partition.main(), partition.board());
        let mut fields = cmd("HMGET");
        fields.arg(&part.keys.meta).arg("generation").arg("epoch").arg("current").arg("other");
        let mut reply = session.read(&fields).await?;
        if reply.maybe_text()?.is_none_or(|generation| generation != part.generation().to_string()) {
            return Err(ServerFailure::BoardChanged);
        }
        let epoch = reply.maybe_text()?.unwrap_or_else(|| Epoch::default().to_string());
        let read = |text: String| {
            EditionTracks::parse(&text)
                .ok_or_else(|| ServerFailure::Corrupt(format!("the tracks '{text}' of an edition")))
        };
        let current = reply.maybe_text()?.map(read).transpose()?;
        let current = current.unwrap_or_else(|| EditionTracks::of_first_edition(board.generation()));
        let pair = Pair { current, other: reply.maybe_text()?.map(read).transpose()? };
        Ok(Self { epoch, pair })
    }

    /// Returns whether its epoch comes before that of the board, or is on the way to it.
    fn is_before(&self, board: &Board) -> bool {
        let number = self.epoch.trim_end_matches(HALFWAY);
        // The first epoch is not stored.
        let known = Epoch::of_stored(Some(number).filter(|number| *number != Epoch::default().to_string()));
        known.is_some_and(|known| known < board.epoch() || number != self.epoch && known == board.epoch())
    }
}

/// Changes a board that is not divided from its present epoch, that of `from`, to the next one.
pub(super) async fn change_whole(
    session: &Session,
    from: &Board,
    board: &Arc<Board>,
    partition: &Partition,
) -> Result<(), ServerFailure> {
    let state = CurrentState::read(session, partition).await?;
    if state.epoch != from.epoch().to_string() {
        return Err(ServerFailure::StaleEpoch);
    }
    step(session, board, partition, &state, true).await
}

/// Brings a partition of the board to its epoch, with all of its tracks. Returns whether it, or one of them, was behind.
pub(super) async fn bring(session: &Session, board: &Arc<Board>, partition: &Partition) -> Result<bool, ServerFailure> {
    let mut was_behind = false;
    for _ in 0..ATTEMPTS {
        let state = CurrentState::read(session, partition).await?;
        let is_there = state.epoch == board.epoch().to_string();
        if is_there && !has_left_behind(session, partition).await? {
            return Ok(was_behind);
        }
        if !is_there && !state.is_before(board) {
            return Err(ServerFailure::StaleEpoch);
        }
        was_behind = true;
        match step(session, board, partition, &state, false).await {
            // If not, another instance has made it first.
            Ok(()) | Err(ServerFailure::StaleEpoch) => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(ServerFailure::KeptChanging)
}

/// Makes the next step.
async fn step(
    session: &Session,
    board: &Arc<Board>,
    partition: &Partition,
    state: &CurrentState,
    is_own: bool,
) -> Result<(), ServerFailure> {
    let target = Pair::of(board);
    let step = state.pair.next_step(target);
    let after = state.pair.after(step);
    let is_last = after.next_step(target) == Step::Nothing;
    if is_own && !is_last {
        return Err(ServerFailure::Corrupt("the editions of a board are not those that it has tracks of".to_owned()));
    }
    let form = match is_own {
        true => Form::of(board)?,
        false => Form { definition: String::new(), editions: String::new() },
    };
    let main = partition.main();
    let mut known = None;
    for _ in 0..ATTEMPTS {
        let now = session.time_for(&main.clock, known).await?;
        let mut call = ScriptCall::default();
        call.key(&main.keys.meta);
        let tag = tag_of(board, partition);
        let is_sealed = |tracks: EditionTracks| board.archive().iter().any(|sealed| sealed.id() == tracks.first);
        let staying = staying(session, board, &tag, state.pair, step);
        for meta in &staying {
            call.key(meta);
        }
        let attached = match step {
            Step::Attach(tracks) => tracks_at(board, partition, tracks, now),
            // A period that is closed must not have ended yet. A simulated clock stands at its end.
            Step::Nothing if is_own && board.is_manual() && !session.simulated => {
                vec![(main.track.id(), main.window_slots(now).window)]
            }
            _ => Vec::new(),
        };
        add_board_arguments(session, board, &mut call, &state.epoch, Some((partition, &attached)));
        let (action, changed) = match step {
            Step::Attach(tracks) => ("attach", Some(tracks)),
            Step::Detach(tracks) if is_sealed(tracks) => ("seal", None),
            Step::Detach(tracks) => ("detach", Some(tracks)),
            Step::Exchange => ("exchange", None),
            Step::Nothing => ("epoch", None),
        };
        if let Some(tracks) = changed {
            call.key(session.keys.other(&tag, tracks.first).meta);
            for id in tracks.further_ids() {
                call.key(session.keys.further(&tag, id).meta);
            }
        }
        let leaving = state.pair.current.first;
        if step == Step::Exchange {
            call.key(session.keys.other(&tag, after.current.first).meta).key(session.keys.other(&tag, leaving).meta);
        }
        let next = match is_last {
            true => board.epoch().to_string(),
            false => format!("{}{HALFWAY}{}", board.epoch(), state.epoch.trim_start_matches(|c| c != HALFWAY)),
        };
        call.arg("next", next).arg("action", action);
        call.arg("definition", &form.definition).arg("editions", &form.editions).arg("stay", staying.len());
        call.arg("current", after.current.print())
            .arg("other", after.other.map_or_else(String::new, EditionTracks::print));
        call.arg("leaving", leaving).arg("run", session.servers.run(main.slot()).as_deref().unwrap_or_default());
        call.arg("parts", if is_own { Division::of_board(board).stored().unwrap_or_default() } else { String::new() });
        let is_decided_again = !matches!(step, Step::Nothing) && is_to_be_announced(board);
        call.arg("announced", if is_decided_again { "" } else { "1" });
        for (id, window) in &attached {
            call.more(id).more(window.floor.millis()).more(window.head.millis());
        }
        match read_done(&mut session.call(&EDITIONS, &call).await?)? {
            None => return Ok(()),
            Some((now, reading)) => {
                main.clock.learn(reading, session.monotonic());
                known = Some(now);
            }
        }
    }
    Err(ServerFailure::KeptChanging)
}

/// Returns the meta keys of all tracks of a partition that a step leaves where they are, beside that of the main track of
/// the current edition. A track that is missing here stays in the epoch before, so that nothing can be written.
fn staying(session: &Session, board: &Board, tag: &str, pair: Pair, step: Step) -> Vec<String> {
    let further = |tracks: EditionTracks| tracks.further_ids().map(|id| session.keys.further(tag, id).meta);
    let main = |tracks: EditionTracks| session.keys.other(tag, tracks.first).meta;
    let archive = || board.archive().iter().map(EditionTracks::of);
    let mut staying: Vec<String> = further(pair.current).collect();
    match (step, pair.other) {
        // Its main track becomes the current one.
        (Step::Exchange, Some(other)) => staying.extend(further(other)),
        (Step::Nothing | Step::Attach(_), Some(other)) => {
            staying.extend(std::iter::once(main(other)).chain(further(other)))
        }
        // If it is sealed, it is one of the archive.
        (Step::Detach(_), _) | (_, None) => {}
    }
    staying.extend(archive().flat_map(|sealed| std::iter::once(main(sealed)).chain(further(sealed))));
    staying
}

/// Returns whether another track than the main one of the current edition is not in the epoch of its partition, which is
/// that of the board: after a server that died within a change had kept a part of it, and after changes by versions that
/// left tracks behind.
async fn has_left_behind(session: &Session, partition: &Partition) -> Result<bool, ServerFailure> {
    let epoch = partition.board().epoch().to_string();
    let is_behind = |part: &Arc<Part>| {
        let (part, epoch) = (part.clone(), &epoch);
        async move {
            let mut fields = cmd("HMGET");
            fields.arg(&part.keys.meta).arg("generation").arg("epoch");
            let mut reply = session.read(&fields).await?;
            let (generation, found) = (reply.maybe_text()?, reply.maybe_text()?);
            Ok(generation.is_some() && found.unwrap_or_else(|| Epoch::default().to_string()) != *epoch)
        }
    };
    let behind = try_join_all(partition.parts()[1..].iter().map(is_behind)).await?;
    Ok(behind.contains(&true))
}

/// Returns whether every instance must learn of changes of a board's editions: each of them decides by the definitions
/// which events it sends to the board. All periods of a season have one definition.
pub(super) fn is_to_be_announced(board: &Board) -> bool {
    board.season().is_none()
}

/// Returns the hash tag of a partition.
fn tag_of(board: &Board, partition: &Partition) -> String {
    let division = Division::of_board(board);
    let own = division.tags().nth(partition.number()).map(str::to_owned);
    own.unwrap_or_else(|| board.name().to_string())
}

/// Returns the tracks of an edition, with the window of each at this time.
fn tracks_at(board: &Board, partition: &Partition, tracks: EditionTracks, now: Timestamp) -> Vec<(TrackId, Window)> {
    let edition = board.editions().iter().find(|edition| edition.id() == tracks.first);
    let numbers = edition.map(|edition| edition.numbers()).unwrap_or_default();
    let parts = &partition.parts()[numbers];
    let window = |part: &Part| {
        let window = part.window_slots(now).window;
        // A period that has ended meanwhile begins all the same.
        Window { end: part.track.calendar().next(window.head), ..window }
    };
    parts.iter().map(|part| (part.track.id(), window(part))).collect()
}

/// Adds the arguments of every script about a board. `epoch` is the one that is stored. The arguments are valid as long
/// as the new tracks have these windows.
pub(super) fn add_board_arguments(
    session: &Session,
    board: &Arc<Board>,
    call: &mut ScriptCall,
    epoch: &str,
    of: Option<(&Partition, &[(TrackId, Window)])>,
) {
    let partitions = session.partitions_of(board);
    let (partition, attached) = of.unwrap_or((partitions.first(), &[]));
    let low = attached.iter().map(|(_, window)| window.head).max().unwrap_or(Timestamp::EPOCH);
    let high = attached.iter().map(|(_, window)| window.end).min().unwrap_or(Timestamp::MAX);
    let window = Window { floor: low, head: low, end: high };
    for (name, argument) in session.preamble(partition.main(), &Preamble { window, now: low, low, high }) {
        call.arg(name, if name == "epoch" { epoch.to_owned() } else { argument });
    }
}

/// Reads the reply of the script: `None` if the change is made, otherwise the time at which the arguments were not
/// valid, and the reading of the clock.
pub(super) fn read_done(reply: &mut Reply) -> Result<Option<(Timestamp, Timestamp)>, ServerFailure> {
    match reply.text()?.as_str() {
        "done" => Ok(None),
        "stale" => Ok(Some((reply.time()?, reply.time()?))),
        "board_changed" => Err(ServerFailure::BoardChanged),
        "stale_epoch" => Err(ServerFailure::StaleEpoch),
        "importing" => Err(ServerFailure::ImportOpen),
        "damaged" => Err(ServerFailure::Corrupt(reply.text()?)),
        other => Err(ServerFailure::Corrupt(format!("unexpected reply to a change of editions: '{other}'"))),
    }
}
