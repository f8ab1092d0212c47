//! Increments as a stream.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::failing_store::Fault;
use crate::site::Site;
use crate::waiting::Wait;

/// A body that arrives in pieces of this size, cut anywhere.
fn in_pieces(text: &str, size: usize) -> Body {
    let pieces: Vec<std::io::Result<Bytes>> =
        text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Body::wrap_stream(stream::iter(pieces))
}

#[actix_web::test]
async fn a_stream_of_a_hundred_thousand_lines_with_invalid_ones() {
    let site = Site::with_board("b").await;
    let mut text = String::new();
    for line in 1..=100_000_u32 {
        match line {
            50_000 => text.push_str("{\"subject\":\n"),
            50_001 => text.push('\n'),
            50_002 => text.push_str("{\"subject\":\"p\",\"at\":\"2020-01-01T00:00:00Z\"}\n"),
            50_003 => text.push_str(&format!("{{\"subject\":\"{}\"}}\n", "x".repeat(70_000))),
            50_004 => text.push_str("[]\n"),
            50_005 => text.push_str("{\"subject\":\"p\",\"amuont\":1}\n"),
            50_006 => text.push_str("{\"subject\":\"\u{7f}\"}\n"),
            _ => text.push_str(&format!("{{\"subject\":\"post-{}\"}}\n", line % 100)),
        }
    }
    let answer = site.client.ndjson("b", in_pieces(text.trim_end(), 7_919)).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(99_993)), "{}", answer.text);
    let rejected = answer.body["rejected"].as_array().unwrap();
    let named: Vec<_> = rejected.iter().map(|r| (r["line"].clone(), r["code"].clone())).collect();
    let expected = [
        (50_000, "malformed_line"),
        (50_002, "too_late"),
        (50_003, "line_too_long"),
        (50_004, "malformed_line"),
        (50_005, "unknown_field"),
        (50_006, "invalid_subject"),
    ];
    assert_eq!(named, expected.map(|(line, code)| (json!(line), json!(code))));
    assert!(rejected.iter().all(|r| r.get("index").is_none()), "{rejected:?}");
    let page = site.client.get("/v1/boards/b/rankings?limit=1000").await;
    let counted: u64 = page.body["items"].as_array().unwrap().iter().map(|line| line["score"].as_u64().unwrap()).sum();
    assert_eq!((counted, &page.body["total"]), (99_993, &json!(100)));
}

#[actix_web::test]
async fn lines_received_before_a_disconnect_are_counted() {
    let site = Site::with_board("b").await;
    let mut stream = TcpStream::connect(("127.0.0.1", site.client.port)).await.unwrap();
    let head = "POST /v1/boards/b/increments HTTP/1.1\r\nhost: test\r\ncontent-type: application/x-ndjson\r\n\
                content-length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all("{\"subject\":\"a\"}\n".repeat(3_000).as_bytes()).await.unwrap();
    stream.write_all(b"{\"subject\":\"cut o").await.unwrap();
    stream.flush().await.unwrap();
    // A slow stream counts as it trickles in: before its end, and before a portion is full.
    let wait = Wait::begin("3,000 lines of an unfinished stream to count");
    loop {
        let score = site.client.score("b", "a").await;
        if score == 3_000 {
            break;
        }
        wait.rest(score).await;
    }
    drop(stream);
    assert_eq!(site.client.score("b", "a").await, 3_000);
    assert_eq!(site.client.get("/v1/boards/b/rankings").await.body["total"], 1);
}

#[actix_web::test]
async fn a_stream_that_the_store_fails_says_how_many_lines_were_sent() {
    let site = Site::with_board("b").await;
    site.switch.fail_after_writes(Fault::Unreachable, 3);
    let text = "{\"subject\":\"a\"}\nnot json\n".repeat(10_000);
    let answer = site.client.ndjson("b", text).await;
    assert_eq!(answer.refusal(), (503, "store_unreachable"));
    assert_eq!(answer.header("retry-after"), "1");
    let through = answer.body["counted_through"].as_u64().unwrap();
    // Every other line is an increment; all of them up to the line have counted, and none was lost or doubled.
    assert_eq!(answer.body["accepted"].as_u64().unwrap(), through.div_ceil(2), "{answer:?}");
    assert!((1..=3_000).contains(&through), "{answer:?}");
}

/// A client that sends all before it reads must neither wait forever nor keep the connection.
#[actix_web::test]
async fn the_connection_of_a_refused_stream_is_closed_however_fast_its_client_sends() {
    let site = Site::with_board("b").await;
    for size in [300, 3_000, 16_000] {
        site.switch.fail_after_writes(Fault::Unreachable, 3);
        let mut stream = TcpStream::connect(("127.0.0.1", site.client.port)).await.unwrap();
        let head = "POST /v1/boards/b/increments HTTP/1.1\r\nhost: test\r\ncontent-type: application/x-ndjson\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let lines = "{\"subject\":\"a\"}\n".repeat(size);
        let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
        let sending = async { while stream.write_all(chunk.as_bytes()).await.is_ok() {} };
        let ended = tokio::time::timeout(Duration::from_secs(60), sending).await;
        assert!(ended.is_ok(), "{size}: the connection is neither read nor closed");
    }
}

#[actix_web::test]
async fn unusual_streams() {
    let site = Site::with_board("b").await;
    for (text, accepted, rejected) in [
        ("", 0, 0),
        ("\n\n  \r\n", 0, 0),
        ("{\"subject\":\"a\"}", 1, 0),
        ("\u{feff}{\"subject\":\"a\"}\r\n{\"subject\":\"a\"}\r\n", 2, 0),
        ("{\"subject\":\"a\"}{\"subject\":\"a\"}\n", 0, 1),
        ("{\"increments\":[{\"subject\":\"a\"}]}\n", 0, 1),
    ] {
        let answer = site.client.ndjson("b", text).await;
        let got = (answer.status, &answer.body["accepted"], answer.body["rejected"].as_array().unwrap().len());
        assert_eq!(got, (200, &json!(accepted), rejected), "{text:?}: {answer:?}");
    }
    let path = "/v1/boards/b/increments?return=score";
    let answer = site.client.send(reqwest::Method::POST, path, Some("application/x-ndjson"), "{}").await;
    assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("return")));
}
