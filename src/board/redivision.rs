//! A change of the partitions of a board: its data is copied to other ones while it is frozen.

use serde::{Deserialize, Serialize};

use super::{Board, Definition, DefinitionError, Edition};

/// The partitions to which the data of a frozen board is copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redivision {
    /// The number of shards that the definition gets.
    pub shards: u32,
    /// The numbers of the partitions. None of them is one of the board's present partitions.
    pub partitions: Box<[u32]>,
}

impl Board {
    /// Returns the board in the next epoch, frozen while its data is copied to these partitions.
    #[must_use]
    pub fn frozen(&self, redivision: Redivision) -> Self {
        self.same_editions().with_redivision(Some(redivision))
    }

    /// Returns the board in the next epoch, which is written to as before it was frozen.
    #[must_use]
    pub fn thawed(&self) -> Self {
        self.same_editions().with_redivision(None)
    }

    /// Returns the board in the next epoch, with the partitions to which its data was copied. `None` if it is not
    /// frozen.
    pub fn redivided(&self) -> Option<Result<Self, DefinitionError>> {
        let Redivision { shards, partitions } = self.redivision()?;
        let definition = Definition { shards: Some(*shards), ..self.definition().clone() };
        Some(Edition::new(self.edition().id(), definition).map(|edition| {
            let edition = edition.counting_since(self.edition().since());
            self.changed([edition], None).with_partitions(Some(partitions.as_ref().into())).with_redivision(None)
        }))
    }

    fn same_editions(&self) -> Self {
        self.changed(self.editions().iter().cloned(), self.other())
    }
}
