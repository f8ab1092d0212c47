//! Scores and ranks of given subjects.

use super::super::scores::Counts;
use super::*;

fn names(from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|i| format!("s-{i}")).collect()
}

/// A board whose subjects have the scores 0, 10, 20, …
fn tens(order: Order, parts: usize, subjects: i64) -> Content {
    let mut content = Content::new(order, parts);
    content.fill((0..subjects).map(|i| (format!("s-{i}"), exact(i * 10))));
    content
}

#[test]
fn scores_take_one_round_and_ranks_two() {
    for (order, scores) in [(Order::Desc, 1), (Order::Asc, 300), (Order::Desc, 1_000_000)] {
        let mut draw = numbers(scores);
        let mut content = Content::new(order, 16);
        content.fill((0..5_000).map(|i| (format!("s-{i}"), exact(draw(scores) as i64 - 20))));
        let memory = Memory::new(content);
        let asked = [names(0, 150), vec!["nobody".to_owned(), "s-7".to_owned()]].concat();
        let cost = memory.check_scores(&asked, true);
        assert_eq!((cost.rounds, cost.calls), (2, 32));
        let cost = memory.check_scores(&asked, false);
        assert_eq!((cost.rounds, cost.calls), (1, 16));
        // Only the subject's own part is asked for its score.
        assert_eq!(memory.check_scores(&names(3, 1), true).calls, 17);
        assert_eq!(memory.check_scores(&["nobody".to_owned()], true).calls, 17);
        assert_eq!(memory.check_scores(&[], true).calls, 16);
    }
    let empty = Memory::new(Content::new(Order::Asc, 7));
    assert_eq!(empty.check_scores(&["nobody".to_owned()], true).rounds, 2);
}

#[test]
fn a_score_that_changes_once_takes_one_more_round() {
    for (order, score, rounds) in [
        // It passes a subject that was not requested.
        (Order::Desc, 5_015, 3),
        (Order::Asc, 5_015, 3),
        (Order::Desc, 5_020, 3),
        (Order::Desc, 1_000_000, 3),
        // It stays between requested ones.
        (Order::Desc, 5_001, 2),
        (Order::Desc, 5_010, 2),
        (Order::Asc, 4_999, 2),
        (Order::Asc, 4_990, 2),
    ] {
        let memory = Memory::changing(tens(order, 6, 1_000), move |round, content| {
            if round == 2 {
                content.set("s-500", exact(score));
            }
        });
        let cost = memory.check_scores(&["s-500", "s-3", "s-501", "s-499", "s-500"].map(str::to_owned), true);
        assert_eq!(cost.rounds, rounds, "{order:?} {score}");
    }
}

#[test]
fn requested_subjects_may_pass_each_other_in_every_round() {
    let memory = Memory::changing(tens(Order::Desc, 6, 1_000), |round, content| {
        for i in 900..1_000 {
            content.set(&format!("s-{i}"), exact(9_000 + (i * 7_919 + round as i64 * 131) % 1_000));
        }
    });
    // They are the best ones, so every line before s-899 is known.
    assert_eq!(memory.check_scores(&names(899, 101), true).rounds, 2);
}

#[test]
fn a_score_that_rises_in_every_round_is_found_where_it_is_expected() {
    // Its places have many lines between them, in which it is expected at an exact score or next to it.
    for step in [1, 7, 10, 400] {
        let memory = Memory::changing(tens(Order::Desc, 6, 10_000), move |round, content| {
            content.set("s-500", exact(5_003 + step * round as i64));
        });
        let cost = memory.check_scores(&names(480, 40), true);
        assert!(cost.rounds <= 3, "{step}: {cost:?}");
    }
    let mut draw = numbers(5);
    let memory = Memory::changing(tens(Order::Desc, 6, 10_000), move |_, content| {
        content.set("s-500", exact(draw(100_000) as i64));
    });
    assert_eq!(memory.scores(&names(480, 40), true), Err(MergeError::Unsettled));
}

#[test]
fn many_scores_that_change_by_little_are_found_between_lines_that_are_not_requested() {
    for (order, scores) in [(Order::Desc, 3_000), (Order::Asc, 20_000), (Order::Desc, 1)] {
        let mut draw = numbers(scores);
        let mut content = Content::new(order, 6);
        content.fill((0..10_000).map(|i| (format!("s-{i}"), exact(1 + draw(scores) as i64))));
        let memory = Memory::changing(content, move |_, content| {
            for _ in 0..20 {
                let name = format!("s-{}", draw(200));
                let score = content.parts.iter().flatten().find(|line| line.subject.as_str() == name).unwrap().score;
                content.set(&name, exact(score.as_f64() as i64 + 1 + draw(2) as i64));
            }
        });
        let cost = memory.check_scores(&names(0, 200), true);
        assert!(cost.rounds <= 4, "{order:?} {scores}: {cost:?}");
    }
}

#[test]
fn a_subject_may_come_and_go_between_the_rounds() {
    for (name, score) in [("s-5", None), ("new", Some(exact(55))), ("new", Some(exact(3)))] {
        let memory = Memory::changing(tens(Order::Desc, 4, 100), move |round, content| {
            if round == 2 {
                content.set_all([name.to_owned()].into_iter(), score);
            }
        });
        let asked = ["s-4", "s-5", "s-6", "new", "nobody"].map(str::to_owned);
        assert!(memory.check_scores(&asked, true).rounds <= 3, "{name}");
    }
}

#[test]
fn all_parts_count_in_the_same_window() {
    let mut content = tens(Order::Desc, 4, 100);
    content.heads = vec![1, 2, 1, 1];
    let memory = Memory::new(content);
    assert_eq!(memory.scores(&names(0, 10), true), Err(MergeError::Unsettled));
    memory.state.lock().advancing = true;
    let merged = memory.scores(&names(0, 10), true).unwrap();
    assert_eq!(merged.frame.window.head, Timestamp::from_millis(2_000));
}

#[test]
fn counts_that_contradict_each_other_are_refused() {
    let asked = Scores { better_than: [exact(9), exact(5)].into(), ..Scores::of([subject("a")].into(), false) };
    let said = |total, scores: &[i64], better: &[u64]| Scored {
        total,
        scores: scores.iter().map(|score| Some(exact(*score))).collect(),
        better_than_subjects: Vec::new(),
        not_worse_than_subjects: Vec::new(),
        better: better.to_vec(),
        near: Vec::new(),
    };
    let read = |said: &Scored| Counts::new::<()>(Order::Desc, &asked, said).is_ok();
    assert!(read(&said(3, &[5], &[1, 2])));
    for bad in [said(3, &[5], &[2, 1]), said(3, &[5], &[1, 4]), said(3, &[5], &[1]), said(3, &[], &[1, 2])] {
        assert!(!read(&bad), "{bad:?}");
    }
}
