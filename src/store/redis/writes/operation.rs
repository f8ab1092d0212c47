//! The identity of a write operation, by which it is done once although it may arrive twice.

/// Writer, lane and sequence number, which distinguish a repeated script from the next one of its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    pub writer: &'a str,
    pub lane: usize,
    pub sequence: u64,
}

impl Operation<'_> {
    /// Returns the name of the lane in the meta key.
    pub fn lane(&self) -> String {
        format!("{}:{}", self.writer, self.lane)
    }
}
