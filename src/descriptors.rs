//! File descriptors: the number that this process may have open, and the number that connections may use.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The largest number of connections of all workers together. Further ones wait in the backlog.
const MAX_CONNECTIONS: u64 = 20_000;
/// The smallest such number, however low the limit is.
const LEAST_CONNECTIONS: u64 = 4;
/// The descriptors reserved for everything except connections: the store's files, its sockets to Redis, the workers'
/// pollers.
const RESERVE: u64 = 256;
/// The number of connections below which a warning is logged.
const FEW_CONNECTIONS: u64 = 1_000;

/// Raises the soft limit of open files to the hard limit. If the system refuses, the limit stays as it was.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let shown = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::info!("the limit of open files is raised from {} to {}", shown(current), shown(maximum)),
        Err(error) => {
            tracing::warn!(
                "the limit of open files stays at {}: raising it to {}: {error}",
                shown(current),
                shown(maximum)
            );
        }
    }
}

/// Returns the number of connections that all workers together may have under the current limit of open files, and logs
/// it.
pub fn most_connections() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let most = limit.map_or(MAX_CONNECTIONS, connections_under);
    if most < FEW_CONNECTIONS {
        let limit = limit.unwrap_or_default();
        tracing::warn!("at most {most} connections at once: only {limit} files may be open (see `ulimit -n`)");
    } else {
        tracing::info!("at most {most} connections at once");
    }
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Returns the number of connections under this limit of open files. It leaves the reserve free, or half of the limit
/// if that is less.
fn connections_under(limit: u64) -> u64 {
    limit.saturating_sub(RESERVE.min(limit / 2)).clamp(LEAST_CONNECTIONS, MAX_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limits_leave_a_reserve_of_descriptors() {
        for (limit, connections) in [
            (0, 4),
            (16, 8),
            (64, 32),
            (512, 256),
            (1_024, 768),
            (20_255, 19_999),
            (20_256, 20_000),
            (1 << 20, 20_000),
            (u64::MAX, 20_000),
        ] {
            assert_eq!(connections_under(limit), connections, "{limit}");
        }
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        raise_limit();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
