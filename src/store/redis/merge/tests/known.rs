//! Known pages, and partitions that have or have not changed since.

use super::*;

/// Returns partitions with these lines, and a page of them with the versions from which it was made.
fn read(lines: u64, offset: u64) -> (Memory, Merged<Vec<Ranked>, u64>) {
    let mut content = Content::new(Order::Desc, 4);
    content.fill((0..lines).map(|i| (format!("s{i}"), exact(i as i64 + 1))));
    let memory = Memory::new(content);
    let page = memory.page(offset, 10).unwrap();
    memory.cost();
    (memory, page)
}

/// Reads the known page again.
fn again(memory: &Memory, page: &Merged<Vec<Ranked>, u64>, offset: u64) -> Option<Vec<Ranked>> {
    let known = KnownPage { head: page.frame.window.head, versions: &page.versions };
    let wanted = Wanted::Page { start: PageStart::Offset(offset), limit: 10 };
    let merged = block_on(lines(memory, Order::Desc, &wanted, Some(known))).unwrap();
    assert_eq!(merged.total, memory.ranking().len() as u64);
    merged.found.map(|found| found.items.to_vec())
}

#[test]
fn unchanged_pages_are_not_read_again() {
    // Near the top, and beyond 64 lines of each of four parts.
    for offset in [0, 7, 400] {
        let (memory, page) = read(1_000, offset);
        assert_eq!(again(&memory, &page, offset), None);
        let cost = memory.cost();
        assert_eq!((cost.rounds, cost.calls), (1, 4), "{cost:?}");
        assert!(offset < 100 || cost.lines == 4, "{cost:?}");
    }
}

#[test]
fn a_changed_part_invalidates_the_page() {
    for offset in [0, 400] {
        let (memory, page) = read(1_000, offset);
        memory.state.lock().content.set("s3", exact(5_000));
        let found = again(&memory, &page, offset).unwrap();
        assert_eq!(found, memory.ranking()[offset as usize..][..10]);
        // A single version or a single head differs.
        let (memory, page) = read(1_000, offset);
        memory.state.lock().content.versions[2] += 1;
        assert_eq!(again(&memory, &page, offset), Some(page.found.clone()));
        let (memory, page) = read(1_000, offset);
        memory.state.lock().content.heads.fill(2);
        assert_eq!(again(&memory, &page, offset), Some(page.found.clone()));
    }
}

/// A partition changes between the rounds of a page at a large offset: the page has the versions of the last round.
#[test]
fn a_page_has_the_versions_of_its_last_round() {
    let mut content = Content::new(Order::Desc, 4);
    content.fill((0..1_000).map(|i| (format!("s{i}"), exact(i + 1))));
    let memory = Memory::changing(content, |round, content| {
        if round == 2 {
            content.set("s600", exact(650));
        }
    });
    let page = memory.page(400, 10).unwrap();
    assert_eq!(page.found, memory.ranking()[400..410]);
    assert_eq!(page.versions, memory.state.lock().content.versions);
    assert_eq!(again(&memory, &page, 400), None);
}
