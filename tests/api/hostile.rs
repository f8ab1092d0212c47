//! Nothing a client sends gives a 500, or an answer that the description does not have.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reqwest::Method;
use rolltop::http::{openapi, registered};
use serde_json::Value;

use crate::site::Site;

/// Something to send to some operation.
#[derive(Clone, Debug)]
struct Hostile {
    operation: usize,
    board: String,
    subject: String,
    query: String,
    kind: Option<&'static str>,
    accept: &'static str,
    body: Vec<u8>,
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let json = prop_oneof![
        Just("null".to_owned()),
        "[-+0-9.eE]{1,8}",
        r#""[a-z\\/u0-9]{0,8}""#,
        Just("\"2026-01-02T10:00:00Z\"".to_owned()),
        Just("\"COUNT(24h, a, b)\"".to_owned()),
        Just("\"1h\"".to_owned()),
        Just("\"like\"".to_owned()),
        Just("\"b\"".to_owned()),
        Just("\"COUNT(24h, like, post_id) > 3 * amount\"".to_owned()),
        Just("\"weighted\"".to_owned()),
        Just("{\"board\":\"b\",\"subject\":\"x\"}".to_owned()),
        Just("true".to_owned()),
    ];
    let key = prop_oneof![
        Just("subject"),
        Just("by"),
        Just("keys"),
        Just("limit"),
        Just("amount"),
        Just("at"),
        Just("id"),
        Just("increments"),
        Just("subjects"),
        Just("now"),
        Just("metric"),
        Just("slot"),
        Just("decimals"),
        Just("timezone"),
        Just("order"),
        Just("cover"),
        Just("type"),
        Just("fields"),
        Just("events"),
        Just("post_id"),
        Just("samples"),
        Just("value"),
        Just("sum"),
        Just("count"),
        Just("retract"),
        Just("ranked"),
        Just("keep"),
        Just("mode"),
        Just("min_samples"),
        Just("max_values"),
        Just("shards"),
        Just("stamp"),
        Just("rule"),
        Just("rules"),
        Just("name"),
        Just("record"),
        Just("queries"),
        Just("board"),
        Just("last"),
        Just("from"),
        Just("as_of"),
        Just("edge"),
        Just("hop"),
        Just("to"),
        Just("most"),
        Just("x"),
    ];
    let json = json.prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|fields| {
                let fields: Vec<_> = fields.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    });
    let body = prop_oneof![prop::collection::vec(any::<u8>(), 0..200), json.prop_map(String::into_bytes)];
    let part = "([a-z0-9]|%[0-9a-fA-F]{2}|%[a-z]|[-._~!$&'()*+,;=:@{}]){1,12}";
    let query = "((limit|offset|cursor|by|all_keys|last|from|as_of|edge|radius|repair|dry_run|return|x)=([0-9]{1,22}|[0-9]{1,11}[smhdw]|true|score|weighted|%[0-9A-F]{2}|[-a-z]{0,5})&?){0,3}";
    let kind = prop::sample::select(vec![None, Some("application/json"), Some("application/x-ndjson"), Some("text/x")]);
    let accept =
        prop::sample::select(vec!["*/*", "application/x-ndjson", "text/csv", "text/csv;q=0.5;q=x, \"", ";,;q="]);
    let board = prop_oneof![3 => Just("b".to_owned()), 1 => part];
    (0..registered(true).len(), board, part, query, kind, accept, body).prop_map(
        |(operation, board, subject, query, kind, accept, body)| Hostile {
            operation,
            board,
            subject,
            query,
            kind,
            accept,
            body,
        },
    )
}

/// `ROLLTOP_HOSTILE_CASES` sets how many are tried. A failure prints the request, shrunk.
#[test]
fn no_request_gives_a_500_or_an_undescribed_response() {
    let from_environment = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let cases = from_environment("ROLLTOP_HOSTILE_CASES").unwrap_or(1_500);
    let seed = crate::drawn::seed();
    let system = actix_web::rt::System::new();
    let site = system.block_on(Site::with_board("b"));
    let document = serde_json::to_value(openapi(true)).unwrap();
    let cases = cases.try_into().expect("fewer cases");
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.to_le_bytes().repeat(4));
    let outcome = TestRunner::new_with_rng(config, rng).run(&hostile(), |case| {
        let (method, template) = registered(true)[case.operation].clone();
        let mut path = template.replace("{board}", &case.board).replace("{subject}", &case.subject);
        if template.contains("{board}") {
            path = path.replace("{key}", &case.subject);
        }
        let url = format!("{path}?{}", case.query);
        let method_name = Method::from_bytes(method.as_str().as_bytes()).unwrap();
        let answer = system.block_on(async {
            // Earlier cases may have removed the board, or defined it otherwise.
            site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
            let kind = case.kind.map(|kind| ("content-type", kind));
            let headers: Vec<_> = kind.into_iter().chain([("accept", case.accept)]).collect();
            site.client.send_with(method_name, &url, &headers, case.body.clone()).await
        });
        let described = &document["paths"][template][method.as_str().to_lowercase()]["responses"];
        let status = answer.status.to_string();
        // The client resolves dots before sending, so the path that arrives may name another resource or none.
        let elsewhere = path.contains("..") || path.contains("/.") || path.to_lowercase().contains("%2e");
        prop_assert!(answer.status < 500, "{method} {url}: {answer:?}");
        if !elsewhere {
            prop_assert!(described.get(&status).is_some(), "{method} {url}: {status} is not described; {answer:?}");
            if answer.status >= 400 {
                let examples = &described[&status]["content"]["application/problem+json"]["examples"];
                prop_assert!(examples.get(answer.code()).is_some(), "{method} {url}: {answer:?}");
            }
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}\nROLLTOP_TEST_SEED={seed} runs it again");
    }
}

/// What is sent where HTTP itself is broken must not take the server down.
#[actix_web::test]
async fn broken_http_does_not_stop_the_service() {
    let site = Site::with_board("b").await;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(
        "POST /v1/boards/b/increments HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{nested}",
        nested.len()
    );
    let request =
        |body: &str| format!("POST /v1/boards/b/increments HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{body}");
    for bytes in [
        b"\0\xff\xfe garbage\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET /v1/boards/\xff HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_vec(),
        request("transfer-encoding: chunked\r\n\r\nZZ\r\n").into_bytes(),
        request("content-length: -1\r\n\r\n").into_bytes(),
        request("content-length: 1\r\ncontent-length: 2\r\n\r\nab").into_bytes(),
        deep.into_bytes(),
        format!("GET /{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "a".repeat(100_000)).into_bytes(),
    ] {
        let answer = site.client.raw(&bytes).await;
        assert!(!answer.starts_with("HTTP/1.1 5"), "{answer}");
    }
    let still = site.client.get("/healthz").await;
    assert_eq!((still.status, &still.body["status"]), (200, &Value::from("ok")));
}
