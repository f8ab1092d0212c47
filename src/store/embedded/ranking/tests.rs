use std::collections::BTreeSet;
use std::time::Instant;

use proptest::prelude::*;

use super::*;

/// A ranking with such small leaves and nodes that a few hundred entries use all levels.
type Small = Sorted<8, 4>;

impl TextSource for Vec<String> {
    fn text(&self, id: u32) -> &str {
        &self[id as usize]
    }
}

/// Returns names with long common prefixes, so that many ties are decided by the text.
fn names(count: u32) -> Vec<String> {
    (0..count)
        .map(|i| match i % 3 {
            0 => format!("subject-with-a-long-prefix-{}", (i * 7_919) % count),
            1 => "x".repeat(1 + i as usize % 40) + &i.to_string(),
            _ => i.to_string(),
        })
        .collect()
}

/// A random number generator that returns the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns names of fourteen random letters.
    fn names(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| (0..14).map(|_| char::from(b'a' + self.below(26) as u8)).collect()).collect()
    }
}

impl<const LEAF: usize, const NODE: usize> Sorted<LEAF, NODE> {
    /// Checks the invariants of the ranking.
    fn assert_sound(&self) {
        assert!(self.nodes.iter().all(|node| (1..=NODE).contains(&node.leaves().len())));
        assert!(self.nodes.iter().flat_map(|node| node.leaves()).all(|leaf| (1..=LEAF).contains(&leaf.len())));
        assert!(self.firsts.iter().eq(self.nodes.iter().map(|node| &node.leaves()[0][0])));
        for (node, count) in self.nodes.iter().zip(&self.counts) {
            assert!((0..node.leaves().len()).all(|leaf| *node.first_of(leaf) == node.leaves()[leaf][0]));
            assert_eq!(node.count(), *count);
            assert_eq!(node.leaves().iter().map(Vec::len).sum::<usize>(), *count as usize);
        }
        assert_eq!(self.before(self.nodes.len()), self.len);
        assert_eq!(self.bytes_of_nodes, self.nodes.iter().map(Node::memory_bytes).sum::<usize>());
        let leaves = self.nodes.iter().flat_map(|node| node.leaves());
        assert!(
            self.nodes.len() + self.nodes[..].iter().map(|node| node.leaves().len()).sum::<usize>() <= 2
                || leaves.map(Vec::capacity).all(|capacity| capacity == LEAF)
        );
    }

    /// Returns the average fill of the leaves.
    fn fill(&self) -> f64 {
        let leaves: usize = self.nodes.iter().map(|node| node.leaves().len()).sum();
        self.len as f64 / (leaves * LEAF) as f64
    }

    /// Returns an upper bound of the moves of one operation, including replacing: the entries of up to three full
    /// leaves, which are moved out and back when they are shared among one leaf more or fewer, those of one leaf, the
    /// leaves of two nodes, and the list of nodes twice; all of it for the removal and again for the insertion.
    fn bound(&self) -> usize {
        2 * (7 * LEAF + 2 * NODE + 2 * self.nodes.len())
    }
}

/// The number of groups of the model.
const GROUPS: u32 = 3;

/// Returns the entry of a subject in its group.
fn grouped(score: i64, texts: &[String], id: u32) -> Entry {
    Entry::new(score, &texts[id as usize], id).in_group(id * 7 % GROUPS + 1)
}

fn check(ranking: &Small, model: &[Entry], texts: &Vec<String>) {
    ranking.assert_sound();
    assert_eq!(ranking.len(), model.len());
    assert!(ranking.ascending(0).eq(model.iter().copied()));
    assert!(ranking.descending(0).eq(model.iter().rev().copied()));
    for place in [0, 1, model.len() / 3, model.len() / 2, model.len().saturating_sub(1), model.len()] {
        assert!(ranking.ascending(place).take(70).eq(model.iter().copied().skip(place).take(70)));
        assert!(ranking.descending(place).take(70).eq(model.iter().rev().copied().skip(place).take(70)));
        if let Some(entry) = model.get(place) {
            assert_eq!(ranking.position(*entry, texts), Some(place));
            let (group, score, text) = (entry.group(), entry.score(), texts.text(entry.id));
            assert_eq!(ranking.position_after(group, score, text, texts), place + 1);
            assert_eq!(ranking.position_from(group, score, text, texts), place);
            check_score(ranking, model, group, score);
        }
    }
    for group in 0..=GROUPS + 1 {
        let first = model.partition_point(|e| e.group() < group);
        assert_eq!(ranking.positions_of(group), first..model.partition_point(|e| e.group() <= group));
        for score in [i64::MIN, -1, 0, 1, i64::MAX] {
            check_score(ranking, model, group, score);
        }
    }
}

fn check_score(ranking: &Small, model: &[Entry], group: u32, score: i64) {
    let first = model.partition_point(|e| (e.group(), e.score()) < (group, score));
    assert_eq!(ranking.position_of_score(group, score), first);
    let after = model.partition_point(|e| (e.group(), e.score()) <= (group, score));
    assert_eq!(ranking.position_after_score(group, score), after);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn behaves_like_a_sorted_set(
        changes in prop::collection::vec((0u32..900, -40i64..40, 0u8..10), 1..4_000),
        shrink in any::<bool>(),
    ) {
        let texts = names(900);
        let mut ranking = Small::default();
        let mut scores = vec![None; 900];
        let mut model = BTreeSet::new();
        let shrinking = (0..900).map(|id| (id, 0, 0)).filter(|_| shrink);
        for (id, score, kind) in changes.into_iter().chain(shrinking) {
            let entry = |score| grouped(score, &texts, id);
            let key = |score| (entry(score).group(), score, texts[id as usize].as_bytes(), id);
            let slot: &mut Option<i64> = &mut scores[id as usize];
            let (before, nodes) = (ranking.moved, ranking.nodes.len());
            match (*slot, kind) {
                (None, 0..=1) => prop_assert!(!ranking.remove(entry(score), &texts)),
                (None, 2) => {
                    prop_assert!(!ranking.replace(entry(score + 1), entry(score), &texts));
                    model.insert(key(score));
                    *slot = Some(score);
                }
                (None, _) => {
                    ranking.insert(entry(score), &texts);
                    model.insert(key(score));
                    *slot = Some(score);
                }
                (Some(old), 0..=1) => {
                    prop_assert!(ranking.contains(entry(old), &texts));
                    prop_assert!(ranking.remove(entry(old), &texts));
                    model.remove(&key(old));
                    *slot = None;
                }
                (Some(old), _) => {
                    prop_assert!(ranking.replace(entry(old), entry(score), &texts));
                    model.remove(&key(old));
                    model.insert(key(score));
                    *slot = Some(score);
                }
            }
            prop_assert!(ranking.moved - before <= ranking.bound().max(nodes));
        }
        let model: Vec<Entry> =
            model.into_iter().map(|(_, score, _, id)| grouped(score, &texts, id)).collect();
        check(&ranking, &model, &texts);
        check(&Small::build(model.iter().rev().copied().collect(), &texts), &model, &texts);
    }
}

#[test]
fn sequential_inserts_fill_the_leaves() {
    let texts: Vec<String> = (0..5_000).map(|id| format!("name-{id:05}")).collect();
    let entries: Vec<Entry> = (0..5_000).map(|id| Entry::new(7, &texts[id as usize], id)).collect();
    let (mut upward, mut downward) = (Small::default(), Small::default());
    for (entry, reverse) in entries.iter().zip(entries.iter().rev()) {
        upward.insert(*entry, &texts);
        downward.insert(*reverse, &texts);
    }
    for ranking in [&upward, &downward] {
        check(ranking, &entries, &texts);
        assert!(ranking.fill() > 0.99, "{}", ranking.fill());
    }
}

#[test]
fn leaves_and_nodes_merge_on_removal() {
    let texts = names(20_000);
    let mut ranking = Small::default();
    check(&ranking, &[], &texts);
    let entries: Vec<Entry> = (0..20_000).map(|id| Entry::new(i64::from(id), &texts[id as usize], id)).collect();
    for entry in &entries {
        ranking.insert(*entry, &texts);
    }
    check(&ranking, &entries, &texts);
    let full = ranking.nodes.len();
    for entry in entries.iter().filter(|e| e.id % 100 != 0) {
        assert!(ranking.remove(*entry, &texts));
    }
    let rest: Vec<Entry> = entries.iter().copied().filter(|e| e.id % 100 == 0).collect();
    check(&ranking, &rest, &texts);
    assert!(ranking.nodes.len() * 20 < full, "{} of {full} nodes left", ranking.nodes.len());
    for entry in &rest {
        assert!(ranking.remove(*entry, &texts));
    }
    check(&ranking, &[], &texts);
}

#[test]
fn a_small_ranking_allocates_little_memory() {
    let texts = names(10);
    let mut ranking = Ranking::default();
    for id in 0..10 {
        ranking.insert(Entry::new(1, &texts[id as usize], id), &texts);
    }
    assert!(ranking.nodes[0].leaves()[0].capacity() <= 16);
}

/// Increments random subjects from score 1 to about `rounds`, and measures the fill after each round.
fn increments<const LEAF: usize, const NODE: usize>(count: u64, rounds: i64) -> (f64, usize) {
    let mut numbers = Numbers(count);
    let texts = numbers.names(count as usize);
    let mut scores = vec![1i64; count as usize];
    let mut ranking = Sorted::<LEAF, NODE>::default();
    for id in 0..count as u32 {
        ranking.insert(Entry::new(1, &texts[id as usize], id), &texts);
    }
    let (mut least, mut most) = (ranking.fill(), 0);
    for _ in 1..rounds {
        for _ in 0..count {
            let id = numbers.below(count) as u32;
            let score = &mut scores[id as usize];
            let old = Entry::new(*score, &texts[id as usize], id);
            *score += 1;
            let before = ranking.moved;
            assert!(ranking.replace(old, old.with_score(*score), &texts));
            most = most.max(ranking.moved - before);
        }
        least = least.min(ranking.fill());
    }
    assert!(most <= ranking.bound(), "{most}");
    ranking.assert_sound();
    (least, most)
}

#[test]
fn leaves_stay_three_quarters_full_under_random_updates() {
    let (fill, _) = increments::<64, 16>(20_000, 12);
    assert!(fill >= 0.75, "{fill}");
    // With the real sizes, the number of moved entries has the same bound.
    increments::<512, 128>(20_000, 3);
}

#[test]
fn a_ranking_built_from_unsorted_entries_is_sorted() {
    let mut numbers = Numbers(1);
    let mut texts = numbers.names(50_000);
    texts.extend((0..50_000).map(|i| format!("https://example.com/products/category-7/item-{}", i * 7_919 % 50_000)));
    let entry = |id: u32| Entry::new(i64::from(id % 3), &texts[id as usize], id).in_group(id % 5 / 4);
    let ranking = Ranking::build((0..100_000).map(entry).collect(), &texts);
    ranking.assert_sound();
    let mut model: Vec<Entry> = (0..100_000).map(entry).collect();
    let key = |entry: &Entry| (entry.group(), entry.score(), texts.text(entry.id).to_owned());
    model.sort_by_cached_key(key);
    assert!(ranking.ascending(0).eq(model));
    assert!(ranking.fill() > 0.85, "{}", ranking.fill());
}

#[test]
fn build_handles_empty_single_and_duplicate_entries() {
    let texts = names(2);
    assert_eq!(Ranking::build(Unsorted::default(), &texts).len(), 0);
    let entry = Entry::new(3, &texts[0], 0);
    assert!(Ranking::build([entry].into_iter().collect(), &texts).ascending(0).eq([entry]));
    assert_eq!(Ranking::build([entry, entry].into_iter().collect(), &texts).len(), 2);
}

/// Prints the cost of operations and the fill of leaves: `cargo test --release --lib ranking -- --ignored --nocapture`.
#[test]
#[ignore = "measures: some minutes, 1.5 GB"]
fn figures() {
    for count in [1_000_000u32, 10_000_000] {
        let mut numbers = Numbers(1);
        let texts = numbers.names(count as usize);
        let mut ranking = Ranking::default();
        let begun = Instant::now();
        for id in 0..count {
            ranking.insert(Entry::new(1, &texts[id as usize], id), &texts);
        }
        let per = |begun: Instant, count: u32| begun.elapsed().as_nanos() / u128::from(count);
        println!("{count}: insert {} ns, fill {:.3}", per(begun, count), ranking.fill());
        let mut scores = vec![1i64; count as usize];
        for _ in 0..4 {
            let begun = Instant::now();
            for _ in 0..count {
                let id = numbers.below(u64::from(count)) as u32;
                let score = &mut scores[id as usize];
                let old = Entry::new(*score, &texts[id as usize], id);
                *score += 1;
                ranking.replace(old, old.with_score(*score), &texts);
            }
            println!("{count}: increment {} ns, fill {:.3}", per(begun, count), ranking.fill());
        }
        drop(ranking);
        let begun = Instant::now();
        let entries: Unsorted = (0..count).map(|id| Entry::new(1, &texts[id as usize], id)).collect();
        let ranking = Ranking::build(entries, &texts);
        println!("{count}: build {:?}", begun.elapsed());
        assert_eq!(ranking.len(), count as usize);
    }
}
