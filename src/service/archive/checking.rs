//! The audit of a packed ranking: whether its sheets are there, can be read, are in order, and name each other. What follows
//! from other sheets, the head and the register, is repaired; lines are nowhere else.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::finding::TOGETHER;
use super::packing::GATHERED;
use super::sheet::{Head, LINES, LineSheet, Registered, entries_of, sheet_of, sheets_of};
use crate::board::{BoardTrack, Frame, Packed, Value};
use crate::store::{self, SheetId, Store, StoreError, compare_scores};

/// The largest number of damaged sheets that are named.
const EXAMPLES: usize = 20;
/// The number of attempts while subjects are removed from the period.
const ATTEMPTS: usize = 16;

/// What was found of the sheets of a period.
pub(in crate::service) struct Checked {
    pub frame: Frame,
    pub lines: u64,
    /// The number of sheets that are not what they must be.
    pub damaged: u64,
    /// The first of them, and what is wrong.
    pub examples: Vec<String>,
    pub repaired: u64,
}

/// Checks the sheets of a packed ranking, and with `repair` writes those again that follow from others. O(lines), 16 sheets
/// in a store call, with pauses.
pub(in crate::service) async fn check(
    store: &dyn Store,
    track: &BoardTrack,
    packed: Packed,
    repair: bool,
) -> store::Result<Checked> {
    let mut repaired = 0;
    for _ in 0..ATTEMPTS {
        let mut checking = Checking::begin(store, track, packed, repair).await?;
        checking.check_register().await?;
        // A removal changes lines, then the head, then the register.
        let is_same = checking.head_text().await?.1 == checking.head;
        let found = checking.found;
        repaired += found.repaired;
        if is_same {
            return Ok(Checked { repaired, damaged: found.damaged + (repaired - found.repaired), ..found });
        }
    }
    Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) })
}

struct Checking<'a> {
    store: &'a dyn Store,
    track: &'a BoardTrack,
    packed: Packed,
    repair: bool,
    /// The text of the head that this began with.
    head: Option<Arc<str>>,
    found: Checked,
    /// The sheets of lines that cannot be read, and those that have lines without a name: the register may still have
    /// entries that name them.
    unknown: BTreeSet<u64>,
    nameless: BTreeSet<u64>,
}

impl<'a> Checking<'a> {
    /// Begins with the head.
    async fn begin(store: &'a dyn Store, track: &'a BoardTrack, packed: Packed, repair: bool) -> store::Result<Self> {
        let sheets = store.sheets(track, &[SheetId::Head]).await?;
        let (frame, head) = (sheets.frame, sheets.texts.into_iter().next().flatten());
        let found = Checked { frame, lines: 0, damaged: 0, examples: Vec::new(), repaired: 0 };
        let (unknown, nameless) = (BTreeSet::new(), BTreeSet::new());
        let mut checking = Self { store, track, packed, repair, head, found, unknown, nameless };
        checking.check_head().await?;
        Ok(checking)
    }

    async fn head_text(&self) -> store::Result<(Frame, Option<Arc<str>>)> {
        let sheets = self.store.sheets(self.track, &[SheetId::Head]).await?;
        Ok((sheets.frame, sheets.texts.into_iter().next().flatten()))
    }

    fn note(&mut self, id: SheetId, what: &str) {
        self.found.damaged += 1;
        if self.found.examples.len() < EXAMPLES {
            let period = self.track.edition().period_name().map(|name| name.to_string()).unwrap_or_default();
            self.found.examples.push(format!("sheet {id} of period {period} {what}"));
        }
    }

    /// Replaces a sheet by what it must be, if that is wanted.
    async fn replace(&mut self, id: SheetId, from: Option<&str>, to: &str) -> store::Result<()> {
        if self.repair && self.store.change_sheet(self.track, id, from, to).await? {
            self.found.repaired += 1;
        }
        Ok(())
    }

    async fn check_head(&mut self) -> store::Result<()> {
        let Packed { lines, total } = self.packed;
        let read = self.head.as_deref().map(Head::read);
        let what = match &read {
            None => "is missing",
            Some(Err(_)) => "cannot be read",
            Some(Ok(head)) if (head.lines, head.total) != (lines, total) => "has other numbers than the board",
            Some(Ok(head)) if head.left_out.iter().any(|line| *line >= lines) => "names lines that do not exist",
            Some(Ok(_)) => return Ok(()),
        };
        // Of one that is lost it is not known which lines are left out. Its number of removals is one that was never used.
        let (removals, mut left_out) = match read {
            Some(Ok(head)) => (head.removals.wrapping_add(1), head.left_out),
            _ => (self.found.frame.as_of.millis().unsigned_abs(), Vec::new()),
        };
        left_out.retain(|line| *line < lines);
        let to = Head { lines, total, removals, left_out }.print();
        self.note(SheetId::Head, what);
        let from = self.head.clone();
        self.replace(SheetId::Head, from.as_deref(), &to).await?;
        if self.found.repaired > 0 {
            self.head = Some(to.into());
        }
        Ok(())
    }

    /// Walks over the lines, and compares a part of the register with them each time.
    async fn check_register(&mut self) -> store::Result<()> {
        if self.packed.lines == 0 {
            return Ok(());
        }
        let sheets = sheets_of(self.packed.lines);
        let mut from = 0;
        while from < sheets {
            let until = sheets.min(from + GATHERED);
            let expected = self.gathered(from, until).await?;
            let ids: Vec<SheetId> = (from..until).map(SheetId::Register).collect();
            for (ids, expected) in ids.chunks(TOGETHER).zip(expected.chunks(TOGETHER)) {
                let started = Instant::now();
                let texts = self.store.sheets(self.track, ids).await?.texts;
                for ((id, text), expected) in ids.iter().zip(texts).zip(expected) {
                    self.check_register_sheet(*id, text.as_deref(), expected).await?;
                }
                store::rest(started).await;
            }
            from = until;
        }
        Ok(())
    }

    async fn check_register_sheet(&mut self, id: SheetId, text: Option<&str>, expected: &str) -> store::Result<()> {
        // How often each entry is there more than it must be.
        let mut balance: BTreeMap<&[u8], i64> = BTreeMap::new();
        for entry in entries_of(text.unwrap_or_default()) {
            *balance.entry(entry).or_default() += 1;
        }
        for entry in entries_of(expected) {
            *balance.entry(entry).or_default() -= 1;
        }
        let is_of = |sheets: &BTreeSet<u64>, entry: &[u8]| sheet_of(entry).is_some_and(|sheet| sheets.contains(&sheet));
        let is_right = |(entry, count): (&&[u8], &i64)| match count.cmp(&0) {
            Ordering::Equal => true,
            Ordering::Less => false,
            Ordering::Greater => is_of(&self.unknown, entry) || is_of(&self.nameless, entry),
        };
        let what = match text {
            None => "is missing",
            Some(_) if !balance.iter().all(is_right) => "does not name the lines that there are",
            Some(_) => return Ok(()),
        };
        let mut to = expected.to_owned();
        for (entry, count) in balance.iter().filter(|(entry, _)| is_of(&self.unknown, entry)) {
            for _ in 0..*count {
                to.extend(entry.iter().map(|byte| char::from(*byte)));
            }
        }
        self.note(id, what);
        self.replace(id, text, &to).await
    }

    /// Returns what the lines say of a part of the register. The first time, the lines themselves are checked.
    async fn gathered(&mut self, from: u64, until: u64) -> store::Result<Vec<String>> {
        let sheets = sheets_of(self.packed.lines);
        let mut register = vec![String::new(); usize::try_from(until - from).unwrap_or_default()];
        // The score of the last line, and the first line that ties with it.
        let mut before: Option<(Value, u64)> = None;
        let numbers: Vec<u64> = (0..sheets).collect();
        for some in numbers.chunks(TOGETHER) {
            let started = Instant::now();
            let ids: Vec<_> = some.iter().map(|number| SheetId::Lines(*number)).collect();
            let texts = self.store.sheets(self.track, &ids).await?.texts;
            for (text, number) in texts.iter().zip(some) {
                let first = number * LINES;
                let read = text.as_deref().map(|text| LineSheet::read(self.track, text));
                let what = match &read {
                    None => Some("is missing"),
                    Some(Err(_)) => Some("cannot be read"),
                    Some(Ok(sheet)) => self.fault_of(sheet, first, before),
                };
                if let Some(what) = what.filter(|_| from == 0) {
                    self.note(SheetId::Lines(*number), what);
                }
                let Some(Ok(sheet)) = read else {
                    self.unknown.insert(*number);
                    before = None;
                    continue;
                };
                before =
                    sheet.lines.len().checked_sub(1).map(|last| (sheet.lines[last].score, sheet.tie_of(first, last)));
                if from == 0 {
                    self.found.lines += sheet.lines.len() as u64;
                }
                if sheet.lines.iter().any(|line| line.subject.is_none()) {
                    self.nameless.insert(*number);
                }
                for subject in sheet.lines.iter().filter_map(|line| line.subject) {
                    let registered = Registered::of(subject, sheets);
                    if (from..until).contains(&registered.sheet) {
                        registered.append(&mut register[(registered.sheet - from) as usize], *number);
                    }
                }
            }
            store::rest(started).await;
        }
        Ok(register)
    }

    /// Returns what is wrong with a sheet of lines that can be read, where `before` is the line before it.
    fn fault_of(&self, sheet: &LineSheet<'_>, first: u64, before: Option<(Value, u64)>) -> Option<&'static str> {
        if sheet.lines.len() as u64 != LINES.min(self.packed.lines - first) {
            return Some("has another number of lines");
        }
        let order = self.track.order();
        let scores = before.map(|(score, _)| score).into_iter().chain(sheet.lines.iter().map(|line| line.score));
        let is_ordered = scores.is_sorted_by(|one, next| compare_scores(*one, *next, order) != Ordering::Greater);
        let tied_from = match (before, first) {
            (Some((score, tied_from)), _) if score == sheet.lines[0].score => tied_from,
            // The sheet before cannot be read.
            (None, 1..) => sheet.tied_from.min(first),
            _ => first,
        };
        (!is_ordered || sheet.tied_from != tied_from).then_some("is not in the order of the ranking")
    }
}
