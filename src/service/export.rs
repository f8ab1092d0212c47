//! A whole ranking, read page by page.

use std::sync::Arc;

use super::{About, Cursor, Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::BoardTrack;
use crate::store::{Direction, NextTo, Page, Place};

/// The number of lines that an export reads in one store call.
const LINES: u64 = 1_000;

/// The position at which an export begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportStart {
    /// The export begins after this many lines.
    Offset(u64),
    /// The export begins after the place of a cursor, which must point forward.
    Cursor(Cursor),
}

/// A ranking from some line on, read page by page. Only a call of [`next_page`](Self::next_page) reads the store.
///
/// Each page shows one instant, and begins after the place of the last line of the page before. So a subject whose
/// score does not change is on exactly one of the pages. A subject that moves past the end of a page may be on two
/// pages or on none.
pub struct Export {
    service: Arc<Service>,
    /// Asked before each page whether it may still read.
    caller: Caller,
    track: BoardTrack,
    /// The position of the next page, or `None` after the last page of the ranking.
    next: Option<ExportStart>,
    /// The number of lines that may still be returned.
    left: u64,
}

impl Service {
    /// Returns an export of at most `limit` lines. Makes no store call.
    ///
    /// Returns [`ServiceError::InvalidQuery`] if the export would begin at a cursor that points backward.
    pub fn export(
        self: &Arc<Self>,
        caller: &Caller,
        track: &BoardTrack,
        start: ExportStart,
        limit: Option<u64>,
    ) -> Result<Export> {
        caller.require(Scope::Read)?;
        if let ExportStart::Cursor(cursor) = &start
            && cursor.next_to.direction == Direction::Backward
        {
            let detail = "an export reads forward; give the 'next' of a page, not its 'prev'".to_owned();
            return Err(ServiceError::InvalidQuery { field: "cursor", detail });
        }
        let (service, caller, track) = (self.clone(), caller.clone(), track.clone());
        let left = limit.unwrap_or(u64::MAX);
        Ok(Export { service, caller, track, next: Some(start), left })
    }
}

impl Export {
    /// Reads the next page, at most 1,000 lines; returns `None` after the last one. The first page may have no lines,
    /// and so may the last one.
    ///
    /// The pages after the first one read the board of the first page: if it was removed and defined again, returns
    /// [`ServiceError::StaleCursor`]. After an error the same page can be read again. Cancel safe: if the future is
    /// dropped before it is ready, no page is skipped.
    pub async fn next_page(&mut self) -> Result<Option<About<Page>>> {
        let limit = self.left.min(LINES);
        let Some(start) = self.next.as_ref().filter(|_| limit > 0) else { return Ok(None) };
        self.caller.require_current()?;
        let lines = u32::try_from(limit).unwrap_or(u32::MAX);
        let read = match start {
            ExportStart::Offset(offset) => self.service.page(&self.track, *offset, lines).await?,
            ExportStart::Cursor(cursor) => self.service.page_at(&self.track, cursor, lines).await?,
        };
        let About { of: track, answer: page } = &read;
        self.next = page.items.last().filter(|_| page.has_next()).map(|last| {
            let next_to = NextTo::after(Place::of(last));
            ExportStart::Cursor(Cursor { track: track.id(), next_to })
        });
        self.left = self.left.saturating_sub(page.items.len() as u64);
        self.track = track.clone();
        Ok(Some(read))
    }

    /// Returns the cursor after the last line that was returned: `None` before the first page, and if the ranking had
    /// no further line then.
    pub fn next(&self) -> Option<&Cursor> {
        match &self.next {
            Some(ExportStart::Cursor(cursor)) => Some(cursor),
            Some(ExportStart::Offset(_)) | None => None,
        }
    }
}
