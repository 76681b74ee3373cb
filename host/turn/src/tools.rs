//! Stage: asks about the tool calls of an accepted answer, runs them, and gives their results.
//!
//! A call that is not allowed to run has a result too: the reason, so that the model can do something else. Reminders
//! of rules that do not interrupt precede the tool's own content, which is not altered.
//!
//! All questions are asked before the first call runs. By the time a call runs, the calls before it can have changed what it is
//! about: it is prepared again then, and where its permission or its preview is another one, a person is asked again. So what was
//! approved is what runs.

mod refusal;

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::{
    CallId, Confirmation, EventKind, Permission, Preview, QuestionId, RuleMatch, RunPosition, SessionId, ToolCall,
    ToolOutput, ToolResult,
};
use tracing::Instrument as _;

use self::refusal::{Refusal, edit_note, repeated};
use crate::events::Hub;
use crate::ports::{EventSink, Journal, PreparedCall, Question, Tools};
use crate::questions::{Asked, Asking, Edit};
use crate::spans;

/// The calls of one answer on their way to their results.
pub(crate) struct Batch {
    pub(crate) hub: Arc<Hub>,
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
    /// The call at hand has begun to run.
    pub(crate) is_running: bool,
}

/// The effect of stream rules on a call.
#[derive(Clone)]
pub(crate) struct CallEffects {
    /// The call does not run; this is its result.
    pub(crate) refusal: Option<String>,
    /// This text precedes its result.
    pub(crate) reminder: Option<String>,
}

/// A call before it runs.
pub(crate) struct Candidate<'c> {
    call: &'c ToolCall,
    state: Waiting<'c>,
}

/// What a call waits for.
enum Waiting<'c> {
    /// For its turn. What rules refuse is not prepared.
    Turn(Option<Looked<'c>>),
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
    /// What a question shows; empty where none is needed.
    preview: Preview,
    /// How many calls had run by then.
    ran: u32,
}

/// The result of a call, and what is to be recorded of it.
pub(crate) struct Ran {
    pub(crate) result: ToolResult,
    /// Rules that remind of arguments that a person has edited.
    pub(crate) reminded: Vec<RuleMatch>,
}

/// What a call took and met.
#[derive(Debug, Default)]
struct Course {
    /// `None`: it did not run.
    ran: Option<Duration>,
    /// `None`: nobody was asked.
    waited: Option<Duration>,
    /// A person has edited its arguments.
    edit: Option<Edit>,
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
}

impl Batch {
    /// Prepares a call. `refused`: rules forbid it, so nobody is asked.
    pub(crate) async fn look<'c>(&self, tools: &'c dyn Tools, call: &'c ToolCall, refused: bool) -> Candidate<'c> {
        // The value that is approved must be the value that runs, and JSON parsers differ in which of two values they
        // use.
        let state = match Preview::of_arguments(&call.arguments) {
            _ if refused => Waiting::Turn(None),
            Err(ambiguous) => Waiting::Refused(Refusal::invalid(repeated(call, &ambiguous))),
            Ok(_) => Waiting::Turn(Some(self.looked(tools, call).await)),
        };
        Candidate { call, state }
    }

    async fn looked<'c>(&self, tools: &'c dyn Tools, call: &'c ToolCall) -> Looked<'c> {
        let mut prepared = tools.prepare(call);
        let (permission, always) = (prepared.permission(), prepared.always());
        let needs_person =
            matches!(permission, Permission::Ask { .. }) && !self.asking.questions().covers(always.as_ref());
        let preview = if needs_person { prepared.preview().await } else { Preview::default() };
        Looked { prepared, permission, always, preview, ran: self.ran }
    }

    /// Asks about a call, where its permission says so. Returns whether it does.
    pub(crate) fn ask(&mut self, candidate: &mut Candidate<'_>) -> bool {
        let Waiting::Turn(looked @ Some(_)) = &mut candidate.state else { return false };
        let Some(looked) = looked.take_if(|looked| self.reason(looked).is_some()) else { return false };
        let asked = self.question(candidate.call, &looked);
        candidate.state = Waiting::Answer(looked, asked);
        true
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
        let question = Question {
            agent: self.agent.clone(),
            place: self.place,
            reason: self.reason(looked).cloned().unwrap_or_default(),
            preview: looked.preview.clone(),
            always: looked.always.clone(),
            ..Question::new(self.session.clone(), call.clone())
        };
        self.asking.ask(id, question)
    }

    /// The result of a call that the user has interrupted, or of one that is not run for that. Its questions are closed already.
    pub(crate) fn interrupted(&self, call: &ToolCall, effects: CallEffects) -> Ran {
        let CallEffects { refusal, reminder } = effects;
        let output = refusal.unwrap_or_else(|| refusal::interrupted(self.is_running).to_owned());
        self.hub.emit(EventKind::ToolCallResult {
            call: call.id.clone(),
            tool: call.name.clone(),
            output: output.clone(),
            reminder: reminder.clone(),
            diff: None,
            is_error: true,
            duration_ms: None,
            waited_ms: None,
        });
        let content = reminder.into_iter().chain([output]).collect();
        Ran { result: ToolResult { call: call.id.clone(), content, is_error: true }, reminded: Vec::new() }
    }

    /// Runs a call when it is allowed to. A call that never runs has a result, with the reason, and no `tool_call_start`.
    pub(crate) async fn run(&mut self, candidate: Candidate<'_>, effects: CallEffects) -> Ran {
        let mut stage = spans::tool(candidate.call);
        let (ran, error) = self.answer(candidate, effects).instrument(stage.span()).await;
        stage.end(if error.is_some() { "error" } else { "ok" }, error);
        ran
    }

    /// The result of a call, and of what kind its error is.
    async fn answer(&mut self, candidate: Candidate<'_>, effects: CallEffects) -> (Ran, Option<&'static str>) {
        let CallEffects { refusal, reminder } = effects;
        let (call, mut course) = (candidate.call, Course::default());
        let (output, error) = match refusal {
            Some(reminder) => Refusal::blocked(reminder).into_output(),
            None => match self.decide_and_run(candidate, &mut course).await {
                Ok(output) => {
                    let error = output.is_error.then_some("tool_error");
                    (output, error)
                }
                Err(refusal) => refusal.into_output(),
            },
        };
        let Course { ran, waited, edit } = course;
        let edit = edit.filter(|_| ran.is_some());
        let note = edit.as_ref().map(|edit| edit_note(&edit.call.arguments));
        let parts = [note, reminder, edit.as_ref().and_then(|edit| edit.reminder.clone())];
        let before = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let before = (!before.is_empty()).then_some(before);
        let ToolOutput { content, diff, is_error } = output;
        self.hub.emit(EventKind::ToolCallResult {
            call: call.id.clone(),
            tool: call.name.clone(),
            output: content.clone(),
            reminder: before.clone(),
            diff,
            is_error,
            duration_ms: ran.map(millis),
            waited_ms: waited.map(millis),
        });
        let content = before.into_iter().chain([content]).collect();
        let reminded = edit.map(|edit| edit.reminders).unwrap_or_default();
        (Ran { result: ToolResult { call: call.id.clone(), content, is_error }, reminded }, error)
    }

    /// Runs the call if it is allowed to run; otherwise gives the reason for the model.
    async fn decide_and_run(&mut self, candidate: Candidate<'_>, course: &mut Course) -> Result<ToolOutput, Refusal> {
        let (call, tools) = (candidate.call, Arc::clone(&self.tools));
        let looked = match candidate.state {
            Waiting::Refused(refusal) => return Err(refusal),
            Waiting::Answer(looked, asked) => return self.answered(call, looked, asked, course).await,
            Waiting::Turn(None) => self.looked(&*tools, call).await,
            // Another call has run since: it can have changed where a path leads, and with it the permission.
            Waiting::Turn(Some(looked)) if looked.ran < self.ran => self.looked(&*tools, call).await,
            Waiting::Turn(Some(looked)) => looked,
        };
        if let Permission::Deny { reason } = looked.permission {
            return Err(Refusal::denied(reason));
        }
        if self.reason(&looked).is_none() {
            return self.execute(call, looked.prepared, course).await;
        }
        let asked = self.question(call, &looked);
        self.answered(call, looked, asked, course).await
    }

    /// Waits for the answer to a question, and does what it says.
    async fn answered(
        &mut self,
        call: &ToolCall,
        looked: Looked<'_>,
        asked: Asked,
        course: &mut Course,
    ) -> Result<ToolOutput, Refusal> {
        let decided = asked.decided().await;
        *course.waited.get_or_insert_default() += decided.waited;
        if let Some(edit) = decided.edit {
            return Box::pin(self.edited(edit, course)).await;
        }
        if !decided.confirmation.is_approval() {
            return Err(Refusal::of(decided.confirmation));
        }
        if looked.ran == self.ran {
            return self.execute(call, looked.prepared, course).await;
        }
        // Calls have run since it was shown: is what was approved still true?
        let tools = Arc::clone(&self.tools);
        let now = self.looked(&*tools, call).await;
        if let Permission::Deny { reason } = now.permission {
            return Err(Refusal::denied(reason));
        }
        if self.reason(&now).is_some() && !now.shows_same(&looked) {
            let asked = self.question(call, &now);
            return Box::pin(self.answered(call, now, asked, course)).await;
        }
        self.execute(call, now.prepared, course).await
    }

    /// Runs a call with the arguments that a person has written.
    async fn edited(&mut self, edit: Edit, course: &mut Course) -> Result<ToolOutput, Refusal> {
        let (call, tools) = (edit.call.clone(), Arc::clone(&self.tools));
        let (permission, always) = (edit.permission.clone(), edit.always.clone());
        course.edit = Some(edit);
        let looked = self.looked(&*tools, &call).await;
        if let Permission::Deny { reason } = looked.permission {
            return Err(Refusal::denied(reason));
        }
        // The person approved the arguments as they are, and where a path of them led then.
        if (&looked.permission, &looked.always) == (&permission, &always) || self.reason(&looked).is_none() {
            return self.execute(&call, looked.prepared, course).await;
        }
        let asked = self.question(&call, &looked);
        Box::pin(self.answered(&call, looked, asked, course)).await
    }

    /// Reports that the call runs, waits until that is on disk, and runs it: what has happened in the world must be in the transcript.
    async fn execute(
        &mut self,
        call: &ToolCall,
        mut prepared: Box<dyn PreparedCall + '_>,
        course: &mut Course,
    ) -> Result<ToolOutput, Refusal> {
        self.is_running = true;
        self.hub.emit(EventKind::ToolCallStart {
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        if let Some(journal) = &self.journal {
            journal.durable().await.map_err(|error| Refusal::not_recorded(format!("not run: {error}")))?;
        }
        self.ran += 1;
        let (began, hub, id) = (Instant::now(), Arc::clone(&self.hub), call.id.clone());
        let progress = move |message: &str| {
            hub.emit(EventKind::ToolCallProgress { call: id.clone(), message: message.to_owned(), percent: None });
        };
        let output = prepared.run(&progress).await;
        course.ran = Some(began.elapsed());
        Ok(output)
    }
}

/// What the model reads of a call that a person has not approved.
pub(crate) fn refused(decision: Confirmation) -> String {
    Refusal::of(decision).into_output().0.content
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
