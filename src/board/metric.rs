//! A metric: a function of events over a window, per subject.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

use super::{
    Change, Counted, Decimals, Event, FieldFault, Fields, Filter, Key, Kind, RankingKey, Subject, Term, Terms,
    WindowLength,
};

/// The function over the events of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Function {
    /// The sum of what each event counts. COUNT is the sum of 1 for each event.
    Sum,
    /// The mean of a numeric field.
    Avg,
    /// The smallest value of a numeric field.
    Min,
    /// The greatest value of a numeric field.
    Max,
    /// The newest value of a numeric field.
    Last,
    /// The number of different values, exactly.
    CountDistinct { counted: Key },
    /// The approximate number of different values: see [`Sketch`](super::Sketch).
    ApproxCountDistinct { counted: Key },
}

impl Function {
    /// Returns how the slots of the metric combine.
    pub fn kind(&self) -> Kind {
        match self {
            Function::Sum => Kind::Sum,
            Function::Avg => Kind::Mean,
            Function::Min => Kind::Min,
            Function::Max => Kind::Max,
            Function::Last => Kind::Last,
            Function::CountDistinct { .. } => Kind::Distinct,
            Function::ApproxCountDistinct { .. } => Kind::Sketch,
        }
    }

    /// Returns the key whose different values the function counts, if it counts values.
    pub fn counted(&self) -> Option<&Key> {
        match self {
            Function::CountDistinct { counted } | Function::ApproxCountDistinct { counted } => Some(counted),
            Function::Sum | Function::Avg | Function::Min | Function::Max | Function::Last => None,
        }
    }
}

/// A metric: a function over a window, of the events of some types, per subject. Parses and prints as text of [the
/// language](super::language), such as `COUNT(24h, like, post_id)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    pub function: Function,
    /// The length of the window.
    pub window: WindowLength,
    /// The types of the events that count, and what each counts. Only the terms of [`Sum`](Function::Sum) have weights,
    /// and several of one type.
    pub terms: Terms,
    /// The key that names the subject of an event.
    pub subject: Key,
    /// The key that names the ranking to which an event belongs, if the board has one ranking for each of its values.
    /// Its text is a [`RankingKey`].
    pub by: Option<Key>,
    /// The filter on the events of these types. If absent, all of them count.
    pub filter: Option<Filter>,
}

/// A text that is not the key of a ranking of a metric, whatever fields an event has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the key of a ranking for each {by} is {form}")]
pub struct KeyFormError {
    by: String,
    form: &'static str,
}

impl Metric {
    /// Returns the effect of an event on a board of this metric: the subject and the change. Returns `None` if the
    /// event does not count on this board because it has another type or the filter rejects it; then no other field is
    /// read. O(fields of the metric x fields of the event).
    pub fn contribution(&self, event: &Event, decimals: Decimals) -> Result<Option<(Subject, Change)>, FieldFault> {
        if !self.terms.has(&event.kind) {
            return Ok(None);
        }
        let fields = &event.fields;
        if let Some(filter) = &self.filter
            && !filter.admits(fields)?
        {
            return Ok(None);
        }
        let subject = self.subject_of(fields)?;
        let change = match self.function.counted() {
            Some(counted) => Change::Seen(counted.name(fields, Counted::parse)?),
            None => Change::Amount(self.terms.amount(&event.kind, fields, decimals)?),
        };
        Ok(Some((subject, change)))
    }

    /// Returns the subject that an event's fields name, [in its ranking](Subject::in_ranking) if the metric has `BY`.
    /// The filter is not applied: it selects the events that count, not the subjects that can be read.
    pub fn subject_of(&self, fields: &Fields) -> Result<Subject, FieldFault> {
        let subject = self.subject.name(fields, Subject::parse)?;
        let key = self.by.as_ref().map(|by| by.name(fields, RankingKey::parse)).transpose()?;
        Ok(subject.in_ranking(key.as_ref()))
    }

    /// Returns the key of a ranking as the fields of events give it, or an error if they cannot.
    pub fn spelled_key(&self, key: RankingKey) -> Result<RankingKey, KeyFormError> {
        let Some(by) = &self.by else { return Ok(key) };
        let spelled = match by.spelled(key.as_str()) {
            Some(Cow::Borrowed(_)) => return Ok(key),
            Some(Cow::Owned(text)) => RankingKey::parse(&text).ok(),
            None => None,
        };
        spelled.ok_or_else(|| KeyFormError { by: by.to_string(), form: by.form() })
    }

    /// Returns whether the two metrics differ at most in their windows, so that one board can serve both.
    pub fn same_but_window(&self, other: &Metric) -> bool {
        let Metric { function, window: _, terms, subject, by, filter } = self;
        let is_same_subject = *subject == other.subject && *by == other.by;
        *function == other.function && *terms == other.terms && is_same_subject && *filter == other.filter
    }

    /// Returns the function's name in canonical form.
    pub fn name(&self) -> &'static str {
        match &self.function {
            Function::Sum if self.terms.count_events() => "COUNT",
            Function::Sum => "SUM",
            Function::Avg => "AVG",
            Function::Min => "MIN",
            Function::Max => "MAX",
            Function::Last => "LAST",
            Function::CountDistinct { .. } => "COUNT_DISTINCT",
            Function::ApproxCountDistinct { .. } => "APPROX_COUNT_DISTINCT",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metric { function, window, terms, subject, by, filter } = self;
        write!(f, "{}({window}, ", self.name())?;
        match terms.single() {
            Some(Term { event, field: Some(field), .. }) => write!(f, "{event}, {field}")?,
            Some(Term { event, field: None, .. }) => f.write_str(event)?,
            _ => write!(f, "{terms}")?,
        }
        write!(f, ", {subject}")?;
        if let Some(by) = by {
            write!(f, " BY {by}")?;
        }
        if let Some(counted) = function.counted() {
            write!(f, ", {counted}")?;
        }
        if let Some(filter) = filter {
            write!(f, " WHERE {filter}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
pub(super) mod strategy {
    use proptest::prelude::*;

    use super::*;
    use crate::board::{EXACT_MAX, Score, Weight, filter, key};

    /// Generates metrics of every form, with short names and small filters.
    pub fn metric() -> impl Strategy<Value = Metric> {
        let name = || "[A-Za-z_][A-Za-z0-9_.-]{0,8}".prop_map(String::into_boxed_str);
        let function = prop_oneof![
            Just(Function::Sum),
            Just(Function::Avg),
            Just(Function::Min),
            Just(Function::Max),
            Just(Function::Last),
            key::strategy::key().prop_map(|counted| Function::CountDistinct { counted }),
            key::strategy::key().prop_map(|counted| Function::ApproxCountDistinct { counted }),
        ];
        let weight =
            prop::option::of((1..=EXACT_MAX, 0..=Decimals::MAX, any::<bool>())).prop_map(|parts| match parts {
                None => Weight::ONE,
                Some((units, decimals, is_negative)) => {
                    let number = Score { units, decimals: Decimals::new(decimals).unwrap() };
                    let weight = Weight::parse(&number.to_string()).unwrap();
                    if is_negative { -weight } else { weight }
                }
            });
        let term = (name(), prop::option::of(name()), weight);
        let terms = prop::collection::vec(term, 1..4);
        let window = "all|[1-9][0-9]{0,3}(s|m|h|d|w|mo|y)".prop_map(|text| text.parse().unwrap());
        let by = prop::option::of(key::strategy::key());
        let filter = prop::option::of(filter::strategy::filter());
        (function, window, terms, key::strategy::key(), by, filter).prop_map(
            |(function, window, terms, subject, by, filter)| {
                let terms = terms.into_iter().map(|(event, field, weight)| Term { event, field, weight });
                Metric { terms: allowed(&function, terms), function, window, subject, by, filter }
            },
        )
    }

    /// Returns those of the terms that a function may have together, as they may be.
    fn allowed(function: &Function, terms: impl Iterator<Item = Term>) -> Terms {
        let mut all: Vec<Term> = Vec::new();
        for mut term in terms {
            if *function != Function::Sum {
                term.weight = Weight::ONE;
                term.field = function.counted().is_none().then(|| term.field.unwrap_or_else(|| "v".into()));
            }
            let is_same =
                |known: &Term| known.event == term.event && (*function != Function::Sum || known.field == term.field);
            if !all.iter().any(is_same) {
                all.push(term);
            }
        }
        Terms::new(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, Field};

    /// Parses fields such as `ip='203.0.113.9' amount=12.5 ok=true`.
    fn event(kind: &str, fields: &str) -> Event {
        let mut all = Fields::default();
        for (name, value) in fields.split_whitespace().filter_map(|field| field.split_once('=')) {
            let value = match value.strip_prefix('\'') {
                Some(text) => Field::Text(text.trim_end_matches('\'').into()),
                None if value == "true" || value == "false" => Field::Bool(value == "true"),
                None => Field::Number(value.into()),
            };
            all.set(name, value);
        }
        Event { kind: kind.into(), fields: all, at: None, id: None, retract: false }
    }

    fn contribution(metric: &str, fields: &str) -> Result<Option<(String, Change)>, String> {
        let metric: Metric = metric.parse().unwrap();
        match metric.contribution(&event("e", fields), Decimals::new(2).unwrap()) {
            Ok(found) => Ok(found.map(|(subject, change)| (subject.to_string(), change))),
            Err(fault) => Err(fault.to_string()),
        }
    }

    #[test]
    fn each_function_produces_its_own_kind_of_change() {
        let seen = |text: &str| Change::Seen(Counted::parse(text).unwrap());
        for (metric, fields, subject, change) in [
            ("COUNT(1h, e, s)", "s='a'", "a", Change::Amount(Amount(100))),
            ("COUNT(1h, e, s)", "s=1.50", "1.50", Change::Amount(Amount(100))),
            ("SUM(1h, e, v, s)", "s=true v=-1.5", "true", Change::Amount(Amount(-150))),
            ("SUM(1h, e, v, s)", "s='a' v='19.99'", "a", Change::Amount(Amount(1_999))),
            ("AVG(1h, e, v, s)", "s='a' v=2", "a", Change::Amount(Amount(200))),
            ("MIN(1h, e, v, s)", "s='a' v=0", "a", Change::Amount(Amount(0))),
            ("MAX(1h, e, v, s)", "s='a' v=1e2", "a", Change::Amount(Amount(10_000))),
            ("LAST(1h, e, v, s)", "s='a' v=-3", "a", Change::Amount(Amount(-300))),
            ("COUNT_DISTINCT(1h, e, s, u)", "s='a' u='x'", "a", seen("x")),
            ("COUNT_DISTINCT(1h, e, s, (u, n))", "s='a' u='x\"' n=1.0", "a", seen(r#"["x\"",1.0]"#)),
            ("APPROX_COUNT_DISTINCT(1h, e, (s, t), u)", "s='a' t=false u=7", r#"["a",false]"#, seen("7")),
            ("SUM(1h, e*3 + f, s)", "s='a'", "a", Change::Amount(Amount(300))),
            ("SUM(1h, f - e*0.5, s)", "s='a'", "a", Change::Amount(Amount(-50))),
            ("SUM(1h, e*5 + e: v*0.1 + f: w, s)", "s='a' v=10.10", "a", Change::Amount(Amount(601))),
            ("SUM(1h, e: v - e: w*2, s)", "s='a' v=1 w=2", "a", Change::Amount(Amount(-300))),
            ("COUNT(1h, f + e, s)", "s='a'", "a", Change::Amount(Amount(100))),
            ("MAX(1h, e: v + f: w, s)", "s='a' v=7", "a", Change::Amount(Amount(700))),
            ("COUNT_DISTINCT(1h, e + f, s, u)", "s='a' u='x'", "a", seen("x")),
            ("COUNT(1h, e, s BY (k, l))", "s='a' k='x' l=1", "[\"x\",1]\0a", Change::Amount(Amount(100))),
        ] {
            assert_eq!(contribution(metric, fields), Ok(Some((subject.to_owned(), change))), "{metric} of {fields}");
        }
    }

    #[test]
    fn events_not_for_the_board_need_no_fields() {
        let metric: Metric = "SUM(1h, other, v, s)".parse().unwrap();
        assert_eq!(metric.contribution(&event("e", ""), Decimals::default()), Ok(None));
        assert_eq!(contribution("SUM(1h, e, v, s WHERE c = 'app')", "c='web'"), Ok(None));
        assert_eq!(
            contribution("SUM(1h, e, v, s WHERE c = 'app')", "c='app'"),
            Err("the field 's' is missing".to_owned())
        );
    }

    #[test]
    fn faults_name_the_field() {
        let long = format!("s='{}' t='{}'", "x".repeat(300), "y".repeat(300));
        for (metric, fields, fault) in [
            ("COUNT(1h, e, s)", "", "the field 's' is missing"),
            ("COUNT(1h, e, s)", "s=''", "the field 's': subject must not be empty"),
            ("COUNT_DISTINCT(1h, e, s, u)", "s='a' u=''", "the field 'u': value must not be empty"),
            ("COUNT(1h, e, (s, t))", "s='a'", "the field 't' is missing"),
            ("COUNT(1h, e, s BY t)", "s='a'", "the field 't' is missing"),
            ("COUNT(1h, e, s BY t)", "s='a' t=''", "the field 't': key must not be empty"),
            (
                "COUNT(1h, e, (s, t))",
                &long,
                "the field '(s, t)': subject has 607 bytes of UTF-8; at most 512 are allowed",
            ),
            ("SUM(1h, e, v, s)", "s='a'", "the field 'v' is missing"),
            ("SUM(1h, e, v, s)", "s='a' v='x1'", "the field 'v': expected a number, found a text"),
            (
                "SUM(1h, e, v, s)",
                "s='a' v='0.001'",
                "the field 'v': '0.001' has more decimals than the 2 this board keeps",
            ),
            ("MAX(1h, e, v, s)", "s='a' v=true", "the field 'v': expected a number, found a boolean"),
            (
                "AVG(1h, e, v, s)",
                "s='a' v=0.001",
                "the field 'v': '0.001' has more decimals than the 2 this board keeps",
            ),
            ("COUNT(1h, e, s WHERE c > 1)", "c='x'", "the field 'c': expected a number, found a text"),
            ("SUM(1h, e*5 + e: v, s)", "s='a'", "the field 'v' is missing"),
            (
                "SUM(1h, e: v*0.1 + f, s)",
                "s='a' v=19.99",
                "the field 'v': '19.99 * 0.1' has more decimals than the 2 this board keeps",
            ),
            (
                "SUM(1h, e: v + e: w, s)",
                "s='a' v=90071992547409.91 w=0.01",
                "the field 'w': '90071992547409.92' is beyond what a board with 2 decimals holds exactly",
            ),
        ] {
            assert_eq!(contribution(metric, fields), Err(fault.to_owned()), "{metric} of {fields}");
        }
    }

    #[test]
    fn same_but_window_compares_everything_except_the_window() {
        let same = |a: &str, b: &str| a.parse::<Metric>().unwrap().same_but_window(&b.parse().unwrap());
        assert!(same("COUNT(1h, e, s WHERE (a = 1.0))", "count(30m,e,s) where a=1"));
        for other in [
            "COUNT(1h, f, s)",
            "COUNT(1h, e, t)",
            "COUNT(1h, e, (s, t))",
            "COUNT(1h, e, s BY t)",
            "COUNT(1h, e, s WHERE a = 1)",
            "SUM(1h, e, v, s)",
            "COUNT_DISTINCT(1h, e, s, u)",
            "SUM(1h, e*2, s)",
            "COUNT(1h, e + f, s)",
        ] {
            assert!(!same("COUNT(1h, e, s)", other), "{other}");
        }
        assert!(!same("SUM(1h, e, v, s)", "SUM(1h, e, w, s)"));
        assert!(same("SUM(1h, e*2 + f, s)", "SUM(1h, f*1 + e*2.0, s)"));
        assert!(!same("SUM(1h, e*2 + f, s)", "SUM(1h, e*2 - f, s)"));
    }
}
