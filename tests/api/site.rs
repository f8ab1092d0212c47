//! A service of one's own for each test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use actix_web::{App, HttpServer};
use rolltop::board::{BoardName, Rule, Timestamp};
use rolltop::http::{self, Connections, HttpOptions, HttpState, LiveViews};
use rolltop::service::{Keys, NamedRules, PinnedRule, RuleName, Service};
use rolltop::store::embedded::{Durability, Embedded, EmbeddedOptions, Pace};
use rolltop::store::{ClockMode, Store};
use rolltop::telemetry;

use crate::client::Client;
use crate::failing_store::{Failing, Switch};

/// When every clock starts.
pub const START: &str = "2026-01-02T10:07:00Z";

/// A running service with a store that can be made to fail.
pub struct Site {
    pub client: Client,
    pub switch: Arc<Switch>,
    pub store: Arc<dyn Store>,
    own: Arc<Service>,
    _folder: tempfile::TempDir,
}

impl Site {
    pub async fn new() -> Site {
        Self::with(|_| ()).await
    }

    /// With options that differ from the defaults.
    pub async fn with(change: impl FnOnce(&mut HttpOptions)) -> Site {
        Self::with_rules_and(&[], change).await
    }

    /// With rules of these names.
    pub async fn with_rules(rules: &[(&str, &str)]) -> Site {
        Self::with_rules_and(rules, |_| ()).await
    }

    async fn with_rules_and(rules: &[(&str, &str)], change: impl FnOnce(&mut HttpOptions)) -> Site {
        Self::build(rules, change, Pace::default(), |_| ()).await
    }

    /// With backups, and checkpoints of the store at this pace.
    pub async fn with_backups(pace: Pace, backup_dir: &Path) -> Site {
        Self::build(&[], |_| (), pace, |options| options.backup_dir = Some(backup_dir.to_owned())).await
    }

    async fn build(
        rules: &[(&str, &str)],
        change: impl FnOnce(&mut HttpOptions),
        pace: Pace,
        change_store: impl FnOnce(&mut EmbeddedOptions),
    ) -> Site {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut opening = opening(folder.path());
        change_store(&mut opening);
        let inner = Embedded::open_at_pace(opening, pace);
        let switch = Arc::new(Switch::default());
        let inner = inner.await.expect("a store");
        let store: Arc<dyn Store> = Arc::new(Failing { inner, switch: switch.clone() });
        let mut options = options();
        change(&mut options);
        let parsed = |rule: &str| rule.parse::<Rule>().expect("a rule");
        let named = |(name, rule): &(&str, &str)| (RuleName::parse(name).expect("a name"), parsed(rule));
        let service = Service::with_rules(store.clone(), NamedRules::new(rules.iter().map(named)));
        Site { client: serve(service.clone(), options), switch, store, own: service, _folder: folder }
    }

    /// Over the data that is in this directory.
    pub async fn over(folder: tempfile::TempDir, path: &Path) -> Site {
        let inner = Embedded::open(opening(path)).await.expect("a store");
        let switch = Arc::new(Switch::default());
        let store: Arc<dyn Store> = Arc::new(Failing { inner, switch: switch.clone() });
        let own = Service::new(store.clone());
        Site { client: serve(own.clone(), options()), switch, store, own, _folder: folder }
    }

    /// Another instance over the same store, with keys.
    pub fn instance_with_keys(&self, keys: Keys, change: impl FnOnce(&mut HttpOptions)) -> (Client, Arc<Service>) {
        let mut options = options();
        change(&mut options);
        let rules = [
            ("shop-rule", PinnedRule { boards: [name("shop-a")].into(), ..rule("COUNT(24h, like, post_id) > 1") }),
            ("other-rule", PinnedRule { boards: [name("other")].into(), ..rule("COUNT(24h, like, post_id) > 1") }),
        ];
        let named = rules.map(|(name, rule)| (RuleName::parse(name).expect("a name"), rule));
        let service = Service::with_keys(self.store.clone(), NamedRules::new(named), keys);
        (serve(service.clone(), options), service)
    }

    /// Does what a scheduler does at each tick.
    pub async fn tick(&self) {
        self.own.roll_over_due().await.expect("what is due is done");
    }

    /// Another instance over the same store, which knows of its boards only what the store tells.
    pub fn second_instance(&self) -> Client {
        serve(Service::new(self.store.clone()), options())
    }

    /// The service of another instance over the same store, without HTTP.
    pub fn service(&self) -> Arc<Service> {
        Service::new(self.store.clone())
    }

    /// Packs the ended periods of a board, as the scheduler does.
    pub async fn pack(&self, board: &str) {
        // The first to ask notices that a period has ended.
        self.client.get(&format!("/v1/boards/{board}/rankings?period=previous")).await;
        let board = self.store.board(&BoardName::parse(board).unwrap()).await.unwrap().unwrap();
        assert!(self.service().pack_periods(&board).await.unwrap());
    }

    /// With a board that counts likes of posts over 24 slots of an hour.
    pub async fn with_board(board: &str) -> Site {
        let site = Site::new().await;
        let answer = site.client.define(board, "COUNT(24h, like, post_id)", "1h").await;
        assert_eq!(answer.status, 201, "{answer:?}");
        site
    }
}

fn name(text: &str) -> BoardName {
    BoardName::parse(text).expect("a name")
}

fn rule(text: &str) -> PinnedRule {
    text.parse::<Rule>().expect("a rule").into()
}

/// The length of a second in the intervals of live views.
const LIVE_SECOND: Duration = Duration::from_millis(5);

/// How the store in this directory is opened.
fn opening(path: &Path) -> EmbeddedOptions {
    let clock = ClockMode::Simulated(Timestamp::parse(START).expect("a time"));
    EmbeddedOptions { durability: Durability::Off, ..EmbeddedOptions::new(path, clock) }
}

pub fn options() -> HttpOptions {
    HttpOptions {
        simulated_clock: true,
        explorer: true,
        metrics: telemetry::collect_metrics(),
        ..HttpOptions::default()
    }
}

pub fn serve(service: Arc<Service>, options: HttpOptions) -> Client {
    let live = LiveViews::at_pace(service.clone(), LIVE_SECOND);
    let configure = http::configure(Data::new(HttpState::new(service, options)), live);
    let server = HttpServer::new(move || App::new().wrap_fn(http::outermost).configure(configure.clone()))
        .on_connect(http::on_connect(Connections::new(10_000, Vec::new())))
        .workers(2)
        .disable_signals()
        .bind(("127.0.0.1", 0))
        .expect("a free port");
    let port = server.addrs()[0].port();
    actix_web::rt::spawn(server.run());
    Client::new(port)
}
