//! Places in a ranking's order.

use std::cmp::Ordering;

use crate::board::{Order, Subject, Value};

/// A place in the order of a ranking: a score and a subject. Each line of a ranking is at one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::store::redis) struct Place {
    pub score: Value,
    pub subject: Subject,
}

impl Place {
    /// `Less` if this place comes before the other on a board of such an order: by score, then by subject bytes.
    pub fn compare(&self, other: &Place, order: Order) -> Ordering {
        compare_scores(self.score, other.score, order).then_with(|| {
            let ascending = self.subject.cmp(&other.subject);
            if order == Order::Asc { ascending } else { ascending.reverse() }
        })
    }
}

/// `Less` if the first score is strictly better than the second.
pub(super) fn compare_scores(a: Value, b: Value, order: Order) -> Ordering {
    match order {
        Order::Asc => a.cmp(&b),
        Order::Desc => b.cmp(&a),
    }
}

/// The order of a ranking read from its end.
pub(super) fn backward(order: Order) -> Order {
    match order {
        Order::Asc => Order::Desc,
        Order::Desc => Order::Asc,
    }
}
