//! The search for how many turns the program can stream at a time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::editor::Editor;
use super::measured::Step;
use super::step;

/// Within this time 99 of 100 deltas have to be shown.
pub(super) const LAG: Duration = Duration::from_millis(5);
/// The first number that is tried.
const FIRST: u32 = 25;
/// How often the difference between a number that works and one that does not is halved.
const HALVED: u32 = 3;

/// Doubles the number of turns at a time until the lag is too large, and halves the difference then. Returns all steps in order.
pub(super) async fn search(editor: &Arc<Editor>, sessions: &[String], seconds: u64, most: u32) -> Result<Vec<Step>> {
    let (mut good, mut bad, mut steps) = (0, None, Vec::new());
    let mut next = FIRST.min(most);
    let mut halved = 0;
    loop {
        let active = usize::try_from(next)?.min(sessions.len());
        let step = step(editor, &sessions[..active], seconds, next).await?;
        match step.is_in_time() {
            true => good = next,
            false => bad = Some(next),
        }
        steps.push(step);
        next = match bad {
            None if next < most => (2 * next).min(most),
            Some(bad) if halved < HALVED && bad - good > 1 => {
                halved += 1;
                good + (bad - good) / 2
            }
            None | Some(_) => return Ok(steps),
        };
    }
}
