//! Exports of rankings as NDJSON and CSV.

use std::time::Duration;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZstdDecoder};
use futures_util::future::join_all;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Answer, Client};
use crate::failing_store::Fault;
use crate::site::{START, Site};

const NDJSON: &str = "application/x-ndjson";
const CSV: &str = "text/csv";

async fn get(client: &Client, path: &str, accept: &str) -> Answer {
    client.send_with(Method::GET, path, &[("accept", accept)], "").await
}

/// Sends the request of an export. Returns the response as soon as its head has arrived.
async fn begin(client: &Client, path: &str, accept: &str) -> Response {
    let url = format!("http://127.0.0.1:{}{path}", client.port);
    reqwest::Client::new().get(url).header("accept", accept).send().await.unwrap()
}

/// Returns the lines of an NDJSON export, and the last line.
fn ndjson(text: &str) -> (Vec<Value>, Value) {
    assert!(text.ends_with('\n'), "{text}");
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let end = lines.pop().expect("a last line");
    assert_eq!(end["lines"], lines.len(), "{end}");
    (lines, end)
}

/// Returns the lines of a complete NDJSON export.
fn complete(answer: &Answer) -> Vec<Value> {
    assert_eq!((answer.status, answer.header("content-type")), (200, NDJSON), "{answer:?}");
    let (lines, end) = ndjson(&answer.text);
    assert_eq!((&end["complete"], &end["problem"]), (&json!(true), &Value::Null), "{end}");
    lines
}

/// Returns the lines of a CSV export as those of NDJSON.
fn csv(answer: &Answer) -> Vec<Value> {
    let kind = "text/csv; charset=utf-8; header=present";
    assert_eq!((answer.status, answer.header("content-type")), (200, kind), "{answer:?}");
    let mut reader = csv::Reader::from_reader(answer.text.as_bytes());
    assert_eq!(reader.headers().unwrap(), vec!["rank", "subject", "score"]);
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let line = |record: csv::StringRecord| json!({"rank": number(&record[0]), "subject": &record[1], "score": number(&record[2])});
    reader.records().map(|record| line(record.unwrap())).collect()
}

/// Returns all lines of the ranking, read in pages of JSON.
async fn pages(client: &Client, board: &str) -> Vec<Value> {
    let (mut lines, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/boards/{board}/rankings?limit=1000{cursor}")).await.body;
        lines.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return lines,
        }
    }
}

/// Adds one line of NDJSON for each subject.
async fn fill(client: &Client, board: &str, lines: impl Iterator<Item = Value>) {
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let answer = client.ndjson(board, text).await;
    assert_eq!((answer.status, &answer.body["rejected"]), (200, &json!([])), "{}", answer.text);
}

/// Adds so many subjects with long names and different scores.
async fn fill_with_long_names(client: &Client, board: &str, subjects: usize) {
    let line = |n: usize| json!({"subject": format!("{n:05}{}", "x".repeat(500)), "amount": n + 1});
    fill(client, board, (0..subjects).map(line)).await;
}

#[actix_web::test]
async fn an_export_has_the_lines_of_all_pages() {
    let site = Site::new().await;
    let names =
        ["plain-", "with \"quotes\" ", "a,b;c\t".trim_end(), "[\"x\",\"y\"]", " space ", "日本🎉", "'=1+2", "\u{2028}"];
    let name = |n: usize| format!("{}{n}", names[n % names.len()]);
    for (board, definition, field) in [
        ("sums", json!({"metric": "SUM(24h, sale, price, seller)", "slot": "1h", "decimals": 2}), "amount"),
        ("laps", json!({"metric": "SUM(24h, lap, ms, driver)", "slot": "1h", "order": "asc"}), "amount"),
        ("means", json!({"metric": "AVG(24h, drive, speed, driver)", "slot": "1h", "decimals": 3}), "value"),
        ("least", json!({"metric": "MIN(24h, lap, ms, driver)", "slot": "1h"}), "value"),
    ] {
        assert_eq!(site.client.put(&format!("/v1/boards/{board}"), definition).await.status, 201, "{board}");
        // Ties of all lengths, one of them longer than a page. The means of two values have many digits.
        let whole = |n: usize| if n.is_multiple_of(3) { 7 } else { 1 + n / 5 };
        let value = |n: usize| match board {
            "sums" => json!(whole(n) as f64 / 4.0),
            _ => json!(whole(n)),
        };
        let first = (0..3_456).map(|n| json!({"subject": name(n), field: value(n)}));
        let more = (0..6_000).step_by(2).map(|n| json!({"subject": name(n % 3_456), field: n % 11 + 1}));
        fill(&site.client, board, first.chain(more)).await;

        let (path, expected) = (format!("/v1/boards/{board}/rankings"), pages(&site.client, board).await);
        assert_eq!(expected.len(), 3_456);
        let answer = get(&site.client, &path, NDJSON).await;
        assert_eq!(complete(&answer), expected, "{board}");
        assert_eq!(csv(&get(&site.client, &path, CSV).await), expected, "{board}");
        // From an offset and from a cursor, with and without a limit.
        for (offset, limit) in [(0, 1), (0, 1_000), (1, 2_500), (1_000, 1_000_000_000), (3_455, 5), (5_000, 5)] {
            let part: Vec<Value> = expected.iter().skip(offset).take(limit).cloned().collect();
            let path = format!("{path}?offset={offset}&limit={limit}");
            assert_eq!(complete(&get(&site.client, &path, NDJSON).await), part, "{path}");
            assert_eq!(csv(&get(&site.client, &path, CSV).await), part, "{path}");
        }
        let page = site.client.get(&format!("{path}?limit=700")).await.body;
        let path = format!("{path}?cursor={}", page["next"].as_str().unwrap());
        assert_eq!(complete(&get(&site.client, &path, NDJSON).await), expected[700..]);
        let path = format!("{path}&limit=1500");
        assert_eq!(csv(&get(&site.client, &path, CSV).await), expected[700..2_200]);
    }
}

#[actix_web::test]
async fn the_last_line_says_what_the_export_is_of() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b", "c", "c", "c"]).await;
    let answer = get(&site.client, "/v1/boards/b/rankings", NDJSON).await;
    let (_, end) = ndjson(&answer.text);
    assert!(answer.text.starts_with("{\"rank\":1,\"subject\":\"c\",\"score\":3}\n{\"rank\":2,"), "{answer:?}");
    let expected = json!({
        "complete": true, "board": "b", "metric": "COUNT(24h, like, post_id)",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": START, "retiring": 0, "total": 3, "first_as_of": START, "lines": 3, "next": null, "problem": null,
    });
    assert_eq!(end, expected);
    assert_eq!((answer.header("rolltop-as-of"), answer.header("cache-control")), (START, "no-store"));
    assert_eq!((answer.header("etag"), answer.header("content-length")), ("", ""));
    // With a limit it is complete too, and says where to continue.
    let first = get(&site.client, "/v1/boards/b/rankings?limit=2", NDJSON).await;
    let (lines, end) = ndjson(&first.text);
    assert_eq!((lines.len(), &end["complete"], &end["total"]), (2, &json!(true), &json!(3)));
    let path = format!("/v1/boards/b/rankings?cursor={}", end["next"].as_str().unwrap());
    assert_eq!(complete(&get(&site.client, &path, NDJSON).await), [json!({"rank": 3, "subject": "a", "score": 1})]);
    let page = site.client.get(&path).await.body;
    assert_eq!(page["items"], json!([{"rank": 3, "subject": "a", "score": 1}]));
    // A client that has the JSON of the ranking gets no 304 for an export.
    let tag = site.client.get("/v1/boards/b/rankings").await.header("etag").to_owned();
    let headers = [("accept", NDJSON), ("if-none-match", tag.as_str())];
    assert_eq!(complete(&site.client.send_with(Method::GET, "/v1/boards/b/rankings", &headers, "").await).len(), 3);
}

#[actix_web::test]
async fn an_export_of_an_empty_ranking_has_no_lines() {
    let site = Site::with_board("b").await;
    for path in ["/v1/boards/b/rankings", "/v1/boards/b/rankings?offset=7&limit=5"] {
        let answer = get(&site.client, path, NDJSON).await;
        assert!(complete(&answer).is_empty());
        assert_eq!(answer.body["total"], 0, "{answer:?}");
        let answer = get(&site.client, path, CSV).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, "rank,subject,score\r\n"));
    }
}

#[actix_web::test]
async fn accept_selects_the_format() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a"]).await;
    let path = "/v1/boards/b/rankings";
    for (accept, kind) in [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("text/html,*/*;q=0.8", "application/json"),
        ("image/png", "application/json"),
        ("text/csv;q=0.5, application/json", "application/json"),
        ("text/csv, application/json;q=0.5", "text/csv; charset=utf-8; header=present"),
        ("application/x-ndjson, text/csv;q=0.9, */*;q=0.1", NDJSON),
    ] {
        let answer = get(&site.client, path, accept).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, kind), "{accept}");
        assert_eq!(answer.header("vary"), "Accept, Accept-Encoding", "{accept}");
    }
    assert_eq!(site.client.get(path).await.header("content-type"), "application/json");
    let tag = site.client.get(path).await.header("etag").to_owned();
    let unchanged = site.client.send_with(Method::GET, path, &[("if-none-match", &tag)], "").await;
    assert_eq!((unchanged.status, unchanged.header("vary")), (304, "Accept, Accept-Encoding"));
    assert_eq!(site.client.get("/v1/boards/x/rankings").await.header("vary"), "Accept, Accept-Encoding");
    assert_eq!(site.client.get("/v1/boards/b").await.header("vary"), "Accept-Encoding");
}

#[actix_web::test]
async fn errors_before_the_first_page_are_problems() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "c"]).await;
    site.client.put("/v1/boards/u", json!({"metric": "COUNT(24h, x, y)", "slot": "1h", "ranked": false})).await;
    let middle = site.client.get("/v1/boards/b/rankings?offset=1&limit=1").await.body;
    let (next, prev) = (middle["next"].as_str().unwrap(), middle["prev"].as_str().unwrap());
    for (path, refusal, field) in [
        ("/v1/boards/none/rankings".to_owned(), (404, "unknown_board"), None),
        ("/v1/boards/u/rankings".to_owned(), (409, "not_ranked"), None),
        ("/v1/boards/b/rankings?limit=0".to_owned(), (422, "invalid_field"), Some("limit")),
        ("/v1/boards/b/rankings?limit=1000000001".to_owned(), (422, "invalid_field"), Some("limit")),
        ("/v1/boards/b/rankings?format=csv".to_owned(), (422, "unknown_field"), Some("format")),
        (format!("/v1/boards/b/rankings?cursor={next}&offset=1"), (422, "invalid_field"), Some("cursor")),
        (format!("/v1/boards/b/rankings?cursor={next}A"), (422, "invalid_field"), Some("cursor")),
        (format!("/v1/boards/b/rankings?cursor={prev}"), (422, "invalid_field"), Some("cursor")),
    ] {
        for accept in [NDJSON, CSV] {
            let answer = get(&site.client, &path, accept).await;
            assert_eq!((answer.refusal(), answer.body["field"].as_str()), (refusal, field), "{path}: {answer:?}");
        }
    }
    let refused = get(&site.client, "/v1/boards/b/rankings?limit=1001", "application/json").await;
    assert_eq!(refused.body["detail"], "'limit' must be a whole number from 1 to 1000");
    let path = format!("/v1/boards/b/rankings?cursor={next}");
    site.client.delete("/v1/boards/b").await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    assert_eq!(get(&site.client, &path, CSV).await.refusal(), (409, "stale_cursor"));
    site.switch.fail(Fault::Unreachable);
    assert_eq!(get(&site.client, "/v1/boards/b/rankings", NDJSON).await.refusal(), (503, "store_unreachable"));
}

#[actix_web::test]
async fn an_export_that_the_store_fails_is_not_complete() {
    let site = Site::with_board("b").await;
    fill(&site.client, "b", (0..3_500).map(|n| json!({"subject": format!("s-{n}"), "amount": n + 1}))).await;
    let expected = pages(&site.client, "b").await;
    for (fault, code, detail) in [
        (Fault::Unreachable, "store_unreachable", "refused"),
        (Fault::TimedOut, "store_timeout", "nowhere:1"),
        (Fault::Backend, "internal", "internal error; the log"),
    ] {
        site.switch.fail_after_reads(fault, 2);
        let headers = [("accept", NDJSON), ("x-request-id", "export-7")];
        let answer = site.client.send_with(Method::GET, "/v1/boards/b/rankings", &headers, "").await;
        let (mut lines, end) = ndjson(&answer.text);
        assert_eq!((answer.status, &end["complete"], lines.len()), (200, &json!(false), 2_000), "{end}");
        let problem = &end["problem"];
        assert_eq!((&problem["code"], &problem["request_id"]), (&json!(code), &json!("export-7")), "{end}");
        assert!(problem["detail"].as_str().unwrap().contains(detail) && !end.to_string().contains("secret"), "{end}");
        // The rest can be read from where the export ended.
        site.switch.work();
        let path = format!("/v1/boards/b/rankings?cursor={}", end["next"].as_str().unwrap());
        lines.extend(complete(&get(&site.client, &path, NDJSON).await));
        assert!(lines == expected);

        // The end of CSV cannot say it, so there is none.
        site.switch.fail_after_reads(fault, 2);
        for path in ["/v1/boards/b/rankings", "/v1/boards/b/rankings?limit=2500"] {
            let response = begin(&site.client, path, CSV).await;
            assert_eq!(response.status(), 200);
            assert!(response.bytes().await.is_err());
            site.switch.fail_after_reads(fault, 2);
        }
        site.switch.work();
    }
}

#[actix_web::test]
async fn an_export_of_a_board_that_is_defined_again_ends() {
    let site = Site::with_board("b").await;
    for (again, accept) in [(false, NDJSON), (true, NDJSON), (true, CSV)] {
        fill_with_long_names(&site.client, "b", 20_000).await;
        let mut response = begin(&site.client, "/v1/boards/b/rankings", accept).await;
        let mut body = response.chunk().await.unwrap().unwrap().to_vec();
        site.client.delete("/v1/boards/b").await;
        if again {
            site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
            site.client.count("b", &["other"]).await;
        }
        let failed = loop {
            match response.chunk().await {
                Ok(Some(piece)) => body.extend(piece),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        assert_eq!(failed, accept == CSV);
        assert!(!String::from_utf8_lossy(&body).contains("other"), "the lines belong to one board");
        if accept == NDJSON {
            let (lines, end) = ndjson(&String::from_utf8(body).unwrap());
            let code = end["problem"]["code"].as_str().unwrap();
            // The next page may have been read before the board was defined again.
            assert!(code == "unknown_board" || again && code == "stale_cursor", "{end}");
            assert_eq!(end["complete"], false);
            assert_eq!((&end["next"], lines.len() < 20_000), (&Value::Null, true));
        }
        site.client.delete("/v1/boards/b").await;
        site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    }
}

/// Connects with a small buffer for what arrives and sends a request.
async fn connect(client: &Client, request: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.connect(&std::net::SocketAddr::from(([127, 0, 0, 1], client.port)).into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut stream = TcpStream::from_std(socket.into()).unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[actix_web::test]
async fn pages_are_read_as_the_client_takes_them() {
    let site = Site::with_board("b").await;
    // 20 pages of half a megabyte each, which is more than the buffers of the connection hold.
    fill_with_long_names(&site.client, "b", 20_000).await;
    for (encoding, most) in [("identity", 12), ("gzip", 21)] {
        let before = site.switch.calls();
        let request = format!(
            "GET /v1/boards/b/rankings HTTP/1.1\r\nhost: test\r\nconnection: close\r\naccept: {NDJSON}\r\naccept-encoding: \
             {encoding}\r\n\r\n"
        );
        let mut stream = connect(&site.client, &request).await;
        // It has stopped when there was no call for some time.
        let mut calls = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = site.switch.calls() - before;
            if now > 0 && now == calls {
                break;
            }
            calls = now;
        }
        assert!(calls < most, "{encoding}: {calls} calls");
        // Meanwhile others are served, and the rest comes when the client goes on reading.
        assert_eq!(site.client.get("/v1/boards/b/rankings?limit=1").await.status, 200);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.ends_with(b"\r\n0\r\n\r\n"), "{encoding}: the end of a chunked body");
        let calls = site.switch.calls() - before;
        assert!((20..=22).contains(&calls), "{encoding}: {calls} calls for 20 pages, and one for the look in between");
    }
}

#[actix_web::test]
async fn an_export_ends_when_its_client_is_gone() {
    let site = Site::with_board("b").await;
    fill_with_long_names(&site.client, "b", 20_000).await;
    let mut response = begin(&site.client, "/v1/boards/b/rankings", CSV).await;
    response.chunk().await.unwrap();
    drop(response);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = site.switch.calls();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(site.switch.calls(), before);
}

#[actix_web::test]
async fn head_reads_one_page_and_sends_nothing() {
    let site = Site::with_board("b").await;
    fill(&site.client, "b", (0..5_000).map(|n| json!({"subject": format!("s-{n}")}))).await;
    for encoding in ["identity", "gzip", "br", "zstd"] {
        let before = site.switch.calls();
        let head = format!(
            "HEAD /v1/boards/b/rankings HTTP/1.1\r\nhost: test\r\naccept: {NDJSON}\r\naccept-encoding: {encoding}\r\n\r\n"
        );
        // What follows on the same connection shows that nothing was sent after the head.
        let next = "GET /v1/boards/b/rankings?limit=1 HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
        let answer = site.client.raw(format!("{head}{next}").as_bytes()).await.to_lowercase();
        let (head, rest) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("http/1.1 200") && rest.starts_with("http/1.1 200"), "{answer}");
        assert!(head.contains(&format!("content-type: {NDJSON}")), "{head}");
        assert!(head.contains(&format!("rolltop-as-of: {}", START.to_lowercase())), "{head}");
        assert_eq!(head.contains(&format!("content-encoding: {encoding}")), encoding != "identity", "{head}");
        assert_eq!(site.switch.calls() - before, 2, "one page for each request");
    }
    let missing = site.client.send_with(Method::HEAD, "/v1/boards/x/rankings", &[("accept", CSV)], "").await;
    assert_eq!(missing.status, 404);
}

#[actix_web::test]
async fn exports_are_compressed_as_the_client_prefers() {
    let site = Site::with_board("b").await;
    fill(&site.client, "b", (0..3_500).map(|n| json!({"subject": format!("post-{n}"), "amount": n % 99 + 1}))).await;
    let path = "/v1/boards/b/rankings";
    for accept in [NDJSON, CSV] {
        let plain = get(&site.client, path, accept).await;
        assert_eq!(plain.header("content-encoding"), "");
        for coding in ["gzip", "br", "zstd"] {
            let headers = [("accept", accept), ("accept-encoding", coding)];
            let answer = site.client.send_with(Method::GET, path, &headers, "").await;
            assert_eq!((answer.status, answer.header("content-encoding")), (200, coding));
            assert_eq!(answer.header("content-type"), plain.header("content-type"));
            assert!(answer.bytes.len() * 3 < plain.bytes.len(), "{coding}: {}", answer.bytes.len());
            let mut text = String::new();
            let bytes = &answer.bytes[..];
            match coding {
                "gzip" => GzipDecoder::new(bytes).read_to_string(&mut text).await,
                "br" => BrotliDecoder::new(bytes).read_to_string(&mut text).await,
                _ => ZstdDecoder::new(bytes).read_to_string(&mut text).await,
            }
            .unwrap();
            assert!(text == plain.text, "{coding}");
        }
    }
    // An error cuts a compressed CSV off as well.
    site.switch.fail_after_reads(Fault::Overloaded, 2);
    let url = format!("http://127.0.0.1:{}{path}", site.client.port);
    let request = reqwest::Client::new().get(url).header("accept", CSV).header("accept-encoding", "zstd");
    assert!(request.send().await.unwrap().bytes().await.is_err());
}

/// Characters at which some readers of lines split, such as `splitlines` of Python.
#[actix_web::test]
async fn a_subject_never_ends_a_line() {
    let site = Site::with_board("b").await;
    let subjects = ["a\u{2028}b", "c\u{2029}d", "\u{2028}", "caf\u{e9} \u{65e5}"];
    site.client.count("b", &subjects).await;
    let export = get(&site.client, "/v1/boards/b/rankings", NDJSON).await;
    let is_end = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let lines: Vec<&str> = export.text.split_terminator(is_end).collect();
    assert_eq!(lines.len(), subjects.len() + 1, "{}", export.text);
    let read = complete(&export);
    for subject in subjects {
        assert!(read.iter().any(|line| line["subject"] == subject), "{subject:?} in {read:?}");
    }
}

#[actix_web::test]
async fn exports_that_begin_together_are_read_in_turns() {
    let site = Site::with_board("b").await;
    fill(&site.client, "b", (0..3_500).map(|n| json!({"subject": format!("s-{n}"), "amount": n + 1}))).await;
    let expected = pages(&site.client, "b").await;
    site.switch.slow_pages();
    let answers = join_all((0..40).map(|_| get(&site.client, "/v1/boards/b/rankings", NDJSON))).await;
    assert!(answers.iter().all(|answer| complete(answer) == expected));
    let most = site.switch.most_pages();
    assert!(most < 20, "{most} pages were read at the same time");
}

#[actix_web::test]
async fn clients_that_stop_reading_take_no_turns() {
    let site = Site::with_board("b").await;
    fill_with_long_names(&site.client, "b", 20_000).await;
    let request = format!("GET /v1/boards/b/rankings HTTP/1.1\r\nhost: test\r\naccept: {NDJSON}\r\n\r\n");
    let stalled = join_all((0..20).map(|_| connect(&site.client, &request))).await;
    assert_eq!(complete(&get(&site.client, "/v1/boards/b/rankings", NDJSON).await).len(), 20_000);
    drop(stalled);
}
