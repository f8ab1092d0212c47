//! Query parameters of a request, parsed strictly: an unknown parameter is an error.

use std::future::{Ready, ready};
use std::ops::RangeInclusive;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use percent_encoding::percent_decode_str;
use utoipa::ToSchema;

use super::call::Call;
use super::codes::Code;
use super::problem::Problem;
use crate::access::{Caller, Scope};
use crate::board::{
    AttributeNames, BoardName, EditionRole, PeriodName, Position, RankingKey, SourceName, WindowLength,
};
use crate::service::{EditionChoice, WindowChoice};

/// The parameters of one request, all known and each given at most once, except for a list.
pub(super) struct Parameters {
    given: Vec<(String, String)>,
}

impl Call {
    /// Parses the query, which may have only the `known` parameters.
    pub(super) fn parameters(&self, known: &[&str]) -> Result<Parameters, Problem> {
        Parameters::parse(self.request.query_string(), known, None)
    }

    /// Parses the query, which may have only the `known` parameters. `list` may be given several times.
    pub(super) fn parameters_with_list(&self, known: &[&str], list: &str) -> Result<Parameters, Problem> {
        Parameters::parse(self.request.query_string(), known, Some(list))
    }
}

/// A call of an operation without parameters. Before its handler begins, any that is given is refused.
pub(super) struct Plain(pub(super) Call);

impl FromRequest for Plain {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let call = Call::from_request(request, payload).into_inner();
        ready(call.and_then(|call| call.parameters(&[]).map(|_| Self(call))))
    }
}

impl Parameters {
    fn parse(query: &str, known: &[&str], list: Option<&str>) -> Result<Self, Problem> {
        if query.is_empty() {
            return Ok(Self { given: Vec::new() });
        }
        // What follows would replace such bytes, and so name another subject than the caller means.
        if let Some(pair) = query.split('&').find(|pair| percent_decode_str(pair).decode_utf8().is_err()) {
            let name: String = pair.split('=').next().unwrap_or_default().chars().take(64).collect();
            let detail = format!("parameter '{name}' is not UTF-8");
            return Err(Problem::field(&name, detail));
        }
        let given = web::Query::<Vec<(String, String)>>::from_query(query)
            .map_err(|error| Problem::field("query", error.to_string()))?
            .into_inner();
        for (at, (name, _)) in given.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let name: String = name.chars().take(64).collect();
                let detail = match known {
                    [] => format!("unknown parameter '{name}'; this operation has no parameters"),
                    _ => format!("unknown parameter '{name}'; expected one of {}", known.join(", ")),
                };
                return Err(Problem::new(Code::UnknownField, detail).with("field", name));
            }
            if list != Some(name) && given[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(name, format!("parameter '{name}' is given more than once")));
            }
        }
        Ok(Self { given })
    }

    /// Returns the text of a parameter, if it is given.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Returns the texts of a list, in the order given.
    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.given.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Returns the window of the board to read: `of`, the edition, or `period`, `window`, the length, and `by`, the key of
    /// the ranking, each if it is given.
    pub(super) fn window(&self) -> Result<WindowChoice, Problem> {
        let length = self.text("window").map(parse_window).transpose()?;
        Ok(WindowChoice { of: self.edition_choice()?, length, by: self.key()?, attributes: self.attributes()? })
    }

    /// Returns the attributes that lines show, if some are asked for.
    pub(super) fn attributes(&self) -> Result<Option<Arc<AttributeNames>>, Problem> {
        self.text("attributes").map(parse_attribute_names).transpose()
    }

    /// Returns the edition of the board to read: that of the role `of`, or the `period`, or else the current one.
    pub(super) fn edition_choice(&self) -> Result<EditionChoice, Problem> {
        match (self.edition()?, self.text("period")) {
            (Some(_), Some(_)) => Err(Problem::field("period", "give 'of' or 'period', not both")),
            (None, Some(period)) => Ok(EditionChoice::Period(PeriodName::new(period))),
            (role, None) => Ok(role.into()),
        }
    }

    /// Returns the key of the ranking, if `by` is given.
    pub(super) fn key(&self) -> Result<Option<RankingKey>, Problem> {
        self.text("by").map(|text| parse_key("by", text)).transpose()
    }

    /// Returns the role of the edition of the board to read, if `of` is given.
    pub(super) fn edition(&self) -> Result<Option<EditionRole>, Problem> {
        self.text("of").map(parse_edition).transpose()
    }

    /// Returns the part of the log of a `source` that a request has, if it has one.
    fn source(&self) -> Result<Option<Box<LogPart>>, Problem> {
        let Some(source) = self.text("source") else {
            // Nearly always.
            if self.given.is_empty() {
                return Ok(None);
            }
            return match ["after", "fill"].iter().find(|name| self.text(name).is_some()) {
                Some(other) => Err(Problem::field("source", format!("'{other}' needs 'source'"))),
                None => Ok(None),
            };
        };
        let Some(after) = self.text("after") else {
            let detail = "'source' needs 'after': the position before the first item, as the last answer said in 'reached', \
                          or 'start'";
            return Err(Problem::field("after", detail));
        };
        let source =
            SourceName::parse(source).map_err(|error| Problem::field("source", format!("'source': {error}")))?;
        let after = after.parse().map_err(|error| Problem::field("after", format!("'after': {error}")))?;
        let fill = self.text("fill").map(BoardName::parse).transpose();
        let fill = fill.map_err(|error| Problem::field("fill", format!("'fill': {error}")))?;
        Ok(Some(Box::new(LogPart { source, after, fill })))
    }

    /// Returns a whole number within `bounds`, or `default` if the parameter is absent.
    pub(super) fn number(&self, name: &str, default: u64, bounds: RangeInclusive<u64>) -> Result<u64, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match text.parse() {
            // `parse` accepts "+5", which JSON and the rest of the API do not.
            Ok(number) if bounds.contains(&number) && text.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
            _ => {
                let (minimum, maximum) = (bounds.start(), bounds.end());
                let detail = format!("'{name}' must be a whole number from {minimum} to {maximum}");
                Err(Problem::field(name, detail).with("minimum", *minimum).with("maximum", *maximum))
            }
        }
    }

    /// Returns a boolean, or `default` if the parameter is absent.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Problem> {
        match self.text(name) {
            None => Ok(default),
            Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Problem::field(name, format!("'{name}' must be true or false"))),
        }
    }
}

/// Parses the length of a window of a board.
pub(super) fn parse_window(text: &str) -> Result<WindowLength, Problem> {
    text.parse().map_err(|error| {
        Problem::field(
            "window",
            format!("'window': {error}; expected the length of a window of the board, such as 7d, or all"),
        )
    })
}

/// Parses the key of a ranking.
pub(super) fn parse_key(field: &str, text: &str) -> Result<RankingKey, Problem> {
    RankingKey::parse(text).map_err(|error| Problem::field(field, format!("'{field}': {error}")))
}

/// Parses the names of attributes.
pub(super) fn parse_attribute_names(text: &str) -> Result<Arc<AttributeNames>, Problem> {
    AttributeNames::parse(text).map(Arc::new).map_err(|error| {
        let detail = format!("'attributes' must be names with commas between them, or *: {error}");
        Problem::field("attributes", detail)
    })
}

/// Parses the role of an edition of a board.
pub(super) fn parse_edition(text: &str) -> Result<EditionRole, Problem> {
    match text {
        "next" => Ok(EditionRole::Next),
        "previous" => Ok(EditionRole::Previous),
        _ => Err(Problem::field("of", "'of' must be next or previous; without it the board itself is read")),
    }
}

/// Additional results that a request with items may ask for with `return`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Returned {
    /// The new score of each subject.
    Score,
}

/// The query of a request with items.
#[derive(Clone, Debug)]
pub(super) struct ItemParameters {
    /// Whether the new scores are returned.
    pub(super) return_scores: bool,
    /// Whether one invalid item refuses the whole request.
    pub(super) strict: bool,
    /// The period in which the items must be.
    pub(super) period: Option<PeriodName>,
    /// The part of the log of a source that the items are. Boxed, because few requests have one.
    pub(super) source: Option<Box<LogPart>>,
}

/// A part of the log of a source.
#[derive(Clone, Debug)]
pub(super) struct LogPart {
    pub(super) source: SourceName,
    /// The position after which it begins.
    pub(super) after: Position,
    /// The board that is filled with it.
    pub(super) fill: Option<BoardName>,
}

impl ItemParameters {
    /// Parses the query of a request with items of one board.
    pub(super) fn of_board(call: &Call, is_stream: bool, may_have_source: bool) -> Result<Self, Problem> {
        let known = ["return", "strict", "period", "source", "after", "fill"];
        let parameters = call.parameters(if may_have_source { &known } else { &known[..3] })?;
        let period = parameters.text("period").map(PeriodName::new);
        Ok(Self { period, ..Self::of(&parameters, &call.caller, is_stream)? })
    }

    /// Parses the query of a request with items of any boards.
    pub(super) fn of_boards(call: &Call, is_stream: bool) -> Result<Self, Problem> {
        let parameters = call.parameters(&["return", "strict", "source", "after", "fill"])?;
        Self::of(&parameters, &call.caller, is_stream)
    }

    /// Returns the source, or the values of the parameters that are about the answer, which are not available for a stream.
    fn of(parameters: &Parameters, caller: &Caller, is_stream: bool) -> Result<Self, Problem> {
        let source = parameters.source()?;
        if source.is_some()
            && let Some(other) = ["return", "strict", "period"].iter().find(|name| parameters.text(name).is_some())
        {
            return Err(Problem::field(other, format!("'{other}' is not available with 'source'")));
        }
        let returned = match parameters.text("return") {
            None => None,
            Some("score") => Some(Returned::Score),
            Some(_) => return Err(Problem::field("return", "'return' must be score")),
        };
        if returned.is_some() {
            // Scores are read.
            caller.require(Scope::View)?;
        }
        let strict = parameters.flag("strict", false)?;
        if is_stream && returned.is_some() {
            let detail =
                "return=score is available for JSON requests only, because a stream has no limit on its scores";
            return Err(Problem::field("return", detail));
        }
        if is_stream && strict {
            let detail =
                "strict=true is available for JSON requests only, because a stream is counted while it arrives";
            return Err(Problem::field("strict", detail));
        }
        Ok(Self { return_scores: returned == Some(Returned::Score), strict, period: None, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<impl Sized, Problem>) -> Option<Code> {
        result.err().map(|problem| problem.code())
    }

    #[test]
    fn parameter_names_and_bounds_are_strict() {
        let known = &["limit", "dry_run"][..];
        assert_eq!(code(Parameters::parse("limt=5", known, None)), Some(Code::UnknownField));
        assert_eq!(code(Parameters::parse("limit=5&limit=5", known, None)), Some(Code::InvalidField));
        for bad in ["", "0", "1001", "+5", "5.0", "-1", "five", "99999999999999999999999"] {
            let parameters = Parameters::parse(&format!("limit={bad}"), known, None).unwrap();
            assert_eq!(code(parameters.number("limit", 50, 1..=1_000)), Some(Code::InvalidField), "{bad}");
        }
        let parameters = Parameters::parse("limit=1000&dry_run=true", known, None).unwrap();
        assert_eq!(parameters.number("limit", 50, 1..=1_000).unwrap(), 1_000);
        assert_eq!(parameters.number("offset", 7, 0..=9).unwrap(), 7);
        assert!(parameters.flag("dry_run", false).unwrap());
        for (text, length) in [("7d", Some("7d")), ("ALL", Some("all")), ("", None), ("7", None), ("week", None)] {
            let window = Parameters::parse(&format!("window={text}"), &["window"], None).unwrap().window();
            assert_eq!(
                window.ok().and_then(|choice| choice.length).map(|window| window.to_string()).as_deref(),
                length,
                "{text}"
            );
        }
        assert_eq!(
            code(Parameters::parse("dry_run=yes", known, None).unwrap().flag("dry_run", false)),
            Some(Code::InvalidField)
        );
    }
}
