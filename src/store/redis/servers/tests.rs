//! Tests of sending commands, with servers whose reactions the tests define.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, Value, cmd};

use super::fake::Reaction::{self, HangUp, Say, Silence};
use super::fake::{Fake, cluster};
use super::link::{LONGEST_IDLE, Server as _};
use super::{Channel, Request, ServerFailure, Servers};
use crate::store::StoreError;
use crate::store::redis::RedisOptions;
use crate::store::redis::hash_slot::HashSlot;
use crate::store::redis::scripts::{SET_CLOCK, ScriptCall};

const PATIENCE: Duration = RedisOptions::PATIENCE;

fn slot(number: u16) -> HashSlot {
    HashSlot::new(number).unwrap()
}

fn get() -> Cmd {
    let mut command = cmd("GET");
    command.arg("k");
    command
}

fn text(answer: Result<Value, ServerFailure>) -> String {
    match answer {
        Ok(Value::SimpleString(text)) => text,
        Ok(Value::Okay) => "OK".to_owned(),
        other => panic!("{other:?}"),
    }
}

fn say(text: &str) -> Reaction {
    Say(format!("{text}\r\n"))
}

async fn open(scheme: &str, fakes: &[&Fake]) -> Arc<Servers> {
    let hosts: Vec<String> = fakes.iter().map(|fake| format!("127.0.0.1:{}", fake.port)).collect();
    Servers::open(&format!("{scheme}://{}", hosts.join(",")), None, PATIENCE).await.unwrap()
}

/// Starts two cluster nodes with half of the hash slots each, and the given reactions to other commands.
async fn two(
    a: impl Fn(&[String]) -> Reaction + Send + Sync + Clone + 'static,
    b: impl Fn(&[String]) -> Reaction + Send + Sync + Clone + 'static,
) -> (Fake, Fake, Arc<Servers>) {
    let (one, other) = (Fake::start().await, Fake::start().await);
    let owners = [(0, 8_191, one.port), (8_192, 16_383, other.port)];
    one.on(move |command| cluster(command, &owners).unwrap_or_else(|| a(command)));
    other.on(move |command| cluster(command, &owners).unwrap_or_else(|| b(command)));
    let servers = open("redis+cluster", &[&one]).await;
    one.asked();
    other.asked();
    (one, other, servers)
}

fn without_cluster(asked: Vec<String>) -> Vec<String> {
    asked.into_iter().filter(|command| !command.starts_with("CLUSTER")).collect()
}

fn set_clock() -> ScriptCall {
    let mut call = ScriptCall::default();
    call.key("k").arg("action", "open").arg("mode", "system").arg("time", 7);
    call
}

#[tokio::test]
async fn requests_are_routed_to_the_node_of_their_slot() {
    let (_one, _other, servers) = two(|_| say("+one"), |_| say("+other")).await;
    assert_eq!(servers.nodes().len(), 2);
    for (number, who) in [(0, "one"), (8_191, "one"), (8_192, "other"), (16_383, "other")] {
        assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(number), &get())).await), who);
    }
    let command = get();
    let requests: Vec<_> = [1, 9_000, 2, 9_001].map(|number| Request::read(slot(number), &command)).into();
    let answers: Vec<String> = servers.requests(Channel::Bulk, &requests).await.into_iter().map(text).collect();
    assert_eq!(answers, ["one", "other", "one", "other"]);
}

#[tokio::test]
async fn a_server_whose_first_answer_is_late_is_not_taken_for_a_distant_one() {
    let fake = Fake::start().await;
    fake.state.late_greetings.store(1, Ordering::SeqCst);
    let servers = open("redis", &[&fake]).await;
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(0), &get())).await), "OK");
    assert_eq!(fake.state.late_greetings.load(Ordering::SeqCst), 0);
    // Twice the shortest round trip, which is not the late one.
    assert!(servers.nodes()[0].idle() < LONGEST_IDLE);
}

#[tokio::test]
async fn moved_redirections_are_followed_and_remembered() {
    let (one, other, servers) = two(|_| say("+one"), |_| say("+other")).await;
    // From now on, both nodes reply that hash slot 7 belongs to the second one.
    let owners = [(0, 6, one.port), (7, 7, other.port), (8, 8_191, one.port), (8_192, 16_383, other.port)];
    let port = other.port;
    one.on(move |command| cluster(command, &owners).unwrap_or_else(|| say(&format!("-MOVED 7 127.0.0.1:{port}"))));
    other.on(move |command| cluster(command, &owners).unwrap_or_else(|| say("+moved")));
    let before = servers.incarnation(slot(7));
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(7), &get())).await), "moved");
    assert_ne!(servers.incarnation(slot(7)), before);
    assert_eq!(without_cluster(one.asked()), ["GET k"]);
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(7), &get())).await), "moved");
    assert_eq!(without_cluster(one.asked()), [""; 0]);
    // In a pipeline, the commands whose hash slots moved are sent again separately.
    other.asked();
    one.on(move |command| cluster(command, &owners).unwrap_or_else(|| say("+stays")));
    let command = get();
    let answers = servers.requests(Channel::Calls, &[Request::write(slot(8), &command); 2]).await;
    assert_eq!(answers.into_iter().map(text).collect::<Vec<_>>(), ["stays", "stays"]);
}

#[tokio::test]
async fn circular_redirections_end_with_a_passing_failure() {
    let (one, other, servers) = two(|_| say("+"), |_| say("+")).await;
    let (a, b) = (one.port, other.port);
    let owners = [(0, 16_383, a)];
    one.on(move |command| cluster(command, &owners).unwrap_or_else(|| say(&format!("-MOVED 1 127.0.0.1:{b}"))));
    other.on(move |command| cluster(command, &owners).unwrap_or_else(|| say(&format!("-MOVED 1 127.0.0.1:{a}"))));
    let answer = servers.request(Channel::Calls, Request::write(slot(1), &get())).await;
    assert!(answer.as_ref().is_err_and(ServerFailure::is_passing), "{answer:?}");
    assert!(without_cluster([one.asked(), other.asked()].concat()).len() <= 5);
}

#[tokio::test]
async fn ask_redirections_send_asking_and_the_script_text() {
    let (one, other, servers) = two(|_| say("+one"), |_| say("+other")).await;
    let (port, owners) = (other.port, [(0, 8_191, one.port), (8_192, 16_383, other.port)]);
    one.on(move |command| cluster(command, &owners).unwrap_or_else(|| say(&format!("-ASK 7 127.0.0.1:{port}"))));
    let command = SET_CLOCK.command(&set_clock());
    assert_eq!(text(servers.request(Channel::Writes, Request::call(slot(7), &SET_CLOCK, &command)).await), "other");
    let asked = without_cluster(other.asked());
    assert!(asked.len() == 2 && asked[0] == "ASKING", "{asked:?}");
    assert!(asked[1].starts_with("EVAL --") && asked[1].ends_with(" 1 k open system 7"), "{asked:?}");
    // The hash slot still belongs to the first node.
    assert_eq!(text(servers.request(Channel::Writes, Request::write(slot(7), &get())).await), "other");
    assert_eq!(without_cluster(one.asked()).last().map(String::as_str), Some("GET k"));
    // Not all keys have been moved: the command must be tried again later.
    other.on(move |command| match command[0].as_str() {
        "ASKING" => say("+OK"),
        _ => say("-TRYAGAIN Multiple keys request during rehashing of slot"),
    });
    let answer = servers.request(Channel::Writes, Request::write(slot(7), &get())).await;
    assert!(matches!(answer, Err(ServerFailure::Busy(_))), "{answer:?}");
}

#[tokio::test]
async fn a_script_flushed_again_is_sent_as_text() {
    let fake = Fake::start().await;
    fake.on(|command| match command[0].as_str() {
        "EVALSHA" => say("-NOSCRIPT No matching script."),
        "EVAL" => say("+evaluated"),
        _ => say("+OK"),
    });
    let servers = open("redis", &[&fake]).await;
    let command = SET_CLOCK.command(&set_clock());
    assert_eq!(text(servers.request(Channel::Calls, Request::call(slot(0), &SET_CLOCK, &command)).await), "evaluated");
    let names: Vec<String> = fake.asked().iter().map(|asked| asked.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["EVALSHA", "SCRIPT", "EVALSHA", "EVAL"]);
    // The same for a command in the middle of a pipeline.
    let other = get();
    let requests =
        [Request::read(slot(0), &other), Request::call(slot(0), &SET_CLOCK, &command), Request::read(slot(0), &other)];
    let answers: Vec<String> = servers.requests(Channel::Calls, &requests).await.into_iter().map(text).collect();
    assert_eq!(answers, ["OK", "evaluated", "OK"]);
}

#[tokio::test]
async fn a_readonly_reply_opens_a_new_connection() {
    let fake = Fake::start().await;
    let count = Arc::new(AtomicU64::new(0));
    let first = count.clone();
    fake.on(move |_| match first.fetch_add(1, Ordering::SeqCst) {
        0 => say("-READONLY You can't write against a read only replica."),
        _ => say("+OK"),
    });
    let servers = open("redis", &[&fake]).await;
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(0), &get())).await), "OK");
    assert_eq!(fake.state.connections.load(Ordering::SeqCst), 2, "another connection may lead to another server");
    fake.on(|_| say("-READONLY You can't write against a read only replica."));
    let answer = servers.request(Channel::Calls, Request::write(slot(0), &get())).await;
    assert!(matches!(answer, Err(ServerFailure::ReadOnly(_))), "{answer:?}");
}

/// The log, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Returns how many lines contain this text.
    fn count(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.0.lock()).lines().filter(|line| line.contains(text)).count()
    }
}

#[tokio::test]
async fn refused_writes_and_their_end_are_logged_once() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let fake = Fake::start().await;
    let servers = open("redis", &[&fake]).await;
    for occasion in 1..=2 {
        fake.on(|_| say("-READONLY You can't write against a read only replica."));
        for _ in 0..20 {
            let answer = servers.request(Channel::Calls, Request::write(slot(0), &get())).await;
            assert!(matches!(answer, Err(ServerFailure::ReadOnly(_))), "{answer:?}");
        }
        // A reply to a read does not prove that the server accepts writes.
        fake.on(|_| say("+OK"));
        text(servers.request(Channel::Calls, Request::read(slot(0), &get())).await);
        assert_eq!((log.count("WARN"), log.count("takes writes again")), (occasion, occasion - 1));
        for _ in 0..2 {
            text(servers.request(Channel::Calls, Request::write(slot(0), &get())).await);
        }
        assert_eq!((log.count("WARN"), log.count("takes writes again")), (occasion, occasion));
    }
}

/// The connection was closed while it was idle: the next command must not be reported as unknown.
#[tokio::test]
async fn a_command_on_an_idle_closed_connection_is_sent_again() {
    let fake = Fake::start().await;
    let servers = open("redis", &[&fake]).await;
    for channel in [Channel::Calls, Channel::Writes] {
        text(servers.request(channel, Request::write(slot(0), &get())).await);
        fake.hang_up();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(text(servers.request(channel, Request::write(slot(0), &get())).await), "OK");
    }
    assert_eq!(fake.asked().len(), 4);
}

#[tokio::test]
async fn only_repeatable_requests_are_repeated_after_a_lost_reply() {
    let fake = Fake::start().await;
    let servers = open("redis", &[&fake]).await;
    let count = Arc::new(AtomicU64::new(0));
    let lose = |every: u64| {
        let count = count.clone();
        fake.on(move |_| if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(every) { HangUp } else { say("+OK") });
        fake.asked();
    };
    lose(2);
    assert_eq!(text(servers.request(Channel::Calls, Request::read(slot(0), &get())).await), "OK");
    assert_eq!(fake.asked().len(), 2);
    count.store(0, Ordering::SeqCst);
    let answer = servers.request(Channel::Calls, Request::write(slot(0), &get())).await;
    assert!(matches!(answer, Err(ServerFailure::Unknown(_))), "{answer:?}");
    assert_eq!(fake.asked().len(), 1);
    // The reply to the second of three commands is lost, and that to the third with it.
    count.store(2, Ordering::SeqCst);
    lose(4);
    let command = get();
    let requests =
        [Request::read(slot(0), &command), Request::write(slot(0), &command), Request::read(slot(0), &command)];
    count.store(2, Ordering::SeqCst);
    let answers = servers.requests(Channel::Calls, &requests).await;
    assert!(matches!(answers[1], Err(ServerFailure::Unknown(_))), "{answers:?}");
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
}

#[tokio::test]
async fn the_incarnation_changes_on_reconnection_and_server_restart() {
    let (one, other, servers) = two(|_| say("+one"), |_| say("+other")).await;
    let send = |number: u16| {
        let servers = &servers;
        async move { servers.request(Channel::Calls, Request::read(slot(number), &get())).await }
    };
    text(send(1).await);
    text(send(9_000).await);
    let incarnations = || (servers.incarnation(slot(1)), servers.incarnation(slot(9_000)));
    let before = incarnations();
    text(servers.request(Channel::Bulk, Request::write(slot(1), &get())).await);
    assert_eq!(incarnations(), before, "one more channel is no other connection");
    assert_eq!(servers.run(slot(1)).as_deref(), Some("1"));

    let owners = [(0, 8_191, one.port), (8_192, 16_383, other.port)];
    let hang_up_once = |fake: &Fake| {
        let first = AtomicU64::new(0);
        fake.on(move |command| {
            cluster(command, &owners).unwrap_or_else(|| match first.fetch_add(1, Ordering::SeqCst) {
                0 => HangUp,
                _ => say("+again"),
            })
        });
    };
    hang_up_once(&one);
    assert_eq!(text(send(1).await), "again");
    let replaced = incarnations();
    assert!(replaced.0 != before.0 && replaced.1 == before.1, "{before:?} {replaced:?}");
    assert_eq!(servers.run(slot(1)).as_deref(), Some("1"));

    // Each of several replies has the incarnation in which it was read, if that is known.
    let command = get();
    let requests = [Request::read(slot(1), &command), Request::read(slot(9_000), &command)];
    let of = |replies: Vec<super::ServerReply>| replies.into_iter().map(|reply| reply.incarnation).collect::<Vec<_>>();
    assert_eq!(of(servers.replies(Channel::Reads, &requests).await), [Some(incarnations().0), Some(incarnations().1)]);
    hang_up_once(&one);
    assert_eq!(of(servers.replies(Channel::Reads, &requests).await), [None, Some(incarnations().1)]);
    let replaced = incarnations();

    other.state.run.store(2, Ordering::SeqCst);
    hang_up_once(&other);
    assert_eq!(text(send(9_000).await), "again");
    assert!(incarnations().0 == replaced.0 && incarnations().1 != replaced.1);
    assert_eq!(servers.run(slot(9_000)).as_deref(), Some("2"));
}

#[tokio::test]
async fn an_unresponsive_channel_does_not_block_others() {
    let (_one, _other, servers) =
        two(|_| say("+one"), |command| if command[0] == "SLOW" { Silence } else { say("+other") }).await;
    let (slow, quick) = (cmd("SLOW"), get());
    let waiting = servers.request(Channel::Bulk, Request::write(slot(9_000), &slow));
    tokio::pin!(waiting);
    let soon = tokio::time::timeout(Duration::from_millis(200), &mut waiting).await;
    assert!(soon.is_err(), "{soon:?}");
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(9_000), &quick)).await), "other");
    assert_eq!(text(servers.request(Channel::Bulk, Request::write(slot(1), &quick)).await), "one");
    assert!(matches!(waiting.await, Err(ServerFailure::Unknown(_))));
}

#[tokio::test]
async fn clusterdown_refreshes_the_slots_and_is_reported_as_busy() {
    let (one, _other, servers) = two(|_| say("-CLUSTERDOWN The cluster is down"), |_| say("+other")).await;
    let answer = servers.request(Channel::Calls, Request::write(slot(1), &get())).await;
    assert!(matches!(answer, Err(ServerFailure::Busy(_))), "{answer:?}");
    let asked = one.asked();
    assert!(asked.iter().any(|command| command == "CLUSTER SLOTS"), "{asked:?}");
    assert!(matches!(servers.error(answer.unwrap_err()), StoreError::Unreachable { .. }));
}

/// Returns the reactions of a server that replies to `ROLE` with this role, and to other commands with its name.
fn with_role(role: &'static str, name: &'static str) -> impl Fn(&[String]) -> Reaction {
    move |command| match command[0].as_str() {
        "ROLE" => say(&array(&[role])),
        _ => say(name),
    }
}

/// Returns an array of texts in the wire format, without the end of its last line.
fn array(texts: &[&str]) -> String {
    let each = texts.iter().map(|text| format!("\r\n${}\r\n{text}", text.len()));
    format!("*{}{}", texts.len(), each.collect::<String>())
}

/// Returns the reactions of a Sentinel that names the server on this port after so many failovers, with one replica.
fn naming(master: u16, epoch: u8, replica: u16) -> impl Fn(&[String]) -> Reaction {
    let [master, replica, epoch] = [master, replica, u16::from(epoch)].map(|number| number.to_string());
    let facts = move |port: &str, flags: &str| {
        array(&["ip", "127.0.0.1", "port", port, "flags", flags, "config-epoch", &epoch])
    };
    move |command| match command.join(" ").as_str() {
        "SENTINEL GET-MASTER-ADDR-BY-NAME main" => say(&array(&["127.0.0.1", &master])),
        "SENTINEL MASTER main" => say(&facts(&master, "master")),
        "SENTINEL REPLICAS main" => say(&format!("*1\r\n{}", facts(&replica, "slave"))),
        other => panic!("a Sentinel was asked {other}"),
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: not within 50 s");
}

/// Waits until the requests have this answer.
async fn answered(servers: &Servers, expected: &str) {
    for _ in 0..1_000 {
        let answer = servers.request(Channel::Calls, Request::write(slot(0), &get())).await;
        if matches!(&answer, Ok(Value::SimpleString(text)) if text == expected) {
            return;
        }
        assert!(!answer.is_err_and(|failure| matches!(failure, ServerFailure::Other(_))));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never answered {expected}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sentinel_that_knows_the_latest_failover_is_believed() {
    let (old, new) = (Fake::start().await, Fake::start().await);
    old.on(with_role("slave", "+old"));
    new.on(with_role("master", "+new"));
    let (behind, informed, third) = (Fake::start().await, Fake::start().await, Fake::start().await);
    behind.on(naming(old.port, 1, new.port));
    informed.on(naming(new.port, 2, old.port));
    third.on(naming(new.port, 2, old.port));
    let ports = [behind.port, informed.port, third.port].map(|port| format!("127.0.0.1:{port}"));
    let url = format!("redis+sentinel://{}/main", ports.join(","));
    let servers = Servers::open(&url, None, PATIENCE).await.unwrap();
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(0), &get())).await), "new");
    assert_eq!(text(servers.request(Channel::Bulk, Request::write(slot(16_383), &get())).await), "new");

    // The replica is promoted, and a Sentinel names it. The former master takes writes for as long as nothing tells it,
    // and one of three Sentinels is too few to confirm the new one.
    let incarnation = servers.incarnation(slot(0));
    old.on(with_role("master", "+old"));
    behind.on(naming(old.port, 3, new.port));
    let answer = servers.request(Channel::Calls, Request::write(slot(0), &get())).await;
    assert!(answer.is_err() || text(answer) == "new");
    for _ in 0..2 {
        tokio::time::sleep(super::REFRESH * 3).await;
        let answer = servers.request(Channel::Calls, Request::write(slot(0), &get())).await;
        assert!(answer.as_ref().is_err_and(ServerFailure::is_passing), "{answer:?}");
    }
    informed.on(naming(old.port, 3, new.port));
    answered(&servers, "old").await;
    assert_ne!(servers.incarnation(slot(0)), incarnation);

    // There is no master: the command was certainly not done, and must be tried again.
    old.on(with_role("slave", "-READONLY You can't write against a read only replica."));
    new.on(with_role("slave", "-READONLY You can't write against a read only replica."));
    let answer = servers.request(Channel::Calls, Request::write(slot(0), &get())).await;
    assert!(answer.as_ref().is_err_and(ServerFailure::is_passing), "{answer:?}");
    old.on(with_role("master", "+old"));
    answered(&servers, "old").await;
}

/// A server that was paused has received commands and does them when it continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_of_a_replaced_master_is_not_used() {
    let (old, new, sentinel) = (Fake::start().await, Fake::start().await, Fake::start().await);
    let paused = |command: &[String]| if command[0] == "SLOW" { Silence } else { with_role("master", "+old")(command) };
    old.on(paused);
    new.on(with_role("slave", "+new"));
    sentinel.on(naming(old.port, 1, new.port));
    let servers =
        Servers::open(&format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port), None, PATIENCE).await.unwrap();
    answered(&servers, "old").await;
    let slow = cmd("SLOW");
    let sent = servers.request(Channel::Writes, Request::write(slot(0), &slow));
    let switched = async {
        until("the command was sent", || old.asked().contains(&"SLOW".to_owned())).await;
        new.on(with_role("master", "+new"));
        sentinel.on(naming(new.port, 2, old.port));
    };
    let (answer, ()) = tokio::join!(sent, switched);
    // It ends as soon as the switch is known, and not only after the time for a reply.
    assert!(matches!(&answer, Err(ServerFailure::Unknown(why)) if why.contains("another server")), "{answer:?}");
    answered(&servers, "new").await;
    // One remains, to ask for its role.
    until("the other connections are closed", || old.state.open.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn an_unknown_master_name_is_a_setup_error() {
    let sentinel = Fake::start().await;
    sentinel.on(|_| say("*-1"));
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    let refused = Servers::open(&url, None, PATIENCE).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Setup { .. }) && refused.to_string().contains("'main'"), "{refused}");
    let gone = Servers::open("redis+sentinel://127.0.0.1:1/main", None, PATIENCE).await.unwrap_err();
    assert!(matches!(gone, StoreError::Unreachable { .. }), "{gone}");
}

/// A node of a cluster that was paused continues with what it had received, before it learns that it was replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_reply_of_a_cluster_node_is_checked_with_the_others() {
    let fakes = [Fake::start().await, Fake::start().await, Fake::start().await];
    let [paused, other, third] = &fakes;
    let owners = [(0, 8_191, paused.port), (8_192, 12_000, other.port), (12_001, 16_383, third.port)];
    for (fake, name) in fakes.iter().zip(["+paused", "+other", "+third"]) {
        fake.on(move |command| cluster(command, &owners).unwrap_or_else(|| say(name)));
    }
    let servers = open("redis+cluster", &[paused]).await;
    let late = |command: &[String]| {
        if command[0] == "GET" {
            std::thread::sleep(super::LATE + Duration::from_millis(50));
        }
    };
    paused.on(move |command| {
        late(command);
        cluster(command, &owners).unwrap_or_else(|| say("+paused"))
    });
    // Nothing has changed: the reply counts.
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(1), &get())).await), "paused");
    // The others know a later owner. In a pipeline too, nothing of the reply is used.
    let taken = [(0, 12_000, other.port), (12_001, 16_383, third.port)];
    for (fake, name) in fakes.iter().zip(["+paused", "+other", "+third"]).skip(1) {
        fake.on(move |command| match command.join(" ").as_str() {
            "CLUSTER INFO" => Fake::info(2),
            _ => cluster(command, &taken).unwrap_or_else(|| say(name)),
        });
    }
    let command = get();
    let answers = servers.requests(Channel::Calls, &[Request::write(slot(1), &command); 2]).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(ServerFailure::Unknown(_)))), "{answers:?}");
    assert_eq!(text(servers.request(Channel::Calls, Request::write(slot(1), &get())).await), "other");
}
