//! State that an older version of a plugin wrote: brought up to date by the plugin, once, before it is used.

use flow::FailureCause;

use crate::failure::{Described, caught, describe};
use crate::guest::Guest;
use crate::session::{NotStarted, SessionExtensions};
use crate::slot::{Live, Slot};
use crate::state::Commit;
use crate::v0_1;

impl SessionExtensions {
    /// Has the plugin migrate what it keeps in the session, where an older `state_version` of it wrote that. A failure leaves the
    /// state as it was, and the session does without the plugin: run on a format that it does not know, it could destroy it.
    ///
    /// The outer error is that of a host that could not start an instance now: the next call tries again.
    pub(crate) async fn migrate(&self, slot: &Slot) -> Result<Result<(), Described>, NotStarted> {
        let to = slot.plugin.identity.state_version;
        let format = {
            let mut area = slot.area.lock();
            let format = area.format();
            if format.is_none() {
                area.set_format(to);
            }
            format
        };
        let Some(from) = format.filter(|from| *from != to) else { return Ok(Ok(())) };
        let (id, session) = (slot.id().as_str(), self.session.id.as_str());
        if from > to {
            return Ok(unusable(format!(
                "its state in this session has the `state_version` {from}, which a newer version of the plugin wrote, and this \
                 version has {to}; use the newer one, or delete the state with `tidegate state clear {session} --of {id}`"
            )));
        }
        if !slot.plugin.exports.migrate() {
            return Ok(unusable(format!(
                "its state in this session has the `state_version` {from}, this version of the plugin has {to} and exports no \
                 `migration`; delete the state with `tidegate state clear {session} --of {id}`, or use the version that wrote it"
            )));
        }
        let live = self.instantiate(slot).await?;
        let result = self.run_migration(slot, live, from).await.map_err(|described| {
            let Described { cause, message, frames } = described;
            let message = format!("its state cannot be migrated from `state_version` {from} to {to}: {message}");
            Described { cause, message, frames }
        });
        match &result {
            Ok(()) => tracing::info!(plugin = id, from, to, "the state of the extension was migrated"),
            Err(described) => tracing::warn!(plugin = id, from, to, "{}", described.message),
        }
        Ok(result)
    }

    /// In an instance of its own, within the time that all callbacks of a turn have together.
    async fn run_migration(&self, slot: &Slot, mut live: Box<Live>, from: u32) -> Result<(), Described> {
        let identity = &slot.plugin.identity;
        let time = identity.limits.turn_time;
        let _ticking = slot.plugin.machine.ticking();
        Guest::begin(&mut live.store, time, false);
        let Live { store, calls, meter, .. } = &mut *live;
        let answer = caught(meter, v0_1::migrate(calls, store, from)).await;
        store.data_mut().end_log();
        answer.map_err(|fault| describe(fault, store, time.as_millis()))?;
        store.data_mut().commit(Commit::Migration { format: identity.state_version });
        Ok(())
    }
}

fn unusable(message: String) -> Result<(), Described> {
    Err(Described::new(FailureCause::Start, message))
}
