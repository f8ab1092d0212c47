//! The audit: every subject's score against the sum of its slots, step by step, while writes and rollovers go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::board::{Amount, Board, Frame, Value};
use crate::store::{self, AuditCursor, Difference, Store};

/// How many differences are shown.
const EXAMPLES: usize = 20;

/// What an audit found.
#[derive(Clone, Debug)]
pub struct AuditReport {
    /// The window when the last step looked.
    pub frame: Frame,
    /// Subjects compared.
    pub subjects_checked: u64,
    /// How many differed.
    pub differences: u64,
    /// The largest distance between a score and its slots, in units.
    pub worst: Value,
    /// The first few that differed.
    pub examples: Vec<Difference>,
    /// How many were set right.
    pub repaired: u64,
    /// Slots that should exist and do not: a part of the data is lost.
    pub missing_slots: u64,
    /// Wall time.
    pub took: Duration,
}

/// Audits a whole board. Between two steps other requests run, for as long as a step took.
pub(super) async fn run(store: &dyn Store, board: &Arc<Board>, repair: bool) -> store::Result<AuditReport> {
    let started = Instant::now();
    let mut cursor = AuditCursor::default();
    let (mut checked, mut differences, mut worst, mut repaired, mut missing_slots) = (0, 0, Value::ZERO, 0, 0);
    let mut examples = Vec::new();
    loop {
        let step_started = Instant::now();
        let step = store.audit_step(board, cursor, repair).await?;
        checked += step.checked;
        differences += step.differences.len() as u64;
        repaired += step.repaired;
        missing_slots += step.missing_slots;
        for difference in step.differences {
            worst = worst.max(distance(&difference));
            if examples.len() < EXAMPLES {
                examples.push(difference);
            }
        }
        match step.next {
            Some(next) => cursor = next,
            None => {
                return Ok(AuditReport {
                    frame: step.frame,
                    subjects_checked: checked,
                    differences,
                    worst,
                    examples,
                    repaired,
                    missing_slots,
                    took: started.elapsed(),
                });
            }
        }
        tokio::time::sleep(step_started.elapsed()).await;
    }
}

/// How far a score is from what its slots say.
fn distance(difference: &Difference) -> Value {
    match (difference.score.unwrap_or(Value::ZERO), difference.slots.unwrap_or(Value::ZERO)) {
        (Value::Exact(score), Value::Exact(slots)) => {
            Value::Exact(Amount(score.0.saturating_sub(slots.0).saturating_abs()))
        }
        (score, slots) => Value::Real((score.as_f64() - slots.as_f64()).abs()),
    }
}
