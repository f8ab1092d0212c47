//! Tables of rows.
//!
//! A table is one hash, so a cluster stores it on one node. Its version is in a field of the same hash, so it is lost
//! only together with the rows.

use super::reply::Reply;
use super::scripts::{CHANGE_ROW, ROWS, ScriptCall};
use super::servers::ServerFailure;
use super::session::Session;
use super::version;
use crate::store::{Rows, TableName};

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowChange {
    /// The row was as expected, and was replaced.
    IsFrom,
    /// The row is different, so it was left.
    Differs,
    /// The table cannot have a further or a longer row.
    Full,
}

/// Returns the rows of a table, or `None` if the table has the version `known`.
pub(super) async fn read(
    session: &Session,
    table: TableName,
    known: Option<u64>,
) -> Result<Option<Rows>, ServerFailure> {
    let mut call = ScriptCall::default();
    call.key(session.keys.table(table));
    call.arg("known", known.map_or_else(String::new, |version| version.to_string()));
    let mut reply = session.call(&ROWS, &call).await?;
    match reply.text()?.as_str() {
        "unchanged" => Ok(None),
        "rows" => {
            let version = reply.text()?.parse().map_err(|_| damaged(table))?;
            let mut list = reply.part()?;
            let mut rows = Rows { version, rows: Default::default() };
            while !list.is_empty() {
                let (id, text) = (list.lossy_text()?, list.lossy_text()?);
                if !id.is_empty() {
                    rows.rows.insert(id, text);
                }
            }
            Ok(Some(rows))
        }
        "damaged" => Err(damaged(table)),
        other => Err(ServerFailure::Corrupt(format!("unexpected reply to a read of a table: '{other}'"))),
    }
}

/// Replaces a row by `to`, if it is `from`. A change whose reply is lost is sent once more.
pub(super) async fn change(
    session: &Session,
    table: TableName,
    id: &str,
    (from, to): (Option<&str>, Option<&str>),
) -> Result<RowChange, ServerFailure> {
    let row = |text: Option<&str>| text.map_or_else(String::new, |text| format!("={text}"));
    let change = |earlier: Option<u64>| async move {
        // Drawn for each attempt: a version must not return after the table had a different one.
        let version = version::draw();
        let mut call = ScriptCall::default();
        call.key(session.keys.table(table));
        call.arg("id", id).arg("from", row(from)).arg("to", row(to)).arg("version", version);
        call.arg("earlier", earlier.map_or_else(String::new, |version| version.to_string()));
        call.arg("most_rows", TableName::MAX_ROWS).arg("most_bytes", TableName::MAX_BYTES);
        (version, session.call(&CHANGE_ROW, &call).await)
    };
    let first = change(None).await;
    let outcome = outcome_of(table, first.1);
    let Err(lost @ ServerFailure::Unknown(_)) = outcome else { return outcome };
    match outcome_of(table, change(Some(first.0)).await.1) {
        Ok(RowChange::IsFrom) => Ok(RowChange::IsFrom),
        // The first attempt may have replaced the row, before it was changed again.
        Ok(RowChange::Differs | RowChange::Full) | Err(_) => Err(lost),
    }
}

fn outcome_of(table: TableName, answer: Result<Reply, ServerFailure>) -> Result<RowChange, ServerFailure> {
    match answer?.text()?.as_str() {
        "done" => Ok(RowChange::IsFrom),
        "differs" => Ok(RowChange::Differs),
        "full" => Ok(RowChange::Full),
        "damaged" => Err(damaged(table)),
        other => Err(ServerFailure::Corrupt(format!("unexpected reply to a change of a row: '{other}'"))),
    }
}

fn damaged(table: TableName) -> ServerFailure {
    ServerFailure::Corrupt(format!("the table '{table}' has no valid version"))
}
