//! Sequences drawn from a seed: boards of every kind, and every operation on them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rolltop::board::{
    Board, Cover, Decimals, Definition, FurtherWindow, Generation, Key, Kind, Mode, ModerationChange, Movement,
    NotCounted, Order, Ranks, Stamp, Visibility, WindowLength,
};
use rolltop::store::TableName;

use super::sequence::{Act, By, CROWD, Import, Item, Leap, Look, Question, SUBJECTS, Sequence, Size, Span, Step, When};
use crate::given::{definition, name, t};

/// The metrics. Sums occur twice, because they are the most common.
const METRICS: [&str; 10] = [
    "SUM({w}, sale, amount, seller)",
    "SUM({w}, sale, amount, seller)",
    "COUNT({w}, like, post)",
    "SUM({w}, like + comment*3 - spam*2, post)",
    "AVG({w}, sale, amount, seller)",
    "MIN({w}, sale, amount, seller)",
    "MAX({w}, sale, amount, seller)",
    "LAST({w}, rating, elo, player)",
    "COUNT_DISTINCT({w}, login, device, user)",
    "APPROX_COUNT_DISTINCT({w}, login, device, user)",
];

/// Further windows of boards.
const FURTHER: [&str; 10] = ["5s/1s", "1m/10s", "10m/1m", "3h/1h", "2d/6h", "7d/1d", "8w/1w", "3mo/1mo", "all", "all"];

const STARTS: [&str; 7] = [
    "2026-01-01T09:30:00Z",
    "2026-03-28T21:59:59.999Z",
    "2026-10-24T20:00:00Z",
    "2024-02-28T23:00:00Z",
    "2025-11-02T03:30:00Z",
    "2026-02-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
];

const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Havana"];

/// Where days, weeks, months and years begin.
const ANCHORS: [Option<&str>; 5] = [None, None, Some("2026-01-15T05:00"), Some("2025-11-02"), Some("2031-03-28T02:00")];

impl Sequence {
    pub fn from_seed(seed: u64) -> Sequence {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut boards: Vec<Definition> = (0..rng.random_range(1..=3)).map(|_| any_definition(&mut rng)).collect();
        if rng.random_bool(0.4) {
            // The contents of one can be merged into the other.
            boards.push(boards[0].clone());
        }
        let length = rng.random_range(15..=35);
        let mut steps: Vec<Step> = (0..length).map(|_| any_step(&mut rng, &boards)).collect();
        let start = t(pick(&mut rng, &STARTS));
        for _ in 0..rng.random_range(0..=12) {
            let at = rng.random_range(0..=steps.len());
            steps.insert(at, any_step_of_a_table(&mut rng));
        }
        if rng.random_bool(0.15) {
            // Pieces that a store merges in several portions.
            let (board, at) = (rng.random_range(0..boards.len()), rng.random_range(0..=steps.len()));
            let import = Import { from: board, size: 1_000, ..any_import(&mut rng, boards.len()) };
            let crowd = Step::Crowd { board, first: CROWD, at: None, through: 0 };
            steps.splice(at..at, [crowd, Step::Import(import)]);
        }
        if rng.random_bool(0.5) {
            // Many, of one board.
            let board = rng.random_range(0..boards.len());
            for _ in 0..rng.random_range(2..=12) {
                let at = rng.random_range(0..=steps.len());
                let step = match rng.random_bool(0.7) {
                    true => any_moderation(&mut rng, board),
                    false => any_description(&mut rng, board),
                };
                steps.insert(at, step);
            }
        }
        if rng.random_bool(0.4) {
            add_editions(&mut rng, boards.len(), &mut steps);
        }
        for (board, _) in boards.iter().enumerate().filter(|(_, definition)| definition.season.is_some()) {
            add_periods(&mut rng, board, &mut steps);
        }
        let mut sequence = Sequence { seed, start, boards, steps };
        if rng.random_bool(0.5) {
            sequence.without_samples();
        }
        sequence
    }
}

fn pick<T: Copy>(rng: &mut StdRng, from: &[T]) -> T {
    *from.choose(rng).expect("a list with something in it")
}

/// Draws a definition, of a ranked board sometimes with a ranking for each key.
fn any_definition(rng: &mut StdRng) -> Definition {
    let mut wanted = any_definition_without_keys(rng);
    if wanted.ranked && rng.random_bool(0.3) {
        wanted.metric.by = Some(Key::Field("k".into()));
    }
    let starts = pick(rng, &ANCHORS).map(|text| text.parse().expect("an hour"));
    wanted = if_allowed(Definition { starts, ..wanted.clone() }, wanted);
    let movement =
        pick(rng, &[None, Some(Movement::Hour), Some(Movement::Hour), Some(Movement::Day), Some(Movement::Period)]);
    wanted = if_allowed(Definition { movement, ..wanted.clone() }, wanted);
    if rng.random_bool(if wanted.metric.name() == "COUNT" { 0.5 } else { 0.0 }) {
        wanted = any_cap(rng, wanted);
    } else if rng.random_bool(0.2) {
        let (most, order) = (pick(rng, &[300, 20_000]), pick(rng, &["asc", "desc"]));
        let tie_break = serde_json::from_value(serde_json::json!({"most": most, "order": order})).ok();
        wanted = if_allowed(Definition { tie_break, ..wanted.clone() }, wanted);
    } else if rng.random_bool(0.25) {
        let ties = pick(rng, &["first", "last", "first:1m", "last:100ms", "first:1ms"]).parse().ok();
        wanted = if_allowed(Definition { ties, ..wanted.clone() }, wanted);
    }
    if rng.random_bool(0.2) {
        wanted = if_allowed(Definition { ranks: Ranks::Ordinal, ..wanted.clone() }, wanted);
    }
    wanted
}

/// Draws a cap for each person, where a board may have one. A slot that is too short for it becomes a day.
fn any_cap(rng: &mut StdRng, given: Definition) -> Definition {
    let most = pick(rng, &[1, 1, 2, 3, 1_000_000]);
    let cap = serde_json::from_value(serde_json::json!({"per": "user", "most": most, "every": "1d"})).ok();
    let max_values = rng.random_bool(0.3).then(|| rng.random_range(1..=4));
    let (decimals, ranked) = (Decimals::default(), true);
    let wanted = Definition { cap, max_values, decimals, ranked, ..given.clone() };
    let days = Definition {
        slot: "1d".parse().ok(),
        metric: "COUNT(3d, like, post)".parse().expect("a metric"),
        windows: Vec::new(),
        keep: None,
        ..wanted.clone()
    };
    if_allowed(wanted, if_allowed(days, given))
}

/// Returns the first definition, or the second one where a board may not have it.
fn if_allowed(wanted: Definition, otherwise: Definition) -> Definition {
    if Board::new(name("b"), Generation(1), wanted.clone()).is_ok() { wanted } else { otherwise }
}

fn any_definition_without_keys(rng: &mut StdRng) -> Definition {
    let metrics = metrics();
    let metric = metrics.choose(rng).expect("a metric");
    if rng.random_bool(0.2) {
        return any_all_time(rng, metric);
    }
    let slot = pick(rng, &["1s", "10s", "1m", "15m", "1h", "6h", "1d", "1w", "1mo", "3mo", "1y"]);
    let slots = pick(rng, &[1, 1, 2, 3, 3, 5, 8, 12, 30]);
    let (count, unit) = slot.split_at(slot.bytes().take_while(u8::is_ascii_digit).count());
    let count: u32 = count.parse().expect("a number");
    let span = |slots: u32| format!("{}{unit}", slots * count);
    let mut wanted = definition(&metric.replace("{w}", &span(slots)), slot);
    let kind = wanted.kind();
    wanted.timezone = pick(rng, &ZONES).parse().expect("a zone");
    wanted.order = pick(rng, &[Order::Desc, Order::Desc, Order::Asc]);
    wanted.stamp = pick(rng, &[Stamp::Start, Stamp::End]);
    wanted.ranked = rng.random_bool(0.6);
    wanted.dedupe = any_dedupe(rng);
    if !matches!(kind, Kind::Distinct | Kind::Sketch) {
        wanted.decimals = pick(rng, &[Decimals::default(), Decimals::new(2).expect("few enough")]);
    }
    if !wanted.ranked && kind == Kind::Sum && rng.random_bool(0.3) {
        wanted.mode = Mode::FromFirst;
        return wanted;
    }
    wanted.cover = pick(rng, &[Cover::Current, Cover::Current, Cover::Full]);
    let most = slots + u32::from(wanted.cover == Cover::Full);
    if kind == Kind::Distinct {
        wanted.max_values = rng.random_bool(0.5).then(|| rng.random_range(1..=4));
    } else if !wanted.ranked && rng.random_bool(0.6) {
        wanted.keep = Some(span(most + rng.random_range(0..=5)).parse().expect("a duration"));
    }
    if kind == Kind::Mean && wanted.ranked {
        wanted.min_samples = rng.random_range(1..=3);
    }
    if kind == Kind::Mean && rng.random_bool(0.3) {
        wanted.prior = serde_json::from_value(serde_json::json!({"mean": 25, "weight": 3})).ok();
    }
    add_windows(rng, wanted)
}

/// Draws the further windows of a board that may have any.
fn add_windows(rng: &mut StdRng, mut wanted: Definition) -> Definition {
    if !wanted.ranked || !rng.random_bool(0.4) {
        return wanted;
    }
    for _ in 0..rng.random_range(1..=3) {
        let further: FurtherWindow = pick(rng, &FURTHER).parse().expect("a window");
        let mut lengths = wanted.windows.iter().map(|window| window.length).chain([wanted.metric.window]);
        if !lengths.any(|length| length.is_as_long_as(further.length)) {
            wanted.windows.push(further);
        }
    }
    if !wanted.windows.is_empty() {
        wanted.stamp = Stamp::Start;
        if wanted.metric.window == WindowLength::All {
            wanted.timezone = pick(rng, &ZONES).parse().expect("a zone");
        }
    }
    wanted
}

/// Draws how long ids are remembered.
fn any_dedupe(rng: &mut StdRng) -> Option<rolltop::board::Span> {
    pick(rng, &[None, None, Some("1m"), Some("1h"), Some("3d")]).map(|text| text.parse().expect("a duration"))
}

/// Draws a board over all time.
fn any_all_time(rng: &mut StdRng, metric: &str) -> Definition {
    let mut wanted = Definition::without_slots(metric.replace("{w}", "all").parse().expect("a metric"));
    let kind = wanted.kind();
    wanted.order = pick(rng, &[Order::Desc, Order::Desc, Order::Asc]);
    wanted.ranked = rng.random_bool(0.7);
    wanted.dedupe = any_dedupe(rng);
    match kind {
        Kind::Distinct => wanted.max_values = rng.random_bool(0.5).then(|| rng.random_range(1..=4)),
        Kind::Sketch => {}
        _ => wanted.decimals = pick(rng, &[Decimals::default(), Decimals::new(2).expect("few enough")]),
    }
    if kind == Kind::Mean && wanted.ranked {
        wanted.min_samples = rng.random_range(1..=3);
    }
    if kind == Kind::Mean && rng.random_bool(0.3) {
        wanted.prior = serde_json::from_value(serde_json::json!({"mean": 25, "weight": 3})).ok();
    }
    if rng.random_bool(0.4) {
        let every = pick(rng, &["1h", "2h", "6h", "1d", "1w", "1mo", "3mo", "manual", "manual"]);
        let (grace, archive) = (pick(rng, &["30m", "10s", "5m"]), pick(rng, &[0, 1, 2, 7]));
        let season = serde_json::json!({"every": every, "grace": grace, "archive": archive});
        let fits = wanted.dedupe.is_none_or(|dedupe| dedupe.approximate_millis() >= 1_800_000);
        wanted.season = serde_json::from_value(season).ok().filter(|_| fits);
        wanted.timezone = if fits { pick(rng, &ZONES).parse().expect("a zone") } else { wanted.timezone };
        return wanted;
    }
    if kind != Kind::Distinct && rng.random_bool(0.4) {
        let (slot, keep) = pick(rng, &[("1h", "3h"), ("1m", "5m"), ("1d", "7d"), ("1mo", "3mo"), ("6h", "6h")]);
        (wanted.slot, wanted.keep) = (slot.parse().ok(), keep.parse().ok());
        wanted.timezone = pick(rng, &ZONES).parse().expect("a zone");
        wanted.stamp = pick(rng, &[Stamp::Start, Stamp::End]);
        return wanted;
    }
    add_windows(rng, wanted)
}

/// Returns every metric, or those named by the environment, such as `AVG,MAX`.
fn metrics() -> Vec<&'static str> {
    let wanted = std::env::var("ROLLTOP_MODEL_METRICS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').filter(|name| !name.is_empty()).collect();
    let is_wanted =
        |metric: &&str| wanted.is_empty() || wanted.iter().any(|name| metric.split('(').next() == Some(name));
    METRICS.into_iter().filter(is_wanted).collect()
}

fn any_step(rng: &mut StdRng, boards: &[Definition]) -> Step {
    let board = rng.random_range(0..boards.len());
    let through = rng.random_range(0..2);
    let window = rng.random_range(0..4);
    match rng.random_range(0..100) {
        0..2 => {
            let at = rng.random_bool(0.6).then(|| any_when(rng));
            Step::Crowd { board, first: rng.random_range(150..=CROWD), at, through }
        }
        2 => {
            let at = rng.random_bool(0.6).then(|| any_when(rng));
            Step::Flood { board, who: any_subject(rng), values: pick(rng, &[5, 40, 300, 1_500]), at, through }
        }
        3..6 => {
            // Each board once, as an event does.
            let fed: Vec<usize> = (0..boards.len()).filter(|_| rng.random_bool(0.8)).collect();
            Step::AddAll { batches: fed.into_iter().map(|board| (board, any_items(rng))).collect(), through }
        }
        6..38 => Step::Add { board, items: any_items(rng), scores: rng.random_bool(0.5), through },
        38..56 => Step::Clock(any_leap(rng, board)),
        56..63 => Step::Retire { board, window, steps: rng.random_range(1..=3), through },
        63..67 => Step::RetireTogether { board, window, items: any_items(rng) },
        67 => Step::Walk { board, window },
        68..70 => Step::Import(any_import(rng, boards.len())),
        70..72 => Step::Remove { board, who: any_subject(rng), through },
        72 if rng.random_bool(0.5) => any_description(rng, board),
        72 => any_moderation(rng, board),
        73..75 => {
            let same = rng.random_bool(0.5);
            let definition = if same { boards[board].clone() } else { any_definition(rng) };
            Step::Redefine { board, definition, through }
        }
        75..77 => Step::Stale { board, through },
        77..80 => Step::Audit { board },
        80..83 => Step::Reopen { close: rng.random_bool(0.5), through },
        83..94 => Step::Look { board, window, at: any_look(rng), through },
        94..97 => {
            let questions =
                (0..rng.random_range(0..=6)).map(|_| (rng.random_range(0..boards.len()), window, any_question(rng)));
            Step::SlotQuery { questions: questions.collect(), through }
        }
        _ => Step::Check { board },
    }
}

/// Gives a board a second edition, and adds what can be done with the two.
fn add_editions(rng: &mut StdRng, boards: usize, steps: &mut Vec<Step>) {
    let board = rng.random_range(0..boards);
    let mut at = rng.random_range(0..=steps.len() / 2);
    steps.insert(at, any_attachment(rng, board));
    for _ in 0..rng.random_range(2..=9) {
        at = rng.random_range(at + 1..=steps.len()).min(at + rng.random_range(1..=6));
        let through = rng.random_range(0..2);
        let step = match rng.random_range(0..16) {
            0..4 => Step::Fill {
                board,
                from: rng.random_range(0..3),
                to: rng.random_range(0..3),
                end: rng.random_bool(0.7),
                through,
            },
            4..7 => Step::Exchange { board, through },
            7 => Step::Detach { board, through },
            8..10 => any_attachment(rng, board),
            10..14 => Step::Behind { board, changes: rng.random_range(1..=3), items: any_items(rng), through },
            _ => Step::Add { board, items: any_items(rng), scores: rng.random_bool(0.5), through },
        };
        steps.insert(at, step);
    }
}

/// Adds ends of periods and of their graces, with items between them, and the packing of what is final, now and then late.
fn add_periods(rng: &mut StdRng, board: usize, steps: &mut Vec<Step>) {
    let mut at = rng.random_range(0..=steps.len());
    for _ in 0..rng.random_range(2..=5) {
        let through = rng.random_range(0..2);
        let leap = |rng: &mut StdRng| Step::Clock(Leap::Period { board, off: pick(rng, &[0, 0, 0, -1, 700]) });
        let add = |rng: &mut StdRng| Step::Add { board, items: any_items(rng), scores: rng.random_bool(0.5), through };
        let round = [
            Some(Step::Close { board, through }).filter(|_| rng.random_bool(0.8)),
            Some(leap(rng)).filter(|_| rng.random_bool(0.9)),
            Some(add(rng)),
            Some(leap(rng)).filter(|_| rng.random_bool(0.6)),
            Some(Step::Pack { board, through: 1 - through }).filter(|_| rng.random_bool(0.5)),
            Some(add(rng)).filter(|_| rng.random_bool(0.5)),
            Some(Step::Reopen { close: rng.random(), through }).filter(|_| rng.random_bool(0.1)),
        ];
        for step in round.into_iter().flatten() {
            steps.insert(at, step);
            at = (at + rng.random_range(1..=2)).min(steps.len());
        }
    }
}

fn any_attachment(rng: &mut StdRng, board: usize) -> Step {
    Step::Attach { board, definition: any_definition(rng), same: rng.random_bool(0.7), through: rng.random_range(0..2) }
}

/// Attributes of few names, so that changes meet, and now and then some that are nearly too long.
fn any_description(rng: &mut StdRng, board: usize) -> Step {
    let mut members = Vec::new();
    for name in ["a", "b", "z.1"] {
        match rng.random_range(0..5) {
            0 => members.push(format!("\"{name}\":null")),
            1 => members.push(format!("\"{name}\":{}.50", rng.random_range(0..3))),
            2 if rng.random_bool(0.2) => {
                members.push(format!("\"{name}\":\"{}\"", "x".repeat(rng.random_range(300..700))))
            }
            _ => {}
        }
    }
    let (attributes, replaces) = (format!("{{{}}}", members.join(",")), rng.random_bool(0.3));
    Step::Describe { board, who: any_subject(rng), attributes, replaces, through: rng.random_range(0..2) }
}

fn any_moderation(rng: &mut StdRng, board: usize) -> Step {
    let change = match rng.random_range(0..8) {
        0..3 => ModerationChange::Visibility(Visibility::Hidden),
        3 => ModerationChange::Visibility(Visibility::Shadowed),
        4..6 => ModerationChange::Visibility(Visibility::Visible),
        6 => ModerationChange::Frozen(true),
        _ => ModerationChange::Frozen(false),
    };
    Step::Moderate { board, who: any_subject(rng), change, through: rng.random_range(0..2) }
}

fn any_import(rng: &mut StdRng, boards: usize) -> Import {
    let to = rng.random_range(0..boards);
    Import {
        from: rng.random_range(0..boards),
        to,
        // Of three boards, each read in two walks.
        id: rng.random_range(0..3) << 32 | rng.random_range(0..2),
        size: pick(rng, &[1, 7, 100, 1_000]),
        leap: rng.random_bool(0.3).then(|| any_leap(rng, to)),
        interruptions: (0..pick(rng, &[0, 0, 1, 2])).map(|_| pick(rng, &[0, 0, 300, 2_000])).collect(),
        twice: rng.random_bool(0.3),
        end: rng.random_bool(0.7),
        through: rng.random_range(0..2),
    }
}

fn any_step_of_a_table(rng: &mut StdRng) -> Step {
    let (table, through) = (pick(rng, &TableName::ALL), rng.random_range(0..2));
    if rng.random_bool(0.3) {
        return Step::Rows { table, through };
    }
    let to = rng.random_bool(0.6).then(|| rng.random_range(0..3));
    Step::ChangeRow { table, id: rng.random_range(0..2), to, wrong: rng.random_bool(0.1), through }
}

fn any_items(rng: &mut StdRng) -> Vec<Item> {
    let most = pick(rng, &[1, 3, 6, 12]);
    (0..rng.random_range(1..=most)).map(|_| any_item(rng)).collect()
}

fn any_item(rng: &mut StdRng) -> Item {
    let amount = match rng.random_range(0..20) {
        0 => Size::Units(0),
        1 => Size::Units(pick(rng, &[i64::MAX, i64::MIN, 1 << 53, -(1 << 53)])),
        2..4 => Size::Bound { sign: pick(rng, &[1, -1]), off: rng.random_range(-2..=2) },
        4..9 => Size::Units(-rng.random_range(1..=3)),
        _ => Size::Units(rng.random_range(1..=4)),
    };
    let at = rng.random_bool(0.6).then(|| any_when(rng));
    let id = rng.random_bool(0.35).then(|| rng.random_range(0..4));
    let act = match rng.random_range(0..11) {
        0..2 => Act::Retract,
        10 => Act::Forget,
        2 => Act::Sample { count: rng.random_range(0..=3) },
        _ => Act::Count,
    };
    let by = any_editions(rng);
    let (window, value) = (rng.random_range(0..4), rng.random_range(0..7));
    Item { who: any_subject(rng), window, act, amount, value, at, id, by }
}

/// Draws which editions count an item.
fn any_editions(rng: &mut StdRng) -> By {
    match rng.random_range(0..24) {
        0..2 => By::Current(pick(rng, &[NotCounted::Filtered, NotCounted::NotAccepted])),
        2..4 => By::Other(pick(rng, &[NotCounted::Filtered, NotCounted::NotAccepted])),
        4 => By::Unsaid,
        _ => By::Both,
    }
}

fn any_when(rng: &mut StdRng) -> When {
    let off = pick(rng, &[-1, 0, 0, 1, 500]);
    match rng.random_range(0..10) {
        0 => When::Now(pick(rng, &[0, 1, 4_999, 5_000, 5_001, 3_600_000])),
        1..3 => When::Now(-rng.random_range(0..=7_200_000)),
        3..5 => When::Floor(off),
        5 => When::Head(off),
        _ => When::Back { slots: rng.random_range(0..=12), off: off.max(0) },
    }
}

fn any_leap(rng: &mut StdRng, board: usize) -> Leap {
    let off = pick(rng, &[-1, 0, 0, 1, 700]);
    let window = rng.random_range(0..4);
    match rng.random_range(0..20) {
        0..3 => Leap::By(rng.random_range(0..=2_000)),
        3..6 => Leap::By(rng.random_range(0..=7_200_000)),
        6..15 => Leap::Slots { board, window, slots: pick(rng, &[0, 0, 0, 0, 1, 2, 5]), off },
        15..19 => Leap::Windows { board, window, windows: 1, off },
        _ => Leap::Windows { board, window, windows: rng.random_range(2..=400), off },
    }
}

/// Draws a subject, mostly one of the few.
fn any_subject(rng: &mut StdRng) -> usize {
    let most = if rng.random_bool(0.1) { SUBJECTS.len() + CROWD } else { SUBJECTS.len() };
    rng.random_range(0..most)
}

fn any_look(rng: &mut StdRng) -> Look {
    let who = any_subject(rng);
    match rng.random_range(0..11) {
        10 => Look::Distribution {
            percentiles: [(); 3].map(|()| pick(rng, &[0, 1, 25_000, 33_333, 50_000, 90_000, 99_999, 100_000])),
            scores: [(); 2].map(|()| pick(rng, &[-3, 0, 1, 2, 3, 5, 10, 100])),
        },
        9 => Look::Place {
            who,
            score: pick(rng, &[-3, 0, 1, 2, 3, 5, 10, 100]),
            is_forward: rng.random(),
            inclusive: rng.random(),
            limit: pick(rng, &[0, 1, 2, 5, 100]),
        },
        0 => Look::Page { offset: pick(rng, &[0, 1, 3, 8, 100, 500]), limit: pick(rng, &[0, 1, 2, 5, 100]) },
        1 => Look::Neighbors { who, radius: pick(rng, &[0, 1, 2, 20]) },
        2 => Look::Lookup { who: [who, any_subject(rng), any_subject(rng)] },
        3..5 => Look::Standing { who },
        5..7 => Look::Read(any_question(rng)),
        7 => Look::Values { who, offset: pick(rng, &[0, 0, 1, 3, 100]), limit: pick(rng, &[0, 1, 2, 100]) },
        _ => Look::Status,
    }
}

fn any_question(rng: &mut StdRng) -> Question {
    let range = match rng.random_range(0..4) {
        0 => Span::Slots(rng.random_range(1..=31)),
        1 => Span::From(any_when_up_to_now(rng)),
        _ => Span::AllBut(pick(rng, &[0, 0, 1, 2, 5])),
    };
    Question { who: any_subject(rng), range, as_of: rng.random_bool(0.5).then(|| any_past(rng)) }
}

/// Draws an end of a window, mostly a time that is still stored.
fn any_past(rng: &mut StdRng) -> When {
    match rng.random_range(0..6) {
        0 => When::Now(pick(rng, &[0, 0, 1, -1, -3_600_000])),
        1 => When::Floor(pick(rng, &[-1, 0])),
        _ => When::Back { slots: rng.random_range(0..=8), off: pick(rng, &[-1, 0, 1]) },
    }
}

/// Draws a beginning of a shorter window.
fn any_when_up_to_now(rng: &mut StdRng) -> When {
    match rng.random_range(0..4) {
        0 => When::Now(-rng.random_range(0..=7_200_000)),
        1 => When::Floor(pick(rng, &[-1, 0])),
        2 => When::Back { slots: rng.random_range(1..=12), off: pick(rng, &[-1, 0, 1]) },
        _ => When::Head(pick(rng, &[-1, 0])),
    }
}
