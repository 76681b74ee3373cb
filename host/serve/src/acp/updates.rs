//! What the events of a session are for its client. Hidden messages have no event that is sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tidegate::event::{AnswerBlock, Partial, PlanStatus, Retained, RunPosition, StreamKind};
use tidegate::record::Body;
use tidegate::rule::{Action, FiredRule, FiredRules};
use tidegate::{Event, EventKind, TurnStatus};

use super::calls::Calls;
use super::client::{self, Abilities, Client};
use super::names::{self, meta};
use super::notices::Notices;
use super::sdk::v1::{self, CompactionStatus, ContentBlock, ContentChunk, NoticeSeverity, SessionUpdate, TextContent};
use super::shown::{Broken, Retraction, Shown};
use super::tail::Tail;
use super::tool;

/// Makes updates of events, one after the other.
#[derive(Debug)]
pub(super) struct Updates {
    can: Arc<Abilities>,
    /// The tokens that the model's context has.
    context: Option<u64>,
    pub(super) calls: Calls,
    /// The last rule that fired in the attempt.
    rule: Option<String>,
    /// The messages of the answer of the step.
    shown: Shown,
    compactions: u32,
    notices: Notices,
    fired: FiredRules,
    /// Rules of which a match that passed was reported in this turn.
    passed: BTreeSet<String>,
    tail: Tail,
    /// The next text of the model does not continue what is before it.
    is_parted: bool,
}

/// A chunk of a message.
pub(super) fn chunk(text: &str, id: v1::MessageId) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text))).message_id(id)
}

impl Updates {
    pub(super) fn new(calls: Calls, client: &Client, context: Option<u64>) -> Self {
        Self {
            can: Arc::clone(&client.can),
            tail: client.tail.clone(),
            is_parted: false,
            context,
            calls,
            rule: None,
            shown: Shown::default(),
            compactions: 0,
            notices: Notices::default(),
            fired: FiredRules::default(),
            passed: BTreeSet::new(),
        }
    }

    /// The history is sent. Returns the attempt of the answer that is not complete, which has the id of its message.
    pub(super) fn loaded(&mut self) -> Option<RunPosition> {
        self.calls.loaded();
        self.shown.loaded()
    }

    /// The updates of an event, in order.
    pub(super) fn take(&mut self, event: &Event) -> Vec<SessionUpdate> {
        if let EventKind::RuleFired { found, action, again, .. } = &event.kind {
            // Only a rule that stops the answer is the reason why its text is retracted.
            if *action == Action::Interrupt && !again {
                self.rule = Some(found.rule.clone());
            }
            // A word that a rule lets through can occur often.
            if *action == Action::Pass && !self.passed.insert(found.rule.clone()) {
                return Vec::new();
            }
            let fired = self.fired.take(found, *action, *again);
            return fired.iter().map(|fired| self.rule_notice(fired)).collect();
        }
        if matches!(event.kind, EventKind::TurnStart) {
            self.passed.clear();
            self.tail.reset();
        }
        let fired = self.fired.rest().map(|fired| self.rule_notice(&fired));
        fired.into_iter().chain(self.of(event)).collect()
    }

    fn of(&mut self, event: &Event) -> Vec<SessionUpdate> {
        let place = event.place;
        match &event.kind {
            EventKind::StepStart { .. } => {
                (self.rule, self.shown, self.is_parted) = (None, Shown::default(), true);
                Vec::new()
            }
            EventKind::CognitionOutDelta { text, .. } if text.is_empty() => Vec::new(),
            EventKind::CognitionOutDelta { text, .. } => {
                self.shown.written(place, text);
                self.text(SessionUpdate::AgentMessageChunk(chunk(text, names::message(place))))
            }
            EventKind::CognitionReasoningDelta { text } => {
                self.shown.written(place, "");
                self.text(SessionUpdate::AgentThoughtChunk(chunk(text, names::message(place))))
            }
            EventKind::CognitionOut { partial: Some(partial), retained, .. } => self.broken(partial, *retained),
            EventKind::CognitionOut { partial: None, blocks, .. } => self.accepted(place, blocks),
            EventKind::ContextCompactionStart { .. } | EventKind::ContextCompactionEnd { .. } => self.compaction(event),
            EventKind::StepFinish { context_tokens: Some(used), charged, .. } => {
                self.usage(*used, charged.spend.dollars())
            }
            EventKind::PlanUpdated { entries } => {
                vec![plan(entries.iter().map(|entry| (entry.content.as_str(), entry.status)))]
            }
            EventKind::TurnFinish { .. } => self.calls.turn_over(),
            EventKind::CustomEvent { event_type, plugin, payload } => {
                let fields = json!({"type": event_type, "extension": plugin.as_ref().map(|id| id.as_str()), "payload": **payload});
                vec![SessionUpdate::SessionInfoUpdate(v1::SessionInfoUpdate::new().meta(meta(names::EVENT, fields)))]
            }
            _ => self.calls.take(event).unwrap_or_else(|| self.notices(&event.kind)),
        }
    }

    /// A text of the model.
    fn text(&mut self, update: SessionUpdate) -> Vec<SessionUpdate> {
        if std::mem::take(&mut self.is_parted) {
            self.tail.part();
        }
        vec![update]
    }

    /// An answer is accepted: its calls are going to run.
    fn accepted(&mut self, place: RunPosition, blocks: &[AnswerBlock]) -> Vec<SessionUpdate> {
        self.shown = Shown::default();
        let calls = blocks.iter().filter_map(|block| match &block.kind {
            StreamKind::Tool { call, name } if block.complete => {
                self.calls.announce(place, call, name, block.shown_arguments().unwrap_or("{}"))
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
        let Broken { retracted, text, is_over } = self.shown.broken(partial, retained);
        self.is_parted |= is_over;
        let rule = self.rule.take();
        let note = (!retracted.is_empty()).then(|| self.retraction_note(rule.as_deref(), &text)).flatten();
        let update = |retraction: Retraction| {
            let fields = json!({
                "messageId": names::message(retraction.attempt).0,
                "keptBytes": retraction.kept,
                "rule": rule,
                "reason": partial.error,
            });
            SessionUpdate::SessionInfoUpdate(v1::SessionInfoUpdate::new().meta(meta(names::RETRACTED, fields)))
        };
        retracted.into_iter().map(update).chain(note).collect()
    }

    /// A line about text that does not count any more, for clients that cannot take it back.
    fn retraction_note(&self, rule: Option<&str>, text: &str) -> Option<SessionUpdate> {
        if self.can.retractions || text.trim().is_empty() {
            return None;
        }
        let why = match rule {
            Some(rule) => format!("by the rule `{}`", tool::flat(rule)),
            None => "because the answer broke off".to_owned(),
        };
        let id = v1::MessageId::new(tidegate::new_session_id().as_str());
        let note = chunk(&format!("[Retracted {why}: {}]\n\n", quoted(text)), id);
        self.tail.part();
        Some(SessionUpdate::AgentMessageChunk(note))
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
            EventKind::ContextCompactionEnd { left_out, .. } if !left_out.is_empty() => {
                let text = Body::of(&event.kind).sentence().map(|sentence| sentence.to_string()).unwrap_or_default();
                let summary = vec![ContentBlock::Text(TextContent::new(text))];
                v1::CompactionUpdate::new(self.compaction_id(), CompactionStatus::Completed).summary(summary)
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

/// A plan as an update, which replaces the one that the client has.
pub(super) fn plan<'e>(entries: impl Iterator<Item = (&'e str, PlanStatus)>) -> SessionUpdate {
    let entry = |(content, status): (&str, PlanStatus)| {
        let status = match status {
            PlanStatus::Pending => v1::PlanEntryStatus::Pending,
            PlanStatus::InProgress => v1::PlanEntryStatus::InProgress,
            PlanStatus::Completed => v1::PlanEntryStatus::Completed,
        };
        v1::PlanEntry::new(content, v1::PlanEntryPriority::Medium, status)
    };
    SessionUpdate::Plan(v1::Plan::new(entries.map(entry).collect()))
}

/// A text as code, or where it begins.
fn quoted(text: &str) -> String {
    /// Characters of the start of a text that is not quoted whole.
    const START: usize = 40;
    let line = tool::flat(text);
    match line.char_indices().nth(START).filter(|_| line.chars().count() > 2 * START) {
        Some((end, _)) => format!("all from `{}…` on", line[..end].trim_end()),
        None => format!("`{line}`"),
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

/// Why a turn did not complete, for the user; `None`: it did, or the user has cancelled it.
pub(super) fn why(status: &TurnStatus) -> Option<String> {
    Some(match status {
        TurnStatus::Completed | TurnStatus::Cancelled => return None,
        TurnStatus::Rejected { by, reason } => format!("The extension `{by}` rejected the input: {reason}"),
        TurnStatus::StoppedByRule { rule } => format!("The rule `{rule}` stopped the turn."),
        TurnStatus::Failed { message, .. } | TurnStatus::Suspended { message, .. } => message.clone(),
        TurnStatus::NoProgress { message } => format!("The turn ended because {message}."),
        TurnStatus::StepLimit { steps } => format!("The turn reached its limit of {steps} steps."),
    })
}
