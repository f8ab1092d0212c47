//! One server: its connections, and the run of its process when they were made.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, RedisResult, Value, cmd};

use super::address::Host;
use super::failure::{Refusal, ServerFailure};
use super::info::Info;
use super::link::{Care, Channel, IDLE, LONGEST_IDLE, Link, Server};
use super::standing::Mastership;
use super::turns::Turns;

/// The number of commands that may wait to be sent. Each command of this store is already a batch.
const QUEUE: usize = 256;
/// The number of further exchanges before a server is taken for distant.
const LOOKS_AT_DISTANCE: usize = 3;

/// A server. It is connected to when it is first needed.
pub(in crate::store::redis) struct Node {
    pub(super) host: Host,
    at: Arc<str>,
    client: Client,
    /// The connections, by [`Channel`].
    links: [Link; Channel::COUNT],
    turns: Turns,
    patience: Duration,
    run: Mutex<Option<Arc<str>>>,
    incarnation: AtomicU64,
    /// What the watch of the Sentinels knows about it, if there are Sentinels.
    standing: Option<Mastership>,
    /// Whether it has refused a write because it is a replica, and has accepted none since.
    refuses: AtomicBool,
    signs: Arc<Signs>,
}

/// The state that all nodes share: the next incarnation.
#[derive(Debug, Default)]
pub(super) struct Signs {
    incarnations: AtomicU64,
}

impl Signs {
    /// Returns a number that no node has had yet.
    fn incarnation(&self) -> u64 {
        self.incarnations.fetch_add(1, Ordering::AcqRel) + 1
    }
}

impl Node {
    pub(super) fn new(
        host: Host,
        client: Client,
        standing: Option<Mastership>,
        signs: Arc<Signs>,
        patience: Duration,
    ) -> Self {
        let at = host.to_string().into();
        let incarnation = AtomicU64::new(signs.incarnation());
        let (links, turns, run, refuses) = Default::default();
        Self { host, at, client, links, turns, patience, run, incarnation, standing, refuses, signs }
    }

    /// Returns host and port, for messages.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// Returns a number that changes whenever earlier reads may be outdated: because a connection was replaced, the
    /// server's process was restarted, or hash slots were moved to this node.
    pub fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Acquire)
    }

    pub(super) fn renew(&self) {
        self.incarnation.store(self.signs.incarnation(), Ordering::Release);
    }

    /// Returns what the watch of the Sentinels knows about the server, if there are Sentinels.
    pub(super) fn standing(&self) -> Option<&Mastership> {
        self.standing.as_ref()
    }

    /// Closes all connections.
    pub(super) async fn close(&self) {
        for link in &self.links {
            link.close().await;
        }
    }

    /// Returns the run id of the server's process, or `None` before the first connection, or if the server does not
    /// return one.
    pub fn run(&self) -> Option<Arc<str>> {
        self.run.lock().clone()
    }

    /// Returns the number of large commands that can be under way at the same time: more to a distant server.
    pub fn at_once(&self) -> usize {
        self.turns.at_once()
    }

    /// Sends a command that concerns the server itself and no key. It is sent once more if its reply is lost, because
    /// all such commands have the same effect once and twice.
    pub async fn send(&self, channel: Channel, command: &Cmd) -> Result<Value, ServerFailure> {
        let mut answer = self.request(channel, Care::Repeats, command).await;
        if matches!(answer, Err(Refusal::Failed(ServerFailure::Unknown(_)))) {
            answer = self.request(channel, Care::Repeats, command).await;
        }
        answer.map_err(Refusal::into_failure)
    }

    pub(super) async fn request(&self, channel: Channel, care: Care, command: &Cmd) -> Result<Value, Refusal> {
        let exchange =
            |mut connection: MultiplexedConnection| async move { command.query_async(&mut connection).await };
        self.exchange(channel, care, exchange).await
    }

    /// Runs `exchange` on the connection of a channel, when it is its turn.
    async fn exchange<T, F>(
        &self,
        channel: Channel,
        care: Care,
        exchange: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let link = &self.links[channel as usize];
        let exchange = async {
            let _small = channel.is_small().then(|| self.turns.small());
            let _turn = if channel.is_large() { self.turns.large().await } else { None };
            link.exchange(self, care, exchange).await
        };
        match &self.standing {
            Some(standing) => standing.vouch(exchange).await,
            None => exchange.await,
        }
    }

    /// Sends commands together. Returns a reply for each, or one refusal for all.
    pub(super) async fn request_all(
        &self,
        channel: Channel,
        care: Care,
        commands: &Pipeline,
    ) -> Result<Vec<Result<Value, Refusal>>, Refusal> {
        let count = commands.len();
        let exchange = |mut connection: MultiplexedConnection| async move {
            connection.send_packed_commands(commands, 0, count).await
        };
        let answers = self.exchange(channel, care, exchange).await?;
        Ok(answers.into_iter().map(|answer| answer.extract_error().map_err(Refusal::read)).collect())
    }

    /// Returns an error if the user may not send ASKING, which is needed while a hash slot moves. It is valid only for
    /// the next command, and the connection is shared, so that one is sent with it.
    pub async fn check_asking(&self) -> Result<(), ServerFailure> {
        let mut questions = Pipeline::with_capacity(2);
        questions.add_command(cmd("ASKING")).add_command(cmd("PING"));
        let answers = self.request_all(Channel::Calls, Care::Repeats, &questions).await;
        let first = answers.map_err(Refusal::into_failure)?.into_iter().next();
        first.unwrap_or(Ok(Value::Nil)).map(drop).map_err(Refusal::into_failure)
    }

    async fn greet(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        // A server may forbid INFO. A restart is then noticed only by the replaced connections.
        let info = connection.send_packed_command(&Info::command()).await?;
        let info = info.extract_error().ok().and_then(Info::read);
        if let Some(run) = info.and_then(|info| info.run) {
            self.learn_run(&run);
        }
        Ok(())
    }

    /// Finds out whether a server that has answered late is distant: on a busy machine one exchange may be slow, but to a
    /// distant server all of them are.
    async fn look_at_distance(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        for _ in 0..LOOKS_AT_DISTANCE {
            if !self.turns.is_distant() {
                break;
            }
            let sent = Instant::now();
            connection.send_packed_command(&cmd("PING")).await?;
            self.turns.learn_round_trip(sent.elapsed());
        }
        Ok(())
    }

    fn learn_run(&self, run: &str) {
        let mut known = self.run.lock();
        if known.as_deref() == Some(run) {
            return;
        }
        if known.replace(run.into()).is_some() {
            tracing::warn!(at = self.at(), run, "the server was restarted");
            self.renew();
        }
    }

    /// Records that the server has certainly accepted a write.
    pub(super) fn note_write(&self) {
        if self.refuses.load(Ordering::Acquire) && self.refuses.swap(false, Ordering::AcqRel) {
            tracing::info!(at = self.at(), "the server takes writes again");
        }
    }
}

impl Server for Node {
    fn at(&self) -> &str {
        &self.at
    }

    fn renew(&self) {
        self.incarnation.store(self.signs.incarnation(), Ordering::Release);
    }

    fn patience(&self) -> Duration {
        self.patience
    }

    fn idle(&self) -> Duration {
        self.turns.round_trip().map_or(IDLE, |round_trip| (2 * round_trip).clamp(IDLE, LONGEST_IDLE))
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        // Half of it for connecting, and again for the first commands.
        let longest = self.patience / 2;
        // The client's own timeout for replies would start later than that of the link, and would not close the
        // connection.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(longest))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        let is_first = self.turns.round_trip().is_none();
        let sent = Instant::now();
        let greeted = tokio::time::timeout(longest, self.greet(&mut connection)).await;
        greeted.map_err(|_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut)))??;
        self.turns.learn_round_trip(sent.elapsed());
        if is_first {
            let looked = tokio::time::timeout(longest, self.look_at_distance(&mut connection)).await;
            // A server that takes so long is distant. A connection that has broken is not used.
            looked.unwrap_or(Ok(()))?;
        }
        Ok(connection)
    }

    /// This is logged once, until the server has accepted a write again.
    fn note_refusal(&self, reason: &str) {
        if !self.refuses.swap(true, Ordering::AcqRel) {
            tracing::warn!(at = self.at(), reason, "the server is a replica: it takes no writes");
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({}, incarnation {})", self.at, self.incarnation())
    }
}
