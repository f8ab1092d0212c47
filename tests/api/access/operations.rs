//! Every operation with every kind of caller, against a table that was written by hand.

use std::collections::BTreeSet;

use reqwest::Method;
use rolltop::access::{Grant, Scope};
use rolltop::http::registered;
use serde_json::{Value, json};

use super::{Guarded, TestKey, key, keys};

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    AnyKey,
    One(Scope),
}

/// An operation with a request to it.
struct Row {
    method: &'static str,
    path: &'static str,
    request: &'static str,
    body: Option<Value>,
    needs: Needs,
}

/// The scope of every operation. Whoever adds an operation decides here who may use it.
fn table() -> Vec<Row> {
    use Needs::{AnyKey, Nothing, One};
    use Scope::{Admin, Manage, Metrics, Read, View, Write};
    let row = |method, path, request, body, needs| Row { method, path, request, body, needs };
    let (board, subject) = ("/v1/boards/{board}", "/v1/boards/{board}/subjects/{subject}");
    let definition = || Some(json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"}));
    let of = |rest: &str| -> &'static str { format!("/v1/boards/{{board}}/{rest}").leak() };
    vec![
        row("POST", of("increments"), "/v1/boards/BOARD/increments", Some(json!({"subject": "p"})), One(Write)),
        row("POST", "/v1/events", "/v1/events", Some(json!({"type": "like", "fields": {"post_id": "p"}})), One(Write)),
        row(
            "PUT",
            of("samples"),
            "/v1/boards/BOARD/samples",
            Some(json!({"subject": "p", "amount": 1, "at": "2026-01-02T10:00:00Z"})),
            One(Write),
        ),
        row("GET", of("rankings"), "/v1/boards/BOARD/rankings", None, One(View)),
        row("GET", of("tiers"), "/v1/boards/BOARD/tiers", None, One(View)),
        row("PUT", of("tiers"), "/v1/boards/BOARD/tiers", Some(json!({"tiers": []})), One(Manage)),
        row("GET", of("distribution"), "/v1/boards/BOARD/distribution", None, One(View)),
        row("GET", of("periods"), "/v1/boards/BOARD/periods", None, One(View)),
        row("POST", of("close"), "/v1/boards/BOARD/close", None, One(Manage)),
        row(
            "POST",
            of("rankings/lookup"),
            "/v1/boards/BOARD/rankings/lookup",
            Some(json!({"subjects": ["p"]})),
            One(View),
        ),
        row("POST", of("rankings/by"), "/v1/boards/BOARD/rankings/by", Some(json!({"keys": ["k"]})), One(View)),
        row("POST", of("removals"), "/v1/boards/BOARD/removals", Some(json!({"subjects": ["none"]})), One(Manage)),
        row("PUT", of("subjects/{subject}/hidden"), "/v1/boards/BOARD/subjects/p/hidden", Some(json!({})), One(Manage)),
        row("DELETE", of("subjects/{subject}/hidden"), "/v1/boards/BOARD/subjects/p/hidden", None, One(Manage)),
        row("PUT", of("subjects/{subject}/frozen"), "/v1/boards/BOARD/subjects/p/frozen", None, One(Manage)),
        row("DELETE", of("subjects/{subject}/frozen"), "/v1/boards/BOARD/subjects/p/frozen", None, One(Manage)),
        row("GET", of("subjects/{subject}/attributes"), "/v1/boards/BOARD/subjects/p/attributes", None, One(View)),
        row(
            "PUT",
            of("subjects/{subject}/attributes"),
            "/v1/boards/BOARD/subjects/p/attributes",
            Some(json!({})),
            One(Write),
        ),
        row(
            "PATCH",
            of("subjects/{subject}/attributes"),
            "/v1/boards/BOARD/subjects/p/attributes",
            Some(json!({})),
            One(Write),
        ),
        row("DELETE", of("subjects/{subject}/attributes"), "/v1/boards/BOARD/subjects/p/attributes", None, One(Write)),
        row("GET", of("attributes"), "/v1/boards/BOARD/attributes", None, One(Read)),
        row(
            "POST",
            of("attributes"),
            "/v1/boards/BOARD/attributes",
            Some(json!({"subject": "none", "attributes": {}})),
            One(Write),
        ),
        row("GET", of("hidden"), "/v1/boards/BOARD/hidden", None, One(Manage)),
        row("POST", of("hidden"), "/v1/boards/BOARD/hidden", Some(json!({"subject": "none"})), One(Manage)),
        row("GET", of("frozen"), "/v1/boards/BOARD/frozen", None, One(Manage)),
        row("POST", of("frozen"), "/v1/boards/BOARD/frozen", Some(json!({"subject": "none"})), One(Manage)),
        row("GET", of("keys"), "/v1/boards/BOARD/keys", None, One(Read)),
        row("DELETE", of("keys/{key}"), "/v1/boards/BOARD/keys/k", None, One(Manage)),
        row("GET", of("stream"), "/v1/boards/BOARD/stream", None, One(View)),
        row("GET", "/v1/stream", "/v1/stream?view=BOARD", None, One(View)),
        row("GET", subject, "/v1/boards/BOARD/subjects/p", None, One(View)),
        row("PUT", subject, "/v1/boards/BOARD/subjects/p", Some(json!({"amount": 1})), One(Manage)),
        row("DELETE", subject, "/v1/boards/BOARD/subjects/p", None, One(Manage)),
        row("GET", of("subjects/{subject}/window"), "/v1/boards/BOARD/subjects/p/window", None, One(Read)),
        row("GET", of("subjects/{subject}/values"), "/v1/boards/BOARD/subjects/p/values", None, One(Read)),
        row("GET", of("subjects/{subject}/neighbors"), "/v1/boards/BOARD/subjects/p/neighbors", None, One(View)),
        row(
            "POST",
            "/v1/evaluate",
            "/v1/evaluate",
            Some(json!({"rule": "amount > 1", "fields": {"amount": 2}})),
            One(Read),
        ),
        row("GET", "/v1/rules", "/v1/rules", None, One(Read)),
        row("POST", "/v1/query", "/v1/query", Some(json!({"board": "BOARD", "subject": "p"})), One(Read)),
        row("GET", board, "/v1/boards/BOARD", None, One(Read)),
        row("PUT", board, "/v1/boards/BOARD", definition(), One(Manage)),
        row("DELETE", board, "/v1/boards/BOARD", None, One(Manage)),
        row("POST", of("rollover"), "/v1/boards/BOARD/rollover", None, One(Manage)),
        row("POST", of("audit"), "/v1/boards/BOARD/audit", None, One(Manage)),
        row("GET", of("contents"), "/v1/boards/BOARD/contents", None, One(Read)),
        row("POST", of("contents"), "/v1/boards/BOARD/contents", Some(json!({})), One(Manage)),
        row("DELETE", of("import"), "/v1/boards/BOARD/import?id=5f1c2a9d04b7e386", None, One(Manage)),
        row("GET", of("shards"), "/v1/boards/BOARD/shards", None, One(Read)),
        row("PUT", of("shards"), "/v1/boards/BOARD/shards", Some(json!({"shards": 2})), One(Manage)),
        row("DELETE", of("shards"), "/v1/boards/BOARD/shards", None, One(Manage)),
        row("PUT", of("next"), "/v1/boards/BOARD/next", definition(), One(Manage)),
        row("GET", of("next"), "/v1/boards/BOARD/next", None, One(Read)),
        row("DELETE", of("next"), "/v1/boards/BOARD/next", None, One(Manage)),
        row("POST", of("next/promote"), "/v1/boards/BOARD/next/promote", None, One(Manage)),
        row("POST", of("next/compare"), "/v1/boards/BOARD/next/compare", None, One(Read)),
        row("GET", of("previous"), "/v1/boards/BOARD/previous", None, One(Read)),
        row("DELETE", of("previous"), "/v1/boards/BOARD/previous", None, One(Manage)),
        row("POST", of("previous/promote"), "/v1/boards/BOARD/previous/promote", None, One(Manage)),
        row("GET", "/v1/boards", "/v1/boards", None, One(Read)),
        row("POST", "/v1/rollover", "/v1/rollover", None, One(Manage)),
        row("POST", "/v1/backup", "/v1/backup", None, One(Admin)),
        row("GET", "/v1/clock", "/v1/clock", None, One(Read)),
        row("PUT", "/v1/clock", "/v1/clock", Some(json!({"now": "2026-01-02T10:07:00Z"})), One(Admin)),
        row("GET", "/v1/sources", "/v1/sources", None, One(Read)),
        row("GET", "/v1/sources/{source}", "/v1/sources/BOARD", None, One(Read)),
        row("DELETE", "/v1/sources/{source}", "/v1/sources/BOARD", None, One(Manage)),
        row("PUT", "/v1/sources/{source}", "/v1/sources/BOARD", Some(json!({"boards": ["BOARD"]})), One(Manage)),
        row("GET", "/v1/keys", "/v1/keys", None, One(Admin)),
        row("POST", "/v1/keys", "/v1/keys", Some(json!({"name": "k", "scopes": ["view"]})), One(Admin)),
        row("GET", "/v1/keys/self", "/v1/keys/self", None, AnyKey),
        row("GET", "/v1/keys/{key}", "/v1/keys/0000000000000000", None, One(Admin)),
        row("DELETE", "/v1/keys/{key}", "/v1/keys/0000000000000000", None, One(Admin)),
        row("POST", "/v1/keys/{key}/rotate", "/v1/keys/0000000000000000/rotate", Some(json!({})), One(Admin)),
        row("GET", "/healthz", "/healthz", None, Nothing),
        row("GET", "/readyz", "/readyz", None, Nothing),
        row("GET", "/metrics", "/metrics", None, One(Metrics)),
        row("GET", "/openapi.json", "/openapi.json", None, Nothing),
        row("GET", "/problems/{code}", "/problems/unknown_board", None, Nothing),
    ]
}

/// Returns whether a key of this scope may do what needs another one.
fn includes(own: Scope, needed: Scope) -> bool {
    own == needed || own == Scope::Admin || (own, needed) == (Scope::Read, Scope::View)
}

/// A caller: its header, and what every operation that needs something answers, if that does not depend on it.
struct Caller {
    name: String,
    authorization: Option<String>,
    refused_with: Option<(u16, &'static str)>,
    scope: Option<Scope>,
    /// The only path at which it may write: that of the item of a token.
    only: Option<&'static str>,
}

#[actix_web::test]
async fn every_operation_is_in_the_table() {
    let registered: BTreeSet<_> =
        registered(true).into_iter().map(|(method, path)| (method.to_string(), path)).collect();
    let listed: BTreeSet<_> = table().iter().map(|row| (row.method.to_owned(), row.path)).collect();
    assert_eq!(listed, registered);
}

#[actix_web::test]
async fn every_operation_with_every_caller() {
    let of_scope: Vec<(Scope, TestKey)> =
        Scope::ALL.map(|scope| (scope, key(&[scope], if scope == Scope::Admin { &["*"] } else { &["shop-*"] }))).into();
    let (unknown, expired) = (key(&[Scope::Admin], &["*"]), key(&[Scope::Admin], &["*"]).expired());
    let configured: Vec<&TestKey> = of_scope.iter().map(|(_, key)| key).chain([&expired]).collect();
    let keys = keys(Grant::none(), &configured);
    let mut all = super::tokens::with_secret(super::tokens::signing_key("shop-*", &[], &Value::Null));
    all.keys.extend(configured.iter().map(|key| key.key.clone()));
    keys.configure(all);
    let guarded = Guarded::new(keys).await;
    let caller = |name: &str, authorization: Option<String>, refused_with, scope| Caller {
        name: name.to_owned(),
        authorization,
        refused_with,
        scope,
        only: None,
    };
    let invalid = Some((401, "invalid_key"));
    let mut callers = vec![
        caller("nobody", None, Some((401, "key_required")), None),
        caller("unknown key", Some(unknown.bearer()), invalid, None),
        caller("expired key", Some(expired.bearer()), Some((401, "key_expired")), None),
    ];
    for (scope, key) in &of_scope {
        callers.push(caller(scope.as_str(), Some(key.bearer()), None, Some(*scope)));
        let text = key.bearer();
        let changed = text.replace(&text[text.len() - 4..], "0000");
        callers.push(caller("a changed key", Some(changed), invalid, None));
    }
    let of_token = |name: &str, allowed: Value, scope, only| Caller {
        only,
        ..caller(name, Some(super::tokens::token(&allowed)), None, Some(scope))
    };
    let (increment, event) = (json!({"subject": "p"}), json!({"type": "like", "fields": {"post_id": "p"}}));
    callers.extend([
        of_token("a token to view", json!({"scopes": ["view"]}), Scope::View, None),
        of_token(
            "a token for an increment",
            json!({"scopes": ["write"], "increment": increment, "once": true}),
            Scope::Write,
            Some("/v1/boards/{board}/increments"),
        ),
        of_token(
            "a token for an event",
            json!({"scopes": ["write"], "event": event}),
            Scope::Write,
            Some("/v1/events"),
        ),
    ]);
    for row in table() {
        for caller in &callers {
            for board in ["shop-a", "other", "no-board"] {
                let (request, body) = (row.request.replace("BOARD", board), in_body(&row, board));
                if request == row.request && body == row.body && board != "shop-a" {
                    continue;
                }
                // Other rows have removed it.
                for board in ["shop-a", "other"] {
                    guarded.site.client.define(board, "COUNT(24h, like, post_id)", "1h").await;
                }
                let method = Method::from_bytes(row.method.as_bytes()).unwrap();
                let answer = guarded.send(caller.authorization.as_deref(), method, &request, body.as_ref()).await;
                let what = format!("{} with {} {request}: {answer:?}", caller.name, row.method);
                let is_named = row.path.contains("{board}") || row.path == "/v1/stream";
                let is_named = is_named || row.path == "/v1/sources/{source}" && body.is_some();
                let expected = match (row.needs, caller.refused_with, caller.scope) {
                    (Needs::Nothing, ..) => None,
                    (_, Some(refused), _) => Some(refused),
                    (Needs::One(needed), _, Some(own)) if !includes(own, needed) => Some((403, "forbidden")),
                    (Needs::One(Scope::Write), ..) if caller.only.is_some_and(|only| only != row.path) => {
                        Some((403, "forbidden"))
                    }
                    (_, _, Some(own)) if is_named && board != "shop-a" && own != Scope::Admin => {
                        Some((403, "forbidden"))
                    }
                    _ => None,
                };
                match expected {
                    Some(refusal) => assert_eq!(answer.refusal(), refusal, "{what}"),
                    None => assert!(!matches!(answer.status, 401 | 403), "{what}"),
                }
                if let Some((401, _)) = expected {
                    assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"rolltop\"", "{what}");
                }
            }
        }
    }
}

fn in_body(row: &Row, board: &str) -> Option<Value> {
    let text = row.body.as_ref()?.to_string().replace("BOARD", board);
    Some(serde_json::from_str(&text).unwrap())
}

#[actix_web::test]
async fn head_needs_what_get_needs() {
    let viewer = key(&[Scope::View], &["shop-*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&viewer])).await;
    let head = async |key: Option<&str>, path: &str| guarded.send(key, Method::HEAD, path, None).await.status;
    assert_eq!(head(None, "/v1/boards/shop-a/rankings").await, 401);
    assert_eq!(head(Some(&viewer.bearer()), "/v1/boards/shop-a/rankings").await, 200);
    assert_eq!(head(Some(&viewer.bearer()), "/v1/boards/other/rankings").await, 403);
    assert_eq!(head(Some(&viewer.bearer()), "/v1/boards/shop-a").await, 403);
    assert_eq!(head(None, "/healthz").await, 200);
}

#[actix_web::test]
async fn a_body_and_a_query_may_need_more() {
    let (writer, reader) = (key(&[Scope::Write], &["*"]), key(&[Scope::Read], &["*"]));
    let both = key(&[Scope::Read, Scope::Write], &["*"]);
    let viewer = key(&[Scope::View], &["*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&writer, &reader, &both, &viewer])).await;
    let event = json!({"type": "like", "fields": {"post_id": "p"}});
    let increment = json!({"subject": "p"});
    for (path, body) in [("/v1/events?return=score", &event), ("/v1/boards/shop-a/increments?return=score", &increment)]
    {
        let refused = guarded.post(&writer, path, body).await;
        assert_eq!((refused.refusal(), &refused.body["scope"]), ((403, "forbidden"), &json!("view")), "{path}");
        assert_eq!(guarded.post(&both, path, body).await.status, 200, "{path}");
    }
    let mut evaluation = json!({"rule": "amount > 1", "fields": {"amount": 2}, "type": "like", "record": true});
    let refused = guarded.post(&reader, "/v1/evaluate", &evaluation).await;
    assert_eq!((refused.refusal(), &refused.body["scope"]), ((403, "forbidden"), &json!("write")));
    assert_eq!(guarded.post(&both, "/v1/evaluate", &evaluation).await.status, 200);
    evaluation["record"] = json!(false);
    assert_eq!(guarded.post(&reader, "/v1/evaluate", &evaluation).await.status, 200);
    let headers = [("authorization", &*viewer.bearer()), ("accept", "text/csv")];
    let export = guarded.client.send_with(Method::GET, "/v1/boards/shop-a/rankings", &headers, "").await;
    assert_eq!((export.refusal(), &export.body["scope"]), ((403, "forbidden"), &json!("read")));
}
