//! The owners of the hash slots.

use std::sync::Arc;

use super::node::Node;
use crate::store::redis::hash_slot::HashSlot;

/// The value for a hash slot without an owner.
const NOBODY: u16 = u16::MAX;

/// The last known owners of all hash slots.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// The number of the map. A caller that found this map to be wrong needs one with a larger number.
    pub version: u64,
    /// For a cluster, its epoch when the map was requested.
    pub epoch: u64,
    nodes: Vec<Arc<Node>>,
    /// By number of the hash slot, an index into `nodes`.
    owners: Vec<u16>,
}

impl Map {
    /// Creates a map in which one node has all hash slots.
    pub fn of_one(version: u64, node: Arc<Node>) -> Self {
        Self { version, epoch: 0, nodes: vec![node], owners: vec![0; usize::from(HashSlot::COUNT)] }
    }

    /// Creates a map in which no hash slot has an owner.
    pub fn empty() -> Self {
        Self { version: 0, epoch: 0, nodes: Vec::new(), owners: vec![NOBODY; usize::from(HashSlot::COUNT)] }
    }

    pub fn owner(&self, slot: HashSlot) -> Option<&Arc<Node>> {
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot.number()))?))
    }

    /// Returns all masters.
    pub fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    pub fn has(&self, node: &Arc<Node>) -> bool {
        self.nodes.iter().any(|known| Arc::ptr_eq(known, node))
    }

    /// Assigns the hash slots from `first` to `last` to a node.
    pub fn give(&mut self, first: u16, last: u16, node: &Arc<Node>) {
        let place = match self.nodes.iter().position(|known| Arc::ptr_eq(known, node)) {
            Some(place) => place,
            None => {
                self.nodes.push(node.clone());
                self.nodes.len() - 1
            }
        };
        let Ok(place) = u16::try_from(place) else { return };
        for owner in self.owners.iter_mut().take(usize::from(last) + 1).skip(usize::from(first)) {
            *owner = place;
        }
    }

    /// Renews the incarnation of every node that has hash slots here which it did not have in the `earlier` map.
    pub fn renew_gainers(&self, earlier: &Map) {
        let mut gained = vec![false; self.nodes.len()];
        for (slot, owner) in self.owners.iter().enumerate() {
            let now = self.nodes.get(usize::from(*owner));
            let before = earlier.owners.get(slot).and_then(|owner| earlier.nodes.get(usize::from(*owner)));
            if let (Some(now), Some(gained)) = (now, gained.get_mut(usize::from(*owner))) {
                *gained |= !before.is_some_and(|before| Arc::ptr_eq(before, now));
            }
        }
        for (node, _) in self.nodes.iter().zip(gained).filter(|(_, gained)| *gained) {
            node.renew();
        }
    }
}
