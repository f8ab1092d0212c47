//! The pauses between attempts.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);
/// The longest pause that the service may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// Returns the time to wait after the failed attempt of this number, from 0.
///
/// It is what the service asks for and a little more, or else up to twice as long as before, drawn evenly, so that
/// clients that failed together do not come back together.
pub(crate) fn pause(attempt: u32, asked: Option<Duration>) -> Duration {
    let drawn: f64 = rand::random();
    match asked {
        Some(asked) => asked.min(LONGEST_ASKED) + SHORTEST.mul_f64(drawn),
        None => LONGEST.min(SHORTEST * 2_u32.pow(attempt.min(20))).mul_f64(drawn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_keep_to_what_is_asked() {
        for attempt in [0, 1, 5, 40, u32::MAX] {
            assert!(pause(attempt, None) <= LONGEST.min(SHORTEST * 2_u32.pow(attempt.min(20))));
        }
        let asked = Duration::from_secs(3);
        assert!((asked..asked + SHORTEST).contains(&pause(9, Some(asked))));
        assert!(pause(0, Some(Duration::MAX)) < LONGEST_ASKED + SHORTEST);
    }
}
