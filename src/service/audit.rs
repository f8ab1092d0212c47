//! The audit: compares every subject's score with the value of its slots, in steps, while writes and rollovers
//! continue.

use std::time::{Duration, Instant};

use super::archive::{self, Checked};
use crate::board::{Amount, BoardEdition, BoardTrack, Frame, Scale, Value, WindowLength};
use crate::store::{self, AuditCursor, Difference, Store};

/// The largest number of differences that a report lists.
const EXAMPLES: usize = 20;

/// The result of an audit.
#[derive(Clone, Debug)]
pub struct AuditReport {
    /// The window of the main track and the time of the last step that compared it.
    pub frame: Frame,
    /// The number of comparisons: one for each subject of each track.
    pub subjects_checked: u64,
    /// The number of comparisons in which the score differed from the value of the slots.
    pub differences: u64,
    /// The largest distance between a score and the value of its slots, in units.
    pub worst: Value,
    /// The first differences found, at most 20, each with the length of its window.
    pub examples: Vec<(WindowLength, Difference)>,
    /// The number of differences that were repaired.
    pub repaired: u64,
    /// The number of slots that should exist but do not: a part of the data is lost.
    pub missing_slots: u64,
    /// The sheets of packed periods that are damaged, and what is wrong with each, at most 20. Each of them is one of the
    /// differences.
    pub damaged_sheets: Vec<String>,
    /// The elapsed wall-clock time.
    pub took: Duration,
}

/// Audits every track of an edition, and with the current one the packed periods of its board. Kept slots are audited as
/// those of any unranked board: they do not have to add up to the score of the total.
pub(super) async fn run_all(store: &dyn Store, edition: &BoardEdition, repair: bool) -> store::Result<AuditReport> {
    let mut report = run(store, &edition.main_track(), repair).await?;
    for track in edition.each_track().skip(1) {
        report.add(run(store, &track, repair).await?);
    }
    if edition.number() == 0 {
        for period in edition.board().each_period().filter(|period| period.main_track().packed().is_some()) {
            report.add(run(store, &period.main_track(), repair).await?);
        }
    }
    Ok(report)
}

impl AuditReport {
    /// Adds the report of another track. The frame remains that of the first one.
    fn add(&mut self, other: AuditReport) {
        self.subjects_checked += other.subjects_checked;
        self.differences += other.differences;
        self.worst = self.worst.max(other.worst);
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
        self.repaired += other.repaired;
        self.missing_slots += other.missing_slots;
        let room = EXAMPLES.saturating_sub(self.damaged_sheets.len());
        self.damaged_sheets.extend(other.damaged_sheets.into_iter().take(room));
        self.took += other.took;
    }
}

/// Audits one track. After each step it pauses for as long as the step took, so that other requests run.
async fn run(store: &dyn Store, track: &BoardTrack, repair: bool) -> store::Result<AuditReport> {
    let started = Instant::now();
    if let Some(packed) = track.packed() {
        let Checked { frame, lines, damaged, examples, repaired } =
            archive::check(store, track, packed, repair).await?;
        return Ok(AuditReport {
            frame,
            subjects_checked: lines,
            differences: damaged,
            worst: Value::ZERO,
            examples: Vec::new(),
            repaired,
            missing_slots: 0,
            damaged_sheets: examples,
            took: started.elapsed(),
        });
    }
    let scale = track.scale();
    let mut cursor = AuditCursor::default();
    let (mut checked, mut differences, mut worst, mut repaired, mut missing_slots) = (0, 0, Value::ZERO, 0, 0);
    let mut examples = Vec::new();
    loop {
        let step_started = Instant::now();
        let step = store.audit_step(track, cursor, repair).await?;
        checked += step.checked;
        differences += step.differences.len() as u64;
        repaired += step.repaired;
        missing_slots += step.missing_slots;
        for difference in step.differences {
            worst = worst.max(distance(&difference, scale));
            if examples.len() < EXAMPLES {
                examples.push((track.length(), difference));
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
                    damaged_sheets: Vec::new(),
                    took: started.elapsed(),
                });
            }
        }
        store::rest(step_started).await;
    }
}

/// Returns the distance between a score and the value of its slots, in units, without second keys and times.
fn distance(difference: &Difference, scale: Scale) -> Value {
    match (difference.score.unwrap_or(Value::ZERO), difference.slots.unwrap_or(Value::ZERO)) {
        (Value::Exact(score), Value::Exact(slots)) => {
            let [score, slots] = [score, slots].map(|number| scale.amount(number).0);
            Value::Exact(Amount(score.saturating_sub(slots).saturating_abs()))
        }
        (score, slots) => Value::Real((score.as_f64() - slots.as_f64()).abs()),
    }
}
