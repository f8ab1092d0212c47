//! Failures of commands. The errors of the servers are interpreted only here.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::store::{Reached, StoreError, Unreadable};

/// The reason why a command was not done, or is not known to be done.
#[derive(Clone, Debug)]
pub(in crate::store::redis) enum ServerFailure {
    /// There is no connection: the command was never sent.
    Unreachable(RedisError),
    /// The command was sent, and the connection broke or no reply came: it may or may not have been done.
    Unknown(String),
    /// The server is not ready, or the hash slot is moving: nothing was done.
    Busy(RedisError),
    /// The server accepts no writes: nothing was done.
    ReadOnly(String),
    /// The server's data is not what this store writes.
    Corrupt(String),
    /// The board of this generation does not exist: nothing was done.
    BoardChanged,
    /// The board has another epoch: nothing was done.
    StaleEpoch,
    /// A step of the board's season is due: nothing was done.
    StepDue,
    /// The editions of the board cannot be exchanged now, for this reason: nothing was done.
    EditionsBusy(String),
    /// The board is frozen while its data is copied to this number of shards: nothing was done.
    Frozen(u32),
    /// An import into the board is open, which the call does not allow: nothing was done.
    ImportOpen,
    /// The import is not open, or a piece is not the next one, for this reason: nothing was done.
    NoImport(String),
    /// The store no longer has a clock, because it was emptied: nothing was done.
    Emptied,
    /// A step of a source cannot be made as it is: nothing was done.
    NotPassed(NotPassed),
    /// The board's definition cannot be read: nothing was done.
    Unreadable(Box<Unreadable>),
    /// The window, the head or the content changed in every attempt: nothing was done.
    KeptChanging,
    /// Any other error of the server.
    Other(RedisError),
}

/// Why a step of a source was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store::redis) enum NotPassed {
    /// The partition has reached something else of the source, or has not joined.
    Elsewhere(Option<Reached>),
    /// A sum is refused, so that its items have to be tried one by one.
    Singly,
    /// The entries with these numbers are samples, or remove values, while an import is open.
    Importing(Vec<usize>),
    /// It would take longer than a script may.
    TooLarge,
    /// A restart of the server has left half of a step, so that nothing can be said about what is counted.
    Halved,
}

/// The reply of a server that did not do a command. All variants except `Failed` are handled within
/// [`Servers`](super::Servers).
#[derive(Debug)]
pub(super) enum Refusal {
    /// The hash slot belongs to the node at this address: nothing was done.
    Moved(String),
    /// The hash slot is being moved, and its keys are already at this address: nothing was done.
    Ask(String),
    /// The server does not have the script: nothing was done.
    NoScript(RedisError),
    /// The server has become a replica: nothing was done.
    Demoted(String),
    /// The server is no longer the one that the Sentinels name: nothing was sent.
    Replaced,
    Failed(ServerFailure),
}

impl Refusal {
    /// Interprets an error that is the reply to a command.
    pub fn read(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoScript) => Refusal::NoScript(error),
            ErrorKind::Server(kind @ (ServerErrorKind::Moved | ServerErrorKind::Ask)) => {
                let to = error.redirect_node().map(|(address, _)| address.to_owned());
                match (to, kind) {
                    (Some(to), ServerErrorKind::Moved) => Refusal::Moved(to),
                    (Some(to), _) => Refusal::Ask(to),
                    (None, _) => Refusal::Failed(ServerFailure::Other(error)),
                }
            }
            _ => match ServerFailure::read(error) {
                ServerFailure::ReadOnly(reason) if reason.contains("READONLY") => Refusal::Demoted(reason),
                failure => Refusal::Failed(failure),
            },
        }
    }

    /// Converts to a failure, for a caller that does not follow redirections.
    pub fn into_failure(self) -> ServerFailure {
        match self {
            Refusal::Failed(failure) => failure,
            Refusal::Demoted(reason) => ServerFailure::ReadOnly(reason),
            Refusal::Replaced => ServerFailure::busy("another server has become the master".to_owned()),
            Refusal::NoScript(error) => ServerFailure::Other(error),
            Refusal::Moved(to) | Refusal::Ask(to) => ServerFailure::busy(format!("the slot is at {to}")),
        }
    }
}

impl From<ServerFailure> for Refusal {
    fn from(failure: ServerFailure) -> Self {
        Refusal::Failed(failure)
    }
}

impl ServerFailure {
    /// Creates a failure which says that nothing was done and that a retry may help soon.
    pub fn busy(why: String) -> Self {
        ServerFailure::Busy(RedisError::from((ErrorKind::Server(ServerErrorKind::TryAgain), "not ready", why)))
    }

    fn read(error: RedisError) -> Self {
        // Redis 6 puts the code of a script's error into a sentence of its own.
        let text = error.to_string();
        let says = |code: &str| error.code() == Some(code) || text.contains(code);
        match error.kind() {
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => ServerFailure::Unknown(text),
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown,
            ) => ServerFailure::Busy(error),
            _ if error.code() == Some("BUSY") => ServerFailure::Busy(error),
            ErrorKind::Server(ServerErrorKind::ReadOnly) => ServerFailure::ReadOnly(format!("READONLY: {text}")),
            _ if ["OOM", "READONLY", "MISCONF", "NOREPLICAS"].iter().any(|code| says(code)) => {
                ServerFailure::ReadOnly(text)
            }
            _ if says("WRONGTYPE") => ServerFailure::Corrupt(text),
            _ => ServerFailure::Other(error),
        }
    }

    /// Returns whether the server has no memory for what the command writes.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, ServerFailure::ReadOnly(text) if text.contains("OOM"))
    }

    /// Returns whether the command was certainly not done and may be sent again soon.
    pub fn is_passing(&self) -> bool {
        matches!(self, ServerFailure::Unreachable(_) | ServerFailure::Busy(_))
    }

    /// Returns whether the command may have been done.
    pub fn is_unknown(&self) -> bool {
        matches!(self, ServerFailure::Unknown(_))
    }

    /// Returns whether a command that can be repeated safely may succeed soon.
    pub fn may_pass(&self) -> bool {
        self.is_passing() || self.is_unknown()
    }

    /// Returns whether the board was found to have been removed, or to have other editions, or to be about to get them.
    pub fn is_outdated(&self) -> bool {
        matches!(self, ServerFailure::BoardChanged | ServerFailure::StaleEpoch | ServerFailure::StepDue)
    }

    /// Converts to an error of the store, whose servers are at `at`.
    pub fn at(self, at: &str) -> StoreError {
        match self {
            ServerFailure::Unreachable(error) | ServerFailure::Busy(error) => {
                StoreError::Unreachable { at: at.to_owned(), source: Box::new(error) }
            }
            ServerFailure::Unknown(_) => StoreError::TimedOut { at: at.to_owned() },
            ServerFailure::ReadOnly(reason) => StoreError::ReadOnly { reason },
            ServerFailure::Corrupt(detail) => StoreError::Corrupt { detail },
            ServerFailure::BoardChanged => StoreError::BoardChanged,
            ServerFailure::StaleEpoch | ServerFailure::StepDue => StoreError::StaleEpoch,
            ServerFailure::EditionsBusy(detail) => StoreError::EditionsBusy { detail },
            ServerFailure::Frozen(shards) => StoreError::Frozen { shards, retry_after: Duration::from_secs(5) },
            ServerFailure::ImportOpen => StoreError::ImportOpen,
            ServerFailure::NoImport(detail) => StoreError::NoImport { detail },
            ServerFailure::Emptied => StoreError::Emptied { at: at.to_owned() },
            ServerFailure::Unreadable(board) => StoreError::Unreadable { name: board.name, reason: board.reason },
            ServerFailure::NotPassed(NotPassed::Halved) => StoreError::Corrupt {
                detail: "a restart of the server has applied half of a step of a source, so it is not known which items are counted; remove the board, define it again and fill it from the log".to_owned(),
            },
            ServerFailure::KeptChanging | ServerFailure::NotPassed(_) => {
                StoreError::Overloaded { retry_after: Duration::from_secs(1) }
            }
            ServerFailure::Other(error) => StoreError::Backend { source: Box::new(error) },
        }
    }
}

/// What a server that is there, but not ready, has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::redis) enum Unready {
    /// It is loading its data, as after each of its starts. This ends when all of it is loaded.
    Loading,
    /// Something else keeps it from answering, such as a script that takes long, or a failover.
    Busy,
    /// It does not answer in time.
    Silent,
}

impl Unready {
    /// Creates the failure of a server that is loading its data and has come so far.
    pub fn loading(so_far: String) -> ServerFailure {
        ServerFailure::Busy(RedisError::from((
            ErrorKind::Server(ServerErrorKind::BusyLoading),
            "the server is loading its data",
            so_far,
        )))
    }

    /// Returns what keeps the server from being ready, if this is the reason for an error.
    pub fn of(error: &StoreError) -> Option<Self> {
        let source = match error {
            StoreError::Unreachable { source, .. } => source,
            StoreError::TimedOut { .. } => return Some(Unready::Silent),
            _ => return None,
        };
        let error: &RedisError = source.downcast_ref()?;
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::BusyLoading) => Some(Unready::Loading),
            ErrorKind::Server(
                ServerErrorKind::TryAgain | ServerErrorKind::MasterDown | ServerErrorKind::ClusterDown,
            ) => Some(Unready::Busy),
            _ if error.code() == Some("BUSY") => Some(Unready::Busy),
            _ if error.is_timeout() => Some(Unready::Silent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, detail: &str) -> ServerFailure {
        Refusal::read(redis::make_extension_error(code.to_owned(), Some(detail.to_owned()))).into_failure()
    }

    fn known(kind: ServerErrorKind, detail: &str) -> Refusal {
        Refusal::read(RedisError::from((ErrorKind::Server(kind), "said", detail.to_owned())))
    }

    #[test]
    fn server_errors_are_classified() {
        for (code, detail) in [
            ("OOM", "command not allowed when used memory > 'maxmemory'."),
            ("MISCONF", "Redis is configured to save RDB snapshots, but it is unable to persist to disk."),
            ("NOREPLICAS", "Not enough good replicas to write."),
            ("ERR", "Error running script: @user_script:9: -READONLY You can't write against a read only replica."),
        ] {
            assert!(
                matches!(said(code, detail), ServerFailure::ReadOnly(text) if text.contains(detail)),
                "{code} {detail}"
            );
        }
        assert!(
            matches!(known(ServerErrorKind::ReadOnly, "detail"), Refusal::Demoted(text) if text.contains("READONLY"))
        );
        for (code, detail) in [
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value"),
            ("ERR", "Error running script (call to f_1): @user_script:5: WRONGTYPE Operation against a key"),
        ] {
            assert!(matches!(said(code, detail), ServerFailure::Corrupt(_)), "{code} {detail}");
        }
        assert!(matches!(said("BUSY", "Redis is busy running a script."), ServerFailure::Busy(_)));
        assert!(matches!(said("NOPERM", "this user has no permissions"), ServerFailure::Other(_)));
        let reset = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(matches!(Refusal::read(reset), Refusal::Failed(ServerFailure::Unknown(_))));
    }

    #[test]
    fn cluster_redirections_and_retryable_errors_are_classified() {
        assert!(
            matches!(known(ServerErrorKind::Moved, "3999 10.0.0.1:6381"), Refusal::Moved(to) if to == "10.0.0.1:6381")
        );
        assert!(matches!(known(ServerErrorKind::Ask, "3999 :6381"), Refusal::Ask(to) if to == ":6381"));
        assert!(matches!(known(ServerErrorKind::Moved, "?"), Refusal::Failed(ServerFailure::Other(_))));
        assert!(matches!(known(ServerErrorKind::NoScript, "no"), Refusal::NoScript(_)));
        for kind in [
            ServerErrorKind::TryAgain,
            ServerErrorKind::ClusterDown,
            ServerErrorKind::BusyLoading,
            ServerErrorKind::MasterDown,
        ] {
            assert!(known(kind, "later").into_failure().is_passing(), "{kind:?}");
        }
        assert!(matches!(known(ServerErrorKind::CrossSlot, "no").into_failure(), ServerFailure::Other(_)));
    }

    #[test]
    fn a_server_that_is_not_ready_is_told_from_one_that_is_not_there() {
        let kept_by = |failure: ServerFailure| Unready::of(&failure.at("host:1"));
        assert_eq!(kept_by(Unready::loading("a half".to_owned())), Some(Unready::Loading));
        let loading = known(ServerErrorKind::BusyLoading, "Redis is loading the dataset in memory").into_failure();
        assert_eq!(kept_by(loading), Some(Unready::Loading));
        assert_eq!(kept_by(said("BUSY", "Redis is busy running a script.")), Some(Unready::Busy));
        assert_eq!(kept_by(known(ServerErrorKind::ClusterDown, "later").into_failure()), Some(Unready::Busy));
        let refused = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        assert_eq!(kept_by(ServerFailure::Unreachable(refused)), None);
        assert_eq!(kept_by(said("NOPERM", "this user has no permissions")), None);
    }

    #[test]
    fn only_failures_without_effect_are_passing() {
        let refused = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        assert!(ServerFailure::Unreachable(refused.clone()).is_passing() && ServerFailure::Busy(refused).is_passing());
        assert!(ServerFailure::busy("moving".to_owned()).is_passing());
        assert!(!ServerFailure::Unknown("no answer".to_owned()).is_passing());
        assert!(
            matches!(ServerFailure::Unknown(String::new()).at("host:1"), StoreError::TimedOut { at } if at == "host:1")
        );
    }
}
