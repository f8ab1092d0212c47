//! How callers are told apart: the header, callers without a key, pages of other origins, proxies.

use std::time::Duration;

use reqwest::Method;
use rolltop::access::{BoardPattern, Grant, KeyKind, Scope};
use rolltop::service::ConfiguredKeys;
use serde_json::json;

use super::{Guarded, key, key_of, keys};
use crate::event_stream::Follower;

fn grant(scopes: &[Scope], board: &str) -> Grant {
    Grant {
        scopes: scopes.iter().copied().collect(),
        boards: [board.parse::<BoardPattern>().unwrap()].into_iter().collect(),
    }
}

#[actix_web::test]
async fn only_a_well_formed_header_with_a_known_key_is_accepted() {
    let reader = key(&[Scope::Read], &["*"]);
    // Callers without a key may read, too: a wrong key is not as good as none.
    let guarded = Guarded::new(keys(grant(&[Scope::Read], "*"), &[&reader])).await;
    let text = reader.secret.reveal();
    for (header, status) in [
        (format!("Bearer {text}"), 200),
        (format!("bearer {text}"), 200),
        (format!("BEARER  {text} "), 200),
        (format!("Basic {text}"), 401),
        (text.clone(), 401),
        ("Bearer".to_owned(), 401),
        ("Bearer ".to_owned(), 401),
        (String::new(), 401),
        (format!("Bearer {text}x"), 401),
        (format!("Bearer {}", text.to_uppercase()), 401),
        (format!("Bearer {}", text.replacen("rt_", "rtp_", 1)), 401),
        (format!("Bearer {text} {text}"), 401),
        (format!("Bearer {}", "a".repeat(5_000)), 401),
        ("Bearer \u{7f}".to_owned(), 401),
    ] {
        let request = format!(
            "GET /v1/boards HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\nConnection: close\r\n\r\n"
        );
        let answer = guarded.client.raw(request.as_bytes()).await;
        let found: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(found == status || (header.contains('\u{7f}') && found == 400), "{header}: {answer}");
        assert!(!answer.contains(&text[24..]), "{answer}");
    }
    let twice = [("authorization", &*reader.bearer()), ("authorization", &*reader.bearer())];
    let answer = guarded.client.send_with(Method::GET, "/v1/boards", &twice, "").await;
    assert_eq!(answer.refusal(), (401, "invalid_key"));
    assert_eq!(guarded.client.get("/v1/boards").await.status, 200);
    // Health checks of a load balancer may have any header.
    assert_eq!(guarded.send(Some("Basic x"), Method::GET, "/healthz", None).await.status, 200);
}

#[actix_web::test]
async fn callers_without_a_key_have_a_grant_of_their_own() {
    let guarded = Guarded::new(keys(grant(&[Scope::View], "shop-*"), &[])).await;
    let client = &guarded.client;
    assert_eq!(client.get("/v1/boards/shop-a/rankings").await.status, 200);
    for path in ["/v1/boards/shop-a", "/v1/boards/other/rankings", "/v1/boards/no-board/rankings", "/v1/keys/self"] {
        assert_eq!(client.get(path).await.refusal(), (401, "key_required"), "{path}");
    }
    let refused = client.add("shop-a", json!({"subject": "p"})).await;
    assert_eq!((refused.refusal(), &refused.body["scope"]), ((401, "key_required"), &json!("write")));
}

#[actix_web::test]
async fn a_refusal_comes_before_the_body() {
    let guarded = Guarded::new(keys(Grant::none(), &[])).await;
    // The body never arrives.
    let head = "POST /v1/boards/shop-a/increments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 8000000\r\nConnection: close\r\n\r\n";
    let answer = tokio::time::timeout(Duration::from_secs(20), guarded.client.raw(head.as_bytes())).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[actix_web::test]
async fn a_publishable_key_is_for_pages_of_its_origins() {
    let shop = key_of(KeyKind::Publishable, &[Scope::View, Scope::Write], &["shop-*"], &["https://shop.example"]);
    let secret = key(&[Scope::Admin], &["*"]);
    let guarded = Guarded::with(keys(Grant::none(), &[&shop, &secret]), |options| {
        // Whatever origins are allowed without a key.
        options.cors_origins = vec!["https://reader.example".to_owned()];
        options.cors_write_origins = vec!["https://writer.example".to_owned()];
    })
    .await;
    let send = async |key: &super::TestKey, origin: Option<&str>, method: Method| {
        let bearer = key.bearer();
        let mut headers = vec![("authorization", &*bearer), ("content-type", "application/json")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let is_get = method == Method::GET;
        let path = if is_get { "/v1/boards/shop-a/rankings" } else { "/v1/boards/shop-a/increments" };
        guarded.client.send_with(method, path, &headers, if is_get { "" } else { "{\"subject\":\"p\"}" }).await
    };
    let own = format!("http://127.0.0.1:{}", guarded.client.port);
    for method in [Method::GET, Method::POST] {
        for (origin, status) in [
            (None, 200),
            (Some(&*own), 200),
            (Some("https://shop.example"), 200),
            (Some("https://reader.example"), 403),
            (Some("https://writer.example"), 403),
            (Some("https://shop.example.evil"), 403),
            (Some("null"), 403),
        ] {
            let answer = send(&shop, origin, method.clone()).await;
            assert_eq!(answer.status, status, "{method} {origin:?} {answer:?}");
            let expected = if origin == Some(&*own) || origin.is_none() { 200 } else { 403 };
            let answer = send(&secret, origin, method.clone()).await;
            assert_eq!(answer.status, expected, "a secret key: {method} {origin:?} {answer:?}");
        }
    }
    let answer = send(&shop, Some("https://shop.example"), Method::POST).await;
    assert_eq!(answer.header("access-control-allow-origin"), "https://shop.example");
    assert!(answer.headers.get_all("vary").iter().any(|vary| vary == "Origin"), "{answer:?}");

    let preflight = async |origin: &str, method: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", method),
            ("access-control-request-headers", "authorization,content-type"),
        ];
        guarded.client.send_with(Method::OPTIONS, "/v1/boards/shop-a/increments", &headers, "").await
    };
    let answer = preflight("https://shop.example", "POST").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, "https://shop.example"));
    assert!(answer.header("access-control-allow-headers").contains("authorization"));
    assert_eq!(preflight("https://evil.example", "POST").await.status, 403);
    // Pages can read why they were refused.
    for (bearer, status) in [("Bearer rtp_nonsense", 401), (&*shop.bearer(), 403)] {
        let headers = [("origin", "https://shop.example"), ("authorization", bearer)];
        let answer = guarded.client.send_with(Method::GET, "/v1/boards/other/rankings", &headers, "").await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, "https://shop.example"));
    }
}

#[actix_web::test]
async fn what_is_for_this_machine_only_is_not_for_proxies() {
    let guarded = Guarded::with(keys(Grant::all(), &[]), |options| options.for_this_machine_only = true).await;
    assert_eq!(guarded.client.get("/v1/boards").await.status, 200);
    for header in ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"] {
        for path in ["/v1/boards", "/healthz", "/", "/swagger-ui/", "/nothing"] {
            let answer = guarded.client.send_with(Method::GET, path, &[(header, "for=192.0.2.1")], "").await;
            assert_eq!(answer.refusal(), (403, "forwarded"), "{header} {path}");
        }
    }
}

#[actix_web::test]
async fn what_takes_long_ends_with_its_key() {
    let (reader, writer) = (key(&[Scope::Read], &["*"]), key(&[Scope::Write], &["*"]));
    let guarded = Guarded::new(keys(Grant::none(), &[&reader, &writer])).await;
    let url = format!("http://127.0.0.1:{}/v1/boards/shop-a/stream", guarded.client.port);
    let mut follower = Follower::open(&url, &[("authorization", &reader.bearer())]).await;
    follower.expect("page").await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(1);
    let pieces =
        futures_util::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let body = reqwest::Body::wrap_stream(pieces);
    let bearer = writer.bearer();
    let headers = [("authorization", &*bearer), ("content-type", "application/x-ndjson")];
    let upload = guarded.client.send_with(Method::POST, "/v1/boards/shop-a/increments", &headers, body);
    let revoke = async {
        sender.send(Ok("{\"subject\":\"p\"}\n".to_owned())).await.unwrap();
        while guarded.site.client.score("shop-a", "p").await != json!(1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Another stream of somebody else goes on.
        guarded.service.keys().configure(ConfiguredKeys::default());
    };
    let (answer, ()) = tokio::join!(upload, revoke);
    assert_eq!((answer.refusal(), &answer.body["counted_through"]), ((401, "invalid_key"), &json!(1)), "{answer:?}");
    while let Some(event) = follower.next().await {
        assert_eq!(event.name, "change");
    }
    assert_eq!(guarded.get(&reader, "/v1/boards").await.refusal(), (401, "invalid_key"));
}

#[actix_web::test]
async fn what_a_key_sees_is_not_for_the_next_client_of_a_cache() {
    let reader = key(&[Scope::Read], &["*"]);
    let guarded = Guarded::with(keys(grant(&[Scope::View], "*"), &[&reader]), |options| {
        options.max_age = Duration::from_secs(5);
    })
    .await;
    for (bearer, expected) in [(None, "max-age=5"), (Some(reader.bearer()), "private, max-age=5")] {
        let answer = guarded.send(bearer.as_deref(), Method::GET, "/v1/boards/shop-a/rankings", None).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, expected));
        assert!(answer.headers.get_all("vary").iter().any(|vary| vary == "Authorization"), "{answer:?}");
    }
}

#[actix_web::test]
async fn a_key_that_ends_while_its_body_arrives_changes_nothing() {
    let manager = key(&[Scope::Manage, Scope::Read], &["shop-*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&manager])).await;
    let bearer = manager.bearer();
    for (method, path, body) in [
        (Method::PUT, "/v1/boards/shop-ghost", json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"})),
        (Method::POST, "/v1/query", json!({"board": "shop-a", "subject": "p"})),
        (Method::POST, "/v1/boards/shop-a/rankings/lookup", json!({"subjects": ["p"]})),
    ] {
        guarded.service.keys().configure(ConfiguredKeys { keys: vec![manager.key.clone()], ..Default::default() });
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(1);
        let pieces =
            futures_util::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let send = guarded.client.send_with(method, path, &headers, reqwest::Body::wrap_stream(pieces));
        let revoke = async {
            let text = body.to_string();
            sender.send(Ok(text[..5].to_owned())).await.unwrap();
            // The key was accepted when this is used, which is after the first bytes were sent.
            while guarded.service.keys().find(manager.key.id).is_some_and(|known| known.used_at.is_none()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            guarded.service.keys().configure(ConfiguredKeys::default());
            sender.send(Ok(text[5..].to_owned())).await.unwrap();
            drop(sender);
        };
        let (answer, ()) = tokio::join!(send, revoke);
        assert_eq!(answer.refusal(), (401, "invalid_key"), "{path}");
    }
    assert_eq!(guarded.site.client.get("/v1/boards/shop-ghost").await.status, 404);
}

#[actix_web::test]
async fn a_publishable_key_opens_nothing_to_pages_that_do_not_send_it() {
    let shop = key_of(KeyKind::Publishable, &[Scope::View], &["shop-*"], &["https://shop.example", "*"]);
    // Callers without a key may do everything, as by default on this machine.
    let guarded = Guarded::new(keys(Grant::all(), &[&shop])).await;
    let shared = async |bearer: Option<String>, path: &str| {
        let mut headers = vec![("origin", "https://shop.example")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let answer = guarded.client.send_with(Method::GET, path, &headers, "").await;
        (answer.status, answer.header("access-control-allow-origin").to_owned())
    };
    for path in ["/v1/keys", "/v1/boards", "/metrics", "/v1/boards/other/rankings", "/readyz"] {
        assert_eq!(shared(None, path).await, (200, String::new()), "{path}");
    }
    let with_key = shared(Some(shop.bearer()), "/v1/boards/shop-a/rankings").await;
    assert_eq!(with_key, (200, "https://shop.example".to_owned()));
}
