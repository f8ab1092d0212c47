//! Numbers of lines that are not worse than given scores.

use super::*;

#[test]
fn ties_of_all_partitions_are_counted_in_one_round() {
    for order in [Order::Desc, Order::Asc] {
        let mut draw = numbers(7);
        let mut content = Content::new(order, 5);
        content.fill((0..400).map(|i| (format!("s-{i}"), exact(draw(20) as i64 - 10))));
        let memory = Memory::new(content);
        let head = memory.page(0, 1).unwrap().frame.window.head;
        memory.cost();
        let scores: Vec<Value> = (-12..12).map(exact).rev().chain([exact(3), exact(3)]).collect();
        let counted = block_on(ties(&memory, order, head, &scores)).unwrap();
        let cost = memory.cost();
        assert_eq!((cost.rounds, cost.calls), (1, 5));
        let ranking = memory.ranking();
        for (score, counted) in scores.iter().zip(counted) {
            let is_worse = |line: &&Ranked| compare_scores(line.score, *score, order).is_gt();
            let not_worse = ranking.len() - ranking.iter().filter(is_worse).count();
            assert_eq!(counted, not_worse as u64, "{score:?}, {order:?}");
        }
    }
}

#[test]
fn nothing_is_between_a_score_and_the_next_worse_one() {
    for order in [Order::Desc, Order::Asc] {
        for score in [exact(0), exact(-7), Value::Real(0.0), Value::Real(1.5), Value::Real(-2.25e10)] {
            let mut content = Content::new(order, 2);
            let beside = [
                score,
                match score {
                    Value::Exact(Amount(units)) => exact(units + 1),
                    Value::Real(number) => Value::Real(number.next_up() + 0.0),
                },
                match score {
                    Value::Exact(Amount(units)) => exact(units - 1),
                    Value::Real(number) => Value::Real(number.next_down() + 0.0),
                },
            ];
            content.fill(beside.iter().enumerate().map(|(i, score)| (format!("s-{i}"), *score)));
            let memory = Memory::new(content);
            let head = memory.page(0, 1).unwrap().frame.window.head;
            assert_eq!(block_on(ties(&memory, order, head, &[score])).unwrap(), [2], "{score:?}, {order:?}");
        }
    }
}
