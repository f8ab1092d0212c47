//! Rules: what they say of an event's fields, given what the boards say now.

use std::collections::HashMap;

use super::{EventOutcome, Feature, Question, Result, Service};
use crate::board::{Event, Fields, Metric, Rule, Timestamp, Verdict};

/// Several rules, evaluated.
#[derive(Debug)]
pub struct Evaluated {
    /// One for each rule, in the order given.
    pub rules: Vec<Evaluation>,
    /// What every metric of theirs says, each once.
    pub features: Vec<Feature>,
    /// What became of the event, if one was to be counted first.
    pub recorded: Option<EventOutcome>,
    /// The store's time when it was read; the newest, should boards have answered at different times. `None` if no
    /// rule has a metric.
    pub as_of: Option<Timestamp>,
}

/// One rule, evaluated.
#[derive(Debug)]
pub struct Evaluation {
    pub verdict: Verdict,
    /// The metrics of the rule, in order of appearance, each with its place among [`Evaluated::features`].
    pub metrics: Vec<(Metric, usize)>,
}

impl Service {
    /// Evaluates rules for an event's fields. One store call for all their metrics.
    ///
    /// With `record` the event is counted first, so the rules see it included; everything that can be wrong with the
    /// rules is found before, and then nothing is counted. Errors: a field that a rule needs is missing or wrong, a
    /// metric that no board serves, a failing store.
    pub async fn evaluate(&self, rules: &[&Rule], fields: &Fields, record: Option<Event>) -> Result<Evaluated> {
        let (questions, metrics) = questions(rules, fields)?;
        let mut recorded = None;
        if let Some(event) = record {
            let mut is_newest = false;
            for question in &questions {
                if let Question::Metric { metric, .. } = question {
                    self.serving(metric, &mut is_newest).await?;
                }
            }
            for rule in rules {
                // Which fields a rule needs does not depend on what its metrics say.
                rule.evaluate(fields, &|_| None)?;
            }
            recorded = self.record(vec![event], false).await?.events.into_iter().next();
        }
        let features = self.features(questions).await.into_iter().collect::<Result<Vec<Feature>>>()?;
        let mut evaluations = Vec::with_capacity(rules.len());
        for (rule, metrics) in rules.iter().zip(metrics) {
            let value_of = |metric: &Metric| {
                let place = metrics.iter().find(|(known, _)| known == metric);
                place.and_then(|(_, index)| features.get(*index)).and_then(Feature::number)
            };
            let verdict = rule.evaluate(fields, &value_of)?;
            evaluations.push(Evaluation { verdict, metrics });
        }
        let as_of = features.iter().map(|feature| feature.reading.frame.as_of).max();
        Ok(Evaluated { rules: evaluations, features, recorded, as_of })
    }
}

/// The different questions that the rules ask, and for each rule its metrics with their places among them.
type Asked = (Vec<Question>, Vec<Vec<(Metric, usize)>>);

fn questions(rules: &[&Rule], fields: &Fields) -> Result<Asked> {
    let mut questions = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut of_rules = Vec::with_capacity(rules.len());
    for rule in rules {
        let mut metrics = Vec::new();
        for metric in rule.metrics() {
            // The canonical text tells metrics apart as they do themselves.
            let text = metric.to_string();
            let place = match places.get(&text) {
                Some(place) => *place,
                None => {
                    let subject = metric.subject_of(fields)?;
                    questions.push(Question::Metric { metric: metric.clone(), subject });
                    places.insert(text, questions.len() - 1);
                    questions.len() - 1
                }
            };
            metrics.push((metric.clone(), place));
        }
        of_rules.push(metrics);
    }
    Ok((questions, of_rules))
}
