//! What to do when something is not as expected.

use std::time::{Duration, Instant};

use chrono::Utc;
use rolltop_client::Error;

use super::{Detour, Feed, FeedEnd, LOOKED_AT, MOMENT};
use crate::choices::Decision;
use crate::log::{After, LogPlace, MAX_MESSAGES};
use crate::portion::{Poison, Portion};
use crate::seen::FeedState;
use crate::source::Reached;

/// How often a program that stands by looks.
const LOOK: Duration = Duration::from_secs(2);

impl Feed {
    /// Returns what to do if the service did not say where to go on.
    pub(super) async fn unanswered(&mut self, error: Error) -> Detour {
        if error.code() == "unknown_source"
            && let Some(boards) = self.define.take()
        {
            return match self.source.define(&boards).await {
                Ok(()) => {
                    tracing::info!(source = self.seen.source, ?boards, "the source is defined");
                    Detour::Again
                }
                Err(error) => {
                    self.define = Some(boards);
                    match error.is_transient() {
                        true => Detour::Fail(anyhow::Error::msg(error.to_string()), error.retry_after()),
                        false => Detour::Wait(
                            FeedState::Stopped(format!(
                                "the source cannot be defined, which needs the scope 'manage': {error}"
                            )),
                            LOOKED_AT,
                        ),
                    }
                }
            };
        }
        // A source that is gone was removed by somebody: made anew, it would count all of its log again.
        match error.is_transient() {
            true => Detour::Fail(anyhow::Error::msg(error.to_string()), error.retry_after()),
            false if error.code() == "unknown_source" => {
                let text = format!("{error}; or start once with --define, unless somebody has removed it on purpose");
                Detour::Wait(FeedState::Stopped(text), LOOKED_AT)
            }
            false => Detour::Wait(FeedState::Stopped(error.to_string()), LOOKED_AT),
        }
    }

    /// Returns what to do if the service has not taken a portion.
    pub(super) fn refused(&mut self, error: Error, portion: &Portion) -> Detour {
        match error.code() {
            "source_behind" => return Detour::Again,
            "source_waits" => {
                let state = FeedState::Waiting(error.detail().to_owned());
                return Detour::Wait(state, error.retry_after().unwrap_or(MOMENT));
            }
            _ if error.is_transient() => {
                return Detour::Fail(anyhow::Error::msg(error.to_string()), error.retry_after());
            }
            _ => {}
        }
        match (error.status(), portion.messages.as_slice()) {
            // A single message that is refused is refused for what it is.
            (Some(400 | 413 | 422), [message]) if portion.events > 0 => {
                let why = error.to_string();
                self.remembered.poison = Some(Poison { position: message.position, why });
                // It is to be kept, and with it, once more, what was kept of messages after it.
                if self.remembered.kept >= Some(message.position) {
                    self.remembered.kept = message.position.checked_sub(1);
                }
                Detour::Narrower
            }
            (Some(400 | 413 | 422), [_, _, ..]) => {
                if self.remembered.limit >= MAX_MESSAGES {
                    tracing::warn!(
                        source = self.seen.source,
                        "a message is refused, and it is found out which: {error}"
                    );
                }
                self.remembered.limit = portion.messages.len() / 2;
                Detour::Narrower
            }
            _ => Detour::Wait(FeedState::Stopped(error.to_string()), LOOKED_AT),
        }
    }

    /// Says that messages are missing, once for each place.
    pub(super) fn say_gap(&mut self, place: LogPlace, gap: String) -> Result<(), Detour> {
        if self.remembered.gap != Some(place) {
            self.remembered.gap = Some(place);
            self.seen.gaps.increment(1);
            tracing::warn!(source = self.seen.source, "{gap}");
        }
        match self.choices.on_gap {
            Decision::Pass => Ok(()),
            Decision::Stop => {
                let text = format!("{gap}; to go on without them, start once with --pass-gaps");
                Err(Detour::Wait(FeedState::Stopped(text), LOOKED_AT))
            }
        }
    }

    /// Finds out whether another program sends the same, which has been the case for several portions.
    pub(super) async fn find_other(&mut self, reached: After) -> Detour {
        if self.pause(MOMENT).await {
            return Detour::End(FeedEnd::Told, None);
        }
        match self.source.ask().await {
            Ok(Some(Reached::At(position))) if Some(position) > reached => Detour::StandBy,
            Ok(_) => Detour::Again,
            Err(error) => self.unanswered(error).await,
        }
    }

    /// Waits until the source stands still.
    pub(super) async fn stand_by(&mut self) {
        // Several that stand by do not all take over at once.
        let more = f64::from(Utc::now().timestamp_subsec_nanos() % 1_000) / 2_000.0;
        let still = self.choices.take_over.mul_f64(1.0 + more);
        let (mut last, mut moved) = (None, Instant::now());
        while moved.elapsed() < still && !self.pause(LOOK.min(still / 4)).await {
            if let Ok(reached) = self.source.ask().await
                && reached != last
            {
                (last, moved) = (reached, Instant::now());
            }
        }
    }
}
