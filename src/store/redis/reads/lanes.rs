//! A lane for each node, so that one that does not answer holds up only what it has; all run on one thread.

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
use crate::store::redis::servers::{Failure, Line};
use crate::store::redis::session::Session;

/// Where an answer will come.
pub(super) type Answered = oneshot::Receiver<Result<Answer, Failure>>;

/// What runs on the thread of lanes.
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The lanes whose questions take one line of each node.
#[derive(Debug)]
pub(super) struct Lanes {
    session: Arc<Session>,
    pages: Arc<Pages>,
    line: Line,
    flights: usize,
    /// By [`place`](crate::store::redis::servers::Servers::place).
    by_node: RwLock<HashMap<usize, Arc<Lane>>>,
    /// To the thread; `None` once closed.
    jobs: RwLock<Option<mpsc::UnboundedSender<Job>>>,
}

impl Lanes {
    /// Starts the thread that sends what is asked, at most so many flights at a time to each node.
    pub fn start(
        name: &str,
        session: &Arc<Session>,
        pages: &Arc<Pages>,
        line: Line,
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
        Ok(Self { session, pages, line, flights, by_node: RwLock::default(), jobs: RwLock::new(Some(jobs)) })
    }

    /// Runs something else on the thread of the lanes, until it ends.
    pub fn run(&self, job: impl Future<Output = ()> + Send + 'static) {
        if let Some(jobs) = &*self.jobs.read() {
            // The other end lives until this one is dropped.
            drop(jobs.send(Box::pin(job)));
        }
    }

    fn make(&self) -> Arc<Lane> {
        let lane = Arc::new(Lane::default());
        let (session, pages, line, flights) = (self.session.clone(), self.pages.clone(), self.line, self.flights);
        let running = lane.clone();
        self.run(async move {
            let fly = |taken| {
                let (session, pages) = (session.clone(), pages.clone());
                async move { flight::fly(&session, line, &pages, taken).await }
            };
            running.run(flights, fly).await;
        });
        lane
    }

    /// The lane to the node that has the question's part.
    pub fn lane(&self, question: &Question) -> Arc<Lane> {
        let place = self.session.servers.place(question.part.slot());
        if let Some(lane) = self.by_node.read().get(&place) {
            return lane.clone();
        }
        self.by_node.write().entry(place).or_insert_with(|| self.make()).clone()
    }

    /// Lets a question wait.
    pub fn ask(&self, question: Question) -> Answered {
        self.lane(&question).ask(question)
    }

    /// Lets questions wait; those to the same node one after the other. The answers come in the order of the questions.
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

    /// Ends the thread once nothing waits and nothing else runs there.
    pub fn close(&self) {
        *self.jobs.write() = None;
        for lane in self.by_node.read().values() {
            lane.close();
        }
    }
}
