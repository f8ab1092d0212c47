//! The evaluation of rules for an event's fields, against the current values of the boards.

use std::collections::HashMap;

use super::queries::Lookups;
use super::{EventOutcome, PinnedRule, Query, QueryAnswer, Result, Service};
use crate::access::{Caller, Scope};
use crate::board::{BoardName, Event, Fields, Metric, Timestamp, Verdict};

/// The result of evaluating several rules.
#[derive(Debug)]
pub struct Evaluated {
    /// One result for each rule, in the given order.
    pub rules: Vec<Evaluation>,
    /// The values of the rules' metrics. A metric that occurs several times is listed once, unless the rules name
    /// different boards.
    pub answers: Vec<QueryAnswer>,
    /// The outcome of the event, if it was recorded first.
    pub recorded: Option<EventOutcome>,
    /// The store's time when the values were read. If boards answered at different times, the latest. `None` if no rule
    /// has a metric.
    pub as_of: Option<Timestamp>,
}

/// The result of evaluating one rule.
#[derive(Debug)]
pub struct Evaluation {
    pub verdict: Verdict,
    /// The metrics of the rule, in order of appearance, each with its index in [`Evaluated::answers`].
    pub metrics: Vec<(Metric, usize)>,
}

impl Service {
    /// Evaluates rules for an event's fields. Reads all their metrics with one store call.
    ///
    /// If `record` is given, that event is counted first, so the values include it. Every error in the rules is found
    /// before that, and then nothing is counted.
    ///
    /// Returns an error if a field that a rule needs is missing or invalid, if no board serves a metric, or if the
    /// store fails.
    pub async fn evaluate(
        &self,
        caller: &Caller,
        rules: &[&PinnedRule],
        fields: &Fields,
        record: Option<Event>,
    ) -> Result<Evaluated> {
        let (queries, metrics) = queries(rules, fields)?;
        let mut recorded = None;
        if let Some(event) = record {
            caller.require(Scope::Write)?;
            let mut lookups = Lookups::default();
            for query in &queries {
                if let Query::Metric { metric, boards, .. } = query {
                    self.select_board(caller, metric, boards, &mut lookups).await?;
                }
            }
            for rule in rules {
                // The fields that a rule needs do not depend on the values of its metrics.
                rule.rule.evaluate(fields, &|_| None)?;
            }
            // Boxed, because every other evaluation would have room for it too.
            recorded = Box::pin(self.record(caller, vec![event], false)).await?.events.into_iter().next();
        }
        let answers = self.queries(caller, queries).await.into_iter().collect::<Result<Vec<QueryAnswer>>>()?;
        let mut evaluations = Vec::with_capacity(rules.len());
        for (rule, metrics) in rules.iter().zip(metrics) {
            let value_of = |metric: &Metric| {
                let place = metrics.iter().find(|(known, _)| known == metric);
                place.and_then(|(_, index)| answers.get(*index)).and_then(QueryAnswer::number)
            };
            let verdict = rule.rule.evaluate(fields, &value_of)?;
            evaluations.push(Evaluation { verdict, metrics });
        }
        let as_of = answers.iter().map(|answer| answer.contents.frame.as_of).max();
        Ok(Evaluated { rules: evaluations, answers, recorded, as_of })
    }
}

/// The distinct queries of the rules, and for each rule its metrics with the index of their query.
type Asked = (Vec<Query>, Vec<Vec<(Metric, usize)>>);

fn queries(rules: &[&PinnedRule], fields: &Fields) -> Result<Asked> {
    let mut queries = Vec::new();
    let mut places: HashMap<(String, &[BoardName]), usize> = HashMap::new();
    let mut of_rules = Vec::with_capacity(rules.len());
    for rule in rules {
        let mut metrics = Vec::new();
        for metric in rule.rule.metrics() {
            // Two metrics are equal exactly when their canonical texts are equal.
            let key = (metric.to_string(), &*rule.boards);
            let place = match places.get(&key) {
                Some(place) => *place,
                None => {
                    let subject = metric.subject_of(fields)?;
                    queries.push(Query::Metric { metric: metric.clone(), subject, boards: rule.boards.clone() });
                    places.insert(key, queries.len() - 1);
                    queries.len() - 1
                }
            };
            metrics.push((metric.clone(), place));
        }
        of_rules.push(metrics);
    }
    Ok((queries, of_rules))
}
