//! Rankings of one partition.

use super::*;

/// Every read is one call, which returns no more lines than the answer has.
#[test]
fn one_partition_answers_every_read_in_one_call() {
    for (order, scores) in [(Order::Desc, 1), (Order::Asc, 40), (Order::Desc, 1_000_000)] {
        let mut draw = numbers(scores);
        let mut content = Content::new(order, 1);
        content.fill((0..3_000).map(|i| (format!("s-{i}"), exact(draw(scores) as i64))));
        let memory = Memory::new(content);
        let ranking = memory.ranking();
        for offset in [0, 3, 2_000, 2_990, 5_000] {
            let cost = memory.check_page(offset, 20);
            let most = 3_000_u64.saturating_sub(offset).min(20);
            assert_eq!((cost.rounds, cost.calls, cost.lines), (1, 1, most as usize));
        }
        for at in [0, 1, 1_500, 2_999] {
            let (first, found) = memory.neighbors(ranking[at].subject.as_str(), 7).unwrap();
            let expected = at.saturating_sub(7)..=(at + 7).min(ranking.len() - 1);
            assert_eq!((first, &*found), (*expected.start() as u64, &ranking[expected]));
            let cost = memory.cost();
            assert_eq!((cost.rounds, cost.calls, cost.lines), (1, 1, found.len()));
        }
        assert_eq!(memory.neighbors("nobody", 7).unwrap(), (0, Vec::new()));
        assert_eq!(memory.cost().lines, 0);
        for ranks in [false, true] {
            let names = ["s-1", "nobody", "s-2999", "s-1"].map(str::to_owned);
            let cost = memory.check_scores(&names, ranks);
            assert_eq!((cost.rounds, cost.calls), (1, 1));
        }
    }
}

/// Pages next to each line, and next to places without a line.
#[test]
fn one_partition_answers_a_page_next_to_a_place_in_one_call() {
    let mut content = Content::new(Order::Desc, 1);
    content.fill((0..60).map(|i| (format!("s-{i:02}"), exact(i / 7))));
    let memory = Memory::new(content);
    for i in 0..60 {
        for text in [format!("s-{i:02}"), format!("s-{i:02}/")] {
            let place = Place { score: exact(i / 7), subject: subject(&text) };
            for next_to in [NextTo::after(place.clone()), NextTo::before(place)] {
                for next_to in [next_to.clone(), next_to.others()] {
                    for limit in [0, 1, 9, 100] {
                        let cost = memory.check_beside(&next_to, limit);
                        assert_eq!((cost.rounds, cost.calls), (1, 1));
                        assert!(cost.lines as u64 <= limit);
                    }
                }
            }
        }
    }
}
