//! The query of a request, read strictly: a parameter that is misspelt is an error, not a default.

use std::ops::RangeInclusive;

use actix_web::{HttpRequest, web};

use super::codes::Code;
use super::problem::Problem;

/// The parameters of one query, each known and given at most once.
pub(super) struct Parameters {
    given: Vec<(String, String)>,
}

impl Parameters {
    /// Reads the query, which may have these parameters and no others.
    pub(super) fn read(request: &HttpRequest, known: &[&str]) -> Result<Self, Problem> {
        Self::parse(request.query_string(), known)
    }

    fn parse(query: &str, known: &[&str]) -> Result<Self, Problem> {
        if query.is_empty() {
            return Ok(Self { given: Vec::new() });
        }
        let given = web::Query::<Vec<(String, String)>>::from_query(query)
            .map_err(|error| Problem::field("query", error.to_string()))?
            .into_inner();
        for (at, (name, _)) in given.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let name: String = name.chars().take(64).collect();
                let detail = match known {
                    [] => format!("there is no parameter '{name}': this path takes none"),
                    _ => format!("there is no parameter '{name}' here; there is {}", known.join(", ")),
                };
                return Err(Problem::new(Code::UnknownField, detail).with("field", name));
            }
            if given[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(name, format!("the parameter '{name}' is given twice")));
            }
        }
        Ok(Self { given })
    }

    /// The text of a parameter, if it is given.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// A whole number within bounds, or its default.
    pub(super) fn number(&self, name: &str, default: u64, bounds: RangeInclusive<u64>) -> Result<u64, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match text.parse() {
            // Rust would read "+5", which no other part of the API does.
            Ok(number) if bounds.contains(&number) && text.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
            _ => {
                let (least, most) = (bounds.start(), bounds.end());
                let detail = format!("'{name}' must be a whole number from {least} to {most}");
                Err(Problem::field(name, detail).with("minimum", *least).with("maximum", *most))
            }
        }
    }

    /// `true` or `false`, or false where it is not given.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Problem::field(name, format!("'{name}' must be true or false"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<impl Sized, Problem>) -> Option<Code> {
        result.err().map(|problem| problem.code())
    }

    #[test]
    fn strict_about_names_and_bounds() {
        let known = &["limit", "dry_run"][..];
        assert_eq!(code(Parameters::parse("limt=5", known)), Some(Code::UnknownField));
        assert_eq!(code(Parameters::parse("limit=5&limit=5", known)), Some(Code::InvalidField));
        for bad in ["", "0", "1001", "+5", "5.0", "-1", "five", "99999999999999999999999"] {
            let parameters = Parameters::parse(&format!("limit={bad}"), known).unwrap();
            assert_eq!(code(parameters.number("limit", 50, 1..=1_000)), Some(Code::InvalidField), "{bad}");
        }
        let parameters = Parameters::parse("limit=1000&dry_run=true", known).unwrap();
        assert_eq!(parameters.number("limit", 50, 1..=1_000).unwrap(), 1_000);
        assert_eq!(parameters.number("offset", 7, 0..=9).unwrap(), 7);
        assert!(parameters.flag("dry_run").unwrap());
        assert_eq!(code(Parameters::parse("dry_run=yes", known).unwrap().flag("dry_run")), Some(Code::InvalidField));
    }
}
