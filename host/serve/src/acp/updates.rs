//! What the events of a session are for its client. Hidden messages have no event that is sent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tidegate::{
    Action, AnswerBlock, CallId, Event, EventKind, FiredRule, FiredRules, Partial, Retained, RunPosition, StreamKind,
    TurnStatus,
};

use super::client::{self, Abilities};
use super::names::{self, meta};
use super::notices::Notices;
use super::sdk::v1::{
    self, CompactionStatus, ContentBlock, ContentChunk, NoticeSeverity, SessionUpdate, TextContent, ToolCallContent,
    ToolCallStatus, ToolCallUpdateFields,
};
use super::shown::{Retraction, Shown};
use super::tool::{self, Described};

/// Makes updates of events, one after the other.
#[derive(Debug)]
pub(super) struct Updates {
    workspace: PathBuf,
    can: Arc<Abilities>,
    /// The tokens that the model's context has.
    context: Option<u64>,
    /// Calls of the turn without a result.
    open: BTreeMap<String, Call>,
    /// The last rule that fired in the attempt.
    rule: Option<String>,
    /// The messages of the answer of the step.
    shown: Shown,
    compactions: u32,
    notices: Notices,
    fired: FiredRules,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    about: Described,
    /// What a question showed of the change, until there is a result.
    preview: Vec<ToolCallContent>,
    /// The terminal that it runs in.
    terminal: Option<ToolCallContent>,
}

/// A chunk of a message.
pub(super) fn chunk(text: &str, id: v1::MessageId) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text))).message_id(id)
}

impl Updates {
    pub(super) fn new(workspace: PathBuf, can: Arc<Abilities>, context: Option<u64>) -> Self {
        Self {
            workspace,
            can,
            context,
            open: BTreeMap::new(),
            rule: None,
            shown: Shown::default(),
            compactions: 0,
            notices: Notices::default(),
            fired: FiredRules::default(),
        }
    }

    /// The history is sent. Returns the attempt of the answer that is not complete, which has the id of its message.
    pub(super) fn loaded(&mut self) -> Option<RunPosition> {
        self.shown.loaded()
    }

    /// The updates of an event, in order.
    pub(super) fn take(&mut self, event: &Event) -> Vec<SessionUpdate> {
        if let EventKind::RuleFired { found, action, again, .. } = &event.kind {
            // Only a rule that stops the answer is the reason why its text is retracted.
            if *action == Action::Interrupt && !again {
                self.rule = Some(found.rule.clone());
            }
            let fired = self.fired.take(found, *action, *again);
            return fired.iter().map(|fired| self.rule_notice(fired)).collect();
        }
        let fired = self.fired.rest().map(|fired| self.rule_notice(&fired));
        fired.into_iter().chain(self.of(event)).collect()
    }

    fn of(&mut self, event: &Event) -> Vec<SessionUpdate> {
        let place = event.place;
        match &event.kind {
            EventKind::StepStart { .. } => {
                (self.rule, self.shown) = (None, Shown::default());
                Vec::new()
            }
            EventKind::CognitionOutDelta { text, .. } => {
                self.shown.written(place);
                vec![SessionUpdate::AgentMessageChunk(chunk(text, names::message(place)))]
            }
            EventKind::CognitionReasoningDelta { text } => {
                self.shown.written(place);
                vec![SessionUpdate::AgentThoughtChunk(chunk(text, names::message(place)))]
            }
            EventKind::CognitionOut { partial: Some(partial), retained, .. } => self.broken(partial, *retained),
            EventKind::CognitionOut { partial: None, blocks, .. } => self.accepted(place, blocks),
            EventKind::ContextCompactionStart { .. } | EventKind::ContextCompactionEnd { .. } => self.compaction(event),
            EventKind::StepFinish { context_tokens: Some(used), charged, .. } => {
                self.usage(*used, charged.spend.dollars())
            }
            EventKind::TurnFinish { .. } => self.turn_over(),
            _ => self.call_event(event).unwrap_or_else(|| self.notices(&event.kind)),
        }
    }

    /// An answer is accepted: its calls are going to run.
    fn accepted(&mut self, place: RunPosition, blocks: &[AnswerBlock]) -> Vec<SessionUpdate> {
        self.shown = Shown::default();
        let calls = blocks.iter().filter_map(|block| match &block.kind {
            StreamKind::Tool { call, name } if block.complete => {
                self.announce(place, call, name, block.arguments.as_deref().unwrap_or("{}"))
            }
            _ => None,
        });
        calls.collect()
    }

    /// How full the context is.
    fn usage(&self, used: u64, cost: f64) -> Vec<SessionUpdate> {
        let usage = self.context.map(|size| {
            let cost = (cost > 0.0).then(|| v1::Cost::new(cost, "USD"));
            SessionUpdate::UsageUpdate(v1::UsageUpdate::new(used, size).cost(cost))
        });
        usage.into_iter().collect()
    }

    fn notices(&mut self, kind: &EventKind) -> Vec<SessionUpdate> {
        let notices = self.notices.take(kind).into_iter();
        notices.map(|one| client::notice(self.can.notices, one.severity, &one.title, one.about.as_deref())).collect()
    }

    /// An attempt broke off: what was shown and is not continued does not count any more.
    fn broken(&mut self, partial: &Partial, retained: Retained) -> Vec<SessionUpdate> {
        let retracted = self.shown.broken(partial, retained);
        let rule = self.rule.take();
        let update = |retraction: Retraction| {
            let fields = json!({
                "messageId": names::message(retraction.attempt).0,
                "keptBytes": retraction.kept,
                "rule": rule,
                "reason": partial.error,
            });
            SessionUpdate::SessionInfoUpdate(v1::SessionInfoUpdate::new().meta(meta(names::RETRACTED, fields)))
        };
        retracted.into_iter().map(update).collect()
    }

    /// What rules do about a match.
    fn rule_notice(&self, fired: &FiredRule) -> SessionUpdate {
        let FiredRule { found, action, again, others, .. } = fired;
        let done = match action {
            _ if *again => "matched again and is only reported: its repeat mode does not let it act now",
            Action::Pass => "matched; nothing is done about it",
            Action::Remind => "matched; the model is reminded of it",
            Action::Interrupt => "stopped the model, which is reminded of it and tries again",
            Action::Block => "kept a tool call from running",
            Action::Stop => "ends the turn",
        };
        let same = match others.len() {
            0 => String::new(),
            1 => " (the same for 1 more rule)".to_owned(),
            more => format!(" (the same for {more} more rules)"),
        };
        let title = format!("The rule `{}` {done}{same}", found.rule);
        let about = Some(found.evidence.text.as_str()).filter(|_| found.evidence.unread);
        let notice = client::notice(self.can.notices, NoticeSeverity::Info, &title, about);
        let mut fields = json!({"rule": found.rule, "action": action.as_str(), "stream": found.stream.as_str()});
        if !others.is_empty() {
            fields["others"] = json!(others);
        }
        with_meta(notice, names::RULE, fields)
    }

    /// The first update about a call; `None`: it is known.
    fn announce(&mut self, place: RunPosition, call: &CallId, tool: &str, arguments: &str) -> Option<SessionUpdate> {
        let id = names::call(place, call);
        if self.open.contains_key(&*id.0) {
            return None;
        }
        let about = tool::describe(&self.workspace, tool, arguments);
        let update = v1::ToolCall::new(id.clone(), about.title.clone())
            .name(tool.to_owned())
            .kind(about.kind)
            .status(ToolCallStatus::Pending)
            .locations(about.locations.clone())
            .raw_input(about.input.clone());
        self.open.insert(id.0.to_string(), Call { id: call.clone(), about, preview: Vec::new(), terminal: None });
        Some(SessionUpdate::ToolCall(update))
    }

    /// A call runs in a terminal of the client, which shows it there.
    pub(super) fn terminal(&mut self, call: &CallId, terminal: v1::TerminalId) -> Option<SessionUpdate> {
        // The call runs, so that it is of the last step.
        let (id, known) = self.open.iter_mut().rfind(|(_, known)| known.id == *call)?;
        let content = ToolCallContent::Terminal(v1::Terminal::new(terminal));
        known.terminal = Some(content.clone());
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).content(vec![content]);
        Some(SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(v1::ToolCallId::new(id.as_str()), fields)))
    }

    fn call_event(&mut self, event: &Event) -> Option<Vec<SessionUpdate>> {
        let place = event.place;
        let mut updates = Vec::new();
        let (call, fields) = match &event.kind {
            EventKind::ToolConfirmationRequested { call, tool, arguments, preview, .. } => {
                updates.extend(self.announce(place, call, tool, arguments));
                let known = self.open.get_mut(&*names::call(place, call).0)?;
                known.preview = known.about.proposed(preview.diff.as_deref());
                (call, ToolCallUpdateFields::new().content(known.preview.clone()))
            }
            EventKind::ToolCallStart { call, tool, arguments } => {
                updates.extend(self.announce(place, call, tool, arguments));
                let known = self.open.get_mut(&*names::call(place, call).0)?;
                let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                let about = tool::describe(&self.workspace, tool, arguments);
                if about.input != known.about.input {
                    // The user has edited them.
                    fields = fields.title(about.title.clone()).locations(about.locations.clone());
                    fields = fields.raw_input(about.input.clone());
                    known.about = about;
                }
                (call, fields)
            }
            EventKind::ToolCallProgress { call, message, .. } => {
                let known = self.open.get(&*names::call(place, call).0)?;
                let kept = known.terminal.iter().chain(&known.preview).cloned();
                let content = kept.chain([tool::text(message)]).collect::<Vec<_>>();
                (call, ToolCallUpdateFields::new().content(content))
            }
            EventKind::ToolCallResult { call, tool, output, diff, is_error, .. } => {
                updates.extend(self.announce(place, call, tool, "{}"));
                let known = self.open.remove(&*names::call(place, call).0)?;
                (call, result(&known, output, diff.as_deref(), *is_error))
            }
            _ => return None,
        };
        let update = v1::ToolCallUpdate::new(names::call(place, call), fields);
        updates.push(SessionUpdate::ToolCallUpdate(update));
        Some(updates)
    }

    /// The turn has ended: calls without a result do not run any more.
    fn turn_over(&mut self) -> Vec<SessionUpdate> {
        let failed = |(id, _): (String, Call)| {
            let fields =
                ToolCallUpdateFields::new().status(ToolCallStatus::Failed).content(vec![tool::text(tool::NO_RESULT)]);
            SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(v1::ToolCallId::new(id), fields))
        };
        std::mem::take(&mut self.open).into_iter().map(failed).collect()
    }

    fn compaction(&mut self, event: &Event) -> Vec<SessionUpdate> {
        if !self.can.compaction {
            return self.notices(&event.kind);
        }
        let update = match &event.kind {
            EventKind::ContextCompactionStart { .. } => {
                self.compactions += 1;
                v1::CompactionUpdate::new(self.compaction_id(), CompactionStatus::InProgress)
            }
            EventKind::ContextCompactionEnd { error: Some(error), .. } => {
                v1::CompactionUpdate::new(self.compaction_id(), CompactionStatus::Failed).error(error.clone())
            }
            EventKind::ContextCompactionEnd { summary, .. } => {
                let summary = summary.iter().map(|text| ContentBlock::Text(TextContent::new(text))).collect::<Vec<_>>();
                v1::CompactionUpdate::new(self.compaction_id(), CompactionStatus::Completed).summary(summary)
            }
            _ => return Vec::new(),
        };
        vec![SessionUpdate::CompactionUpdate(update)]
    }

    fn compaction_id(&self) -> v1::CompactionId {
        v1::CompactionId::new(format!("compaction-{}", self.compactions))
    }
}

/// A notice with one more field.
fn with_meta(mut notice: SessionUpdate, name: &str, fields: serde_json::Value) -> SessionUpdate {
    if let SessionUpdate::Notice(v1::Notice { meta, .. })
    | SessionUpdate::SessionInfoUpdate(v1::SessionInfoUpdate { meta, .. }) = &mut notice
    {
        meta.get_or_insert_default().insert(name.to_owned(), fields);
    }
    notice
}

/// The last update about a call.
fn result(call: &Call, output: &str, diff: Option<&str>, is_error: bool) -> ToolCallUpdateFields {
    let Call { about, terminal, .. } = call;
    let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let change = diff.map(|diff| about.change(diff)).unwrap_or_default();
    let locations = diff.map(|diff| about.changed(diff)).filter(|changed| !changed.is_empty());
    // The client has the output of its own terminal.
    let output = about.output(output).filter(|_| terminal.is_none());
    let content: Vec<_> = terminal.iter().cloned().chain(change).chain(output).collect();
    ToolCallUpdateFields::new().status(status).content(content).locations(locations)
}

/// Why a turn did not complete, for the user; `None`: it did, or the user has cancelled it.
pub(super) fn why(status: &TurnStatus) -> Option<String> {
    Some(match status {
        TurnStatus::Completed | TurnStatus::Cancelled => return None,
        TurnStatus::Rejected { by, reason } => format!("The extension `{by}` rejected the input: {reason}"),
        TurnStatus::StoppedByRule { rule } => format!("The rule `{rule}` stopped the turn."),
        TurnStatus::Failed { message, .. } | TurnStatus::Suspended { message, .. } => message.clone(),
        TurnStatus::StepLimit { steps } => format!("The turn reached its limit of {steps} steps."),
    })
}
