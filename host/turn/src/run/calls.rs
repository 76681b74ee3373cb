//! The calls of an accepted answer: asked about, run, answered and put into the conversation; and the reminders that wait for them.
//!
//! No call runs before its answer is accepted. An answer that is stopped therefore leaves no results behind, and none of
//! its calls stays in the conversation; the reminder names the call that matched, and not the other calls.

use std::sync::Arc;

use flow::{Action, CallId, EventKind, QuestionId, RuleMatch, ToolCall};

use super::interrupt::Injection;
use super::repeats::Repeats;
use super::{Phase, Stop, Turn, checkpoint};
use crate::history::settled;
use crate::questions::{Asking, Checks};
use crate::tools::{Batch, CallEffects, Candidate, Course, Ran};
use flow::ports::EventSink;
use guard::attempt::CallNotes;
use guard::calls::{self, Checked};
use guard::found;

impl Turn<'_> {
    /// Asks about all calls that need it, and then runs the calls in the order that the tools suggest, each to its end. A call waits
    /// for its own answer, and for the calls before it. Where the user interrupts, the call that runs is stopped, and those after it do not
    /// run. The results stay in the order of the calls. `earlier`: questions of an earlier process.
    ///
    /// # Errors
    /// The transcript cannot be written: no further call runs.
    pub(super) async fn run_calls(
        &mut self,
        calls: &[Checked],
        earlier: Vec<(CallId, QuestionId)>,
    ) -> Result<(), Stop> {
        let tools = Arc::clone(&self.session.parts.tools);
        // Dropping it cancels the questions that are open.
        let mut batch = self.batch(earlier);
        let mut candidates: Vec<(Candidate<'_>, CallNotes)> = Vec::with_capacity(calls.len());
        for checked in self.run_order(calls) {
            checkpoint(self.cancel).await;
            let notes = self.call_notes(&batch.checks, checked);
            candidates.push((batch.look(&*tools, checked, self.effects(&notes)).await, notes));
        }
        checkpoint(self.cancel).await;
        let questions = self.session.handles.questions.clone();
        questions.expect_more();
        let candidates: Vec<_> =
            candidates.into_iter().map(|(candidate, notes)| (batch.ask(candidate), notes)).collect();
        if candidates.iter().any(|(candidate, _)| candidate.is_asked()) {
            self.keep_open_calls();
            // Who answers has seen a question that survives the process.
            self.recorded().await?;
        }
        // Front ends have the events about them.
        questions.expect_no_more();
        for (candidate, notes) in candidates {
            checkpoint(self.cancel).await;
            let call = candidate.call();
            self.keep_open_calls();
            batch.begin(&candidate);
            batch.repeats = std::mem::take(&mut self.repeats);
            if !notes.refusals.is_empty() {
                batch.repeats.block();
            }
            let ran = if self.halted.is_some() {
                batch.interrupted(call)
            } else {
                tokio::select! {
                    biased;
                    claim = self.session.handles.inputs.interrupting() => {
                        self.halted = Some(claim);
                        self.session.handles.questions.cancel_all();
                        batch.interrupted(call)
                    }
                    ran = batch.run(candidate) => ran,
                }
            };
            self.repeats = std::mem::take(&mut batch.repeats);
            let failure = self.note_result(notes, ran);
            self.recorded().await?;
            failure.map_or(Ok(()), Err)?;
        }
        self.settle_calls();
        Ok(())
    }

    /// Gives calls of the model to the extensions, in their order.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(super) async fn check_calls(&self, calls: &[ToolCall]) -> Result<Vec<Checked>, Stop> {
        let caller = Arc::clone(&self.session.caller);
        let mut checked = Vec::with_capacity(calls.len());
        for call in calls {
            checked.push(calls::check(&caller, call, false).await?);
        }
        Ok(checked)
    }

    fn batch(&self, earlier: Vec<(CallId, QuestionId)>) -> Batch {
        let session = &*self.session;
        let (tools, agent) = (Arc::clone(&session.parts.tools), session.rules.agent().to_owned());
        let rules = Arc::clone(session.rules.rules());
        let keeping = session.caller.keeping();
        let checks = Arc::new(Checks { tools: Arc::clone(&tools), rules, agent: agent.clone(), keeping });
        let questions = (session.handles.questions.clone(), session.parts.settings.questions);
        let (confirm, clock) = (Arc::clone(&session.parts.confirm), Arc::clone(&session.parts.clock));
        Batch {
            hub: Arc::clone(&session.handles.hub),
            caller: Arc::clone(&session.caller),
            checks: Arc::clone(&checks),
            tools,
            journal: session.journal.clone(),
            asking: Asking::new(questions, confirm, clock, checks, session.journal.clone()),
            session: session.parts.id.clone(),
            agent,
            place: self.place,
            earlier,
            ran: 0,
            waited: 0,
            course: Course::default(),
            repeats: Repeats::default(),
        }
    }

    /// What rules have found in a call: in the arguments as the model wrote them, and as they will run.
    fn call_notes(&mut self, checks: &Checks, checked: &Checked) -> CallNotes {
        let mut notes = self.attempt.noted.take_call(&checked.call.id);
        if !checked.by.is_empty() {
            let mut found = Vec::new();
            notes.absorb(checks.notes(&checked.call, &mut found));
            found::emit(&*self.session.handles.hub, &found);
            self.count_found(&found);
        }
        notes
    }

    fn effects(&self, notes: &CallNotes) -> CallEffects {
        let rules = &self.session.rules;
        CallEffects {
            refusal: (!notes.refusals.is_empty()).then(|| rules.reminder(&notes.refusals)),
            reminder: (!notes.reminders.is_empty()).then(|| rules.tool_reminder(&notes.reminders)),
        }
    }

    /// A call has its result: the reminders in it went to the model. Returns the failure of a `required` extension.
    fn note_result(&mut self, notes: CallNotes, Ran { result, reminded, found, failure }: Ran) -> Option<Stop> {
        self.count_found(&found);
        self.session.rules.release(&notes.unread());
        let violations = notes.violations();
        let edited = |found: &RuleMatch| !notes.reminders.iter().any(|known| known.rule == found.rule);
        let edited: Vec<RuleMatch> = reminded.into_iter().filter(edited).collect();
        for (found, action) in
            [(violations, Action::Block), (notes.reminders, Action::Remind), (edited, Action::Remind)]
        {
            if !found.is_empty() {
                self.mark_injected(Injection::of_call(found, action));
            }
        }
        if let Phase::Calling { results, .. } = &mut self.phase {
            results.push(result);
        }
        failure.map(Stop::from)
    }

    /// The calls in the order in which to run them. An order that omits or repeats a call is
    /// reported and not used.
    fn run_order<'c>(&self, calls: &'c [Checked]) -> Vec<&'c Checked> {
        if calls.len() < 2 {
            return calls.iter().collect();
        }
        let as_they_run: Vec<ToolCall> = calls.iter().map(|one| one.call.clone()).collect();
        let order = self.session.parts.tools.order(&as_they_run);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..calls.len()) {
            let message = format!(
                "the tools gave an order of {} calls that omits or repeats one, so they run in their own order: {order:?}",
                calls.len()
            );
            self.session.handles.hub.emit(EventKind::Notice { message });
            return calls.iter().collect();
        }
        order.into_iter().filter_map(|at| calls.get(at)).collect()
    }

    /// Puts the accepted answer and its results into the conversation.
    pub(super) fn settle_calls(&mut self) {
        if !matches!(self.phase, Phase::Calling { .. }) {
            return;
        }
        let Phase::Calling { answer, results, .. } = std::mem::take(&mut self.phase) else { return };
        settled(answer, results).into_iter().for_each(|message| self.session.remember(message));
    }

    /// Delivers reminders of rules that did not interrupt the text. Returns whether there were any.
    pub(super) async fn remind(&mut self) -> bool {
        let matches = self.attempt.noted.take_prose();
        if matches.is_empty() {
            return false;
        }
        checkpoint(self.cancel).await;
        let reminder = self.session.rules.tool_reminder(&matches);
        self.inject(reminder, Injection::of_call(matches, Action::Remind));
        true
    }
}
