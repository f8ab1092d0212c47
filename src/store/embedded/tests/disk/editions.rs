//! Changes of the editions of a board with crashes at every operation: after a crash the board has the editions before
//! a change or those after it, with everything that was written before the change.

use super::crashes::survives;
use super::*;
use crate::board::TrackId;

/// The number of writes between two changes.
const EACH: usize = 4;
const SECOND: TrackId = TrackId(77);

fn name() -> BoardName {
    BoardName::parse("changing").unwrap()
}

fn definition(metric: &str) -> Definition {
    Definition::new(metric.parse().unwrap(), "1h".parse().unwrap())
}

/// The script: a second edition begins and is filled, becomes the current one, and remains alone. Each step is made
/// unless it was made before, so it continues from wherever a crash left it.
async fn continue_script(store: &Embedded, acknowledged: &AtomicUsize) -> Result<Vec<Outcome>> {
    let count = |outcomes: &mut Vec<Outcome>, more: Vec<Outcome>| {
        outcomes.extend(more);
        acknowledged.fetch_add(1, Ordering::SeqCst);
    };
    let defined = store.define(new_board(&name(), &definition("SUM(4h, sale, amount, seller)"))).await?;
    let (Defined::Created(mut board) | Defined::Unchanged(mut board) | Defined::Conflict(mut board)) = defined;
    let mut outcomes = Vec::new();
    for step in 0..4 {
        for number in EACH * step..EACH * (step + 1) {
            let increment = Increment { other: Some(Box::new(change(number))), ..of_number(number) };
            let batch = Batch { increments: vec![increment], return_scores: false };
            count(&mut outcomes, store.add(&board, batch).await?.outcomes);
        }
        if step < 3 && board.epoch().0 == step as u64 {
            let to = match step {
                0 => board.attached(definition("SUM(8h, sale, amount, seller)"), SECOND).unwrap(),
                1 => board.exchanged(START).unwrap(),
                _ => board.detached(),
            };
            board = store.change_editions(&board, to).await?;
        }
        if step < 3 {
            count(&mut outcomes, Vec::new());
        }
        if step == 0 {
            if board.epoch().0 == 1 {
                let [from, to] = [0, 1].map(|number| board.each_track().nth(number).unwrap());
                let slot = from.calendar().slot_of(START);
                store.fill(&from, &to, &[(subject(0), slot), (subject(1), slot)]).await?;
                store.end_fill(&board, &[(0, 1)]).await?;
            }
            count(&mut outcomes, Vec::new());
        }
    }
    Ok(outcomes)
}

fn change(number: usize) -> Change {
    Change::Amount(Amount(1 << number))
}

fn of_number(number: usize) -> Increment {
    let id = Some(EventId::parse(&format!("write-{number}")).unwrap());
    Increment {
        subject: subject(0),
        change: change(number),
        other: None,
        retract: false,
        at: None,
        id,
        period: None,
        event: None,
    }
}

async fn script(store: &Embedded, acknowledged: &AtomicUsize) -> Result<()> {
    continue_script(store, acknowledged).await.map(drop)
}

/// Returns the score of the subject in the main track of each edition.
async fn scores(store: &Embedded, board: &Arc<Board>) -> Vec<i64> {
    let mut scores = Vec::new();
    for edition in board.editions() {
        let standing = store.standing(&board.track_with(edition.id()).unwrap(), &subject(0)).await.unwrap();
        let Some(Value::Exact(Amount(score))) = standing.score else { panic!("{:?}", standing.score) };
        scores.push(score);
    }
    scores
}

async fn check(store: &Embedded, acknowledged: usize, what: &str) {
    let all = |writes: usize| (1_i64 << writes) - 1;
    let (mut writes, mut epoch, mut is_filled) = (0, 0, false);
    if let Some(board) = store.board(&name()).await.unwrap() {
        epoch = board.epoch().0 as usize;
        assert_eq!(board.editions().len(), if epoch == 1 || epoch == 2 { 2 } else { 1 }, "{what}");
        let run = store.dual_run(&board).await.ok();
        assert_eq!(run.is_some(), board.editions().len() > 1, "{what}");
        is_filled = epoch > 1 || run.is_some_and(|run| run.filled.is_some());
        let scores = scores(store, &board).await;
        let total = match (epoch, &*scores) {
            (1, [first, second]) if !is_filled => {
                // The fill is done or not, and no write comes before its end.
                assert!(second == first || *second == first - all(EACH), "{what}: {scores:?}");
                assert_eq!(*first, all(EACH), "{what}: {scores:?}");
                *first
            }
            (0 | 3, [only]) => *only,
            (1 | 2, [one, other]) if one == other => *one,
            other => panic!("{what}: {other:?}"),
        };
        let found = (0..=4 * EACH).find(|writes| all(*writes) == total);
        writes = found.unwrap_or_else(|| panic!("{what}: not a prefix of the writes: {scores:?}"));
        assert!((EACH * epoch..=EACH * (epoch + 1)).contains(&writes), "{what}: {writes} writes in epoch {epoch}");
        for edition in board.editions() {
            let track = board.track_with(edition.id()).unwrap();
            let events = store.status(&track).await.unwrap().events.iter().map(|(_, items)| items).sum::<u64>();
            let is_whole = is_filled || epoch == 0 || edition.id() != SECOND;
            assert_eq!(events, if is_whole { writes } else { writes - EACH } as u64, "{what}");
        }
    }
    let done = writes + epoch + usize::from(is_filled);
    assert!(done >= acknowledged, "{what}: {acknowledged} acknowledged, {done} found");
    let outcomes = continue_script(store, &AtomicUsize::new(0)).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let duplicates = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Duplicate { .. })).count();
    assert_eq!((outcomes.len(), duplicates), (4 * EACH, writes), "{what}: a retry was judged wrongly");
    let board = store.board(&name()).await.unwrap().unwrap();
    assert_eq!(scores(store, &board).await, [all(4 * EACH)], "{what}: after all steps");
}

#[test]
fn changes_of_editions_survive_crashes_with_always() {
    survives(Durability::Always, script, check);
}

#[test]
fn changes_of_editions_survive_crashes_with_everysec() {
    survives(Durability::EverySecond, script, check);
}
