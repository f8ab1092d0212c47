//! Backups: copies of the data at one instant, made while it changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Method;
use rolltop::store::embedded::{DataReport, Pace, check_data};
use serde_json::{Value, json};

use crate::client::Client;
use crate::site::Site;

/// Checkpoints and new segments all the time, so that a backup has several of each.
const BUSY: Pace = Pace {
    log_bytes: 200,
    segment_bytes: 4_096,
    age: Duration::MAX,
    unknown_after: Duration::from_secs(10),
    tick: Duration::from_millis(100),
};

const READS: [&str; 6] = [
    "/v1/boards",
    "/v1/boards/posts/rankings?limit=1000",
    "/v1/boards/posts/subjects/post-3",
    "/v1/boards/sales/rankings?limit=1000",
    "/v1/boards/users/subjects/device-1/values",
    "/v1/clock",
];

/// What the service answers to some reads. The number of slots that are retired soon depends on how far that has come.
async fn readable(client: &Client) -> Vec<Value> {
    let mut answers = Vec::new();
    for path in READS {
        let mut answer = client.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        if let Some(members) = answer.body.as_object_mut() {
            members.remove("retiring");
        }
        answers.push(answer.body);
    }
    answers
}

async fn define_all(client: &Client) {
    for (board, metric) in [
        ("posts", "COUNT(24h, like, post_id)"),
        ("sales", "AVG(24h, sale, amount, seller_id)"),
        ("users", "COUNT_DISTINCT(24h, login, device_id, user_id)"),
    ] {
        assert_eq!(client.define(board, metric, "1h").await.status, 201);
    }
}

/// Writes to every board, with ids that say which round it was.
async fn write(client: &Client, rounds: std::ops::Range<u32>) {
    for round in rounds {
        let post = |n: u32| json!({"subject": format!("post-{}", n % 17), "amount": n, "id": format!("{round}-{n}")});
        let posts: Vec<_> = (0..40).map(post).collect();
        let answer = client.add("posts", json!({"increments": posts})).await;
        assert_eq!(answer.body["accepted"], 40, "{answer:?}");
        let sale = json!({"subject": format!("seller-{}", round % 5), "value": round});
        assert_eq!(client.add("sales", sale).await.body["accepted"], 1);
        let login = json!({"subject": format!("device-{}", round % 2), "value": format!("user-{round}")});
        assert_eq!(client.add("users", login).await.body["accepted"], 1);
    }
}

async fn back_up(client: &Client) -> PathBuf {
    let answer = client.send(Method::POST, "/v1/backup", None, "").await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(answer.body["files"].as_u64() >= Some(1) && answer.body["bytes"].as_u64() > Some(0), "{answer:?}");
    PathBuf::from(answer.body["path"].as_str().expect("a path"))
}

fn check(path: &Path) -> DataReport {
    check_data(path).expect("a data directory")
}

#[actix_web::test]
async fn a_backup_has_the_state_of_its_time_without_later_writes() {
    let backups = tempfile::tempdir().unwrap();
    let site = Site::with_backups(BUSY, backups.path()).await;
    define_all(&site.client).await;
    write(&site.client, 0..30).await;
    site.client.set_clock("2026-01-02T12:20:00Z").await;
    write(&site.client, 30..60).await;
    let (expected, path) = (readable(&site.client).await, back_up(&site.client).await);
    write(&site.client, 60..90).await;
    let later = readable(&site.client).await;
    assert_ne!(later, expected);

    let report = check(&path);
    assert_eq!((report.damage.as_slice(), report.boards), (&[][..], 3));
    let copy = Site::over(tempfile::tempdir().unwrap(), &path).await;
    assert_eq!(readable(&copy.client).await, expected);
    let audit = copy.client.post("/v1/boards/posts/audit", json!({})).await;
    assert_eq!(audit.body["differences"], 0, "{audit:?}");
    // What was counted before is known, what came after is not.
    for (id, duplicates) in [("0-7", 1), ("59-39", 1), ("60-0", 0), ("89-0", 0)] {
        let number: u32 = id.split_once('-').unwrap().1.parse().unwrap();
        let again = json!({"subject": format!("post-{}", number % 17), "amount": 1, "id": id});
        assert_eq!(copy.client.add("posts", again).await.body["duplicates"], duplicates, "{id}");
    }
    // The copy shares files with the store it was made of; neither changes the other.
    write(&copy.client, 200..230).await;
    assert_eq!(readable(&site.client).await, later);
    let second = back_up(&site.client).await;
    drop(copy);
    assert_ne!(second, path);
    let copy = Site::over(tempfile::tempdir().unwrap(), &second).await;
    assert_eq!(readable(&copy.client).await, later);
}

#[actix_web::test]
async fn a_backup_during_writes_has_every_write_answered_before_and_none_sent_after() {
    let backups = tempfile::tempdir().unwrap();
    let site = Site::with_backups(BUSY, backups.path()).await;
    define_all(&site.client).await;
    let increment = |n: u32| json!({"subject": "a", "id": format!("id-{n}")});
    let writing = async {
        let mut sent = 0;
        for n in 0..400 {
            assert_eq!(site.client.add("posts", increment(n)).await.body["accepted"], 1);
            sent = n + 1;
        }
        sent
    };
    let backing_up = async {
        let mut made = Vec::new();
        for _ in 0..4 {
            let before = site.client.score("posts", "a").await.as_u64().unwrap();
            let path = back_up(&site.client).await;
            made.push((before, path, site.client.score("posts", "a").await.as_u64().unwrap()));
        }
        made
    };
    let (sent, made) = tokio::join!(writing, backing_up);
    assert_eq!(site.client.score("posts", "a").await, sent);
    for (before, path, after) in made {
        assert_eq!(check(&path).damage, [""; 0]);
        let copy = Site::over(tempfile::tempdir().unwrap(), &path).await;
        let kept = copy.client.score("posts", "a").await.as_u64().unwrap();
        // One more than was read may have been on its way.
        assert!((before..=after + 1).contains(&kept), "{before} <= {kept} <= {after}");
        // Amounts and ids show the same instant.
        let again: Vec<_> = (0..sent).map(increment).collect();
        let answer = copy.client.add("posts", json!({"increments": again})).await;
        assert_eq!(answer.body["duplicates"], kept, "{answer:?}");
        assert_eq!(copy.client.score("posts", "a").await, sent);
    }
}

/// Nothing is written between these backups, so there is nothing for which the log would need a new segment.
#[actix_web::test]
async fn an_unchanged_store_can_be_backed_up_repeatedly() {
    let backups = tempfile::tempdir().unwrap();
    let site = Site::with_backups(Pace::default(), backups.path()).await;
    for _ in 0..3 {
        assert_eq!(check(&back_up(&site.client).await).boards, 0);
    }
    define_all(&site.client).await;
    write(&site.client, 0..3).await;
    let expected = readable(&site.client).await;
    for _ in 0..4 {
        let copy = Site::over(tempfile::tempdir().unwrap(), &back_up(&site.client).await).await;
        assert_eq!(readable(&copy.client).await, expected);
    }
}

#[actix_web::test]
async fn a_failed_backup_says_why() {
    let site = Site::with_board("b").await;
    let answer = site.client.send(Method::POST, "/v1/backup", None, "").await;
    assert_eq!(answer.refusal(), (409, "unsupported"));
    assert!(answer.body["detail"].as_str().unwrap().contains("--backup-dir"), "{answer:?}");
    assert_eq!(site.client.get("/v1/backup").await.refusal(), (405, "method_not_allowed"));
    assert_eq!(site.client.send(Method::POST, "/v1/backup?x=1", None, "").await.refusal(), (422, "unknown_field"));

    // A file is where the directory would be.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let site = Site::with_backups(Pace::default(), &file.join("backups")).await;
    define_all(&site.client).await;
    let answer = site.client.send(Method::POST, "/v1/backup", None, "").await;
    assert_eq!(answer.refusal(), (503, "backup_failed"));
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains(&file.display().to_string()), "{detail}");
    write(&site.client, 0..3).await;
    assert_eq!(site.client.get("/readyz").await.status, 200);
}
