//! What is done about messages that make no event, that boards reject, or that the service refuses.

use std::fs;
use std::io::Write;

use serde_json::Value;

use crate::running::{Setting, command, expected, like};

fn dead_letters(setting: &Setting) -> Vec<(String, String)> {
    let text = fs::read_to_string(setting.path("dead.ndjson")).unwrap_or_default();
    let letters = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    letters.map(|letter| (letter["code"].as_str().unwrap().to_owned(), letter["message"].to_string())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_count_is_kept_with_its_reason() {
    let Some(setting) = Setting::start().await else { return };
    let mut file = fs::File::create(setting.path("app.log")).unwrap();
    let mut late = like(1);
    late["at"] = "2020-01-01T00:00:00Z".into();
    let mut long = like(2);
    long["fields"]["post_id"] = "x".repeat(70_000).into();
    let mut wrong = like(3);
    wrong["fields"]["post_id"] = "a\u{7}".into();
    let without = serde_json::json!({"type": "like", "fields": {}, "at": crate::running::now()});
    for line in [like(0).to_string(), "no event".into(), late.to_string(), long.to_string(), wrong.to_string()] {
        writeln!(file, "{line}").unwrap();
    }
    writeln!(file, "{without}\n\n{}", like(4)).unwrap();
    let source = "file.path = \"app.log\"\ndead_letters = \"dead.ndjson\"";
    let consumer = setting.consume("app", source, &["--define"]);
    setting.counted("hot-posts", &expected([0, 4])).await;
    consumer.in_state("app", "reading").await;
    let codes: Vec<String> = dead_letters(&setting).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["unreadable", "unreadable", "too_late", "invalid_field", "missing_field"], "{}", consumer.log());
    assert!(dead_letters(&setting)[0].1.contains("no event"));
}

/// The service refuses a whole request of a fill for an event without a time, and it is found out which one that is.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_refused_is_kept_before_it_is_passed() {
    let Some(setting) = Setting::start().await else { return };
    let mut without = like(1);
    without.as_object_mut().unwrap().remove("at");
    fs::write(setting.path("app.log"), format!("{}\n{without}\nno event\n{}\n", like(0), like(2))).unwrap();
    let source = "file.path = \"app.log\"\ndead_letters = \"dead.ndjson\"";
    let mut consumer = setting.consume("app", source, &["--define", "--until-end"]);
    assert!(consumer.ended().await, "{}", consumer.log());
    setting.define("hot-new").await;
    assert_eq!(dead_letters(&setting).len(), 1);
    let fill = ["fill", consumer.config(), "--source", "app", "--board", "hot-new"];
    let (is_filled, text) = command(setting.folder.path(), &fill).await;
    assert!(is_filled, "{text}");
    setting.counted("hot-new", &expected([0, 2])).await;
    let kept = dead_letters(&setting);
    let refused = Value::from(format!("{without}\n")).to_string();
    assert!(kept.iter().any(|(_, message)| *message == refused), "{refused} in {kept:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_makes_no_event_may_stop_the_source() {
    let Some(setting) = Setting::start().await else { return };
    let text = format!("{}\nno event\n{}\n", like(0), like(1));
    fs::write(setting.path("app.log"), text).unwrap();
    let consumer = setting.consume("app", "file.path = \"app.log\"\non_unreadable = \"stop\"", &["--define"]);
    let (is_well, detail) = consumer.in_state("app", "stopped").await;
    assert!(!is_well && detail.contains("makes no event"), "{detail}");
    setting.counted("hot-posts", &expected([0])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_several_events_counts_whole() {
    let Some(setting) = Setting::start().await else { return };
    let mut events: Vec<Value> = (0..6).map(like).collect();
    // The third one waits for some seconds, and with it some of those after it.
    let soon = chrono::Utc::now() + chrono::Duration::seconds(63);
    events[2]["at"] = soon.to_rfc3339().into();
    let text = format!("{}\n{}\n", Value::from(events), Value::from(vec![like(6)]));
    fs::write(setting.path("app.log"), text).unwrap();
    let source = "file.path = \"app.log\"\nevent.each = \"\"";
    let consumer = setting.consume("app", source, &["--define"]);
    consumer.in_state("app", "waiting").await;
    setting.counted("hot-posts", &expected(0..7)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_an_error_of_a_program_that_is_to_end() {
    let Some(setting) = Setting::start().await else { return };
    for (source, needle) in [
        ("redis = { url = \"${NO_SUCH_VARIABLE}\", stream = \"s\" }", "NO_SUCH_VARIABLE"),
        ("file.path = \"app.log\"", "--define"),
    ] {
        fs::write(setting.path("app.log"), format!("{}\n", like(0))).unwrap();
        let mut consumer = setting.consume("app", source, &["--until-end"]);
        assert!(!consumer.ended().await);
        assert!(consumer.log().contains(needle), "{}", consumer.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_removed_is_not_made_anew() {
    let Some(setting) = Setting::start().await else { return };
    fs::write(setting.path("app.log"), format!("{}\n", like(0))).unwrap();
    let consumer = setting.consume("app", "file.path = \"app.log\"", &["--define"]);
    setting.counted("hot-posts", &expected([0])).await;
    let removed = setting.client().request::<Value>(rolltop_client::Method::DELETE, "/v1/sources/app").text().await;
    removed.unwrap();
    let (is_well, detail) = consumer.in_state("app", "stopped").await;
    assert!(!is_well && detail.contains("unknown_source"), "{detail}");
    setting.counted("hot-posts", &expected([0])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_shows_events_and_what_boards_do() {
    let Some(setting) = Setting::start().await else { return };
    let line = "203.0.113.7 - - [17/May/2015:10:05:03 +0000] \"GET /a HTTP/1.1\" 200 2326 \"-\" \"x\"\nhello\n";
    fs::write(setting.path("access.log"), line).unwrap();
    let config = format!(
        "[service]\nurl = \"{}\"\n[[source]]\nname = \"web\"\nfile.path = \"access.log\"\n[source.event]\nformat = \
         \"access_log\"\ntype = \"like\"\nfields = {{ post_id = \"path\", size = \"bytes\" }}\n",
        setting.service.url()
    );
    fs::write(setting.path("web.toml"), config).unwrap();
    let (is_well, text) = command(setting.folder.path(), &["check", "web.toml"]).await;
    assert!(is_well, "{text}");
    for expected in [
        r#""type":"like","fields":{"post_id":"/a","size":"2326"},"at":"2015-05-17T10:05:03Z"}"#,
        "hot-posts: 1 for /a",
        "communities: rejected, the field 'community' is missing",
        "makes no event: it is not a line of an access log",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    setting.counted("hot-posts", &expected([])).await;
    let (is_well, text) = command(setting.folder.path(), &["check", "missing.toml"]).await;
    assert!(!is_well && text.contains("cannot read missing.toml"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_the_dashboard_name_metrics_that_exist() {
    let Some(setting) = Setting::start().await else { return };
    let mut late = like(1);
    late["at"] = "2020-01-01T00:00:00Z".into();
    fs::write(setting.path("app.log"), format!("{}\nno event\n{late}\n", like(0))).unwrap();
    let consumer = setting.consume("app", "file.path = \"app.log\"", &["--define"]);
    setting.counted("hot-posts", &expected([0])).await;
    consumer.in_state("app", "reading").await;
    let metrics = consumer.metrics().await;
    for line in [
        "rolltop_consume_up{source=\"app\"} 1",
        "rolltop_consume_events_sent_total{source=\"app\"} 2",
        "rolltop_consume_events_accepted_total{source=\"app\"} 1",
        "rolltop_consume_messages_unreadable_total{source=\"app\"} 1",
        "rolltop_consume_events_rejected_total{source=\"app\",code=\"too_late\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let mut named = std::collections::BTreeSet::new();
    for file in ["alerts.yml", "dashboard.json"] {
        let text = fs::read_to_string(deploy.join(file)).unwrap();
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let names =
            text.match_indices("rolltop_consume_").map(|(at, _)| text[at..].split(|c| !is_name(c)).next().unwrap());
        named.extend(names.map(str::to_owned));
    }
    assert!(named.len() > 6, "{named:?}");
    for name in named {
        assert!(metrics.contains(&format!("{name}{{source=\"app\"")), "{name} in {metrics}");
    }
}
