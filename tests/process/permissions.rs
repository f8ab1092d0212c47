//! Tests of the permissions of the user on Redis: without any one of those that the document names, the service does
//! not start, or it says what is then not ensured.

use crate::documented_user;
use crate::redis_cluster::RedisCluster;
use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;
use crate::waiting::Wait;

/// What happens without a permission.
#[derive(Clone, Copy, Debug)]
enum Without {
    /// The service does not start, and says that Redis refuses.
    Refused,
    /// The log has a warning with these words.
    Logged(&'static str),
    /// The log and `/readyz` have a warning with these words.
    Shown(&'static str),
    /// Nothing of such a server needs it.
    Unused,
}

fn without(rule: &str, is_cluster: bool) -> Without {
    match rule {
        "+@read" | "+@write" | "+@scripting" | "+time" | "+info" => Without::Refused,
        "+cluster|slots" | "+cluster|info" if is_cluster => Without::Refused,
        "+asking" if is_cluster => Without::Logged("may not send ASKING"),
        "+config|get" => Without::Logged("maxmemory-policy"),
        "+bgrewriteaof" => Without::Shown("does not rewrite its append-only file"),
        // `role` is for a master behind Sentinels. A connection without `@connection` is as good as any other.
        "+@connection" | "+role" | "+asking" | "+cluster|slots" | "+cluster|info" => Without::Unused,
        rule => panic!("it is not known what happens without {rule}"),
    }
}

async fn check(store: &str, allow: impl Fn(&[&str]), is_cluster: bool) {
    let (folder, rules) = (tempfile::tempdir().unwrap(), documented_user::rules());
    let url = documented_user::url(store);
    // On a machine that is busy with other tests, a connection may take longer than a service would wait.
    let start = || {
        let wait = Wait::begin("a server to answer");
        loop {
            match Running::try_launch(crate::running::serve(folder.path(), &["--store", &url])) {
                Err(why) if ["cannot reach the store", "in time"].iter().any(|says| why.contains(says)) => {
                    wait.pause(why)
                }
                ended => return ended,
            }
        }
    };
    let is_refusal =
        |why: &str| ["NoPerm", "no permissions", "can't run this command"].iter().any(|says| why.contains(says));
    allow(&rules);
    let running = start().unwrap();
    assert_eq!(warnings(&running).await, [""; 0]);
    drop(running);
    let given = rules.iter().filter(|rule| rule.starts_with('+'));
    for rule in given {
        // A command may also be in a category.
        let taken = rule.replacen('+', "-", 1);
        allow(&[&rules[..], &[&taken]].concat());
        match (without(rule, is_cluster), start()) {
            (Without::Refused, Ok(running)) => panic!("started without {rule}: {:?}", running.log()),
            (Without::Refused, Err(why)) => assert!(is_refusal(&why), "{rule}: {why}"),
            (expected, Err(why)) => panic!("{expected:?} without {rule}, and not: {why}"),
            (Without::Unused, Ok(running)) => {
                running.ok("GET", "/v1/boards", None).await;
                assert_eq!(warnings(&running).await, [""; 0], "{rule}");
            }
            (Without::Logged(words), Ok(running)) => running.has_logged(words).await,
            (Without::Shown(words), Ok(running)) => {
                let wait = Wait::begin(format!("a warning without {rule}"));
                while !warnings(&running).await.concat().contains(words) {
                    wait.rest(running.log()).await;
                }
                running.has_logged(words).await;
            }
        }
    }
    let other_keys: Vec<&str> =
        rules.iter().map(|rule| if rule.starts_with('~') { "~other:*" } else { rule }).collect();
    allow(&other_keys);
    assert!(start().is_err_and(|why| is_refusal(&why)), "started without its keys");
}

/// Returns the warnings of an instance that is ready.
async fn warnings(running: &Running) -> Vec<String> {
    let wait = Wait::begin("an instance to be ready");
    let answer = loop {
        match running.call("GET", "/readyz", None).await {
            (200, answer) => break answer,
            other => wait.rest(other).await,
        }
    };
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    warnings.map(|warning| warning.as_str().unwrap_or_default().to_owned()).collect()
}

/// Gives the user these rules, and has the next instance ask for a rewrite, as after a restart of the server.
fn allow(server: &RedisServer, rules: &[&str]) {
    documented_user::create(server, rules);
    // Another node of a cluster may have the key.
    let _ = server.ask::<()>(&["DEL", "rolltop:1:rewrites"]);
}

const PERSISTENT: [&str; 4] = ["--save", "", "--appendonly", "yes"];

#[tokio::test(flavor = "multi_thread")]
async fn without_any_one_permission_a_start_is_refused_or_warns() {
    for engine in Engine::available() {
        let server = RedisServer::start_with(&engine, &PERSISTENT);
        check(&server.url(), |rules| allow(&server, rules), false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_one_permission_a_start_on_a_cluster_is_refused_or_warns() {
    for engine in Engine::available() {
        let patient = ["--cluster-node-timeout", "60000"];
        let cluster = RedisCluster::start_with(&engine, 3, 0, &[&PERSISTENT[..], &patient].concat());
        check(&cluster.url(), |rules| cluster.nodes.iter().for_each(|node| allow(node, rules)), true).await;
    }
}
