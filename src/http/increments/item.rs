//! One increment as it is sent, and what it takes to become one of a board.
//!
//! An amount stays the text it was sent as, because a float on the way would lose what an amount promises to keep.

use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::number::{self, misplaced};
use crate::board::{Amount, Board, Change, Counted, Kind};
use crate::http::codes::ItemCode;
use crate::http::intake::{self, Flaw, Item, Stray, Text, Truth};
use crate::store::Increment;

/// An item of a request about one board.
pub(in crate::http) trait BoardItem<'a>: Item<'a> {
    /// Reads the values as the board has them. What is wrong is named, with what is allowed.
    fn judge(self, board: &Board) -> Result<Increment, Flaw>;
}

/// What one JSON object said, not yet judged.
#[derive(Default)]
pub(in crate::http) struct IncrementItem<'a> {
    subject: Text<'a>,
    amount: Option<&'a RawValue>,
    value: Option<&'a RawValue>,
    at: Text<'a>,
    id: Text<'a>,
    retract: Option<&'a RawValue>,
    /// The first field that does not belong.
    stray: Option<Stray>,
}

impl<'a> Item<'a> for IncrementItem<'a> {
    const NAME: &'static str = "an increment";
    const LIST: &'static str = "increments";
    const FIELDS: &'static str = "subject, amount or value, at, id, retract";
    const INVALID: ItemCode = ItemCode::InvalidIncrement;

    fn take<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<Stray>, A::Error> {
        let (name, again) = match name {
            "subject" => ("subject", self.subject.fill(map)?),
            "amount" => ("amount", self.amount.replace(map.next_value()?).is_some()),
            "value" => ("value", self.value.replace(map.next_value()?).is_some()),
            "at" => ("at", self.at.fill(map)?),
            "id" => ("id", self.id.fill(map)?),
            "retract" => ("retract", self.retract.replace(map.next_value()?).is_some()),
            other => return intake::unknown(other, map),
        };
        Ok(again.then_some(Stray::Repeated(name)))
    }

    fn note(&mut self, stray: Stray) {
        self.stray.get_or_insert(stray);
    }

    fn is_empty(&self) -> bool {
        let texts = [&self.subject, &self.at, &self.id];
        let values = [self.amount, self.value, self.retract];
        texts.iter().all(|text| text.is_absent()) && values.iter().all(Option::is_none) && self.stray.is_none()
    }
}

impl<'a> BoardItem<'a> for IncrementItem<'a> {
    fn judge(self, board: &Board) -> Result<Increment, Flaw> {
        if let Some(stray) = self.stray {
            return Err(Flaw::stray(stray, Self::NAME, Self::FIELDS, Self::INVALID));
        }
        let subject = self.subject.subject()?;
        let at = self.at.at()?;
        let id = self.id.id()?;
        let retract = Truth::read(self.retract, "retract", Self::INVALID)?;
        let change = match board.kind() {
            Kind::Sum => {
                misplaced(self.value, "value", "amount", board)?;
                Change::Amount(match number::given(self.amount) {
                    Some(raw) => number::amount(raw, "amount", board)?,
                    None => Amount::one(board.decimals()),
                })
            }
            Kind::Mean | Kind::Min | Kind::Max => {
                misplaced(self.amount, "amount", "value", board)?;
                Change::Amount(number::amount(number::required(self.value, "value", board)?, "value", board)?)
            }
            Kind::Distinct | Kind::Sketch => {
                misplaced(self.amount, "amount", "value", board)?;
                Change::Seen(counted(number::required(self.value, "value", board)?)?)
            }
        };
        if retract && !board.takes_retractions() {
            let detail = format!("{} cannot undo what it has counted", board.definition().metric);
            return Err(Flaw::value(ItemCode::RetractionUnsupported, "retract", detail).of_board());
        }
        intake::retraction_is_dated(retract, at)?;
        Ok(Increment { subject, change, retract, at, id })
    }
}

/// A value to be counted: a string, or the text of a number or a truth value.
fn counted(raw: &RawValue) -> Result<Counted, Flaw> {
    let shape = |detail: &str| Flaw::shape(ItemCode::InvalidValue, "value", detail).of_board();
    let text = match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str::<std::borrow::Cow<'_, str>>(raw.get())
            .map_err(|_| shape("'value' is a string that is not Unicode"))?,
        Some(b'[' | b'{') => return Err(shape("'value' must be a string, a number, or true or false")),
        _ => raw.get().into(),
    };
    Counted::parse(&text).map_err(|error| Flaw::value(ItemCode::InvalidValue, "value", error).of_board())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};
    use crate::http::intake::from_raw;

    fn board(metric: &str) -> Board {
        let mut definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        if !matches!(definition.kind(), Kind::Distinct | Kind::Sketch) {
            definition.decimals = crate::board::Decimals::new(1).unwrap();
        }
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }

    fn judged(metric: &str, text: &str) -> Result<Increment, Flaw> {
        from_raw::<IncrementItem<'_>>(serde_json::from_str(text).unwrap())?.judge(&board(metric))
    }

    const COUNT: &str = "COUNT(24h, e, s)";
    const AVG: &str = "AVG(24h, e, v, s)";
    const MAX: &str = "MAX(24h, e, v, s)";
    const DISTINCT: &str = "COUNT_DISTINCT(24h, e, s, v)";
    const APPROX: &str = "APPROX_COUNT_DISTINCT(24h, e, s, v)";

    #[test]
    fn every_metric_takes_what_it_counts() {
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
            assert_eq!(judged(metric, text).unwrap().change, change, "{metric} {text}");
        }
        let undone = r#"{"subject":"a","value":"u","retract":true,"at":"2026-01-01T00:00:00Z"}"#;
        assert!(judged(DISTINCT, undone).unwrap().retract);
    }

    #[test]
    fn what_it_does_not_take_is_named_with_the_right_field() {
        for (metric, text, code, field, of_shape, detail) in [
            (COUNT, r#"{"subject":"a","value":1}"#, ItemCode::UnknownField, "value", true, "'amount', not 'value'"),
            (AVG, r#"{"subject":"a","amount":1}"#, ItemCode::UnknownField, "amount", true, "'value', not 'amount'"),
            (AVG, r#"{"subject":"a"}"#, ItemCode::InvalidValue, "value", true, "'value' is missing"),
            (AVG, r#"{"subject":"a","value":"1"}"#, ItemCode::InvalidAmount, "value", true, "must be a number"),
            (AVG, r#"{"subject":"a","value":0.25}"#, ItemCode::AmountPrecision, "value", false, "more decimals"),
            (MAX, r#"{"subject":"a","value":1e99}"#, ItemCode::AmountOutOfRange, "value", false, "beyond"),
            (DISTINCT, r#"{"subject":"a","amount":1}"#, ItemCode::UnknownField, "amount", true, "'value', not"),
            (DISTINCT, r#"{"subject":"a","value":null}"#, ItemCode::InvalidValue, "value", true, "missing"),
            (DISTINCT, r#"{"subject":"a","value":["x"]}"#, ItemCode::InvalidValue, "value", true, "a string"),
            (DISTINCT, r#"{"subject":"a","value":"\ud800"}"#, ItemCode::InvalidValue, "value", true, "not Unicode"),
            (APPROX, r#"{"subject":"a","value":""}"#, ItemCode::InvalidValue, "value", false, "empty"),
            (COUNT, r#"{"subject":"a","retract":true}"#, ItemCode::MissingAt, "at", false, "needs 'at'"),
            (COUNT, r#"{"subject":"a","retract":"yes"}"#, ItemCode::InvalidIncrement, "retract", true, "true or false"),
            (
                MAX,
                r#"{"subject":"a","value":1,"retract":true}"#,
                ItemCode::RetractionUnsupported,
                "retract",
                false,
                "cannot undo",
            ),
        ] {
            let flaw = judged(metric, text).unwrap_err();
            assert_eq!((flaw.code, flaw.field.as_str(), flaw.of_shape), (code, field, of_shape), "{text}: {flaw:?}");
            assert!(flaw.detail.contains(detail), "{text}: {flaw:?}");
        }
    }
}
