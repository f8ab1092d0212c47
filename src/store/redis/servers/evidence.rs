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

/// The longest time for which a sign of a failover alone keeps the master from being confirmed. The Sentinels name the
/// new master about a second after its promotion. A replica that says for longer that it is a master was restarted
/// without its configuration. A failover that lasts longer, while every replica still says that it is one, has failed:
/// a Sentinel gives it up only after its `failover-timeout`, three minutes by default.
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
pub(super) enum Conclusion {
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
    /// Whether the majority of the Sentinels has named the current master since it is used. Only then are its replicas
    /// known: a Sentinel that was reset or cut off may list none.
    is_established: bool,
    /// The servers that have been replicas since the current master is used. If one of them says that it is a master,
    /// it has been promoted. Any other server that says so was the master before, and has not been told yet.
    followers: HashSet<Host>,
    /// The times since when replicas say that they are masters, and, with no server, since when a Sentinel reports that
    /// it is replacing the current master.
    signs: HashMap<Option<Host>, Instant>,
}

impl Evidence {
    pub fn new(sentinels: usize) -> Self {
        let (reports, roles, followers, signs) = Default::default();
        Self { sentinels, reports, roles, latest: None, current: None, is_established: false, followers, signs }
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

    /// Returns the server that the Sentinels name as the master.
    pub fn named(&self) -> Option<&Host> {
        self.latest.as_ref().map(|latest| &latest.master)
    }

    /// Returns the servers whose roles have to be asked for.
    pub fn servers(&self) -> HashSet<&Host> {
        let latest = self.latest.iter().flat_map(|latest| latest.replicas.iter().chain([&latest.master]));
        latest.chain(&self.current).collect()
    }

    /// Draws the conclusion at `now`. After [`Conclusion::Replaced`] the named server is the current master.
    pub fn judge(&mut self, now: Instant) -> Conclusion {
        self.learn_latest(now);
        let servers: HashSet<Host> = self.servers().into_iter().cloned().collect();
        self.roles.retain(|server, _| servers.contains(server));
        let Some(Report { master, epoch, replicas, .. }) = self.latest.clone() else {
            return Conclusion::Open("no Sentinel has answered".to_owned());
        };
        if self.current.as_ref() != Some(&master) {
            // A Sentinel names the new master as soon as it is promoted, and an outdated one names a former master.
            return match self.role_of(&master, now) {
                Some(Seen { answer: Role::Master, .. }) => {
                    self.current = Some(master.clone());
                    self.is_established = false;
                    self.followers.clear();
                    self.signs.clear();
                    Conclusion::Replaced(master, epoch)
                }
                Some(_) => Conclusion::Doubted(format!("the Sentinels name {master}, which is not a master yet")),
                None => Conclusion::Doubted(format!("the Sentinels name {master}, which does not answer")),
            };
        }
        self.judge_current(&master, &replicas, now)
    }

    fn judge_current(&mut self, master: &Host, replicas: &[Host], now: Instant) -> Conclusion {
        let own = match self.role_of(master, now) {
            Some(Seen { answer: Role::Master, asked }) => asked,
            Some(_) => return Conclusion::Doubted(format!("{master} has become a replica")),
            None => return Conclusion::Open(format!("{master} does not say that it is the master")),
        };
        let others: Vec<&Host> = replicas.iter().filter(|replica| *replica != master).collect();
        let roles: Vec<_> = others.iter().map(|other| (*other, self.role_of(other, now))).collect();
        let following = roles.iter().map(|(_, role)| role.filter(|role| role.answer == Role::Replica));
        let followed = following.map(|role| role.map(|role| role.asked)).collect::<Option<Vec<_>>>();

        let is_promoted = |(other, role): &&(&Host, Option<Seen<Role>>)| {
            role.is_some_and(|role| role.answer == Role::Master) && self.followers.contains(*other)
        };
        let promoted: Vec<&Host> = roles.iter().filter(is_promoted).map(|(other, _)| *other).collect();
        let is_being_replaced = self.is_being_replaced(master, now);
        let is_sign = |sign: &Option<Host>| sign.as_ref().map_or(is_being_replaced, |host| promoted.contains(&host));
        self.signs.retain(|sign, _| is_sign(sign));
        for sign in promoted.iter().map(|host| Some((*host).clone())).chain(is_being_replaced.then_some(None)) {
            self.signs.entry(sign).or_insert(now);
        }
        let is_recent = |since: &Instant| now.saturating_duration_since(*since) < FAILOVER;
        if let Some(other) = promoted.iter().find(|host| self.signs.get(&Some((**host).clone())).is_some_and(is_recent))
        {
            return Conclusion::Doubted(format!("{other} has been promoted"));
        }
        if is_being_replaced && (followed.is_none() || self.signs.get(&None).is_some_and(is_recent)) {
            return Conclusion::Doubted(format!("a Sentinel is replacing {master}"));
        }

        // Either of the two suffices: the majority of the Sentinels names this master, or every replica is one.
        let named = self.named_by_majority(master, now);
        self.is_established |= named.is_some();
        let is_known = self.is_established && !others.is_empty();
        let followed = followed.filter(|_| is_known).map(|asked| asked.into_iter().fold(own, Instant::min));
        match followed.max(named.map(|asked| asked.min(own))) {
            Some(asked) => Conclusion::Confirmed(asked),
            None => {
                let silent: Vec<String> =
                    roles.iter().filter(|(_, role)| role.is_none()).map(|(other, _)| other.to_string()).collect();
                Conclusion::Open(format!(
                    "fewer than half of the {} Sentinels name {master} or answer, and not every replica says that it is \
                     one (without an answer: {})",
                    self.sentinels,
                    if silent.is_empty() { "none".to_owned() } else { silent.join(", ") }
                ))
            }
        }
    }

    /// Updates the most recent state. A report of fewer failovers is outdated, unless the majority agrees with it
    /// because the Sentinels were set up again. Of two reports of equally many failovers, the one that more Sentinels
    /// give counts.
    fn learn_latest(&mut self, now: Instant) {
        let fresh = || self.reports.values().filter(|seen| is_fresh(seen.asked, now)).map(|seen| &seen.answer);
        let agreeing = |master: &Host| fresh().filter(|report| report.master == *master).count();
        let Some(best) = fresh().max_by_key(|report| (report.epoch, agreeing(&report.master))) else { return };
        let has_majority = agreeing(&best.master) > self.sentinels / 2;
        let latest = self.latest.as_ref();
        if latest.is_some_and(|latest| best.epoch < latest.epoch) && !has_majority {
            return;
        }
        // Each Sentinel finds the replicas by itself, and forgets them when it is reset.
        let known = latest.filter(|latest| latest.master == best.master && !has_majority);
        let listed = fresh().filter(|report| report.master == best.master).chain(known);
        let mut replicas: Vec<Host> = Vec::new();
        for replica in listed.flat_map(|report| &report.replicas) {
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
            assert!(matches!(watched.judge(0), Conclusion::Doubted(_)), "the role of A is not known");
            watched.role(0, A, Role::Master);
            assert_eq!(watched.judge(0), Conclusion::Replaced(host(A), 1));
            for replica in replicas {
                watched.role(0, *replica, Role::Replica);
            }
            assert_eq!(watched.judge(0), watched.confirmed(0));
            watched
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        fn confirmed(&self, millis: u64) -> Conclusion {
            Conclusion::Confirmed(self.at(millis))
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

        fn judge(&mut self, millis: u64) -> Conclusion {
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
        assert!(matches!(watched.judge(2_400), Conclusion::Open(why) if why.contains("h:3")));
        watched.report(1, 2_400, A, 1, &[B, C]);
        assert_eq!(watched.judge(2_400), watched.confirmed(2_300));
        // The master itself is silent.
        watched.reports(3_400, A, 1, &[B, C]);
        assert!(matches!(watched.judge(3_400), Conclusion::Open(why) if why.contains("h:1")));
    }

    #[test]
    fn a_promoted_replica_ends_the_confirmation_before_the_sentinels_name_it() {
        let mut watched = Watched::new(&[B]);
        watched.role(100, B, Role::Master);
        assert!(matches!(watched.judge(100), Conclusion::Doubted(why) if why.contains("h:2")));
        // One Sentinel names it, and the others do not know it yet. The former master still says that it is one.
        watched.role(900, A, Role::Master);
        watched.role(900, B, Role::Master);
        watched.reports(900, A, 1, &[B]);
        watched.report(1, 900, B, 2, &[A]);
        assert_eq!(watched.judge(900), Conclusion::Replaced(host(B), 2));
        assert!(matches!(watched.judge(900), Conclusion::Open(_)));
        watched.report(2, 950, B, 2, &[A]);
        assert_eq!(watched.judge(950), watched.confirmed(900));
        // The former master follows, and replaces the new one in turn.
        watched.role(1_000, A, Role::Replica);
        watched.role(1_100, A, Role::Master);
        assert!(matches!(watched.judge(1_100), Conclusion::Doubted(_)));
    }

    #[test]
    fn a_failover_in_progress_ends_the_confirmation_for_a_limited_time() {
        let mut watched = Watched::new(&[B]);
        let replacing = |watched: &mut Watched, millis, replica| {
            watched.role(millis, A, Role::Master);
            if let Some(role) = replica {
                watched.role(millis, B, role);
            }
            watched.reports(millis, A, 1, &[B]);
            watched.replacing(0, millis, A);
            watched.judge(millis)
        };
        for millis in [100, 2_500, 5_099] {
            let conclusion = replacing(&mut watched, millis, Some(Role::Replica));
            assert!(matches!(conclusion, Conclusion::Doubted(why) if why.contains("replacing h:1")), "{millis}");
        }
        assert_eq!(replacing(&mut watched, 5_100, Some(Role::Replica)), watched.confirmed(5_100));
        // It goes on, and the replica is silent, or is promoted after all.
        assert!(matches!(replacing(&mut watched, 6_200, None), Conclusion::Doubted(_)));
        assert_eq!(replacing(&mut watched, 6_300, Some(Role::Replica)), watched.confirmed(6_300));
        let conclusion = replacing(&mut watched, 6_400, Some(Role::Master));
        assert!(matches!(conclusion, Conclusion::Doubted(why) if why.contains("h:2 has been promoted")));
        // The next failover is a new sign.
        watched.role(6_500, B, Role::Replica);
        watched.reports(6_500, A, 1, &[B]);
        assert_eq!(watched.judge(6_500), watched.confirmed(6_400));
        assert!(matches!(replacing(&mut watched, 6_600, Some(Role::Replica)), Conclusion::Doubted(_)));
    }

    #[test]
    fn a_replica_that_was_restarted_as_a_master_ends_the_confirmation_for_a_limited_time() {
        let mut watched = Watched::new(&[B]);
        for millis in [100, 2_600, 5_099, 5_100] {
            watched.role(millis, A, Role::Master);
            watched.role(millis, B, Role::Master);
            watched.reports(millis, A, 1, &[B]);
            let conclusion = watched.judge(millis);
            assert_eq!(matches!(conclusion, Conclusion::Doubted(_)), millis < 5_100, "{millis} {conclusion:?}");
        }
    }

    #[test]
    fn a_sentinel_that_lists_no_replicas_confirms_nothing() {
        // The service, the master and one Sentinel are on one side, and that Sentinel is reset.
        let mut watched = Watched::new(&[B]);
        watched.role(1_500, A, Role::Master);
        watched.report(0, 1_500, A, 0, &[]);
        assert!(matches!(watched.judge(1_500), Conclusion::Open(why) if why.contains("h:2")));
        watched.report(0, 1_600, A, 1, &[]);
        assert!(matches!(watched.judge(1_600), Conclusion::Open(why) if why.contains("h:2")));
        // A service that starts there knows no replica, or one of several.
        for (replicas, role) in [(&[][..], None), (&[C], Some(Role::Replica))] {
            let mut watched = Watched { evidence: Evidence::new(3), start: Instant::now() };
            watched.report(0, 0, A, 1, replicas);
            watched.role(0, A, Role::Master);
            assert_eq!(watched.judge(0), Conclusion::Replaced(host(A), 1));
            if let Some(role) = role {
                watched.role(0, C, role);
            }
            assert!(matches!(watched.judge(0), Conclusion::Open(_)));
        }
    }

    #[test]
    fn of_sentinels_that_count_the_same_failovers_the_majority_is_believed() {
        for odd in 0..3 {
            let mut watched = Watched { evidence: Evidence::new(3), start: Instant::now() };
            watched.reports(0, A, 0, &[B]);
            watched.report(odd, 0, B, 0, &[A]);
            watched.role(0, A, Role::Master);
            watched.role(0, B, Role::Replica);
            watched.judge(0);
            watched.role(0, A, Role::Master);
            assert_eq!(watched.judge(0), watched.confirmed(0), "{odd}");
        }
    }

    #[test]
    fn a_cut_off_master_is_not_confirmed() {
        // The service, the master and one Sentinel are on one side, and the replica and two Sentinels on the other.
        let mut watched = Watched::new(&[B]);
        watched.role(1_500, A, Role::Master);
        watched.report(0, 1_500, A, 1, &[B]);
        assert!(matches!(watched.judge(1_500), Conclusion::Open(_)));
        // A service that starts there does not find a confirmed master either.
        let mut watched = Watched { evidence: Evidence::new(3), start: Instant::now() };
        watched.report(0, 0, A, 1, &[B]);
        watched.role(0, A, Role::Master);
        assert_eq!(watched.judge(0), Conclusion::Replaced(host(A), 1));
        assert!(matches!(watched.judge(0), Conclusion::Open(_)));
    }

    #[test]
    fn an_outdated_sentinel_is_not_believed_unless_the_majority_agrees_with_it() {
        let mut watched = Watched::new(&[B]);
        watched.reports(100, B, 2, &[A]);
        watched.role(100, B, Role::Master);
        assert_eq!(watched.judge(100), Conclusion::Replaced(host(B), 2));
        // The others are silent.
        watched.report(0, 1_200, A, 1, &[B]);
        watched.role(1_200, A, Role::Master);
        watched.role(1_200, B, Role::Master);
        assert!(matches!(watched.judge(1_200), Conclusion::Open(_)));
        // They were set up again, and begin to count failovers from 0.
        watched.report(0, 1_300, A, 0, &[B]);
        watched.report(1, 1_300, A, 0, &[B]);
        assert_eq!(watched.judge(1_300), Conclusion::Replaced(host(A), 0));
        assert_eq!(watched.judge(1_300), watched.confirmed(1_200));
    }

    #[test]
    fn a_demoted_master_is_doubted() {
        let mut watched = Watched::new(&[B]);
        watched.role(100, A, Role::Replica);
        assert!(matches!(watched.judge(100), Conclusion::Doubted(why) if why.contains("become a replica")));
    }
}
