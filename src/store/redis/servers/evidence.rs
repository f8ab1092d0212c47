//! What Sentinels and servers have said, and what follows from it about the master. No I/O.
//!
//! A server that is replaced by one of its replicas is not told so for up to ten seconds after a failover that was
//! asked for, or as long as it is paused or cut off. It acknowledges writes in the meantime, and they are lost when it
//! becomes a replica. So the server itself is not believed. It is the master for as long as none of the servers that
//! could replace it has done so ([`Evidence::judge`]).

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::address::Host;

/// The longest time for which an observation counts, from before the question was sent.
pub(super) const LEASE: Duration = Duration::from_secs(1);

/// The longest time for which a sign of a failover prevents that the master is confirmed by the majority of the
/// Sentinels. They name the new master about a second after its promotion. A sign that lasts longer is that of a failover
/// that failed (a Sentinel gives it up only after its `failover-timeout`, three minutes by default), or of a replica that
/// was restarted without its configuration.
const FAILOVER: Duration = Duration::from_secs(5);

/// The state of the master as one Sentinel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub master: Host,
    /// The number of failovers so far, as far as the Sentinel knows (`config-epoch`).
    pub epoch: u64,
    /// Whether the Sentinel is replacing this master.
    pub is_replacing: bool,
    /// All replicas, even those that do not respond: they may have been promoted where this Sentinel does not see it.
    pub replicas: Vec<Host>,
}

/// The role of a server, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Master,
    Replica,
}

/// An answer, and the time when its question was sent.
#[derive(Clone, Copy, Debug)]
struct Seen<T> {
    asked: Instant,
    answer: T,
}

/// What is known about the current master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was the master at this time.
    Confirmed(Instant),
    /// It is being replaced, or has been. The text says why.
    Doubted(String),
    /// This server has replaced it. The number is that of [`Report::epoch`].
    Replaced(Host, u64),
    /// The observations do not suffice. The text says which are missing.
    Open(String),
}

/// All observations.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The number of Sentinels.
    sentinels: usize,
    reports: HashMap<usize, Seen<Report>>,
    roles: HashMap<Host, Seen<Role>>,
    /// The most recent state of the master that Sentinels know.
    latest: Option<Report>,
    /// The master that is used.
    current: Option<Host>,
    /// The servers that have been replicas since the current master is used. If one of them says that it is a master, it
    /// has been promoted. Another one was the master before, and has not been told yet.
    followers: HashSet<Host>,
    /// The time since when there are signs that the current master is being replaced.
    suspected: Option<Instant>,
}

impl Evidence {
    pub fn new(sentinels: usize) -> Self {
        let (reports, roles) = Default::default();
        Self { sentinels, reports, roles, latest: None, current: None, followers: HashSet::new(), suspected: None }
    }

    /// Records the answer of a Sentinel.
    pub fn report(&mut self, sentinel: usize, asked: Instant, report: Report) {
        self.reports.insert(sentinel, Seen { asked, answer: report });
    }

    /// Records the answer of a server.
    pub fn role(&mut self, server: Host, asked: Instant, role: Role) {
        if role == Role::Replica {
            self.followers.insert(server.clone());
        }
        self.roles.insert(server, Seen { asked, answer: role });
    }

    /// Returns the servers whose roles have to be asked for.
    pub fn servers(&self) -> HashSet<&Host> {
        let latest = self.latest.iter().flat_map(|latest| latest.replicas.iter().chain([&latest.master]));
        latest.chain(&self.current).collect()
    }

    /// Draws the conclusion at `now`. After [`Verdict::Replaced`] the named server is the current master.
    pub fn judge(&mut self, now: Instant) -> Verdict {
        self.learn_latest(now);
        let servers: HashSet<Host> = self.servers().into_iter().cloned().collect();
        self.roles.retain(|server, _| servers.contains(server));
        let Some(Report { master, epoch, replicas, .. }) = self.latest.clone() else {
            return Verdict::Open("no Sentinel has answered".to_owned());
        };
        if self.current.as_ref() != Some(&master) {
            // A Sentinel names the new master as soon as it is promoted, and an outdated one names a former master.
            return match self.role_of(&master, now) {
                Some(Seen { answer: Role::Master, .. }) => {
                    self.current = Some(master.clone());
                    self.followers.clear();
                    self.suspected = None;
                    Verdict::Replaced(master, epoch)
                }
                Some(_) => Verdict::Doubted(format!("the Sentinels name {master}, which is not a master yet")),
                None => Verdict::Doubted(format!("the Sentinels name {master}, which does not answer")),
            };
        }
        self.judge_current(&master, &replicas, now)
    }

    fn judge_current(&mut self, master: &Host, replicas: &[Host], now: Instant) -> Verdict {
        let own = match self.role_of(master, now) {
            Some(Seen { answer: Role::Master, asked }) => asked,
            Some(_) => return Verdict::Doubted(format!("{master} has become a replica")),
            None => return Verdict::Open(format!("{master} does not say that it is the master")),
        };
        let others: Vec<&Host> = replicas.iter().filter(|replica| *replica != master).collect();
        let roles: Vec<_> = others.iter().map(|other| (*other, self.role_of(other, now))).collect();
        let is_promoted = |(other, role): &&(&Host, Option<Seen<Role>>)| {
            role.is_some_and(|role| role.answer == Role::Master) && self.followers.contains(*other)
        };
        let sign = match roles.iter().find(is_promoted) {
            Some((other, _)) => Some(format!("{other} has been promoted")),
            None if self.is_being_replaced(master, now) => Some(format!("a Sentinel is replacing {master}")),
            None => None,
        };
        self.suspected = sign.as_ref().map(|_| self.suspected.unwrap_or(now));
        if let (Some(sign), Some(since)) = (sign, self.suspected)
            && now.saturating_duration_since(since) < FAILOVER
        {
            return Verdict::Doubted(sign);
        }
        // Either of the two suffices: every replica is one, or the majority of the Sentinels names this master.
        let following = roles.iter().map(|(_, role)| role.filter(|role| role.answer == Role::Replica));
        let followed = following.map(|role| role.map(|role| role.asked)).collect::<Option<Vec<_>>>();
        let followed = followed.map(|asked| asked.into_iter().fold(own, Instant::min));
        let named = self.named_by_majority(master, now).map(|asked| asked.min(own));
        match followed.max(named) {
            Some(asked) => Verdict::Confirmed(asked),
            None => {
                let silent: Vec<String> =
                    roles.iter().filter(|(_, role)| role.is_none()).map(|(other, _)| other.to_string()).collect();
                Verdict::Open(format!(
                    "fewer than half of the {} Sentinels name {master} or answer, and not every replica says that it is \
                     one (without an answer: {})",
                    self.sentinels,
                    if silent.is_empty() { "none".to_owned() } else { silent.join(", ") }
                ))
            }
        }
    }

    /// Updates the most recent state. A report of fewer failovers is outdated, unless the majority agrees with it
    /// because the Sentinels were set up again.
    fn learn_latest(&mut self, now: Instant) {
        let fresh = || self.reports.values().filter(|seen| is_fresh(seen.asked, now)).map(|seen| &seen.answer);
        let Some(best) = fresh().max_by_key(|report| report.epoch) else { return };
        let is_outdated = self.latest.as_ref().is_some_and(|latest| best.epoch < latest.epoch);
        if is_outdated && self.named_by_majority(&best.master, now).is_none() {
            return;
        }
        // The Sentinels find replicas one by one.
        let agreeing = fresh().filter(|report| report.master == best.master);
        let mut replicas: Vec<Host> = Vec::new();
        for replica in agreeing.flat_map(|report| &report.replicas) {
            if !replicas.contains(replica) {
                replicas.push(replica.clone());
            }
        }
        self.latest = Some(Report { replicas, ..best.clone() });
    }

    /// Returns whether a Sentinel directs a failover of this master.
    fn is_being_replaced(&self, master: &Host, now: Instant) -> bool {
        let mut fresh = self.reports.values().filter(|seen| is_fresh(seen.asked, now)).map(|seen| &seen.answer);
        fresh.any(|report| report.is_replacing && report.master == *master)
    }

    /// Returns the time at which more than half of the Sentinels named this master, if they did.
    fn named_by_majority(&self, master: &Host, now: Instant) -> Option<Instant> {
        let naming = self.reports.values().filter(|seen| seen.answer.master == *master);
        let mut asked: Vec<Instant> = naming.map(|seen| seen.asked).filter(|asked| is_fresh(*asked, now)).collect();
        asked.sort_unstable_by(|a, b| b.cmp(a));
        asked.get(self.sentinels / 2).copied()
    }

    fn role_of(&self, server: &Host, now: Instant) -> Option<Seen<Role>> {
        self.roles.get(server).copied().filter(|seen| is_fresh(seen.asked, now))
    }
}

fn is_fresh(asked: Instant, now: Instant) -> bool {
    now.saturating_duration_since(asked) < LEASE
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u16 = 1;
    const B: u16 = 2;
    const C: u16 = 3;

    fn host(port: u16) -> Host {
        Host { name: "h".to_owned(), port }
    }

    /// Observations by three Sentinels, of a master with these replicas, at times in milliseconds.
    struct Watched {
        evidence: Evidence,
        start: Instant,
    }

    impl Watched {
        /// Starts with everything in order at time 0: A is the master, and everyone says so.
        fn new(replicas: &[u16]) -> Self {
            let mut watched = Self { evidence: Evidence::new(3), start: Instant::now() };
            watched.reports(0, A, 1, replicas);
            assert!(matches!(watched.judge(0), Verdict::Doubted(_)), "A was not asked yet");
            watched.role(0, A, Role::Master);
            assert_eq!(watched.judge(0), Verdict::Replaced(host(A), 1));
            for replica in replicas {
                watched.role(0, *replica, Role::Replica);
            }
            assert_eq!(watched.judge(0), watched.confirmed(0));
            watched
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        fn confirmed(&self, millis: u64) -> Verdict {
            Verdict::Confirmed(self.at(millis))
        }

        fn report(&mut self, sentinel: usize, millis: u64, master: u16, epoch: u64, replicas: &[u16]) {
            let replicas = replicas.iter().map(|port| host(*port)).collect();
            let report = Report { master: host(master), epoch, is_replacing: false, replicas };
            self.evidence.report(sentinel, self.at(millis), report);
        }

        fn reports(&mut self, millis: u64, master: u16, epoch: u64, replicas: &[u16]) {
            for sentinel in 0..3 {
                self.report(sentinel, millis, master, epoch, replicas);
            }
        }

        fn replacing(&mut self, sentinel: usize, millis: u64, master: u16) {
            let report = Report { master: host(master), epoch: 1, is_replacing: true, replicas: vec![host(B)] };
            self.evidence.report(sentinel, self.at(millis), report);
        }

        fn role(&mut self, millis: u64, server: u16, role: Role) {
            self.evidence.role(host(server), self.at(millis), role);
        }

        fn judge(&mut self, millis: u64) -> Verdict {
            self.evidence.judge(self.at(millis))
        }
    }

    #[test]
    fn a_master_is_confirmed_by_its_replicas_or_by_the_majority_of_the_sentinels() {
        let mut watched = Watched::new(&[B, C]);
        // Without Sentinels: all replicas say that they are replicas.
        for (millis, server) in [(1_000, A), (1_100, B), (1_200, C)] {
            let role = if server == A { Role::Master } else { Role::Replica };
            watched.role(millis, server, role);
        }
        assert_eq!(watched.judge(1_200), watched.confirmed(1_000));
        // One replica is silent: two of three Sentinels suffice, one does not.
        watched.role(2_300, A, Role::Master);
        watched.role(2_300, B, Role::Replica);
        watched.report(0, 2_400, A, 1, &[B, C]);
        assert!(matches!(watched.judge(2_400), Verdict::Open(why) if why.contains("h:3")));
        watched.report(1, 2_400, A, 1, &[B, C]);
        assert_eq!(watched.judge(2_400), watched.confirmed(2_300));
        // The master itself is silent.
        watched.reports(3_400, A, 1, &[B, C]);
        assert!(matches!(watched.judge(3_400), Verdict::Open(why) if why.contains("h:1")));
    }

    #[test]
    fn a_promoted_replica_ends_the_confirmation_before_the_sentinels_name_it() {
        let mut watched = Watched::new(&[B]);
        watched.role(100, B, Role::Master);
        assert!(matches!(watched.judge(100), Verdict::Doubted(why) if why.contains("h:2")));
        // One Sentinel names it, and the others do not know it yet. The former master still says that it is one.
        watched.role(900, A, Role::Master);
        watched.role(900, B, Role::Master);
        watched.reports(900, A, 1, &[B]);
        watched.report(1, 900, B, 2, &[A]);
        assert_eq!(watched.judge(900), Verdict::Replaced(host(B), 2));
        assert!(matches!(watched.judge(900), Verdict::Open(_)));
        watched.report(2, 950, B, 2, &[A]);
        assert_eq!(watched.judge(950), watched.confirmed(900));
        // The former master follows, and replaces the new one in turn.
        watched.role(1_000, A, Role::Replica);
        watched.role(1_100, A, Role::Master);
        assert!(matches!(watched.judge(1_100), Verdict::Doubted(_)));
    }

    #[test]
    fn a_failover_in_progress_ends_the_confirmation_for_a_limited_time() {
        let mut watched = Watched::new(&[B]);
        for millis in [100, 2_500, 4_900, 5_101] {
            watched.role(millis, A, Role::Master);
            watched.role(millis, B, Role::Replica);
            watched.reports(millis, A, 1, &[B]);
            watched.replacing(0, millis, A);
            let verdict = watched.judge(millis);
            match millis {
                5_101 => assert_eq!(verdict, watched.confirmed(5_101)),
                _ => assert!(matches!(verdict, Verdict::Doubted(why) if why.contains("replacing h:1")), "{millis}"),
            }
        }
        // The next failover is a new sign.
        watched.reports(5_200, A, 1, &[B]);
        assert_eq!(watched.judge(5_200), watched.confirmed(5_101));
        watched.replacing(0, 5_300, A);
        assert!(matches!(watched.judge(5_300), Verdict::Doubted(_)));
    }

    #[test]
    fn a_cut_off_master_is_not_confirmed() {
        // The service, the master and one Sentinel are on one side, and the replica and two Sentinels on the other.
        let mut watched = Watched::new(&[B]);
        watched.role(1_500, A, Role::Master);
        watched.report(0, 1_500, A, 1, &[B]);
        assert!(matches!(watched.judge(1_500), Verdict::Open(_)));
        // A service that starts there does not find a confirmed master either.
        let mut watched = Watched { evidence: Evidence::new(3), start: Instant::now() };
        watched.report(0, 0, A, 1, &[B]);
        watched.role(0, A, Role::Master);
        assert_eq!(watched.judge(0), Verdict::Replaced(host(A), 1));
        assert!(matches!(watched.judge(0), Verdict::Open(_)));
    }

    #[test]
    fn an_outdated_sentinel_is_not_believed_unless_the_majority_agrees_with_it() {
        let mut watched = Watched::new(&[B]);
        watched.reports(100, B, 2, &[A]);
        watched.role(100, B, Role::Master);
        assert_eq!(watched.judge(100), Verdict::Replaced(host(B), 2));
        // The others are silent.
        watched.report(0, 1_200, A, 1, &[B]);
        watched.role(1_200, A, Role::Master);
        watched.role(1_200, B, Role::Master);
        assert!(matches!(watched.judge(1_200), Verdict::Open(_)));
        // They were set up again, and begin to count failovers from 0.
        watched.report(0, 1_300, A, 0, &[B]);
        watched.report(1, 1_300, A, 0, &[B]);
        assert_eq!(watched.judge(1_300), Verdict::Replaced(host(A), 0));
        assert_eq!(watched.judge(1_300), watched.confirmed(1_200));
    }

    #[test]
    fn a_demoted_master_is_doubted() {
        let mut watched = Watched::new(&[B]);
        watched.role(100, A, Role::Replica);
        assert!(matches!(watched.judge(100), Verdict::Doubted(why) if why.contains("become a replica")));
    }
}
