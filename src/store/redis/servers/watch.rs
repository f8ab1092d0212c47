//! Watching the master: asks the Sentinels, the master and its replicas several times a second.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, sleep_until, timeout};

use super::access::Access;
use super::address::{Host, Login};
use super::evidence::{Conclusion, Evidence};
use super::failure::{Refusal, ServerFailure};
use super::link::{Care, Link, Server};
use super::map::Map;
use super::{Servers, sentinel};

/// The interval at which each Sentinel and each server is asked.
const INTERVAL: Duration = Duration::from_millis(100);
/// The shortest interval, while callers wait for a different master.
const LEAST: Duration = Duration::from_millis(20);
/// The longest time for connecting.
const CONNECT: Duration = Duration::from_secs(1);
/// The longest time to wait for the answer of a Sentinel.
const RESPONSE: Duration = Duration::from_secs(2);
/// The longest time for which the first confirmed master is waited for, if the Sentinels answer. It is longer than a
/// failover.
const FIRST: Duration = Duration::from_secs(10);

/// The result of the watch so far, and a way to hurry it.
#[derive(Debug)]
pub(super) struct Watch {
    found: watch::Sender<FoundMaster>,
    /// Notified when a caller waits for a different master.
    hurried: Notify,
}

/// The result of the search for a master.
#[derive(Clone, Debug)]
pub(super) enum FoundMaster {
    /// There is none so far, for this reason.
    Nothing(ServerFailure),
    /// There is none, for this reason: no Sentinel answered, or the server that they name did not say its role.
    Refused(ServerFailure),
    /// The master of the map with this version.
    Master { version: u64, is_confirmed: bool },
}

/// A Sentinel or a server that is asked.
struct Peer {
    at: String,
    client: Client,
    link: Link,
}

/// The one that is asked.
#[derive(Clone)]
enum WatchedServer {
    Sentinel(usize),
    Server(Host),
}

/// The answers, with the time at which the questions were sent.
type Told = (Instant, WatchedServer, Result<Vec<Value>, ServerFailure>);

/// The state of the thread that watches.
struct Watcher {
    servers: Weak<Servers>,
    watch: Arc<Watch>,
    access: Access,
    /// The name of the master.
    master: String,
    sentinels: Vec<Arc<Peer>>,
    /// The servers that are being asked: each of these and each Sentinel has one future in `asked`.
    peers: HashMap<Host, Arc<Peer>>,
    asked: FuturesUnordered<BoxFuture<'static, Told>>,
    questions: (Arc<Pipeline>, Arc<Pipeline>),
    evidence: Evidence,
    /// The failures of the Sentinels that did not answer when they were last asked.
    failures: HashMap<usize, ServerFailure>,
    /// The errors of the servers that did not say their role.
    refusals: HashMap<Host, ServerFailure>,
    /// Whether it was logged that the master is not confirmed.
    is_noted: bool,
}

impl Watch {
    pub fn new() -> Self {
        let nothing = FoundMaster::Nothing(ServerFailure::busy("no Sentinel has answered".to_owned()));
        Self { found: watch::Sender::new(nothing), hurried: Notify::new() }
    }

    /// Waits for the first confirmed master. Returns the reason if there is none in time.
    pub async fn first(&self) -> Result<(), ServerFailure> {
        let mut found = self.found.subscribe();
        let is_final = |found: &FoundMaster| {
            matches!(found, FoundMaster::Refused(_) | FoundMaster::Master { is_confirmed: true, .. })
        };
        drop(timeout(FIRST, found.wait_for(is_final)).await);
        match &*found.borrow() {
            // Its answers are held back until it is confirmed.
            FoundMaster::Master { .. } => Ok(()),
            FoundMaster::Nothing(failure) | FoundMaster::Refused(failure) => Err(failure.clone()),
        }
    }

    /// Asks again at once, and waits for a map that is later than version `seen`.
    pub async fn hurry(&self, seen: u64, within: Duration) {
        self.hurried.notify_waiters();
        let is_later = |found: &FoundMaster| matches!(found, FoundMaster::Master { version, .. } if *version > seen);
        drop(timeout(within, self.found.subscribe().wait_for(is_later)).await);
    }
}

/// Starts the thread that watches the master of this name for as long as the servers are used.
pub(super) fn start(servers: &Arc<Servers>, master: &str, login: &Login) -> Result<(), ServerFailure> {
    let failed = |error: std::io::Error| ServerFailure::Other(error.into());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut watcher = Watcher::new(servers, master, login).map_err(ServerFailure::Other)?;
    let run = move || runtime.block_on(watcher.run());
    std::thread::Builder::new().name("rolltop-watch".to_owned()).spawn(run).map(drop).map_err(failed)
}

impl Watcher {
    fn new(servers: &Arc<Servers>, master: &str, login: &Login) -> RedisResult<Self> {
        let access = servers.access.clone();
        let sentinel = |host: &Host| Ok(Arc::new(Peer::new(host, access.sentinel(host, login)?)));
        let sentinels = access.address.hosts.iter().map(sentinel).collect::<RedisResult<Vec<_>>>()?;
        let mut role = Pipeline::with_capacity(1);
        role.add_command(sentinel::role());
        Ok(Self {
            servers: Arc::downgrade(servers),
            watch: servers.watch.clone(),
            evidence: Evidence::new(sentinels.len()),
            questions: (Arc::new(sentinel::questions(master)), Arc::new(role)),
            master: master.to_owned(),
            access,
            sentinels,
            peers: HashMap::new(),
            asked: FuturesUnordered::new(),
            failures: HashMap::new(),
            refusals: HashMap::new(),
            is_noted: false,
        })
    }

    /// Asks and judges until the servers are dropped.
    async fn run(&mut self) {
        for place in 0..self.sentinels.len() {
            self.ask(WatchedServer::Sentinel(place), None);
        }
        while let Some((sent, source, answers)) = self.asked.next().await {
            let Some(servers) = self.servers.upgrade() else { return };
            self.record(sent, &source, answers);
            self.judge(&servers);
            let needed: Vec<Host> = self.evidence.servers().into_iter().cloned().collect();
            match source {
                WatchedServer::Server(host) if !needed.contains(&host) => {
                    self.peers.remove(&host);
                    self.refusals.remove(&host);
                }
                source => self.ask(source, Some(sent)),
            }
            for host in needed {
                if !self.peers.contains_key(&host)
                    && let Ok(client) = self.access.client(&host)
                {
                    self.peers.insert(host.clone(), Arc::new(Peer::new(&host, client)));
                    self.ask(WatchedServer::Server(host), None);
                }
            }
        }
    }

    /// Asks again, an interval after the questions that were sent `last`.
    fn ask(&mut self, source: WatchedServer, last: Option<Instant>) {
        let (peer, questions) = match &source {
            WatchedServer::Sentinel(place) => (self.sentinels.get(*place), &self.questions.0),
            WatchedServer::Server(host) => (self.peers.get(host), &self.questions.1),
        };
        let Some(peer) = peer.cloned() else { return };
        let (questions, watch) = (questions.clone(), self.watch.clone());
        self.asked.push(Box::pin(async move {
            if let Some(last) = last {
                sleep(LEAST).await;
                tokio::select! {
                    () = sleep_until((last + INTERVAL).into()) => {}
                    () = watch.hurried.notified() => {}
                }
            }
            let sent = Instant::now();
            (sent, source, peer.ask(&questions).await)
        }));
    }

    fn record(&mut self, sent: Instant, source: &WatchedServer, answers: Result<Vec<Value>, ServerFailure>) {
        match source {
            WatchedServer::Server(host) => match answers.and_then(|answers| sentinel::read_role(answers, host)) {
                Ok(role) => {
                    self.refusals.remove(host);
                    self.evidence.role(host.clone(), sent, role);
                }
                // It answers, but does not say its role, as without the permission.
                Err(failure @ ServerFailure::Other(_)) => drop(self.refusals.insert(host.clone(), failure)),
                Err(_) => drop(self.refusals.remove(host)),
            },
            WatchedServer::Sentinel(place) => {
                let at = &self.sentinels[*place].at;
                match answers.and_then(|answers| sentinel::read_report(answers, at, &self.master)) {
                    Ok(report) => {
                        self.failures.remove(place);
                        self.evidence.report(*place, sent, report);
                    }
                    Err(failure) => drop(self.failures.insert(*place, failure)),
                }
            }
        }
    }

    /// Applies what follows from all observations.
    fn judge(&mut self, servers: &Servers) {
        let mut conclusion = self.evidence.judge(Instant::now());
        if let Conclusion::Replaced(host, epoch) = &conclusion {
            match servers.node(host) {
                Ok(node) => {
                    if let Some(standing) = node.standing() {
                        standing.doubt();
                    }
                    let mut map = Map::of_one(0, node.clone());
                    map.epoch = *epoch;
                    let former = servers.nodes().into_iter().filter(|former| !Arc::ptr_eq(former, &node));
                    let former: Vec<_> = former.collect();
                    let version = servers.install(map);
                    self.watch.found.send_replace(FoundMaster::Master { version, is_confirmed: false });
                    for former in former {
                        if let Some(standing) = former.standing() {
                            standing.replace();
                        }
                        // It waits for attempts to connect that are under way.
                        tokio::spawn(async move { former.close().await });
                    }
                }
                Err(failure) => drop(self.watch.found.send_replace(FoundMaster::Refused(failure))),
            }
            // Something may be known about this one already.
            conclusion = self.evidence.judge(Instant::now());
        }
        let nodes = servers.nodes();
        let Some(standing) = nodes.first().and_then(|master| master.standing()) else {
            return self.note_absence(conclusion);
        };
        let doubt = match conclusion {
            Conclusion::Confirmed(at) => {
                standing.confirm(at);
                self.watch.found.send_if_modified(|found| match found {
                    FoundMaster::Master { is_confirmed, .. } => !std::mem::replace(is_confirmed, true),
                    FoundMaster::Nothing(_) | FoundMaster::Refused(_) => false,
                });
                if std::mem::take(&mut self.is_noted) {
                    tracing::info!(at = &*servers.at, "the master is confirmed again");
                }
                return;
            }
            Conclusion::Doubted(why) => {
                standing.doubt();
                why
            }
            Conclusion::Open(why) if standing.is_confirmed() => return drop(why),
            Conclusion::Open(why) => {
                standing.doubt();
                why
            }
            Conclusion::Replaced(..) => return,
        };
        if !std::mem::replace(&mut self.is_noted, true) {
            tracing::warn!(at = &*servers.at, reason = doubt, "the master is not confirmed; its answers are held back");
        }
    }

    /// Records why there is no master yet.
    fn note_absence(&self, conclusion: Conclusion) {
        let (Conclusion::Open(why) | Conclusion::Doubted(why)) = conclusion else { return };
        let is_refused = self.failures.len() == self.sentinels.len();
        // An error that a Sentinel returned is more useful than the fact that a different one does not answer.
        let worst = self.failures.values().find(|failure| matches!(failure, ServerFailure::Other(_)));
        let worst = worst.or(self.failures.values().next()).filter(|_| is_refused);
        let refusal = self.evidence.named().and_then(|named| self.refusals.get(named));
        self.watch.found.send_replace(match refusal.or(worst) {
            Some(failure) => FoundMaster::Refused(failure.clone()),
            None => FoundMaster::Nothing(ServerFailure::busy(why)),
        });
    }
}

impl Peer {
    fn new(host: &Host, client: Client) -> Self {
        Self { at: host.to_string(), client, link: Link::default() }
    }

    async fn ask(&self, questions: &Pipeline) -> Result<Vec<Value>, ServerFailure> {
        let count = questions.len();
        let exchange = |mut connection: MultiplexedConnection| async move {
            connection.send_packed_commands(questions, 0, count).await
        };
        self.link.exchange(self, Care::Repeats, exchange).await.map_err(Refusal::into_failure)
    }
}

impl Server for Peer {
    fn at(&self) -> &str {
        &self.at
    }

    fn patience(&self) -> Duration {
        RESPONSE
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(None);
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Nothing that was read from a peer is used later.
    fn renew(&self) {}

    /// Nothing is written to a peer.
    fn note_refusal(&self, _reason: &str) {}
}
