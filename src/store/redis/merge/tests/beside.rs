//! Pages next to a place.

use super::random::case;
use super::*;

impl Memory {
    /// Reads a page next to a place and compares it with the list.
    pub(super) fn check_beside(&self, next_to: &NextTo, limit: u64) -> Cost {
        let order = self.state.lock().content.order;
        let wanted = Wanted::Page { start: PageStart::Place(next_to.clone()), limit };
        let Merged { total, found, .. } = self.lines(order, &wanted).unwrap();
        let Found { first, items: lines } = found;
        let ranking = self.ranking();
        let is_here = |line: &&Ranked| belongs(next_to, line, order);
        let count = ranking.iter().filter(is_here).count();
        let expected: Vec<Ranked> = match next_to.direction {
            Direction::Forward => ranking.iter().filter(is_here).take(limit as usize).cloned().collect(),
            Direction::Backward => {
                ranking.iter().take(count).skip(count.saturating_sub(limit as usize)).cloned().collect()
            }
        };
        assert_eq!(lines.to_vec(), expected, "{next_to:?}, limit {limit}");
        let start = match next_to.direction {
            Direction::Forward => ranking.len() - count,
            Direction::Backward => count.saturating_sub(limit as usize),
        };
        assert_eq!((first, total), (start as u64, ranking.len() as u64), "{next_to:?}, limit {limit}");
        self.cost()
    }
}

fn belongs(next_to: &NextTo, line: &Ranked, order: Order) -> bool {
    let line = Place::of(line);
    match line.compare(&next_to.place, order) {
        std::cmp::Ordering::Equal => next_to.inclusive,
        side => (side == std::cmp::Ordering::Greater) == (next_to.direction == Direction::Forward),
    }
}

fn next_to(score: Value, text: &str, direction: Direction, inclusive: bool) -> NextTo {
    NextTo { place: Place { score, subject: subject(text) }, direction, inclusive }
}

#[test]
fn one_round_reads_a_page_anywhere_in_a_large_ranking() {
    for (parts, scores) in [(1, 1_000), (3, 1), (16, 100), (16, 1_000_000), (64, 1_000)] {
        let mut draw = numbers(3);
        let mut content = Content::new(Order::Desc, parts);
        content.fill((0..20_000).map(|i| (format!("s-{i}"), exact(1 + draw(scores) as i64))));
        let memory = Memory::new(content);
        let ranking = memory.ranking();
        let mut rounds = 0;
        for at in [0, 1, 700, 10_000, 19_990, 19_999] {
            for direction in [Direction::Forward, Direction::Backward] {
                for inclusive in [false, true] {
                    let line = &ranking[at];
                    let cost =
                        memory.check_beside(&next_to(line.score, line.subject.as_str(), direction, inclusive), 50);
                    assert!(cost.rounds <= 2 && cost.lines <= 2 * (50 + parts * 12), "{parts}, {at}: {cost:?}");
                    rounds += cost.rounds;
                }
            }
        }
        assert!(rounds <= 26, "{parts}, {scores}: {rounds} rounds for 24 pages");
    }
}

#[test]
fn all_lines_of_a_page_may_be_in_one_part() {
    for direction in [Direction::Forward, Direction::Backward] {
        let mut content = Content::new(Order::Asc, 8);
        content.division = None;
        content.fill((0..3_000).map(|i| (format!("{}/s-{i}", i / 500 % 8), exact(i))));
        let memory = Memory::new(content);
        let cost = memory.check_beside(&next_to(exact(1_200), "x", direction, false), 200);
        assert!(cost.rounds == 2 && cost.lines <= 1_000, "{cost:?}");
    }
}

#[test]
fn parts_without_lines_and_rankings_without_lines() {
    let mut content = Content::new(Order::Desc, 16);
    for text in ["b", "d"] {
        for direction in [Direction::Forward, Direction::Backward] {
            for inclusive in [false, true] {
                let memory = Memory::new(content);
                for limit in [0, 1, 5, u64::MAX] {
                    for name in ["a", "b", "c", "d", "e"] {
                        memory.check_beside(&next_to(exact(1), name, direction, inclusive), limit);
                    }
                }
                content = memory.state.into_inner().content;
            }
        }
        content.set(text, exact(1));
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn pages_beside_a_place(
        case in case(1_500), subject in 0..3_000u16, score in -45..=45i64, forward: bool, inclusive: bool, limit in 0..200u64
    ) {
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let memory = case.without_writes().memory();
        let line = memory.ranking().get(usize::from(subject)).cloned();
        let place = match line {
            Some(line) if score % 2 == 0 => Place { score: line.score, subject: line.subject },
            _ => Place { score: case.value(score), subject: super::subject(&format!("s-{subject}")) },
        };
        let cost = memory.check_beside(&NextTo { place, direction, inclusive }, limit);
        proptest::prop_assert!(cost.rounds <= 3, "{:?}", cost);
    }

    /// With writes, a subject that is not written to is on the page if it is between the place and the end of the page.
    #[test]
    fn pages_beside_a_place_while_written_to(
        case in case(1_500), subject in 0..3_000u16, score in -45..=45i64, forward: bool, inclusive: bool, limit in 1..200u64
    ) {
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let next_to = next_to(case.value(score), &format!("s-{subject}"), direction, inclusive);
        let memory = case.memory();
        let wanted = Wanted::Page { start: PageStart::Place(next_to.clone()), limit };
        let Found { items: lines, .. } = memory.lines(case.order, &wanted).unwrap().found;
        let place = Place::of;
        proptest::prop_assert!(lines.windows(2).all(|two| place(&two[0]).compare(&place(&two[1]), case.order).is_lt()));
        proptest::prop_assert!(lines.iter().all(|line| belongs(&next_to, line, case.order)));
        proptest::prop_assert!(lines.len() as u64 <= limit);
        let end = if forward { lines.last() } else { lines.first() }.map(place);
        let written = case.written();
        for line in memory.ranking() {
            let is_beyond = lines.len() as u64 == limit && end.as_ref().is_some_and(|end| {
                let side = place(&line).compare(end, case.order);
                if forward { side.is_gt() } else { side.is_lt() }
            });
            if belongs(&next_to, &line, case.order) && !is_beyond && !written.contains(line.subject.as_str()) {
                proptest::prop_assert!(lines.iter().any(|other| other.subject == line.subject), "{:?}", line);
            }
        }
    }
}
