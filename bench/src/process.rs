//! The servers of a benchmark: processes that stop when they are dropped.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use url::Url;

use super::api::Api;
use super::usage::Usage;

/// The longest time until the first response of a server. A server with millions of subjects has to load them.
const PATIENCE: Duration = Duration::from_secs(300);
/// The directory of the embedded store's data, below the server's folder.
const DATA: &str = "data";

/// The options of a Redis without persistence.
const REDIS: [&str; 8] =
    ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"];

/// Returns the program to measure: `rolltop` in the directory of this program, where the same profile builds it.
pub fn rolltop() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("rolltop");
    if !program.is_file() {
        bail!("{} does not exist: build it with `cargo build --profile dist --workspace`", program.display());
    }
    Ok(program)
}

/// A server on a free port of this machine.
pub struct Server {
    child: Child,
    /// The address, `127.0.0.1:port`.
    pub address: String,
    /// The directory that the server writes to. It is removed with the server.
    folder: PathBuf,
    program: PathBuf,
    args: Vec<String>,
}

impl Server {
    /// Starts rolltop on an empty store. `redis` is the URL of its Redis; without it the store is embedded.
    pub async fn rolltop(redis: Option<&str>, simulated: Option<&str>) -> anyhow::Result<Self> {
        Self::rolltop_of(&rolltop()?, redis, simulated).await
    }

    /// Starts the rolltop program of this file on an empty store.
    pub async fn rolltop_of(program: &Path, redis: Option<&str>, simulated: Option<&str>) -> anyhow::Result<Self> {
        Self::serve(program, redis, simulated, &[]).await
    }

    /// Starts rolltop with this configuration file on an empty store.
    pub async fn rolltop_with(configuration: &str, redis: Option<&str>) -> anyhow::Result<Self> {
        // The server reads it before it has a folder of its own.
        let path = std::env::temp_dir().join(format!("rolltop-bench-{}.toml", std::process::id()));
        std::fs::write(&path, configuration)?;
        let shown = path.to_str().context("the temporary directory has a name that is not Unicode")?;
        let server = Self::serve(&rolltop()?, redis, None, &["--config", shown]).await;
        std::fs::remove_file(&path)?;
        server
    }

    /// Starts rolltop on a part of a Redis that no other process uses: the keys with this prefix.
    pub async fn rolltop_apart(redis: &str, prefix: &str, simulated: &str) -> anyhow::Result<Self> {
        Self::serve(&rolltop()?, Some(redis), Some(simulated), &["--redis-prefix", prefix]).await
    }

    async fn serve(
        program: &Path,
        redis: Option<&str>,
        simulated: Option<&str>,
        more: &[&str],
    ) -> anyhow::Result<Self> {
        let mut args = vec!["serve", "--store", redis.unwrap_or("embedded"), "--data-dir", DATA];
        let clock = simulated.map(|time| format!("simulated={time}"));
        if let Some(clock) = &clock {
            args.extend(["--clock", clock]);
        }
        args.extend(more);
        // The program runs in its own directory, so its path has to be absolute.
        Self::start(&std::path::absolute(program)?, &args, |address| vec!["--listen".into(), address]).await
    }

    /// Starts the baseline that echoes JSON.
    pub async fn echo() -> anyhow::Result<Self> {
        let args = ["serve-echo"];
        Self::start(&std::env::current_exe()?, &args, |address| vec!["--listen".into(), address]).await
    }

    /// Starts the baseline that sends two commands to Redis for each request.
    pub async fn plain(redis: &str) -> anyhow::Result<Self> {
        let args = ["serve-plain", "--redis", redis];
        Self::start(&std::env::current_exe()?, &args, |address| vec!["--listen".into(), address]).await
    }

    async fn redis() -> anyhow::Result<Self> {
        Self::start(Path::new("redis-server"), &REDIS, |address| vec!["--port".into(), port_of(&address)]).await
    }

    /// Starts a node of a cluster, without slots and without other nodes. Also returns its port for other nodes.
    pub async fn redis_of_cluster() -> anyhow::Result<(Self, String)> {
        let bus = free_port()?.to_string();
        let mut args = REDIS.to_vec();
        args.extend(["--cluster-enabled", "yes", "--cluster-port", &bus]);
        let listen = |address: String| vec!["--port".into(), port_of(&address)];
        Ok((Self::start(Path::new("redis-server"), &args, listen).await?, bus))
    }

    async fn start(program: &Path, args: &[&str], listen: impl Fn(String) -> Vec<String>) -> anyhow::Result<Self> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let folder = std::env::temp_dir().join(format!("rolltop-bench-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let program = program.to_owned();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).chain(listen(address.clone())).collect();
        let child = spawn(&program, &args, &folder)?;
        let mut server = Self { child, address, folder, program, args };
        server.wait_for_listener().await?;
        Ok(server)
    }

    async fn wait_for_listener(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while tokio::net::TcpStream::connect(&self.address).await.is_err() {
            self.ensure_starts(begun)?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Returns an error if the server has ended or takes too long to start.
    fn ensure_starts(&mut self, begun: Instant) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        if ended.is_some() || begun.elapsed() > PATIENCE {
            let output = std::fs::read_to_string(self.folder.join("output")).unwrap_or_default();
            bail!("{} did not start ({ended:?}): {}", self.program.display(), output.trim());
        }
        Ok(())
    }

    /// Kills the server and starts it again on its data. Returns the time until it was ready.
    pub async fn restart(&mut self) -> anyhow::Result<Duration> {
        self.child.kill()?;
        self.child.wait()?;
        let begun = Instant::now();
        self.child = spawn(&self.program, &self.args, &self.folder)?;
        // It may listen long before it responds.
        while self.api().call::<Value>("GET", "/readyz", Value::Null).await.is_err() {
            self.ensure_starts(begun)?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(begun.elapsed())
    }

    /// Returns the API of a rolltop server.
    pub fn api(&self) -> Api {
        Api::at(&self.address)
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the memory and disk that the server uses.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.child.id(), &self.folder.join(DATA))
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn port_of(address: &str) -> String {
    address.rsplit(':').next().unwrap_or_default().to_owned()
}

fn spawn(program: &Path, args: &[String], folder: &Path) -> anyhow::Result<Child> {
    let output = std::fs::File::create(folder.join("output"))?;
    Command::new(program)
        .args(args)
        .env("RUST_LOG", "warn")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and nothing depends on it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The Redis of a benchmark.
pub struct Redis {
    pub url: String,
    /// Its address, for connections that send raw bytes.
    pub address: String,
    connection: redis::aio::MultiplexedConnection,
    /// The server process, if this benchmark started it.
    _server: Option<Server>,
}

impl Redis {
    /// Returns the Redis that `--store` names: `None` for the embedded store, a new server for `redis`, otherwise the
    /// server at that URL, which must be empty.
    pub async fn of_store(store: &str) -> anyhow::Result<Option<Self>> {
        let (url, server) = match store {
            "embedded" => return Ok(None),
            "redis" => {
                let server = Server::redis().await?;
                (format!("redis://{}", server.address), Some(server))
            }
            url => (url.to_owned(), None),
        };
        let client = redis::Client::open(url.as_str()).context("--store is embedded, redis or a redis:// URL")?;
        let redis::ConnectionAddr::Tcp(host, port) = client.get_connection_info().addr() else {
            bail!("the benchmark needs a redis:// URL with a host");
        };
        let address = format!("{host}:{port}");
        let mut connection = client.get_multiplexed_async_connection().await?;
        let keys: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await?;
        if keys > 0 {
            bail!("the Redis at {address} has {keys} keys: the benchmark writes, so it needs an empty one");
        }
        Ok(Some(Self { url, address, connection, _server: server }))
    }

    /// Returns its URL with another address, such as that of a proxy in front of it.
    pub fn url_at(&self, address: &str) -> anyhow::Result<String> {
        let mut url = Url::parse(&self.url)?;
        let (host, port) = address.rsplit_once(':').context("an address has a port")?;
        url.set_host(Some(host))?;
        url.set_port(Some(port.parse()?)).map_err(|()| anyhow!("{} cannot have a port", self.url))?;
        Ok(url.into())
    }

    /// Returns the processor time that Redis has used, in seconds.
    pub async fn cpu_seconds(&mut self) -> anyhow::Result<f64> {
        let info: String = redis::cmd("INFO").arg("cpu").query_async(&mut self.connection).await?;
        let of = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok()).context("INFO cpu")
        };
        Ok(of("used_cpu_user:")? + of("used_cpu_sys:")?)
    }
}
