//! Uses Rolltop as a library: the embedded store, a scheduler, events, a ranking and a rule, without HTTP.
//!
//! ```sh
//! cargo run --example embed -- [data directory]
//! ```
//!
//! Without a directory the data goes to a temporary one. With one, run it twice: the plays of the first run still
//! count, and since events have ids, none of them counts twice.

use anyhow::Result;
use rolltop::access::Caller;
use rolltop::board::{BoardName, Definition, Event, EventId, Field, Fields, Rule};
use rolltop::service::{Scheduler, Service, Taken};
use rolltop::store::ClockMode;
use rolltop::store::embedded::{Embedded, EmbeddedOptions};

/// Who played what.
const PLAYS: [(&str, &str); 6] =
    [("blue", "ann"), ("blue", "bob"), ("red", "ann"), ("blue", "ann"), ("green", "cid"), ("red", "bob")];

#[tokio::main]
async fn main() -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let data_dir = std::env::args_os().nth(1).map_or_else(|| temporary.path().join("data"), Into::into);

    // A store, the service over it, and a scheduler that rolls boards over as they fall due.
    let store = Embedded::open(EmbeddedOptions::new(data_dir, ClockMode::System)).await?;
    let service = Service::new(store);
    // A program may do everything with its own service.
    let caller = Caller::trusted();
    let scheduler = Scheduler::start(service.clone()).await?;

    // Two boards that count the same events: a ranking, and a feature for rules that needs none.
    let plays = Definition::new("COUNT(24h, play, track)".parse()?, "1h".parse()?);
    let (plays, _) = service.define(&caller, &BoardName::parse("plays")?, &plays).await?;
    let listeners = Definition::new("COUNT_DISTINCT(24h, play, track, listener)".parse()?, "1h".parse()?);
    let listeners = Definition { ranked: false, ..listeners };
    service.define(&caller, &BoardName::parse("listeners")?, &listeners).await?;

    let recorded = service.record(&caller, events()?, false).await?;
    let outcomes = || recorded.events.iter().flat_map(|event| &event.boards).map(|on_board| &on_board.taken);
    let counted = outcomes().filter(|taken| matches!(taken, Taken::Counted { .. })).count();
    let duplicates = outcomes().filter(|taken| matches!(taken, Taken::Duplicate { .. })).count();
    println!("{} events: {counted} counted, {duplicates} duplicates", recorded.events.len());

    let page = service.page(&plays.main(), 0, 10).await?.answer;
    println!("the top of {} tracks:", page.total);
    for line in &page.items {
        println!("{:>3}. {:<6} {}", line.rank, line.subject.as_str(), line.score.shown(plays.decimals()));
    }

    // A metric with a shorter window is served by the same board.
    let rule: Rule = "COUNT_DISTINCT(6h, play, track, listener) >= 2".parse()?;
    let mut fields = Fields::default();
    fields.set("track", Field::Text("blue".into()));
    let evaluated = service.evaluate(&caller, &[&rule.clone().into()], &fields, None).await?;
    println!("{rule} of blue: {}", evaluated.rules[0].verdict.hit);

    scheduler.stop().await;
    service.close().await?;
    Ok(())
}

/// The plays as events, each with an id.
fn events() -> Result<Vec<Event>> {
    let event = |(index, (track, listener)): (usize, &(&str, &str))| {
        let mut fields = Fields::default();
        fields.set("track", Field::Text((*track).into()));
        fields.set("listener", Field::Text((*listener).into()));
        let id = Some(EventId::parse(&format!("play-{index}"))?);
        Ok(Event { kind: "play".into(), fields, at: None, id, retract: false })
    };
    PLAYS.iter().enumerate().map(event).collect()
}
