//! Amounts for equal subjects, added up to one item.

use crate::item::Object;

/// The most digits of an amount that is added to others, and of a sum.
///
/// A board takes no sum beyond a bound of its own. A larger amount is sent by itself, so that it is not the reason for
/// which others are refused.
const MAX_DIGITS: u32 = 9;

/// Which amounts are added up: those for an equal subject and key, with as many decimals. So an amount with more
/// decimals than the board has is refused by itself.
///
/// The texts are those of the item, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    subject: String,
    by: Option<String>,
    decimals: usize,
}

/// Returns where the amount of an item is added to others, and the amount in units of its last decimal. None for an
/// item that is sent by itself, such as one with an id.
pub(crate) fn place(item: &Object) -> Option<(Place, i64)> {
    let (mut subject, mut by, mut amount) = (None, None, None);
    for (name, text) in item.members() {
        let member = match name {
            "subject" => &mut subject,
            "by" => &mut by,
            "amount" => &mut amount,
            _ => return None,
        };
        // Not one that is there twice, nor a subject or key that is no text: the service refuses it.
        if member.replace(text).is_some() || (name != "amount" && !text.starts_with('"')) {
            return None;
        }
    }
    let (units, decimals) = units(amount.unwrap_or("1"))?;
    Some((Place { subject: subject?.to_owned(), by: by.map(str::to_owned), decimals }, units))
}

/// Returns the sum, unless it has too many digits.
pub(crate) fn add(a: i64, b: i64) -> Option<i64> {
    a.checked_add(b).filter(|sum| sum.unsigned_abs() < 10_u64.pow(MAX_DIGITS))
}

fn units(number: &str) -> Option<(i64, usize)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    // One with an exponent is not parsed either.
    (digits.trim_start_matches('-').len() <= MAX_DIGITS as usize)
        .then(|| digits.parse().ok())?
        .zip(Some(fraction.len()))
}

impl Place {
    /// Returns the item with this amount and id.
    pub(crate) fn item(&self, units: i64, id: &str) -> String {
        let Self { subject, by, decimals } = self;
        let sign = if units < 0 { "-" } else { "" };
        let digits = format!("{:0>1$}", units.unsigned_abs(), decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let point = if fraction.is_empty() { "" } else { "." };
        let by = by.as_ref().map(|by| format!(",\"by\":{by}")).unwrap_or_default();
        format!("{{\"subject\":{subject}{by},\"amount\":{sign}{whole}{point}{fraction},\"id\":\"{id}\"}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Increment;

    fn place_of(line: &str) -> Option<(Place, i64)> {
        place(&Increment::from_json(line).unwrap().0)
    }

    #[test]
    fn sums_are_exact() {
        let sum = |a: &str, b: &str| {
            let of = |amount: &str| place_of(&format!("{{\"subject\":\"s\",\"amount\":{amount}}}")).unwrap();
            let ((place, a), (other, b)) = (of(a), of(b));
            assert_eq!(place, other);
            let text = place.item(add(a, b).unwrap(), "i");
            text.split_once("\"amount\":").unwrap().1.split_once(',').unwrap().0.to_owned()
        };
        assert_eq!(sum("1", "2"), "3");
        assert_eq!(sum("0.1", "0.2"), "0.3");
        assert_eq!(sum("-0.10", "0.03"), "-0.07");
        assert_eq!(sum("-1.5", "1.5"), "0.0");
        assert_eq!(sum("999999.99", "-0.99"), "999999.00");
    }

    #[test]
    fn only_plain_amounts_are_added_up() {
        assert_eq!(place_of("{\"subject\":\"a\"}").unwrap().1, 1);
        assert_ne!(place_of("{\"subject\":\"a\"}"), place_of("{\"subject\":\"a\",\"by\":\"k\"}"));
        assert_ne!(place_of("{\"subject\":\"a\",\"amount\":1}"), place_of("{\"subject\":\"a\",\"amount\":1.0}"));
        for line in [
            r#"{"subject":"a","id":"i"}"#,
            r#"{"subject":"a","at":"2026-01-01T00:00:00Z"}"#,
            r#"{"subject":"a","value":1}"#,
            r#"{"subject":"a","retract":true}"#,
            r#"{"subject":"a","amount":1e2}"#,
            r#"{"subject":"a","amount":"1"}"#,
            r#"{"subject":"a","amount":null}"#,
            r#"{"subject":"a","by":null}"#,
            r#"{"subject":"a","amount":1234567890}"#,
            r#"{"subject":"a","subject":"b"}"#,
            r#"{"subject":"a","amount":1,"amount":2}"#,
            r#"{"subject":5}"#,
            r#"{"amount":5}"#,
        ] {
            assert!(place_of(line).is_none(), "{line}");
        }
        assert_eq!(add(999_999_999, 1), None);
        assert_eq!(add(i64::MIN, -1), None);
    }

    #[test]
    fn the_item_of_a_sum_has_its_key() {
        let (place, units) = place_of(r#"{"subject":"a","by":"k","amount":2.50}"#).unwrap();
        assert_eq!(place.item(units, "i"), r#"{"subject":"a","by":"k","amount":2.50,"id":"i"}"#);
    }
}
