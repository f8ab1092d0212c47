//! Calls with the answers that a build gave, to compare them with those of another one.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::stored::Data;
use crate::running::Running;
use crate::waiting::Wait;

/// What an answer may have otherwise: texts for people, estimates, measured times, and random numbers.
const NOT_COMPARED: [&str; 9] =
    ["bytes_per_subject", "detail", "generation", "ids", "notes", "request_id", "store", "title", "took_ms"];

/// One call of the API, or something else that is done to a service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Call {
    /// Method, path and body.
    Json(String, String, Option<Value>),
    /// The path of an export, and the format.
    Export(String, String),
    /// A board, and increments as lines.
    Lines(String, String),
    /// Waits until nothing is retiring.
    Settle,
    /// Kills the service and starts the next build.
    Restart,
    /// Compares all that is stored in Redis.
    State,
}

/// A call with its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    call: Call,
    status: u16,
    answer: Value,
}

/// Data that builds of the program open in turn.
pub struct Session {
    pub data: Data,
    programs: Vec<PathBuf>,
    starts: usize,
    pub service: Running,
}

impl Session {
    /// Starts the first of the builds on the data.
    pub fn open(data: Data, programs: &[PathBuf]) -> Session {
        let service = data.start(&programs[0]);
        Session { data, programs: programs.to_vec(), starts: 1, service }
    }

    pub async fn json(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.make(&Call::Json(method.to_owned(), path.to_owned(), body)).await
    }

    /// Makes a call. Returns the status and what is compared of the answer.
    pub async fn make(&mut self, call: &Call) -> (u16, Value) {
        match call {
            Call::Json(method, path, body) => {
                let (status, answer) = self.service.call(method, path, body.clone()).await;
                (status, compared(answer))
            }
            Call::Export(path, format) => {
                let request = self.service.client.get(format!("{}{path}", self.service.base)).header("accept", format);
                let answer = request.send().await.expect("an answer");
                let (status, text) = (answer.status().as_u16(), answer.text().await.expect("a text"));
                let line = |line: &str| serde_json::from_str(line).map_or_else(|_| json!(line), compared);
                (status, text.lines().map(line).collect())
            }
            Call::Lines(board, lines) => (200, compared(self.service.ndjson(board, lines.clone()).await)),
            Call::State => (200, self.data.state()),
            Call::Settle => (200, settle(&self.service).await),
            Call::Restart => {
                self.service.kill();
                self.service = self.data.start(&self.programs[self.starts % self.programs.len()]);
                self.starts += 1;
                (200, Value::Null)
            }
        }
    }

    /// Makes calls again, and checks that the answers have all that they had.
    pub async fn repeat(&mut self, calls: &[Answered]) {
        for (nth, Answered { call, status, answer }) in calls.iter().enumerate() {
            let (found_status, found) = self.make(call).await;
            let difference = match call {
                Call::State => {
                    let (stored, found) = (with_equal_floats(answer), with_equal_floats(&found));
                    // Nothing new is stored either.
                    difference(&stored, &found, "").or_else(|| difference(&found, &stored, ""))
                }
                _ if reads_more(call) => None,
                _ => difference(answer, &found, ""),
            };
            if found_status != *status || difference.is_some() {
                let program = self.programs[(self.starts - 1) % self.programs.len()].display();
                let call = format!("{call:?}").chars().take(500).collect::<String>();
                panic!("call {nth}, {call}: {program} answers {found_status}, expected {status}; {difference:?}");
            }
        }
    }
}

/// Returns whether a call asks for a length of time on a board with `cover = "full"`. The earlier build read one slot less
/// than for the window of the board, for a query by metric and for a rule, of the same length. Only the status is compared.
fn reads_more(call: &Call) -> bool {
    let Call::Json(_, path, _) = call else { return false };
    let is_full = ["/v1/boards/flat-count/", "/v1/boards/sum/"].iter().any(|board| path.starts_with(board));
    is_full && path.contains("/window?last=") && !path.contains("edge=weighted")
}

/// Returns stored data with one text for each float: Redis writes 17 digits of a score, Valkey as few as are needed.
fn with_equal_floats(stored: &Value) -> Value {
    match stored {
        Value::String(text) => match text.parse::<f64>() {
            Ok(float) if float.is_finite() && float.fract() != 0.0 => Value::String(format!("{float:e}")),
            _ => stored.clone(),
        },
        Value::Array(all) => all.iter().map(with_equal_floats).collect(),
        Value::Object(all) => {
            Value::Object(all.iter().map(|(key, value)| (key.clone(), with_equal_floats(value))).collect())
        }
        _ => stored.clone(),
    }
}

/// Calls that are made for the first time, with their answers.
pub struct Recording {
    pub session: Session,
    pub calls: Vec<Answered>,
    /// The paths of boards that were created by one of the calls. Their cursors contain a random number, so they differ
    /// when the calls are made again.
    pub created: HashSet<String>,
}

impl Recording {
    pub async fn make(&mut self, call: Call) -> Value {
        let (status, answer) = self.session.make(&call).await;
        if let (201, Call::Json(_, path, _)) = (status, &call) {
            self.created.insert(path.clone());
        }
        self.calls.push(Answered { call, status, answer: answer.clone() });
        answer
    }

    pub async fn get(&mut self, path: &str) -> Value {
        self.make(Call::Json("GET".to_owned(), path.to_owned(), None)).await
    }

    pub async fn json(&mut self, method: &str, path: &str, body: Value) -> Value {
        self.make(Call::Json(method.to_owned(), path.to_owned(), Some(body))).await
    }
}

/// Retires everything that has expired.
pub async fn settle(service: &Running) -> Value {
    let wait = Wait::begin("nothing to be retiring");
    loop {
        service.ok("POST", "/v1/rollover", None).await;
        let boards = service.ok("GET", "/v1/boards", None).await;
        let mut retiring = Vec::new();
        for board in boards["items"].as_array().expect("boards") {
            let status = service.ok("GET", &format!("/v1/boards/{}", board["board"].as_str().unwrap()), None).await;
            let windows = status["each_window"].as_array().into_iter().flatten().chain([&status]);
            if windows.into_iter().any(|window| window["retiring"] != 0) {
                retiring.push(board["board"].clone());
            }
        }
        if retiring.is_empty() {
            return Value::Null;
        }
        wait.rest(retiring).await;
    }
}

/// Removes from an answer what is not compared.
pub fn compared(answer: Value) -> Value {
    match answer {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name, compared(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(compared).collect(),
        value => value,
    }
}

/// Returns the first difference between an answer and the expected one, which may lack members of it.
pub fn difference(expected: &Value, found: &Value, at: &str) -> Option<String> {
    let is_same = match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            return expected.iter().find_map(|(name, value)| {
                difference(value, found.get(name).unwrap_or(&json!("(absent)")), &format!("{at}.{name}"))
            });
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let mut pairs = expected.iter().zip(found).enumerate();
            return pairs.find_map(|(nth, (expected, found))| difference(expected, found, &format!("{at}[{nth}]")));
        }
        // The parser may miss a number with a fraction by one unit in the last place.
        (Value::Number(expected), Value::Number(found)) if expected.is_f64() && found.is_f64() => {
            let (expected, found) = (expected.as_f64()?, found.as_f64()?);
            (expected - found).abs() <= expected.abs() * 4.0 * f64::EPSILON
        }
        _ => expected == found,
    };
    (!is_same).then(|| format!("at '{at}' {found}, expected {expected}"))
}

/// Returns calls as compressed lines of JSON.
pub fn pack(calls: &[Answered]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for call in calls {
        writeln!(packed, "{}", serde_json::to_string(call).unwrap()).unwrap();
    }
    packed.finish().unwrap()
}

pub fn unpack(packed: &[u8]) -> Vec<Answered> {
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("compressed text");
    text.lines().map(|line| serde_json::from_str(line).expect("a call")).collect()
}
