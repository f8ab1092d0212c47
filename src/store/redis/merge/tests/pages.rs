//! Pages of rankings that do not change.

use super::*;

fn ties(order: Order, parts: usize, subjects: u64, scores: u64) -> Content {
    let mut draw = numbers(subjects + scores);
    let mut content = Content::new(order, parts);
    content.fill((0..subjects).map(|i| (format!("s-{i}"), exact(1 + draw(scores) as i64))));
    content
}

#[test]
fn a_tie_of_140_000_subjects_takes_at_most_three_rounds() {
    for order in [Order::Desc, Order::Asc] {
        let memory = Memory::new(ties(order, 16, 140_000, 1));
        for offset in [2_000, 40_000, 69_999, 70_000, 123_456, 138_000, 139_950, 139_999] {
            let cost = memory.check_page(offset, 50);
            assert!(cost.rounds <= 3 && cost.lines <= 1_600, "{offset}: {cost:?}");
        }
        // At a small offset the lines before the page are read and skipped.
        for offset in [0, 500, 1_024] {
            let cost = memory.check_page(offset, 50);
            assert!(cost.rounds <= 2 && cost.lines <= offset as usize * 2 + 400, "{offset}: {cost:?}");
        }
    }
}

#[test]
fn deep_pages_take_at_most_four_rounds_for_any_number_of_parts() {
    for parts in [3, 24] {
        let memory = Memory::new(ties(Order::Desc, parts, 300_000, 40_000));
        for (offset, limit) in [(5_000, 50), (150_000, 1_000), (299_000, 1), (299_500, 1_000)] {
            let cost = memory.check_page(offset, limit);
            let most = 2 * 32 * parts.max(16) + 3 * limit as usize + 1_000;
            assert!(cost.rounds <= 4 && cost.lines <= most, "{parts} parts, {offset}: {cost:?}");
        }
    }
}

#[test]
fn a_top_page_reads_little_more_than_an_even_share() {
    let memory = Memory::new(ties(Order::Desc, 16, 20_000, 5_000));
    let cost = memory.check_page(0, 50);
    assert_eq!((cost.rounds, cost.calls, cost.lines), (1, 16, 16 * 12));
    let cost = memory.check_page(0, 1_000);
    assert!(cost.rounds <= 2 && cost.lines <= 1_500, "{cost:?}");
}

#[test]
fn only_parts_that_may_have_more_lines_are_queried_again() {
    let mut content = Content::new(Order::Asc, 8);
    content.division = None;
    let lines = (0..8u64).flat_map(|part| (0..200).map(move |i| (part, i)));
    // All of the first 200 lines are in part 5.
    content.fill(lines.map(|(part, i)| (format!("{part}/{i:03}"), exact(if part == 5 { 0 } else { 1 + i }))));
    let memory = Memory::new(content);
    let cost = memory.check_page(0, 100);
    assert_eq!((cost.rounds, cost.calls), (2, 9));
    assert!(cost.lines <= 8 * 21 + 100 + 8, "{cost:?}");
    let cost = memory.check_page(150, 100);
    assert_eq!((cost.rounds, cost.calls), (2, 9));
}

/// All lines of a page are in one partition, and so are most of the lines before it.
#[test]
fn a_deep_page_of_uneven_parts_takes_at_most_four_rounds() {
    for order in [Order::Desc, Order::Asc] {
        let mut content = Content::new(order, 4);
        content.division = None;
        let line = |i: u64| (format!("{}/{i:05}", if i < 30_000 { 2 } else { i % 4 }), exact((i / 100) as i64));
        content.fill((0..40_000).map(line));
        let memory = Memory::new(content);
        for offset in [1_000, 9_990, 10_050, 25_000, 29_000, 39_000] {
            for limit in [1, 100, 1_000] {
                let cost = memory.check_page(offset, limit);
                assert!(cost.rounds <= 4 && cost.lines <= 2_000 + 3 * limit as usize, "{offset}, {limit}: {cost:?}");
            }
        }
    }
}

#[test]
fn empty_parts_and_offsets_beyond_the_end_give_short_pages() {
    for parts in [1, 3, 16] {
        let memory = Memory::new(Content::new(Order::Desc, parts));
        for offset in [0, 1, 5_000, u64::MAX] {
            let cost = memory.check_page(offset, 10);
            assert_eq!((cost.rounds, cost.lines), (1, 0));
        }
        // There are fewer subjects than parts, so that some parts are empty.
        let memory = Memory::new(ties(Order::Asc, parts, 7, 3));
        for offset in [0, 3, 6, 7, 8, 5_000, u64::MAX] {
            for limit in [0, 1, 7, 1_000, u64::from(u32::MAX)] {
                assert_eq!(memory.check_page(offset, limit).rounds, 1);
            }
        }
        let memory = Memory::new(ties(Order::Desc, parts, 9_000, 50));
        for offset in [8_990, 8_999, 9_000, 9_001, u64::MAX] {
            assert!(memory.check_page(offset, 20).rounds <= 3);
        }
        assert!(memory.check_page(5_000, 0).lines <= 512);
    }
}

#[test]
fn pages_of_means_are_in_exact_order() {
    let mut draw = numbers(5);
    let mut content = Content::new(Order::Desc, 5);
    let mean = |draw: &mut dyn FnMut(u64) -> u64| Value::mean(draw(60) as i64 - 30, 1 + draw(6) as i64).unwrap();
    content.fill((0..8_000).map(|i| (format!("s-{i}"), mean(&mut draw))).collect::<Vec<_>>().into_iter());
    let memory = Memory::new(content);
    for offset in [0, 100, 1_000, 4_000, 7_950] {
        memory.check_page(offset, 100);
    }
}

#[test]
fn a_merged_page_has_the_versions_and_frame_of_its_parts() {
    let mut content = ties(Order::Desc, 3, 5_000, 10);
    content.versions = vec![7, 8, 9];
    let memory = Memory::new(content);
    for offset in [0, 2_000] {
        let page = memory.page(offset, 10).unwrap();
        assert_eq!(page.versions, [7, 8, 9]);
        assert_eq!(page.frame.window.head, Timestamp::from_millis(1_000));
        assert_eq!((page.frame.as_of, page.frame.retiring), (Timestamp::from_millis(1_002), 2));
    }
}
