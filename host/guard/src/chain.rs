//! Calls extensions: which ones, in which order, and what a failure means.
//!
//! Every call has a report: what became of it and how long it took. Where a callback fails, is skipped, or returns something
//! that cannot be used, its policy decides: the caller continues with the last good value, or nothing of what was to be
//! checked is shown or sent. The failure of an extension that the operator made `required` ends the turn.

mod answered;
mod notice;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use flow::{
    CallFailure, Callback, CallbackKind, CallbackOutcome, CallbackReport, EventKind, FailureCause, Keeping, NoAnswer,
    OnFailure, OutputMode, PluginId, Registered, Registration, RunPosition, SPANS, TagPattern, TextStream, TextUnit,
};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

use self::answered::Answered;
use flow::ports::{BoxFuture, EventSink, Extensions};

/// The handlers of each callback, highest priority first, ties in order of registration.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    pub(crate) input: Vec<usize>,
    /// The handlers in `input` that also get the other parts of requests.
    pub(crate) requests: Vec<usize>,
    pub(crate) text: Vec<(usize, TextUnit)>,
    pub(crate) thinking: Vec<(usize, TextUnit)>,
    pub(crate) tags: Vec<(usize, Vec<TagPattern>)>,
    pub(crate) output: Vec<(usize, OutputMode)>,
    pub(crate) ttsr: Vec<usize>,
    pub(crate) calls: Vec<usize>,
    pub(crate) results: Vec<usize>,
    /// For which streams what the user saw is kept.
    pub(crate) keeping: Keeping,
}

/// The callbacks of extensions in the order of their calls: the highest priority first, ties in order of registration. Each with
/// the index of its extension among `registrations`.
pub fn in_order(registrations: &[Registration]) -> Vec<(usize, &Registered)> {
    let plugins = registrations.iter().enumerate();
    let mut all: Vec<(usize, &Registered)> =
        plugins.flat_map(|(plugin, one)| one.callbacks.iter().map(move |one| (plugin, one))).collect();
    // Stable: equal priorities stay in order of registration.
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.priority));
    all
}

impl Chains {
    pub(crate) fn new(registrations: &[Registration]) -> Self {
        let keeping = Keeping::of(registrations.iter().flat_map(|one| &one.callbacks));
        let mut chains = Self { keeping, ..Self::default() };
        for (plugin, registered) in in_order(registrations) {
            match &registered.callback {
                Callback::InputMessages => {
                    chains.input.push(plugin);
                    if registered.whole_requests {
                        chains.requests.push(plugin);
                    }
                }
                Callback::PlainText(options) => {
                    if options.answer {
                        chains.text.push((plugin, options.unit));
                    }
                    if options.thinking {
                        chains.thinking.push((plugin, options.unit));
                    }
                }
                Callback::Tag(patterns) => chains.tags.push((plugin, patterns.clone())),
                Callback::LlmOutput(mode) => chains.output.push((plugin, *mode)),
                Callback::TtsrTriggered => chains.ttsr.push(plugin),
                Callback::ToolCall => chains.calls.push(plugin),
                Callback::ToolResult => chains.results.push(plugin),
            }
        }
        chains
    }

    /// The handlers of `on_plain_text` for a stream.
    pub(crate) fn text_of(&self, stream: TextStream) -> &[(usize, TextUnit)] {
        match stream {
            TextStream::Answer => &self.text,
            TextStream::Thinking => &self.thinking,
        }
    }

    /// Whether an answer must be held until it is complete.
    pub(crate) fn has_rewriter(&self) -> bool {
        self.output.iter().any(|(_, mode)| *mode == OutputMode::Rewrite)
    }

    /// The handlers of a tag: those of its exact name, else those of the longest matching prefix.
    pub(crate) fn tag_handlers(&self, name: &str) -> Vec<usize> {
        let rank = |pattern: &TagPattern| match pattern {
            TagPattern::Exact(exact) if exact == name => Some(usize::MAX),
            TagPattern::Prefix(prefix) if name.starts_with(prefix.as_str()) => Some(prefix.len()),
            _ => None,
        };
        let ranks = |patterns: &[TagPattern]| patterns.iter().filter_map(rank).max();
        let best = self.tags.iter().filter_map(|(_, patterns)| ranks(patterns)).max();
        let fits = |patterns: &[TagPattern]| best.is_some() && ranks(patterns) == best;
        self.tags.iter().filter(|(_, patterns)| fits(patterns)).map(|(plugin, _)| *plugin).collect()
    }
}

/// Where events about a stream are emitted, and where in the run that is.
pub trait Events: EventSink {
    /// The position of the next event.
    fn place(&self) -> RunPosition;
}

/// Calls the extensions of one session.
pub struct Caller {
    pub(crate) chains: Chains,
    pub(crate) registrations: Arc<[Registration]>,
    pub(crate) extensions: Arc<dyn Extensions>,
    pub(crate) events: Arc<dyn Events>,
    /// By extension: which callbacks have a report in this turn, one bit each.
    reported: Vec<AtomicU8>,
    tallies: Vec<Mutex<Tally>>,
}

/// Counts of the calls of an extension's callbacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Calls that changed something.
    pub changed: u64,
    /// Calls that failed, or were skipped although they were due.
    pub failed: u64,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("registrations", &self.registrations).finish_non_exhaustive()
    }
}

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Asked<T> {
    /// A valid answer.
    Answer(T),
    /// No valid answer; the chain continues with the callback's input.
    Nothing,
    /// No valid answer, and the callback fails closed: its input must not pass. The string gives the reason.
    Closed(String),
}

/// A call under way. One that is dropped before it answered has a report too.
struct InFlight<'a> {
    caller: &'a Caller,
    plugin: usize,
    callback: CallbackKind,
    span: Span,
    began: Instant,
    answered: bool,
}

impl InFlight<'_> {
    fn nanos(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn report(&mut self, outcome: CallbackOutcome, nanos: u64) {
        let failure = if let CallbackOutcome::Failed(failure) = &outcome { Some(failure.cause.as_str()) } else { None };
        end_span(&self.span, outcome.as_str(), failure);
        self.caller.report(self.plugin, self.callback, outcome, nanos);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.answered {
            let with = match self.callback {
                CallbackKind::TtsrTriggered => "the session ended, or its plugins changed",
                _ => "the turn ended",
            };
            let why = CallbackOutcome::Ignored(format!("it was stopped when {with}"));
            self.caller.report(self.plugin, self.callback, why, self.nanos());
            end_span(&self.span, CANCELLED, Some(CANCELLED));
        }
    }
}

impl Caller {
    pub fn new(registrations: Arc<[Registration]>, extensions: Arc<dyn Extensions>, events: Arc<dyn Events>) -> Self {
        let chains = Chains::new(&registrations);
        let reported = registrations.iter().map(|_| AtomicU8::new(0)).collect();
        let tallies = registrations.iter().map(|_| Mutex::default()).collect();
        Self { chains, registrations, extensions, events, reported, tallies }
    }

    /// The extensions, in the order of registration.
    pub fn registrations(&self) -> &[Registration] {
        &self.registrations
    }

    /// What calls them.
    pub fn extensions(&self) -> &Arc<dyn Extensions> {
        &self.extensions
    }

    /// Where events about them are emitted.
    pub fn events(&self) -> &dyn Events {
        &*self.events
    }

    /// For which streams what the user saw is kept.
    pub fn keeping(&self) -> Keeping {
        self.chains.keeping
    }

    /// Whether an answer must be held back until it is complete.
    pub fn has_rewriter(&self) -> bool {
        self.chains.has_rewriter()
    }

    /// Takes the counts of the extensions since the last call, by their ids.
    pub fn take_tallies(&self) -> impl Iterator<Item = (PluginId, Tally)> {
        let take = |tally: &Mutex<Tally>| std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner));
        self.tallies.iter().enumerate().map(move |(plugin, tally)| (self.id(plugin), take(tally)))
    }

    /// Whether an extension gets the calls of tools.
    pub fn gets_calls(&self) -> bool {
        !self.chains.calls.is_empty()
    }

    /// Returns whether an extension gets parts of requests: messages, results of tools.
    pub fn gets_requests(&self) -> bool {
        !(self.chains.input.is_empty() && self.chains.results.is_empty())
    }

    /// Returns whether an extension also gets the parts of requests that are not input.
    pub fn gets_whole_requests(&self) -> bool {
        !self.chains.requests.is_empty()
    }

    /// Returns an extension that nothing is allowed to bypass on its way to the model, if there is one.
    pub fn guards_requests(&self) -> Option<PluginId> {
        let guards = |(plugin, kind): &(usize, CallbackKind)| {
            self.registrations[*plugin].required || self.fails_closed(*plugin, *kind)
        };
        let input = self.chains.input.iter().map(|plugin| (*plugin, CallbackKind::InputMessages));
        let results = self.chains.results.iter().map(|plugin| (*plugin, CallbackKind::ToolResult));
        input.chain(results).find(guards).map(|(plugin, _)| self.id(plugin))
    }

    /// Returns whether an extension gets answers as a whole.
    pub fn gets_outputs(&self) -> bool {
        !self.chains.output.is_empty()
    }

    /// A turn begins: no callback has a report yet.
    pub fn begin_turn(&self) {
        self.reported.iter().for_each(|bits| bits.store(0, Ordering::Relaxed));
    }

    /// A turn ends: callbacks that were never called are reported with the reason.
    pub fn end_turn(&self) {
        for (plugin, one) in self.registrations.iter().enumerate() {
            for callback in &one.callbacks {
                let kind = callback.kind();
                if self.reported[plugin].load(Ordering::Relaxed) & bit(kind) == 0 {
                    self.report(plugin, kind, CallbackOutcome::Skipped(unused(kind).to_owned()), 0);
                }
            }
        }
    }

    /// These are not called because of the answer of `by`.
    pub(crate) fn skip(&self, rest: &[usize], callback: CallbackKind, by: usize, what: &str) {
        for &plugin in rest {
            self.report(plugin, callback, CallbackOutcome::Skipped(format!("{} {what}", self.id(by))), 0);
        }
    }

    /// Reports that parts of an answer were not used if its report is `changed` and has no field for the reasons. The reasons can contain
    /// words of the extension, which got the text before it was shown: they are in its log, not in the notice, which everyone sees.
    pub(crate) fn used_in_part(&self, plugin: usize, callback: CallbackKind, reasons: &[String]) {
        let (id, callback) = (self.id(plugin), callback.as_str());
        let what = format!("part of its answer to {callback} was not used");
        self.events.emit(EventKind::Notice { message: format!("{id}: {what}; its log has the reason") });
        let message = format!("{what}: {}", reasons.join("; "));
        self.events.emit(EventKind::ExtensionLog { plugin: id, level: "warn".to_owned(), message });
    }

    /// Calls one extension.
    ///
    /// # Errors
    /// The failure of an extension that is `required`, or that there is no instance to call it in.
    pub(crate) async fn ask<T: Answered>(
        &self,
        plugin: usize,
        callback: CallbackKind,
        call: BoxFuture<'_, Result<T, NoAnswer>>,
    ) -> Result<Asked<T>, CallFailure> {
        let span = span(&self.registrations[plugin].plugin, callback);
        let mut flight = InFlight { caller: self, plugin, callback, span, began: Instant::now(), answered: false };
        let answer = call.instrument(flight.span.clone()).await;
        flight.answered = true;
        let nanos = flight.nanos();
        match answer {
            Ok(answer) => {
                flight.report(answer.outcome(), nanos);
                match answer.unusable() {
                    None => Ok(Asked::Answer(answer)),
                    Some(why) => {
                        let why = format!("its answer is not valid: {why}");
                        self.without(plugin, callback, FailureCause::Malformed, why)
                    }
                }
            }
            Err(NoAnswer::NotPermitted(reason)) => {
                flight.report(CallbackOutcome::NotPermitted(reason.clone()), 0);
                self.without(plugin, callback, FailureCause::Start, reason)
            }
            Err(NoAnswer::NoInstance(why)) => {
                flight.report(CallbackOutcome::NotPermitted(why.clone()), 0);
                self.without_instance(plugin, callback, why)
            }
            Err(NoAnswer::Failed(failure)) => {
                let message = failure.to_string();
                tracing::warn!(plugin = %failure.plugin, callback = callback.as_str(), "{message}");
                flight.report(CallbackOutcome::Failed(failure.clone()), nanos);
                if self.registrations[plugin].required {
                    Err(failure)
                } else {
                    Ok(self.policy(plugin, callback, message))
                }
            }
        }
    }

    /// Neither an answer nor a failure.
    fn without<T>(
        &self,
        plugin: usize,
        callback: CallbackKind,
        cause: FailureCause,
        reason: String,
    ) -> Result<Asked<T>, CallFailure> {
        if self.registrations[plugin].required {
            let (plugin, called) = (self.id(plugin), callback.into());
            return Err(CallFailure { plugin, called, cause, message: reason, frames: Vec::new() });
        }
        Ok(self.policy(plugin, callback, reason))
    }

    /// The host could not call an extension that would have worked. What the callback was to check is used unchecked under no policy: the
    /// turn ends. A notice has nothing to check.
    fn without_instance<T>(
        &self,
        plugin: usize,
        callback: CallbackKind,
        message: String,
    ) -> Result<Asked<T>, CallFailure> {
        let (id, called) = (self.id(plugin), callback.into());
        tracing::warn!(plugin = %id, callback = callback.as_str(), "it was not called: {message}");
        if callback == CallbackKind::TtsrTriggered {
            return Ok(Asked::Nothing);
        }
        Err(CallFailure { plugin: id, called, cause: FailureCause::NoInstance, message, frames: Vec::new() })
    }

    fn policy<T>(&self, plugin: usize, callback: CallbackKind, reason: String) -> Asked<T> {
        if self.fails_closed(plugin, callback) { Asked::Closed(reason) } else { Asked::Nothing }
    }

    /// Whether nothing that this callback did not check is shown or sent.
    pub(crate) fn fails_closed(&self, plugin: usize, callback: CallbackKind) -> bool {
        let mut callbacks = self.registrations[plugin].callbacks.iter();
        callbacks.any(|one| one.kind() == callback && one.on_failure != OnFailure::Skip)
    }

    /// The patterns of the handlers of tags that fail closed.
    pub(crate) fn closed_tag_patterns(&self) -> Vec<TagPattern> {
        let closed = self.chains.tags.iter().filter(|(plugin, _)| self.fails_closed(*plugin, CallbackKind::Tag));
        closed.flat_map(|(_, patterns)| patterns.iter().cloned()).collect()
    }

    /// The first handler of a tag that fails closed.
    pub(crate) fn closed_tag_handler(&self, name: &str) -> Option<usize> {
        self.chains.tag_handlers(name).into_iter().find(|&plugin| self.fails_closed(plugin, CallbackKind::Tag))
    }

    /// Reports that something was withheld, and returns the marker that replaces it.
    pub(crate) fn withhold(&self, plugin: usize, callback: CallbackKind, bytes: usize, reason: String) -> String {
        let id = self.id(plugin);
        let marker = flow::withheld(&id);
        self.events.emit(EventKind::ExtensionWithheld { plugin: id, callback, bytes: bytes as u64, reason });
        marker
    }

    /// A callback is called, and has its report when it ends.
    pub(crate) fn is_called(&self, plugin: usize, callback: CallbackKind) {
        self.reported[plugin].fetch_or(bit(callback), Ordering::Relaxed);
    }

    /// Reports the outcome of a call.
    pub(crate) fn report(&self, plugin: usize, callback: CallbackKind, outcome: CallbackOutcome, nanos: u64) {
        self.reported[plugin].fetch_or(bit(callback), Ordering::Relaxed);
        let mut tally = self.tallies[plugin].lock().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            CallbackOutcome::Changed => tally.changed += 1,
            CallbackOutcome::Failed(_) | CallbackOutcome::NotPermitted(_) => tally.failed += 1,
            CallbackOutcome::Passed | CallbackOutcome::Skipped(_) | CallbackOutcome::Ignored(_) => {}
        }
        drop(tally);
        let reads = self.extensions.take_state_reads(plugin);
        let report = CallbackReport::new(self.id(plugin), callback, outcome, nanos).with_state_reads(reads);
        self.events.emit(EventKind::ExtensionCallback(report));
    }

    /// The plugin at an index of the list of registrations.
    pub(crate) fn id(&self, plugin: usize) -> PluginId {
        self.registrations[plugin].plugin.clone()
    }
}

/// The outcome, and the error, of what was stopped with its turn.
const CANCELLED: &str = "cancelled";

/// The span of a callback. It is one of those of a turn, and ends like them when its outcome is recorded.
fn span(extension: &PluginId, callback: CallbackKind) -> Span {
    info_span!(
        target: SPANS, "callback", extension = extension.as_str(), callback = callback.as_str(), error = Empty,
        outcome = Empty,
    )
}

fn end_span(span: &Span, outcome: &str, error: Option<&str>) {
    if span.is_disabled() {
        return;
    }
    if let Some(error) = error {
        span.record("error", error);
    }
    span.record("outcome", outcome);
}

fn bit(callback: CallbackKind) -> u8 {
    1 << callback as u8
}

/// The reason why a callback was never called.
fn unused(callback: CallbackKind) -> &'static str {
    match callback {
        CallbackKind::InputMessages => "the turn ended before the input reached it",
        CallbackKind::PlainText => "there was no text for it",
        CallbackKind::Tag => "there was no tag that it handles",
        CallbackKind::LlmOutput => "no answer was completed",
        CallbackKind::TtsrTriggered => "no stream rule fired",
        CallbackKind::ToolCall => "the model called no tool",
        CallbackKind::ToolResult => "no call of a tool has run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(name: &str, patterns: &[(&str, bool)]) -> Registration {
        let pattern = |(text, exact): &(&str, bool)| {
            if *exact { TagPattern::Exact((*text).into()) } else { TagPattern::Prefix((*text).into()) }
        };
        Registration {
            plugin: name.parse().expect("a plugin id"),
            version: "1.0.0".into(),
            callbacks: vec![Callback::Tag(patterns.iter().map(pattern).collect()).into()],
            tools: Vec::new(),
            required: false,
        }
    }

    #[test]
    fn the_exact_name_wins_then_the_longest_prefix() {
        let chains = Chains::new(&[
            tags("a", &[("note-", false)]),
            tags("b", &[("note-todo", true)]),
            tags("c", &[("note-to", false)]),
            tags("d", &[("note-todo", true), ("n", false)]),
        ]);
        assert_eq!(chains.tag_handlers("note-todo"), [1, 3]);
        assert_eq!(chains.tag_handlers("note-tom"), [2]);
        assert_eq!(chains.tag_handlers("note-x"), [0]);
        assert_eq!(chains.tag_handlers("nothing"), [3]);
        assert!(chains.tag_handlers("x").is_empty());
    }

    #[test]
    fn order_is_priority_then_registration() {
        let one = |name: &str, priority| Registration {
            plugin: name.parse().expect("a plugin id"),
            version: "1.0.0".into(),
            callbacks: vec![(Callback::InputMessages, priority).into()],
            tools: Vec::new(),
            required: false,
        };
        let chains = Chains::new(&[one("a", 50), one("b", 90), one("c", 50), one("d", 0), one("e", 90)]);
        assert_eq!(chains.input, [1, 4, 0, 2, 3]);
    }

    /// The handlers of a callback as the contract words it: of those that are left the one with the highest priority, and of
    /// several the one that was registered first.
    fn expected(registrations: &[Registration], kind: CallbackKind) -> Vec<usize> {
        let mut left: Vec<(usize, u8)> = Vec::new();
        for (plugin, one) in registrations.iter().enumerate() {
            left.extend(one.callbacks.iter().filter(|one| one.kind() == kind).map(|one| (plugin, one.priority)));
        }
        let mut order = Vec::new();
        while let Some(highest) = left.iter().map(|(_, priority)| *priority).max() {
            let first = left.iter().position(|(_, priority)| *priority == highest);
            order.extend(first.map(|at| left.remove(at).0));
        }
        order
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1_000))]

        /// Case 1 of the specification.
        #[test]
        fn random_registries_are_called_in_order(
            // Few priorities, so that most registries have ties. The number is a set of callbacks, a bit each.
            plugins in proptest::collection::vec((0_u8..128, proptest::array::uniform7(0_usize..5)), 0..24),
        ) {
            let one = |(at, (kinds, priorities)): (usize, &(u8, [usize; 7]))| {
                let every = [
                    Callback::InputMessages,
                    Callback::PlainText(TextUnit::Line.into()),
                    Callback::Tag(vec![TagPattern::Exact("a".into())]),
                    Callback::LlmOutput(OutputMode::Observe),
                    Callback::TtsrTriggered,
                    Callback::ToolCall,
                    Callback::ToolResult,
                ];
                let callbacks = every.into_iter().enumerate().filter(|(bit, _)| kinds >> bit & 1 == 1);
                let callbacks = callbacks.map(|(bit, one)| (one, [0, 10, 50, 90, 100][priorities[bit]]).into());
                let (plugin, version) = (format!("p{at}").parse().expect("a plugin id"), "1.0.0".into());
                Registration { plugin, version, callbacks: callbacks.collect(), tools: Vec::new(), required: false }
            };
            let registrations: Vec<Registration> = plugins.iter().enumerate().map(one).collect();
            let chains = Chains::new(&registrations);
            let first = |list: &[(usize, TextUnit)]| list.iter().map(|(plugin, _)| *plugin).collect::<Vec<_>>();
            for (kind, order) in [
                (CallbackKind::InputMessages, chains.input.clone()),
                (CallbackKind::PlainText, first(&chains.text)),
                (CallbackKind::Tag, chains.tag_handlers("a")),
                (CallbackKind::LlmOutput, chains.output.iter().map(|(plugin, _)| *plugin).collect()),
                (CallbackKind::TtsrTriggered, chains.ttsr.clone()),
                (CallbackKind::ToolCall, chains.calls.clone()),
                (CallbackKind::ToolResult, chains.results.clone()),
            ] {
                proptest::prop_assert_eq!(order, expected(&registrations, kind), "{}", kind.as_str());
            }
        }
    }
}
