//! What an increment of one edition is in another one.
//!
//! An event has fields, from which each edition takes what it needs. An increment or a sample of a board has only the
//! number or the value that the current edition asks for.

use super::{Amount, Change, EXACT_MAX, Edition, Event, NotCounted, Scale};

impl Edition {
    /// Returns the change that an event of the board causes in this edition.
    pub fn change_of(&self, event: &Event) -> Change {
        let is_taken = !event.retract || self.takes_retractions();
        match self.contribution(event) {
            Ok(Some((_, change))) if is_taken => change,
            Ok(None) => Change::Not(NotCounted::Filtered),
            Ok(Some(_)) | Err(_) => Change::Not(NotCounted::NotAccepted),
        }
    }

    /// Returns the change that an increment, or a sample, of another edition is in this one: the same number or value
    /// if both editions are over the same field, and an event that counts once if this one counts events. Otherwise the
    /// increment does not say what this edition would count.
    pub fn translated(&self, change: &Change, from: &Self, retract: bool) -> Change {
        let not_accepted = Change::Not(NotCounted::NotAccepted);
        if retract && !self.takes_retractions() {
            return not_accepted;
        }
        let (ours, theirs) = (&self.definition().metric, &from.definition().metric);
        let is_same = ours.function == theirs.function && ours.terms == theirs.terms;
        let counted = ours.function.counted();
        let [our_keys, their_keys] = [self, from].map(|of| of.definition().tie_break.as_ref().map(|keys| &*keys.field));
        let has_key = our_keys.is_none() || our_keys == their_keys;
        let rescaled = |number: Amount| rescaled(number, from.scale(), self.scale());
        let translated = match change {
            // It would have none, or one that says something else.
            _ if !has_key => None,
            Change::Set { sum, count } if is_same && self.has_same_samples_as(from) => {
                rescaled(*sum).map(|sum| Change::Set { sum, count: *count })
            }
            Change::Set { .. } | Change::Forget(_) | Change::Not(_) => None,
            _ if let Some(cap) = &self.definition().cap => match (change, &from.definition().cap) {
                (Change::Seen(person), Some(theirs)) if theirs.per == cap.per => Some(Change::Seen(person.clone())),
                // An increment without a person.
                _ => None,
            },
            Change::Amount(amount) if is_same => rescaled(*amount).map(Change::Amount),
            Change::Amount(_) | Change::Seen(_) if counted.is_none() && ours.terms.count_events() => {
                let key = if let Change::Amount(number) = change { from.scale().key(*number) } else { None };
                self.scale().number(Amount::one(self.decimals()), key.unwrap_or(0)).map(Change::Amount)
            }
            Change::Amount(amount) if ours.terms.count_fields() && ours.terms == theirs.terms => {
                rescaled(*amount).map(Change::Amount)
            }
            Change::Seen(value) if counted.is_some() && counted == theirs.function.counted() => {
                Some(Change::Seen(value.clone()))
            }
            Change::Amount(_) | Change::Seen(_) => None,
        };
        translated.unwrap_or(not_accepted)
    }
}

/// Returns the same number in another unit, with its second key if there it has one too. `None` if it has more decimals
/// than that unit, or is out of range.
fn rescaled(number: Amount, from: Scale, to: Scale) -> Option<Amount> {
    let (of, by) = (i128::from(from.amount(number).0), i128::from(Amount::one(to.decimals).0));
    let scaled = of * by;
    let unit = i128::from(Amount::one(from.decimals).0);
    let units = i64::try_from(scaled / unit).ok().filter(|units| units.unsigned_abs() <= EXACT_MAX as u64)?;
    if scaled % unit != 0 {
        return None;
    }
    to.number(Amount(units), from.key(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Counted, Decimals, Definition, TrackId};

    fn edition(metric: &str, decimals: u8) -> Edition {
        let mut definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        definition.decimals = Decimals::new(decimals).unwrap();
        Edition::new(TrackId(1), definition).unwrap()
    }

    #[test]
    fn an_increment_counts_where_it_says_what_counts() {
        let amount = |units| Change::Amount(Amount(units));
        let seen = Change::Seen(Counted::parse("u").unwrap());
        let not_accepted = Change::Not(NotCounted::NotAccepted);
        let sample = Change::Set { sum: Amount(150), count: 0 };
        for (from, change, to, expected) in [
            (("COUNT(2h, e, s)", 0), amount(3), ("COUNT(4h, e, s)", 2), amount(300)),
            (("SUM(2h, e, v, s)", 2), amount(150), ("SUM(4h, e, v, s)", 1), amount(15)),
            (("SUM(2h, e, v, s)", 2), amount(155), ("SUM(4h, e, v, s)", 1), not_accepted.clone()),
            (("SUM(2h, e, v, s)", 2), amount(155), ("AVG(4h, e, v, s)", 2), amount(155)),
            (("SUM(2h, e, v, s)", 2), amount(155), ("SUM(4h, e, w, s)", 2), not_accepted.clone()),
            (("SUM(2h, e, v, s)", 2), amount(155), ("COUNT(4h, e, s)", 0), amount(1)),
            (("SUM(2h, e*2 + f, s)", 0), amount(5), ("SUM(4h, f + e*2, s)", 1), amount(50)),
            (("SUM(2h, e*2 + f, s)", 0), amount(5), ("SUM(4h, e*3 + f, s)", 0), not_accepted.clone()),
            (("SUM(2h, e*2 + f, s)", 0), sample.clone(), ("SUM(4h, e*3 + f, s)", 0), not_accepted.clone()),
            (("SUM(2h, e: v + f: w, s)", 0), amount(5), ("AVG(4h, e: v + f: w, s)", 0), amount(5)),
            (("COUNT(2h, e + f, s)", 0), amount(5), ("SUM(4h, e + f*2, s)", 0), not_accepted.clone()),
            (("COUNT(2h, e, s)", 0), amount(1), ("SUM(4h, e, v, s)", 2), not_accepted.clone()),
            (("COUNT_DISTINCT(2h, e, s, u)", 0), seen.clone(), ("APPROX_COUNT_DISTINCT(2h, e, s, u)", 0), seen.clone()),
            (
                ("COUNT_DISTINCT(2h, e, s, u)", 0),
                seen.clone(),
                ("COUNT_DISTINCT(2h, e, s, w)", 0),
                not_accepted.clone(),
            ),
            (("COUNT_DISTINCT(2h, e, s, u)", 0), seen, ("COUNT(2h, e, s)", 1), amount(10)),
            (
                ("SUM(2h, e, v, s)", 2),
                sample.clone(),
                ("SUM(4h, e, v, s)", 1),
                Change::Set { sum: Amount(15), count: 0 },
            ),
            (("SUM(2h, e, v, s)", 2), sample, ("MAX(4h, e, v, s)", 2), not_accepted.clone()),
        ] {
            let (from, to) = (edition(from.0, from.1), edition(to.0, to.1));
            assert_eq!(to.translated(&change, &from, false), expected, "{change:?}");
        }
        let with_keys = |metric: &str, decimals, order: &str| {
            let mut definition = edition(metric, decimals).definition().clone();
            let tie_break = serde_json::json!({"most": 100, "order": order});
            definition.tie_break = serde_json::from_value(tie_break).unwrap();
            Edition::new(TrackId(1), definition).unwrap()
        };
        let (from, to) = (with_keys("SUM(2h, e, v, s)", 0, "asc"), with_keys("SUM(4h, e, v, s)", 1, "desc"));
        let change = |of: &Edition, units, key| Change::Amount(of.scale().number(Amount(units), key).unwrap());
        assert_eq!(to.translated(&change(&from, 5, 7), &from, false), change(&to, 50, 7));
        let counts = with_keys("COUNT(4h, e, s)", 0, "asc");
        assert_eq!(counts.translated(&change(&from, 5, 7), &from, false), change(&counts, 1, 7));
        let plain = edition("SUM(4h, e, v, s)", 1);
        assert_eq!(plain.translated(&change(&from, 5, -7), &from, false), amount(50));
        assert_eq!(to.translated(&amount(5), &edition("SUM(2h, e, v, s)", 1), false), not_accepted, "it has no key");
        let (sum, best) = (edition("SUM(2h, e, v, s)", 0), edition("MAX(2h, e, v, s)", 0));
        assert_eq!(best.translated(&amount(1), &sum, true), Change::Not(NotCounted::NotAccepted));
    }
}
