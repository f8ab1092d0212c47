//! What sums and counts come to, by brute force: every item is kept, and every score is added up from all of them.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

const DAY: i64 = 86_400_000;

/// A board whose metric is COUNT or SUM, with all items ever counted.
pub struct Model {
    adds_amounts: bool,
    windows: Vec<Window>,
    /// How long ids are remembered, in milliseconds.
    horizon: i64,
    items: Vec<Item>,
    ids: HashMap<(String, String), i64>,
}

/// A window of slots, in milliseconds; over all time none.
struct Window {
    /// As `window=` names it.
    name: String,
    slots: Option<(i64, i64)>,
}

struct Item {
    subject: String,
    at: i64,
    amount: f64,
    /// Whether it was counted, by window.
    counted: Vec<bool>,
}

impl Window {
    fn new(length: &str, slot: Option<&str>, extra: i64) -> Window {
        let slots = slot.map(|slot| (millis(slot), millis(length) / millis(slot) + extra));
        Window { name: length.to_owned(), slots }
    }

    fn has(&self, at: i64, now: i64) -> bool {
        self.slots.is_none_or(|(slot, count)| at.div_euclid(slot) > now.div_euclid(slot) - count)
    }
}

/// Returns a duration such as `20m` in milliseconds.
fn millis(text: &str) -> i64 {
    let (number, unit) = text.split_at(text.len() - 1);
    let unit = match unit {
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY,
        other => panic!("a unit {other}"),
    };
    number.parse::<i64>().expect("a number") * unit
}

impl Model {
    /// Returns the model of a board, or `None` if it is of another kind.
    pub fn of(definition: &Value) -> Option<Model> {
        let metric = definition["metric"].as_str()?;
        let (function, rest) = metric.split_once('(')?;
        let is_plain = ["COUNT", "SUM"].contains(&function) && metric.contains(" pay,") && metric.ends_with(" user)");
        if !is_plain || definition["timezone"].is_string() || definition["ranked"] == false {
            return None;
        }
        let extra = i64::from(definition["cover"] == "full");
        let length = rest.split(',').next()?;
        let mut windows = vec![Window::new(length, definition["slot"].as_str().filter(|_| length != "all"), extra)];
        for window in definition["windows"].as_array().into_iter().flatten() {
            let mut parts = window.as_str()?.split('/');
            windows.push(Window::new(parts.next()?, parts.next(), extra));
        }
        let longest = windows.iter().map(|window| window.slots.map_or(DAY, |(slot, count)| slot * count)).max()?;
        let horizon = definition["dedupe"].as_str().map_or(longest.min(DAY), millis);
        let adds_amounts = function == "SUM";
        Some(Model { adds_amounts, windows, horizon, items: Vec::new(), ids: HashMap::new() })
    }

    /// Counts an event.
    pub fn count(&mut self, event: &Value, now: i64) {
        let subject = event["fields"]["user"].as_str().expect("a subject").to_owned();
        let key = (subject.clone(), event["id"].as_str().expect("an id").to_owned());
        if self.ids.get(&key).is_some_and(|arrived| now - arrived < self.horizon) {
            return;
        }
        let at = event["at"]
            .as_str()
            .map_or(now, |at| at.parse::<chrono::DateTime<chrono::Utc>>().expect("a time").timestamp_millis());
        let counted: Vec<bool> = self.windows.iter().map(|window| window.has(at, now)).collect();
        if !counted.contains(&true) {
            return;
        }
        let amount = if self.adds_amounts { event["fields"]["amount"].as_f64().expect("an amount") } else { 1.0 };
        let amount = if event["retract"] == true { -amount } else { amount };
        self.ids.insert(key, now);
        self.items.push(Item { subject, at, amount, counted });
    }

    /// Removes what a subject has.
    pub fn remove(&mut self, subject: &str) {
        self.items.retain(|item| item.subject != subject);
    }

    /// Sets what a subject has.
    pub fn set(&mut self, subject: &str, amount: f64, now: i64) {
        self.remove(subject);
        let counted = vec![true; self.windows.len()];
        self.items.push(Item { subject: subject.to_owned(), at: now, amount, counted });
    }

    /// Returns the scores in each window, by its name.
    pub fn scores(&self, now: i64) -> Vec<(&str, BTreeMap<String, f64>)> {
        let of = |(nth, window): (usize, &Window)| {
            let mut scores: BTreeMap<String, f64> = BTreeMap::new();
            for item in self.items.iter().filter(|item| item.counted[nth] && window.has(item.at, now)) {
                *scores.entry(item.subject.clone()).or_default() += item.amount;
            }
            scores.retain(|_, score| *score != 0.0);
            scores
        };
        self.windows.iter().enumerate().map(|(nth, window)| (window.name.as_str(), of((nth, window)))).collect()
    }
}
