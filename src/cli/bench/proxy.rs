//! A TCP proxy that stands for distance: everything arrives a fixed time later, and nothing is slowed down otherwise.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Bytes that are passed on at a time.
const CHUNK: usize = 1 << 16;

/// A proxy on a free port of this machine. It takes no further connections once it is dropped.
///
/// It uses threads, two for each direction of a connection: few connections go through it, and a timer of the runtime
/// is precise to a millisecond, which is as much as the delay itself.
pub struct Proxy {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Proxy {
    /// Starts to pass on to this address what is sent, and to the sender what is answered, each after `delay`: a round
    /// trip takes twice as much.
    pub fn start(to: &str, delay: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("the proxy cannot listen")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (to, stopped) = (to.to_owned(), Arc::clone(&stop));
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                // Without the far side there is nothing to be done but to close the near one.
                if let Err(error) = connect(near, &to, delay) {
                    eprintln!("the proxy cannot pass on to {to}: {error}");
                }
            }
        });
        Ok(Self { address, stop })
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts. If it cannot be reached it has ended.
        let _ = TcpStream::connect(self.address);
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

/// Passes on one direction until its sender closes it: one thread notes when each chunk came, another waits until it is
/// due. So any number of chunks may be under way, as on a long line.
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
        // The end is passed on as well. That fails only if the connection has gone already.
        let _ = to.shutdown(Shutdown::Write);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets.
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
    fn everything_arrives_in_order_after_the_delay_and_then_the_end() {
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
        // One after the other they would take ten seconds.
        assert!(took < u32::from(PARTS) * DELAY, "{took:?}: the parts waited for each other");
    }

    #[test]
    fn a_stopped_proxy_takes_no_connections() {
        let proxy = Proxy::start(&echo(), Duration::ZERO).unwrap();
        let address = proxy.address();
        drop(proxy);
        let closed =
            || TcpStream::connect(&address).and_then(|mut stream| stream.read(&mut [0])).is_ok_and(|read| read == 0);
        let refused = || TcpStream::connect(&address).is_err();
        assert!(closed() || refused());
    }
}
