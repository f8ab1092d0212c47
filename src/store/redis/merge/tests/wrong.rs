//! Parts that fail, and answers that cannot be true.

use super::region::Segment;
use super::samples::check;
use super::*;

fn place(score: i64, text: &str) -> Place {
    Place { score: exact(score), subject: subject(text) }
}

fn lines(total: u64, first: u64, better: u64, lines: &[(i64, &str)]) -> Lines<()> {
    let lines = lines.iter().map(|(score, text)| place(*score, text)).collect();
    Lines { total, first, better, lines, subject: None }
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

/// A part whose calls fail.
struct Broken;

impl Parts for Broken {
    type Error = &'static str;
    type Version = ();
    type Extra = ();

    fn count(&self) -> usize {
        4
    }

    async fn lines(&self, _: usize, _: Option<Timestamp>, _: &Near) -> Result<Answer<Lines<()>, ()>, &'static str> {
        Err("no connection")
    }

    async fn between(&self, _: usize, _: Option<Timestamp>, _: &Between) -> Result<Answer<Sampled, ()>, &'static str> {
        Err("no connection")
    }

    async fn scores(&self, _: usize, _: Option<Timestamp>, _: &Scores) -> Result<Answer<Scored, ()>, &'static str> {
        Err("no connection")
    }
}

#[test]
fn a_failing_part_fails_the_read() {
    for offset in [0, 10_000] {
        let answer = block_on(page(&Broken, Order::Desc, offset, 10, None)).map(|_| ());
        assert_eq!(answer, Err(MergeError::Part("no connection")));
    }
    let answer = block_on(around(&Broken, Order::Desc, 2, &subject("s"), exact(0), 3)).map(|_| ());
    assert_eq!(answer, Err(MergeError::Part("no connection")));
    let asked = vec![vec![], vec![subject("s")], vec![], vec![]];
    let answer = block_on(scores(&Broken, Order::Desc, asked, true)).map(|_| ());
    assert_eq!(answer, Err(MergeError::Part("no connection")));
}
