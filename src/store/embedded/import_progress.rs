//! How much of an import is merged into a track.

/// What is merged of an open import into one track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of the last piece that is merged, or 0.
    pub through: u64,
    /// The number of the piece of which a part is merged, or 0, and the number of its contents that are done.
    pub partial: u64,
    pub done: u64,
}

impl Progress {
    /// Returns how many contents of a piece are done, of `len`, or `None` if this piece is not the next one: an earlier
    /// one is merged in part, or this one was left out.
    pub(super) fn done(&self, piece: u64, len: u64) -> Option<u64> {
        match self.partial {
            _ if piece <= self.through => Some(len),
            0 => Some(0),
            partial if partial == piece => Some(self.done.min(len)),
            _ => None,
        }
    }

    /// Records that a part of a piece is done.
    pub(super) fn did(&mut self, piece: u64, done: u64) {
        (self.partial, self.done) = (piece, done);
    }

    /// Records that a piece is merged.
    pub(super) fn finished(&mut self, piece: u64) {
        *self = Self { through: piece, partial: 0, done: 0 };
    }
}
