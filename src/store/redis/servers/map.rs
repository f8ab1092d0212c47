//! Which node has which hash slot.

use std::sync::Arc;

use super::node::Node;
use crate::store::redis::hash_slot::HashSlot;

/// Stands for a slot that no node has.
const NOBODY: u16 = u16::MAX;

/// The owners of all hash slots as they were last heard of.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// Counts the maps there have been: those who found this one wrong look for a later one.
    pub version: u64,
    /// Of a cluster, its epoch when the map was asked for.
    pub epoch: u64,
    nodes: Vec<Arc<Node>>,
    /// By number of the slot, places in `nodes`.
    owners: Vec<u16>,
}

impl Map {
    /// One node has everything.
    pub fn of_one(version: u64, node: Arc<Node>) -> Self {
        Self { version, epoch: 0, nodes: vec![node], owners: vec![0; usize::from(HashSlot::COUNT)] }
    }

    /// Nobody has anything.
    pub fn empty() -> Self {
        Self { version: 0, epoch: 0, nodes: Vec::new(), owners: vec![NOBODY; usize::from(HashSlot::COUNT)] }
    }

    pub fn owner(&self, slot: HashSlot) -> Option<&Arc<Node>> {
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot.number()))?))
    }

    /// All masters.
    pub fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    pub fn has(&self, node: &Arc<Node>) -> bool {
        self.nodes.iter().any(|known| Arc::ptr_eq(known, node))
    }

    /// Gives the slots from `first` to `last` to a node.
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

    /// Tells every node that has slots here which it did not have in the `earlier` map.
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
