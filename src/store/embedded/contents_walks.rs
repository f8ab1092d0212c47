//! What a track keeps for the walks over its contents.

/// What walks over the contents of a track must know of it. Kept when the holdings are replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContentsWalks {
    /// A number that is drawn when the board is defined and whenever the store is opened: ids of records are others
    /// then.
    pub opened: u64,
    /// See [`Status::upheavals`](crate::store::Status::upheavals). The first number is drawn, so that it changes when
    /// the store is opened again.
    pub upheavals: u64,
}

impl ContentsWalks {
    pub(super) fn random() -> Self {
        Self { opened: rand::random(), upheavals: rand::random() }
    }

    /// Records that a subject was removed or its record was moved.
    pub(super) fn count_upheaval(&mut self) {
        self.upheavals = self.upheavals.wrapping_add(1);
    }
}
