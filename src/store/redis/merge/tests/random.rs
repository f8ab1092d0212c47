//! Random rankings, questions and writes between rounds.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub order: Order,
    parts: usize,
    /// Lines, each with the number of its subject. There are so few numbers that many occur twice.
    lines: Vec<(u16, i64)>,
    /// The writes before each round: a subject, and its new score, or `None` to remove it.
    writes: Vec<Vec<(u16, Option<i64>)>>,
    means: bool,
}

pub(super) fn case(most: usize) -> impl Strategy<Value = Case> {
    let score = || prop_oneof![3 => 1..=3i64, 2 => -40..=40i64, 1 => -1_000_000..=1_000_000i64];
    let write = (0..3_000u16, proptest::option::weighted(0.8, score()));
    (
        any::<bool>(),
        prop_oneof![Just(1usize), 2..=5usize, Just(16), Just(64)],
        proptest::collection::vec((0..3_000u16, score()), 0..most),
        proptest::collection::vec(proptest::collection::vec(write, 0..6), 0..6),
        any::<bool>(),
    )
        .prop_map(|(descending, parts, lines, writes, means)| {
            let order = if descending { Order::Desc } else { Order::Asc };
            Case { order, parts, lines, writes, means }
        })
}

impl Case {
    /// Returns a score of this case as it is stored.
    pub fn value(&self, score: i64) -> Value {
        if self.means { Value::mean(score, 3).unwrap() } else { exact(score) }
    }

    pub fn without_writes(&self) -> Self {
        Self { writes: Vec::new(), ..self.clone() }
    }

    /// Returns the subjects that are written to.
    pub fn written(&self) -> HashSet<String> {
        self.writes.iter().flatten().map(|(subject, _)| format!("s-{subject}")).collect()
    }

    pub fn memory(&self) -> Memory {
        let case = self.clone();
        let value = move |score: i64| case.value(score);
        let mut content = Content::new(self.order, self.parts);
        let lines: std::collections::BTreeMap<u16, i64> = self.lines.iter().copied().collect();
        content.fill(lines.into_iter().map(|(subject, score)| (format!("s-{subject}"), self.value(score))));
        let writes = self.writes.clone();
        Memory::changing(content, move |round, content| {
            for (subject, score) in writes.get(round - 1).into_iter().flatten() {
                match score {
                    Some(score) => content.set(&format!("s-{subject}"), value(*score)),
                    None => content.remove(&format!("s-{subject}")),
                }
            }
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A page at a large offset is that of the list as it is in the last round.
    #[test]
    fn random_deep_pages_match_the_last_round(case in case(2_500), offset in 0..2_600u64, limit in 0..60u64) {
        let memory = case.memory();
        let merged = block_on(deep::page(&memory, case.order, offset, limit)).unwrap();
        let ranking = memory.ranking();
        let expected: Vec<Ranked> = ranking.iter().skip(offset as usize).take(limit as usize).cloned().collect();
        prop_assert_eq!(merged.found, expected);
        prop_assert_eq!(merged.total, ranking.len() as u64);
        let cost = memory.cost();
        // Three rounds, and one more if some of the few writes affect a narrow page.
        prop_assert!(cost.rounds <= 4 && cost.lines <= cost.rounds * (64 * 32 + 64 + 3 * limit as usize), "{:?}", cost);
    }

    /// A page at a small offset is correct if there are no writes in the meantime.
    #[test]
    fn random_top_pages_are_exact_without_writes(case in case(800), offset in 0..200u64, limit in 0..200u64) {
        let memory = Case { writes: Vec::new(), ..case }.memory();
        let cost = memory.check_page(offset, limit);
        prop_assert!(cost.rounds <= 2, "{:?}", cost);
    }

    /// With writes, each partition's lines are those of one of the rounds, and the page is made from them.
    #[test]
    fn random_top_pages_are_sorted_under_writes(case in case(800), offset in 0..200u64, limit in 1..200u64) {
        let memory = case.memory();
        let merged = memory.page(offset, limit).unwrap();
        prop_assert!(memory.cost().rounds <= ROUNDS);
        let places: Vec<Place> = merged.found.iter().map(Place::of).collect();
        prop_assert!(places.windows(2).all(|pair| pair[0].compare(&pair[1], case.order).is_lt()));
        prop_assert_eq!(places.len() as u64, limit.min(merged.total.saturating_sub(offset)));
        for pair in merged.found.windows(2) {
            prop_assert_eq!(pair[0].score == pair[1].score, pair[0].rank == pair[1].rank);
        }
    }

    #[test]
    fn neighbors(case in case(1_500), subject in 0..3_000u16, radius in 0..40u64) {
        // Other subjects are written to. A different test moves the subject itself.
        let writes = case.writes.iter().map(|writes| writes.iter().filter(|(s, _)| *s != subject).copied().collect());
        let memory = Case { writes: writes.collect(), ..case }.memory();
        let cost = memory.check_around(&format!("s-{subject}"), radius);
        prop_assert!(cost.rounds <= 4, "{:?}", cost);
    }
}
