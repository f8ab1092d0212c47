//! The memory of request bodies in progress: one bound for all of them, and a share of it for each client.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::site::Site;

const MB: usize = 1 << 20;
const INCREMENTS: &str = "/v1/boards/b/increments";

/// A site whose bodies may take 8 MB, of one client 4 MB.
async fn site() -> Site {
    let site = Site::with(|options| {
        options.max_body = 2 * MB;
        options.body_memory = 8 * MB;
    })
    .await;
    assert_eq!(site.client.define("b", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    site
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut compressed = vec![0; zstd_safe::compress_bound(text.len())];
    let len = zstd_safe::compress(&mut compressed[..], text, 3).expect("compressed");
    compressed.truncate(len);
    compressed
}

/// Sends the beginning of a request from an address of this machine.
async fn begin(site: &Site, from: Ipv4Addr, kind: &str, coding: &str, body: &[u8], len: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(SocketAddr::from(([127, 0, 0, 1], site.client.port))).await.unwrap();
    let head = format!(
        "POST {INCREMENTS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n{coding}content-length: {len}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    stream
}

/// Reads the head of an answer, and as much of the body as comes with it.
async fn answer(mut stream: TcpStream) -> (TcpStream, String) {
    let mut bytes = vec![0; 4_096];
    let mut text = String::new();
    while !text.contains("\r\n\r\n") {
        let len = stream.read(&mut bytes).await.unwrap();
        assert!(len > 0, "a connection ended without an answer: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..len]));
    }
    (stream, text)
}

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Sends bodies that never end. Returns the streams of those that are not answered, after the others were refused.
async fn unfinished(site: &Site, kind: &str, coding: &str, body: &[u8], count: usize, kept: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(begin(site, HERE, kind, coding, body, 10 * MB).await);
    }
    // Which of them are kept depends on the order in which the threads of the server read them.
    let mut answers: FuturesUnordered<_> = open
        .iter_mut()
        .map(|stream| async {
            stream.readable().await.unwrap();
            let mut bytes = [0; 2_048];
            let len = stream.read(&mut bytes).await.unwrap();
            String::from_utf8_lossy(&bytes[..len]).into_owned()
        })
        .collect();
    for _ in kept..count {
        let text = answers.next().await.expect("an answer").to_lowercase();
        assert!(text.starts_with("http/1.1 503 "), "{text}");
        assert!(text.contains("\r\nretry-after: ") && text.contains("\"code\":\"overloaded\""), "{text}");
    }
    drop(answers);
    open
}

/// A megabyte of spaces is some bytes when it is compressed.
#[actix_web::test]
async fn compressed_bodies_that_do_not_end_are_refused_beyond_the_memory() {
    let site = site().await;
    let spaces = zstd(&vec![b' '; MB]);
    assert!(spaces.len() < 1_000);
    for kind in ["application/json", "application/x-ndjson"] {
        // Each takes more than a megabyte, and they may take four.
        let kept = 3;
        let open = unfinished(&site, kind, "content-encoding: zstd\r\n", &spaces, 20, kept).await;
        // Small requests do not need that memory, and another client has a share.
        site.client.count("b", &["a"]).await;
        let body = format!("{{\"subject\":\"a\"{}}}", " ".repeat(MB));
        let stream = begin(&site, ELSEWHERE, "application/json", "", body.as_bytes(), body.len()).await;
        let (_, text) = answer(stream).await;
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        drop(open);
        has_room(&site, &body).await;
    }
}

#[actix_web::test]
async fn bodies_that_are_not_compressed_count_too() {
    let site = site().await;
    let spaces = vec![b' '; MB];
    let open = unfinished(&site, "application/json", "", &spaces, 12, 4).await;
    drop(open);
    has_room(&site, &format!("{{\"subject\":\"a\"{}}}", " ".repeat(MB))).await;
}

/// Waits until a large body is accepted: the server needs a moment to notice that connections are closed.
async fn has_room(site: &Site, body: &str) {
    for _ in 0..1_000 {
        let answer =
            site.client.send(reqwest::Method::POST, INCREMENTS, Some("application/json"), body.to_owned()).await;
        if answer.status == 200 {
            return;
        }
        assert_eq!(answer.refusal(), (503, "overloaded"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the memory of closed connections is not free");
}

/// A list of short items takes many times as much memory as its text.
#[actix_web::test]
async fn a_body_counts_with_what_it_is_parsed_into() {
    let site = site().await;
    let items = vec!["{\"subject\":\"a\"}"; 20_000].join(",");
    let body = format!("{{\"increments\":[{items}]}}");
    assert!(body.len() < MB);
    let answer = site.client.send(reqwest::Method::POST, INCREMENTS, Some("application/json"), body).await;
    assert_eq!(answer.refusal(), (413, "too_large"), "{answer:?}");
    assert!(answer.body["detail"].as_str().unwrap().contains("divide the items"), "{answer:?}");
    // As a stream they take no more than a few portions.
    let lines = "{\"subject\":\"a\"}\n".repeat(20_000);
    let answer = site.client.ndjson("b", lines).await;
    assert_eq!(answer.body["accepted"], 20_000, "{answer:?}");
}

/// A busy worker gets a megabyte of lines in few pieces, and they are not parsed all at once. While the store is
/// behind, parsed lines take all the memory that one client may have, and the stream is read only as they are counted.
#[actix_web::test]
async fn a_stream_takes_little_memory_however_large_its_pieces_are() {
    for memory in [4 * MB, 2 * MB] {
        let site = Site::with(|options| options.body_memory = memory).await;
        assert_eq!(site.client.define("b", "COUNT(24h, like, post_id)", "1h").await.status, 201);
        for _ in 0..4 {
            let answer = site.client.ndjson("b", "{\"subject\":\"a\"}\n".repeat(60_000)).await;
            assert_eq!(answer.body["accepted"], 60_000, "{memory}: {answer:?}");
        }
    }
}

#[actix_web::test]
async fn zstd_bodies_of_several_frames_are_read_and_cut_ones_refused() {
    let site = site().await;
    let lines: Vec<String> = (0..3).map(|n| format!("{{\"subject\":\"a\",\"amount\":{n}}}\n").repeat(1_000)).collect();
    let frames: Vec<u8> = lines.iter().flat_map(|text| zstd(text.as_bytes())).collect();
    let headers = [("content-type", "application/x-ndjson"), ("content-encoding", "zstd")];
    let post = |body: Vec<u8>| site.client.send_with(reqwest::Method::POST, INCREMENTS, &headers, body);
    assert_eq!(post(frames.clone()).await.body["accepted"], 3_000);
    for len in [0, 1, 10, frames.len() - 1] {
        assert_eq!(post(frames[..len].to_vec()).await.refusal(), (400, "incomplete_body"), "{len}");
    }
    assert_eq!(post(b"not compressed".to_vec()).await.refusal(), (400, "incomplete_body"));
}
