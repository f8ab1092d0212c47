//! Parsing of a sample and its validation for a board.

use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::board::{Amount, Board, Change, Decimals, Kind};
use crate::http::codes::ItemCode;
use crate::http::increments::{BoardItem, amount, refuse_others, required, used};
use crate::http::items::{self, Item, ItemError, TextField, UnexpectedField};
use crate::service::Increment;

/// The fields of a sample, not yet validated.
#[derive(Default)]
pub(super) struct SampleItem<'a> {
    subject: TextField<'a>,
    at: TextField<'a>,
    amount: Option<&'a RawValue>,
    sum: Option<&'a RawValue>,
    count: Option<&'a RawValue>,
    value: Option<&'a RawValue>,
    /// The first unexpected field.
    unexpected: Option<UnexpectedField>,
}

impl<'a> Item<'a> for SampleItem<'a> {
    const LIST: &'static str = "samples";
    const FIELDS: &'static str = "subject, at, amount, sum, count, value";
    const INVALID: ItemCode = ItemCode::InvalidSample;

    fn read_value<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<UnexpectedField>, A::Error> {
        let (name, is_repeated) = match name {
            "subject" => ("subject", self.subject.fill(map)?),
            "at" => ("at", self.at.fill(map)?),
            "amount" => ("amount", self.amount.replace(map.next_value()?).is_some()),
            "sum" => ("sum", self.sum.replace(map.next_value()?).is_some()),
            "count" => ("count", self.count.replace(map.next_value()?).is_some()),
            "value" => ("value", self.value.replace(map.next_value()?).is_some()),
            other => return items::skip_unknown(other, map),
        };
        Ok(is_repeated.then_some(UnexpectedField::Repeated(name)))
    }

    fn set_unexpected(&mut self, field: UnexpectedField) {
        self.unexpected.get_or_insert(field);
    }

    fn is_empty(&self) -> bool {
        let values = [self.amount, self.sum, self.count, self.value];
        let others_absent = self.subject.is_absent() && self.at.is_absent() && self.unexpected.is_none();
        others_absent && values.iter().all(Option::is_none)
    }
}

impl<'a> BoardItem<'a> for SampleItem<'a> {
    fn into_increment(self, board: &Board) -> Result<Increment, ItemError> {
        if let Some(field) = self.unexpected {
            return Err(ItemError::unexpected(field, Self::FIELDS, Self::INVALID));
        }
        let subject = self.subject.subject()?;
        let missing = "the field 'at' is missing; it selects the slot of the sample";
        let at = self.at.at()?;
        if at.is_none() && board.edition().has_slots() {
            return Err(ItemError::structural(ItemCode::MissingAt, "at", missing));
        }
        let fields = [("amount", self.amount), ("sum", self.sum), ("count", self.count), ("value", self.value)];
        let number = |raw, field| amount(required(raw, field, board)?, field, board);
        let (sum, count) = match board.kind() {
            Kind::Mean => {
                refuse_others(&fields, &["sum", "count"], "sum' and 'count", board)?;
                (number(self.sum, "sum")?, count(required(self.count, "count", board)?)?)
            }
            // Boards with COUNT_DISTINCT and APPROX_COUNT_DISTINCT are refused before items are parsed.
            Kind::Sum | Kind::Min | Kind::Max | Kind::Last | Kind::Distinct | Kind::Sketch => {
                let (field, raw) = used(&fields, board)?;
                (number(raw, field)?, 0)
            }
        };
        if board.kind() == Kind::Mean && count == 0 && sum != Amount(0) {
            let detail = "a sample with 'count' 0 must have 'sum' 0";
            return Err(ItemError::value(ItemCode::InvalidValue, "count", detail).depending_on_board());
        }
        Ok(Increment { subject, change: Change::Set { sum, count }, retract: false, at, id: None })
    }
}

/// Parses a number of measurements, which has no decimals on any board.
fn count(raw: &RawValue) -> Result<i64, ItemError> {
    match Amount::parse(raw.get(), Decimals::default()) {
        Ok(Amount(count)) if count >= 0 => Ok(count),
        _ => {
            let detail = "'count' must be a whole number, at least 0";
            let error = ItemError::value(ItemCode::InvalidValue, "count", detail);
            let is_number = raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
            Err(ItemError { is_structural: !is_number, depends_on_board: true, ..error })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};
    use crate::http::items::parse_element;

    fn parsed(metric: &str, rest: &str) -> Result<Increment, ItemError> {
        let mut definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        definition.decimals = Decimals::new(1).unwrap();
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let text = format!(r#"{{"subject":"a","at":"2026-01-01T00:00:00Z",{rest}}}"#);
        parse_element::<SampleItem<'_>>(serde_json::from_str(&text).unwrap())?.into_increment(&board)
    }

    const SUM: &str = "SUM(24h, e, v, s)";
    const AVG: &str = "AVG(24h, e, v, s)";
    const MIN: &str = "MIN(24h, e, v, s)";

    #[test]
    fn every_metric_accepts_its_fields() {
        for (metric, rest, sum, count) in [
            (SUM, r#""amount":-1.5,"value":null"#, -15, 0),
            (AVG, r#""sum":1290.5,"count":60"#, 12_905, 60),
            (AVG, r#""sum":0,"count":0"#, 0, 0),
            (MIN, r#""value":23"#, 230, 0),
        ] {
            assert_eq!(parsed(metric, rest).unwrap().change, Change::Set { sum: Amount(sum), count }, "{rest}");
        }
    }

    #[test]
    fn errors_have_a_code_and_a_field() {
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
            (MIN, r#""value":"x""#, ItemCode::InvalidAmount, "value"),
        ] {
            let error = parsed(metric, rest).unwrap_err();
            assert_eq!((error.code, error.field.as_str()), (code, field), "{rest}: {error:?}");
        }
        let without_time: SampleItem<'_> =
            parse_element(serde_json::from_str(r#"{"subject":"a","amount":1}"#).unwrap()).unwrap();
        let board = Definition::new(SUM.parse().unwrap(), "1h".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), board).unwrap();
        assert_eq!(without_time.into_increment(&board).unwrap_err().code, ItemCode::MissingAt);
    }
}
