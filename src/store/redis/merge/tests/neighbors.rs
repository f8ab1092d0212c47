//! Ranks and neighbors in rankings that do not change.

use super::*;

#[test]
fn rank_and_neighbors_take_two_rounds() {
    for (order, scores) in [(Order::Desc, 1), (Order::Asc, 300), (Order::Desc, 1_000_000)] {
        let mut draw = numbers(scores);
        let mut content = Content::new(order, 16);
        content.fill((0..30_000).map(|i| (format!("s-{i}"), exact(draw(scores) as i64 - 20))));
        let memory = Memory::new(content);
        let ranking = memory.ranking();
        for at in [0, 1, 5, 40, 15_000, 29_950, 29_998, 29_999] {
            let text = ranking[at].subject.as_str();
            let cost = memory.check_around(text, 0);
            assert_eq!((cost.rounds, cost.calls), (2, 17));
            assert!(cost.lines <= 2 + 16 * 5, "{cost:?}");
            for radius in [1, 10, 100] {
                let cost = memory.check_around(text, radius);
                let most = 2 * radius as usize + 16 * 2 * 9 + 100;
                assert!(cost.rounds <= 3 && cost.lines <= 2 * most, "{at}, {radius}: {cost:?}");
            }
        }
    }
}

#[test]
fn neighbors_of_an_unranked_subject_take_two_rounds() {
    for scores in [1, 100] {
        let mut draw = numbers(3);
        let mut content = Content::new(Order::Desc, 7);
        content.fill((0..5_000).map(|i| (format!("s-{i}"), exact(draw(scores) as i64 - 50))));
        let memory = Memory::new(content);
        for radius in [0, 20] {
            for text in ["", "zzz", "s-"].map(|text| format!("{text}gone")) {
                assert_eq!(memory.check_around(&text, radius).rounds, 2);
            }
        }
    }
    let memory = Memory::new(Content::new(Order::Asc, 7));
    assert_eq!(memory.check_around("nobody", 5).rounds, 2);
}

#[test]
fn neighbors_on_uneven_parts_take_at_most_three_rounds() {
    let mut content = Content::new(Order::Desc, 6);
    content.division = None;
    // Each thousand consecutive lines are in one part.
    content.fill((0..6_000).map(|i| (format!("{}/{i:04}", i / 1_000), exact(i / 10))));
    let memory = Memory::new(content);
    for (text, radius) in [("2/2500", 200), ("2/2995", 150), ("0/0003", 400), ("5/5999", 400), ("3/3000", 10)] {
        let cost = memory.check_around(text, radius);
        assert!(cost.rounds <= 3, "{text}: {cost:?}");
        assert!(cost.lines <= 6 * 4 * (radius as usize + 20), "{text}: {cost:?}");
    }
}
