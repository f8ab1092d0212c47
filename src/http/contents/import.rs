//! Lines of contents that are merged into a board.

use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::lines::{ReceivedEnd, ReceivedLine, VERSION};
use super::parts;
use crate::access::Caller;
use crate::board::BoardName;
use crate::http::items::NdjsonLine;
use crate::http::items::stream::LineHandler;
use crate::http::state::HttpState;
use crate::service::{self, ImportId, ImportSource, ImportState, Merged, ServiceError};

/// What became of the lines of a request.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct ImportReceipt {
    /// Number of contents that are merged.
    #[schema(example = 4_000)]
    merged: u64,
    /// Number of contents whose slots no longer count.
    #[schema(example = 0)]
    expired: u64,
    /// Number of contents that would exceed the bound of a slot together with what is there, or whose slots are newer
    /// than the newest one of the board.
    #[schema(example = 0)]
    refused: u64,
    /// Number of contents that earlier requests have merged.
    #[schema(example = 0)]
    repeated: u64,
    /// For each track of the contents, the number of the last line that is merged. Continue after it. Of a track that
    /// the board does not need it is null.
    through: Vec<Option<u64>>,
    /// Whether the import has ended.
    #[schema(example = false)]
    ended: bool,
}

/// The outcome of a portion of lines.
pub(super) struct Outcome {
    merged: Merged,
    through: Vec<u64>,
    has_ended: bool,
}

/// The handler of a stream of contents.
pub(super) struct ImportLines<'a> {
    pub(super) state: &'a HttpState,
    pub(super) caller: &'a Caller,
    pub(super) name: &'a BoardName,
    /// The import of the first line. Locked by one portion at a time, because there is one at a time.
    import: Mutex<Option<ImportState>>,
}

/// A line with its number, or `None` if it is too long. A line is parsed when it is merged, because its contents take
/// several times the memory of its text.
pub(super) type ImportPortion = Vec<(u64, Option<Box<[u8]>>)>;

impl<'a> ImportLines<'a> {
    pub(super) fn new(state: &'a HttpState, caller: &'a Caller, name: &'a BoardName) -> Self {
        Self { state, caller, name, import: Mutex::default() }
    }

    async fn handle(&self, text: &[u8], outcome: &mut Outcome) -> service::Result<()> {
        let invalid = |detail: String| ServiceError::InvalidContents { line: None, detail };
        let mut current = self.import.lock().await;
        let line =
            ReceivedLine::parse(text).map_err(|error| invalid(format!("the line is not one of contents: {error}")))?;
        match (line, &mut *current) {
            (ReceivedLine::Header(header), None) => {
                if header.contents != VERSION {
                    let version = header.contents;
                    return Err(invalid(format!("the contents have the form {version}; this version reads {VERSION}")));
                }
                let id = ImportId::parse(&header.export)
                    .ok_or_else(|| invalid("'export' must be 16 hex digits".to_owned()))?;
                let source = ImportSource { id, definition: header.definition, as_of: header.as_of };
                *current = Some(self.state.service.begin_import(self.caller, self.name, source).await?);
            }
            (_, None) => return Err(invalid("the first line must be the first line of the contents".to_owned())),
            (ReceivedLine::Header(_), Some(_)) => {
                return Err(invalid("only the first line may be the first line of contents".to_owned()));
            }
            (ReceivedLine::Part(_) | ReceivedLine::End(_), Some(ImportState::Ended)) => {}
            (ReceivedLine::Part(line), Some(ImportState::Open(import))) => {
                let moderated = parts::moderated(&line, import.has_keys()).map_err(invalid)?;
                let described = parts::described(&line, import.has_keys()).map_err(invalid)?;
                let part = parts::part(&line, import.kind(), import.has_keys()).map_err(invalid)?;
                if !moderated.is_empty() {
                    import.moderate(&moderated).await?;
                }
                if !described.is_empty() {
                    import.describe(&described).await?;
                }
                outcome.merged.add(import.merge(&part).await?);
            }
            (ReceivedLine::End(ReceivedEnd { complete: false, .. }), Some(ImportState::Open(_))) => {
                return Err(invalid("the contents are not complete, so the import stays open".to_owned()));
            }
            (ReceivedLine::End(end), Some(ImportState::Open(import))) => {
                import.complete(&end.last).await?;
                *current = Some(ImportState::Ended);
            }
        }
        match &*current {
            Some(ImportState::Open(import)) => outcome.through = import.through(),
            Some(ImportState::Ended) => outcome.has_ended = true,
            None => {}
        }
        Ok(())
    }
}

impl LineHandler for ImportLines<'_> {
    type Portion = ImportPortion;
    type Outcomes = Outcome;
    type Receipt = ImportReceipt;

    /// The lines of a track are merged in their order.
    fn max_in_flight(&self) -> usize {
        1
    }

    /// So that the problem of a line says what became of those before it.
    fn max_lines(&self) -> usize {
        1
    }

    fn new_portion(&self, _lines: usize) -> ImportPortion {
        Vec::new()
    }

    fn parse_line(&self, portion: &mut ImportPortion, number: u64, line: NdjsonLine<'_>) {
        portion.push((number, if let NdjsonLine::Text(text) = line { Some(text.into()) } else { None }));
    }

    async fn send(&self, portion: &mut ImportPortion) -> service::Result<Outcome> {
        let mut outcome = Outcome { merged: Merged::default(), through: Vec::new(), has_ended: false };
        for (number, text) in portion {
            let handled = match text {
                Some(text) => self.handle(text, &mut outcome).await,
                None => {
                    let detail = "the line is longer than the setting 'max_line' allows".to_owned();
                    Err(ServiceError::InvalidContents { line: None, detail })
                }
            };
            handled.map_err(|error| match error {
                ServiceError::InvalidContents { line: None, detail } => {
                    ServiceError::InvalidContents { line: Some(*number), detail }
                }
                error => error,
            })?;
        }
        Ok(outcome)
    }

    fn record(&self, receipt: &mut ImportReceipt, _portion: ImportPortion, outcome: Outcome) {
        let Outcome { merged: Merged { merged, expired, refused, repeated }, through, has_ended } = outcome;
        receipt.merged += merged;
        receipt.expired += expired;
        receipt.refused += refused;
        receipt.repeated += repeated;
        receipt.through =
            through.into_iter().map(|through| Some(through).filter(|through| *through < u64::MAX)).collect();
        receipt.ended |= has_ended;
    }

    fn accepted_and_duplicates(receipt: &ImportReceipt) -> (u64, u64) {
        (receipt.merged, receipt.repeated)
    }
}
