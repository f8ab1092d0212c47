//! Boards as such, and whether the server is fit to hold them.

use std::sync::Arc;

use futures_util::future::join_all;
use redis::{Value, cmd};

use super::connection::{Failure, Links};
use super::reply::Reply;
use super::scripts::{ANNOUNCE, Call, DEFINE, UNDEFINE};
use super::session::{ATTEMPTS, Preamble, Session};
use super::version;
use super::view::View;
use crate::board::{Board, BoardName, Definition, Generation};
use crate::store::{Defined, Result, StoreError};

/// The oldest server whose commands the scripts use.
const OLDEST: (u32, u32) = (6, 2);

/// Defines a board. Its name is listed first, so that no board is ever missing from the list, and announced when it is
/// there, so that every instance knows that its own list is old.
pub(super) async fn define(session: &Session, name: &BoardName, definition: &Definition) -> Result<Defined> {
    let generation = Generation(rand::random());
    let board = Board::new(name.clone(), generation, definition.clone())
        .map_err(|error| StoreError::Setup { detail: format!("board '{name}': {error}") })?;
    let json = serde_json::to_string(definition).map_err(|error| StoreError::Backend { source: Box::new(error) })?;
    define_board(session, Arc::new(board), &json).await.map_err(|failure| session.links.error(failure))
}

async fn define_board(session: &Session, board: Arc<Board>, json: &str) -> Result<Defined, Failure> {
    list(session, board.name()).await?;
    let view = session.view(&board);
    let defined = create(session, &board, &view, json).await;
    if !matches!(defined, Ok(None)) {
        // It never came to be.
        session.forget(&board);
    }
    Ok(match defined? {
        None => {
            announce(session, &board).await?;
            Defined::Created(board)
        }
        Some(existing) if existing.definition() == board.definition() => {
            announce(session, &existing).await?;
            Defined::Unchanged(existing)
        }
        Some(existing) => Defined::Conflict(existing),
    })
}

/// Makes the list of boards another one, now that this board is there. Also for a board that was there before: whoever
/// created it may have ended in between, or be about to do this. Once is enough for an instance that is asked to define
/// the same board again and again, as clients do when they start.
async fn announce(session: &Session, board: &Board) -> Result<(), Failure> {
    let view = session.view(board);
    if !view.is_announced() {
        change_list(session, board.name(), None).await?;
        view.note_announced();
    }
    Ok(())
}

/// Lists the name of a board that is there; or takes the name of one off the list that was seen to be none at a
/// version of the list. `false`, and nothing done, if the list is another by now.
async fn change_list(session: &Session, name: &BoardName, gone_at: Option<u64>) -> Result<bool, Failure> {
    let mut call = Call::default();
    call.key(session.keys.names()).key(session.keys.version());
    call.arg(name).arg(version::draw()).args(gone_at);
    let mut reply = Reply::new(session.links.calls.call(&ANNOUNCE, &ANNOUNCE.command(&call)).await?)?;
    match reply.text()?.as_str() {
        "done" => Ok(true),
        "stale" => Ok(false),
        other => Err(Failure::Corrupt(format!("a change of the list of boards was answered '{other}'"))),
    }
}

/// Answers the board that exists already, if one does.
async fn create(session: &Session, board: &Board, view: &View, json: &str) -> Result<Option<Arc<Board>>, Failure> {
    let mut read = None;
    for _ in 0..ATTEMPTS {
        let window = board.window_at(read.unwrap_or_else(|| view.estimate(session.monotonic()).0));
        let mut call = Call::default();
        call.key(&view.keys.meta);
        if session.simulated {
            call.key(session.keys.clock());
        }
        let preamble = Preamble { window, low: window.head, high: window.end };
        call.args(session.preamble(board, view, &preamble)).arg(json);
        let mut reply = Reply::new(session.links.calls.call(&DEFINE, &DEFINE.command(&call)).await?)?;
        match reply.text()?.as_str() {
            "created" => return Ok(None),
            "exists" => return stored(board.name(), &reply.text()?, &reply.text()?).map(Some),
            "stale" => {
                let (now, reading) = (reply.time()?, reply.time()?);
                view.learn_time(reading, session.monotonic());
                read = Some(now);
            }
            other => return Err(Failure::Corrupt(format!("defining a board was answered '{other}'"))),
        }
    }
    Err(Failure::Restless)
}

async fn list(session: &Session, name: &BoardName) -> Result<(), Failure> {
    let mut command = cmd("SADD");
    command.arg(session.keys.names()).arg(name.as_str());
    session.links.calls.send(&command).await.map(drop)
}

/// A board as its meta key describes it.
fn stored(name: &BoardName, generation: &str, definition: &str) -> Result<Arc<Board>, Failure> {
    let damaged = |what: &dyn std::fmt::Display| Failure::Corrupt(format!("board '{name}': {what}"));
    let generation = u64::from_str_radix(generation, 16).map_err(|error| damaged(&error))?;
    let definition: Definition = serde_json::from_str(definition).map_err(|error| damaged(&error))?;
    Board::new(name.clone(), Generation(generation), definition).map(Arc::new).map_err(|error| damaged(&error))
}

pub(super) async fn board(session: &Session, name: &BoardName) -> Result<Option<Arc<Board>>, Failure> {
    let mut command = cmd("HMGET");
    command.arg(session.keys.meta(name)).arg("generation").arg("definition");
    match session.links.calls.send(&command).await? {
        Value::Array(values) if values.iter().all(|value| *value == Value::Nil) => Ok(None),
        value => {
            let mut reply = Reply::new(value)?;
            stored(name, &reply.text()?, &reply.text()?).map(Some)
        }
    }
}

/// All boards by name; one round trip for the names and one for all of them.
pub(super) async fn boards(session: &Session) -> Result<Vec<Arc<Board>>, Failure> {
    let mut command = cmd("SMEMBERS");
    command.arg(session.keys.names());
    let mut names = Vec::new();
    let listed = match session.links.calls.send(&command).await? {
        Value::Set(values) => Value::Array(values),
        other => other,
    };
    let mut reply = Reply::new(listed)?;
    while !reply.is_empty() {
        let text = reply.text()?;
        let name = BoardName::parse(&text).map_err(|_| Failure::Corrupt(format!("a board is named '{text}'")))?;
        names.push(name);
    }
    names.sort_unstable();
    let found = join_all(names.iter().map(|name| board(session, name))).await;
    found.into_iter().filter_map(Result::transpose).collect()
}

pub(super) async fn undefine(session: &Session, board: &Board) -> Result<bool, Failure> {
    let removed = session.ask(board, &UNDEFINE, |moment, call| {
        let existing = &moment.existing;
        call.arg(existing.slots.len());
        for start in existing.slots.iter() {
            call.key(moment.view.keys.slot(*start)).arg(start.millis());
        }
        for bucket in existing.buckets.iter() {
            call.key(moment.view.keys.dedupe(*bucket)).arg(bucket);
        }
    });
    match removed.await {
        Ok(_) => session.forget(board),
        Err(Failure::BoardChanged) => return Ok(false),
        Err(failure) => return Err(failure),
    }
    unlist(session, board.name()).await?;
    Ok(true)
}

/// Takes the name of a board that has gone off the list, unless somebody has defined it anew: whoever does that makes
/// the list another one before anybody is told, and then the name stays.
async fn unlist(session: &Session, name: &BoardName) -> Result<(), Failure> {
    let mut gone = false;
    for _ in 0..ATTEMPTS {
        let seen_at = version::current(session).await?;
        if board(session, name).await?.is_some() {
            break;
        }
        gone = change_list(session, name, Some(seen_at)).await?;
        if gone {
            break;
        }
    }
    // A name of no board does no harm. One may have come just before its name went, of which nobody has been told.
    if !gone || board(session, name).await?.is_some() {
        change_list(session, name, None).await?;
    }
    Ok(())
}

/// Writes a key that lasts a minute.
pub(super) async fn check(session: &Session) -> Result<(), Failure> {
    let mut command = cmd("SET");
    command.arg(session.keys.check()).arg(&session.instance).arg("PX").arg(60_000);
    session.links.calls.send(&command).await.map(drop)
}

/// Refuses a server that is too old or that may evict what we store.
pub(super) async fn check_server(links: &Links) -> Result<()> {
    let mut info = cmd("INFO");
    info.arg("server");
    let text = match links.calls.send(&info).await.map_err(|failure| links.error(failure))? {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::VerbatimString { text, .. } => text,
        _ => String::new(),
    };
    let version = text.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default();
    if parse_version(version).is_none_or(|version| version < OLDEST) {
        return Err(StoreError::Setup {
            detail: format!(
                "the server at {} is version '{version}'; Redis {}.{} or later, or Valkey, is needed",
                links.at, OLDEST.0, OLDEST.1
            ),
        });
    }
    let mut policy = cmd("CONFIG");
    policy.arg("GET").arg("maxmemory-policy");
    match links.calls.send(&policy).await {
        Ok(value) => match policy_of(value).as_deref() {
            Some("noeviction") => Ok(()),
            Some(policy) => Err(StoreError::Setup {
                detail: format!(
                    "the server at {} evicts keys when memory is full (maxmemory-policy {policy}), which would silently \
                     lose counts: run CONFIG SET maxmemory-policy noeviction, and set it in its configuration file",
                    links.at
                ),
            }),
            None => {
                warn_unread(&links.at);
                Ok(())
            }
        },
        // Hosted servers often forbid CONFIG.
        Err(Failure::Other(_)) => {
            warn_unread(&links.at);
            Ok(())
        }
        Err(failure) => Err(links.error(failure)),
    }
}

fn warn_unread(at: &str) {
    tracing::warn!(at, "cannot read the server's maxmemory-policy; make sure that it is noeviction");
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
