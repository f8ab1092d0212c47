//! How the scores of a ranking are distributed.

use serde_json::{Value, json};

use crate::site::Site;

const PATH: &str = "/v1/boards/b/distribution";

fn pairs(answer: &Value) -> Value {
    let pair = |at: &Value| json!([at["percentile"], at["score"]]);
    answer["percentiles"].as_array().unwrap().iter().map(pair).collect()
}

fn ranges(answer: &Value) -> Value {
    let range = |at: &Value| json!([at["from"], at["to"], at["subjects"]]);
    answer["ranges"].as_array().unwrap().iter().map(range).collect()
}

#[actix_web::test]
async fn scores_at_percentiles_and_subjects_between_scores() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    let empty = client.get(PATH).await.body;
    assert_eq!(json!([empty["total"], empty["percentiles"][3]]), json!([0, {"percentile": 75.0, "score": null}]));
    let items: Vec<Value> = (1..=10).map(|n| json!({"subject": format!("s{n}"), "amount": n * 10})).collect();
    client.add("b", json!({"increments": items})).await;
    let answer = client.get(&format!("{PATH}?percentiles=0,50,90.5,100&scores=1,20,25,100")).await.body;
    assert_eq!(pairs(&answer), json!([[0.0, 10], [50.0, 50], [90.5, 100], [100.0, 100]]), "{answer}");
    assert_eq!(ranges(&answer), json!([[null, 1, 0], [1, 20, 1], [20, 25, 1], [25, 100, 7], [100, null, 1]]));
    assert_eq!(json!([answer["board"], answer["total"], answer["retiring"]]), json!(["b", 10, 0]));
    assert!(answer["metric"].as_str().is_some_and(|metric| metric.starts_with("COUNT(24h")), "{answer}");
    // Of those that have the percentile of a line, it is the worst.
    let standing = client.get("/v1/boards/b/subjects/s6").await.body;
    let at = client.get(&format!("{PATH}?percentiles={}", standing["percentile"])).await.body;
    assert_eq!(pairs(&at), json!([[standing["percentile"], standing["score"]]]));
    assert_eq!(ranges(&at), json!([]));
    for wrong in [
        "percentiles=",
        "percentiles=101",
        "percentiles=5,",
        "percentiles=50.0001",
        "scores=",
        "scores=1,x",
        "scores=2,1",
        "scores=1,1",
        "scores=1.5",
        "scores=1e400",
    ] {
        assert_eq!(client.get(&format!("{PATH}?{wrong}")).await.refusal(), (422, "invalid_field"), "{wrong}");
    }
    let many = vec!["1"; 101].join(",");
    assert_eq!(client.get(&format!("{PATH}?percentiles={many}")).await.refusal(), (422, "invalid_field"));
}

#[actix_web::test]
async fn means_ascending_boards_and_keys() {
    let site = Site::new().await;
    let client = &site.client;
    let metric = "AVG(24h, rating, stars, film BY genre)";
    let definition = json!({"metric": metric, "slot": "1h", "decimals": 1, "order": "asc"});
    assert_eq!(client.put("/v1/boards/b", definition).await.status, 201);
    let items = json!({"increments": [
        {"subject": "a", "by": "noir", "value": 4.5}, {"subject": "a", "by": "noir", "value": 4},
        {"subject": "b", "by": "noir", "value": 2}, {"subject": "c", "by": "noir", "value": 3.1}]});
    assert_eq!(client.add("b", items).await.body["accepted"], 4);
    let answer = client.get(&format!("{PATH}?by=noir&percentiles=100,50,0&scores=2,3.15,4.25")).await.body;
    assert_eq!(pairs(&answer), json!([[100.0, 2], [50.0, 3.1], [0.0, 4.25]]), "the smallest is the best: {answer}");
    assert_eq!(ranges(&answer), json!([[null, 2, 0], [2, 3.15, 2], [3.15, 4.25, 0], [4.25, null, 1]]));
    assert_eq!(answer["by"], "noir");
    assert_eq!(client.get(PATH).await.code(), "missing_key");
    let unranked = json!({"metric": "COUNT(24h, like, post)", "slot": "1h", "ranked": false});
    assert_eq!(client.put("/v1/boards/plain", unranked).await.status, 201);
    assert_eq!(client.get("/v1/boards/plain/distribution").await.code(), "not_ranked");
}
