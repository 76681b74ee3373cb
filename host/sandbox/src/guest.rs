//! The data of one instance: its plugin and session, what it is allowed to see, and its current call.

use std::sync::Arc;
use std::time::Duration;

use flow::ports::{Clock, EventSink, SessionState, SessionView, StateBatch};
use flow::{BreakerState, EventKind, PluginId, SessionId};
use wasmtime::component::InstancePre;
use wasmtime::{Store, UpdateDeadline};

use crate::breaker;
use crate::engine::Machine;
use crate::events::Emitted;
use crate::limits::{self, GuestLimits, Limiter};
use crate::meter::Meter;
use crate::setting::Settings;
use crate::state::{Change, Commit, Refusal, SessionTotal, Transaction};
use crate::ticker::TICK;
use crate::v0_1::Lines;

/// The facts about a plugin that its instances need.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) id: PluginId,
    pub(crate) settings: Settings,
    pub(crate) limits: GuestLimits,
    /// The format of what it keeps in `state`.
    pub(crate) state_version: u32,
    /// Its words are left out of what is reported of it.
    pub(crate) discreet: bool,
}

/// A session, as far as plugins have to do with it.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) view: Arc<dyn SessionView>,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where its extensions' state becomes durable.
    pub(crate) state: Arc<dyn SessionState>,
    /// The size of that state.
    pub(crate) total: Arc<SessionTotal>,
    pub(crate) emitted: Emitted,
}

impl Session {
    /// Hands changes of the state of `plugin` to the store. Never waits, so it is called under the lock of the area.
    pub(crate) fn apply(&self, plugin: &PluginId, batch: StateBatch) {
        if !batch.changes.is_empty() || batch.version.is_some() {
            self.state.apply(plugin, batch);
        }
    }

    /// Reports what a callback of `plugin` has changed.
    pub(crate) fn changed(&self, plugin: &Identity, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        for change in changes {
            self.report_state(plugin, change.operation, change.key, change.size);
        }
        if let Some((bytes, max)) = self.total.alert() {
            tracing::warn!(bytes, max, "the state of the session's extensions approaches its limit");
            let message = format!(
                "the extensions of this session keep {bytes} bytes of state, over 80 % of the limit of {max}; beyond it their \
                 writes are refused"
            );
            self.events.emit(EventKind::Notice { message });
        }
    }

    /// What reports the changes of the breaker of `plugin` as events.
    pub(crate) fn breaker_report(self: &Arc<Self>, plugin: &Arc<Identity>) -> breaker::Report {
        let (session, plugin) = (Arc::clone(self), Arc::clone(plugin));
        Box::new(move |change| {
            let breaker::Change { scope, state, called, reason, retry_after_ms } = change;
            let plugin = plugin.id.clone();
            if state == BreakerState::Open {
                let scope = scope.as_str();
                tracing::warn!(%plugin, %called, scope, retry_after_ms, "a circuit breaker is open: {reason}");
            }
            session.events.emit(EventKind::ExtensionBreaker { plugin, called, scope, state, reason, retry_after_ms });
        })
    }

    pub(crate) fn report_state(&self, plugin: &Identity, operation: &str, key: String, size_bytes: u64) {
        self.report_key(plugin.id.clone(), operation, plugin.key(key), size_bytes);
    }

    /// Reports that all state of `plugin` was removed, which need not be loaded.
    pub(crate) fn report_cleared(&self, plugin: &PluginId) {
        self.report_key(plugin.clone(), "clear", String::new(), 0);
    }

    fn report_key(&self, plugin: PluginId, operation: &str, key: String, size_bytes: u64) {
        // The loss of what an extension kept is in the log; its writes are too many.
        if matches!(operation, "evict" | "clear") {
            tracing::info!(%plugin, operation, key, size_bytes, "state of the extension was removed");
        }
        self.events.emit(EventKind::ExtensionState { plugin, operation: operation.to_owned(), key, size_bytes });
    }
}

/// Where an instance runs.
pub(crate) enum Scene {
    /// In the throw-away instance that `register` is called in: powers refuse.
    Register,
    /// In a session.
    Session(Arc<Session>, Transaction),
}

/// A panic that the guest reported before it trapped.
#[derive(Debug)]
pub(crate) struct Panic {
    pub(crate) message: String,
    pub(crate) place: String,
}

/// The call that an instance is in.
#[derive(Debug, Default)]
pub(crate) struct Current {
    /// The own time that the call has.
    budget: Duration,
    /// Runs on the caller's stack, so it cannot yield before its time is up.
    inline: bool,
    pub(crate) timed_out: bool,
    pub(crate) panic: Option<Panic>,
    lines: u32,
    dropped: u32,
    cut: u32,
    /// Where a tool reports its progress; `None` while none runs.
    progress: Option<Arc<Lines>>,
    reported: u32,
    unreported: u32,
    reported_cut: u32,
}

/// The data of a store.
pub(crate) struct Guest {
    pub(crate) plugin: Arc<Identity>,
    pub(crate) scene: Scene,
    pub(crate) limiter: Limiter,
    pub(crate) call: Current,
    /// The own time of the current call.
    pub(crate) meter: Arc<Meter>,
}

impl Guest {
    /// A store for one instance of `plugin`, with all limits set.
    pub(crate) fn store(machine: &Machine, plugin: Arc<Identity>, scene: Scene) -> Store<Self> {
        let limiter = Limiter::new(plugin.limits.memory_bytes);
        let crossing = plugin.limits.crossing_bytes();
        let call = Current::with(Duration::ZERO, true);
        let meter = Arc::new(Meter::new());
        let mut store = Store::new(&machine.engine, Self { plugin, scene, limiter, call, meter });
        store.limiter(|guest| &mut guest.limiter);
        store.set_hostcall_fuel(crossing);
        store.epoch_deadline_callback(|mut store| Ok(store.data_mut().tick()));
        store
    }

    /// A call begins: it may use `budget` of its own time. It must be polled in stretches of the guest's meter.
    pub(crate) fn begin(store: &mut Store<Self>, budget: Duration, inline: bool) {
        let guest = store.data_mut();
        guest.call = Current::with(budget, inline);
        guest.meter.begin();
        // A growth that was refused before and came to nothing is not this call's.
        guest.limiter.take_refused();
        guest.limiter.take_exhausted();
        store.set_epoch_deadline(1);
    }

    /// The epoch has moved while the guest ran. A guest that has just been resumed continues: every yield lets other
    /// tasks run for as long as they like before it is resumed again.
    fn tick(&mut self) -> UpdateDeadline {
        let used = self.meter.tick();
        if used.call >= self.call.budget {
            self.call.timed_out = true;
            UpdateDeadline::Interrupt
        } else if self.call.inline || used.stretch < TICK {
            UpdateDeadline::Continue(1)
        } else {
            UpdateDeadline::Yield(1)
        }
    }

    /// Whether the current call runs on the caller's stack.
    pub(crate) fn inline(&self) -> bool {
        self.call.inline
    }

    /// The call succeeded: what it wrote is applied. Returns whether it was; see [`Transaction::commit`].
    pub(crate) fn commit(&mut self, of: Commit) -> bool {
        let Scene::Session(session, transaction) = &mut self.scene else { return true };
        let plugin = &self.plugin.id;
        let changes = transaction.commit(of, |batch| session.apply(plugin, batch));
        let applied = changes.is_some();
        session.changed(&self.plugin, changes.unwrap_or_default());
        applied
    }

    /// Whether the call has written to the state.
    pub(crate) fn has_written(&self) -> bool {
        match &self.scene {
            Scene::Register => false,
            Scene::Session(_, transaction) => transaction.has_written(),
        }
    }

    /// The `state` power, or why it cannot be used now.
    pub(crate) fn state(&mut self) -> Result<(&mut Transaction, u64, &GuestLimits), Refusal> {
        match &mut self.scene {
            Scene::Register => Err(Refusal::Unavailable("not during register".to_owned())),
            Scene::Session(session, transaction) => Ok((transaction, session.clock.now_ms(), &self.plugin.limits)),
        }
    }

    /// The session, unless the plugin is only registering.
    pub(crate) fn session(&self) -> Option<&Session> {
        match &self.scene {
            Scene::Register => None,
            Scene::Session(session, _) => Some(session),
        }
    }

    /// A line of the `log` power.
    pub(crate) fn log(&mut self, level: &str, mut message: String, fields: &[(String, String)]) {
        if self.call.lines >= limits::LOG_LINES {
            self.call.dropped += 1;
            return;
        }
        self.call.lines += 1;
        for (key, value) in fields {
            message.push(' ');
            message.push_str(key);
            message.push('=');
            message.push_str(value);
        }
        let kept = limits::cut(&message, limits::LOG_LINE_BYTES);
        self.call.cut += u32::from(kept.len() < message.len());
        self.write(level, &self.plugin.words(kept.to_owned()));
    }

    /// The current call is one of a tool, whose progress goes to `lines`.
    pub(crate) fn follow(&mut self, lines: Arc<Lines>) {
        self.call.progress = Some(lines);
    }

    /// A line of the interface `tool-progress`.
    pub(crate) fn progress(&mut self, percent: Option<f64>, mut line: String) {
        let Some(progress) = &self.call.progress else { return };
        if self.call.reported >= limits::PROGRESS_LINES {
            self.call.unreported += 1;
            return;
        }
        self.call.reported += 1;
        let kept = limits::cut(&line, limits::PROGRESS_BYTES).len();
        if kept < line.len() {
            line.truncate(kept);
            self.call.reported_cut += 1;
        }
        progress.push(percent, line);
    }

    /// Logs how much of the log and of the progress was cut or dropped in the call that is over.
    pub(crate) fn end_log(&mut self) {
        let (dropped, cut) = (self.call.unreported, self.call.reported_cut);
        if dropped > 0 || cut > 0 {
            let (lines, bytes) = (limits::PROGRESS_LINES, limits::PROGRESS_BYTES);
            let message =
                format!("progress: {dropped} lines over {lines} were dropped, {cut} lines were cut to {bytes} bytes");
            self.write("warn", &message);
        }
        let (dropped, cut) = (self.call.dropped, self.call.cut);
        if dropped > 0 || cut > 0 {
            let (lines, bytes) = (limits::LOG_LINES, limits::LOG_LINE_BYTES);
            self.write(
                "warn",
                &format!("{dropped} lines over {lines} were dropped, {cut} lines were cut to {bytes} bytes"),
            );
        }
    }

    /// Lines of a plugin reach terminals, streams of events and transcripts: a secret in one is masked.
    fn write(&self, level: &str, message: &str) {
        let message = secrets::without_secrets(message).into_owned();
        match &self.scene {
            Scene::Register => tracing::info!(plugin = %self.plugin.id, level, "while registering: {message}"),
            Scene::Session(session, _) => session.events.emit(EventKind::ExtensionLog {
                plugin: self.plugin.id.clone(),
                level: level.to_owned(),
                message,
            }),
        }
    }
}

impl Current {
    fn with(budget: Duration, inline: bool) -> Self {
        Self { budget, inline, ..Self::default() }
    }
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest").field("plugin", &self.plugin.id).field("call", &self.call).finish_non_exhaustive()
    }
}

/// A component whose imports are found, ready to be made an instance of.
pub(crate) type Ready = InstancePre<Guest>;
