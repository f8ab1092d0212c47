//! Parsing of an increment and its validation for a board.
//!
//! Amounts are parsed from their JSON text, because floating-point numbers are not exact.

use serde_json::value::RawValue;

use super::{number, ranking};
use crate::board::{Amount, AttributesChange, Board, Change, Counted, Kind};
use crate::http::codes::ItemCode;
use crate::http::items::{self, Item, ItemError, SourcedItem, TextField, item};
use crate::http::schemas;
use crate::service::{Increment, SourceItem};

/// An item of a request for one board.
pub(in crate::http) trait BoardItem<'a>: Item<'a> {
    /// Validates the fields for the board and converts them to an increment.
    fn into_increment(self, board: &Board) -> Result<Increment, ItemError>;

    /// Takes the attributes that are merged with those of the subject, if the item has some.
    fn take_attributes(&mut self) -> Result<Beside, ItemError> {
        Ok(None)
    }
}

/// An increment with what is beside it, or why it is none.
pub(in crate::http) type ParsedIncrement = Result<(Increment, Beside), ItemError>;

/// The attributes beside an increment.
pub(in crate::http) type Beside = Option<Box<AttributesChange>>;

item! {
    /// An amount or a value for one subject.
    #[schema(as = Increment)]
    pub(in crate::http) struct IncrementItem<'a> {
        #[schema(schema_with = schemas::subject)]
        subject: TextField<'a>,
        #[schema(schema_with = schemas::by, required = false)]
        by: TextField<'a>,
        #[schema(schema_with = schemas::amount, required = false)]
        amount: Option<&'a RawValue>,
        #[schema(schema_with = schemas::value_to_count, required = false)]
        value: Option<&'a RawValue>,
        /// Time of the increment. Default: the store's current time.
        #[schema(schema_with = schemas::time, required = false)]
        at: TextField<'a>,
        #[schema(schema_with = schemas::id, required = false)]
        id: TextField<'a>,
        /// Whether the increment reverses an earlier one, which happened at `at`. Default: false.
        #[schema(value_type = bool, required = false)]
        retract: Option<&'a RawValue>,
        #[schema(schema_with = schemas::tie_break_of_item, required = false)]
        tie_break: Option<&'a RawValue>,
        #[schema(schema_with = schemas::attributes_of_item, required = false)]
        attributes: Option<&'a RawValue>,
        #[schema(schema_with = schemas::position_of_item, required = false)]
        position: Option<&'a RawValue>,
    }
    /// A single increment or a batch.
    enum IncrementsBody;
    /// A batch of increments.
    struct IncrementBatch {
        /// The increments. One that does not match this schema is rejected on its own: the response is still 200 and
        /// lists it in `rejected`, and the others count.
        increments
    }
    invalid: ItemCode::InvalidIncrement
}

impl<'a> BoardItem<'a> for IncrementItem<'a> {
    fn into_increment(self, board: &Board) -> Result<Increment, ItemError> {
        items::check_no_position(self.position)?;
        let subject = ranking::subject(self.subject, self.by, board)?;
        let at = self.at.at()?;
        let id = self.id.id()?;
        let retract = items::parse_flag(self.retract, "retract", false, Self::INVALID)?;
        let (field, raw) = number::used(&[("amount", self.amount), ("value", self.value)], board)?;
        let numbered = |amount| number::numbered(amount, self.tie_break, field, board);
        let change = match board.kind() {
            Kind::Sum | Kind::TimedSum(_) => Change::Amount(numbered(match items::given(raw) {
                Some(raw) => number::amount(raw, field, board)?,
                None => Amount::one(board.decimals()),
            })?),
            Kind::Mean | Kind::Min | Kind::Max | Kind::Last => {
                Change::Amount(numbered(number::amount(number::required(raw, field, board)?, field, board)?)?)
            }
            Kind::Distinct | Kind::Capped { .. } | Kind::Sketch => {
                // No such board has second keys, so an item with one is refused.
                numbered(Amount(0))?;
                Change::Seen(counted(number::required(raw, field, board)?)?)
            }
        };
        if retract && !board.edition().takes_retractions() {
            let detail = format!("{} does not support retractions", board.definition().metric);
            return Err(ItemError::value(ItemCode::RetractionUnsupported, "retract", detail).depending_on_board());
        }
        // Over all time there is no slot to choose, unless some are kept, so the time may be left out.
        // On a board with a season it says which period has the increment, and with a cap which day of the person.
        let needs_time = board.edition().has_slots() || board.season().is_some() || board.definition().cap.is_some();
        items::check_retraction_time(retract && needs_time, at)?;
        Ok(Increment { other: None, subject, change, retract, at, id, period: None, event: None })
    }

    fn take_attributes(&mut self) -> Result<Beside, ItemError> {
        let Some(raw) = items::given(self.attributes.take()) else { return Ok(None) };
        let change = AttributesChange::merging(raw).map_err(|error| ItemError::of_attributes(&error))?;
        Ok(Some(Box::new(change)).filter(|change| !change.is_empty()))
    }
}

impl<'a> SourcedItem<'a> for IncrementItem<'a> {
    const NAME: &'static str = "increment";

    fn take_position(&mut self) -> Option<&'a RawValue> {
        items::given(self.position.take())
    }

    fn into_source_item(self, board: Option<&Board>) -> Result<(SourceItem, Vec<Box<str>>), ItemError> {
        let no_board = || ItemError::structural(Self::INVALID, "", "an increment is for a board");
        if items::given(self.attributes).is_some() {
            // Its items are passed again and again, and would bring back what was changed since.
            let detail = "an increment of a source has no attributes; set them with POST …/attributes";
            return Err(ItemError::value(ItemCode::InvalidAttributes, "attributes", detail));
        }
        let increment = self.into_increment(board.ok_or_else(no_board)?)?;
        Ok((SourceItem::Increment(increment.into()), Vec::new()))
    }
}

/// Parses a value to be counted: a string, or the JSON text of a number or boolean.
fn counted(raw: &RawValue) -> Result<Counted, ItemError> {
    let structural = |detail: &str| ItemError::structural(ItemCode::InvalidValue, "value", detail).depending_on_board();
    let text = match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str::<std::borrow::Cow<'_, str>>(raw.get())
            .map_err(|_| structural("'value' is not valid Unicode"))?,
        Some(b'[' | b'{') => return Err(structural("'value' must be a string, a number, or true or false")),
        _ => raw.get().into(),
    };
    Counted::parse(&text).map_err(|error| ItemError::value(ItemCode::InvalidValue, "value", error).depending_on_board())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};
    use crate::http::items::parse_element;

    fn board(metric: &str) -> Board {
        let mut definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        if !definition.kind().counts_values() {
            definition.decimals = crate::board::Decimals::new(1).unwrap();
        }
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }

    fn parsed(metric: &str, text: &str) -> Result<Increment, ItemError> {
        parse_element::<IncrementItem<'_>>(serde_json::from_str(text).unwrap())?.into_increment(&board(metric))
    }

    const COUNT: &str = "COUNT(24h, e, s)";
    const AVG: &str = "AVG(24h, e, v, s)";
    const MAX: &str = "MAX(24h, e, v, s)";
    const DISTINCT: &str = "COUNT_DISTINCT(24h, e, s, v)";
    const APPROX: &str = "APPROX_COUNT_DISTINCT(24h, e, s, v)";

    #[test]
    fn every_metric_accepts_its_fields() {
        let amount = |units| Change::Amount(Amount(units));
        let seen = |text: &str| Change::Seen(Counted::parse(text).unwrap());
        for (metric, text, change) in [
            (COUNT, r#"{"subject":"a"}"#, amount(10)),
            (COUNT, r#"{"subject":"a","amount":null,"value":null,"retract":null}"#, amount(10)),
            (COUNT, r#"{"subject":"a","amount":-2.5}"#, amount(-25)),
            (AVG, r#"{"subject":"a","value":21.5,"amount":null}"#, amount(215)),
            (MAX, r#"{"subject":"a","value":-0.0}"#, amount(0)),
            (DISTINCT, r#"{"subject":"a","value":"u\u0037"}"#, seen("u7")),
            (DISTINCT, r#"{"subject":"a","value":1.50}"#, seen("1.50")),
            (APPROX, r#"{"subject":"a","value":true}"#, seen("true")),
        ] {
            assert_eq!(parsed(metric, text).unwrap().change, change, "{metric} {text}");
        }
        let retraction = r#"{"subject":"a","value":"u","retract":true,"at":"2026-01-01T00:00:00Z"}"#;
        assert!(parsed(DISTINCT, retraction).unwrap().retract);
    }

    #[test]
    fn errors_have_a_code_a_field_and_a_detail() {
        for (metric, text, code, field, is_structural, detail) in [
            (
                COUNT,
                r#"{"x":1,"subject":"a","y":2}"#,
                ItemCode::UnknownField,
                "x",
                true,
                "'x'; expected one of subject, by, amount, value, at, id, retract, tie_break, attributes, position",
            ),
            (
                COUNT,
                r#"{"subject":"a","amount":null,"amount":1}"#,
                ItemCode::InvalidIncrement,
                "amount",
                true,
                "more than once",
            ),
            (COUNT, r#"{"subject":"a","value":1}"#, ItemCode::UnknownField, "value", true, "'amount', not 'value'"),
            (AVG, r#"{"subject":"a","amount":1}"#, ItemCode::UnknownField, "amount", true, "'value', not 'amount'"),
            (AVG, r#"{"subject":"a"}"#, ItemCode::InvalidValue, "value", true, "'value' is missing"),
            (AVG, r#"{"subject":"a","value":"x"}"#, ItemCode::InvalidAmount, "value", true, "must be a number"),
            (AVG, r#"{"subject":"a","value":0.25}"#, ItemCode::AmountPrecision, "value", false, "more decimals"),
            (MAX, r#"{"subject":"a","value":1e99}"#, ItemCode::AmountOutOfRange, "value", false, "beyond"),
            (DISTINCT, r#"{"subject":"a","amount":1}"#, ItemCode::UnknownField, "amount", true, "'value', not"),
            (DISTINCT, r#"{"subject":"a","value":null}"#, ItemCode::InvalidValue, "value", true, "missing"),
            (DISTINCT, r#"{"subject":"a","value":["x"]}"#, ItemCode::InvalidValue, "value", true, "a string"),
            (
                DISTINCT,
                r#"{"subject":"a","value":"\ud800"}"#,
                ItemCode::InvalidValue,
                "value",
                true,
                "not valid Unicode",
            ),
            (APPROX, r#"{"subject":"a","value":""}"#, ItemCode::InvalidValue, "value", false, "empty"),
            (COUNT, r#"{"subject":"a","retract":true}"#, ItemCode::MissingAt, "at", false, "needs 'at'"),
            (COUNT, r#"{"subject":"a","retract":"yes"}"#, ItemCode::InvalidIncrement, "retract", true, "true or false"),
            (
                MAX,
                r#"{"subject":"a","value":1,"retract":true}"#,
                ItemCode::RetractionUnsupported,
                "retract",
                false,
                "does not support",
            ),
        ] {
            let error = parsed(metric, text).unwrap_err();
            let found = (error.code, error.field.as_str(), error.is_structural);
            assert_eq!(found, (code, field, is_structural), "{text}: {error:?}");
            assert!(error.detail.contains(detail), "{text}: {error:?}");
        }
    }
}
