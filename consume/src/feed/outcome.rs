//! What became of the messages that were sent: counted for those who watch, and kept where they do not count.

use std::time::Instant;

use super::{Detour, Feed, FeedEnd, MOMENT, PATIENCE};
use crate::dead_letters::DeadLetter;
use crate::portion::Portion;
use crate::seen::FeedState;
use crate::source::Receipt;

impl Feed {
    /// Counts what became of a portion, and keeps what was rejected.
    pub(super) async fn record(&mut self, receipt: &Receipt, portion: &Portion) -> Result<(), Detour> {
        let seen = &self.seen;
        seen.sent.increment(portion.events as u64);
        seen.accepted.increment(receipt.accepted);
        seen.repeated.increment(receipt.source.repeated + receipt.duplicates);
        // The line that says that the rest is passed is one of an unknown type.
        let marker = portion.made_of.len().saturating_sub(portion.events) as u64;
        let unknown = receipt.unknown.saturating_sub(marker);
        seen.passed.increment(unknown + receipt.unmatched);
        for (code, number) in &receipt.rejected_counts {
            seen.rejected(code, *number);
        }
        if portion.events > 0 && unknown == portion.events as u64 {
            if !std::mem::replace(&mut self.remembered.passed_all, true) {
                tracing::warn!(
                    source = seen.source,
                    "no board counts the type of any event of a portion: is 'type' right?"
                );
            }
        } else if receipt.accepted > 0 {
            self.remembered.passed_all = false;
        }
        if receipt.source.left_out != self.remembered.left_out {
            self.remembered.left_out.clone_from(&receipt.source.left_out);
            tracing::warn!(source = seen.source, boards = ?receipt.source.left_out, "boards that are left out");
        }
        let listed = receipt.rejected.iter().filter_map(|rejected| {
            let message = portion.message(rejected.line?)?;
            let (board, code, detail) = (rejected.board.clone(), rejected.code.clone(), rejected.detail.clone());
            Some(DeadLetter::rejected(message, board, code, detail))
        });
        let mut letters: Vec<DeadLetter> = listed.collect();
        let all: u64 = receipt.rejected_counts.values().sum();
        let more = all.saturating_sub(receipt.rejected.len() as u64);
        if more > 0 {
            letters.push(DeadLetter::more(portion.last.unwrap_or_default(), more));
        }
        // What the answer says is not said again: it is kept before anything else is done.
        let begun = Instant::now();
        loop {
            let (kept, result) = self.keep(&letters).await;
            let Err(error) = result else { return Ok(()) };
            letters.drain(..kept);
            if self.is_for_once() && begun.elapsed() >= PATIENCE {
                let why = format!("{} rejected messages are not kept, and are counted as passed", letters.len());
                return Err(Detour::End(FeedEnd::Stopped, Some(error.context(why))));
            }
            self.seen.set(FeedState::Failing(format!("{error:#}")));
            if self.pause(MOMENT).await {
                return Err(Detour::End(FeedEnd::Told, None));
            }
        }
    }

    /// Keeps the messages of a portion that make no event, unless they are kept already.
    pub(super) async fn keep_unreadable(&mut self, portion: &Portion) -> Result<(), Detour> {
        let known = self.remembered.kept;
        let new: Vec<DeadLetter> =
            portion.unreadable.iter().filter(|letter| Some(letter.position()) > known).cloned().collect();
        let (kept, result) = self.keep(&new).await;
        if let Some(last) = new[..kept].last() {
            self.remembered.kept = Some(last.position());
            self.seen.unreadable.increment(kept as u64);
        }
        result.map_err(|error| Detour::Fail(error, None))
    }

    /// Keeps messages that are not counted, or says that there are any. Returns how many of the first ones are kept, and why
    /// the next one is not.
    async fn keep(&mut self, letters: &[DeadLetter]) -> (usize, anyhow::Result<()>) {
        match (&mut self.dead_letters, letters.first()) {
            (_, None) => (0, Ok(())),
            (None, Some(first)) => {
                let (source, number) = (&self.seen.source, letters.len());
                tracing::warn!(source, number, "messages are not counted, such as: {}", first.detail());
                (number, Ok(()))
            }
            (Some(dead_letters), _) => dead_letters.append(&self.seen.source, letters).await,
        }
    }
}
