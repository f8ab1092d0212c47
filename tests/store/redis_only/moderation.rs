//! Tests of where Redis keeps what is set for subjects, and of what is left of it.

use rolltop::board::{ModerationChange, Visibility};

use super::*;

const HIDE: ModerationChange = ModerationChange::Visibility(Visibility::Hidden);
const SHOW: ModerationChange = ModerationChange::Visibility(Visibility::Visible);

async fn board(server: &RedisServer) -> (Arc<RedisStore>, Arc<Board>) {
    let store = simulated(server).await;
    let windows = vec!["6h/2h".parse().unwrap()];
    let definition =
        Definition { windows, ..Definition::new("COUNT(3h, like, post)".parse().unwrap(), "1h".parse().unwrap()) };
    match store.define(new_board(&BoardName::parse("board").unwrap(), &definition)).await.unwrap() {
        Defined::Created(board) => (store, board),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_what_was_undone_or_of_a_removed_board() {
    let server = RedisServer::start(&Engine::available()[0]);
    let (store, board) = board(&server).await;
    add(&store, &board, [item("a", 1), item("b", 1)]).await;
    let number = || keys(&server, "*{board}*").len();
    let marks = || behind::<Option<String>>(&server, &["HGET", "rolltop:1:{board}:meta", "marks"]);
    let before = number();
    let changes = |of_a, of_x| [(subject("a"), of_a), (subject("x"), of_x)];
    store.moderate(&board, &changes(HIDE, ModerationChange::Frozen(true))).await.unwrap();
    // The letters, two lists, and the scores of hidden subjects in two windows.
    assert_eq!(number(), before + 5);
    assert!(marks().is_some_and(|marks| keys(&server, "*").contains(&marks)));
    store.moderate(&board, &changes(SHOW, SHOW)).await.unwrap();
    assert_eq!(number(), before + 2);
    store.moderate(&board, &changes(ModerationChange::Clear, ModerationChange::Clear)).await.unwrap();
    assert_eq!((number(), marks()), (before, None), "scripts look for nothing any more");
    let version = || behind::<Option<String>>(&server, &["HGET", "rolltop:1:{board}:meta", "version"]);
    let unchanged = version();
    store.moderate(&board, &changes(SHOW, ModerationChange::Clear)).await.unwrap();
    assert_eq!(version(), unchanged, "what changes nothing writes nothing");
    store.moderate(&board, &changes(HIDE, HIDE)).await.unwrap();
    store.undefine(&board).await.unwrap();
    while !store.tidy_step().await.unwrap() {}
    assert_eq!(keys(&server, "*{board}*"), Vec::<String>::new());
}

/// The frequent writes keep their script where something is set for other subjects only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_about_other_subjects_take_one_script() {
    let server = RedisServer::start(&Engine::available()[0]);
    let (store, board) = board(&server).await;
    let write = async |who: [&str; 2]| {
        let increments = who.map(|who| item(who, 1)).into();
        store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
    };
    for who in [["a", "b"], ["b", "c"], ["b", "c"]] {
        write(who).await;
    }
    store.moderate(&board, &[(subject("a"), HIDE)]).await.unwrap();
    for (who, scripts) in [(["b", "c"], 1), (["a", "c"], 2)] {
        write(who).await;
        reset(&server);
        write(who).await;
        assert_eq!(calls_of(&server, "evalsha"), scripts, "{who:?}");
    }
}

/// A server that was restarted may have kept only the first writes of the script that hides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_repairs_what_was_hidden_in_part() {
    let server = RedisServer::start(&Engine::available()[0]);
    let (store, board) = board(&server).await;
    add(&store, &board, [item("a", 3), item("b", 1)]).await;
    let [ranking] = &keys(&server, "*:r")[..1] else { panic!("no ranking") };
    let hidden = format!("{}h", &ranking[..ranking.len() - 1]);
    behind::<i64>(&server, &["ZADD", &hidden, "3", "a"]);
    behind::<i64>(&server, &["ZREM", ranking, "a"]);
    behind::<i64>(&server, &["HSET", "rolltop:1:{board}:meta", "marks", "rolltop:1:{board}:m"]);
    let repaired: u64 = {
        let mut repaired = 0;
        for track in board.each_track() {
            repaired += audit(&store, &track, true).await.2;
        }
        repaired
    };
    assert_eq!(repaired, 1);
    assert_eq!(scores(&store, &board).await, [("a".to_owned(), 3), ("b".to_owned(), 1)]);
    // What was left does not come back.
    store.moderate(&board, &[(subject("a"), HIDE)]).await.unwrap();
    add(&store, &board, [item("a", 1)]).await;
    store.moderate(&board, &[(subject("a"), SHOW)]).await.unwrap();
    assert_eq!(scores(&store, &board).await, [("a".to_owned(), 4), ("b".to_owned(), 1)]);
    assert_eq!(audit(&store, &board, false).await, (2, Vec::new(), 0));
}
