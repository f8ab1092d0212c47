//! Evaluation of rules.

use std::cmp::Ordering;

use super::{Arithmetic, Compare, Compared, Expression, Operand, Type, Verdict};
use crate::board::condition::Condition;
use crate::board::{Field, FieldFault, Fields, Metric, number};

/// Evaluates every comparison and combines the results into the verdict.
pub(super) fn verdict(
    rule: &Condition<Compare>,
    fields: &Fields,
    value_of: &dyn Fn(&Metric) -> Option<f64>,
) -> Result<Verdict, FieldFault> {
    let given = EvaluationInput { fields, value_of };
    let mut comparisons = Vec::new();
    let hit = given.hit(rule, &mut comparisons)?;
    Ok(Verdict { hit, comparisons })
}

/// The input of an evaluation.
struct EvaluationInput<'a> {
    fields: &'a Fields,
    value_of: &'a dyn Fn(&Metric) -> Option<f64>,
}

impl EvaluationInput<'_> {
    /// Evaluates a condition. Unlike [`Condition::holds`], this evaluates every comparison, even where the result is
    /// already known.
    fn hit(&self, rule: &Condition<Compare>, made: &mut Vec<Compared>) -> Result<bool, FieldFault> {
        match rule {
            Condition::One(compare) => {
                let compared = self.compared(compare)?;
                let hit = compared.hit;
                made.push(compared);
                Ok(hit)
            }
            Condition::Not(inner) => Ok(!self.hit(inner, made)?),
            Condition::All(conditions) => {
                conditions.iter().try_fold(true, |all, condition| Ok(self.hit(condition, made)? && all))
            }
            Condition::Any(conditions) => {
                conditions.iter().try_fold(false, |any, condition| Ok(self.hit(condition, made)? || any))
            }
        }
    }

    fn compared(&self, compare: &Compare) -> Result<Compared, FieldFault> {
        let Compare { left, comparison, right } = compare;
        let (left_value, right_value) = (self.value(left)?, self.value(right)?);
        let left_value = self.beside(left, left_value, type_of(right, right_value.as_ref()))?;
        let right_value = self.beside(right, right_value, type_of(left, left_value.as_ref()))?;
        // The type check must not depend on the metrics' values: a rule is also checked without them, before its event
        // is counted.
        let types = (type_of(left, left_value.as_ref()), type_of(right, right_value.as_ref()));
        if let (Some(expected), Some(found)) = types {
            if expected != found {
                // The error names the field. If both sides are fields, it names the right one.
                return Err(match right.field() {
                    Some(_) => fault(right, left, mismatch(expected, found)),
                    None => fault(left, right, mismatch(found, expected)),
                });
            }
            if expected == Type::Bool && comparison.needs_order() {
                return Err(fault(left, right, "a boolean has no order".to_owned()));
            }
        }
        let order = match (&left_value, &right_value) {
            (Some(Operand::Number(a)), Some(Operand::Number(b))) => {
                self.exactly(left, right).or_else(|| a.partial_cmp(b))
            }
            (Some(Operand::Text(a)), Some(Operand::Text(b))) => Some(a.cmp(b)),
            (Some(Operand::Bool(a)), Some(Operand::Bool(b))) => Some(a.cmp(b)),
            _ => None,
        };
        Ok(Compared {
            left: left.to_string(),
            left_value,
            comparison: *comparison,
            right: right.to_string(),
            right_value,
            metrics: compare.metrics(),
            hit: order.is_some_and(|order| comparison.holds(order)),
        })
    }

    /// Returns the value of a side that is compared with a value of the type `other`. A field whose text is a number is
    /// a number beside one.
    fn beside(
        &self,
        side: &Expression,
        value: Option<Operand>,
        other: Option<Type>,
    ) -> Result<Option<Operand>, FieldFault> {
        match (side, &value, other) {
            (Expression::Field(name), Some(Operand::Text(_)), Some(Type::Number)) => {
                match self.fields.require(name)?.number() {
                    Some(number) => Ok(Some(Operand::Number(float(name, number)?))),
                    None => Ok(value),
                }
            }
            _ => Ok(value),
        }
    }

    /// Compares two sides that are written numbers, without a conversion to float. Returns `None` for other sides.
    fn exactly(&self, left: &Expression, right: &Expression) -> Option<Ordering> {
        number::compare(self.written(left)?, self.written(right)?)
    }

    fn written<'a>(&'a self, side: &'a Expression) -> Option<&'a str> {
        match side {
            Expression::Number(number) => Some(number),
            Expression::Field(field) => self.fields.get(field)?.number(),
            _ => None,
        }
    }

    fn value(&self, side: &Expression) -> Result<Option<Operand>, FieldFault> {
        Ok(match side {
            Expression::Text(text) => Some(Operand::Text(text.clone())),
            Expression::Bool(truth) => Some(Operand::Bool(*truth)),
            Expression::Field(name) => Some(match self.fields.require(name)? {
                Field::Text(text) => Operand::Text(text.clone()),
                Field::Bool(truth) => Operand::Bool(*truth),
                Field::Number(number) => Operand::Number(float(name, number)?),
            }),
            Expression::Metric(_) | Expression::Number(_) | Expression::Negated(_) | Expression::Chain { .. } => {
                self.number(side)?.map(Operand::Number)
            }
        })
    }

    /// Returns the value of a side that must be a number, or `None` if it has none or the number is not finite.
    fn number(&self, side: &Expression) -> Result<Option<f64>, FieldFault> {
        let number = match side {
            Expression::Metric(metric) => (self.value_of)(metric),
            Expression::Number(number) => number.parse().ok(),
            Expression::Negated(inner) => self.number(inner)?.map(|number| -number),
            Expression::Chain { first, rest } => {
                let mut total = self.number(first)?;
                for (operator, operand) in rest {
                    // Evaluated even where the total is already `None`, because a missing field is a fault in any case.
                    let operand = self.number(operand)?;
                    total = total.zip(operand).map(|(a, b)| match operator {
                        Arithmetic::Plus => a + b,
                        Arithmetic::Minus => a - b,
                        Arithmetic::Times => a * b,
                        Arithmetic::Over => a / b,
                    });
                }
                total
            }
            Expression::Field(name) => {
                let value = self.fields.require(name)?;
                let Some(number) = value.number() else {
                    let detail = format!("expected a number, found {}", value.described());
                    return Err(FieldFault::Invalid { field: name.clone(), detail });
                };
                Some(float(name, number)?)
            }
            // The parser does not accept these in arithmetic.
            Expression::Text(_) | Expression::Bool(_) => None,
        };
        // Adding 0.0 turns −0 into 0.
        Ok(number.filter(|number| number.is_finite()).map(|number| number + 0.0))
    }
}

/// Returns a field's number as a float.
fn float(field: &str, number: &str) -> Result<f64, FieldFault> {
    match number.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(float),
        _ => {
            let shown: String = number.chars().take(40).collect();
            Err(FieldFault::Invalid {
                field: field.into(),
                detail: format!("'{shown}' is outside the range of numbers that a rule can compare"),
            })
        }
    }
}

/// Returns the type of a side: the type of its value or, without a value, the type known from its syntax.
fn type_of(side: &Expression, value: Option<&Operand>) -> Option<Type> {
    match value {
        Some(Operand::Number(_)) => Some(Type::Number),
        Some(Operand::Text(_)) => Some(Type::Text),
        Some(Operand::Bool(_)) => Some(Type::Bool),
        None => side.known_type(),
    }
}

fn mismatch(expected: Type, found: Type) -> String {
    let described = |side: Type| match side {
        Type::Number => "a number",
        Type::Text => "a text",
        Type::Bool => "a boolean",
    };
    format!("expected {}, found {}", described(expected), described(found))
}

/// Returns a fault of the first side that is a field. At least one is: the parser rejects all other comparisons of
/// different types.
fn fault(side: &Expression, other: &Expression, detail: String) -> FieldFault {
    let field = side.field().or(other.field()).unwrap_or_default();
    FieldFault::Invalid { field: field.into(), detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Rule;

    fn fields() -> Fields {
        let mut fields = Fields::default();
        fields.set("amount", Field::Number("12.50".into()));
        fields.set("big", Field::Number("9007199254740993".into()));
        fields.set("huge", Field::Number("1e999".into()));
        fields.set("channel", Field::Text("app".into()));
        fields.set("price", Field::Text("19.99".into()));
        fields.set("ok", Field::Bool(true));
        fields
    }

    /// Returns 4 for COUNT, 10.5 for SUM, and no value for everything else.
    fn value_of(metric: &Metric) -> Option<f64> {
        match metric.name() {
            "COUNT" => Some(4.0),
            "SUM" => Some(10.5),
            _ => None,
        }
    }

    fn verdict(rule: &str) -> Result<Verdict, String> {
        let rule: Rule = rule.parse().unwrap();
        rule.evaluate(&fields(), &value_of).map_err(|fault| fault.to_string())
    }

    fn hit(rule: &str) -> bool {
        verdict(rule).unwrap().hit
    }

    #[test]
    fn comparisons_of_metrics_fields_literals_and_arithmetic() {
        for (rule, expected) in [
            ("COUNT(1h, e, s) > 3", true),
            ("COUNT(1h, e, s) > 4", false),
            ("COUNT(1h, e, s) >= 4", true),
            ("3 < COUNT(1h, e, s)", true),
            ("price = 19.990", true),
            ("price > amount", true),
            ("price > 2 * COUNT(1h, e, s)", true),
            ("price + 0.01 = 20", true),
            ("price = '19.99'", true),
            ("price = '19.990'", false),
            ("SUM(1d, e, v, s) > 3 * COUNT(1d, e, s)", false),
            ("SUM(1d, e, v, s) / 2 - 0.25 = 5", true),
            ("1 - 2 - 3 = -4", true),
            ("1 - (2 - 3) = 2", true),
            ("2 + 3 * 4 = 14", true),
            ("(2 + 3) * 4 = 20", true),
            ("12 / 4 / 3 = 1", true),
            ("-amount = -12.5", true),
            ("-(amount + 1) < --1", true),
            ("amount = 12.5", true),
            ("big = 9007199254740992", false),
            ("big + 0 = 9007199254740992", true),
            ("channel = 'app'", true),
            ("channel != 'web'", true),
            ("channel > 'apo'", true),
            ("ok = true", true),
            ("ok != ok", false),
            ("false = true", false),
        ] {
            assert_eq!(hit(rule), expected, "{rule}");
        }
    }

    #[test]
    fn logical_operators_and_parentheses_are_evaluated() {
        for (rule, expected) in [
            ("1 = 1 OR 1 = 1 AND 1 = 2", true),
            ("(1 = 1 OR 1 = 1) AND 1 = 2", false),
            ("NOT 1 = 2 AND 1 = 1", true),
            ("NOT (1 = 1 OR 1 = 2)", false),
            ("((1 + 1) * 2 = 4 AND (((3)) > 2))", true),
            ("(1) = (1)", true),
        ] {
            assert_eq!(hit(rule), expected, "{rule}");
        }
    }

    #[test]
    fn comparisons_with_an_undefined_side_are_false() {
        for rule in ["AVG(1h, e, v, s) > 0", "AVG(1h, e, v, s) <= 0", "1 / 0 > 0", "0 / 0 != 1", "1e308 * 10 > 1"] {
            assert!(!hit(rule), "{rule}");
        }
        let verdict = verdict("AVG(1h, e, v, s) + 1 != 3 OR NOT 1 / (2 - 2) > 0").unwrap();
        assert!(verdict.hit);
        assert_eq!((&verdict.comparisons[0].left_value, &verdict.comparisons[1].left_value), (&None, &None));
    }

    #[test]
    fn every_comparison_is_reported_with_its_values() {
        let verdict = verdict("count(1h,e,s)>5 and channel<>'web' or not ok=true").unwrap();
        let compared = |left: &str, left_value, comparison, right: &str, right_value, hit| Compared {
            left: left.into(),
            left_value: Some(left_value),
            comparison,
            right: right.into(),
            right_value: Some(right_value),
            metrics: if left.starts_with("COUNT") { vec![left.parse().unwrap()] } else { Vec::new() },
            hit,
        };
        use crate::board::Comparison::{Equal, Greater, NotEqual};
        use Operand::{Bool, Number, Text};
        assert_eq!(
            verdict.comparisons,
            [
                compared("COUNT(1h, e, s)", Number(4.0), Greater, "5", Number(5.0), false),
                compared("channel", Text("app".into()), NotEqual, "'web'", Text("web".into()), true),
                compared("ok", Bool(true), Equal, "true", Bool(true), true),
            ]
        );
        assert!(!verdict.hit);
        let shown = serde_json::to_string(&[Number(4.0), Number(0.5), Text("a".into()), Bool(true)]).unwrap();
        assert_eq!(shown, r#"[4,0.5,"a",true]"#);
    }

    #[test]
    fn faults_name_the_field() {
        for (rule, fault) in [
            ("gone > 1", "the field 'gone' is missing"),
            ("1 = 1 OR 1 / 0 + gone > 1", "the field 'gone' is missing"),
            ("channel > 1", "the field 'channel': expected a number, found a text"),
            ("'app' = amount", "the field 'amount': expected a text, found a number"),
            ("amount = ok", "the field 'ok': expected a number, found a boolean"),
            ("COUNT(1h, e, s) > channel", "the field 'channel': expected a number, found a text"),
            ("AVG(1h, e, v, s) > channel", "the field 'channel': expected a number, found a text"),
            ("ok = 1 / (COUNT(1h, e, s) - 4)", "the field 'ok': expected a number, found a boolean"),
            ("channel * 2 > 1", "the field 'channel': expected a number, found a text"),
            ("-ok > 1", "the field 'ok': expected a number, found a boolean"),
            ("ok < ok", "the field 'ok': a boolean has no order"),
            ("huge > 1", "the field 'huge': '1e999' is outside the range of numbers that a rule can compare"),
        ] {
            assert_eq!(verdict(rule), Err(fault.to_owned()), "{rule}");
        }
    }
}
