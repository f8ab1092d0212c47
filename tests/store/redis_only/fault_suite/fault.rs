//! The faults of the server.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use super::super::proxy::Fault as Loss;
use super::super::writers::{Mark, Writers};
use super::site::Site;
use crate::redis_server::free_port;
use crate::waiting::Wait;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    Kill,
    Pause,
    OrderlyRestart,
    ScriptsForgotten,
    OutOfMemory,
    ReadOnly,
    Disconnected,
    LostReplies,
    ClockLeap,
}

/// 400 days.
const LEAP: u64 = 400 * 86_400;

impl Fault {
    pub const ALL: [Fault; 9] = [
        Fault::Kill,
        Fault::Pause,
        Fault::OrderlyRestart,
        Fault::ScriptsForgotten,
        Fault::OutOfMemory,
        Fault::ReadOnly,
        Fault::Disconnected,
        Fault::LostReplies,
        Fault::ClockLeap,
    ];

    /// Causes the fault, ends it, and returns the progress of the writers when the server was back.
    pub async fn strike(self, site: &mut Site, writers: &Writers, random: &mut StdRng) -> Mark {
        let lasts = Duration::from_millis(random.random_range(50..1_000));
        match self {
            Fault::Kill => {
                tokio::task::block_in_place(|| site.server.kill());
                tokio::time::sleep(lasts).await;
                tokio::task::block_in_place(|| site.server.restart());
            }
            Fault::Pause => {
                // In half of the cases longer than a response is waited for.
                site.server.pause(true);
                tokio::time::sleep(lasts * 4).await;
                site.server.pause(false);
            }
            Fault::OrderlyRestart => {
                tokio::task::block_in_place(|| {
                    // The connection ends instead of a response.
                    let _ = site.server.ask::<String>(&["SHUTDOWN"]);
                    let wait = Wait::begin("the server to shut down");
                    while std::net::TcpStream::connect(("127.0.0.1", site.server.port)).is_ok() {
                        wait.pause("it still accepts connections");
                    }
                });
                tokio::time::sleep(lasts / 2).await;
                tokio::task::block_in_place(|| site.server.restart());
            }
            Fault::ScriptsForgotten => {
                for _ in 0..random.random_range(1..30) {
                    site.tell(&["SCRIPT", "FLUSH"]);
                    tokio::time::sleep(Duration::from_millis(random.random_range(0..30))).await;
                }
            }
            Fault::OutOfMemory => {
                site.tell(&["CONFIG", "SET", "maxmemory", "1"]);
                tokio::time::sleep(lasts).await;
                site.tell(&["CONFIG", "SET", "maxmemory", "0"]);
            }
            Fault::ReadOnly => {
                site.tell(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]);
                tokio::time::sleep(lasts).await;
                site.tell(&["REPLICAOF", "NO", "ONE"]);
            }
            Fault::Disconnected => {
                for _ in 0..random.random_range(1..10) {
                    site.tell(&["CLIENT", "KILL", "TYPE", "normal"]);
                    tokio::time::sleep(Duration::from_millis(random.random_range(0..100))).await;
                }
            }
            Fault::LostReplies => {
                for _ in 0..random.random_range(1..6) {
                    let loss = if random.random_ratio(1, 4) { Loss::Silence } else { Loss::Reset };
                    let so_far = site.proxy.happened();
                    site.proxy.arm(loss);
                    while site.proxy.happened() == so_far {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            Fault::ClockLeap => {
                // Either so far that the clock is doubted, or less than two of the window's 24 hours.
                let ahead = if random.random_ratio(1, 2) { LEAP } else { random.random_range(1..7_200) };
                site.server.set_clock_ahead(Duration::from_secs(ahead));
                tokio::time::sleep(lasts).await;
                site.server.set_clock_ahead(Duration::ZERO);
            }
        }
        writers.mark()
    }
}
