//! A TCP proxy that simulates distance: everything arrives a fixed time later. It does not limit the rate.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

/// The number of bytes passed on at a time.
const CHUNK: usize = 1 << 16;

/// A proxy on a free port of this machine. It accepts no further connections after it is dropped.
///
/// It uses two threads for each direction of a connection. Few connections pass through it, and a timer of the runtime
/// is precise only to a millisecond, which is as much as the delay itself.
pub struct Proxy {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// The thread that accepts connections, until it is joined.
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy to this address. It delays requests and responses by `delay` each, so a round trip takes twice as
    /// much longer.
    pub fn start(to: &str, delay: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("the proxy cannot listen")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (to, stopped) = (to.to_owned(), Arc::clone(&stop));
        let accepting = std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                // If the server cannot be reached, the client's connection is closed.
                if let Err(error) = connect(near, &to, delay) {
                    eprintln!("the proxy cannot pass on to {to}: {error}");
                }
            }
        });
        Ok(Self { address, stop, accepting: Some(accepting) })
    }

    /// Returns the address of the proxy.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections, and waits until it has closed the port. While a port is being
        // closed, a connection to it may succeed and stay open although nothing accepts it.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take()
            && woken
        {
            let _ = accepting.join();
        }
    }
}

fn connect(near: TcpStream, to: &str, delay: Duration) -> std::io::Result<()> {
    let far = TcpStream::connect(to)?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
    }
    pass_on(near.try_clone()?, far.try_clone()?, delay);
    pass_on(far, near, delay);
    Ok(())
}

/// Passes on one direction until the sender closes it. One thread records when each chunk arrived, another waits until
/// the chunk is due. So any number of chunks may be in transit, as on a long line.
fn pass_on(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, under_way) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut chunk = vec![0; CHUNK];
        while let Ok(read) = from.read(&mut chunk) {
            if read == 0 || sender.send((Instant::now() + delay, chunk[..read].to_vec())).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, chunk) in under_way {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&chunk).is_err() {
                break;
            }
        }
        // The end of the stream is passed on as well. This fails only if the connection is already closed.
        let _ = to.shutdown(Shutdown::Write);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that sends back what it receives.
    fn echo() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reading = stream.try_clone().unwrap();
            std::io::copy(&mut reading, &mut stream).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        address
    }

    #[test]
    fn the_proxy_delays_data_without_reordering() {
        const DELAY: Duration = Duration::from_millis(50);
        const PARTS: u8 = 100;
        let proxy = Proxy::start(&echo(), DELAY).unwrap();
        let begun = Instant::now();
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        for part in 0..PARTS {
            stream.write_all(&[part; 1_000]).unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let took = begun.elapsed();
        assert_eq!(answer, (0..PARTS).flat_map(|part| [part; 1_000]).collect::<Vec<_>>());
        assert!(took >= 2 * DELAY, "{took:?} is less than a round trip");
        // One after another they would take ten seconds.
        assert!(took < u32::from(PARTS) * DELAY, "{took:?}: the parts waited for each other");
    }

    #[test]
    fn a_stopped_proxy_accepts_no_connections() {
        let proxy = Proxy::start(&echo(), Duration::ZERO).unwrap();
        let address = proxy.address();
        drop(proxy);
        assert!(TcpStream::connect(address).is_err());
    }
}
