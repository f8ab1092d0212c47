//! Caching, compression and request ids, which all operations share.

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, GzipEncoder, ZstdDecoder, ZstdEncoder};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::client::{Answer, Client};
use crate::site::Site;

/// Sends a request with these headers. Returns the answer with its body as bytes.
async fn send(
    client: &Client,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> (Answer, Vec<u8>) {
    let answer = client.send_with(method, path, headers, body).await;
    let bytes = answer.bytes.clone();
    (answer, bytes)
}

async fn get(client: &Client, path: &str, headers: &[(&str, &str)]) -> (Answer, Vec<u8>) {
    send(client, Method::GET, path, headers, Vec::new()).await
}

/// Returns the text compressed with a coding of requests.
async fn compressed(coding: &str, text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match coding {
        "gzip" => GzipEncoder::new(text).read_to_end(&mut bytes).await,
        _ => ZstdEncoder::new(text).read_to_end(&mut bytes).await,
    }
    .unwrap();
    bytes
}

const JSON: (&str, &str) = ("content-type", "application/json");
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

#[actix_web::test]
async fn a_poll_gets_304_until_something_changes() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b"]).await;
    for path in [
        "/v1/boards/b/rankings",
        "/v1/boards/b/subjects/a",
        "/v1/boards/b/subjects/a/window",
        "/v1/boards/b/subjects/a/neighbors",
        "/v1/boards/b",
    ] {
        let (first, _) = get(&site.client, path, &[]).await;
        assert_eq!((first.status, first.header("cache-control")), (200, "no-cache"), "{path}");
        assert!(first.header("vary").contains("Accept-Encoding"), "{first:?}");
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with("W/\""), "{path}: {tag}");
        // Only the time differs.
        site.client.set_clock("2026-01-02T10:07:30Z").await;
        for method in [Method::GET, Method::HEAD] {
            let (second, body) =
                send(&site.client, method, path, &[("if-none-match", &format!("\"x\", {tag}"))], vec![]).await;
            assert_eq!((second.status, body.len(), second.header("etag")), (304, 0, tag.as_str()), "{path}");
            let as_of = second.header("rolltop-as-of").to_owned();
            assert_eq!(as_of, get(&site.client, path, &[]).await.0.body["as_of"], "{path}");
        }
        site.client.count("b", &["a", path]).await;
        let (third, _) = get(&site.client, path, &[("if-none-match", &tag)]).await;
        assert_eq!(third.status, 200, "{path}");
        assert_ne!(third.header("etag"), tag, "{path}");
    }
    let head = send(&site.client, Method::HEAD, "/v1/boards/b", &[], vec![]).await.0;
    assert_eq!((head.status, head.header("etag").is_empty()), (200, false));
    // The window moves without any change of a score.
    let tag = get(&site.client, "/v1/boards/b/rankings", &[]).await.0.header("etag").to_owned();
    site.client.set_clock("2026-01-02T11:00:00Z").await;
    assert_eq!(get(&site.client, "/v1/boards/b/rankings", &[("if-none-match", &tag)]).await.0.status, 200);
}

#[actix_web::test]
async fn the_age_of_responses_is_configured_and_problems_are_never_stored() {
    let site = Site::with(|options| {
        options.max_age = std::time::Duration::from_secs(2);
        options.max_ages = vec![(rolltop::board::BoardName::parse("fast").unwrap(), std::time::Duration::from_secs(9))];
    })
    .await;
    for board in ["b", "fast"] {
        site.client.define(board, "COUNT(24h, like, post_id)", "1h").await;
    }
    for (path, expected) in [
        ("/v1/boards/b/rankings", "max-age=2"),
        ("/v1/boards/fast/rankings", "max-age=9"),
        ("/v1/boards", "max-age=2"),
        ("/v1/boards/unknown", "no-store"),
        ("/v1/boards/b/rankings?limit=x", "no-store"),
        ("/nothing", "no-store"),
        ("/readyz", "no-store"),
        ("/healthz", "no-store"),
        ("/metrics", "no-store"),
    ] {
        assert_eq!(site.client.get(path).await.header("cache-control"), expected, "{path}");
    }
}

#[actix_web::test]
async fn large_responses_are_compressed_as_the_client_prefers() {
    let site = Site::with_board("b").await;
    let subjects: Vec<String> = (0..200).map(|n| format!("post-{n:04}")).collect();
    site.client.count("b", &subjects.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let path = "/v1/boards/b/rankings?limit=200";
    let (plain, plain_bytes) = get(&site.client, path, &[]).await;
    assert_eq!((plain.header("content-encoding"), plain_bytes.len() > 5_000), ("", true));
    for coding in ["gzip", "br", "zstd"] {
        let (answer, bytes) = get(&site.client, path, &[("accept-encoding", coding)]).await;
        assert_eq!((answer.status, answer.header("content-encoding")), (200, coding));
        assert_eq!(answer.header("etag"), plain.header("etag"), "weak tags ignore the coding");
        assert!(bytes.len() * 3 < plain_bytes.len(), "{coding}: {} of {}", bytes.len(), plain_bytes.len());
        let mut text = Vec::new();
        match coding {
            "gzip" => GzipDecoder::new(&bytes[..]).read_to_end(&mut text).await,
            "br" => BrotliDecoder::new(&bytes[..]).read_to_end(&mut text).await,
            _ => ZstdDecoder::new(&bytes[..]).read_to_end(&mut text).await,
        }
        .unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), plain.body, "{coding}");
    }
    for (path, accept) in [(path, "identity"), (path, "deflate"), ("/v1/boards/b/rankings?limit=1", "gzip")] {
        let (answer, _) = get(&site.client, path, &[("accept-encoding", accept)]).await;
        assert_eq!((answer.status, answer.header("content-encoding")), (200, ""), "{path} {accept}");
    }
    let (metrics, _) = get(&site.client, "/metrics", &[("accept-encoding", "gzip")]).await;
    let headers = ["content-encoding", "etag", "cache-control"].map(|name| metrics.header(name));
    assert_eq!(headers, ["gzip", "", "no-store"]);
}

#[actix_web::test]
async fn request_bodies_may_be_compressed() {
    let site = Site::with_board("b").await;
    let path = "/v1/boards/b/increments";
    let lines: String = (0..20_000).map(|n| format!("{{\"subject\":\"s-{}\"}}\n", n % 100)).collect();
    for (round, coding) in (1..).zip(["gzip", "zstd"]) {
        let body = compressed(coding, br#"{"subject":"one"}"#).await;
        let (answer, _) = send(&site.client, Method::POST, path, &[JSON, ("content-encoding", coding)], body).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{coding}: {answer:?}");
        let stream = compressed(coding, lines.as_bytes()).await;
        // Two members in a row are one body.
        let twice = [stream.clone(), stream.clone()].concat();
        let (answer, _) = send(&site.client, Method::POST, path, &[NDJSON, ("content-encoding", coding)], twice).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(40_000)), "{coding}: {answer:?}");
        assert_eq!(site.client.score("b", "s-7").await, 400 * round);
        // A body that is cut off, and one that is not compressed at all.
        let cut = stream[..stream.len() / 2].to_vec();
        for body in [cut, lines.clone().into_bytes()] {
            let (answer, _) =
                send(&site.client, Method::PUT, "/v1/boards/c", &[JSON, ("content-encoding", coding)], body).await;
            assert_eq!(answer.refusal(), (400, "incomplete_body"), "{coding}");
        }
    }
    let (answer, _) = send(&site.client, Method::POST, path, &[JSON, ("content-encoding", "br")], b"{}".to_vec()).await;
    assert_eq!(answer.refusal(), (415, "unsupported_media_type"));
}

#[actix_web::test]
async fn a_body_that_decompresses_to_too_much_is_refused() {
    let site = Site::with(|options| options.max_body = 10_000).await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    let path = "/v1/boards/b/increments";
    let blank = vec![b'\n'; 64 << 20];
    for coding in ["gzip", "zstd"] {
        let bomb = compressed(coding, &blank).await;
        assert!(bomb.len() < 100_000);
        for kind in [JSON, NDJSON] {
            let headers = [kind, ("content-encoding", coding)];
            let (answer, _) = send(&site.client, Method::POST, path, &headers, bomb.clone()).await;
            assert_eq!(answer.refusal(), (413, "too_large"), "{coding} {kind:?}");
        }
    }
    // The lines before the excess count.
    let lines = ["{\"subject\":\"a\"}\n".repeat(3).into_bytes(), blank].concat();
    let headers = [NDJSON, ("content-encoding", "gzip")];
    let (answer, _) = send(&site.client, Method::POST, path, &headers, compressed("gzip", &lines).await).await;
    assert_eq!((answer.refusal(), &answer.body["accepted"]), ((413, "too_large"), &json!(3)));
    assert_eq!(site.client.score("b", "a").await, 3);
}

#[actix_web::test]
async fn compressed_bodies_are_bounded_in_memory_and_in_what_is_received() {
    let site = Site::with(|options| options.max_body = 10_000).await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    let path = "/v1/boards/b/increments";
    // A window of 16 MiB, which the decoder would keep for as long as the stream is open.
    let mut body = Vec::new();
    let window = [async_compression::zstd::CParameter::window_log(24)];
    let level = async_compression::Level::Default;
    let line = "{\"subject\":\"a\"}\n".repeat(2_000_000);
    let mut encoder = ZstdEncoder::with_quality_and_params(line.as_bytes(), level, &window);
    encoder.read_to_end(&mut body).await.unwrap();
    let (answer, _) = send(&site.client, Method::POST, path, &[NDJSON, ("content-encoding", "zstd")], body).await;
    assert_eq!(answer.refusal(), (400, "incomplete_body"));
    // Members without content decompress to nothing.
    let empty = compressed("gzip", b"").await.repeat(1_000);
    let (answer, _) = send(&site.client, Method::POST, path, &[JSON, ("content-encoding", "gzip")], empty).await;
    assert_eq!(answer.refusal(), (413, "too_large"));
}

#[actix_web::test]
async fn a_compressed_stream_is_not_idle_while_bytes_arrive() {
    let site = Site::with(|options| options.stream_idle_timeout = std::time::Duration::from_millis(300)).await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    // The decoder has no output before the block is complete.
    let lines: String = (0..200).map(|n| format!("{{\"subject\":\"s-{n}\"}}\n")).collect();
    let body = compressed("zstd", lines.as_bytes()).await;
    let pieces: Vec<Vec<u8>> = body.chunks(body.len().div_ceil(8)).map(<[u8]>::to_vec).collect();
    let slow = futures_util::stream::unfold(pieces.into_iter(), |mut pieces| async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        pieces.next().map(|piece| (Ok::<_, std::io::Error>(piece), pieces))
    });
    let response = reqwest::Client::new()
        .post(format!("http://127.0.0.1:{}/v1/boards/b/increments", site.client.port))
        .header("content-type", "application/x-ndjson")
        .header("content-encoding", "zstd")
        .body(reqwest::Body::wrap_stream(slow));
    let response = response.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.json::<Value>().await.unwrap()["accepted"], 200);
}

#[actix_web::test]
async fn every_response_has_a_request_id() {
    let site = Site::with_board("b").await;
    for path in ["/v1/boards/b", "/v1/boards/unknown", "/nothing", "/healthz", "/v1/boards/b/rankings?limit=x"] {
        let (answer, _) = get(&site.client, path, &[("x-request-id", "trace-7/2")]).await;
        assert_eq!(answer.header("x-request-id"), "trace-7/2", "{path}");
        let (answer, _) = get(&site.client, path, &[]).await;
        let id = answer.header("x-request-id");
        assert_eq!(id.len(), 16, "{path}: {answer:?}");
        if answer.status >= 400 {
            assert_eq!(answer.body["request_id"], id, "{path}");
        }
        let (answer, _) = get(&site.client, path, &[("x-request-id", "two words")]).await;
        assert_eq!(answer.header("x-request-id").len(), 16, "{path}");
    }
}

#[actix_web::test]
async fn pages_of_allowed_origins_may_use_all_headers() {
    let site = Site::with(|options| options.cors_origins = vec!["https://app.example".to_owned()]).await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    let origin = ("origin", "https://app.example");
    for header in [
        "content-type",
        "content-encoding",
        "if-none-match",
        "idempotency-key",
        "x-request-id",
        "last-event-id",
        "traceparent",
    ] {
        let headers = [origin, ("access-control-request-method", "POST"), ("access-control-request-headers", header)];
        let (answer, _) = send(&site.client, Method::OPTIONS, "/v1/boards/b/rankings", &headers, vec![]).await;
        assert_eq!(answer.status, 200, "{header}: {answer:?}");
        assert!(answer.header("access-control-allow-headers").to_lowercase().contains(header), "{header}: {answer:?}");
    }
    let (answer, _) = get(&site.client, "/v1/boards/b/rankings", &[origin]).await;
    let exposed = answer.header("access-control-expose-headers").to_lowercase();
    for header in ["etag", "x-request-id", "rolltop-as-of", "rolltop-interval", "retry-after", "location"] {
        assert!(exposed.contains(header), "{header}: {exposed}");
    }
    let vary: Vec<_> = answer.headers.get_all("vary").iter().map(|value| value.to_str().unwrap()).collect();
    let vary = vary.join(", ");
    assert!(vary.contains("Origin") && vary.contains("Accept-Encoding"), "{vary}");
}
