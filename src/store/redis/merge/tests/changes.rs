//! Writes and rollovers between the rounds of a read.

use super::*;

fn content(order: Order, parts: usize, subjects: u64, scores: u64) -> Content {
    let mut draw = numbers(9);
    let mut content = Content::new(order, parts);
    content.fill((0..subjects).map(|i| (format!("s-{i}"), exact(1 + draw(scores) as i64))));
    content
}

/// The answer is compared with the list as it is in the last round: it must contain nothing of an earlier round.
#[test]
fn pages_reflect_the_last_round_under_concurrent_writes() {
    for scores in [1, 500, 1_000_000] {
        for offset in [0, 30, 3_000, 20_000, 39_990] {
            let mut draw = numbers(scores + offset);
            // In each round 25 subjects move to the front, and as many to the back.
            let memory = Memory::changing(content(Order::Desc, 16, 40_000, scores), move |_, content| {
                content.set_all((0..25).map(|_| format!("s-{}", draw(40_000))), Some(exact(2_000_000)));
                content.set_all((0..25).map(|_| format!("s-{}", draw(40_000))), Some(exact(-5)));
            });
            // Subjects that enter above a large offset move the page by no more lines than are enclosed beyond it.
            let cost = memory.check_page(offset, 50);
            assert!(cost.rounds <= 4 && cost.lines <= 2_500, "{scores}, {offset}: {cost:?}");
        }
    }
}

#[test]
fn the_range_is_widened_when_writes_move_the_page_out() {
    for parts in [3, 16, 64] {
        let start = || content(Order::Desc, parts, 40_000, 1_000_000);
        let last = Memory::new(start()).check_page(20_000, 50).rounds;
        for moved in [100, 3_000, 12_000] {
            for score in [3_000_000, -5] {
                let memory = Memory::changing(start(), move |round, content| {
                    if round == last {
                        content.set_all((0..moved).map(|i| format!("s-{i}")), Some(exact(score)));
                    }
                });
                // About half of these passed the page.
                let cost = memory.check_page(20_000, 50);
                let needed = if moved == 100 { last..=last + 1 } else { last + 1..=ROUNDS };
                assert!(needed.contains(&cost.rounds), "{moved}, {score}, {parts}: {cost:?}");
                assert!(cost.lines <= 6_000, "{moved}, {score}, {parts}: {cost:?}");
            }
        }
    }
}

#[test]
fn a_page_is_exact_if_the_ranking_resizes_between_rounds() {
    let memory = Memory::changing(content(Order::Asc, 8, 20_000, 100), |round, content| {
        if round == 2 {
            content.parts.iter_mut().for_each(|part| part.truncate(100));
        }
    });
    assert_eq!(memory.check_page(10_000, 50).rounds, 2);
    let memory = Memory::changing(content(Order::Asc, 8, 20_000, 100), |round, content| {
        if round == 2 {
            content.parts.iter_mut().for_each(|part| part.truncate(1_260));
        }
    });
    assert!(memory.check_page(10_000, 500).rounds <= 5);
    let memory = Memory::changing(content(Order::Asc, 8, 2_000, 100), |round, content| {
        if round == 2 {
            content.fill((0..20_000).map(|i| (format!("t-{i}"), exact(i))));
        }
    });
    assert!(memory.check_page(1_990, 50).rounds <= 5);
}

#[test]
fn a_constantly_changing_ranking_is_an_error() {
    // Every line moves before all places that the round asks about.
    let memory = Memory::changing(content(Order::Desc, 16, 40_000, 1_000_000), |_, content| {
        for line in content.parts.iter_mut().flatten() {
            line.score = exact(line.score.as_f64() as i64 + 10_000_000);
        }
    });
    assert_eq!(memory.page(20_000, 50), Err(MergeError::Unsettled));
    assert_eq!(memory.cost().rounds, ROUNDS);
}

#[test]
fn a_moving_subject_is_found_at_its_last_place_or_unsettled() {
    for radius in [0, 10] {
        // It moves by few places: the lines read around its old place are sufficient.
        let memory = Memory::changing(content(Order::Desc, 16, 20_000, 1_000_000), |round, content| {
            if round > 1 {
                content.set("s-7", exact(1_000_000 + 10 * round as i64));
            }
        });
        memory.state.lock().content.set("s-7", exact(1_000_005));
        assert_eq!(memory.check_around("s-7", radius).rounds, 2);
        // It moves by many places: one more round is needed after it stops moving.
        let memory = Memory::changing(content(Order::Desc, 16, 20_000, 1_000_000), |round, content| {
            if round == 2 {
                content.set("s-7", exact(500_000));
            }
        });
        memory.state.lock().content.set("s-7", exact(900_000));
        assert_eq!(memory.check_around("s-7", radius).rounds, 3);
        // It leaves the ranking, or enters it.
        let memory = Memory::changing(content(Order::Asc, 16, 20_000, 1_000_000), |round, content| {
            if round == 2 {
                content.remove("s-7");
            }
        });
        assert!(memory.check_around("s-7", radius).rounds <= 3);
        let memory = Memory::changing(content(Order::Asc, 16, 20_000, 1_000_000), |round, content| {
            if round == 2 {
                content.set("new", exact(400_000));
            }
        });
        assert!(memory.check_around("new", radius).rounds <= 3);
        // It never stops moving.
        let memory = Memory::changing(content(Order::Desc, 16, 20_000, 1_000_000), |round, content| {
            content.set("s-7", exact(if round % 2 == 0 { 1 } else { 2_000_000 }));
        });
        assert_eq!(memory.around("s-7", radius), Err(MergeError::Unsettled));
        assert_eq!(memory.cost().rounds, ROUNDS);
    }
}

#[test]
fn parts_with_an_older_head_are_queried_again() {
    for offset in [0, 5_000] {
        let memory = Memory::changing(content(Order::Desc, 8, 9_000, 100), |round, content| {
            // A slot ends: half of the parts notice it a round later, and the ranking changes.
            content.heads = (0..8).map(|part| 1 + i64::from(round > 1 || part % 2 == 0)).collect();
            if round == 2 {
                content.set_all((0..200).map(|i| format!("s-{i}")), None);
            }
        });
        let page = memory.page(offset, 20).unwrap();
        assert_eq!(page.frame.window.head, Timestamp::from_millis(2_000));
        let cost = memory.cost();
        match offset {
            0 => assert_eq!((cost.rounds, cost.calls), (2, 12)),
            _ => assert!(cost.rounds <= 4, "{cost:?}"),
        }
    }
}

/// The head moves between the rounds of a top page: earlier answers of the partitions are not used.
#[test]
fn results_do_not_mix_two_heads() {
    let mut start = Content::new(Order::Asc, 4);
    start.division = None;
    start.fill((0..800).map(|i| (format!("{}/{i:03}", if i < 200 { 0 } else { i % 4 }), exact(i))));
    let memory = Memory::changing(start, |round, content| {
        if round == 2 {
            content.heads = vec![2; 4];
            content.parts[1].truncate(20);
            content.parts[2].retain(|line| line.score > exact(500));
        }
    });
    let cost = memory.check_page(100, 60);
    assert_eq!((cost.rounds, cost.calls), (3, 4 + 1 + 3));
    let page = memory.page(0, 10).unwrap();
    assert_eq!(page.frame.window.head, Timestamp::from_millis(2_000));

    // The same for the lines around a subject: its score is requested again with the new head.
    let memory = Memory::changing(content(Order::Desc, 8, 4_000, 1_000), |round, content| {
        content.heads = vec![round.min(2) as i64; 8];
    });
    assert_eq!(memory.check_around("s-9", 3).rounds, 2);
}

#[test]
fn parts_with_a_clock_behind_adopt_the_newest_head() {
    let heads = |content: &mut Content| content.heads = vec![2, 1, 1, 2];
    for (advancing, settled) in [(true, true), (false, false)] {
        let mut start = content(Order::Desc, 4, 3_000, 50);
        heads(&mut start);
        let memory = Memory::new(start);
        memory.state.lock().advancing = advancing;
        for offset in [0, 1_000] {
            memory.state.lock().content.heads = vec![2, 1, 1, 2];
            assert_eq!(memory.page(offset, 20).is_ok(), settled);
            assert!(memory.cost().rounds <= ROUNDS + 2);
        }
        memory.state.lock().content.heads = vec![2, 1, 1, 2];
        assert_eq!(memory.around("s-5", 2).is_ok(), settled);
    }
}
