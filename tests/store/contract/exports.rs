//! Tests of exports, which the service reads from the store page by page.

use std::collections::BTreeMap;
use std::sync::Arc;

use rolltop::access::Caller;
use rolltop::board::{Board, Order};
use rolltop::service::{Cursor, ExportStart, Service, ServiceError};
use rolltop::store::{Direction, NextTo, Place, Ranked};

use crate::given::{Units, definition, plus, sample_of};
use crate::site::Site;

/// Reads an export to its end. Returns its lines.
async fn exported(service: &Arc<Service>, board: &Arc<Board>, start: ExportStart, limit: Option<u64>) -> Vec<Ranked> {
    let mut export = service.export(&Caller::trusted(), &board.main(), start, limit).unwrap();
    let mut lines = Vec::new();
    while let Some(read) = export.next_page().await.unwrap() {
        assert!(read.answer.items.len() <= 1_000);
        lines.extend(read.answer.items);
    }
    assert!(export.next_page().await.unwrap().is_none());
    lines
}

/// Returns the ranking by offsets.
async fn ranking(site: &Site, board: &Arc<Board>) -> Vec<Ranked> {
    let mut lines: Vec<Ranked> = Vec::new();
    loop {
        let page = site.other.page(&board.main(), lines.len() as u64, 700).await.unwrap();
        lines.extend(page.items);
        if lines.len() as u64 >= page.total {
            return lines;
        }
    }
}

pub async fn an_export_is_the_ranking(site: Site) {
    let service = Service::new(site.store.clone());
    let names = ["a", "B,\"", "日本", "\u{ffee}", "🎉 "];
    let name = |n: i64| format!("{}{n}", names[n as usize % names.len()]);
    let mut ascending = definition("SUM(3h, lap, time, driver)", "1h");
    ascending.order = Order::Asc;
    let sums = [site.board("SUM(3h, lap, time, driver)", "1h").await, site.define("ascending", &ascending).await];
    for board in &sums {
        // Ties of a few lines, and one that is longer than a page.
        let score = |n: i64| if n % 3 == 0 { 7 } else { n / 4 + 1 };
        site.count(board, (0..3_400).map(|n| plus(&name(n), score(n))).collect()).await;
    }
    let means = site.define("means", &definition("AVG(3h, drive, speed, driver)", "1h")).await;
    let at = crate::site::START;
    site.count(&means, (0..2_300).map(|n| sample_of(&name(n), n % 50 - 25, n % 7 + 1, at)).collect()).await;
    for board in sums.iter().chain([&means]) {
        let all = ranking(&site, board).await;
        assert_eq!(exported(&service, board, ExportStart::Offset(0), None).await, all);
        for (offset, limit) in [(0, 1), (0, 1_000), (0, 1_001), (1, 2_000), (999, 1_001), (2_000, 9_999), (9_999, 5)] {
            let part = exported(&service, board, ExportStart::Offset(offset), Some(limit)).await;
            let wanted = all.iter().skip(offset as usize).take(limit as usize);
            assert!(part.iter().eq(wanted), "offset {offset}, limit {limit}");
        }
        let line = &all[1_234];
        let place = Place { score: line.score, subject: line.subject.clone() };
        let mut cursor = Cursor { track: board.main().id(), next_to: NextTo::after(place) };
        let rest = exported(&service, board, ExportStart::Cursor(cursor.clone()), None).await;
        assert_eq!(rest, all[1_235..]);
        cursor.next_to.direction = Direction::Backward;
        let refused = service.export(&Caller::trusted(), &board.main(), ExportStart::Cursor(cursor), None).err();
        assert!(matches!(refused, Some(ServiceError::InvalidQuery { field: "cursor", .. })), "{refused:?}");
    }
}

pub async fn subjects_that_stay_are_exported_once(site: Site) {
    let board = site.board("SUM(3h, lap, time, driver)", "1h").await;
    let service = Service::new(site.store.clone());
    site.count(&board, (0..3_500).map(|n| plus(&format!("stays-{n}"), 10 + n / 7)).collect()).await;
    site.count(&board, (0..500).map(|n| plus(&format!("moves-{n}"), n)).collect()).await;
    let mut export = service.export(&Caller::trusted(), &board.main(), ExportStart::Offset(0), None).unwrap();
    let (mut seen, mut round) = (BTreeMap::new(), 0);
    while let Some(read) = export.next_page().await.unwrap() {
        for line in &read.answer.items {
            *seen.entry(line.subject.to_string()).or_insert(0) += 1;
        }
        // Others move up and down past the place at which the export continues, come and go.
        round += 1;
        let by = if round % 2 == 0 { -400 } else { 450 };
        site.count(&board, (0..500).map(|n| plus(&format!("moves-{n}"), by)).collect()).await;
        site.count(&board, (0..100).map(|n| plus(&format!("new-{round}-{n}"), 10 * n)).collect()).await;
    }
    assert!(round >= 4, "{round} pages");
    for n in 0..3_500 {
        assert_eq!(seen.get(&format!("stays-{n}")), Some(&1), "stays-{n}");
    }
}

pub async fn an_export_of_a_board_that_was_defined_again_ends(site: Site) {
    let service = Service::new(site.store.clone());
    let board = site.board("SUM(3h, lap, time, driver)", "1h").await;
    site.count(&board, (0..1_500).map(|n| plus(&format!("s-{n}"), n + 1)).collect()).await;
    let mut export = service.export(&Caller::trusted(), &board.main(), ExportStart::Offset(0), None).unwrap();
    let first = export.next_page().await.unwrap().unwrap();
    assert_eq!((first.answer.items[999].score.units(), export.next().is_some()), (501, true));
    site.other.undefine(&board).await.unwrap();
    assert!(matches!(export.next_page().await, Err(ServiceError::UnknownBoard(_))));
    let again = site.board("SUM(3h, lap, time, driver)", "1h").await;
    site.count(&again, (0..1_500).map(|n| plus(&format!("s-{n}"), n + 1)).collect()).await;
    for _ in 0..2 {
        assert!(matches!(export.next_page().await, Err(ServiceError::StaleCursor(_))));
    }
    // The first page shows the board that exists now.
    let mut export = service.export(&Caller::trusted(), &board.main(), ExportStart::Offset(0), None).unwrap();
    assert_eq!(export.next_page().await.unwrap().unwrap().of.id(), again.main().id());
}
