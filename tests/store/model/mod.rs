//! The model test: the stores and the oracle do the same operations, step by step, and must return the same results.
//!
//! A sequence of operations is drawn from a seed. `ROLLTOP_MODEL_SEED=<n>` runs only that sequence.
//! `ROLLTOP_MODEL_SEQUENCES=<n>` sets the number of sequences, 800 by default; `ROLLTOP_TEST_SEED` the first of them.
//! `ROLLTOP_MODEL_STORES=<name>` compares only that store, and `ROLLTOP_MODEL_METRICS=AVG,MAX` draws only boards of
//! those metrics. The following stores are compared only if they are named: `redis-cluster`, `redis-16-parts` and
//! `redis-cluster-16-parts`, and the same of `valkey`. A failing sequence is reduced before it is shown.

mod draw;
mod editions;
mod importing;
mod passing;
mod seen;
mod sequence;
mod side;

use std::time::Duration;

use tokio::task::{JoinError, JoinSet};

use self::seen::Seen;
use self::sequence::{Sequence, Step};
use self::side::Side;
use crate::site::{Home, Kind};

const SEQUENCES: u64 = 800;
/// The number of sequences that run at the same time.
const AT_ONCE: usize = 8;
/// The number of smaller sequences that are tried before the smallest failing one is shown.
const ATTEMPTS: usize = 250;
/// The time after which a sequence is considered to hang. It is longer than any sequence takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_and_oracle_agree() {
    let from_environment = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match from_environment("ROLLTOP_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = crate::drawn::seed();
            first..first + from_environment("ROLLTOP_MODEL_SEQUENCES").unwrap_or(SEQUENCES)
        }
    };
    let mut running = JoinSet::new();
    for seed in seeds {
        if running.len() >= AT_ONCE {
            judge(running.join_next().await).await;
        }
        running.spawn(async move { (seed, attempt(Sequence::from_seed(seed)).await) });
    }
    while !running.is_empty() {
        judge(running.join_next().await).await;
    }
}

async fn judge(finished: Option<Result<Judged, JoinError>>) {
    if let Some(finished) = finished
        && let (seed, Err(failure)) = finished.expect("a sequence catches its own panics")
    {
        let sequence = Sequence::from_seed(seed);
        // A sequence that hangs is not reduced, because that would take hours.
        let (sequence, failure) = if failure.hung { (sequence, failure) } else { smaller(sequence, failure).await };
        let steps: Vec<String> = sequence.steps.iter().map(|step| format!("  {step:?}")).collect();
        let boards: Vec<String> = sequence.boards.iter().map(|board| format!("  {board:?}")).collect();
        panic!(
            "{}\nafter, from {}, on\n{}\nthe steps\n{}\nand a check of every board\nROLLTOP_MODEL_SEED={seed} runs the whole of it again",
            failure.what,
            sequence.start,
            boards.join("\n"),
            steps.join("\n"),
        );
    }
}

/// The seed of a sequence, and its result.
type Judged = (u64, Result<(), Failure>);

struct Failure {
    /// The number of steps done, including the failing one.
    steps: usize,
    what: String,
    hung: bool,
}

/// Runs a sequence in its own task, so that a panic of a store is reported like other failures.
async fn attempt(sequence: Sequence) -> Result<(), Failure> {
    let all = sequence.steps.len();
    let failed = |what, hung| Err(Failure { steps: all, what, hung });
    match tokio::time::timeout(PATIENCE, tokio::spawn(run(sequence))).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => failed(panic.to_string(), false),
        Err(_) => failed(format!("not done after {PATIENCE:?}"), true),
    }
}

async fn run(sequence: Sequence) -> Result<(), Failure> {
    let before = |what| Failure { steps: 0, what, hung: false };
    let open = |home: Home| Side::open(home, sequence.start, &sequence.boards);
    let mut oracle = open(Home::new(Kind::Oracle)).await.map_err(before)?;
    let mut sides = Vec::new();
    let only = std::env::var("ROLLTOP_MODEL_STORES").ok();
    let kinds = match only.as_deref() {
        Some(only) if only.ends_with("-cluster") => Kind::clusters(),
        Some(only) if only.ends_with("-cluster-16-parts") => Kind::clusters_of_parts(16),
        Some(only) if only.ends_with("-16-parts") => Kind::of_parts(16),
        Some(_) => Kind::stores().into_iter().chain(Kind::of_parts(3)).collect(),
        // Every fourth sequence also runs on boards of three parts.
        None if sequence.seed.is_multiple_of(4) => Kind::stores().into_iter().chain(Kind::of_parts(3)).collect(),
        None => Kind::stores(),
    };
    for kind in kinds {
        let home = Home::new(kind);
        if only.as_deref().is_none_or(|only| only == home.name()) {
            sides.push(open(home).await.map_err(before)?);
        }
    }
    let checks = (0..sequence.boards.len()).map(|board| Step::Check { board });
    for (nth, step) in sequence.steps.iter().cloned().chain(checks).enumerate() {
        let failed = |what| Failure { steps: nth + 1, what, hung: false };
        let expected = oracle.run(&step).await.map_err(|what| failed(format!("oracle, {step:?}: {what}")))?;
        for side in &mut sides {
            let name = side.name();
            let found = side.run(&step).await.map_err(|what| failed(format!("{name}, {step:?}: {what}")))?;
            compare(&expected, found).map_err(|what| failed(format!("{name}, {step:?}: {what}")))?;
        }
    }
    Ok(())
}

fn compare(expected: &[Seen], found: Vec<Seen>) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("answers {found:?}\nnot {expected:?}"));
    }
    for (expected, found) in expected.iter().zip(found) {
        let (expected, found) = match found.has_equal_scores() {
            true => (expected.clone(), found),
            false => (expected.clone().without_scores(), found.without_scores()),
        };
        let found = found.comparable(&expected);
        if expected != found {
            return Err(format!("answers {found:?}\nnot {expected:?}"));
        }
    }
    Ok(())
}

/// Removes everything that the failure does not need: the steps after it, then shorter and shorter runs of steps, then
/// items.
async fn smaller(mut sequence: Sequence, mut failure: Failure) -> (Sequence, Failure) {
    sequence.steps.truncate(failure.steps);
    let mut attempts = 0;
    let mut length = sequence.steps.len().div_ceil(2);
    while length > 0 {
        let mut at = 0;
        while at < sequence.steps.len() && attempts < ATTEMPTS {
            attempts += 1;
            let mut shorter = sequence.clone();
            shorter.steps.drain(at..(at + length).min(sequence.steps.len()));
            match attempt(shorter.clone()).await {
                Err(found) => {
                    shorter.steps.truncate(found.steps);
                    (sequence, failure) = (shorter, found);
                }
                Ok(()) => at += length,
            }
        }
        length /= 2;
    }
    for step in 0..sequence.steps.len() {
        let mut item = 0;
        while let Some(shorter) = sequence.without_item(step, item)
            && attempts < ATTEMPTS
        {
            attempts += 1;
            match attempt(shorter.clone()).await {
                Err(found) => (sequence, failure) = (shorter, found),
                Ok(()) => item += 1,
            }
        }
    }
    (sequence, failure)
}
