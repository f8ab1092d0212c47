//! Tests of packed periods, through the service: whatever the store, a packed ranking is read as it was before, and it
//! stays what it is.

use std::fmt::Write as _;
use std::sync::Arc;

use rolltop::access::Caller;
use rolltop::board::{
    Amount, ArchiveTop, Board, BoardTrack, Definition, ModerationChange, ModerationList, Percentile, PeriodName,
    Subject, Value, Visibility,
};
use rolltop::service::{Cursor, EditionChoice, Service, WindowChoice};
use rolltop::store::{Batch, Direction, NextTo, Outcome, Place, SheetId, TextRange};

use crate::given::{With as _, exact, plus, seen, subject};
use crate::site::Site;

const PERIOD: &str = "2026-01-01";

fn season(metric: &str, more: &str) -> Definition {
    serde_json::from_str(&format!(
        r#"{{"metric":"{metric}","season":{{"every":"1d","grace":"2h","archive":3{more}}}}}"#
    ))
    .unwrap()
}

/// Returns the window of the first period as the store has it.
async fn first(service: &Service, board: &Board) -> BoardTrack {
    let of = EditionChoice::Period(PeriodName::new(PERIOD));
    let choice = WindowChoice { of, ..WindowChoice::default() };
    service.window(&Caller::trusted(), board.name(), choice, None).await.unwrap()
}

/// Seals the first period. Returns a service that knows the board.
async fn sealed(site: &Site, board: &Arc<Board>) -> Arc<Service> {
    site.clock("2026-01-02T02:00:00Z").await;
    let service = Service::new(site.store.clone());
    let period =
        service.edition(&Caller::trusted(), board.name(), EditionChoice::Period(PeriodName::new("previous"))).await;
    assert!(period.unwrap().is_to_be_packed());
    service
}

/// Packs what is to be packed, and returns whether anything is left of the period in the store itself.
async fn pack(service: &Service, board: &Arc<Board>) {
    let board = service.refreshed(board).await.unwrap();
    assert!(service.pack_periods(&board).await.unwrap());
    let track = first(service, &board).await;
    assert!(track.packed().is_some());
    let left = service.status(&track.edition().main_track()).await.unwrap().answer;
    assert_eq!(left.slots, [], "the store has sheets only");
}

/// Returns everything that reads of a ranking return, but the time.
async fn all_reads(service: &Service, board: &Board, subjects: &[Subject]) -> String {
    let track = &first(service, board).await;
    let mut answers = String::new();
    let mut note = |what: String| writeln!(answers, "{what}").unwrap();
    let whole = service.page(track, 0, 100_000).await.unwrap().answer;
    note(format!("{} {} {:?}", whole.total, whole.first, whole.items));
    for (offset, limit) in [(0, 3), (2, 4), (250, 20), (511, 2), (whole.total, 5), (whole.total + 9, 5), (1, 0)] {
        let page = service.page(track, offset, limit).await.unwrap().answer;
        note(format!("{offset} {limit}: {} {} {:?}", page.total, page.first, page.items));
    }
    for line in whole.items.iter().step_by(97) {
        for (direction, inclusive) in
            [(Direction::Forward, false), (Direction::Forward, true), (Direction::Backward, false)]
        {
            let next_to = NextTo { place: Place::of(line), direction, inclusive };
            let page = service.page_at(track, &Cursor { track: track.id(), next_to }, 7).await.unwrap().answer;
            note(format!("{line:?} {direction:?} {inclusive}: {} {:?}", page.first, page.items));
        }
    }
    // Places of nobody.
    for (score, name) in [(3, "nobody"), (0, "zzz"), (1_000_000, "a"), (-5, "m")] {
        let place =
            Place { score: score_like(whole.items.first().map(|line| line.score), score), subject: subject(name) };
        let cursor = Cursor { track: track.id(), next_to: NextTo::after(place) };
        let page = service.page_at(track, &cursor, 3).await.unwrap().answer;
        note(format!("{score} {name}: {} {:?}", page.first, page.items));
    }
    for some in subjects.chunks(100) {
        let found = service.lookup(track, some, true).await.unwrap().answer;
        note(format!("{} {:?} {:?}", found.total, found.scores, found.ranks));
    }
    for who in subjects.iter().step_by(53).chain(subjects.last()) {
        let page = service.neighbors(track, who, 2).await.unwrap().answer;
        note(format!("around {who}: {} {:?}", page.first, page.items));
        let own = service.standing(track, who).await.unwrap().answer;
        let better = own.rank.map(|_| own.better);
        note(format!("{who}: {:?} {:?} {:?} {better:?} {}", own.score, own.rank, own.visibility, own.total));
    }
    let percentiles = [0, 1, 50_000, 99_999, 100_000].map(|at| Percentile::of_thousandths(at).unwrap());
    let scores: Vec<Value> = whole.items.iter().step_by(61).map(|line| line.score).collect();
    let distribution = service.distribution(track, &percentiles, &scores).await.unwrap().answer;
    note(format!("{:?} {:?}", distribution.percentiles, distribution.scores));
    answers
}

/// Compares what reads returned, and says in which of them they differ.
fn assert_same(before: &str, after: &str, of: &str) {
    for (before, after) in before.lines().zip(after.lines()) {
        assert_eq!(before, after, "{of}");
    }
    assert_eq!(before.lines().count(), after.lines().count(), "{of}");
}

fn score_like(like: Option<Value>, units: i64) -> Value {
    match like {
        Some(Value::Real(_)) => Value::Real(units as f64),
        _ => Value::Exact(Amount(units)),
    }
}

async fn moderate(service: &Service, board: &Arc<Board>, who: &str, change: ModerationChange) {
    let board = service.refreshed(board).await.unwrap();
    service.moderate(&board, &subject(who), None, change).await.unwrap();
}

const HIDE: ModerationChange = ModerationChange::Visibility(Visibility::Hidden);
const SHADOW: ModerationChange = ModerationChange::Visibility(Visibility::Shadowed);
const SHOW: ModerationChange = ModerationChange::Visibility(Visibility::Visible);

pub async fn a_packed_ranking_is_read_as_it_was(site: Site) {
    // Many ties, over the ends of sheets, and hidden subjects among them.
    let board = site.define("sums", &season("SUM(all, e, v, s)", "")).await;
    let names: Vec<Subject> = (0..700).map(|n| subject(&format!("s{n}"))).collect();
    let items = names.iter().enumerate().map(|(n, who)| plus(who.as_str(), (n as i64 * 37 % 11) * 100 - 300));
    site.count(&board, items.collect()).await;
    let service = sealed(&site, &board).await;
    for (who, change) in [("s1", HIDE), ("s3", SHADOW), ("s500", HIDE), ("absent", HIDE)] {
        moderate(&service, &board, who, change).await;
    }
    let asked: Vec<Subject> = names.into_iter().chain([subject("absent"), subject("unknown")]).collect();
    let before = all_reads(&service, &board, &asked).await;
    pack(&service, &board).await;
    assert_same(&before, &all_reads(&service, &board, &asked).await, "sums");
    drop(service);
    let site = site.reopened().await;
    let service = Service::new(site.store.clone());
    assert_same(&before, &all_reads(&service, &board, &asked).await, "sums");
    // Hiding applies when a packed ranking is read, also that of subjects that were hidden when it was packed.
    moderate(&service, &board, "s1", SHOW).await;
    moderate(&service, &board, "s2", HIDE).await;
    let track = first(&service, &board).await;
    let found = service.lookup(&track, &[subject("s1"), subject("s2")], true).await.unwrap().answer;
    assert_eq!((found.scores[0], found.scores[1], found.total), (exact(100), None, before_total(&before)));
    moderate(&service, &board, "s2", SHOW).await;
    moderate(&service, &board, "s1", HIDE).await;
    assert_same(&before, &all_reads(&service, &board, &asked).await, "sums");
}

fn before_total(answers: &str) -> u64 {
    answers.split(' ').next().unwrap().parse().unwrap()
}

pub async fn rankings_of_every_kind_are_packed(site: Site) {
    let definitions = [
        season("COUNT(all, e, s)", ""),
        season("AVG(all, e, v, s)", ""),
        season("MIN(all, e, v, s)", ""),
        season("LAST(all, e, v, s)", ""),
        season("COUNT_DISTINCT(all, e, s, v)", ""),
        season("APPROX_COUNT_DISTINCT(all, e, s, v)", ""),
        serde_json::from_str(
            r#"{"metric":"MAX(all, e, v, s)","order":"asc","decimals":2,"season":{"every":"1d","grace":"2h"}}"#,
        )
        .unwrap(),
    ];
    let mut boards = Vec::new();
    for (number, definition) in definitions.iter().enumerate() {
        let board = site.define(&format!("b{number}"), definition).await;
        let counts_values = definition.metric.to_string().contains("DISTINCT");
        let item = |n: i64| {
            let who = format!("s{}", n % 13);
            if counts_values { seen(&who, &format!("v{}", n % (2 + n % 7))) } else { plus(&who, 1 + n % 5) }
        };
        site.count(&board, (0..90).map(item).collect()).await;
        boards.push(board);
    }
    let asked: Vec<Subject> = (0..15).map(|n| subject(&format!("s{n}"))).collect();
    for board in boards {
        let service = sealed(&site, &board).await;
        let before = all_reads(&service, &board, &asked).await;
        pack(&service, &board).await;
        let metric = board.definition().metric.to_string();
        assert_same(&before, &all_reads(&service, &board, &asked).await, &metric);
    }
}

pub async fn a_removed_subject_leaves_a_line_without_a_name(site: Site) {
    let board = site.define("board", &season("SUM(all, e, v, s)", "")).await;
    site.count(&board, (0..600).map(|n| plus(&format!("s{n}"), 1_000 - n / 2)).collect()).await;
    let service = sealed(&site, &board).await;
    pack(&service, &board).await;
    let track = first(&service, &board).await;
    let before = service.page(&track, 0, 1_000).await.unwrap().answer;
    let removed = service.remove(&service.refreshed(&board).await.unwrap(), &subject("s300"), None).await.unwrap();
    assert_eq!(removed.answer.live_slots, 1, "the period that had it");
    let after = service.page(&track, 0, 1_000).await.unwrap().answer;
    assert_eq!((after.total, after.items.len()), (before.total, before.items.len()));
    for (line, (before, after)) in before.items.iter().zip(&*after.items).enumerate() {
        assert_eq!((before.rank, before.score), (after.rank, after.score));
        let expected =
            if before.subject == subject("s300") { Subject::removed(line as u64) } else { before.subject.clone() };
        assert_eq!(after.subject, expected);
    }
    let at = before.items.iter().position(|line| line.subject == subject("s300")).unwrap();
    let found = service.lookup(&track, &[subject("s300"), subject("s301")], true).await.unwrap().answer;
    assert_eq!((found.scores[0], found.ranks), (None, vec![None, Some(before.items[at].rank)]));
    // A page that ends at the line goes on behind it, and one that ended at the subject does too.
    for (line, next, previous) in [(&after.items[at], at + 1, at - 1), (&before.items[at], at + 1, at)] {
        for (direction, expected) in [(Direction::Forward, next), (Direction::Backward, previous)] {
            let next_to = NextTo { place: Place::of(line), direction, inclusive: false };
            let page = service.page_at(&track, &Cursor { track: track.id(), next_to }, 1).await.unwrap().answer;
            assert_eq!(page.items[0], after.items[expected], "{line:?} {direction:?}");
        }
    }
    // Nothing of the name is left in the store.
    let (mut sheets, mut number) = (String::new(), 0);
    for id in [SheetId::Lines, SheetId::Register] {
        number = 0;
        while let Some(text) = site.store.sheets(&track, &[id(number)]).await.unwrap().texts.pop().flatten() {
            sheets.push_str(&text);
            number += 1;
        }
    }
    assert_eq!((number, sheets.contains("s300\n"), sheets.contains("s299\n")), (3, false, true));
    let register = sheets.len();
    service.remove(&service.refreshed(&board).await.unwrap(), &subject("s300"), None).await.unwrap();
    assert_eq!(register, sheets.len(), "again it changes nothing");
    // The line of one that was hidden stays left out, so that the others keep the ranks that they are shown with.
    moderate(&service, &board, "s301", HIDE).await;
    let hidden = service.page(&track, 0, 1_000).await.unwrap().answer;
    assert_eq!(hidden.total, before.total - 1);
    let other = Service::new(site.other.clone());
    let removed = other.remove(&other.refreshed(&board).await.unwrap(), &subject("s301"), None).await.unwrap();
    assert_eq!(removed.answer.live_slots, 1, "also of one that is hidden");
    for service in [&service, &other] {
        let page = service.page(&track, 0, 1_000).await.unwrap().answer;
        assert_eq!((page.total, &*page.items), (hidden.total, &*hidden.items));
    }
    // One that is hidden again after it was removed hides no line.
    moderate(&service, &board, "s5", HIDE).await;
    assert_eq!(service.page(&track, 0, 0).await.unwrap().answer.total, before.total - 2);
    moderate(&service, &board, "s5", SHOW).await;
    other.remove(&other.refreshed(&board).await.unwrap(), &subject("s5"), None).await.unwrap();
    moderate(&other, &board, "s5", HIDE).await;
    assert_eq!(service.page(&track, 0, 0).await.unwrap().answer.total, before.total - 1);
    moderate(&other, &board, "s5", SHOW).await;
    // A removal that ended after the name was gone is completed when it is repeated.
    let (head, line) = (SheetId::Head, SheetId::Lines(0));
    let text = async |id| site.store.sheets(&track, &[id]).await.unwrap().texts[0].clone().unwrap();
    let (lines, register) = (text(line).await, text(SheetId::Register(0)).await.len());
    let first = before.items[0].subject.to_string();
    let without = lines.replacen(&format!("\t{first}\n"), "\t\n", 1);
    assert!(site.store.change_sheet(&track, line, Some(&lines), &without).await.unwrap());
    let removals = text(head).await;
    service.remove(&service.refreshed(&board).await.unwrap(), &subject(&first), None).await.unwrap();
    let sizes = async || {
        let mut sizes = 0;
        for number in 0..3 {
            sizes += text(SheetId::Register(number)).await.len();
        }
        sizes
    };
    assert!(register > 0 && text(head).await != removals);
    let struck = sizes().await;
    assert_eq!(struck % 7, 0);
    assert_eq!(struck / 7, 600 - 4, "s300, s301, s5 and the first one");
}

pub async fn a_packed_score_of_dropped_values_is_still_capped(site: Site) {
    let mut definition = season("COUNT_DISTINCT(all, e, s, v)", "");
    definition.max_values = Some(3);
    let board = site.define("board", &definition).await;
    site.count(&board, (0..9).map(|n| seen("many", &format!("v{n}"))).chain([seen("few", "v1")]).collect()).await;
    let service = sealed(&site, &board).await;
    pack(&service, &board).await;
    let track = first(&service, &board).await;
    for (who, score, capped) in [("many", 3, true), ("few", 1, false)] {
        let standing = service.standing(&track, &subject(who)).await.unwrap().answer;
        assert_eq!((standing.score, standing.capped), (exact(score), capped), "{who}");
    }
}

/// Many that tie, of whom whole sheets were removed: a page goes on where a subject was that is not there any more.
pub async fn pages_go_past_sheets_without_names(site: Site) {
    let board = site.define("board", &season("COUNT(all, e, s)", "")).await;
    site.count(&board, (0..800).map(|n| plus(&format!("s{:03}", 799 - n), 1)).collect()).await;
    let service = sealed(&site, &board).await;
    pack(&service, &board).await;
    let track = first(&service, &board).await;
    // In the order of the ranking: s799 is the first.
    let present = service.refreshed(&board).await.unwrap();
    for line in (100..101).chain(256..512) {
        service.remove(&present, &subject(&format!("s{:03}", 799 - line)), None).await.unwrap();
    }
    for (line, expected) in [(100, 101), (300, 512), (511, 512)] {
        let place = Place { score: Value::Exact(Amount(1)), subject: subject(&format!("s{:03}", 799 - line)) };
        let cursor = Cursor { track: track.id(), next_to: NextTo::after(place) };
        let page = service.page_at(&track, &cursor, 1).await.unwrap().answer;
        assert_eq!(page.items[0].subject, subject(&format!("s{:03}", 799 - expected)), "after line {line}");
    }
}

pub async fn only_the_best_lines_are_kept_if_so_defined(site: Site) {
    let board = site.define("board", &season("COUNT(all, e, s)", r#","archive_top":5"#)).await;
    if board.season().unwrap().archive_top == ArchiveTop::All {
        // A store that gives every board a key.
        return;
    }
    site.count(&board, (0..20).flat_map(|n| (0..=n).map(move |_| plus(&format!("s{n}"), 1))).collect()).await;
    let service = sealed(&site, &board).await;
    for who in ["s18", "s1"] {
        moderate(&service, &board, who, HIDE).await;
    }
    pack(&service, &board).await;
    let track = first(&service, &board).await;
    let page = service.page(&track, 0, 100).await.unwrap().answer;
    let shown: Vec<_> = page.items.iter().map(|line| (line.rank, line.subject.to_string())).collect();
    let expected = [(1, "s19"), (2, "s17"), (3, "s16"), (4, "s15")].map(|(rank, who)| (rank, who.to_owned()));
    assert_eq!((shown, page.total), (expected.to_vec(), 18), "of 20, two are hidden");
    assert!(page.has_next() && service.page(&track, 4, 5).await.unwrap().answer.items.is_empty());
    let found = service.lookup(&track, &[subject("s17"), subject("s3")], true).await.unwrap().answer;
    assert_eq!(found.ranks, [Some(2), None]);
    let refused = service.distribution(&track, &[Percentile::of_thousandths(5).unwrap()], &[]).await;
    assert!(refused.unwrap_err().to_string().contains("first 5 of"), "");
    moderate(&service, &board, "s18", SHOW).await;
    assert_eq!(service.page(&track, 0, 100).await.unwrap().answer.items.len(), 5);
}

/// An instance that ended after it had written the lines, and before it said how many there are.
pub async fn the_packing_of_the_best_lines_goes_on_after_its_end(site: Site) {
    let board = site.define("board", &season("COUNT(all, e, s)", r#","archive_top":5"#)).await;
    if board.season().unwrap().archive_top == ArchiveTop::All {
        return;
    }
    site.count(&board, (0..20).flat_map(|n| (0..=n).map(move |_| plus(&format!("s{n}"), 1))).collect()).await;
    let service = sealed(&site, &board).await;
    moderate(&service, &board, "s18", HIDE).await;
    let track = first(&service, &board).await;
    let lines = "0\n20\ts19\n19\ts18\n18\ts17\n17\ts16\n16\ts15";
    assert!(site.store.change_sheet(&track, SheetId::Lines(0), None, lines).await.unwrap());
    pack(&service, &board).await;
    let page = service.page(&first(&service, &board).await, 0, 100).await.unwrap().answer;
    assert_eq!((page.items.len(), page.total), (4, 19), "of 20, one is hidden");
}

pub async fn subjects_that_are_removed_while_a_period_is_packed_are_gone(site: Site) {
    let board = site.define("board", &season("SUM(all, e, v, s)", "")).await;
    site.count(&board, (0..1_500).map(|n| plus(&format!("s{n}"), 1 + n % 7)).collect()).await;
    let service = sealed(&site, &board).await;
    let other = Service::new(site.other.clone());
    let stored = service.refreshed(&board).await.unwrap();
    let packing = async {
        // Both instances pack.
        let (own, others) =
            futures_util::future::join(service.pack_periods(&stored), other.pack_periods(&stored)).await;
        own.unwrap();
        others.unwrap();
        while !service.pack_periods(&service.refreshed(&board).await.unwrap()).await.unwrap() {}
    };
    let removing = async {
        for n in (0..1_500).step_by(50) {
            let present = other.refreshed(&board).await.unwrap();
            other.remove(&present, &subject(&format!("s{n}")), None).await.unwrap();
        }
    };
    futures_util::future::join(packing, removing).await;
    let track = first(&service, &board).await;
    assert!(track.packed().is_some());
    let page = service.page(&track, 0, 2_000).await.unwrap().answer;
    let mut named: Vec<String> = page
        .items
        .iter()
        .filter(|line| line.subject.removed_line().is_none())
        .map(|line| line.subject.to_string())
        .collect();
    let mut expected: Vec<String> = (0..1_500).filter(|n| n % 50 != 0).map(|n| format!("s{n}")).collect();
    named.sort();
    expected.sort();
    assert_eq!(named, expected, "each of the others once");
}

/// Until a period is packed its ranking is read, from which a subject that is removed takes its line along. So the line that
/// was already written to a sheet does not come back.
pub async fn a_line_that_left_while_a_period_was_packed_does_not_come_back(site: Site) {
    let board = site.define("board", &season("COUNT(all, e, s)", "")).await;
    site.count(&board, (0..20).flat_map(|n| (0..=n).map(move |_| plus(&format!("s{n}"), 1))).collect()).await;
    let service = sealed(&site, &board).await;
    let track = first(&service, &board).await;
    let lines: Vec<String> = (0..20).rev().map(|n| format!("{}\ts{n}", n + 1)).collect();
    let sheet = format!("0\n{}", lines.join("\n"));
    assert!(site.store.change_sheet(&track, SheetId::Lines(0), None, &sheet).await.unwrap());
    let present = service.refreshed(&board).await.unwrap();
    for who in ["s18", "s0"] {
        service.remove(&present, &subject(who), None).await.unwrap();
    }
    let before = service.page(&first(&service, &board).await, 0, 100).await.unwrap().answer;
    pack(&service, &board).await;
    let track = first(&service, &board).await;
    assert!(track.packed().is_some());
    let after = service.page(&track, 0, 100).await.unwrap().answer;
    assert_eq!((after.items, after.total), (before.items, 18));
    // Later, its line stays.
    let present = service.refreshed(&board).await.unwrap();
    service.remove(&present, &subject("s19"), None).await.unwrap();
    let page = service.page(&track, 0, 100).await.unwrap().answer;
    assert!(page.items[0].subject.removed_line().is_some() && page.total == 18);
}

/// A subject that is hidden, shown and hidden again while a page is read is in the page and in the list of the hidden ones,
/// or in neither.
pub async fn subjects_that_are_hidden_and_shown_while_a_period_is_packed_have_one_line(site: Site) {
    let board = site.define("board", &season("SUM(all, e, v, s)", "")).await;
    site.count(&board, (0..700).map(|n| plus(&format!("s{n}"), 1 + n % 7)).collect()).await;
    let service = sealed(&site, &board).await;
    let other = Service::new(site.other.clone());
    let is_packed = std::sync::atomic::AtomicBool::new(false);
    let packing = async {
        // Steps are repeated while subjects change, and a packing that gives up goes on with the next call.
        while !service.pack_periods(&service.refreshed(&board).await.unwrap()).await.is_ok_and(|is_done| is_done) {}
        is_packed.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    let changing = async {
        for n in 0..400 {
            if is_packed.load(std::sync::atomic::Ordering::SeqCst) {
                break;
            }
            for change in [HIDE, SHOW] {
                moderate(&other, &board, &format!("s{}", n % 3), change).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(n % 5)).await;
        }
    };
    futures_util::future::join(packing, changing).await;
    let track = first(&service, &board).await;
    let page = service.page(&track, 0, 2_000).await.unwrap().answer;
    let names: std::collections::BTreeSet<_> = page.items.iter().map(|line| line.subject.to_string()).collect();
    assert_eq!((page.items.len(), names.len()), (700, 700));
}

pub async fn many_subjects_are_removed_from_a_packed_period_at_once(site: Site) {
    let board = site.define("board", &season("COUNT(all, e, s)", "")).await;
    site.count(&board, (0..200).map(|n| plus(&format!("s{n}"), 1)).collect()).await;
    let service = sealed(&site, &board).await;
    pack(&service, &board).await;
    let services = [service, Service::new(site.other.clone())];
    let present = services[0].refreshed(&board).await.unwrap();
    let remove = |n: usize| {
        let (service, present) = (&services[n % 2], &present);
        async move { service.remove(present, &subject(&format!("s{n}")), None).await }
    };
    for removed in futures_util::future::join_all((0..150).map(remove)).await {
        assert_eq!(removed.unwrap().answer.live_slots, 1);
    }
    let page = services[0].page(&first(&services[0], &board).await, 0, 1_000).await.unwrap().answer;
    let removed = page.items.iter().filter(|line| line.subject.removed_line().is_some()).count();
    assert_eq!((page.items.len(), removed), (200, 150));
}

pub async fn packed_periods_leave_the_archive_and_go_with_their_board(site: Site) {
    let board = site.define("board", &season("COUNT(all, e, s)", "")).await;
    let service = Service::new(site.store.clone());
    for day in 1..=6 {
        site.clock(&format!("2026-01-0{day}T12:00:00Z")).await;
        let present = service
            .edition(&Caller::trusted(), board.name(), EditionChoice::Period(PeriodName::new("current")))
            .await
            .unwrap();
        let present = present.board().clone();
        site.count(&present, vec![plus("a", day), plus("b", 1)]).await;
        service.pack_periods(&service.refreshed(&board).await.unwrap()).await.unwrap();
    }
    let present = service.refreshed(&board).await.unwrap();
    let packed: Vec<_> = present.each_period().map(|period| period.packed().map(|packed| packed.lines)).collect();
    assert_eq!(packed, [None, Some(2), Some(2), Some(2)]);
    let hidden = site.store.moderated(&present, ModerationList::Hidden, TextRange::default(), 9).await.unwrap();
    assert_eq!(hidden.total, 0);
    assert!(site.store.undefine(&present).await.unwrap());
}

/// Two changes of the editions of one board meet: a period is packed while the one after it takes late items.
pub async fn a_period_is_packed_while_another_one_takes_late_items(site: Site) {
    let board = site.define("board", &season("SUM(all, e, v, s)", "")).await;
    site.count(&board, vec![plus("a", 5), plus("b", 3)]).await;
    sealed(&site, &board).await;
    site.count(&board, vec![plus("a", 1)]).await;
    site.clock("2026-01-03T01:00:00Z").await;
    site.count(&board, vec![plus("a", 1)]).await;
    let services = [Service::new(site.store.clone()), Service::new(site.other.clone())];
    pack(&services[0], &board).await;
    let late = || plus("c", 7).at("2026-01-02T12:00:00Z");
    for (service, store) in services.iter().zip([&site.store, &site.other]) {
        let present = service.refreshed(&board).await.unwrap();
        assert_eq!(present.editions().len(), 2, "{present:?}");
        let batch = Batch { increments: vec![late(), plus("c", 1)], return_scores: false };
        let added = service.add(&Caller::trusted(), &present, batch).await.unwrap();
        assert_eq!(added.outcomes, [Outcome::Counted { score: None }; 2]);
        for edition in present.each_period() {
            let track = edition.main_track();
            let page = service.page(&track, 0, 10).await.unwrap().answer;
            assert!(!page.items.is_empty(), "{track:?}");
            service.status(&track).await.unwrap();
        }
        for change in [HIDE, ModerationChange::Visibility(Visibility::Visible)] {
            moderate(service, &board, "a", change).await;
        }
        service.remove(&present, &subject("b"), None).await.unwrap();
        for track in present.each_written_track() {
            while !store.retire_step(&track).await.unwrap().done {}
            assert!(site.audit(&track).await > 0);
        }
    }
    site.clock("2026-01-03T02:00:00Z").await;
    pack(&services[1], &board).await;
    let present = services[1].refreshed(&board).await.unwrap();
    let mut scores = Vec::new();
    for edition in present.each_period() {
        let page = services[1].page(&edition.main_track(), 0, 10).await.unwrap().answer;
        scores.push(page.items.iter().map(|line| line.score).collect::<Vec<_>>());
    }
    let score = |units| Value::Exact(Amount(units));
    assert_eq!(scores, [vec![score(2), score(1)], vec![score(14), score(1)], vec![score(5), score(3)]]);
}

pub async fn an_audit_finds_damaged_sheets_and_repairs_what_follows_from_others(site: Site) {
    let board = site.define("board", &season("SUM(all, e, v, s)", "")).await;
    let subjects: Vec<Subject> = (0..600).map(|number| subject(&format!("s{number:03}"))).collect();
    for some in subjects.chunks(300) {
        site.count(&board, some.iter().enumerate().map(|(at, who)| plus(who.as_str(), 1 + at as i64 / 7)).collect())
            .await;
    }
    let service = sealed(&site, &board).await;
    pack(&service, &board).await;
    let track = first(&service, &board).await.edition().main_track();
    let before = all_reads(&service, &board, &subjects).await;
    let period = || EditionChoice::Period(PeriodName::new(PERIOD));
    let audit = async |repair: bool| {
        let edition = service.edition(&Caller::trusted(), board.name(), period()).await.unwrap();
        let report = service.audit(&edition, repair).await.unwrap().answer;
        assert_eq!(report.damaged_sheets.len() as u64, report.differences);
        (report.subjects_checked, report.repaired, report.damaged_sheets.join("; "))
    };
    assert_eq!(audit(false).await, (600, 0, String::new()));
    let text = async |id| site.store.sheets(&track, &[id]).await.unwrap().texts[0].clone().unwrap();
    let set = async |id, to: &str| {
        assert!(site.store.change_sheet(&track, id, Some(&text(id).await), to).await.unwrap(), "{id}");
    };
    // What follows from the lines is written again, as it was.
    for (id, to, what) in [
        (SheetId::Head, "600 600", "cannot be read"),
        (SheetId::Head, "599 600 0", "has other numbers than the board"),
        (SheetId::Head, "600 600 0 600", "names lines that do not exist"),
        (SheetId::Register(1), "", "does not name the lines that there are"),
        (SheetId::Register(2), "nonsense", "does not name the lines that there are"),
    ] {
        set(id, to).await;
        let expected = format!("sheet {id} of period {PERIOD} {what}");
        assert_eq!(audit(false).await, (600, 0, expected.clone()));
        assert_eq!(audit(true).await, (600, 1, expected));
        assert_eq!(audit(false).await, (600, 0, String::new()));
        assert_same(&before, &all_reads(&service, &board, &subjects).await, &id.to_string());
    }
    // Lines are nowhere else. A subject that was exchanged is not the one that the register names.
    let lines = text(SheetId::Lines(1)).await;
    let (cut, last) = lines.rsplit_once('\n').unwrap();
    let exchanged = format!("{cut}\n{}x", last);
    let worse = format!("0{}", &lines[lines.find('\n').unwrap()..]);
    for (to, what) in [
        ("?", "cannot be read"),
        (cut, "has another number of lines"),
        (exchanged.as_str(), "does not name the lines that there are"),
        (worse.as_str(), "is not in the order of the ranking"),
    ] {
        set(SheetId::Lines(1), to).await;
        let found = audit(false).await;
        assert!(found.2.contains(what), "{found:?}");
        set(SheetId::Lines(1), &lines).await;
        assert_eq!(audit(false).await, (600, 0, String::new()));
    }
    // Subjects that are removed, and removals that ended halfway, are no damage.
    for who in ["s000", "s299"] {
        service.remove(&service.refreshed(&board).await.unwrap(), &subject(who), None).await.unwrap();
        assert_eq!(audit(false).await, (600, 0, String::new()), "{who}");
    }
    let without = text(SheetId::Lines(2)).await.replace("s001", "");
    set(SheetId::Lines(2), &without).await;
    assert_eq!(audit(true).await, (600, 0, String::new()));
}
