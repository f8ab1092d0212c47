//! What counts on a board: types of events, each with the field that counts and its weight.

use std::fmt;
use std::ops::Neg;

use super::{Amount, AmountError, Decimals, EXACT_MAX, FieldFault, Fields, Score};

/// The number by which the amount of an event is multiplied: a decimal number other than 0, with at most 9 decimals and
/// 2^53 − 1 in its last decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(Score);

impl Weight {
    /// The weight of what counts as it is.
    pub const ONE: Self = Self(Score { units: 1, decimals: Decimals::NONE });

    /// Parses a number without a sign. Returns `None` if it cannot be a weight.
    pub fn parse(text: &str) -> Option<Self> {
        // It has the fewest decimals, so equal weights are equal values.
        Score::parse(text).filter(|weight| weight.units > 0).map(Self)
    }

    /// Returns the weight as a number, with the fewest decimals.
    pub fn number(self) -> Score {
        self.0
    }

    fn is_negative(self) -> bool {
        self.0.units < 0
    }
}

impl From<u32> for Weight {
    fn from(number: u32) -> Self {
        Self(Score { units: number.into(), decimals: Decimals::NONE })
    }
}

impl Neg for Weight {
    type Output = Self;

    fn neg(self) -> Self {
        Self(Score { units: -self.0.units, ..self.0 })
    }
}

/// A type of event, and what an event of it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The type of the events.
    pub event: Box<str>,
    /// The numeric field that counts. If absent, 1 counts.
    pub field: Option<Box<str>>,
    pub weight: Weight,
}

impl Term {
    /// Returns whether each event counts 1.
    fn counts_events(&self) -> bool {
        self.field.is_none() && self.weight == Weight::ONE
    }

    /// Returns what an event with these fields counts.
    fn amount(&self, fields: &Fields, decimals: Decimals) -> Result<Amount, FieldFault> {
        let Some(field) = &self.field else {
            return match self.weight {
                Weight::ONE => Ok(Amount::one(decimals)),
                weight => Amount::parse_times("1", weight, decimals).map_err(|source| self.fault(source)),
            };
        };
        let value = fields.require(field)?;
        match value.number() {
            Some(text) => Amount::parse_times(text, self.weight, decimals).map_err(|source| self.fault(source)),
            None => Err(FieldFault::Invalid {
                field: field.clone(),
                detail: format!("expected a number, found {}", value.described()),
            }),
        }
    }

    fn fault(&self, source: AmountError) -> FieldFault {
        let field = self.field.clone().unwrap_or_else(|| "type".into());
        FieldFault::Amount { field, source }
    }
}

/// What counts on a board: one term or several, whose amounts are added up. Each type and field stands once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms(Box<[Term]>);

impl Terms {
    /// The largest number of terms.
    pub const MAX: usize = 16;

    /// Creates what counts from terms of which no two have the same type and field. There is at least one.
    ///
    /// They are put in order, those that add first, then by type and field: so the same terms are equal in whatever
    /// order they were written.
    pub(super) fn new(mut terms: Vec<Term>) -> Self {
        terms.sort_by(|a, b| {
            let key = |term: &Term| term.weight.is_negative();
            key(a).cmp(&key(b)).then_with(|| (&a.event, &a.field).cmp(&(&b.event, &b.field)))
        });
        Self(terms.into())
    }

    /// Returns all terms, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Term> {
        self.0.iter()
    }

    /// Returns the only term, if there is one that counts as it is.
    pub fn single(&self) -> Option<&Term> {
        if let [term] = &*self.0
            && term.weight == Weight::ONE
        {
            Some(term)
        } else {
            None
        }
    }

    /// Returns the types of events, each once.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let is_first = |(at, term): &(usize, &Term)| self.0[..*at].iter().all(|other| other.event != term.event);
        self.0.iter().enumerate().filter(is_first).map(|(_, term)| &*term.event)
    }

    /// Returns whether events of a type count.
    pub fn has(&self, event: &str) -> bool {
        self.0.iter().any(|term| *term.event == *event)
    }

    /// Returns whether the types of events are those of the other terms.
    pub fn has_types_of(&self, other: &Self) -> bool {
        self.types().all(|event| other.has(event)) && other.types().all(|event| self.has(event))
    }

    /// Returns whether there is more than one type of events.
    pub fn has_several_types(&self) -> bool {
        self.0.len() > 1 && self.types().nth(1).is_some()
    }

    /// Returns the greatest magnitude of what an event counts that has no field, on a board with these decimals. `None` if
    /// one is beyond every board.
    pub fn largest(&self, decimals: Decimals) -> Option<Amount> {
        self.types().try_fold(Amount(0), |largest, event| {
            let of_event = self.0.iter().filter(|term| term.field.is_none() && *term.event == *event);
            let points = of_event.map(|term| Amount::parse_times("1", term.weight, decimals).map(|amount| amount.0));
            let points = points.sum::<Result<i64, _>>().ok()?;
            Some(Amount(largest.0.max(points.saturating_abs())))
        })
    }

    /// Returns the largest number of decimals of a weight. A board has at least as many.
    pub fn decimals(&self) -> Decimals {
        self.0.iter().map(|term| term.weight.number().decimals).max().unwrap_or_default()
    }

    /// Returns for each field with a weight which amounts fit on a board with these decimals.
    pub fn notes(&self, decimals: Decimals) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(move |Term { event, field, weight }| {
            let (field, by) = (field.as_ref()?, weight.number().decimals.digits());
            let most = decimals.digits().checked_sub(by).filter(|_| by > 0)?;
            let step = Score { units: 1, decimals: Decimals::new(most)? };
            Some(format!(
                "{event}: amounts of '{field}' in steps of {step} fit, because times {} they have at most the {} decimals of \
                 the board",
                weight.number(),
                decimals.digits(),
            ))
        })
    }

    /// Returns whether each event counts 1.
    pub fn count_events(&self) -> bool {
        self.0.iter().all(Term::counts_events)
    }

    /// Returns whether what counts is a field of every event, as it is.
    pub fn count_fields(&self) -> bool {
        self.0.iter().all(|term| term.field.is_some() && term.weight == Weight::ONE)
    }

    /// Returns what an event of one of the types counts. O(terms x fields).
    pub(super) fn amount(&self, event: &str, fields: &Fields, decimals: Decimals) -> Result<Amount, FieldFault> {
        if let [term] = &*self.0 {
            return term.amount(fields, decimals);
        }
        let mut of_type = self.0.iter().filter(|term| *term.event == *event);
        let Some(first) = of_type.next() else { return Ok(Amount(0)) };
        of_type.try_fold(first.amount(fields, decimals)?, |sum, term| {
            let units = sum.0 + term.amount(fields, decimals)?.0;
            match units.unsigned_abs() <= EXACT_MAX as u64 {
                true => Ok(Amount(units)),
                false => Err(term.fault(AmountError::out_of_range(Score { units, decimals }))),
            }
        })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.event)?;
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        match self.weight {
            Weight::ONE => Ok(()),
            Weight(number) => write!(f, "*{number}"),
        }
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.0.iter().enumerate() {
            match at {
                0 => write!(f, "{term}")?,
                _ if term.weight.is_negative() => write!(f, " - {}", Term { weight: -term.weight, ..term.clone() })?,
                _ => write!(f, " + {term}")?,
            }
        }
        Ok(())
    }
}
