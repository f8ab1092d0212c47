//! Tests that the alerts and the dashboard in `deploy` name metrics and labels that running services have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::event_stream::Follower;
use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;
use crate::tls::Authority;
use crate::waiting::Wait;

/// The labels of each metric.
type Metrics = BTreeMap<String, BTreeSet<String>>;

/// What the metrics of `rolltop-consume` begin with, of which its own tests know.
const OF_ANOTHER: &str = "rolltop_consume_";

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["job", "instance"];

/// Returns the names that selectors in the text of queries have, each with the labels that it selects by. A name
/// without braces has none.
fn selectors(text: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text.match_indices("rolltop_").filter(|(at, _)| !text[..*at].ends_with(is_name));
    let selector = |(at, _): (usize, &str)| {
        let (name, rest) = text[at..].split_at(text[at..].find(|c| !is_name(c)).unwrap_or(text.len() - at));
        let braces = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(inside, _)| inside);
        let labels =
            braces.split(',').filter_map(|matcher| matcher.split_once(['=', '!'])).map(|(label, _)| label.trim());
        (name.to_owned(), labels.map(str::to_owned).collect())
    };
    starts.map(selector).collect()
}

/// Returns the metrics in the text of `/metrics`.
fn metrics_of(text: &str, metrics: &mut Metrics) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        // Values of labels may contain braces, but not with a quotation mark before.
        let (name, labels) = line.split_once('{').map_or((line, ""), |(name, rest)| (name, rest));
        let labels = labels.rsplit_once('}').map_or("", |(labels, _)| labels);
        let names = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(name, _)| name.to_owned());
        let name = name.split(' ').next().unwrap_or_default();
        metrics.entry(name.to_owned()).or_default().extend(names);
    }
}

/// Returns the queries of the alerts and the dashboard.
fn queries() -> Vec<String> {
    let read = |file: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file));
    let dashboard: Value = serde_json::from_str(&read("dashboard.json").unwrap()).unwrap();
    let targets =
        dashboard["panels"].as_array().unwrap().iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let of_panels = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let of_variables = variables.filter_map(|variable| variable["definition"].as_str().map(str::to_owned));
    let queries: Vec<String> = of_panels.chain(of_variables).chain([read("alerts.yml").unwrap()]).collect();
    assert!(queries.len() > 40);
    queries
}

/// Adds the metrics of a service to others, once it has this one. Some appear with the first tick of the scheduler.
async fn read_metrics(service: &Running, last: &str, metrics: &mut Metrics) {
    service.ok("GET", "/v1/boards", None).await;
    service.ok("POST", "/v1/boards/hot-posts/increments", Some(json!({"subject": "a"}))).await;
    service.ok("PUT", "/v1/sources/log", Some(json!({}))).await;
    let sent = json!({"subject": "a", "at": chrono::Utc::now().to_rfc3339(), "position": 0});
    service.ok("POST", "/v1/boards/hot-posts/increments?source=log&after=start", Some(sent)).await;
    let stream = service.client.get(format!("{}/v1/boards/hot-posts/stream", service.base)).send().await.unwrap();
    let mut follower = Follower::reading(stream);
    follower.expect("page").await;
    let wait = Wait::begin(last);
    while !metrics.contains_key(last) {
        let answer = service.client.get(format!("{}/metrics", service.base)).send().await.unwrap();
        metrics_of(&answer.text().await.unwrap(), metrics);
        wait.rest(()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_dashboard_name_metrics_that_exist() {
    let (folder, mut metrics) = (tempfile::tempdir().unwrap(), Metrics::new());
    let authority = Authority::new(folder.path());
    authority.install(&["127.0.0.1"]);
    let windows = "[boards.hot-posts]\nmetric = \"COUNT(24h, like, post_id)\"\nslot = \"1h\"\nwindows = [\"1h/1m\"]\n";
    std::fs::write(folder.path().join("r.toml"), windows).unwrap();
    read_metrics(&authority.start(&["--config", "r.toml"]), "rolltop_rollover_lag_seconds", &mut metrics).await;
    let server = RedisServer::start(&Engine::available()[0]);
    read_metrics(&Running::start(folder.path(), &["--store", &server.url()]), "rolltop_held_boards", &mut metrics)
        .await;

    let (mut errors, mut named) = (Vec::new(), BTreeSet::new());
    let selected = queries().iter().flat_map(|query| selectors(query)).collect::<Vec<_>>();
    for (name, labels) in selected.into_iter().filter(|(name, _)| !name.starts_with(OF_ANOTHER)) {
        let Some(known) = metrics.get(&name) else {
            errors.push(format!("there is no metric {name}"));
            continue;
        };
        let missing = labels.into_iter().filter(|label| !known.contains(label) && !ADDED.contains(&label.as_str()));
        errors.extend(missing.map(|label| format!("{name} has no label {label}, but {known:?}")));
        named.insert(name);
    }
    assert!(errors.is_empty(), "{}\nmetrics: {:#?}", errors.join("\n"), metrics.keys());
    assert!(named.len() > 30, "{named:?}");
}

#[test]
fn selectors_are_found_in_queries() {
    let text =
        r#"sum by (board) (rate(rolltop_a_total{job="$job", status!~"4xx|5xx"}[5m])) > 2 * rolltop_b + my_rolltop_c"#;
    let expected = [("rolltop_a_total", vec!["job", "status"]), ("rolltop_b", vec![])];
    let found = selectors(text);
    let found: Vec<(&str, Vec<&str>)> =
        found.iter().map(|(name, labels)| (name.as_str(), labels.iter().map(String::as_str).collect())).collect();
    assert_eq!(found, expected);
    let mut metrics = Metrics::new();
    metrics_of("# TYPE a counter\na{route=\"/v1/{board}\",le=\"1\"} 3\nb 4\n", &mut metrics);
    let labels = |name: &str| metrics[name].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((labels("a"), labels("b")), (vec!["le", "route"], vec![]));
}

#[test]
fn the_image_is_built_from_all_that_the_build_reads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let context = tempfile::tempdir().unwrap();
    let ignored = std::fs::read_to_string(root.join(".dockerignore")).unwrap();
    let sent: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for path in &sent {
        let to = context.path().join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        let copied = Command::new("cp").arg("-r").arg(root.join(path)).arg(&to).status().unwrap();
        assert!(copied.success(), "{path}");
    }
    // Each member of the workspace must be there, although the image needs only some of them.
    let read = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(&context)
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let metadata: Value = serde_json::from_slice(&read.stdout).unwrap();
    let members = metadata["packages"].as_array().unwrap().len();
    assert!(members >= 4, "{members} packages of {sent:?}");
}

#[test]
fn each_alert_has_a_section_that_says_what_to_do() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let after = |file: &str, prefix: &str| -> BTreeSet<String> {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        text.lines().filter_map(|line| line.trim().strip_prefix(prefix)).map(str::to_owned).collect()
    };
    let alerts = after("deploy/alerts.yml", "- alert: ");
    assert!(alerts.len() > 10, "{alerts:?}");
    assert_eq!(alerts, after("docs/incidents.md", "### "));
}
