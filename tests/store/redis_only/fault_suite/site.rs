//! One server, two instances, boards of several kinds, and the work of the scheduler beside the writers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use super::super::proxy::{Fault as Loss, Proxy};
use super::*;
use crate::given::{definition, unranked};
use crate::waiting::Wait;

/// The options of a server on which acknowledged data is on the disk.
const PERSISTENT: [&str; 6] = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];

pub struct Site {
    pub server: RedisServer,
    /// The proxy in front of the first store.
    pub proxy: Proxy,
    pub stores: Vec<Arc<RedisStore>>,
    clock_moves: bool,
}

/// The tasks that do the work of the scheduler, and readers.
pub struct Keepers {
    tasks: Vec<tokio::task::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Site {
    pub async fn start(engine: &Engine) -> Site {
        let movable = tokio::task::block_in_place(|| RedisServer::with_movable_clock_and(engine, &PERSISTENT));
        let clock_moves = movable.is_some();
        let plain = || tokio::task::block_in_place(|| RedisServer::start_with(engine, &PERSISTENT));
        let server = movable.unwrap_or_else(plain);
        let proxy = Proxy::start(server.port).await;
        let connect = |url| RedisStore::connect(hasty(url, ClockMode::System));
        let stores = vec![connect(proxy.url()).await.unwrap(), connect(server.url()).await.unwrap()];
        Site { server, proxy, stores, clock_moves }
    }

    /// Defines the boards, as both instances do that have them in their configuration.
    pub async fn boards(&self) -> Vec<Arc<Board>> {
        let shards = |shards, definition| Definition { shards: Some(shards), ..definition };
        let mut boards = Vec::new();
        for (name, definition) in [
            ("likes", definition("COUNT(24h, e, s)", "1h")),
            ("spread", shards(4, definition("SUM(24h, e, v, s)", "1h"))),
            ("values", definition("COUNT_DISTINCT(24h, e, s, c)", "1h")),
            ("means", shards(3, definition("AVG(24h, e, v, s)", "1h"))),
            ("slices", unranked("SUM(24h, e, v, s)", "1h")),
        ] {
            let name = BoardName::parse(name).unwrap();
            let mut defined = None;
            for store in &self.stores {
                match super::super::writers::patiently(|| store.define(new_board(&name, &definition))).await {
                    Defined::Created(board) | Defined::Unchanged(board) => defined = Some(board),
                    Defined::Conflict(board) => panic!("{name} is defined otherwise: {:?}", board.definition()),
                }
            }
            boards.extend(defined);
        }
        boards
    }

    /// Arms the proxy. In some rounds a reply of the server is lost during the fault.
    pub fn prepare(&self, random: &mut StdRng) {
        self.proxy.arm(if random.random_ratio(1, 3) { Loss::Reset } else { Loss::None });
    }

    /// Runs a command on the server directly. It must succeed.
    pub fn tell(&self, words: &[&str]) {
        tokio::task::block_in_place(|| self.server.ask::<redis::Value>(words)).unwrap();
    }

    /// Returns whether this fault is possible: the clock of some engines cannot be moved.
    pub fn can(&self, fault: Fault) -> bool {
        fault != Fault::ClockLeap || self.clock_moves
    }

    /// Opens the emptied store again through each instance, as the service does when it notices.
    pub async fn reopen(&self) {
        for store in &self.stores {
            let wait = Wait::begin("the store to be opened again");
            let mut noticed = false;
            loop {
                match store.check().await {
                    Ok(()) if noticed => break,
                    Ok(()) => panic!("the store does not notice that it was emptied"),
                    Err(StoreError::Emptied { .. }) => {
                        noticed = true;
                        if let Err(error) = store.reopen().await {
                            assert!(error.is_transient(), "{error:?}");
                        }
                    }
                    Err(error) => assert!(error.is_transient(), "{error:?}"),
                }
                wait.rest("an error").await;
            }
        }
    }

    /// Does the work of the scheduler on both instances, and reads.
    pub fn keep(&self, boards: &[Arc<Board>]) -> Keepers {
        let stop = Arc::<AtomicBool>::default();
        let keep = |store: &Arc<RedisStore>| tokio::spawn(keep(store.clone(), boards.to_vec(), stop.clone()));
        Keepers { tasks: self.stores.iter().map(keep).collect(), stop }
    }
}

impl Keepers {
    pub async fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

async fn keep(store: Arc<RedisStore>, boards: Vec<Arc<Board>>, stop: Arc<AtomicBool>) {
    fn fair<T>(answer: Result<T, StoreError>) {
        if let Err(error) = answer {
            assert!(error.is_transient() && error.retry_after().is_some(), "{error:?}");
        }
    }
    while !stop.load(Ordering::SeqCst) {
        fair(store.tend().await);
        fair(store.tidy_step().await);
        fair(store.check().await);
        for board in &boards {
            if board.edition().main().is_ranked() {
                fair(store.retire_step(&board.main()).await);
                fair(store.page(&board.main(), 0, 10).await);
            }
            fair(store.standing(&board.main(), &subject("s1")).await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
