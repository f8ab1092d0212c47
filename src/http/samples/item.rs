//! Parsing of a sample and its validation for a board.

use serde_json::value::RawValue;

use crate::board::{Amount, Board, Change, Decimals, Kind};
use crate::http::codes::ItemCode;
use crate::http::increments::{BoardItem, amount, numbered, ranking, refuse_others, required, used};
use crate::http::items::{ItemError, TextField, item};
use crate::http::schemas;
use crate::service::Increment;

item! {
    /// The content of one slot for a subject, or over all time its total.
    #[schema(as = Sample)]
    pub(super) struct SampleItem<'a> {
        #[schema(schema_with = schemas::subject)]
        subject: TextField<'a>,
        #[schema(schema_with = schemas::by, required = false)]
        by: TextField<'a>,
        /// A time that selects the slot: the slot that contains it or, with `stamp = "end"`, the slot that ends at it
        /// or contains it. Required unless the board counts over all time and keeps no slots.
        #[schema(schema_with = schemas::time, required = false)]
        at: TextField<'a>,
        /// The amount of the slot, for COUNT and SUM. Parsed exactly.
        #[schema(value_type = f64, format = "decimal", required = false)]
        amount: Option<&'a RawValue>,
        /// The sum of the measurements, for AVG, together with `count`. Parsed exactly.
        #[schema(value_type = f64, format = "decimal", required = false)]
        sum: Option<&'a RawValue>,
        /// The number of measurements, for AVG, together with `sum`.
        #[schema(value_type = i64, minimum = 0, required = false)]
        count: Option<&'a RawValue>,
        /// The smallest or largest value of the slot, for MIN and MAX; its newest value, for LAST. Parsed exactly.
        #[schema(value_type = f64, format = "decimal", required = false)]
        value: Option<&'a RawValue>,
        #[schema(schema_with = schemas::tie_break_of_item, required = false)]
        tie_break: Option<&'a RawValue>,
    }
    /// A single sample or a batch.
    enum SamplesBody;
    /// A batch of samples.
    struct SampleBatch {
        /// The samples. One that does not match this schema is rejected on its own: the response is still 200 and lists
        /// it in `rejected`, and the others count.
        samples
    }
    invalid: ItemCode::InvalidSample
}

impl<'a> BoardItem<'a> for SampleItem<'a> {
    fn into_increment(self, board: &Board) -> Result<Increment, ItemError> {
        let subject = ranking::subject(self.subject, self.by, board)?;
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
            // Boards that take no samples are refused before items are parsed.
            Kind::Sum
            | Kind::TimedSum(_)
            | Kind::Min
            | Kind::Max
            | Kind::Last
            | Kind::Distinct
            | Kind::Capped { .. }
            | Kind::Sketch => {
                let (field, raw) = used(&fields, board)?;
                (number(raw, field)?, 0)
            }
        };
        let sum = numbered(sum, self.tie_break, board.kind().field(), board)?;
        if board.kind() == Kind::Mean && count == 0 && sum != Amount(0) {
            let detail = "a sample with 'count' 0 must have 'sum' 0";
            return Err(ItemError::value(ItemCode::InvalidValue, "count", detail).depending_on_board());
        }
        let change = Change::Set { sum, count };
        Ok(Increment { other: None, subject, change, retract: false, at, id: None, period: None, event: None })
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
