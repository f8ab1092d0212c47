//! One sample as it is sent, and what it takes to become one of a board.

use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::board::{Amount, Board, Change, Decimals, Kind};
use crate::http::codes::ItemCode;
use crate::http::increments::{BoardItem, amount, misplaced, required};
use crate::http::intake::{self, Flaw, Item, Stray, Text};
use crate::store::Increment;

/// What one JSON object said, not yet judged.
#[derive(Default)]
pub(super) struct SampleItem<'a> {
    subject: Text<'a>,
    at: Text<'a>,
    amount: Option<&'a RawValue>,
    sum: Option<&'a RawValue>,
    count: Option<&'a RawValue>,
    value: Option<&'a RawValue>,
    /// The first field that does not belong.
    stray: Option<Stray>,
}

impl<'a> Item<'a> for SampleItem<'a> {
    const NAME: &'static str = "a sample";
    const LIST: &'static str = "samples";
    const FIELDS: &'static str = "subject, at, and amount, or sum and count, or value";
    const INVALID: ItemCode = ItemCode::InvalidSample;

    fn take<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<Stray>, A::Error> {
        let (name, again) = match name {
            "subject" => ("subject", self.subject.fill(map)?),
            "at" => ("at", self.at.fill(map)?),
            "amount" => ("amount", self.amount.replace(map.next_value()?).is_some()),
            "sum" => ("sum", self.sum.replace(map.next_value()?).is_some()),
            "count" => ("count", self.count.replace(map.next_value()?).is_some()),
            "value" => ("value", self.value.replace(map.next_value()?).is_some()),
            other => return intake::unknown(other, map),
        };
        Ok(again.then_some(Stray::Repeated(name)))
    }

    fn note(&mut self, stray: Stray) {
        self.stray.get_or_insert(stray);
    }

    fn is_empty(&self) -> bool {
        let values = [self.amount, self.sum, self.count, self.value];
        let nothing = self.subject.is_absent() && self.at.is_absent() && self.stray.is_none();
        nothing && values.iter().all(Option::is_none)
    }
}

impl<'a> BoardItem<'a> for SampleItem<'a> {
    fn judge(self, board: &Board) -> Result<Increment, Flaw> {
        if let Some(stray) = self.stray {
            return Err(Flaw::stray(stray, Self::NAME, Self::FIELDS, Self::INVALID));
        }
        let subject = self.subject.subject()?;
        let missing = "the field 'at' is missing: a sample has to say which slot it sets";
        let at = self.at.at()?.ok_or_else(|| Flaw::shape(ItemCode::MissingAt, "at", missing))?;
        let (takes, instead) = match board.kind() {
            Kind::Sum => (&["amount"][..], "amount"),
            Kind::Mean => (&["sum", "count"][..], "sum' and 'count"),
            // Boards of the other metrics take no samples at all, and are refused before.
            Kind::Min | Kind::Max | Kind::Distinct | Kind::Sketch => (&["value"][..], "value"),
        };
        let given = [("amount", self.amount), ("sum", self.sum), ("count", self.count), ("value", self.value)];
        for (field, raw) in given {
            if !takes.contains(&field) {
                misplaced(raw, field, instead, board)?;
            }
        }
        let number = |raw, field| amount(required(raw, field, board)?, field, board);
        let (sum, count) = match board.kind() {
            Kind::Mean => (number(self.sum, "sum")?, count(required(self.count, "count", board)?)?),
            Kind::Sum => (number(self.amount, "amount")?, 0),
            _ => (number(self.value, "value")?, 0),
        };
        if board.kind() == Kind::Mean && count == 0 && sum != Amount(0) {
            let detail = "a count of 0 goes with a sum of 0";
            return Err(Flaw::value(ItemCode::InvalidValue, "count", detail).of_board());
        }
        Ok(Increment { subject, change: Change::Set { sum, count }, retract: false, at: Some(at), id: None })
    }
}

/// How often something was measured: a whole number, whatever the decimals of the board.
fn count(raw: &RawValue) -> Result<i64, Flaw> {
    match Amount::parse(raw.get(), Decimals::default()) {
        Ok(Amount(count)) if count >= 0 => Ok(count),
        _ => {
            let detail = "'count' must be a whole number, 0 or more";
            let flaw = Flaw::value(ItemCode::InvalidValue, "count", detail);
            let is_number = raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
            Err(Flaw { of_shape: !is_number, of_board: true, ..flaw })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};
    use crate::http::intake::from_raw;

    fn judged(metric: &str, rest: &str) -> Result<Increment, Flaw> {
        let mut definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        definition.decimals = Decimals::new(1).unwrap();
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let text = format!(r#"{{"subject":"a","at":"2026-01-01T00:00:00Z",{rest}}}"#);
        from_raw::<SampleItem<'_>>(serde_json::from_str(&text).unwrap())?.judge(&board)
    }

    const SUM: &str = "SUM(24h, e, v, s)";
    const AVG: &str = "AVG(24h, e, v, s)";
    const MIN: &str = "MIN(24h, e, v, s)";

    #[test]
    fn a_sample_says_what_its_metric_holds() {
        for (metric, rest, sum, count) in [
            (SUM, r#""amount":-1.5,"value":null"#, -15, 0),
            (AVG, r#""sum":1290.5,"count":60"#, 12_905, 60),
            (AVG, r#""sum":0,"count":0"#, 0, 0),
            (MIN, r#""value":23"#, 230, 0),
        ] {
            assert_eq!(judged(metric, rest).unwrap().change, Change::Set { sum: Amount(sum), count }, "{rest}");
        }
    }

    #[test]
    fn what_it_may_not_say_is_named() {
        for (metric, rest, code, field) in [
            (SUM, r#""value":1"#, ItemCode::UnknownField, "value"),
            (SUM, r#""sum":1,"amount":1"#, ItemCode::UnknownField, "sum"),
            (SUM, r#""id":"x","amount":1"#, ItemCode::UnknownField, "id"),
            (SUM, r#""amount":null"#, ItemCode::InvalidValue, "amount"),
            (SUM, r#""amount":0.55"#, ItemCode::AmountPrecision, "amount"),
            (SUM, r#""amount":1,"amount":1"#, ItemCode::InvalidSample, "amount"),
            (AVG, r#""amount":1"#, ItemCode::UnknownField, "amount"),
            (AVG, r#""sum":1"#, ItemCode::InvalidValue, "count"),
            (AVG, r#""count":1"#, ItemCode::InvalidValue, "sum"),
            (AVG, r#""sum":1,"count":-1"#, ItemCode::InvalidValue, "count"),
            (AVG, r#""sum":1,"count":1.5"#, ItemCode::InvalidValue, "count"),
            (AVG, r#""sum":1,"count":"1""#, ItemCode::InvalidValue, "count"),
            (AVG, r#""sum":1,"count":0"#, ItemCode::InvalidValue, "count"),
            (MIN, r#""amount":1"#, ItemCode::UnknownField, "amount"),
            (MIN, r#""value":"1""#, ItemCode::InvalidAmount, "value"),
        ] {
            let flaw = judged(metric, rest).unwrap_err();
            assert_eq!((flaw.code, flaw.field.as_str()), (code, field), "{rest}: {flaw:?}");
        }
        let timeless: SampleItem<'_> =
            from_raw(serde_json::from_str(r#"{"subject":"a","amount":1}"#).unwrap()).unwrap();
        let board = Definition::new(SUM.parse().unwrap(), "1h".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), board).unwrap();
        assert_eq!(timeless.judge(&board).unwrap_err().code, ItemCode::MissingAt);
    }
}
