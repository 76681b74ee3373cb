//! Stage: asks about the tool calls of an accepted answer, runs them, and gives their results.
//!
//! A call that is not allowed to run has a result too: the reason, so that the model can do something else. Reminders
//! of rules that do not interrupt precede the tool's own content, which is not altered.
//!
//! All questions are asked before the first call runs. By the time a call runs, the calls before it can have changed what it is
//! about: it is prepared again then, and where its permission or its preview is another one, a person is asked again. So what was
//! approved is what runs.

mod refusal;
mod result;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flow::{
    CallFailure, CallId, Confirmation, EventKind, Permission, Preview, QuestionId, RuleMatch, RunPosition, SessionId,
    ToolCall, ToolOutput, ToolResult,
};
use tracing::Instrument as _;

pub(crate) use self::refusal::edit_note;
use self::refusal::{Refusal, changed_note, nameless};
pub(crate) use self::result::CallResult;
use crate::events::Hub;
use crate::questions::{Asked, Asking, Checks, Edit};
use crate::run::repeats::Repeats;
use crate::spans;
use flow::ports::{EventSink, Journal, PreparedCall, ProgressLine, Question, Tools};
use guard::attempt::Effect;
use guard::calls::{Checked, check, repeated};
use guard::results::{self, Given};
use guard::{Caller, found};

/// The calls of one answer on their way to their results.
pub(crate) struct Batch {
    pub(crate) hub: Arc<Hub>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) asking: Asking,
    pub(crate) session: SessionId,
    pub(crate) agent: String,
    pub(crate) place: RunPosition,
    /// Questions of an earlier process, by call: each is asked again under its id.
    pub(crate) earlier: Vec<(CallId, QuestionId)>,
    /// Calls that have run: each can have changed what the others are about.
    pub(crate) ran: u32,
    /// Answers of persons that were waited for, which can take hours.
    pub(crate) waited: u32,
    /// What the call at hand has met.
    pub(crate) course: Course,
    /// What the model repeats; the turn's, while a call is at hand.
    pub(crate) repeats: Repeats,
}

/// The effect of stream rules on a call.
#[derive(Debug, Default)]
pub(crate) struct CallEffects {
    /// The call does not run; this is its result.
    pub(crate) refusal: Option<String>,
    /// This text precedes its result.
    pub(crate) reminder: Option<String>,
}

/// A call before it runs.
pub(crate) struct Candidate<'c> {
    call: &'c ToolCall,
    /// Precedes its result: that extensions have changed its arguments.
    note: Option<String>,
    /// Precedes its result.
    reminder: Option<String>,
    state: Waiting<'c>,
}

/// What a call waits for.
enum Waiting<'c> {
    /// For its turn.
    Turn(Looked<'c>),
    /// For the answer to its question.
    Answer(Looked<'c>, Asked),
    /// It does not run.
    Refused(Refusal),
}

/// A call that was prepared.
struct Looked<'c> {
    prepared: Box<dyn PreparedCall + 'c>,
    permission: Permission,
    always: Option<String>,
    /// What a question would show; empty where none is needed.
    preview: Preview,
    /// The same after extensions.
    shown: Preview,
    /// How many calls had run by then.
    ran: u32,
    /// How many answers of persons had been waited for by then.
    waited: u32,
}

/// The result of a call, and what is to be recorded of it.
pub(crate) struct Ran {
    pub(crate) result: ToolResult,
    /// Rules that remind of arguments that a person has edited.
    pub(crate) reminded: Vec<RuleMatch>,
    /// What rules have found in these arguments.
    pub(crate) found: Vec<Effect>,
    /// The failure of a `required` extension, which ends the turn.
    pub(crate) failure: Option<CallFailure>,
}

/// What a call took and met so far. It outlives the future of the call, which an interrupt drops.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Why it does not run, where that was known before its turn.
    refusal: Option<String>,
    /// That extensions have changed its arguments.
    note: Option<String>,
    /// What precedes its result.
    reminder: Option<String>,
    /// It has begun to run.
    is_running: bool,
    /// What extensions have made of its result.
    given: Given,
    /// How long it ran; `None`: it did not run to its end.
    ran: Option<Duration>,
    /// `None`: nobody was asked.
    waited: Option<Duration>,
    /// A person has edited its arguments.
    edit: Option<Edit>,
    /// What the model reads where it repeats itself.
    repeated: Option<String>,
}

impl Course {
    /// What the model reads before the result, and what rules have found in arguments that a person has edited. Edited arguments concern
    /// the model only where the call has begun to run with them.
    fn notes(&mut self) -> (Vec<String>, Option<Edit>) {
        let edit = self.edit.take().filter(|_| self.is_running);
        let note = edit.as_ref().map(|edit| edit_note(&edit.call.arguments));
        let reminder = edit.as_ref().and_then(|edit| edit.reminder.clone());
        let changed = self.note.take().filter(|_| self.is_running && edit.is_none());
        let notes = [changed, note, self.reminder.take(), reminder, self.repeated.take()];
        (notes.into_iter().flatten().collect(), edit)
    }
}

impl Looked<'_> {
    /// Whether a person would be shown the same.
    fn shows_same(&self, other: &Looked<'_>) -> bool {
        let shown = |one: &Looked<'_>| (one.permission.clone(), one.always.clone(), one.preview.clone());
        shown(self) == shown(other)
    }
}

impl<'c> Candidate<'c> {
    /// The call as the model wrote it.
    pub(crate) fn call(&self) -> &'c ToolCall {
        self.call
    }

    /// Whether a person was asked about it.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(self.state, Waiting::Answer(..))
    }
}

impl Batch {
    /// Prepares a call. What rules or extensions refuse is not prepared, and nobody is asked about it.
    pub(crate) async fn look<'c>(
        &self,
        tools: &'c dyn Tools,
        checked: &'c Checked,
        CallEffects { refusal, reminder }: CallEffects,
    ) -> Candidate<'c> {
        let call = &checked.call;
        // The value that is approved must be the value that runs, and JSON parsers differ in which of two values they
        // use.
        let state = match (refusal, &checked.refusal, Preview::of_arguments(&call.arguments)) {
            (Some(reminder), ..) => Waiting::Refused(Refusal::blocked(reminder)),
            (None, Some(refusal), _) => Waiting::Refused(refusal.clone().into()),
            _ if call.name.trim().is_empty() => Waiting::Refused(Refusal::invalid(nameless(&tools.specs()))),
            (None, None, Err(ambiguous)) => Waiting::Refused(Refusal::invalid(repeated(call, &ambiguous))),
            (None, None, Ok(_)) => match self.looked(tools, call).await {
                Ok(looked) => Waiting::Turn(looked),
                Err(refusal) => Waiting::Refused(refusal),
            },
        };
        // An extension that sees results before the model does would not see these.
        let is_told = !self.caller.keeping().calls && self.caller.result_marker().is_none();
        let ran = is_told.then_some(&*call.arguments);
        let note = (!checked.by.is_empty()).then(|| changed_note(&checked.by, ran));
        Candidate { call, note, reminder, state }
    }

    /// A call whose arguments are no JSON object is refused before its tool sees it: rules have not seen all of it, and a tool could
    /// make something of its beginning. Else the refusal is the failure of a `required` extension.
    async fn looked<'c>(&self, tools: &'c dyn Tools, call: &'c ToolCall) -> Result<Looked<'c>, Refusal> {
        if let Some(why) = refusal::unread(call) {
            return Err(Refusal::invalid(why));
        }
        let mut prepared = tools.prepare(call);
        let (mut permission, always) = (prepared.permission(), prepared.always());
        let needs_person =
            matches!(permission, Permission::Ask { .. }) && !self.asking.questions().covers(always.as_ref());
        let preview = if needs_person { prepared.preview().await } else { Preview::default() };
        if needs_person && prepared.changes_nothing() {
            permission = Permission::Allow;
        }
        let shown = results::preview(&self.caller, call, preview.clone()).await.map_err(Refusal::failed)?;
        Ok(Looked { prepared, permission, always, preview, shown, ran: self.ran, waited: self.waited })
    }

    /// Asks about a call, where its permission says so.
    pub(crate) fn ask<'c>(&mut self, candidate: Candidate<'c>) -> Candidate<'c> {
        let state = match candidate.state {
            Waiting::Turn(looked) if self.reason(&looked).is_some() => {
                let asked = self.question(candidate.call, &looked);
                Waiting::Answer(looked, asked)
            }
            state => state,
        };
        Candidate { state, ..candidate }
    }

    /// This call is the one at hand from now on.
    pub(crate) fn begin(&mut self, candidate: &Candidate<'_>) {
        let refusal = if let Waiting::Refused(refusal) = &candidate.state { Some(refusal.reason()) } else { None };
        let (note, reminder) = (candidate.note.clone(), candidate.reminder.clone());
        self.course = Course { refusal, note, reminder, ..Course::default() };
    }

    /// Why a person has to be asked; `None`: the call is allowed, or denied.
    fn reason<'l>(&self, looked: &'l Looked<'_>) -> Option<&'l String> {
        match &looked.permission {
            Permission::Ask { reason } if !self.asking.questions().covers(looked.always.as_ref()) => Some(reason),
            Permission::Ask { .. } | Permission::Allow | Permission::Deny { .. } => None,
        }
    }

    fn question(&mut self, call: &ToolCall, looked: &Looked<'_>) -> Asked {
        let earlier = self.earlier.iter().position(|(known, _)| *known == call.id);
        let id = earlier.map(|index| self.earlier.remove(index).1);
        let mut question = Question::new(self.session.clone(), call.clone());
        question.agent.clone_from(&self.agent);
        question.place = self.place;
        question.reason = self.reason(looked).cloned().unwrap_or_default();
        question.preview = looked.shown.clone();
        question.always.clone_from(&looked.always);
        self.asking.ask(id, question)
    }

    /// The result of the call at hand, which the user has interrupted, or which is not run for that. Its questions are closed already.
    pub(crate) fn interrupted(&mut self, call: &ToolCall) -> Ran {
        let refusal = self.course.refusal.take();
        let output = refusal.unwrap_or_else(|| refusal::interrupted(self.course.is_running).to_owned());
        self.ended(call, CallResult::none(output))
    }

    /// Runs the call at hand when it is allowed to. A call that never runs has a result, with the reason, and no `tool_call_start`.
    pub(crate) async fn run(&mut self, candidate: Candidate<'_>) -> Ran {
        let (call, mut stage) = (candidate.call, spans::tool(candidate.call));
        let ran = self.decide_and_run(candidate).instrument(stage.span()).await;
        let (output, error) = match ran {
            Ok(output) => {
                let error = output.is_error.then_some("tool_error");
                (output, error)
            }
            Err(mut refusal) => {
                self.course.given.failure = refusal.failure.take();
                refusal.into_output()
            }
        };
        self.course.repeated = self.repeats.result(call, &output);
        let ran = self.ended(call, CallResult::of(output));
        stage.end(if error.is_some() { "error" } else { "ok" }, error);
        ran
    }

    /// Reports the result of the call at hand.
    fn ended(&mut self, call: &ToolCall, result: CallResult) -> Ran {
        let (notes, edit) = self.course.notes();
        let Course { ran, waited, .. } = self.course;
        let Given { original, annotations, failure, .. } = std::mem::take(&mut self.course.given);
        let result = CallResult { ran, waited, original, annotations, ..result }.after(notes).emit(call, &self.hub);
        let (reminded, found) = edit.map(|edit| (edit.reminders, edit.found)).unwrap_or_default();
        Ran { result, reminded, found, failure }
    }

    /// Runs the call if it is allowed to run; otherwise gives the reason for the model.
    async fn decide_and_run(&mut self, candidate: Candidate<'_>) -> Result<ToolOutput, Refusal> {
        let (call, tools) = (candidate.call, Arc::clone(&self.tools));
        let looked = match candidate.state {
            Waiting::Refused(refusal) => return Err(refusal),
            Waiting::Answer(looked, asked) => return self.answered(call, looked, asked).await,
            // Another call has run since, or a person has been waited for: where a path leads can have changed, and with it the permission.
            Waiting::Turn(looked) if looked.ran < self.ran || looked.waited < self.waited => {
                self.looked(&*tools, call).await?
            }
            Waiting::Turn(looked) => looked,
        };
        if let Permission::Deny { reason } = looked.permission {
            return Err(Refusal::denied(reason));
        }
        if self.reason(&looked).is_none() {
            return self.execute(call, looked.prepared).await;
        }
        let asked = self.question(call, &looked);
        self.answered(call, looked, asked).await
    }

    /// Waits for the answer to a question, and does what it says.
    async fn answered(&mut self, call: &ToolCall, looked: Looked<'_>, asked: Asked) -> Result<ToolOutput, Refusal> {
        let decided = asked.decided().await;
        self.waited += 1;
        *self.course.waited.get_or_insert_default() += decided.waited;
        if let Some(edit) = decided.edit {
            return Box::pin(self.edited(edit)).await;
        }
        if !decided.confirmation.is_approval() {
            return Err(Refusal::of(decided.confirmation));
        }
        if looked.ran == self.ran {
            return self.execute(call, looked.prepared).await;
        }
        // Calls have run since it was shown: is what was approved still true?
        let tools = Arc::clone(&self.tools);
        let now = self.looked(&*tools, call).await?;
        if let Permission::Deny { reason } = now.permission {
            return Err(Refusal::denied(reason));
        }
        if self.reason(&now).is_some() && !now.shows_same(&looked) {
            let asked = self.question(call, &now);
            return Box::pin(self.answered(call, now, asked)).await;
        }
        self.execute(call, now.prepared).await
    }

    /// Runs a call with the arguments that a person has written. Extensions get them as they got those of the model; where they replace
    /// them, the person is asked again, whatever the permission is.
    async fn edited(&mut self, mut edit: Edit) -> Result<ToolOutput, Refusal> {
        let tools = Arc::clone(&self.tools);
        let (permission, always) = (edit.permission.clone(), edit.always.clone());
        found::emit(&*self.hub, &edit.found);
        let checked = check(&self.caller, &edit.call, true).await.map_err(Refusal::failed)?;
        if let Some(refusal) = checked.refusal {
            return Err(refusal.into());
        }
        if !checked.by.is_empty() {
            let mut found = Vec::new();
            let notes = self.checks.notes(&checked.call, &mut found);
            found::emit(&*self.hub, &found);
            edit.found.append(&mut found);
            if !notes.refusals.is_empty() {
                return Err(Refusal::blocked(self.checks.reminder(&notes.refusals)));
            }
            edit.remind(&self.checks, notes.reminders);
            edit.call = checked.call;
        }
        let (call, by) = (edit.call.clone(), checked.by);
        self.course.edit = Some(edit);
        let looked = self.looked(&*tools, &call).await?;
        if let Permission::Deny { reason } = looked.permission {
            return Err(Refusal::denied(reason));
        }
        // The person approved the arguments as they are, and where a path of them led then.
        let is_approved =
            (&looked.permission, &looked.always) == (&permission, &always) || self.reason(&looked).is_none();
        if by.is_empty() && is_approved {
            return self.execute(&call, looked.prepared).await;
        }
        let looked = if by.is_empty() { looked } else { self.about_change(&call, looked, &by).await? };
        let asked = self.question(&call, &looked);
        Box::pin(self.answered(&call, looked, asked)).await
    }

    /// A question about arguments that extensions have put in the place of those that a person wrote.
    async fn about_change<'c>(
        &self,
        call: &'c ToolCall,
        mut looked: Looked<'c>,
        by: &[flow::PluginId],
    ) -> Result<Looked<'c>, Refusal> {
        looked.preview = looked.prepared.preview().await;
        looked.shown = results::preview(&self.caller, call, looked.preview.clone()).await.map_err(Refusal::failed)?;
        looked.always = None;
        let reason = changed_note(by, None).replace("before it ran", "that you edited");
        looked.permission = Permission::Ask { reason };
        Ok(looked)
    }

    /// Reports that the call runs, waits until that is on disk, and runs it: what has happened in the world must be in the transcript.
    async fn execute(
        &mut self,
        call: &ToolCall,
        mut prepared: Box<dyn PreparedCall + '_>,
    ) -> Result<ToolOutput, Refusal> {
        self.course.is_running = true;
        self.hub.emit(EventKind::ToolCallStart {
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        if let Some(journal) = &self.journal {
            let recorded = journal.durable().await;
            self.course.is_running = recorded.is_ok();
            recorded.map_err(|error| Refusal::not_recorded(format!("not run: {error}")))?;
        }
        self.ran += 1;
        let began = Instant::now();
        let progress = Reported::new(Arc::clone(&self.hub), call.id.clone(), &self.caller);
        let output = prepared.run(&|line| progress.report(line)).await;
        self.course.ran = Some(began.elapsed());
        if let Some(entries) = prepared.plan().filter(|_| !output.is_error) {
            self.hub.emit(EventKind::PlanUpdated { entries });
        }
        // Whoever stops the call now gets nothing of its result.
        let mut given = results::done(&self.caller, call, output).await;
        let output = std::mem::take(&mut given.output);
        self.course.given = given;
        Ok(output)
    }
}

/// The progress of a call, as it is reported.
struct Reported {
    hub: Arc<Hub>,
    call: CallId,
    /// In the place of lines, where an extension has to see the result before anybody sees anything of it.
    marker: Option<String>,
    /// It was reported.
    is_marked: AtomicBool,
}

impl Reported {
    fn new(hub: Arc<Hub>, call: CallId, caller: &Caller) -> Self {
        Self { hub, call, marker: caller.result_marker(), is_marked: AtomicBool::new(false) }
    }

    /// Without lines only numbers are reported, and once that something is left out.
    fn report(&self, line: ProgressLine<'_>) {
        let message = match &self.marker {
            None => line.message.to_owned(),
            Some(_) if line.percent.is_none() && self.is_marked.swap(true, Ordering::Relaxed) => return,
            Some(marker) => marker.clone(),
        };
        self.hub.emit(EventKind::ToolCallProgress { call: self.call.clone(), message, percent: line.percent });
    }
}

/// What the model reads of a call that a person has not approved.
pub(crate) fn refused(decision: Confirmation) -> String {
    Refusal::of(decision).into_output().0.content
}
