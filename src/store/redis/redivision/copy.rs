//! Copying of the data of a frozen board to other partitions: the contents of every track, as an import merges them,
//! and the ids of items.

use std::sync::Arc;

use futures_util::future::{BoxFuture, try_join, try_join_all};
use redis::cmd;

use super::ids;
use super::lease::Lease;
use crate::board::{Board, BoardTrack, SourceNumber, Subject};
use crate::store::redis::imports::Counters;
use crate::store::redis::part::Part;
use crate::store::redis::removing::Noted;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;
use crate::store::redis::{boards, contents, describing, imports, moderating, reached, reads, timekeeping};
use crate::store::{Content, ContentsCursor, ContentsStep, ImportId, Merged, Piece, Result, StoreError};

/// The number of contents that are merged at a time for each partition. One script merges at most a few hundred.
const AT_ONCE: usize = 500;

/// A copy of the data of a frozen board.
pub(super) struct Copy {
    /// The board that has it.
    pub board: Arc<Board>,
    /// The note by which it is deleted if the board never gets it.
    pub noted: Noted,
}

impl Copy {
    /// Creates the partitions of a copy, without data.
    pub async fn begin(session: &Session, frozen: &Arc<Board>) -> Result<Self, ServerFailure> {
        let unusable = |error| ServerFailure::Corrupt(format!("the partitions of a copy: {error}"));
        let board = Arc::new(frozen.redivided().ok_or(ServerFailure::StaleEpoch)?.map_err(unusable)?);
        let noted = Noted::division(&board, timekeeping::look(session).await?);
        noted.write(session).await?;
        boards::create_parts(session, &board).await?;
        Ok(Self { board, noted })
    }

    /// Copies everything that the frozen board has.
    pub async fn fill(&self, session: &Session, frozen: &Arc<Board>, sources: &[SourceNumber]) -> Result<()> {
        let failed = |failure| session.servers.error(failure);
        let runs = session.server_runs(&self.board);
        let import = ImportId(rand::random());
        // Boxed, because the compiler would have to look deep into callers otherwise.
        let moderated: BoxFuture<'_, _> = Box::pin(moderating::copy(session, frozen, &self.board));
        moderated.await?;
        let reached: BoxFuture<'_, _> = Box::pin(reached::copy(session, (frozen, &self.board), sources));
        reached.await.map_err(failed)?;
        let lease = Lease::new(session, frozen);
        let keep = |subjects| lease.keep(subjects, 0);
        let attributes: BoxFuture<'_, _> = Box::pin(describing::copy(session, (frozen, &self.board), keep));
        attributes.await.map_err(failed)?;
        imports::open(session, &self.board, import).await.map_err(failed)?;
        // Together, because the pieces of a track follow each other. Large commands wait for their turns.
        let tracks = frozen.each_track().zip(self.board.each_track());
        let copies = tracks.map(|tracks| -> BoxFuture<'_, _> { Box::pin(copy_track(session, tracks, import, &lease)) });
        try_join_all(copies).await?;
        let rest = async {
            for (from, to) in frozen.each_track().zip(self.board.each_track()) {
                copy_notes(session, &from, &to).await?;
            }
            ids::copy(session, frozen, &self.board, &lease).await?;
            imports::cancel(session, &self.board, import).await
        };
        rest.await.map_err(failed)?;
        // A server that was restarted, or replaced by its replica, may have lost what it had of the copy.
        if session.server_runs(&self.board) != runs {
            let detail = "a server was restarted while the data was copied: begin the change again".to_owned();
            return Err(StoreError::EditionsBusy { detail });
        }
        Ok(())
    }
}

/// Copies the contents of a track and its numbers of events. The next contents are read while some are merged.
async fn copy_track(
    session: &Session,
    (from, to): (BoardTrack, BoardTrack),
    import: ImportId,
    lease: &Lease<'_>,
) -> Result<()> {
    let (source, target) = (session.parts_of(&from), session.parts_of(&to));
    let failed = |failure| session.servers.error(failure);
    let mut piece = Piece { number: 1, contents: Vec::new(), events: Vec::new() };
    let mut next = Some(ContentsCursor::default());
    while let Some(cursor) = next {
        let merge = async {
            if piece.contents.len() < AT_ONCE * target.count() {
                return Ok(0);
            }
            merge(session, &to, import, &piece).await?;
            Ok(piece.contents.len())
        };
        let read = async { contents::step(session, &source, cursor).await };
        let (merged, step) = try_join(merge, read).await?;
        if merged > 0 {
            piece = Piece { number: piece.number + 1, contents: Vec::new(), events: Vec::new() };
        }
        let ContentsStep { contents, next: following, .. } = step;
        piece.contents.extend(contents);
        next = following;
        lease.keep(merged, 0).await.map_err(failed)?;
    }
    let status = reads::status(session, &source).await.map_err(failed)?;
    piece.events = status.events;
    merge(session, &to, import, &piece).await?;
    lease.keep(piece.contents.len(), 0).await.map_err(failed)
}

async fn merge(session: &Session, to: &BoardTrack, import: ImportId, piece: &Piece) -> Result<()> {
    // A subject may be read twice, if its list expires meanwhile.
    let Merged { refused, .. } = imports::merge_own(session, to, (import, piece), Counters::Replace).await?;
    if refused > 0 {
        let about = |(subject, _): &(Subject, Content)| subject.to_string();
        let subject = piece.contents.first().map(about).unwrap_or_default();
        let detail =
            format!("{refused} contents, of '{subject}' or a subject after it, cannot be copied: audit the board");
        return Err(StoreError::Corrupt { detail });
    }
    Ok(())
}

/// Copies what the parts of a track have noted about samples and imports.
async fn copy_notes(session: &Session, from: &BoardTrack, to: &BoardTrack) -> Result<(), ServerFailure> {
    let read = |part: Arc<Part>| async move {
        let mut fields = cmd("HMGET");
        fields.arg(&part.keys.meta).arg("samples").arg("imports");
        let mut reply = session.read(&fields).await?;
        Ok::<_, ServerFailure>((reply.maybe_text()?, reply.maybe_text()?))
    };
    let source = session.parts_of(from);
    let noted = try_join_all(source.all().iter().cloned().map(read)).await?;
    let may_have_samples = noted.iter().any(|(samples, _)| samples.as_deref() != Some("0"));
    // Every part has been in every import.
    let imports = noted.into_iter().find_map(|(_, imports)| imports);
    let write = |part: Arc<Part>| {
        let imports = imports.clone();
        async move {
            let mut fields = cmd("HSET");
            fields.arg(&part.keys.meta).arg("samples").arg(if may_have_samples { "1" } else { "0" });
            if let Some(imports) = imports {
                fields.arg("imports").arg(imports);
            }
            session.servers.set(Channel::Calls, &fields).await.map(drop)
        }
    };
    try_join_all(session.parts_of(to).all().iter().cloned().map(write)).await.map(drop)
}
