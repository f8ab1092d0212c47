//! The lanes of all nodes, and the choice of a lane. Each node has its own lanes, so that a node that does not answer
//! delays only questions to itself.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::asked::{Answered, Asked, Pending};
use super::flight;
use super::lane::ReadLane;
use super::pages::Pages;
use super::question::{Question, Read};
use crate::store::redis::part::Part;
use crate::store::redis::servers::Channel;
use crate::store::redis::session::Session;

/// The largest weight of a call, in cells, that does not use the bulk lane.
pub(super) const LIGHT: u64 = 2_048;

/// Where questions to partitions are asked: the lanes for light and for large calls, and the cached pages.
#[derive(Debug)]
pub(super) struct LanesByWeight {
    pub light: Lanes,
    pub bulk: Lanes,
    pub pages: Arc<Pages>,
}

/// The lane to one node.
type NodeLane = ReadLane<Box<dyn Pending>>;

/// A future that runs on the thread of the lanes.
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The lanes that use one connection of each node. All of them run on one thread.
#[derive(Debug)]
pub(super) struct Lanes {
    session: Arc<Session>,
    pages: Arc<Pages>,
    channel: Channel,
    flights: usize,
    /// The lanes, by [`place`](crate::store::redis::servers::Servers::place).
    by_node: RwLock<HashMap<usize, Arc<NodeLane>>>,
    /// The sender of jobs to the thread, or `None` once closed.
    jobs: RwLock<Option<mpsc::UnboundedSender<Job>>>,
}

impl Lanes {
    /// Starts the thread of the lanes. At most `flights` flights are under way to each node at the same time.
    pub fn start(
        name: &str,
        session: &Arc<Session>,
        pages: &Arc<Pages>,
        channel: Channel,
        flights: usize,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (jobs, mut given) = mpsc::unbounded_channel::<Job>();
        let run = async move {
            let mut running = JoinSet::new();
            while let Some(job) = given.recv().await {
                running.spawn(job);
            }
            while running.join_next().await.is_some() {}
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(run))?;
        let (session, pages) = (session.clone(), pages.clone());
        Ok(Self { session, pages, channel, flights, by_node: RwLock::default(), jobs: RwLock::new(Some(jobs)) })
    }

    /// Runs a different future on the thread of the lanes, until it ends.
    pub fn run(&self, job: impl Future<Output = ()> + Send + 'static) {
        if let Some(jobs) = &*self.jobs.read() {
            // The receiver exists until this sender is dropped.
            drop(jobs.send(Box::pin(job)));
        }
    }

    fn make(&self) -> Arc<NodeLane> {
        let lane = Arc::<NodeLane>::default();
        let (session, pages, channel, flights) = (self.session.clone(), self.pages.clone(), self.channel, self.flights);
        let running = lane.clone();
        self.run(async move {
            let fly = |taken| {
                let (session, pages) = (session.clone(), pages.clone());
                async move { flight::fly(&session, channel, &pages, taken).await }
            };
            running.run(flights, fly).await;
        });
        lane
    }

    /// Returns the lane to the node that has a partition.
    fn lane(&self, part: &Part) -> Arc<NodeLane> {
        let place = self.session.servers.place(part.slot());
        if let Some(lane) = self.by_node.read().get(&place) {
            return lane.clone();
        }
        self.by_node.write().entry(place).or_insert_with(|| self.make()).clone()
    }

    /// Adds questions to the lanes of their nodes. The receivers are in the order of the questions.
    pub fn ask_all<R: Read>(&self, questions: impl IntoIterator<Item = Question<R>>) -> Vec<Answered<R::Reply>> {
        ask_all(questions, |_| self)
    }

    /// Ends the thread once no question waits and no other future runs there.
    pub fn close(&self) {
        *self.jobs.write() = None;
        for lane in self.by_node.read().values() {
            lane.close();
        }
    }
}

impl LanesByWeight {
    /// Adds a question to its lane.
    pub fn ask<R: Read>(&self, question: Question<R>) -> Answered<R::Reply> {
        let lane = self.lanes_for(&question).lane(&question.part);
        let (asked, answered) = Asked::new(question);
        lane.add(Box::new(asked));
        lane.go();
        answered
    }

    /// Adds the questions of a round to their lanes, in their order.
    pub fn ask_all<R: Read>(&self, questions: impl IntoIterator<Item = Question<R>>) -> Vec<Answered<R::Reply>> {
        ask_all(questions, |question| self.lanes_for(question))
    }

    fn lanes_for<R: Read>(&self, question: &Question<R>) -> &Lanes {
        if question.weight() <= LIGHT { &self.light } else { &self.bulk }
    }

    /// Ends the threads once no question waits.
    pub fn close(&self) {
        self.light.close();
        self.bulk.close();
    }
}

/// Adds questions to lanes. All of them are on their lanes before the first one is sent, so those to the same node are
/// sent together, in their order.
fn ask_all<'a, R: Read>(
    questions: impl IntoIterator<Item = Question<R>>,
    lanes: impl Fn(&Question<R>) -> &'a Lanes,
) -> Vec<Answered<R::Reply>> {
    let mut used: Vec<Arc<NodeLane>> = Vec::new();
    let mut answered = Vec::new();
    for question in questions {
        let lane = lanes(&question).lane(&question.part);
        let (asked, answer) = Asked::new(question);
        lane.add(Box::new(asked));
        answered.push(answer);
        if !used.iter().any(|other| Arc::ptr_eq(other, &lane)) {
            used.push(lane);
        }
    }
    used.iter().for_each(|lane| lane.go());
    answered
}
