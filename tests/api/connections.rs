//! What holds for the requests of one connection, and for requests that no operation sees.

use crate::site::Site;

/// A request that counts a subject once.
fn count(subject: &str, version: &str, connection: &str) -> String {
    let body = format!("{{\"subject\":\"{subject}\"}}");
    format!(
        "POST /v1/boards/b/increments HTTP/{version}\r\nhost: localhost\r\n{connection}content-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What the server reads ahead is not executed after the last request of a connection.
#[actix_web::test]
async fn no_request_is_executed_after_one_that_ends_the_connection() {
    let site = Site::with_board("b").await;
    for (at, (version, connection)) in
        [("1.1", "connection: close\r\n"), ("1.1", "Connection: Close\r\n"), ("1.0", "")].into_iter().enumerate()
    {
        let (last, after) = (format!("last-{at}"), format!("after-{at}"));
        let requests = [count(&last, version, connection), count(&after, "1.1", ""), count(&after, "1.1", "")].concat();
        // The server closes the connection.
        let answer = site.client.raw(requests.as_bytes()).await.to_lowercase();
        // The library answers in the version of the newest request that it has read.
        assert!(answer.starts_with("http/1.") && answer[8..].starts_with(" 200 "), "{answer}");
        let first = answer.split("\r\n\r\n").next().unwrap();
        assert!(version == "1.0" || first.contains("\r\nconnection: close"), "{answer}");
        assert_eq!(site.client.score("b", &last).await, 1, "{answer}");
        assert_eq!(site.client.score("b", &after).await, 0, "{answer}");
        assert_eq!(answer.matches("\"accepted\":1").count(), 1, "{answer}");
        // The next response says that the others were not executed.
        assert_eq!(answer.matches("\"code\":\"connection_ended\"").count(), 2, "{answer}");
    }
}

#[actix_web::test]
async fn requests_of_a_connection_that_stays_open_are_all_executed() {
    let site = Site::with_board("b").await;
    let requests = [
        count("a", "1.1", ""),
        count("a", "1.1", "connection: keep-alive\r\n"),
        count("a", "1.1", "connection: close\r\n"),
    ];
    let answer = site.client.raw(requests.concat().as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 3, "{answer}");
    assert_eq!(site.client.score("b", "a").await, 3);
}

#[actix_web::test]
async fn a_path_that_is_too_long_is_a_problem_with_a_request_id() {
    let site = Site::with_board("b").await;
    for path in [format!("/v1/boards/b/subjects/{}", "a".repeat(9_000)), format!("/?{}", "a=1&".repeat(8_000))] {
        let answer = site.client.get(&path).await;
        assert_eq!(answer.refusal(), (414, "uri_too_long"));
        assert_eq!(answer.body["limit"], 8_192);
        assert_eq!(answer.body["request_id"], answer.header("x-request-id"));
    }
    // The longest subject there is, percent-encoded as a whole, is not.
    let longest = "%61".repeat(512);
    assert_eq!(site.client.get(&format!("/v1/boards/b/subjects/{longest}")).await.status, 200);
}

/// What the HTTP library answers itself. docs/api.md lists it.
#[actix_web::test]
async fn requests_that_are_not_http_are_answered_by_status_alone() {
    let site = Site::new().await;
    let headers: String = (0..120).map(|n| format!("x-{n}: 1\r\n")).collect();
    for (request, status) in [
        ("GET /healthz HTTP/1.1\r\nhost localhost\r\n\r\n".to_owned(), "400"),
        ("NO HTTP\r\n\r\n".to_owned(), "400"),
        (format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(66_000)), "400"),
        (format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n"), "431"),
        (format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "a".repeat(140_000)), "431"),
    ] {
        let answer = site.client.raw(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
        assert!(!answer.contains("problem+json"), "then docs/api.md has to say so: {answer}");
    }
}
