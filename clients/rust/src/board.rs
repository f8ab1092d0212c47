//! One board.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answers::{
    Added, Audit, ClosedPeriod, Defined, Described, DescribedPage, Distribution, Freezing, Hiding, KeyPage, Looked,
    ModeratedPage, Moderations, Neighbors, Periods, Preview, Ranking, Rankings, Removals, Removed, Rollover, Standing,
    Status, Tier, Tiers, WindowValue,
};
use crate::connection::Connection;
use crate::path::of_board;
use crate::{Decimal, Increment, Request, SenderBuilder};

/// The time in which an audit, or a removal from all keys, must be answered: they read all that a board has.
const LONG: Duration = Duration::from_secs(6 * 3_600);

/// A board of a service. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Board {
    pub(crate) connection: Arc<Connection>,
    name: Arc<str>,
}

impl Board {
    pub(crate) fn new(connection: Arc<Connection>, name: &str) -> Self {
        Self { connection, name: name.into() }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a request for this board, or for something of it.
    pub(crate) fn request<T>(&self, method: Method, parts: &[&str]) -> Request<T> {
        let parts: Vec<&str> = [&*self.name].into_iter().chain(parts.iter().copied()).collect();
        Request::new(&self.connection, method, of_board(&parts))
    }

    /// Returns the settings of a sender, which sends increments in the background.
    pub fn sender(&self) -> SenderBuilder<Increment> {
        SenderBuilder::new(&self.connection, of_board(&[&self.name, "increments"]))
    }

    /// Sends an increment by itself. If it is not counted, such as one that is too late, that is in `rejected`.
    pub fn add_now(&self, item: Increment) -> Request<Added> {
        self.request(Method::POST, &["increments"]).item(item)
    }

    /// Reads the first lines of the ranking, or those from an offset or a cursor on.
    pub fn top(&self) -> Request<Ranking> {
        self.request(Method::GET, &["rankings"])
    }

    /// Reads score, rank and the count in each slot of a subject.
    pub fn subject(&self, name: &str) -> Request<Standing> {
        self.request(Method::GET, &["subjects", name])
    }

    /// Reads the lines around a subject: `radius` before and after it.
    pub fn neighbors(&self, subject: &str, radius: u32) -> Request<Neighbors> {
        self.request(Method::GET, &["subjects", subject, "neighbors"]).parameter("radius", radius)
    }

    /// Reads what a subject has in a shorter window that ends now, such as `30m`.
    pub fn count(&self, subject: &str, last: &str) -> Request<WindowValue> {
        self.request(Method::GET, &["subjects", subject, "window"]).parameter("last", last)
    }

    /// Reads ranks and scores of up to 200 subjects, all at one instant.
    pub fn lookup(&self, subjects: &[impl AsRef<str>]) -> Request<Looked> {
        let subjects: Vec<&str> = subjects.iter().map(AsRef::as_ref).collect();
        self.request(Method::POST, &["rankings", "lookup"]).json(&json!({"subjects": subjects})).repeatable()
    }

    /// Reads the scores at up to 100 percentiles, and the numbers of subjects between up to 100 scores, each greater than
    /// the one before. Without percentiles it reads those that the service chooses, and without scores no ranges.
    ///
    /// ```no_run
    /// # async fn example(posts: rolltop_client::Board) -> Result<(), rolltop_client::Error> {
    /// let distribution = posts.distribution(&[50.0, 99.0], &[10.into(), 100.into()]).window("7d").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn distribution(&self, percentiles: &[f64], scores: &[Decimal]) -> Request<Distribution> {
        let request = self.request(Method::GET, &["distribution"]);
        request.optional("percentiles", listed(percentiles)).optional("scores", listed(scores))
    }

    /// Reads the periods of a board with a season, the oldest first, each with the first lines of its ranking.
    ///
    /// ```no_run
    /// # async fn example(sellers: rolltop_client::Board) -> Result<(), rolltop_client::Error> {
    /// for period in sellers.periods().only_final().after("2026-10").winners(1).await?.items {
    ///     println!("{}: {:?}", period.name, period.winners);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn periods(&self) -> Request<Periods> {
        self.request(Method::GET, &["periods"])
    }

    /// Closes the current period of a board whose periods are closed by hand. If the period of this name has been closed
    /// already, nothing is done, so name it wherever you can: then the request is sent again until it is answered. Without a
    /// name it closes what is current, and is sent once.
    ///
    /// ```no_run
    /// # async fn example(cup: rolltop_client::Board) -> Result<(), rolltop_client::Error> {
    /// if let Some(current) = cup.status().await?.period {
    ///     let next = cup.close_period(Some(&current.name)).await?.current;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn close_period(&self, name: Option<&str>) -> Request<ClosedPeriod> {
        let request = self.request(Method::POST, &["close"]);
        match name {
            Some(name) => request.period(name).repeatable(),
            // After a lost answer, a second attempt would close the period that the first one began.
            None => request,
        }
    }

    /// Reads the tiers: the named parts of the ranking, the best first.
    pub fn tiers(&self) -> Request<Tiers> {
        self.request(Method::GET, &["tiers"])
    }

    /// Sets up to 16 tiers, the best first, in place of those before. Without any the board has none.
    ///
    /// ```no_run
    /// # async fn example(posts: rolltop_client::Board) -> Result<(), rolltop_client::Error> {
    /// use rolltop_client::answers::Tier;
    ///
    /// posts.set_tiers(&[Tier::top("gold", 5.0), Tier::rank("silver", 100), Tier::score("bronze", 10)]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_tiers(&self, tiers: &[Tier]) -> Request<Tiers> {
        self.request(Method::PUT, &["tiers"]).json(&json!({"tiers": tiers})).repeatable()
    }

    /// Reads the keys of a board whose metric has `BY`, by name, from this beginning on.
    pub fn keys(&self, prefix: &str) -> Request<KeyPage> {
        self.request(Method::GET, &["keys"]).parameter("prefix", prefix)
    }

    /// Reads the first `limit` lines of the rankings of up to 100 keys.
    pub fn best(&self, keys: &[impl AsRef<str>], limit: u32) -> Request<Rankings> {
        let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
        self.request(Method::POST, &["rankings", "by"]).json(&json!({"keys": keys, "limit": limit})).repeatable()
    }

    /// Reads what the board is and holds.
    pub fn status(&self) -> Request<Status> {
        self.request(Method::GET, &[])
    }

    /// Defines the board: `{"metric": "COUNT(24h, like, post_id)", "slot": "1h"}`. Succeeds if it is defined like this
    /// already.
    pub fn define(&self, definition: &impl Serialize) -> Request<Defined> {
        self.request(Method::PUT, &[]).json(definition).repeatable()
    }

    /// Reads what [`define`](Self::define) would do, without doing it.
    pub fn preview(&self, definition: &impl Serialize) -> Request<Preview> {
        self.request(Method::PUT, &[]).parameter("dry_run", true).json(definition).repeatable()
    }

    /// Removes the board and all that it holds.
    pub fn undefine(&self) -> Request<Defined> {
        // Of a second attempt after a lost answer one could not tell what the first one did.
        self.request(Method::DELETE, &[])
    }

    /// Removes a subject from the ranking and every slot.
    pub fn remove(&self, subject: &str) -> Request<Removed> {
        self.request(Method::DELETE, &["subjects", subject]).repeatable()
    }

    /// Removes a subject from the rankings of all keys.
    pub fn remove_everywhere(&self, subject: &str) -> Request<Removals> {
        self.request(Method::DELETE, &["subjects", subject]).parameter("all_keys", true).timeout(LONG).repeatable()
    }

    /// Removes up to 1,000 subjects.
    pub fn remove_all(&self, subjects: &[impl AsRef<str>]) -> Request<Removals> {
        let subjects: Vec<&str> = subjects.iter().map(AsRef::as_ref).collect();
        self.request(Method::POST, &["removals"]).json(&json!({"subjects": subjects})).repeatable()
    }

    /// Removes up to 1,000 values of a COUNT_DISTINCT board from all subjects, such as what a person liked.
    pub fn remove_values(&self, values: &[impl AsRef<str>]) -> Request<Removals> {
        let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
        self.request(Method::POST, &["removals"]).json(&json!({"values": values})).timeout(LONG).repeatable()
    }

    /// Removes all subjects of a key, on a board whose metric has `BY`.
    pub fn remove_key(&self, key: &str) -> Request<Value> {
        self.request(Method::DELETE, &["keys", key]).timeout(LONG).repeatable()
    }

    /// Takes a subject out of the rankings; it goes on counting.
    pub fn hide(&self, subject: &str) -> Request<Hiding> {
        self.request(Method::PUT, &["subjects", subject, "hidden"]).repeatable()
    }

    /// Hides a subject, whose own standing has the rank that it would have.
    pub fn shadow(&self, subject: &str) -> Request<Hiding> {
        self.request(Method::PUT, &["subjects", subject, "hidden"]).json(&json!({"shadow": true})).repeatable()
    }

    /// Shows a hidden subject again, with everything that it has counted.
    pub fn show(&self, subject: &str) -> Request<Hiding> {
        self.request(Method::DELETE, &["subjects", subject, "hidden"]).repeatable()
    }

    /// Has nothing count for a subject any more. What it has leaves the window slot by slot.
    pub fn freeze(&self, subject: &str) -> Request<Freezing> {
        self.request(Method::PUT, &["subjects", subject, "frozen"]).repeatable()
    }

    /// Has items of a subject count again.
    pub fn unfreeze(&self, subject: &str) -> Request<Freezing> {
        self.request(Method::DELETE, &["subjects", subject, "frozen"]).repeatable()
    }

    /// Hides, or with `"hidden": false` shows, up to 100,000 subjects, such as `{"subject": "a", "shadow": true}`.
    pub fn hide_all(&self, subjects: &[impl Serialize]) -> Request<Moderations> {
        self.request(Method::POST, &["hidden"]).json(&json!({"subjects": subjects})).repeatable()
    }

    /// Freezes, or with `"frozen": false` ends that for, up to 100,000 subjects, such as `{"subject": "a"}`.
    pub fn freeze_all(&self, subjects: &[impl Serialize]) -> Request<Moderations> {
        self.request(Method::POST, &["frozen"]).json(&json!({"subjects": subjects})).repeatable()
    }

    /// Reads the hidden subjects whose names begin with this text. With keys, a beginning needs a key.
    pub fn hidden(&self, prefix: &str) -> Request<ModeratedPage> {
        self.request(Method::GET, &["hidden"]).parameter("prefix", prefix)
    }

    /// Reads the frozen subjects, as [`hidden`](Self::hidden) reads the hidden ones.
    pub fn frozen(&self, prefix: &str) -> Request<ModeratedPage> {
        self.request(Method::GET, &["frozen"]).parameter("prefix", prefix)
    }

    /// Reads the attributes of a subject: what stands beside it, such as a name.
    pub fn attributes(&self, subject: &str) -> Request<Described> {
        self.request(Method::GET, &["subjects", subject, "attributes"])
    }

    /// Replaces all attributes of a subject by those of an object.
    pub fn set_attributes(&self, subject: &str, attributes: &impl Serialize) -> Request<Described> {
        self.request(Method::PUT, &["subjects", subject, "attributes"]).json(attributes).repeatable()
    }

    /// Sets the attributes of an object, and removes those that are null there. The others stay.
    pub fn change_attributes(&self, subject: &str, attributes: &impl Serialize) -> Request<Described> {
        self.request(Method::PATCH, &["subjects", subject, "attributes"]).json(attributes).repeatable()
    }

    /// Removes all attributes of a subject.
    pub fn remove_attributes(&self, subject: &str) -> Request<Described> {
        self.request(Method::DELETE, &["subjects", subject, "attributes"]).repeatable()
    }

    /// Changes attributes of up to 100,000 subjects, such as `{"subject": "a", "attributes": {"name": "Ann"}}`. `null` in
    /// place of the object removes all.
    pub fn describe_all(&self, subjects: &[impl Serialize]) -> Request<Moderations> {
        self.request(Method::POST, &["attributes"]).json(&json!({"subjects": subjects})).repeatable()
    }

    /// Reads the subjects that have attributes, whose names begin with this text.
    pub fn described(&self, prefix: &str) -> Request<DescribedPage> {
        self.request(Method::GET, &["attributes"]).parameter("prefix", prefix)
    }

    /// Rolls the board over now.
    pub fn rollover(&self) -> Request<Rollover> {
        self.request(Method::POST, &["rollover"]).repeatable()
    }

    /// Compares every score with its slots, which reads the whole board.
    pub fn audit(&self) -> Request<Audit> {
        self.request(Method::POST, &["audit"]).timeout(LONG).repeatable()
    }

    /// Returns a request for anything else of the board. `parts` are the names in its path, such as `["next",
    /// "compare"]`.
    pub fn other<T>(&self, method: Method, parts: &[&str]) -> Request<T> {
        self.request(method, parts)
    }
}

impl Request<Periods> {
    /// Reads only the periods in which nothing counts any more.
    pub fn only_final(self) -> Self {
        self.parameter("final", true)
    }

    /// Reads only the periods after the one of this name, which the board need not have any more.
    pub fn after(self, name: &str) -> Self {
        self.parameter("after", name)
    }

    /// Reads so many lines of each period, up to 10.
    pub fn winners(self, lines: u32) -> Self {
        self.parameter("winners", lines)
    }
}

/// Returns values as a parameter, or None if there are none.
fn listed(values: &[impl ToString]) -> Option<String> {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}
