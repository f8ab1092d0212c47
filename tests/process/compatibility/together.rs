//! An earlier build and this one on one Redis at the same time, with random writes, clocks, definitions and restarts.
//! Their answers are those of an earlier build on the embedded store, and of a brute force.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, Duration, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::calls::{compared, difference, settle};
use super::model::Model;
use super::scenario::{self, BOARDS, SUBJECTS};
use super::stored::{Data, Site};
use crate::running::Running;

/// The number of steps of a sequence.
const STEPS: usize = 80;

/// Two instances on one Redis, and what they are compared with.
struct Together {
    rng: StdRng,
    data: Data,
    programs: [PathBuf; 2],
    instances: [Running; 2],
    /// The earlier build on the embedded store.
    reference: Running,
    now: DateTime<Utc>,
    /// The definitions of the boards that exist, with a model of those that have one.
    boards: BTreeMap<&'static str, (Value, Option<Model>)>,
    /// All events sent so far, in batches.
    sent: Vec<Vec<Value>>,
}

/// Runs one sequence.
pub async fn run(site: &Site, earlier: PathBuf, present: PathBuf, seed: u64) {
    let (data, own) = (Data::empty(site), Data::empty(&Site::Embedded));
    let reference = own.start(&earlier);
    let instances = [data.start(&earlier), data.start(&present)];
    let mut together = Together {
        rng: StdRng::seed_from_u64(seed),
        data,
        programs: [earlier, present],
        instances,
        reference,
        now: scenario::after(0),
        boards: BTreeMap::new(),
        sent: Vec::new(),
    };
    for (name, _) in BOARDS {
        if together.rng.random_bool(0.4) {
            together.define(name).await;
        }
    }
    for _ in 0..STEPS {
        together.step().await;
    }
    together.compare().await;
}

impl Together {
    async fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..30 => {
                let events = self.draw();
                self.send(events).await;
            }
            30..38 => {
                // Both instances send what was sent before.
                if let Some(events) = self.sent.choose(&mut self.rng).cloned() {
                    self.send(events).await;
                }
            }
            38..46 => self.send_at_once().await,
            46..52 => self.kill_while_sending().await,
            52..70 => self.leap().await,
            70..76 => {
                let rolled = self.instances.iter().map(|instance| instance.ok("POST", "/v1/rollover", None));
                futures_util::future::join_all(rolled).await;
            }
            76..84 => {
                let name = self.any_name();
                if self.boards.contains_key(name) { self.define_again(name).await } else { self.define(name).await }
            }
            84..90 => self.change_subject().await,
            90..93 => {
                let nth = self.rng.random_range(0..2);
                self.restart(nth);
            }
            _ => self.compare().await,
        }
    }

    fn any_name(&mut self) -> &'static str {
        BOARDS.choose(&mut self.rng).expect("boards").0
    }

    fn any_subject(&mut self) -> &'static str {
        SUBJECTS.choose(&mut self.rng).expect("subjects")
    }

    fn any(&mut self) -> &Running {
        &self.instances[self.rng.random_range(0..2)]
    }

    fn restart(&mut self, nth: usize) {
        self.instances[nth].kill();
        self.instances[nth] = self.data.start(&self.programs[nth]);
    }

    /// Makes a call on one of the instances and on the reference. Returns the status and the answers.
    async fn both(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value, Value) {
        let (status, answer) = self.any().call(method, path, body.clone()).await;
        let (expected_status, expected) = self.reference.call(method, path, body).await;
        assert_eq!(status, expected_status, "{method} {path}: {answer}, expected {expected}");
        (status, compared(answer), compared(expected))
    }

    fn draw(&mut self) -> Vec<Value> {
        let name = format!("e-{}", self.sent.len());
        scenario::events(&mut self.rng, self.now, &name)
    }

    /// Notes that events were counted.
    fn counted(&mut self, events: Vec<Value>) {
        let now = self.now.timestamp_millis();
        for (_, model) in self.boards.values_mut() {
            for event in &events {
                model.iter_mut().for_each(|model| model.count(event, now));
            }
        }
        self.sent.push(events);
    }

    async fn send(&mut self, events: Vec<Value>) {
        let returns = self.rng.random_bool(0.5);
        if returns {
            // Until then scores may include parts of expired slots.
            self.settle().await;
        }
        let path = if returns { "/v1/events?return=score" } else { "/v1/events" };
        let (status, answer, expected) = self.both("POST", path, Some(json!({"events": events}))).await;
        assert!(status == 200, "{answer}");
        assert_eq!(difference(&expected, &answer, ""), None, "{answer}, expected {expected}");
        self.counted(events);
    }

    /// Sends the same events through both instances at the same time. Each is counted once.
    async fn send_at_once(&mut self) {
        let mut events = self.draw();
        for event in &mut events {
            // A late retraction changes nothing, so its id is not remembered.
            event.as_object_mut().expect("an event").retain(|name, _| !["at", "retract"].contains(&name.as_str()));
        }
        let body = json!({"events": events});
        let sent = self.instances.iter().map(|instance| instance.ok("POST", "/v1/events", Some(body.clone())));
        let answers = futures_util::future::join_all(sent).await;
        let expected = self.reference.ok("POST", "/v1/events", Some(body.clone())).await;
        for (board, expected) in expected["boards"].as_object().expect("boards") {
            let accepted = answers.iter().map(|answer| answer["boards"][board]["accepted"].as_u64().unwrap()).sum();
            assert_eq!(expected["accepted"].as_u64(), Some(accepted), "{board}: {answers:?}");
        }
        self.counted(events);
    }

    /// Kills an instance that is sending events. Then sends them through the other one.
    async fn kill_while_sending(&mut self) {
        let events = self.draw();
        let body = json!({"events": events});
        let nth = self.rng.random_range(0..2);
        let pause = std::time::Duration::from_micros(self.rng.random_range(0..20_000));
        let instance = &self.instances[nth];
        let sent = instance.client.post(format!("{}/v1/events", instance.base)).json(&body).send();
        let sent = tokio::spawn(sent);
        tokio::time::sleep(pause).await;
        self.instances[nth].kill();
        let _ = sent.await.expect("a task");
        self.instances[1 - nth].ok("POST", "/v1/events", Some(body.clone())).await;
        self.reference.ok("POST", "/v1/events", Some(body)).await;
        self.counted(events);
        self.restart(nth);
    }

    async fn leap(&mut self) {
        let minutes = match self.rng.random_range(0..10) {
            0..5 => self.rng.random_range(0..15),
            5..9 => self.rng.random_range(15..150),
            _ => self.rng.random_range(150..5_000),
        };
        self.now += Duration::minutes(minutes) + Duration::milliseconds(self.rng.random_range(0..999));
        let to = json!({"now": self.now.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)});
        self.both("PUT", "/v1/clock", Some(to)).await;
    }

    async fn define(&mut self, name: &'static str) {
        let another = self.rng.random_bool(0.3).then(|| self.any_name());
        let definition = scenario::parsed(scenario::definition(another.unwrap_or(name)));
        let (status, ..) = self.both("PUT", &format!("/v1/boards/{name}"), Some(definition.clone())).await;
        assert_eq!(status, 201);
        let model = Model::of(&definition);
        self.boards.insert(name, (definition, model));
    }

    /// Removes a board, or defines it as it is, or as it cannot be.
    async fn define_again(&mut self, name: &'static str) {
        let path = format!("/v1/boards/{name}");
        match self.rng.random_range(0..4) {
            0..2 => {
                self.both("DELETE", &path, None).await;
                self.boards.remove(name);
            }
            2 => {
                let definition = self.boards[name].0.clone();
                let (status, ..) = self.both("PUT", &path, Some(definition)).await;
                assert_eq!(status, 200);
            }
            _ => {
                let definition = scenario::parsed(scenario::definition(self.any_name()));
                self.both("PUT", &path, Some(definition)).await;
            }
        }
    }

    async fn change_subject(&mut self) {
        let (name, who) = (self.any_name(), self.any_subject());
        let path = format!("/v1/boards/{name}/subjects/{}", utf8_percent_encode(who, NON_ALPHANUMERIC));
        self.settle().await;
        let amount = f64::from(self.rng.random_range(1..9)) * 0.25;
        let body = self.rng.random_bool(0.5).then(|| json!({"amount": amount}));
        let method = if body.is_some() { "PUT" } else { "DELETE" };
        let sets = body.is_some();
        let (status, answer, expected) = self.both(method, &path, body).await;
        assert_eq!(difference(&expected, &answer, ""), None, "{path}: {answer}, expected {expected}");
        let Some((_, Some(model))) = self.boards.get_mut(name).filter(|_| status == 200) else { return };
        if sets { model.set(who, amount, self.now.timestamp_millis()) } else { model.remove(who) }
    }

    async fn settle(&mut self) {
        settle(self.any()).await;
        settle(&self.reference).await;
    }

    /// Compares all that both instances answer.
    async fn compare(&mut self) {
        self.settle().await;
        let names: Vec<&str> = self.boards.keys().copied().collect();
        for name in &names {
            let board = format!("/v1/boards/{name}");
            let further = self.boards[name].0["windows"].as_array().cloned().unwrap_or_default();
            let windows = further.iter().map(|window| {
                format!("&window={}", window.as_str().expect("a window").split('/').next().expect("a length"))
            });
            let who = utf8_percent_encode(self.any_subject(), NON_ALPHANUMERIC).to_string();
            let mut paths = vec![board.clone(), format!("{board}/subjects/{who}/values?limit=1000")];
            for window in std::iter::once(String::new()).chain(windows) {
                paths.push(format!("{board}/rankings?limit=1000{window}"));
                paths.push(format!("{board}/subjects/{who}/neighbors?radius=2{window}"));
                let query = window.replacen('&', "?", 1);
                paths.push(format!("{board}/subjects/{who}{query}"));
                paths.push(format!("{board}/subjects/{who}/window{query}"));
            }
            // Of boards with `cover = "full"` the earlier build reads one slot less.
            let lengths = if self.boards[name].0["cover"] == "full" { &[][..] } else { &["last=20m", "last=2h"] };
            for query in lengths {
                paths.push(format!("{board}/subjects/{who}/window?{query}"));
            }
            for path in paths {
                self.ask("GET", &path, None).await;
            }
            self.ask("POST", &format!("{board}/rankings/lookup"), Some(json!({"subjects": SUBJECTS}))).await;
            self.pages(&board).await;
            for instance in &self.instances {
                let audit = instance.ok("POST", &format!("{board}/audit"), None).await;
                assert_eq!(audit["differences"], 0, "{name}: {audit}");
            }
        }
        let one = |name: &&str| json!({"board": name, "subject": "ann"});
        let queries: Vec<Value> = names.iter().map(one).collect();
        if !queries.is_empty() {
            self.ask("POST", "/v1/query", Some(json!({"queries": queries}))).await;
        }
        self.compare_with_models().await;
    }

    /// Asks both instances and the reference.
    async fn ask(&self, method: &str, path: &str, body: Option<Value>) {
        let (expected_status, expected) = self.reference.call(method, path, body.clone()).await;
        let expected = compared(expected);
        for (nth, instance) in self.instances.iter().enumerate() {
            let (status, answer) = instance.call(method, path, body.clone()).await;
            let differs = difference(&expected, &compared(answer.clone()), "");
            let program = self.programs[nth].display();
            assert!(
                status == expected_status && differs.is_none(),
                "{method} {path}: {program} answers {status} {answer}\nexpected {expected_status} {expected}\n{differs:?}"
            );
        }
    }

    /// Reads pages, each from another instance, which continues at the cursor of the one before.
    async fn pages(&mut self, board: &str) {
        let (status, all) = self.instances[0].call("GET", &format!("{board}/rankings?limit=1000"), None).await;
        if status != 200 {
            return;
        }
        let first = self.rng.random_range(0..2);
        let (mut lines, mut path) = (Vec::new(), Some(format!("{board}/rankings?limit=3")));
        for nth in first.. {
            let Some(next) = path else { break };
            let page = self.instances[nth % 2].ok("GET", &next, None).await;
            lines.extend(page["items"].as_array().expect("lines").iter().cloned());
            path = page["next"].as_str().map(|cursor| format!("{board}/rankings?limit=3&cursor={cursor}"));
        }
        assert_eq!(Value::Array(lines), all["items"], "{board}");
    }

    async fn compare_with_models(&self) {
        let now = self.now.timestamp_millis();
        for (name, (definition, model)) in &self.boards {
            for (window, expected) in model.iter().flat_map(|model| model.scores(now)) {
                for instance in &self.instances {
                    let path = format!("/v1/boards/{name}/rankings?limit=1000&window={window}");
                    let page = instance.ok("GET", &path, None).await;
                    let line = |line: &Value| {
                        let subject = line["subject"].as_str().expect("a subject").to_owned();
                        (subject, line["score"].as_f64().expect("a score"))
                    };
                    let found: BTreeMap<String, f64> =
                        page["items"].as_array().expect("lines").iter().map(line).collect();
                    assert_eq!(found, expected, "{name} {window}: {definition}");
                }
            }
        }
    }
}
