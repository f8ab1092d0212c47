//! Tests of the removal of a subject.

use rolltop::store::{Removal, SlotRange};

use crate::given::{Units, With, exact, plus, subject, t};
use crate::site::Site;

pub async fn removing_a_subject_clears_it_from_every_slot(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let (seven, nine) = ("2026-01-01T07:00:00Z", "2026-01-01T09:00:00Z");
    site.count(&board, vec![plus("a", 1).at(seven), plus("a", 4).at(nine), plus("b", 2).at(seven), plus("c", 3)]).await;
    let Removal { score, live_slots, retiring_slots, frame } = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((score, live_slots, retiring_slots), (exact(5), 2, 0));
    assert_eq!((frame.window.head, frame.as_of), (t(nine), t("2026-01-01T09:30:00Z")));
    assert_eq!(site.ranking(&board).await, [(1, "c".to_owned(), 3), (2, "b".to_owned(), 2)]);
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!((standing.score, standing.rank, standing.slots), (exact(0), None, Vec::new()));
    assert_eq!(site.store.count(&board.main(), &subject("a"), SlotRange::Slots(3)).await.unwrap().units(), 0);
    let status = site.store.status(&board.main()).await.unwrap();
    assert_eq!((status.total, status.slots), (Some(2), vec![(t(seven), 1), (t(nine), 1)]));
}

pub async fn removing_an_unknown_subject_has_no_effect(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 2)]).await;
    for _ in 0..2 {
        let removal = site.store.remove(&board, &subject("nobody")).await.unwrap();
        assert_eq!((removal.score, removal.live_slots, removal.retiring_slots), (exact(0), 0, 0));
    }
    // A subject whose slots add up to zero has no score, but still has data to remove.
    site.count(&board, vec![plus("c", 1), plus("c", -1).at("2026-01-01T08:00:00Z")]).await;
    let removal = site.store.remove(&board, &subject("c")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (exact(0), 2));
    assert_eq!(site.ranking(&board).await.len(), 2);
}

pub async fn a_removed_subject_that_returns_starts_at_zero(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    site.count(&board, vec![plus("a", bound), plus("b", 2), plus("a", 1).at("2026-01-01T08:00:00Z")]).await;
    site.store.remove(&board, &subject("a")).await.unwrap();
    site.count(&board, vec![plus("a", bound), plus("b", 1)]).await;
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), bound), (2, "b".to_owned(), 3)]);
    let removal = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (exact(bound), 1));
}

pub async fn removed_amounts_are_not_subtracted_again_on_expiry(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let seven = "2026-01-01T07:00:00Z";
    site.count(&board, vec![plus("a", 1).at(seven), plus("b", 2).at(seven), plus("b", 5), plus("c", 3)]).await;
    site.store.remove(&board, &subject("a")).await.unwrap();
    site.store.remove(&board, &subject("b")).await.unwrap();
    site.count(&board, vec![plus("a", 7), plus("b", 9)]).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let expected = [(1, "b".to_owned(), 9), (2, "a".to_owned(), 7), (3, "c".to_owned(), 3)];
    assert_eq!(site.ranking(&board).await, expected);
    assert_eq!(site.audit(&board).await, 3);
}
