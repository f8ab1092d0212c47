//! Partitions that fail, and answers that cannot be true.

use super::region::Segment;
use super::samples::check;
use super::*;

fn place(score: i64, text: &str) -> Place {
    Place { score: exact(score), subject: subject(text) }
}

fn lines(total: u64, first: u64, better: u64, lines: &[(i64, &str)]) -> Excerpt<()> {
    let line = |(score, text): &(i64, &str)| Ranked { rank: better + 1, subject: subject(text), score: exact(*score) };
    Excerpt { total, first, items: lines.iter().map(line).collect(), not_worse: None, subject: None }
}

#[test]
fn inconsistent_lines_are_refused() {
    let read = |said| Segment::of_lines::<(), ()>(said, Order::Desc);
    assert!(read(lines(5, 2, 2, &[(3, "b"), (3, "a"), (1, "z")])).is_ok());
    assert!(read(lines(0, 0, 0, &[])).is_ok());
    for bad in [
        lines(4, 2, 2, &[(3, "b"), (3, "a"), (1, "z")]),
        lines(5, 2, 3, &[(3, "b"), (3, "a"), (1, "z")]),
        lines(5, 2, 2, &[(3, "a"), (3, "b"), (1, "z")]),
        lines(5, 2, 2, &[(3, "a"), (3, "a")]),
        lines(5, 2, 2, &[]),
        lines(u64::MAX, u64::MAX, 0, &[(3, "b"), (3, "a")]),
    ] {
        assert!(matches!(read(bad.clone()), Err(MergeError::Impossible(_))), "{bad:?}");
    }
}

#[test]
fn inconsistent_samples_are_refused() {
    let question = Between { lo: Some(place(9, "a")), hi: Some(place(1, "a")), samples: 2, all_up_to: 2 };
    let said = |total, before_lo, better_than_lo, before_hi, lines: &[(u64, i64)]| {
        let lines = lines.iter().map(|(position, score)| (*position, place(*score, "s"))).collect();
        Sampled { total, before_lo, better_than_lo, before_hi, lines }
    };
    let read = |said: &Sampled| check::<()>(Order::Desc, &question, said);
    assert_eq!(read(&said(10, 2, 1, 8, &[(4, 7), (6, 5)])), Ok(()));
    for bad in [
        said(10, 2, 3, 8, &[]),
        said(10, 9, 1, 8, &[]),
        said(10, 2, 1, 11, &[]),
        said(u64::MAX, 2, 1, u64::MAX, &[]),
        said(10, 2, 1, 8, &[(1, 7)]),
        said(10, 2, 1, 8, &[(8, 7)]),
        said(10, 2, 1, 8, &[(6, 7), (4, 5)]),
        said(10, 2, 1, 8, &[(4, 5), (6, 7)]),
    ] {
        assert!(matches!(read(&bad), Err(MergeError::Impossible(_))), "{bad:?}");
    }
    let open = Between { lo: None, hi: None, ..question };
    assert!(check::<()>(Order::Desc, &open, &said(10, 0, 0, 10, &[])).is_ok());
    assert!(check::<()>(Order::Desc, &open, &said(10, 1, 0, 10, &[])).is_err());
    assert!(check::<()>(Order::Desc, &open, &said(10, 0, 0, 9, &[])).is_err());
}

/// Partitions whose calls fail, and their number.
struct Broken(usize);

impl PartitionReads for Broken {
    type Error = &'static str;
    type Version = ();
    type Extra = ();

    fn count(&self) -> usize {
        self.0
    }

    async fn near(&self, _: Round<Near>) -> Result<Vec<Share<Excerpt<()>, ()>>, &'static str> {
        Err("no connection")
    }

    async fn between(&self, _: Round<Between>) -> Result<Vec<Share<Sampled, ()>>, &'static str> {
        Err("no connection")
    }

    async fn scores(&self, _: Round<Scores>) -> Result<Vec<Share<Scored, ()>>, &'static str> {
        Err("no connection")
    }
}

#[test]
fn a_failing_partition_fails_the_read() {
    for broken in [Broken(1), Broken(4)] {
        let failed = MergeError::Partition("no connection");
        let page = |start| Wanted::Page { start, limit: 10 };
        for wanted in [
            page(PageStart::Offset(0)),
            page(PageStart::Offset(10_000)),
            page(PageStart::Place(NextTo::after(place(1, "s")))),
            Wanted::Neighbors { subject: subject("s"), own: broken.0 - 1, radius: 3 },
        ] {
            let answer = block_on(super::lines(&broken, Order::Desc, &wanted, None)).map(|_| ());
            assert_eq!(answer.as_ref(), Err(&failed), "{wanted:?}");
        }
        let mut asked = vec![vec![]; broken.0];
        asked[broken.0 - 1].push(subject("s"));
        let answer = block_on(scores(&broken, Order::Desc, asked, true)).map(|_| ());
        assert_eq!(answer, Err(failed));
    }
}
