//! Lines of an ended period whose subjects were removed, as commands print and read them.

use std::time::Duration;

use serde_json::json;

use crate::commands::Service;

const LIKES: &str = "[boards.likes]\nmetric = \"COUNT(24h, like, post_id)\"\nslot = \"1h\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_a_subject_is_printed_as_such_and_not_replayed() {
    let service = Service::start_with(LIKES, &["--clock", "simulated=2026-01-30T10:00:00Z"]);
    service.ok(&["define", "sellers", "SUM(all, sale, price, seller)", "--season", "every=1mo", "--yes"]);
    let names: Vec<String> = (0..100).map(|n| format!("s{n:02}")).collect();
    let lines: Vec<_> = names.iter().map(|name| format!("{{\"subject\":\"{name}\",\"amount\":7}}\n")).collect();
    assert_eq!(service.feed(&["post", "sellers"], lines.concat().as_bytes()).0, 0);
    service.ok(&["post", "sellers", "last", "1"]);
    service.running.ok("PUT", "/v1/clock", Some(json!({"now": "2026-02-01T02:00:00Z"}))).await;

    // A subject that is removed before the service has packed the period leaves no line.
    let top = ["top", "sellers", "--period", "2026-01", "--limit", "101"];
    let mut left = names.iter();
    let table = loop {
        let name = left.next().expect("the period is packed in time");
        service.running.ok("DELETE", &format!("/v1/boards/sellers/subjects/{name}"), None).await;
        let table = service.ok(&top);
        if table.contains("(removed)") {
            break table;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    // The line of one that was removed while the period was packed may be there too. The rank of the others is as if nobody
    // had been removed since.
    let removed = table.matches("(removed)").count();
    assert!((1..=2).contains(&removed), "{table}");
    let rank = (left.len() + removed + 1).to_string();
    assert!(table.lines().any(|line| line.split_whitespace().eq([&rank, "last", "1"])), "{table}");
    let csv = service.ok(&[&top[..], &["--csv"]].concat());
    assert_eq!(csv.lines().filter(|line| *line == "1,,7").count(), removed, "{csv}");
    assert_eq!(service.ok(&["export", "sellers", "--csv", "--period", "2026-01"]), csv);
    let export = service.ok(&["export", "sellers", "--period", "2026-01"]);
    assert!(export.lines().any(|line| line == r#"{"rank":1,"subject":null,"score":7}"#), "{export}");
    for (text, format) in [(&export, "ndjson"), (&csv, "csv")] {
        let args = ["replay", "--board", "likes", "--format", format, "--subject", "subject", "--amount", "score", "-"];
        let (code, said, _) = service.feed(&args, text.as_bytes());
        assert_eq!(code, 0, "{said}");
        let skipped = ["skipped".to_owned(), removed.to_string()];
        assert!(said.lines().any(|line| line.split_whitespace().eq(&skipped)), "{said}");
    }
}
