//! The lanes of all nodes. Each node has its own lane, so that a node that does not answer delays only questions to
//! itself. All lanes run on one thread.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::flight;
use super::lane::Lane;
use super::pages::Pages;
use super::question::{Answer, Question};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;

/// The receiver of an answer.
pub(super) type Answered = oneshot::Receiver<Result<Answer, ServerFailure>>;

/// A future that runs on the thread of the lanes.
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The lanes that use one connection of each node.
#[derive(Debug)]
pub(super) struct Lanes {
    session: Arc<Session>,
    pages: Arc<Pages>,
    channel: Channel,
    flights: usize,
    /// The lanes, by [`place`](crate::store::redis::servers::Servers::place).
    by_node: RwLock<HashMap<usize, Arc<Lane>>>,
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

    fn make(&self) -> Arc<Lane> {
        let lane = Arc::new(Lane::default());
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

    /// Returns the lane to the node that has the question's part.
    pub fn lane(&self, question: &Question) -> Arc<Lane> {
        let place = self.session.servers.place(question.part.slot());
        if let Some(lane) = self.by_node.read().get(&place) {
            return lane.clone();
        }
        self.by_node.write().entry(place).or_insert_with(|| self.make()).clone()
    }

    /// Adds a question to its lane.
    pub fn ask(&self, question: Question) -> Answered {
        self.lane(&question).ask(question)
    }

    /// Adds questions to their lanes. Those to the same node keep their order. The receivers are in the order of the
    /// questions.
    pub fn ask_all(&self, questions: Vec<Question>) -> Vec<Answered> {
        let mut by_lane: Vec<(Arc<Lane>, Vec<usize>, Vec<Question>)> = Vec::new();
        let count = questions.len();
        for (place, question) in questions.into_iter().enumerate() {
            let lane = self.lane(&question);
            match by_lane.iter_mut().find(|(other, ..)| Arc::ptr_eq(other, &lane)) {
                Some((_, places, group)) => {
                    places.push(place);
                    group.push(question);
                }
                None => by_lane.push((lane, vec![place], vec![question])),
            }
        }
        let mut answered = Vec::with_capacity(count);
        for (lane, places, group) in by_lane {
            answered.extend(places.into_iter().zip(lane.ask_all(group)));
        }
        answered.sort_unstable_by_key(|(place, _)| *place);
        answered.into_iter().map(|(_, answered)| answered).collect()
    }

    /// Ends the thread once no question waits and no other future runs there.
    pub fn close(&self) {
        *self.jobs.write() = None;
        for lane in self.by_node.read().values() {
            lane.close();
        }
    }
}
