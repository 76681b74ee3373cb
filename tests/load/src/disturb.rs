//! What happens to the sessions of a run: plugins are reloaded, and the server of the state restarts.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::place::Place;
use crate::plan::Plan;
use crate::tally::{Count, Tally};

/// How long the server is away: several turns of every session.
const AWAY: Duration = Duration::from_millis(700);

/// Edits the plugins one after the other, without end, where they are to be reloaded.
///
/// # Errors
/// A plugin cannot be edited.
pub(crate) async fn reload(every: Option<u64>, place: &Place, tally: &Tally) -> Result<Infallible> {
    let Some(every) = every else { return std::future::pending().await };
    let mut edit = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(every)).await;
        place.edit(edit)?;
        tally.add(Count::Reload);
        edit += 1;
    }
}

/// Restarts the server, at equal distances.
pub(crate) async fn restart(plan: Plan, place: Arc<Place>, tally: Arc<Tally>, end: Instant) -> Result<()> {
    let pause = Duration::from_secs(plan.seconds) / (plan.restarts + 1);
    for number in 0..plan.restarts {
        let next = end.checked_sub(pause * (plan.restarts - number)).unwrap_or(end);
        tokio::time::sleep_until(next.into()).await;
        tally.set_away(true);
        let place = Arc::clone(&place);
        tokio::task::spawn_blocking(move || place.restart_server(AWAY)).await??;
        tally.set_away(false);
        tally.add(Count::Restart);
    }
    Ok(())
}
