//! Stage: runs the tool calls of an accepted answer, one after the other, and gives their results.
//!
//! A call that is not allowed to run has a result too: the reason, so that the model can do something else. Reminders
//! of rules that do not interrupt precede the tool's own content, which is not altered.

use std::sync::Arc;
use std::time::Instant;

use flow::{
    Ambiguous, Confirmation, EventKind, Permission, Preview, RunPosition, SessionId, ToolCall, ToolOutput, ToolResult,
};

use tracing::Instrument as _;

use crate::events::Hub;
use crate::ports::{Confirm, EventSink, Journal, PreparedCall, Question, Tools};
use crate::spans;

/// What running calls needs.
pub(crate) struct Runner<'a> {
    pub(crate) hub: &'a Arc<Hub>,
    pub(crate) tools: &'a dyn Tools,
    pub(crate) confirm: &'a dyn Confirm,
    pub(crate) journal: Option<&'a dyn Journal>,
    pub(crate) session: &'a SessionId,
    pub(crate) agent: &'a str,
    pub(crate) place: RunPosition,
}

/// The effect of stream rules on a call.
pub(crate) struct CallEffects {
    /// The call does not run; this is its result.
    pub(crate) refusal: Option<String>,
    /// This text precedes its result.
    pub(crate) reminder: Option<String>,
}

impl Runner<'_> {
    /// Runs one call. A call that never runs has a result, with the reason, and no `tool_call_start`.
    pub(crate) async fn run(&self, call: &ToolCall, effects: CallEffects) -> ToolResult {
        let mut stage = spans::tool(call);
        let (result, error) = self.answer(call, effects).instrument(stage.span()).await;
        stage.end(if error.is_some() { "error" } else { "ok" }, error);
        result
    }

    /// The result of a call, and of what kind its error is.
    async fn answer(&self, call: &ToolCall, effects: CallEffects) -> (ToolResult, Option<&'static str>) {
        let CallEffects { refusal, reminder } = effects;
        let mut times = Times::default();
        let (output, error) = match refusal {
            Some(reminder) => Refusal { kind: "blocked", reason: reminder }.into_output(),
            None => match self.decide_and_run(call, &mut times).await {
                Ok(output) => {
                    let error = output.is_error.then_some("tool_error");
                    (output, error)
                }
                Err(refusal) => refusal.into_output(),
            },
        };
        let ToolOutput { content, diff, is_error } = output;
        self.hub.emit(EventKind::ToolCallResult {
            call: call.id.clone(),
            tool: call.name.clone(),
            output: content.clone(),
            reminder: reminder.clone(),
            diff,
            is_error,
            duration_ms: times.ran_ms,
            waited_ms: times.waited_ms,
        });
        let content = reminder.into_iter().chain([content]).collect();
        (ToolResult { call: call.id.clone(), content, is_error }, error)
    }

    /// Runs the call if it is allowed to run; otherwise gives the reason for the model.
    async fn decide_and_run(&self, call: &ToolCall, times: &mut Times) -> Result<ToolOutput, Refusal> {
        // The value that is approved must be the value that runs, and JSON parsers differ in which of two values they
        // use.
        if let Err(ambiguous) = Preview::of_arguments(&call.arguments) {
            return Err(Refusal { kind: "invalid_arguments", reason: repeated(call, &ambiguous) });
        }
        let mut prepared = self.tools.prepare(call);
        match prepared.permission() {
            Permission::Allow => {}
            Permission::Deny { reason } => return Err(Refusal::denied(reason)),
            Permission::Ask { reason } => {
                let asked = Instant::now();
                let decision = self.ask(call, reason, &mut *prepared).await;
                times.waited_ms = Some(millis(asked));
                decision?;
            }
        }
        self.start(call).await?;
        let began = Instant::now();
        let output = self.execute(call, &mut *prepared).await;
        times.ran_ms = Some(millis(began));
        Ok(output)
    }

    /// Reports that the call runs, and waits until that is on disk: what has happened in the world must be in the transcript.
    async fn start(&self, call: &ToolCall) -> Result<(), Refusal> {
        self.hub.emit(EventKind::ToolCallStart {
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let Some(journal) = self.journal else { return Ok(()) };
        journal.durable().await.map_err(|error| Refusal { kind: "not_recorded", reason: format!("not run: {error}") })
    }

    async fn execute(&self, call: &ToolCall, prepared: &mut dyn PreparedCall) -> ToolOutput {
        let hub = Arc::clone(self.hub);
        let id = call.id.clone();
        let progress = move |message: &str| {
            hub.emit(EventKind::ToolCallProgress { call: id.clone(), message: message.to_owned(), percent: None });
        };
        prepared.run(&progress).await
    }

    /// Asks whether the call is allowed to run; the error is the reason of a denial.
    async fn ask(&self, call: &ToolCall, reason: String, prepared: &mut dyn PreparedCall) -> Result<(), Refusal> {
        let preview = prepared.preview().await;
        self.hub.emit(EventKind::ToolConfirmationRequested {
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            reason: reason.clone(),
            preview: preview.clone(),
        });
        let session = self.session.clone();
        let agent = self.agent.to_owned();
        let question = Question { session, agent, place: self.place, call: call.clone(), reason, preview };
        let decision = self.confirm.confirm(&question).await;
        self.hub.emit(EventKind::ToolConfirmationResolved { call: call.id.clone(), decision: decision.clone() });
        match decision {
            Confirmation::Approved => Ok(()),
            Confirmation::Denied { reason } => Err(Refusal::denied(reason)),
        }
    }
}

/// How long a call took.
#[derive(Debug, Default)]
struct Times {
    /// `None`: it did not run.
    ran_ms: Option<u64>,
    /// `None`: nobody was asked.
    waited_ms: Option<u64>,
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn repeated(call: &ToolCall, ambiguous: &Ambiguous) -> String {
    format!("the arguments of `{}` are not valid: {ambiguous}. Write each key once.", call.name)
}

/// A call that does not run.
struct Refusal {
    /// The kind of error, for the span of the call.
    kind: &'static str,
    /// For the model.
    reason: String,
}

impl Refusal {
    fn denied(reason: String) -> Self {
        Self { kind: "denied", reason }
    }

    fn into_output(self) -> (ToolOutput, Option<&'static str>) {
        (ToolOutput { content: self.reason, diff: None, is_error: true }, Some(self.kind))
    }
}
