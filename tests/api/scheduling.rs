//! The scheduler beside the other work of its runtime.

use rolltop::access::Caller;
use rolltop::board::{BoardName, Definition};
use rolltop::service::Scheduler;

use crate::site::Site;
use crate::waiting::Wait;

#[actix_web::test]
async fn many_boards_that_are_due_at_once_let_other_tasks_run_between_their_steps() {
    const BOARDS: u64 = 3_000;
    let site = Site::new().await;
    let service = site.service();
    let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
    for number in 0..BOARDS {
        service
            .define(&Caller::trusted(), &BoardName::parse(&format!("b{number}")).unwrap(), &definition)
            .await
            .unwrap();
    }
    // A task like any other of the runtime, which has one thread. It is woken as often as it can be.
    let switch = site.switch.clone();
    let other = tokio::spawn(async move {
        let (before, wait) = (switch.calls(), Wait::begin("a rollover of all boards"));
        let (mut seen, mut most) = (before, 0);
        while seen - before < BOARDS {
            tokio::task::yield_now().await;
            let now = switch.calls();
            (most, seen) = (most.max(now - seen), now);
            wait.has_time(seen - before).unwrap();
        }
        most
    });
    // All are due at the first tick.
    let scheduler = Scheduler::start(service).await.unwrap();
    let most = other.await.unwrap();
    scheduler.stop().await;
    assert!(most < 200, "{most} calls without a pause");
}

#[actix_web::test]
async fn a_rollover_that_panics_is_tried_again() {
    let site = Site::with_board("b").await;
    site.switch.break_steps(BoardName::parse("b").unwrap());
    let scheduler = Scheduler::start(site.service()).await.unwrap();
    let wait = Wait::begin("a second attempt");
    while site.switch.panics() < 2 {
        wait.rest(site.switch.panics()).await;
    }
    scheduler.stop().await;
}
