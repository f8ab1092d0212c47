//! Measurements of the memory per subject and of the duration of calls, at the size that the store promises. Run by
//! hand:
//!
//! ```text
//! cargo test --release --lib measuring -- --ignored --nocapture
//! ```

use std::time::{Duration, Instant};

use super::*;
use crate::store::AuditCursor;
use crate::store::embedded::audit;
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellWrite, WriteTo};
use crate::store::embedded::log_operations::operations;
use crate::store::embedded::replaying::replay;

/// Returns a random-looking name of 14 bytes.
fn name(number: u64) -> String {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    format!("{:014x}", (mixed ^ mixed >> 32) & 0xff_ffff_ffff_ffff)
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4_096
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The longest of many short calls, in processor time.
#[derive(Default)]
struct Longest {
    longest: Duration,
    calls: u64,
    over: u64,
    all: Duration,
}

impl Longest {
    fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let started = processor_time();
        let answer = call();
        let took = processor_time() - started;
        self.longest = self.longest.max(took);
        self.over += u64::from(took > Duration::from_millis(1));
        self.all += took;
        self.calls += 1;
        answer
    }

    fn report(&self, what: &str) {
        println!(
            "  {what}: {} calls, mean {:?}, longest {:?}, over 1 ms: {}",
            self.calls,
            self.all / self.calls.max(1) as u32,
            self.longest,
            self.over
        );
    }
}

fn board(metric: &str, ranked: bool) -> Board {
    let mut definition = hours(metric);
    definition.ranked = ranked;
    alone(definition)
}

/// Adds an amount to the head slot, and clears the operations after some of them.
fn add(data: &mut TrackData, name: HashedName, amount: i64, operations: &mut LogOperations) {
    let (slot, floors) = (data.window.head.millis(), data.floors());
    let to = WriteTo { name, slot, at: slot, is_timed: true, day: slot, retract: false, bound: 1 << 40, floors };
    let holdings = &mut data.holdings;
    holdings.kind.apply(CellWrite { holdings, to: &to, operations }, &Change::Amount(Amount(amount))).unwrap();
    if operations.len() > 64 << 10 {
        operations.clear();
    }
}

#[test]
#[ignore = "takes gigabytes and a minute: by hand, with --release"]
fn bytes_a_subject_and_longest_calls() {
    let most: u64 = std::env::var("ROLLTOP_SUBJECTS").ok().and_then(|most| most.parse().ok()).unwrap_or(10_000_000);
    let board = board("COUNT(24h, like, post)", true);
    let before = resident();
    let mut data = BoardState::new(board.clone().into(), START);
    let mut appended = LogOperations::of(board.edition().main().id());
    let (mut filled, mut portions) = (Instant::now(), Longest::default());
    let mut number = 0;
    while number < most {
        let names: Vec<String> = (number..number + 256).map(name).collect();
        let names: Vec<HashedName> = names.iter().map(|name| HashedName::from(name.as_str())).collect();
        portions.time(|| {
            data.holdings.prefetch(&names);
            for name in &names {
                add(&mut data, *name, 1 + i64::from(name.hash.0 % 1_000), &mut appended);
            }
        });
        number += 256;
        if [1_000_000, 5_000_000, 10_000_000].iter().any(|at| (number - 256..number).contains(at)) {
            let count = data.holdings.subjects.len();
            let own = data.holdings.memory_bytes() as f64 / count as f64;
            let all = (resident() - before) as f64 / count as f64;
            println!("{count} subjects: {own:.1} bytes without the ranking, the process grew by {all:.1} a subject");
            portions.report("256 new subjects");
            println!("  {:.2} million a second", count as f64 / filled.elapsed().as_secs_f64() / 1e6);
            portions = Longest::default();
        }
    }
    let mut updates = Longest::default();
    for turn in 0..4_000u64 {
        let names: Vec<String> = (0..256).map(|nth| name((turn * 256 + nth).wrapping_mul(7_919) % number)).collect();
        let names: Vec<HashedName> = names.iter().map(|name| HashedName::from(name.as_str())).collect();
        updates.time(|| {
            data.holdings.prefetch(&names);
            for name in &names {
                add(&mut data, *name, 1, &mut appended);
            }
        });
    }
    updates.report("256 updates");
    println!("  the process grew by {:.1} a subject", (resident() - before) as f64 / number as f64);

    let (mut audits, mut cursor, started) = (Longest::default(), Some(AuditCursor::default()), Instant::now());
    while let Some(at) = cursor.take().filter(|_| started.elapsed() < Duration::from_secs(5)) {
        let step = audits.time(|| audit::step(&mut data, &at, false));
        assert!(step.differences.is_empty());
        cursor = step.next;
    }
    audits.report("audit steps");

    let (mut walks, mut written) = (Longest::default(), Vec::new());
    let started = Instant::now();
    let mut walk = data.holdings.begin_walk();
    loop {
        let mut checkpoint = LogOperations::of(board.edition().main().id());
        let more = walks.time(|| data.holdings.checkpoint_portion(&mut walk, 64 << 10, &mut checkpoint));
        written.push(checkpoint);
        if !more {
            break;
        }
    }
    walks.report("portions of a checkpoint");
    println!("  {:?} in all, {} MB", started.elapsed(), written.iter().map(LogOperations::len).sum::<usize>() >> 20);

    // Nine of ten subjects leave.
    let (mut retires, mut visits) = (Longest::default(), Longest::default());
    let later = START.plus_millis(23 * HOUR);
    data.advance(later);
    for nth in (0..number).step_by(10) {
        let name = name(nth);
        add(&mut data, HashedName::from(name.as_str()), 1, &mut appended);
    }
    let full = resident();
    data.advance(later.plus_millis(2 * HOUR));
    while !retires.time(|| {
        let started = Instant::now();
        data.retire(|work| work % 32 != 0 || started.elapsed() < Duration::from_micros(500)).1
    }) {}
    retires.report("steps of retiring");
    let started = Instant::now();
    while data.is_visit_due() {
        visits.time(|| data.visit_portion(1_000));
    }
    visits.report("portions of visits");
    println!(
        "  {:?}; {} subjects are left, the process shrank from {} to {} MB; {:.1} bytes without the ranking",
        started.elapsed(),
        data.holdings.subjects.len(),
        full >> 20,
        resident() >> 20,
        data.holdings.memory_bytes() as f64 / data.holdings.subjects.len() as f64
    );
    drop(data);

    filled = Instant::now();
    let before = resident();
    let mut restored = BoardState::new(board.clone().into(), Timestamp::EPOCH);
    for part in written {
        for operation in operations(part.bytes()) {
            replay(&mut restored, Some(0), operation.unwrap()).unwrap();
        }
    }
    println!("restored in {:?}", filled.elapsed());
    restored.move_clock(START);
    filled = Instant::now();
    restored.rebuild();
    println!("rebuilt in {:?}: {} ranked", filled.elapsed(), restored.holdings.ranking.len());
    println!("{} MB before it, {} MB after", before >> 20, resident() >> 20);
}

#[test]
#[ignore = "takes a gigabyte: by hand, with --release"]
fn bytes_a_slot_and_a_mean() {
    const COUNT: u64 = 200_000;
    const SLOTS: i64 = 60;
    for (metric, ranked) in [("SUM(60h, a, b, c)", true), ("SUM(60h, a, b, c)", false), ("AVG(60h, a, b, c)", true)] {
        let board = board(metric, ranked);
        let mut data = BoardState::new(board.clone().into(), START);
        let mut appended = LogOperations::of(board.edition().main().id());
        let mut last = 0.0;
        for hour in 0..SLOTS {
            data.advance(START.plus_millis(hour * HOUR));
            for number in 0..COUNT {
                add(&mut data, HashedName::from(name(number).as_str()), 1, &mut appended);
            }
            let each = data.holdings.memory_bytes() as f64 / COUNT as f64;
            if [0, 1, 2, 9, 23, 59].contains(&hour) {
                println!("{metric} ranked {ranked}: {} slots: {each:.1} bytes, {:.1} more", hour + 1, each - last);
            }
            last = each;
        }
    }
}
