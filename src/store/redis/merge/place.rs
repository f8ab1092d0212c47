//! Places in the order of a ranking.

use std::cmp::Ordering;

use crate::board::{Order, Subject, Value};

/// A place in the order of a ranking: a score and a subject. Each line of a ranking has a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::store::redis) struct Place {
    pub score: Value,
    pub subject: Subject,
}

impl Place {
    /// Compares two places on a board of this order: by score, then by subject bytes. Returns `Less` if this place
    /// comes first.
    pub fn compare(&self, other: &Place, order: Order) -> Ordering {
        compare_scores(self.score, other.score, order).then_with(|| {
            let ascending = self.subject.cmp(&other.subject);
            if order == Order::Asc { ascending } else { ascending.reverse() }
        })
    }
}

/// Compares two scores. Returns `Less` if the first one is strictly better.
pub(super) fn compare_scores(a: Value, b: Value, order: Order) -> Ordering {
    match order {
        Order::Asc => a.cmp(&b),
        Order::Desc => b.cmp(&a),
    }
}

/// Returns the order of a ranking that is read from its end.
pub(super) fn backward(order: Order) -> Order {
    match order {
        Order::Asc => Order::Desc,
        Order::Desc => Order::Asc,
    }
}
