//! A session's rules: asked for at the start of each turn, their records kept and taken up again, what they did counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::rules::{InjectionRecord, RuleState};
use flow::{ErrorClass, EventKind, Message, ModelError, Origin, Part, RuleRecord};

use super::Session;
use crate::metrics::RuleMetrics;
use crate::sources::RuleUpdate;
use flow::ports::{EventSink, KeptRules};

/// The rules whose reminders are in the conversation of a session, for readers while a turn runs. A clone is the same list.
#[derive(Clone, Debug, Default)]
pub struct InjectedRules(Arc<Mutex<Vec<RuleRecord>>>);

impl InjectedRules {
    /// The last record of each rule, in the order in which they were injected.
    pub fn list(&self) -> Vec<RuleRecord> {
        self.lock().clone()
    }

    pub(super) fn keep(&self, record: &RuleRecord) {
        let mut all = self.lock();
        all.retain(|one| one.rule != record.rule);
        all.push(record.clone());
    }

    fn rearm(&self, rule: &str) {
        self.lock().retain(|one| one.rule != rule);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RuleRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a session has asked and learnt by now.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// It has had rules: others are a reload.
    rules: bool,
    /// The cache problems of these rules were reported to it.
    trouble: bool,
    /// Its model refused to continue from the start of an answer.
    pub(super) no_prefill: bool,
}

impl Session {
    /// What each rule did in this session, by name. Rules that never did anything are not there.
    pub fn rule_metrics(&self) -> &BTreeMap<String, RuleMetrics> {
        self.metrics.all()
    }

    /// Puts another conversation in the place of this one: one that was compacted, or that of an earlier run, before the
    /// first turn. Rules whose reminders were in the old one and are not in the new may fire again; their names come
    /// back.
    pub fn replace_history(&mut self, messages: Vec<Arc<Message>>) -> Vec<String> {
        if self.thread.started_ms.is_some() {
            self.handles.hub.emit(EventKind::HistoryReplaced { messages: messages.clone() });
        }
        // They belong to the conversation that is gone.
        self.open_calls = None;
        self.set_history(messages)
    }

    /// Replaces the conversation, which is reported already. Rules whose reminders are gone may fire again.
    pub(crate) fn set_history(&mut self, messages: Vec<Arc<Message>>) -> Vec<String> {
        self.handles.history.replace(messages);
        self.rearm_gone()
    }

    /// Rules whose reminders are not in the conversation any more may fire again. Returns their names.
    pub(crate) fn rearm_gone(&mut self) -> Vec<String> {
        let messages = self.handles.history.messages();
        let reminded: Vec<String> = self.rules.reminded().map(str::to_owned).collect();
        let gone = |rule: &String| !messages.iter().any(|message| reminds_of(message, rule));
        let mut gone: Vec<String> = reminded.into_iter().filter(gone).collect();
        gone.sort_unstable();
        for rule in &gone {
            self.rules.rearm(rule);
            self.handles.injected.rearm(rule);
            let kept = self.records.rearmed(&self.parts.id, rule);
            self.emit_lost(rule, kept);
        }
        if !gone.is_empty() {
            self.handles.hub.emit(EventKind::TtsrRearmed { rules: gone.clone() });
        }
        gone
    }

    /// Switches to the current rules. Problems that the source found are reported.
    ///
    /// # Errors
    /// A required rule is not in force: the turn must not begin.
    pub(crate) async fn renew_rules(&mut self) -> Result<(), ModelError> {
        let current = self.parts.rules.current().await;
        let RuleUpdate { set, notices } = current.map_err(|why| ModelError::new(ErrorClass::Permanent, why))?;
        let changed = !Arc::ptr_eq(&set, self.rules.rules());
        if changed {
            self.frame.set_rules(set.system_blocks(self.rules.agent()));
            self.rules.replace_rules(Arc::clone(&set));
            self.asked.trouble = false;
        }
        if changed && self.asked.rules {
            let active = set.rules().filter(|info| *info.state == RuleState::Active).count();
            self.handles.hub.emit(EventKind::RulesReloaded { active, notices });
        } else {
            notices.into_iter().for_each(|message| self.handles.hub.emit(EventKind::Notice { message }));
        }
        self.rules.declare_paths(&self.parts.tools.specs());
        if !self.asked.rules {
            self.restore().await;
            self.asked.rules = true;
        }
        Ok(())
    }

    /// Takes up what an earlier run of the session kept.
    async fn restore(&mut self) {
        let loaded = match self.thread.rules.take() {
            Some(kept) => Ok(kept),
            None => self.records.load(&self.parts.id).await,
        };
        match loaded {
            Ok(KeptRules { records, completed_turns }) => {
                records.iter().for_each(|record| self.handles.injected.keep(record));
                let record = |kept: RuleRecord| InjectionRecord { rule: kept.rule, hash: kept.hash, turn: kept.turn };
                self.rules.restore(records.into_iter().map(record), completed_turns);
            }
            Err(why) => {
                let message = format!("records of stream rules could not be read, so any rule may fire again: {why}");
                self.handles.hub.emit(EventKind::Notice { message });
            }
        }
    }

    /// Keeps that a rule's reminder went to the model.
    pub(crate) fn keep_record(&self, record: &RuleRecord) {
        self.handles.injected.keep(record);
        self.emit_lost(&record.rule, self.records.keep(&self.parts.id, record));
    }

    /// A turn has ended, whichever way.
    pub(crate) fn end_turn(&mut self) {
        self.rules.end_turn();
        let kept = self.records.completed(&self.parts.id, self.rules.completed_turns());
        if let Err(why) = kept {
            let message = format!("the end of the turn could not be stored for the repeat gaps of stream rules: {why}");
            self.handles.hub.emit(EventKind::Notice { message });
        }
        if !self.asked.trouble
            && let Some(message) = self.rules.rules().engine_trouble()
        {
            self.asked.trouble = true;
            self.handles.hub.emit(EventKind::Notice { message });
        }
    }

    /// Whether an answer can be sent back as the start to continue from.
    pub(crate) fn goes_on(&self) -> bool {
        self.parts.model.prefill() && !self.asked.no_prefill
    }

    /// The model refused a beginning: it is sent none any more.
    pub(crate) fn never_goes_on(&mut self) {
        self.asked.no_prefill = true;
    }

    fn emit_lost(&self, rule: &str, kept: Result<(), String>) {
        if let Err(why) = kept {
            let message = format!("the record of rule {rule} could not be stored: {why}");
            self.handles.hub.emit(EventKind::Notice { message });
        }
    }
}

/// Whether a message of the conversation contains a reminder of the rule: alone, or before a tool's result.
fn reminds_of(message: &Message, rule: &str) -> bool {
    if message.origin != Origin::Host {
        return false;
    }
    let says = |text: &str| ::rules::RuleSession::holds_reminder(text, rule);
    message.parts.iter().any(|part| match part {
        Part::Text(text) => says(text),
        Part::ToolResult(result) => result.content.first().is_some_and(|text| says(text)),
        Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) => false,
    })
}
