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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Epoch, Generation};

    fn board() -> Board {
        let own = serde_json::from_str(r#"{"metric":"COUNT(24h, like, post)","slot":"1h","windows":["7d/6h"]}"#);
        Board::new(BoardName::parse("b").unwrap(), Generation(7), own.unwrap()).unwrap()
    }

    #[test]
    fn a_board_is_frozen_and_then_thawed_or_redivided() {
        let to = Redivision { shards: 3, partitions: [5, 0, 12].into() };
        let frozen = board().frozen(to.clone());
        assert_eq!((frozen.epoch(), frozen.redivision(), frozen.partitions()), (Epoch(1), Some(&to), None));
        assert_eq!(frozen.definition(), board().definition());
        let thawed = frozen.thawed();
        assert_eq!((thawed.epoch(), thawed.redivision(), thawed.partitions()), (Epoch(2), None, None));
        let redivided = frozen.redivided().unwrap().unwrap();
        assert_eq!((redivided.epoch(), redivided.redivision()), (Epoch(2), None));
        assert_eq!((redivided.partitions(), redivided.definition().shards), (Some(&[5, 0, 12].into()), Some(3)));
        let ids = |board: &Board| board.tracks().iter().map(|track| track.id()).collect::<Vec<_>>();
        assert_eq!(ids(&redivided), ids(&board()));
        assert!(board().redivided().is_none());
    }

    #[test]
    fn a_frozen_board_survives_being_stored() {
        let frozen = board().frozen(Redivision { shards: 2, partitions: [9, 4].into() });
        let read = board().with_stored_editions(frozen.epoch(), frozen.stored_editions().as_deref()).unwrap();
        assert_eq!((read.redivision(), read.epoch()), (frozen.redivision(), frozen.epoch()));
        let thawed = frozen.thawed();
        let read = board().with_stored_editions(thawed.epoch(), thawed.stored_editions().as_deref()).unwrap();
        assert_eq!(read.redivision(), None);
    }
}
