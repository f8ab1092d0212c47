//! Defining, listing and removing boards, and checks that the server can hold them.

use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use redis::{Value, cmd};

use super::division::Division;
use super::edition_tracks::EditionTracks;
use super::part::Part;
use super::removing::{self, Noted};
use super::reply::Reply;
use super::scripts::{ANNOUNCE, ANNOUNCED, DEFINE, ScriptCall, UNDEFINE};
use super::servers::{Channel, Node, ServerFailure, Servers};
use super::session::{ATTEMPTS, Preamble, Session};
use super::timekeeping;
use super::version;
use crate::board::{Board, BoardName, Definition, Epoch, Generation, Timestamp};
use crate::store::{Defined, Listing, Result, StoreError, Unreadable};

/// The oldest server version that has the commands of the scripts.
const OLDEST: (u32, u32) = (6, 2);

/// Defines a board. Its name is listed before it is created, so that no board is ever missing from the list. After it
/// was created it is announced, so that every instance detects that its own list is old.
pub(super) async fn define(session: &Session, board: Board) -> Result<Defined> {
    let refused = |error| StoreError::Setup { detail: format!("board '{}': {error}", board.name()) };
    let division = board.definition().shards.map(|shards| Division::choose(board.name(), shards)).transpose();
    let partitions = division.map_err(refused)?.and_then(|division| division.numbers());
    let board = board.with_partitions(partitions);
    if session.clock.refusal_to_define(session.monotonic()).is_some() {
        let failed = |failure| session.servers.error(failure);
        timekeeping::look(session).await.map_err(failed)?;
        let known = self::board(session, board.name()).await.map_err(failed)?;
        if let (None, Some(doubted)) = (known, session.clock.refusal_to_define(session.monotonic())) {
            return Err(doubted);
        }
    }
    let json =
        serde_json::to_string(board.definition()).map_err(|error| StoreError::Backend { source: Box::new(error) })?;
    define_board(session, Arc::new(board), &json).await.map_err(|failure| session.servers.error(failure))
}

async fn define_board(session: &Session, board: Arc<Board>, json: &str) -> Result<Defined, ServerFailure> {
    list(session, board.name()).await?;
    let has_one_meta = board.partitions().is_none() && board.tracks().len() == 1;
    let creation = match has_one_meta {
        true => create(session, &New::whole(session, &board, json)).await,
        false => create_divided(session, &board, json).await,
    };
    if !matches!(creation, Ok(Creation::Created { .. })) {
        session.forget(&board);
    }
    Ok(match creation? {
        Creation::Created { at } => {
            announce(session, &board).await?;
            if board.season().is_some() {
                // Only now its first period is known.
                session.forget(&board);
            }
            Defined::Created(Arc::new(Board::clone(&board).with_defined_at(at)))
        }
        Creation::Exists(existing) if existing.definition() == board.definition() => {
            announce(session, &existing).await?;
            Defined::Unchanged(existing)
        }
        Creation::Exists(existing) => {
            // Looking the board up also announces it, if it was not announced.
            self::board(session, existing.name()).await?;
            Defined::Conflict(existing)
        }
    })
}

/// Changes the list version, after a board was created or its editions were changed. This is also done for a board that
/// existed before: the instance that created it may have ended before it did this, or may be about to do it. An instance
/// does this once per board and epoch, even if it is requested to define the same board again and again, as clients do
/// when they start.
pub(super) async fn announce(session: &Session, board: &Arc<Board>) -> Result<(), ServerFailure> {
    let partitions = session.partitions_of(board);
    if !partitions.first().is_announced() {
        change_list(session, board.name(), None).await?;
        let mut call = ScriptCall::default();
        call.key(session.keys.meta(board.name()));
        call.arg("generation", board.generation()).arg("epoch", board.epoch());
        session.call(&ANNOUNCED, &call).await?;
        partitions.first().note_announced();
    }
    Ok(())
}

/// Has every instance detect that its own list of boards is old.
pub(super) async fn announce_again(session: &Session, board: &Board) -> Result<(), ServerFailure> {
    change_list(session, board.name(), None).await.map(drop)
}

/// Adds the name of an existing board to the list. With `gone_at`, removes the name of a board that did not exist at
/// that version of the list. Returns `false` and does nothing if the list has a different version by now.
async fn change_list(session: &Session, name: &BoardName, gone_at: Option<u64>) -> Result<bool, ServerFailure> {
    let change = || async {
        let mut call = ScriptCall::default();
        call.key(session.keys.names()).key(session.keys.version());
        // Drawn for each attempt: a version must not return after the list had a different one.
        call.arg("name", name).arg("version", version::draw());
        call.arg("gone_at", gone_at.map_or_else(String::new, |version| version.to_string()));
        session.call(&ANNOUNCE, &call).await
    };
    let mut answer = change().await;
    if matches!(answer, Err(ServerFailure::Unknown(_))) {
        answer = change().await;
    }
    match answer?.text()?.as_str() {
        "done" => Ok(true),
        "stale" => Ok(false),
        other => Err(ServerFailure::Corrupt(format!("unexpected reply to a change of the list of boards: '{other}'"))),
    }
}

/// The result of creating a meta key.
enum Creation {
    /// It was created: for the meta key of a board, at this time.
    Created { at: Option<Timestamp> },
    /// A board has it.
    Exists(Arc<Board>),
}

/// The input for creating a meta key.
struct New<'a> {
    /// The part whose clock is used.
    part: Arc<Part>,
    meta: String,
    /// The board's definition. Empty for the meta key of a part.
    definition: &'a str,
    /// The stored division of the board. Empty if the board is not divided, and for the meta key of a part.
    parts: String,
    /// The time from which on the key must not be created.
    until: Timestamp,
}

impl<'a> New<'a> {
    /// Returns the input for the meta key of a board, which is also that of its only part if the board is not divided.
    fn whole(session: &Session, board: &'a Arc<Board>, definition: &'a str) -> Self {
        let part = session.partitions_of(board).first().main().clone();
        let meta = session.keys.meta(board.name());
        let parts = Division::of_board(board).stored().unwrap_or_default();
        Self { part, meta, definition, parts, until: Timestamp::MAX }
    }

    /// Returns the tracks that the meta key names, if the board is in a later epoch than the first.
    fn current(&self) -> String {
        let board = self.part.track.board();
        let is_named = self.definition.is_empty() && board.epoch() != Epoch::default();
        if is_named { EditionTracks::of(board.edition()).print() } else { String::new() }
    }

    /// Returns the input for the meta key of one of several parts, or of a part of a track that is not the main one.
    fn part(part: &Arc<Part>, until: Timestamp) -> Self {
        Self { part: part.clone(), meta: part.keys.meta.clone(), definition: "", parts: String::new(), until }
    }
}

/// Creates a board that is divided or has several tracks: first the meta keys of its parts in all tracks, which cannot
/// be found before the board exists, then its own meta key, with which the board exists. Before that, a note with the
/// names of the parts is written, so that they are deleted if this call ends early.
///
/// An instance that finds the note removes the parts some minutes after [`removing::UNBORN`] has passed. From the end
/// of `UNBORN` on the board can no longer be created, which the script checks with the time that it reads itself. So no
/// board is created whose parts are being removed.
async fn create_divided(session: &Session, board: &Arc<Board>, json: &str) -> Result<Creation, ServerFailure> {
    match read_meta(session, board.name()).await? {
        Stored::None => {}
        Stored::Board { board, .. } => return Ok(Creation::Exists(board)),
        Stored::Unreadable(unreadable) => return Err(ServerFailure::Unreadable(Box::new(unreadable))),
    }
    let noted = Noted::unborn(board, timekeeping::look(session).await?);
    noted.write(session).await?;
    let until = noted.until();
    let partitions = session.partitions_of(board);
    let has_own_meta = |part: &&Arc<Part>| !part.track.is_main() || board.partitions().is_some();
    let parts = partitions.parts().filter(has_own_meta);
    try_join_all(parts.map(|part| async move { create(session, &New::part(part, until)).await })).await?;
    let creation = create(session, &New { until, ..New::whole(session, board, json) }).await?;
    match &creation {
        Creation::Created { .. } => noted.strike(session).await?,
        Creation::Exists(_) => removing::clear(session, &noted).await?,
    }
    Ok(creation)
}

/// Creates the meta keys of the parts to which the data of a board is copied.
pub(super) async fn create_parts(session: &Session, board: &Arc<Board>) -> Result<(), ServerFailure> {
    let partitions = session.partitions_of(board);
    let create = |part| async move { create(session, &New::part(part, Timestamp::MAX)).await };
    try_join_all(partitions.parts().map(create)).await.map(drop)
}

/// Creates a meta key, unless there is one.
async fn create(session: &Session, new: &New<'_>) -> Result<Creation, ServerFailure> {
    let part = &*new.part;
    let mut known = None;
    for _ in 0..ATTEMPTS {
        let now = session.time_for(&part.clock, known).await?;
        if now >= new.until && new.until < Timestamp::MAX {
            break;
        }
        let window = part.window_slots(now).window;
        let mut call = ScriptCall::default();
        call.key(&new.meta);
        let preamble = Preamble { window, now, low: window.head, high: window.end.min(new.until) };
        let run = session.servers.run(call.slot());
        for (name, argument) in session.preamble(part, &preamble) {
            call.arg(name, argument);
        }
        call.arg("definition", new.definition).arg("parts", &new.parts);
        call.arg("run", run.as_deref().unwrap_or_default()).arg("current", new.current());
        let mut reply = session.call(&DEFINE, &call).await?;
        match reply.text()?.as_str() {
            "created" => return Ok(Creation::Created { at: reply.maybe_time()? }),
            "exists" => {
                let (generation, definition) = (reply.text()?, reply.text()?);
                let parts = Some(reply.text()?).filter(|parts| !parts.is_empty());
                let defined_at = reply.maybe_time()?;
                if generation == part.generation().to_string() {
                    // An earlier attempt of this call created it.
                    return Ok(Creation::Created { at: defined_at });
                }
                let epoch = Some(reply.text()?).filter(|epoch| !epoch.is_empty());
                let editions = Some(reply.text()?).filter(|editions| !editions.is_empty());
                let found = StoredFields { generation, definition, parts, defined_at, epoch, editions };
                return found
                    .board(part.track.board().name())
                    .map(Creation::Exists)
                    .map_err(|unreadable| ServerFailure::Unreadable(Box::new(unreadable)));
            }
            "stale" => {
                let (now, reading) = (reply.time()?, reply.time()?);
                part.clock.learn(reading, session.monotonic());
                known = Some(now);
            }
            other => {
                return Err(ServerFailure::Corrupt(format!(
                    "unexpected reply to the definition of a board: '{other}'"
                )));
            }
        }
    }
    Err(ServerFailure::KeptChanging)
}

async fn list(session: &Session, name: &BoardName) -> Result<(), ServerFailure> {
    let mut command = cmd("SADD");
    command.arg(session.keys.names()).arg(name.as_str());
    session.servers.set(Channel::Calls, &command).await.map(drop)
}

/// The content of a board's meta key.
enum Stored {
    /// There is no board of this name.
    None,
    Board {
        board: Arc<Board>,
        announced: bool,
    },
    Unreadable(Unreadable),
}

/// The fields of a meta key that describe a board, as they are stored.
struct StoredFields {
    generation: String,
    definition: String,
    parts: Option<String>,
    /// `None` for boards that an earlier version defined, which did not record it.
    defined_at: Option<Timestamp>,
    /// `None` in the first epoch.
    epoch: Option<String>,
    /// What the definition does not say about the editions. `None` in the first epoch.
    editions: Option<String>,
}

impl StoredFields {
    fn board(self, name: &BoardName) -> Result<Arc<Board>, Unreadable> {
        let damaged = |what: &dyn std::fmt::Display| Unreadable {
            name: name.as_str().to_owned(),
            generation: self.generation.clone(),
            reason: what.to_string(),
        };
        let generation = u64::from_str_radix(&self.generation, 16)
            .map_err(|error| damaged(&format_args!("its generation: {error}")))?;
        let definition: Definition = serde_json::from_str(&self.definition).map_err(|error| damaged(&error))?;
        let read = |parts: &str| Division::read(name, definition.shards.unwrap_or_default(), parts);
        let division = self.parts.as_deref().map(read).transpose();
        let division = division.map_err(|error| damaged(&format_args!("its parts: {error}")))?;
        let epoch = Epoch::of_stored(self.epoch.as_deref());
        let epoch =
            epoch.ok_or_else(|| damaged(&format_args!("its epoch: '{}'", self.epoch.as_deref().unwrap_or(""))))?;
        let board = Board::new(name.clone(), Generation(generation), definition).map_err(|error| damaged(&error))?;
        let partitions = division.and_then(|division| division.numbers());
        let board = board.with_partitions(partitions).with_defined_at(self.defined_at);
        let board = board.with_stored_editions(epoch, self.editions.as_deref());
        board.map(Arc::new).map_err(|error| damaged(&format_args!("its editions: {error}")))
    }
}

async fn read_meta(session: &Session, name: &BoardName) -> Result<Stored, ServerFailure> {
    let meta = session.keys.meta(name);
    let mut command = cmd("HMGET");
    command.arg(&meta).arg("generation").arg("definition").arg("announced").arg("parts").arg("defined_at");
    command.arg("epoch").arg("editions");
    let fields = match session.servers.read(Channel::Calls, &command).await {
        Ok(Value::Array(fields)) => fields,
        Ok(other) => return Err(ServerFailure::Corrupt(format!("unexpected reply to HMGET: {other:?}"))),
        // The key has a different type: only this board is damaged.
        Err(ServerFailure::Corrupt(reason)) => {
            return Ok(Stored::Unreadable(Unreadable { name: name.to_string(), generation: String::new(), reason }));
        }
        Err(failure) => return Err(failure),
    };
    let text = |at: usize| match fields.get(at) {
        Some(Value::BulkString(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    let (generation, definition) = match (text(0), text(1)) {
        (None, None) => return Ok(Stored::None),
        (generation, definition) => (generation.unwrap_or_default(), definition.unwrap_or_default()),
    };
    // A text that is no time counts as if it were not recorded.
    let defined_at = text(4).and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
    let fields = StoredFields { generation, definition, parts: text(3), defined_at, epoch: text(5), editions: text(6) };
    Ok(match fields.board(name) {
        Ok(board) => Stored::Board { board, announced: text(2).is_some() },
        Err(unreadable) => Stored::Unreadable(unreadable),
    })
}

/// Looks a board up. A board must not be returned before other instances can find it. So if it is not announced yet,
/// because the instance that defines it has not done it yet or has ended, it is announced first.
pub(super) async fn board(session: &Session, name: &BoardName) -> Result<Option<Arc<Board>>, ServerFailure> {
    match read_meta(session, name).await? {
        Stored::None => Ok(None),
        Stored::Board { board, announced } => {
            if !announced {
                announce(session, &board).await?;
            }
            Ok(Some(board))
        }
        Stored::Unreadable(unreadable) => Err(ServerFailure::Unreadable(Box::new(unreadable))),
    }
}

/// Returns the board of this name as it is stored now, without announcing it.
pub(super) async fn stored(session: &Session, name: &BoardName) -> Result<Option<Arc<Board>>, ServerFailure> {
    match read_meta(session, name).await? {
        Stored::None => Ok(None),
        Stored::Board { board, .. } => Ok(Some(board)),
        Stored::Unreadable(unreadable) => Err(ServerFailure::Unreadable(Box::new(unreadable))),
    }
}

/// Returns the board as it is stored now, in whichever epoch, or an error if it was removed or defined again.
pub(super) async fn stored_again(session: &Session, board: &Board) -> Result<Arc<Board>, ServerFailure> {
    let found = stored(session, board.name()).await?;
    found.filter(|found| found.generation() == board.generation()).ok_or(ServerFailure::BoardChanged)
}

/// Returns whether a board was removed, or its name belongs to a different board by now. Returns `false` if this cannot
/// be determined.
pub(super) async fn is_gone(session: &Session, board: &Board) -> bool {
    match read_meta(session, board.name()).await {
        Ok(Stored::None) => true,
        Ok(Stored::Board { board: found, .. }) => found.generation() != board.generation(),
        Ok(Stored::Unreadable(_)) | Err(_) => false,
    }
}

/// Returns all boards by name, in one round trip for the names and one for all boards.
pub(super) async fn boards(session: &Session) -> Result<Listing, ServerFailure> {
    let mut command = cmd("SMEMBERS");
    command.arg(session.keys.names());
    let listed = Reply::texts(session.servers.read(Channel::Calls, &command).await?)?;
    let (mut names, mut listing) = (Vec::new(), Listing::default());
    for text in listed {
        match BoardName::parse(&text) {
            Ok(name) => names.push(name),
            Err(error) => {
                let reason = format!("its name: {error}");
                listing.unreadable.push(Unreadable { name: text, generation: String::new(), reason });
            }
        }
    }
    names.sort_unstable();
    let found = join_all(names.iter().map(|name| read_meta(session, name))).await;
    let mut without_board = Vec::new();
    for (name, stored) in names.iter().zip(found) {
        match stored? {
            Stored::None => without_board.push(name),
            Stored::Board { board, announced } => {
                if !announced {
                    announce(session, &board).await?;
                }
                listing.boards.push(board);
            }
            Stored::Unreadable(unreadable) => listing.unreadable.push(unreadable),
        }
    }
    for name in session.health.long_missing(&without_board, session.monotonic()) {
        // The instance that defined or removed the board ended early. If this fails, the next listing tries again.
        if let Err(failure) = unlist(session, &name).await {
            tracing::warn!(board = name.as_str(), ?failure, "the name of a removed board remains in the list for now");
        }
    }
    Ok(listing)
}

/// Removes a board. First a note of its data is written, so that the data is deleted even if this instance ends early.
pub(super) async fn undefine(session: &Session, board: &Arc<Board>) -> Result<bool, ServerFailure> {
    let removed = Noted::removed(board);
    removed.write(session).await?;
    let mut call = ScriptCall::default();
    call.key(session.keys.meta(board.name())).arg("generation", board.generation()).arg("epoch", board.epoch());
    let mut answer = session.call(&UNDEFINE, &call).await;
    let is_unknown = matches!(answer, Err(ServerFailure::Unknown(_)));
    if is_unknown {
        answer = session.call(&UNDEFINE, &call).await;
    }
    match answer?.text()?.as_str() {
        "removed" => {}
        // Most likely the first attempt removed it, and its reply was lost.
        "gone" if is_unknown => {}
        "gone" => {
            // The instance that removed it may still be deleting its data, or may have ended.
            removing::begin(session, &removed).await?;
            return Ok(false);
        }
        // The note stays, which does no harm: the data of a board that exists is not deleted.
        "stale_epoch" => {
            session.forget(board);
            return Err(ServerFailure::StaleEpoch);
        }
        other => return Err(ServerFailure::Corrupt(format!("unexpected reply to the removal of a board: '{other}'"))),
    }
    session.forget(board);
    removed.close(session).await?;
    unlist(session, board.name()).await?;
    removing::begin(session, &removed).await?;
    Ok(true)
}

/// Removes the name of a board that no longer exists from the list, unless it was defined again in the meantime. A
/// definition changes the list version before it returns the board to any caller, and then the name stays.
async fn unlist(session: &Session, name: &BoardName) -> Result<(), ServerFailure> {
    let mut gone = false;
    for _ in 0..ATTEMPTS {
        let seen_at = version::current(session).await?;
        if !matches!(read_meta(session, name).await?, Stored::None) {
            break;
        }
        gone = change_list(session, name, Some(seen_at)).await?;
        if gone {
            break;
        }
    }
    // A listed name without a board does no harm. But a board may have been created just before its name was removed.
    // No caller has received that board yet.
    if !gone || !matches!(read_meta(session, name).await?, Stored::None) {
        change_list(session, name, None).await?;
    }
    Ok(())
}

/// Returns an error for servers that are too old, that may evict stored data, or whose topology differs from the
/// address.
pub(super) async fn check_server(servers: &Servers) -> Result<()> {
    for (node, info) in servers.identify().await? {
        if parse_version(&info.version).is_none_or(|version| version < OLDEST) {
            return Err(StoreError::Setup {
                detail: format!(
                    "the server at {} is version '{}'; Redis {}.{} or later, or Valkey, is needed",
                    node.at(),
                    info.version,
                    OLDEST.0,
                    OLDEST.1
                ),
            });
        }
        if !check_policy(&node).await? {
            let at = node.at();
            tracing::warn!(at, "cannot read the server's maxmemory-policy; make sure that it is noeviction");
        }
        if servers.is_cluster()
            && let Err(failure @ ServerFailure::Other(_)) = node.check_asking().await
        {
            let reason = failure.at(node.at()).to_string();
            let at = node.at();
            tracing::warn!(
                at,
                reason,
                "the user may not send ASKING: while a hash slot moves, calls about its boards fail"
            );
        }
    }
    Ok(())
}

/// Returns an error for a server that may evict stored data. Returns `false` if the server does not report its policy.
pub(super) async fn check_policy(node: &Node) -> Result<bool> {
    let mut policy = cmd("CONFIG");
    policy.arg("GET").arg("maxmemory-policy");
    match node.send(Channel::Calls, &policy).await {
        Ok(value) => match policy_of(value).as_deref() {
            Some("noeviction") => Ok(true),
            Some(policy) => Err(StoreError::Setup {
                detail: format!(
                    "the server at {} evicts keys when memory is full (maxmemory-policy {policy}), which would silently \
                     lose counts: run CONFIG SET maxmemory-policy noeviction, and set it in its configuration file",
                    node.at()
                ),
            }),
            None => Ok(false),
        },
        // Hosted servers often forbid CONFIG.
        Err(ServerFailure::Other(_)) => Ok(false),
        Err(failure) => Err(failure.at(node.at())),
    }
}

fn policy_of(value: Value) -> Option<String> {
    let value = match value {
        Value::Map(pairs) => pairs.into_iter().next()?.1,
        Value::Array(values) => values.into_iter().nth(1)?,
        _ => return None,
    };
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(parse_version("7.0.15"), Some((7, 0)));
        assert_eq!(parse_version("6.2.0\r"), Some((6, 2)));
        assert!(parse_version("6.0.16").is_some_and(|version| version < OLDEST));
        assert!(parse_version("10.1").is_some_and(|version| version > OLDEST));
        for bad in ["", "7", "x.y"] {
            assert_eq!(parse_version(bad), None, "{bad}");
        }
    }
}
