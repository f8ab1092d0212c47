//! Free space: writes are refused while the remaining space may be needed for the next checkpoint.

use super::super::metrics::StoreMetrics;
use super::super::storage::files::Files;
use super::super::storage::manifest::MANIFEST;
use super::admission::RefusalSource;
use super::journal::Journal;

/// Decides whether there is enough space to continue writing.
#[derive(Debug, Default)]
pub(super) struct FreeSpace {
    is_short: bool,
    available: Option<u64>,
}

impl FreeSpace {
    /// Measures the free space, and refuses or admits writes. `needed` is the number of bytes that the next checkpoint
    /// and the next segments of the log may take.
    pub(super) fn measure(&mut self, files: &dyn Files, journal: &Journal, metrics: &StoreMetrics, needed: u64) {
        // Open files can still be written to after they are deleted, but their data would be lost.
        if let Ok(false) = files.exists(MANIFEST) {
            let place = files.root().display();
            let reason = format!("{place}: the data directory was removed or replaced; stop the service");
            return journal.admission.refuse(RefusalSource::Space, Some(reason));
        }
        match files.available() {
            Ok(available) => {
                self.available = Some(available);
                metrics.space(available, needed);
                // If space was short, a margin is required before writes are admitted again. Otherwise it would soon be
                // short again.
                let enough = if self.is_short { needed + needed / 8 } else { needed };
                self.is_short = available < enough;
                let reason = self.is_short.then(|| {
                    format!(
                        "the disk has {} MB left, and the next checkpoint may need {} MB; free some space, and \
                         writes are accepted again",
                        available >> 20,
                        enough.div_ceil(1 << 20)
                    )
                });
                journal.admission.refuse(RefusalSource::Space, reason);
            }
            // A file system that does not report its free space is not treated as full.
            Err(error) => tracing::debug!(%error, "free space cannot be measured"),
        }
    }

    /// Returns whether a checkpoint should be made early because the log takes space that will soon be needed.
    pub(super) fn is_getting_short(&self, needed: u64) -> bool {
        self.available.is_some_and(|available| available < needed.saturating_mul(2))
    }
}
