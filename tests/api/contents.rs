//! Contents of boards as lines: their form, continuing, and what an import refuses.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::failing_store::Fault;
use crate::site::Site;

const NDJSON: &str = "application/x-ndjson";

/// Returns the lines of contents.
async fn contents(client: &Client, board: &str, query: &str) -> Vec<Value> {
    let answer = client.get(&format!("/v1/boards/{board}/contents{query}")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, NDJSON), "{answer:?}");
    answer.text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

async fn import(client: &Client, board: &str, lines: &[Value]) -> Answer {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    client.send(Method::POST, &format!("/v1/boards/{board}/contents"), Some(NDJSON), text).await
}

/// A board of three posts in two slots, and the board to import into.
async fn filled() -> (Site, Vec<Value>) {
    let site = Site::new().await;
    for board in ["old", "new"] {
        assert_eq!(site.client.define(board, "COUNT(24h, like, post)", "1h").await.status, 201);
    }
    site.client.count("old", &["a", "a", "b"]).await;
    let earlier = json!({"subject": "c", "amount": 5, "at": "2026-01-02T09:30:00Z"});
    assert_eq!(site.client.add("old", earlier).await.body["accepted"], 1);
    let lines = contents(&site.client, "old", "").await;
    (site, lines)
}

async fn ranking(client: &Client, board: &str) -> Value {
    client.get(&format!("/v1/boards/{board}/rankings")).await.body["items"].clone()
}

#[actix_web::test]
async fn contents_have_a_first_line_parts_and_a_last_line() {
    let (site, lines) = filled().await;
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!((&first["contents"], &first["board"]), (&json!(1), &json!("old")));
    assert_eq!(first["definition"]["metric"], "COUNT(24h, like, post)");
    assert_eq!(first["tracks"][0]["window"], "24h");
    assert_eq!((&last["complete"], &last["unchanged"], &last["problem"]), (&json!(true), &json!(true), &Value::Null));
    assert_eq!(last["export"], first["export"]);
    let ten = 1_767_348_000_000_i64;
    let nine = ten - 3_600_000;
    assert_eq!(lines[1], json!({"n": 1, "prev": 0, "track": 0, "before": [[nine, 1], [ten, 3]]}));
    let mut cells: Vec<(i64, Value)> = Vec::new();
    for line in &lines[2..lines.len() - 2] {
        for cell in line["sums"].as_array().unwrap() {
            cells.push((line["slot"].as_i64().unwrap(), cell.clone()));
        }
    }
    cells.sort_by_key(|(slot, cell)| (*slot, cell.to_string()));
    assert_eq!(cells, [(nine, json!(["c", 5])), (ten, json!(["a", 2])), (ten, json!(["b", 1]))]);
    let n = lines.len() as u64 - 2;
    assert_eq!(lines[lines.len() - 2], json!({"n": n, "prev": n - 1, "track": 0, "events": [[nine, 1], [ten, 3]]}));
    assert_eq!(lines[2]["prev"], 0);
    assert_eq!(last["last"], json!([n]));
    // Nothing but the head of a response to HEAD.
    let head = site.client.send(Method::HEAD, "/v1/boards/old/contents", None, "").await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    assert_eq!(site.client.get("/v1/boards/none/contents").await.refusal(), (404, "unknown_board"));
}

#[actix_web::test]
async fn contents_are_merged_once_and_the_last_line_ends_the_import() {
    let (site, lines) = filled().await;
    let client = &site.client;
    client.count("new", &["b", "d"]).await;
    let begun = import(client, "new", &lines[..1]).await;
    assert_eq!((begun.status, &begun.body["through"]), (200, &json!([0])), "{begun:?}");
    for round in 0..3 {
        let answer = import(client, "new", &lines[..lines.len() - 1]).await;
        let merged = if round == 0 { (3, 0) } else { (0, 3) };
        assert_eq!(
            (&answer.body["merged"], &answer.body["repeated"]),
            (&json!(merged.0), &json!(merged.1)),
            "{answer:?}"
        );
        assert_eq!((&answer.body["ended"], &answer.body["through"]), (&json!(false), &json!([lines.len() - 2])));
    }
    let answer = import(client, "new", &[lines[0].clone(), lines[lines.len() - 1].clone()]).await;
    assert_eq!(answer.body["ended"], true, "{answer:?}");
    let wanted = json!([
        {"rank": 1, "subject": "c", "score": 5}, {"rank": 2, "subject": "b", "score": 2},
        {"rank": 2, "subject": "a", "score": 2}, {"rank": 4, "subject": "d", "score": 1}]);
    assert_eq!(ranking(client, "new").await, wanted);
    // Whoever reads the same board again cannot merge it again.
    let again = contents(client, "old", "").await;
    assert_ne!(again[0]["export"], lines[0]["export"]);
    let answer = import(client, "new", &again).await;
    assert_eq!((&answer.body["ended"], &answer.body["merged"]), (&json!(true), &json!(0)), "{answer:?}");
    assert_eq!(ranking(client, "new").await, wanted);
    let status = client.get("/v1/boards/new").await;
    assert_eq!(status.body["slots"][1]["events"], 5, "{status:?}");
}

#[actix_web::test]
async fn an_import_refuses_what_does_not_fit_and_names_the_line() {
    let (site, lines) = filled().await;
    let client = &site.client;
    let header = &lines[0];
    let with = |key: &str, value: Value| {
        let mut header = header.clone();
        header[key] = value;
        header
    };
    let part = |members: Value| {
        let mut line = json!({"n": 1, "track": 0});
        line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        line
    };
    for (lines, line, detail) in [
        (vec![part(json!({}))], 1, "the first line must be"),
        (vec![with("contents", json!(2))], 1, "the form 2"),
        (vec![with("export", json!("x"))], 1, "'export'"),
        (vec![header.clone(), header.clone()], 2, "only the first line"),
        (vec![header.clone(), json!({"complete": false, "last": [0]})], 2, "not complete"),
        (vec![header.clone(), json!([1])], 2, "not one of contents"),
        (vec![header.clone(), part(json!({"n": 0}))], 2, "'n'"),
        (vec![header.clone(), part(json!({"track": 1}))], 2, "no track 1"),
        (vec![header.clone(), part(json!({"other": 1}))], 2, "unknown field"),
        (vec![header.clone(), part(json!({"sums": [["a", 1]]}))], 2, "need a 'slot'"),
        (vec![header.clone(), part(json!({"slot": 1, "sums": [["a", 1]]}))], 2, "no slot of the window"),
        (vec![header.clone(), part(json!({"slot": 0, "sums": [["", 1]]}))], 2, "subject"),
        (vec![header.clone(), part(json!({"slot": 0, "sums": [["a", 9_007_199_254_740_992_i64]]}))], 2, "out of range"),
        (vec![header.clone(), part(json!({"slot": 0, "means": [["a", 1, 1]]}))], 2, "no 'means'"),
        (vec![header.clone(), part(json!({"values": [["a", "v", 1]]}))], 2, "no 'values'"),
        (vec![header.clone(), part(json!({"counters": [["a", 1, 1]]}))], 2, "cannot be merged"),
        (vec![header.clone(), part(json!({"slot": 0, "sums": vec![json!(["a", 1]); 1_001]}))], 2, "at most 1000"),
    ] {
        let answer = import(client, "new", &lines).await;
        assert_eq!(answer.refusal(), (422, "invalid_contents"), "{lines:?}: {answer:?}");
        assert_eq!(answer.body["line"], line, "{answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(detail), "{detail}: {answer:?}");
    }
    assert_eq!(ranking(client, "new").await, json!([]));
    for (board, metric) in [("sum", "SUM(24h, like, n, post)"), ("fine", "COUNT(24h, like, user)")] {
        client.define(board, metric, "1h").await;
        assert_eq!(import(client, board, &lines).await.refusal(), (409, "import_refused"));
    }
    client.define("minutes", "COUNT(24h, like, post)", "5m").await;
    let answer = import(client, "minutes", &lines).await;
    assert!(answer.body["detail"].as_str().unwrap().contains("slots of which those of 5m"), "{answer:?}");
    let json = client.post("/v1/boards/new/contents", json!({})).await;
    assert_eq!(json.refusal(), (415, "unsupported_media_type"));
}

#[actix_web::test]
async fn a_board_with_an_open_import_takes_no_samples_and_removals() {
    let (site, lines) = filled().await;
    let client = &site.client;
    import(client, "new", &lines[..1]).await;
    client.count("new", &["a"]).await;
    let sample = json!({"subject": "a", "amount": 9, "at": "2026-01-02T10:00:00Z"});
    let put = async || client.put("/v1/boards/new/samples", sample.clone()).await;
    assert_eq!(put().await.body["rejected"][0]["code"], "import_open");
    let remove = async || client.delete("/v1/boards/new/subjects/a").await;
    assert_eq!(remove().await.refusal(), (409, "import_open"));
    // Another board's import has to wait for the end of this one.
    client.define("third", "COUNT(24h, like, post)", "1h").await;
    let third = contents(client, "third", "").await;
    let refused = import(client, "new", &third).await;
    assert_eq!((refused.refusal(), &refused.body["import"]), ((409, "import_refused"), &lines[0]["export"]));
    // So have other contents of the same board, which may be different ones.
    let again = contents(client, "old", "").await;
    assert_eq!(import(client, "new", &again).await.refusal(), (409, "import_refused"));
    let path = format!("/v1/boards/new/import?id={}", lines[0]["export"].as_str().unwrap());
    assert_eq!(client.delete(&path).await.body, json!({"ended": true}));
    assert_eq!(client.delete(&path).await.body, json!({"ended": false}));
    assert_eq!(remove().await.status, 200);
    assert_eq!(put().await.body["accepted"], 1);
    let answer = import(client, "new", &lines).await;
    assert_eq!((&answer.body["ended"], &answer.body["merged"]), (&json!(true), &json!(0)), "it is not continued");
    assert_eq!(client.score("new", "c").await, 0);
    // It may replace what older contents would add to.
    let refused = import(client, "new", &third).await;
    assert_eq!(refused.refusal(), (409, "import_refused"), "{refused:?}");
    assert!(refused.body["detail"].as_str().unwrap().contains("samples"), "{refused:?}");
    assert_eq!(client.delete("/v1/boards/new/import?id=1").await.refusal(), (422, "invalid_field"));
}

#[actix_web::test]
async fn lines_that_are_missing_keep_an_import_open() {
    let (site, lines) = filled().await;
    for missing in 2..lines.len() - 1 {
        let mut others = lines.clone();
        others.remove(missing);
        let answer = import(&site.client, "new", &others).await;
        assert_eq!(answer.refusal(), (409, "import_refused"), "{missing}: {answer:?}");
        // What came before it is merged, and the problem says so.
        let merged: usize = lines[..missing].iter().map(|line| line["sums"].as_array().map_or(0, Vec::len)).sum();
        let known = |name: &str| answer.body[name].as_u64().unwrap() as usize;
        assert_eq!(known("accepted") + known("duplicates"), merged, "{missing}: {answer:?}");
    }
    for last in [json!([]), json!([1, 1])] {
        let end = json!({"complete": true, "last": last});
        let answer = import(&site.client, "new", &[lines[0].clone(), end]).await;
        assert_eq!(answer.refusal(), (422, "invalid_contents"), "{answer:?}");
    }
    assert_eq!(import(&site.client, "new", &lines).await.body["ended"], true);
    assert_eq!(ranking(&site.client, "new").await, ranking(&site.client, "old").await);
}

#[actix_web::test]
async fn contents_continue_after_a_cursor() {
    let site = Site::new().await;
    let client = &site.client;
    for board in ["old", "new"] {
        client.define(board, "COUNT(24h, like, post)", "1h").await;
    }
    let lines: String = (0..60_000).map(|n| format!("{{\"subject\":\"post-{n}\",\"amount\":{}}}\n", n + 1)).collect();
    assert_eq!(client.ndjson("old", lines).await.body["accepted"], 60_000);
    let all = contents(client, "old", "").await;
    let is_position = |line: &&Value| line["cursor"].is_string();
    let middle = all.iter().filter(is_position).nth(1).expect("several steps");
    let rest = contents(client, "old", &format!("?after={}", middle["cursor"].as_str().unwrap())).await;
    assert_eq!(rest[0]["export"], all[0]["export"]);
    let after = middle["n"].as_u64().unwrap();
    assert_eq!(rest[1]["n"], after + 1);
    assert_eq!(rest.last().unwrap()["unchanged"], Value::Null);
    let joined = all.iter().filter(|line| line["n"].as_u64().is_none_or(|n| n <= after));
    let joined: Vec<Value> = joined.filter(|line| line["complete"].is_null()).chain(&rest[1..]).cloned().collect();
    let answer = import(client, "new", &joined).await;
    assert_eq!((&answer.body["merged"], &answer.body["ended"]), (&json!(60_000), &json!(true)), "{answer:?}");
    assert_eq!(ranking(client, "new").await, ranking(client, "old").await);
    // A position belongs to one board.
    client.define("other", "COUNT(24h, like, post)", "1h").await;
    let of_other = format!("/v1/boards/other/contents?after={}", middle["cursor"].as_str().unwrap());
    assert_eq!(client.get(&of_other).await.refusal(), (409, "stale_cursor"));
    for text in ["x", "AAAA", ""] {
        let answer = client.get(&format!("/v1/boards/old/contents?after={text}")).await;
        assert_eq!(answer.refusal(), (422, "invalid_field"), "{text}");
    }
}

/// Reads contents slowly, and counts an item after the first piece.
#[actix_web::test]
async fn contents_say_whether_the_board_changed_while_they_were_read() {
    let site = Site::new().await;
    let client = &site.client;
    client.define("old", "COUNT(24h, like, post)", "1h").await;
    let names = |n: usize| format!("{{\"subject\":\"{n:0500}\"}}\n");
    let lines: String = (0..60_000).map(names).collect();
    assert_eq!(client.ndjson("old", lines).await.body["accepted"], 60_000);
    let url = format!("http://127.0.0.1:{}/v1/boards/old/contents", client.port);
    let mut response = reqwest::Client::new().get(url).send().await.unwrap();
    let mut text = response.chunk().await.unwrap().unwrap().to_vec();
    client.count("old", &["new"]).await;
    while let Some(piece) = response.chunk().await.unwrap() {
        text.extend_from_slice(&piece);
    }
    let end: Value = serde_json::from_slice(text.trim_ascii_end().rsplit(|b| *b == b'\n').next().unwrap()).unwrap();
    assert_eq!((&end["complete"], &end["unchanged"]), (&json!(true), &json!(false)), "{end}");
    let quiet = contents(client, "old", "").await;
    assert_eq!(quiet.last().unwrap()["unchanged"], true);
    client.delete("/v1/boards/old/subjects/new").await;
    let later = contents(client, "old", "").await;
    assert_ne!(later[0]["tracks"][0]["upheavals"], quiet[0]["tracks"][0]["upheavals"], "a removal");
}

#[actix_web::test]
async fn a_failure_ends_contents_with_a_line_that_says_so() {
    let site = Site::new().await;
    site.client.define("old", "COUNT(24h, like, post)", "1h").await;
    site.client.count("old", &["a", "b"]).await;
    site.switch.fail_after_reads(Fault::Unreachable, 2);
    let failed = contents(&site.client, "old", "").await;
    let end = failed.last().unwrap();
    assert_eq!((&end["complete"], &end["problem"]["code"]), (&json!(false), &json!("store_unreachable")), "{end}");
}

/// The numbers of the last line are about the tracks of the contents, not about those of a second edition.
#[actix_web::test]
async fn contents_of_a_board_with_a_second_edition_can_be_imported() {
    let (site, _) = filled().await;
    let definition = site.client.get("/v1/boards/old").await.body;
    let next = json!({"metric": definition["metric"], "slot": "30m", "windows": ["7d/1d"]});
    let next = site.client.put("/v1/boards/old/next", next).await;
    assert_eq!(next.status, 201, "{next:?}");
    let lines = contents(&site.client, "old", "").await;
    assert_eq!(lines[lines.len() - 1]["last"].as_array().unwrap().len(), 1, "{lines:?}");
    let imported = import(&site.client, "new", &lines).await;
    assert_eq!((imported.status, &imported.body["ended"]), (200, &json!(true)), "{imported:?}");
    assert_eq!(ranking(&site.client, "new").await, ranking(&site.client, "old").await);
}
