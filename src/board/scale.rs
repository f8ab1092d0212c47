//! The unit of a board's numbers: their decimals and, where a second key or a time breaks ties, how score and key make one
//! number.
//!
//! With a second key the number of a subject is `score x 2^bits + key`. The sum of such numbers has the sum of the scores
//! and that of the keys, and their maximum is that of the pairs, so everything that counts, ranks, pages and merges
//! works on one number as it does without a second key. The key is bounded in each slot, as amounts are: if it were
//! carried over into the score, nothing would show it.
//!
//! With `ties` the key is a time, which is not added up: of a sum it is the later one, which [`Split::joined`] keeps.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Amount, Decimals, EXACT_MAX, FieldFault, Fields, Order, Score, Steps, Tie, Ties, Timestamp, form};

/// A second key, by which subjects with the same score are ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a tie break with 'most' and 'order', and optionally 'field'")]
pub struct TieBreak {
    /// Greatest magnitude of the second key of a subject: it is a whole number from -`most` to `most`. The larger it is, the
    /// smaller are the scores that the board can hold.
    #[serde(deserialize_with = "form::most_of_ties")]
    #[schema(minimum = 1, maximum = 1_099_511_627_775_u64, example = 4_194_303)]
    pub most: u64,
    /// Whether the smallest (`asc`) or the greatest (`desc`) second key is first among equal scores.
    pub order: Order,
    /// Field of events that has their second key. An increment has it as `tie_break`. Default: `tie_break`.
    #[serde(default = "form::tie_break", skip_serializing_if = "form::is_tie_break", deserialize_with = "form::field")]
    #[schema(value_type = String, required = false, example = "seconds", max_length = 64)]
    pub field: Box<str>,
}

impl TieBreak {
    /// The largest `most`: it leaves ±2,047 for scores.
    pub const MOST: u64 = (1 << 40) - 1;

    /// Returns the second key of an event.
    pub fn key_of(&self, fields: &Fields) -> Result<i64, FieldFault> {
        let value = fields.require(&self.field)?;
        let expected = |found: &str| FieldFault::Invalid {
            field: self.field.clone(),
            detail: format!("expected a whole number from -{0} to {0}, found {found}", self.most),
        };
        let text = value.number().ok_or_else(|| expected(value.described()))?;
        self.parse(text).ok_or_else(|| expected(text))
    }

    /// Parses a second key. Returns `None` if it is not a whole number within the range.
    pub fn parse(&self, text: &str) -> Option<i64> {
        let Amount(key) = Amount::parse(text, Decimals::NONE).ok()?;
        (key.unsigned_abs() <= self.most).then_some(key)
    }
}

/// The unit of a board's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// The decimals of scores.
    pub decimals: Decimals,
    /// How score and key make one number, if there is one.
    keys: Option<Keys>,
}

/// How score and key make one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keys {
    split: Split,
    /// The greatest magnitude of a key.
    most: i64,
    /// Whether the smaller key is first where the greater number is first.
    is_reversed: bool,
    /// If the keys are times: the steps of these.
    steps: Option<Steps>,
}

/// Where the score is in a number, and where the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Split {
    /// The number of low bits that have the key.
    bits: u32,
    /// The greatest magnitude of a negative key.
    below: i64,
}

impl Split {
    /// Returns the score in a number. One that is beyond the exact range, which no board holds, need not be right.
    pub fn score(self, number: i64) -> i64 {
        number.saturating_add(self.below) >> self.bits
    }

    /// Returns the key in a number.
    pub fn key(self, number: i64) -> i64 {
        number - (self.score(number) << self.bits)
    }

    /// Returns what the score is multiplied by in a number.
    pub fn size(self) -> i64 {
        1 << self.bits
    }

    /// Returns the number with the sum of two scores and with the later of two times. One that is beyond the exact range,
    /// which no board holds, need not be right.
    pub fn joined(self, a: i64, b: i64) -> i64 {
        let [key, other] = [a, b].map(|number| self.key(number));
        let later = if key.abs() >= other.abs() { key } else { other };
        (a - key).saturating_add(b - other).saturating_add(later)
    }

    /// Returns the number of a subject of whose parts one was replaced by another one, or `None` if that depends on the other
    /// parts: the replaced one had the latest time, and has an earlier one now.
    pub fn replaced(self, all: i64, old: i64, new: i64) -> Option<i64> {
        let [latest, before, after] = [all, old, new].map(|number| self.key(number).abs());
        (after >= before || before < latest).then(|| self.joined(all.saturating_sub(old - self.key(old)), new))
    }

    /// Returns the greatest score whose number is within a bound, whatever its time.
    pub fn largest_score_within(self, bound: i64) -> i64 {
        (bound - (self.size() - 1)) / self.size()
    }

    /// Returns the number of a subject without a part of what it comes to, which is older than all other parts: without
    /// its score, and without its time if no other part has a later one.
    pub fn without(self, all: i64, part: i64) -> i64 {
        let [key, of_part] = [all, part].map(|number| self.key(number));
        let later = if of_part.abs() >= key.abs() { 0 } else { key };
        (all - key).saturating_sub(part - of_part).saturating_add(later)
    }
}

/// The bound of the second keys in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBound {
    pub split: Split,
    /// The greatest magnitude of a key in a slot.
    pub most: i64,
}

impl KeyBound {
    /// Returns whether the key in a number is within the bound.
    pub fn holds(self, number: i64) -> bool {
        self.split.key(number).abs() <= self.most
    }
}

impl From<Decimals> for Scale {
    fn from(decimals: Decimals) -> Self {
        Self { decimals, keys: None }
    }
}

impl Scale {
    /// Returns the unit of a board with this order, and a second key or times if it has them.
    pub(super) fn new(decimals: Decimals, order: Order, tie_break: Option<&TieBreak>, ties: Option<Ties>) -> Self {
        let by_key = |tie_break: &TieBreak| {
            // A slot has a key of at most `most`, and one more item of as much: half of the range of the bits.
            let bits = u64::BITS - tie_break.most.leading_zeros() + 2;
            let most = i64::try_from(tie_break.most).unwrap_or(EXACT_MAX);
            let split = Split { bits, below: 1 << (bits - 1) };
            Keys { split, most, is_reversed: tie_break.order != order, steps: None }
        };
        let by_time = |ties: Ties| {
            let (bits, is_reversed) = (ties.precision.bits(), ties.is_reversed(order));
            let most = (1 << bits) - 1;
            let split = Split { bits, below: if is_reversed { most } else { 0 } };
            Keys { split, most, is_reversed, steps: Some(Steps { length: ties.precision.millis(), last: most }) }
        };
        Self { decimals, keys: tie_break.map(by_key).or_else(|| ties.map(by_time)) }
    }

    /// Returns whether equal scores are ordered by a second key or by time.
    pub fn has_keys(self) -> bool {
        self.keys.is_some()
    }

    /// Returns whether equal scores have the same order in both: by second keys, or by times of the same precision.
    pub fn has_same_ties_as(self, other: Self) -> bool {
        self.keys.zip(other.keys).is_some_and(|(ours, theirs)| ours.steps == theirs.steps)
    }

    /// Returns whether equal scores are ordered by time.
    pub fn has_times(self) -> bool {
        self.keys.is_some_and(|keys| keys.steps.is_some())
    }

    /// Returns, where equal scores are ordered by time, where the score is in a number; the steps of the times; and
    /// whether their keys are negative.
    pub fn times(self) -> Option<(Split, Steps, bool)> {
        self.keys.and_then(|keys| Some((keys.split, keys.steps?, keys.is_reversed)))
    }

    /// Returns the number of an amount with a second key, or `None` if one of them is out of range. Without second keys it
    /// is the amount, and where equal scores are ordered by time, it has no time yet.
    pub fn number(self, amount: Amount, key: i64) -> Option<Amount> {
        let Some(Keys { split, most, is_reversed, steps }) = self.keys else { return Some(amount) };
        let key = if steps.is_some() { 0 } else { key };
        let high = amount.0.checked_mul(split.size()).filter(|_| (-most..=most).contains(&key))?;
        let number = high.checked_add(if is_reversed { -key } else { key })?;
        let bound = if steps.is_some() { EXACT_MAX - most } else { EXACT_MAX };
        (number.unsigned_abs() <= bound as u64).then_some(Amount(number))
    }

    /// Returns a number that has no time yet with the time of its item, where equal scores are ordered by time.
    pub fn timed(self, Amount(number): Amount, at: Timestamp) -> Amount {
        let Some(Keys { is_reversed, steps: Some(steps), .. }) = self.keys else { return Amount(number) };
        let step = steps.at(at);
        Amount(number.saturating_add(if is_reversed { -step } else { step }))
    }

    /// Returns the amount in a number.
    pub fn amount(self, Amount(number): Amount) -> Amount {
        Amount(self.keys.map_or(number, |keys| keys.split.score(number)))
    }

    /// Returns the second key in a number, if there is one.
    pub fn key(self, number: Amount) -> Option<i64> {
        let Keys { split, is_reversed, .. } = self.keys?;
        let key = split.key(number.0);
        Some(if is_reversed { -key } else { key })
    }

    /// Returns what orders the number among those with the same score, if it has such.
    pub fn tie(self, number: Amount) -> Option<Tie> {
        match (self.key(number)?, self.keys?.steps) {
            (key, None) => Some(Tie::Key(key)),
            (0, Some(_)) => None,
            (step, Some(steps)) => Some(Tie::Time(steps.time(step))),
        }
    }

    /// Returns the bound of the second keys in one of `parts` parts that are added up, if there are such.
    pub(super) fn key_bound(self, parts: i64) -> Option<KeyBound> {
        let Keys { split, most, steps, .. } = self.keys?;
        steps.is_none().then_some(KeyBound { split, most: most / parts })
    }

    /// Returns an amount as it is shown.
    pub fn shown(self, Amount(units): Amount) -> Score {
        Score { units, decimals: self.decimals }
    }

    /// Returns the largest amount whose number is within a bound, whatever its second key.
    pub fn largest_within(self, Amount(bound): Amount) -> Amount {
        let Some(Keys { split, most, .. }) = self.keys else { return Amount(bound) };
        Amount((bound - most).max(0) / split.size())
    }

    /// Returns the largest amount of which a number can be made, whatever its second key.
    pub fn largest(self) -> Amount {
        self.largest_within(Amount(EXACT_MAX))
    }

    /// Returns the smallest number with an amount, and the greatest one.
    pub fn numbers_of(self, amount: Amount) -> Option<(Amount, Amount)> {
        let Some(Keys { split, .. }) = self.keys else { return Some((amount, amount)) };
        let least = amount.0.checked_mul(split.size())?.checked_sub(split.below)?;
        Some((Amount(least), Amount(least.checked_add(split.size() - 1)?)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scale(most: u64, order: Order, of_ties: Order) -> Scale {
        let tie_break = TieBreak { most, order: of_ties, field: "t".into() };
        Scale::new(Decimals::default(), order, Some(&tie_break), None)
    }

    #[test]
    fn better_keys_are_better_numbers() {
        use Order::{Asc, Desc};
        for (order, of_ties, better, worse) in
            [(Desc, Asc, 3, 5), (Desc, Desc, 5, 3), (Asc, Asc, 3, 5), (Asc, Desc, 5, 3)]
        {
            let scale = scale(10, order, of_ties);
            let [better, worse] = [better, worse].map(|key| scale.number(Amount(7), key).unwrap());
            assert_eq!(better > worse, order == Desc, "{order:?} {of_ties:?}");
            assert_eq!([better, worse].map(|number| scale.amount(number)), [Amount(7); 2]);
        }
        let plain = Scale::from(Decimals::default());
        assert_eq!(
            (plain.number(Amount(7), 3), plain.key(Amount(7)), plain.amount(Amount(7))),
            (Some(Amount(7)), None, Amount(7))
        );
    }

    fn timed(ties: &str, order: Order) -> Scale {
        Scale::new(Decimals::default(), order, None, Some(ties.parse().unwrap()))
    }

    #[test]
    fn better_times_are_better_numbers() {
        use Order::{Asc, Desc};
        let [early, late] =
            ["2026-11-30T10:00:00.900Z", "2026-11-30T10:00:01Z"].map(|at| Timestamp::parse(at).unwrap());
        for (ties, order) in [("first", Desc), ("last", Desc), ("first", Asc), ("last", Asc)] {
            let scale = timed(ties, order);
            for score in [-8_388_607, -1, 0, 1, 8_388_607] {
                let plain = scale.number(Amount(score), 0).unwrap();
                let [first, last] = [early, late].map(|at| scale.timed(plain, at));
                assert_eq!((first > last) == (order == Desc), ties == "first", "{ties} {order:?} {score}");
                assert_eq!([first, last].map(|number| scale.amount(number)), [Amount(score); 2]);
                assert!([first, last].iter().all(|number| number.0.abs() <= EXACT_MAX));
                assert_eq!(scale.tie(last), Some(Tie::Time(late)));
                assert_eq!(scale.tie(first).unwrap().to_string(), "2026-11-30T10:00:00Z");
                assert_eq!(scale.tie(plain), None);
            }
            assert_eq!((scale.largest(), scale.number(Amount(8_388_608), 0)), (Amount(8_388_607), None));
            assert_eq!(scale.number(Amount(7), 5), scale.number(Amount(7), 0), "a second key is no time");
        }
        for (ties, largest) in [("first:1ms", 8_191), ("last:100ms", 524_287), ("first:1m", 268_435_455)] {
            assert_eq!(timed(ties, Desc).largest(), Amount(largest), "{ties}");
        }
        for time in ["1970-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"] {
            let number = timed("first", Desc).timed(Amount(0), Timestamp::parse(time).unwrap());
            assert_eq!(number, Amount(0), "{time} is no time");
        }
    }

    #[test]
    fn the_largest_amount_takes_every_key() {
        for most in [1, 10, 4_194_303, TieBreak::MOST] {
            let scale = scale(most, Order::Desc, Order::Asc);
            let largest = scale.largest();
            for amount in [largest, Amount(-largest.0)] {
                for key in [-(most as i64), 0, most as i64] {
                    let number = scale.number(amount, key).unwrap();
                    assert_eq!((scale.amount(number), scale.key(number)), (amount, Some(key)), "{most}");
                }
            }
        }
        assert_eq!(scale(TieBreak::MOST, Order::Desc, Order::Asc).largest(), Amount(2_047));
        assert_eq!(scale(1, Order::Desc, Order::Asc).number(Amount(EXACT_MAX), 0), None);
    }

    proptest! {
        #[test]
        fn a_sum_with_its_newest_time_follows_from_each_change(
            cells in prop::collection::vec((-9..9i64, 0..5i64), 1..12), changed: prop::sample::Index,
            to in (-9..9i64, 0..5i64), ties in prop::sample::select(vec!["first", "last", "first:1ms"]),
        ) {
            let (split, _, is_reversed) = timed(ties, Order::Desc).times().unwrap();
            // Slots are of five steps each; a cell without a time has the step 0.
            let number = |slot: usize, (score, step): (i64, i64)| {
                let step = if step == 0 { 0 } else { 5 * slot as i64 + step };
                score * split.size() + if is_reversed { -step } else { step }
            };
            let numbers: Vec<i64> = cells.iter().enumerate().map(|(slot, cell)| number(slot, *cell)).collect();
            let all = |of: &[i64]| of.iter().fold(0, |all, cell| split.joined(all, *cell));
            let score = cells.iter().map(|(score, _)| score).sum::<i64>();
            let newest = numbers.iter().map(|cell| split.key(*cell).abs()).max().unwrap();
            prop_assert_eq!((split.score(all(&numbers)), split.key(all(&numbers)).abs()), (score, newest));
            let backward = numbers.iter().rev().fold(0, |all, cell| split.joined(all, *cell));
            prop_assert_eq!(backward, all(&numbers), "in any order");
            for oldest in 0..numbers.len() {
                prop_assert_eq!(split.without(all(&numbers[oldest..]), numbers[oldest]), all(&numbers[oldest + 1..]));
            }
            let (at, mut changes) = (changed.index(numbers.len()), numbers.clone());
            changes[at] = number(at, to);
            if let Some(after) = split.replaced(all(&numbers), numbers[at], changes[at]) {
                prop_assert_eq!(after, all(&changes));
            } else {
                prop_assert!(split.key(changes[at]).abs() < split.key(numbers[at]).abs());
            }
        }

        #[test]
        fn sums_and_maxima_of_numbers_are_those_of_the_pairs(
            pairs in prop::collection::vec((-1_000..1_000i64, 0..100i64), 1..40), reversed: bool,
        ) {
            let scale = scale(4_000, Order::Desc, if reversed { Order::Asc } else { Order::Desc });
            let numbers = pairs.iter().map(|(amount, key)| scale.number(Amount(*amount), *key).unwrap().0);
            let sum = Amount(numbers.clone().sum());
            let expected = (pairs.iter().map(|(amount, _)| amount).sum(), pairs.iter().map(|(_, key)| key).sum());
            prop_assert_eq!((scale.amount(sum).0, scale.key(sum).unwrap()), expected);
            let best = Amount(numbers.max().unwrap());
            let expected = pairs.iter().max_by_key(|(amount, key)| (*amount, if reversed { -key } else { *key })).unwrap();
            prop_assert_eq!((scale.amount(best).0, scale.key(best).unwrap()), *expected);
            let (least, most) = scale.numbers_of(scale.amount(best)).unwrap();
            prop_assert!(least <= best && best <= most);
            prop_assert_eq!((scale.amount(least), scale.amount(most)), (scale.amount(best), scale.amount(best)));
        }
    }
}
