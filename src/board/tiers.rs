//! Tiers: named parts of a ranking, such as gold, silver and bronze.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{AmountError, BoardTrack, Decimals, Kind, Order, Percentile, Ranks, Scale, Track, Value};

/// The tiers of a board, the best first. They hold for each of its rankings: of each window and of each key.
///
/// They are not part of the definition: changing them changes nothing that is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers(Vec<Tier>);

/// A part of a ranking, with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    name: Arc<str>,
    bound: TierBound,
}

/// What a subject must reach to be in a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierBound {
    /// A rank of at most this, from 1.
    Rank(u64),
    /// The subjects that are not worse, its own included, are at most this percentage of the ranked ones, rounded up to
    /// a whole number of subjects. So a tier never has more than its share; subjects that tie are all in it or all not.
    Top(Percentile),
    /// This score or a better one, as responses show it: a JSON number.
    Score(String),
}

/// Tiers that are not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TiersError {
    #[error("a board has at most {} tiers, not {given}", Tiers::MAX)]
    TooMany { given: usize },
    #[error("the name of a tier has 1 to {} characters, none of them a control character", Tier::MAX_NAME)]
    Name,
    #[error("two tiers have the name '{0}'")]
    Repeated(Arc<str>),
    #[error("tier '{0}' must have exactly one of 'rank', 'top' and 'score'")]
    Bounds(Arc<str>),
    #[error("tier '{name}': 'rank' must be a whole number from 1 to {}", Tier::MAX_RANK)]
    Rank { name: Arc<str> },
    #[error("tier '{0}': 'top' must be a percentage above 0, at most 100, with up to three digits after the point")]
    Top(Arc<str>),
    #[error("tier '{name}': 'score': {error}")]
    Score { name: Arc<str>, error: AmountError },
}

/// A tier as it is written in JSON, with one of the three bounds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierForm {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Box<RawValue>>,
}

impl Tiers {
    /// The largest number of tiers of a board.
    pub const MAX: usize = 16;

    /// Returns whether one of them has a score as its bound.
    pub fn have_scores(&self) -> bool {
        self.0.iter().any(|tier| matches!(tier.bound, TierBound::Score(_)))
    }

    /// Returns tiers, the best first.
    pub fn new(tiers: Vec<Tier>) -> Result<Self, TiersError> {
        if tiers.len() > Self::MAX {
            return Err(TiersError::TooMany { given: tiers.len() });
        }
        let mut seen = HashSet::new();
        match tiers.iter().find(|tier| !seen.insert(&tier.name)) {
            Some(repeated) => Err(TiersError::Repeated(repeated.name.clone())),
            None => Ok(Self(tiers)),
        }
    }

    /// Returns the tiers that were written in this form.
    pub fn from_forms(forms: Vec<TierForm>) -> Result<Self, TiersError> {
        // Before anything is made of them.
        if forms.len() > Self::MAX {
            return Err(TiersError::TooMany { given: forms.len() });
        }
        Self::new(forms.into_iter().map(Tier::try_from).collect::<Result<_, _>>()?)
    }

    pub fn forms(&self) -> Vec<TierForm> {
        self.0.iter().map(TierForm::from).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the tier of a subject depends on the number of subjects whose scores are not worse.
    pub fn count_ties(&self) -> bool {
        self.0.iter().any(|tier| matches!(tier.bound, TierBound::Top(_)))
    }

    /// Returns the tiers with their scores as responses about this track show them. A score may have more decimals than the
    /// board: it is only compared with, and the board may have had more. Returns an error if one is not a number.
    pub fn shown_on(mut self, track: &Track) -> Result<Self, TiersError> {
        for Tier { name, bound } in &mut self.0 {
            if let TierBound::Score(text) = bound {
                let score = Value::parse(text, track.kind(), track.decimals());
                let score = score.or_else(|error| match error {
                    AmountError::Precision { .. } => Value::parse(text, Kind::Mean, track.decimals()),
                    error => Err(error),
                });
                let score = score.map_err(|error| TiersError::Score { name: name.clone(), error })?;
                // A bound has no second key.
                *text = score.shown(track.decimals()).to_string();
            }
        }
        Ok(self)
    }
}

impl Tier {
    /// The largest number of characters of a name.
    pub const MAX_NAME: usize = 64;
    /// The largest rank, which exceeds the number of subjects of any board.
    pub const MAX_RANK: u64 = 1_000_000_000;

    pub fn new(name: &str, bound: TierBound) -> Result<Self, TiersError> {
        // Not counted to the end: a name may be as long as a body.
        let is_long = name.chars().nth(Self::MAX_NAME).is_some();
        if name.is_empty() || is_long || name.contains(char::is_control) {
            return Err(TiersError::Name);
        }
        let name: Arc<str> = name.into();
        match bound {
            TierBound::Rank(rank) if !(1..=Self::MAX_RANK).contains(&rank) => Err(TiersError::Rank { name }),
            TierBound::Top(share) if share.thousandths() == 0 => Err(TiersError::Top(name)),
            TierBound::Rank(_) | TierBound::Top(_) | TierBound::Score(_) => Ok(Self { name, bound }),
        }
    }
}

impl TryFrom<TierForm> for Tier {
    type Error = TiersError;

    fn try_from(form: TierForm) -> Result<Self, TiersError> {
        let TierForm { name, rank, top, score } = form;
        let shown = || name.chars().take(Self::MAX_NAME).collect::<String>().into();
        let bound = match (rank, top, score) {
            (Some(rank), None, None) => {
                TierBound::Rank(rank.get().parse().map_err(|_| TiersError::Rank { name: shown() })?)
            }
            (None, Some(top), None) => TierBound::Top(top.get().parse().map_err(|_| TiersError::Top(shown()))?),
            (None, None, Some(score)) => TierBound::Score(score.get().to_owned()),
            _ => return Err(TiersError::Bounds(shown())),
        };
        Self::new(&name, bound)
    }
}

impl From<&Tier> for TierForm {
    fn from(tier: &Tier) -> Self {
        let number = |text: String| RawValue::from_string(text).ok();
        let mut form = Self { name: tier.name.to_string(), rank: None, top: None, score: None };
        match &tier.bound {
            TierBound::Rank(rank) => form.rank = number(rank.to_string()),
            TierBound::Top(share) => form.top = number(share.to_string()),
            TierBound::Score(text) => form.score = number(text.clone()),
        }
        form
    }
}

/// The tiers of one ranking at one instant.
#[derive(Debug)]
pub struct RankingTiers<'a> {
    order: Order,
    scale: Scale,
    bounds: Vec<(&'a Arc<str>, Bound)>,
}

#[derive(Debug)]
enum Bound {
    Rank(u64),
    /// The largest number of subjects of the tier.
    Most(u64),
    Score(f64),
}

impl<'a> RankingTiers<'a> {
    /// Returns the tiers of the ranking of a track with this number of ranked subjects. `None` if its board has none.
    pub fn of(track: &'a BoardTrack, total: u64) -> Option<Self> {
        let bounds = track.tiers()?.0.iter().map(|Tier { name, bound }| {
            let bound = match bound {
                TierBound::Rank(rank) => Bound::Rank(*rank),
                // Nobody ties with a line that has a rank of its own.
                TierBound::Top(share) if track.ranks() == Ranks::Ordinal => Bound::Rank(share.of_rounded_up(total)),
                TierBound::Top(share) => Bound::Most(share.of_rounded_up(total)),
                TierBound::Score(text) => Bound::Score(units(text, track.decimals())),
            };
            (name, bound)
        });
        Some(Self { order: track.order(), scale: track.scale(), bounds: bounds.collect() })
    }

    /// Returns the name of the best tier of a ranked subject, if it is in one. `not_worse` is the number of ranked
    /// subjects whose scores are not worse than its own.
    pub fn tier(&self, rank: u64, not_worse: Option<u64>, score: Value) -> Option<&'a Arc<str>> {
        let reaches = |bound: &Bound| match bound {
            Bound::Rank(last) => rank <= *last,
            Bound::Most(most) => not_worse.is_some_and(|not_worse| not_worse <= *most),
            Bound::Score(bound) => match self.order {
                Order::Desc => score.as_units(self.scale) >= *bound,
                Order::Asc => score.as_units(self.scale) <= *bound,
            },
        };
        self.bounds.iter().find(|(_, bound)| reaches(bound)).map(|(name, _)| *name)
    }
}

/// Returns a score in units of the board. It is parsed as a mean, which may have more digits than the board's decimals.
fn units(text: &str, decimals: Decimals) -> f64 {
    Value::parse(text, Kind::Mean, decimals).map_or(f64::NAN, Value::as_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, Board, BoardName, Definition, Generation};

    fn tiers(json: &str) -> Result<Tiers, TiersError> {
        Tiers::from_forms(serde_json::from_str(json).unwrap())
    }

    fn track(order: Order, json: &str) -> BoardTrack {
        let metric = "SUM(3h, e, v, s)".parse().unwrap();
        let definition = Definition { order, ..Definition::new(metric, "1h".parse().unwrap()) };
        let name = BoardName::parse("b").unwrap();
        let board = Arc::new(Board::new(name, Generation(1), definition).unwrap());
        board.main().with_tiers(Some(Arc::new(tiers(json).unwrap())))
    }

    #[test]
    fn what_is_written_is_read_back() {
        let json = r#"[{"name":"gold","top":2.5},{"name":"silver","rank":100},{"name":"☆","score":1e3}]"#;
        assert_eq!(serde_json::to_string(&tiers(json).unwrap().forms()).unwrap(), json);
        assert!(tiers(json).unwrap().count_ties() && !tiers(r#"[{"name":"a","rank":1}]"#).unwrap().count_ties());
        assert!(tiers("[]").unwrap().is_empty());
    }

    #[test]
    fn impossible_tiers_are_refused() {
        for wrong in [
            r#"[{"name":"","rank":1}]"#,
            r#"[{"name":"a\nb","rank":1}]"#,
            r#"[{"name":"a"}]"#,
            r#"[{"name":"a","rank":1,"top":5}]"#,
            r#"[{"name":"a","rank":0}]"#,
            r#"[{"name":"a","rank":1000000001}]"#,
            r#"[{"name":"a","top":0}]"#,
            r#"[{"name":"a","top":101}]"#,
            r#"[{"name":"a","top":0.0001}]"#,
            r#"[{"name":"a","top":"5"}]"#,
            r#"[{"name":"a","rank":1},{"name":"a","rank":2}]"#,
        ] {
            assert!(tiers(wrong).is_err(), "{wrong}");
        }
        let long = format!(r#"[{{"name":"{}","rank":1}}]"#, "x".repeat(65));
        assert_eq!(tiers(&long), Err(TiersError::Name));
        let many: Vec<String> = (0..17).map(|n| format!(r#"{{"name":"t{n}","rank":1}}"#)).collect();
        assert_eq!(tiers(&format!("[{}]", many.join(","))), Err(TiersError::TooMany { given: 17 }));
        let board = track(Order::Desc, "[]");
        for score in ["1e999", "1.5e99", "x", "\"1\"", "1e99", "01"] {
            let one = Tier::new("a", TierBound::Score(score.to_owned())).unwrap();
            assert!(matches!(Tiers(vec![one]).shown_on(&board), Err(TiersError::Score { .. })), "{score}");
        }
        for (score, shown) in [("1e2", "100"), ("-0.0", "0"), ("7.000000000000000000000000000", "7"), ("1.5", "1.5")] {
            let one = Tier::new("a", TierBound::Score(score.to_owned())).unwrap();
            let expected = Tier::new("a", TierBound::Score(shown.to_owned())).unwrap();
            assert_eq!(Tiers(vec![one]).shown_on(&board), Ok(Tiers(vec![expected])), "{score}");
        }
    }

    #[test]
    fn a_share_is_never_exceeded() {
        let track = track(Order::Desc, r#"[{"name":"gold","top":5},{"name":"rest","top":100}]"#);
        for (total, not_worse, expected) in [
            (1_000, 50, "gold"),
            (1_000, 51, "rest"),
            // 990 tied at the top of 1,000 are not gold, though their rank is 1.
            (1_000, 990, "rest"),
            (1, 1, "gold"),
            (21, 2, "gold"),
            (20, 2, "rest"),
        ] {
            let of = RankingTiers::of(&track, total).unwrap();
            let tier = of.tier(1, Some(not_worse), Value::ZERO);
            assert_eq!(tier.map(|name| &**name), Some(expected), "{not_worse} of {total}");
        }
    }

    #[test]
    fn ranks_and_scores_are_reached_in_the_order_of_the_board() {
        let json = r#"[{"name":"podium","rank":3},{"name":"ten","score":10}]"#;
        for (order, rank, score, expected) in [
            (Order::Desc, 3, 1, Some("podium")),
            (Order::Desc, 4, 10, Some("ten")),
            (Order::Desc, 4, 9, None),
            (Order::Asc, 4, 10, Some("ten")),
            (Order::Asc, 4, 11, None),
        ] {
            let track = track(order, json);
            let of = RankingTiers::of(&track, 100).unwrap();
            let tier = of.tier(rank, None, Value::Exact(Amount(score)));
            assert_eq!(tier.map(|name| &**name), expected, "{order:?}, {rank}, {score}");
        }
    }
}
