//! From the events of one session to numbers: which event counts for which metric.

use std::collections::BTreeMap;

use flow::{
    BreakerScope, BreakerState, CallbackOutcome, CallbackReport, Called, ErrorClass, Event, EventView, PluginId,
    RegistrationAction, RunPosition, ToolOutcome, ToolReport, Usage,
};

use crate::Metrics;
use crate::catalogue::Id;
use crate::names::TOOL;

/// Observes one session: every event of it, in order, from its first on.
///
/// It remembers what single events do not say: the session's model, the error before a retry, the states of its breakers.
/// Dropping it ends the session: its breakers count no more.
#[derive(Debug)]
pub struct SessionMetrics {
    metrics: Metrics,
    model: String,
    /// The attempt of the last event that belonged to one.
    attempt: RunPosition,
    /// The class of the last error of the model.
    error: ErrorClass,
    breakers: BTreeMap<PluginId, BreakerState>,
}

impl SessionMetrics {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            model: "unknown".to_owned(),
            attempt: RunPosition::default(),
            error: ErrorClass::Transient,
            breakers: BTreeMap::new(),
        }
    }

    /// Counts an event. Never waits for anything but another event that is counted, or text that is written.
    pub fn observe(&mut self, event: &Event) {
        use EventView as Kind;
        self.count_request(event.place);
        match EventView::from(&event.kind) {
            Kind::ThreadStarted { model, .. } | Kind::ThreadResumed { model, .. } => self.model.clone_from(model),
            Kind::TurnFinish { status } => self.add(Id::Turns, &[status.as_str()]),
            Kind::StepFinish { usage, .. } => self.count_tokens(*usage),
            Kind::ErrorClassified { class, .. } => {
                self.error = *class;
                self.add(Id::ModelErrors, &[class.as_str(), &self.model]);
            }
            Kind::RetryScheduled { .. } => self.add(Id::Retries, &[self.error.as_str(), &self.model]),
            Kind::ToolCallResult { tool, is_error, duration_ms, .. } => self.tool(tool, !*is_error, *duration_ms),
            Kind::RuleFired { found, action, .. } => self.add(Id::RuleFired, &[&found.rule, action.as_str()]),
            Kind::TtsrInjection { records, .. } => {
                for record in records.iter().filter(|record| record.tokens_discarded > 0) {
                    self.metrics.lock().add(Id::RuleTokens, &[&record.rule], record.tokens_discarded);
                }
            }
            Kind::ExtensionRegistered { plugin, action, .. } | Kind::ExtensionUnregistered { plugin, action, .. } => {
                self.registration(plugin, *action);
            }
            Kind::ExtensionCallback(report) => self.callback(report),
            Kind::ExtensionTool(report) => self.extension_tool(report),
            // The breaker of an extension's tools is another one: a series cannot show both.
            Kind::ExtensionBreaker { called: Called::Tool(_), .. } => {}
            Kind::ExtensionBreaker { plugin, called: Called::Callback(_), scope, state, .. } => match scope {
                BreakerScope::Session => self.breaker(plugin, Some(*state)),
                // Of which breaker is not in the event; see [`Metrics::watch_breaker`].
                BreakerScope::Host => {}
            },
            Kind::ExtensionState { plugin, operation, size_bytes, .. } => {
                self.state(plugin.as_str(), operation, *size_bytes);
            }
            Kind::CustomEvent { event_type, plugin, .. } => {
                self.add(Id::CustomEvents, &[event_type, plugin.as_ref().map_or("", |plugin| plugin.as_str())]);
            }
            // Text, and what other events count.
            Kind::ThreadError { .. }
            | Kind::ThreadCancelled { .. }
            | Kind::TurnStart
            | Kind::StepStart { .. }
            | Kind::ThreadCompleted { .. }
            | Kind::ThreadSuspended { .. }
            | Kind::LimitEscalationRequested(_)
            | Kind::LimitEscalationResolved { .. }
            | Kind::InputReceived { .. }
            | Kind::InputQueued { .. }
            | Kind::InputEdited { .. }
            | Kind::InputWithdrawn { .. }
            | Kind::HistoryReplaced { .. }
            | Kind::JournalFailed { .. }
            | Kind::SchemaViolation { .. }
            | Kind::ChildThreadStarted { .. }
            | Kind::ChildThreadFailed { .. }
            | Kind::ContextCompactionStart { .. }
            | Kind::ContextCompactionEnd { .. }
            | Kind::CognitionIn { .. }
            | Kind::CognitionOut { .. }
            | Kind::CognitionOutDelta { .. }
            | Kind::CognitionReasoning { .. }
            | Kind::CognitionReasoningDelta { .. }
            | Kind::ToolCallStart { .. }
            | Kind::ToolCallProgress { .. }
            | Kind::ToolConfirmationRequested { .. }
            | Kind::ToolConfirmationResolved { .. }
            | Kind::PlanUpdated { .. }
            | Kind::RetrySucceeded { .. }
            | Kind::RuleHoldReleased { .. }
            | Kind::RuleHeld { .. }
            | Kind::TtsrRearmed { .. }
            | Kind::RulesReloaded { .. }
            | Kind::SteeringMessage { .. }
            | Kind::CustomMessage { .. }
            | Kind::ExtensionPrompt(_)
            | Kind::ExtensionWithheld { .. }
            | Kind::StateLost { .. }
            | Kind::ExtensionLog { .. }
            | Kind::Notice { .. } => {}
        }
    }

    fn add(&self, id: Id, labels: &[&str]) {
        self.metrics.lock().add(id, labels, 1);
    }

    /// An attempt has no event of its own. Each has at least one event: its answer, its error, or the end of its turn.
    fn count_request(&mut self, place: RunPosition) {
        if place.attempt > 0 && place != self.attempt {
            self.attempt = place;
            self.add(Id::Requests, &[&self.model]);
        }
    }

    fn count_tokens(&self, usage: Usage) {
        let types = [
            ("input", usage.input),
            ("output", usage.output),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
        ];
        let mut metrics = self.metrics.lock();
        for (name, tokens) in types.into_iter().filter_map(|(name, tokens)| Some((name, tokens?))) {
            metrics.add(Id::Tokens, &[name, &self.model], tokens);
        }
    }

    fn tool(&self, tool: &str, succeeded: bool, duration_ms: Option<u64>) {
        let mut metrics = self.metrics.lock();
        // Models invent names: one that has never succeeded may name nothing.
        let tool = metrics.admit(TOOL, tool, succeeded);
        metrics.add(Id::ToolCalls, &[tool, if succeeded { "ok" } else { "error" }], 1);
        if let Some(duration_ms) = duration_ms {
            metrics.observe(Id::ToolTime, &[tool], u128::from(duration_ms) * 1_000_000_000);
        }
    }

    fn callback(&self, report: &CallbackReport) {
        let (plugin, callback) = (report.plugin.as_str(), report.callback.as_str());
        let mut metrics = self.metrics.lock();
        metrics.add(Id::Callbacks, &[callback, plugin, report.outcome.as_str()], 1);
        if !matches!(report.outcome, CallbackOutcome::Skipped(_) | CallbackOutcome::NotPermitted(_)) {
            // A nanosecond is a millionth of the unit.
            metrics.observe(Id::CallbackTime, &[callback, plugin], u128::from(report.nanos) * 1000);
        }
        drop(metrics);
        self.reads(plugin, report.state_reads);
    }

    /// A tool that an extension provides exists, whatever becomes of its call.
    fn extension_tool(&self, report: &ToolReport) {
        let (plugin, tool) = (report.plugin.as_str(), report.tool.as_str());
        let mut metrics = self.metrics.lock();
        metrics.add(Id::Tools, &[tool, plugin, report.outcome.as_str()], 1);
        if !matches!(report.outcome, ToolOutcome::NotPermitted(_)) {
            metrics.observe(Id::ToolRunTime, &[tool, plugin], u128::from(report.nanos) * 1000);
        }
        drop(metrics);
        self.reads(plugin, report.state_reads);
    }

    fn reads(&self, plugin: &str, reads: u64) {
        if reads > 0 {
            self.metrics.lock().add(Id::StateOperations, &["get", plugin], reads);
        }
    }

    fn state(&self, plugin: &str, operation: &str, size_bytes: u64) {
        let mut metrics = self.metrics.lock();
        metrics.add(Id::StateOperations, &[operation, plugin], 1);
        metrics.observe(Id::StateSize, &[plugin], u128::from(size_bytes) * 1_000_000_000);
        if operation == "evict" {
            metrics.add(Id::StateEvictions, &[plugin], 1);
        }
    }

    /// A plugin that came has a new breaker, also where it was disabled before.
    fn registration(&mut self, plugin: &PluginId, action: RegistrationAction) {
        self.add(Id::Registrations, &[action.as_str(), plugin.as_str()]);
        match action {
            RegistrationAction::Register | RegistrationAction::Reload | RegistrationAction::Enable => {
                self.breaker(plugin, Some(BreakerState::Closed));
            }
            RegistrationAction::Disable | RegistrationAction::Unregister => self.breaker(plugin, None),
        }
    }

    /// `None`: the session no longer has the extension.
    fn breaker(&mut self, plugin: &PluginId, state: Option<BreakerState>) {
        let before = match state {
            Some(state) => self.breakers.insert(plugin.clone(), state),
            None => self.breakers.remove(plugin),
        };
        let mut metrics = self.metrics.lock();
        metrics.breaker(plugin.as_str(), before, state);
        if state == Some(BreakerState::Open) {
            metrics.add(Id::BreakerOpened, &[plugin.as_str()], 1);
        }
    }
}

impl Drop for SessionMetrics {
    fn drop(&mut self) {
        let mut metrics = self.metrics.lock();
        for (plugin, state) in std::mem::take(&mut self.breakers) {
            metrics.breaker(plugin.as_str(), Some(state), None);
        }
    }
}
