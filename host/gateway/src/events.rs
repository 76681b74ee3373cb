//! Emits the events of a conversation for an exchange.

use std::ops::Range;

use flow::{Action, EventKind, Keeping, KeptText, Retained, RuleMatch, RuleRecord};
use guard::attempt::Answer;
use rules::{InjectionRecord, Judgement};

/// The pending events of an exchange.
#[derive(Debug, Default)]
pub(crate) struct ExchangeEvents {
    events: Vec<EventKind>,
    /// The range of the events of the accepted answer.
    accepted: Range<usize>,
    /// The text that the client has of attempts that were stopped.
    before: String,
    /// Its length before the last attempt.
    base: usize,
}

impl ExchangeEvents {
    pub(crate) fn push(&mut self, event: EventKind) {
        self.events.push(event);
    }

    /// Adds the matches of rules at one byte.
    pub(crate) fn fired(&mut self, matches: &[RuleMatch], judgement: &Judgement) {
        let decisions = judgement.actions.iter().zip(&judgement.first).zip(&judgement.again);
        for (found, ((action, first), again)) in matches.iter().zip(decisions) {
            let (found, action, first, again) = (found.clone(), *action, *first, *again);
            self.push(EventKind::RuleFired { found, action, first, again });
        }
    }

    /// Notes that an answer was stopped, and that the model was reminded. `kept`: the part of it that the client keeps.
    pub(crate) fn stopped(
        &mut self,
        answer: &Answer,
        kept: &str,
        (found, records): (&[RuleMatch], Vec<InjectionRecord>),
        attempt: u32,
    ) {
        self.cut(answer, kept, &format!("a rule stopped attempt {attempt}"));
        self.before.push_str(kept);
        // The first one has all of them.
        let mut tokens = Some(answer.usage().output.map_or((answer.bytes() / 4, true), |tokens| (tokens, false)));
        let record = |one: InjectionRecord| {
            let found = found.iter().find(|found| found.rule == one.rule)?;
            let (stream, evidence) = (found.stream.clone(), found.evidence.clone());
            let (tokens_discarded, tokens_estimated) = tokens.take().unwrap_or_default();
            let (action, InjectionRecord { rule, hash, turn }) = (Action::Interrupt, one);
            Some(RuleRecord { rule, hash, turn, stream, evidence, action, tokens_discarded, tokens_estimated })
        };
        let records: Vec<RuleRecord> = records.into_iter().filter_map(record).collect();
        if !records.is_empty() {
            let rules = records.iter().map(|record| record.rule.clone()).collect();
            let discarded_bytes = answer.bytes().saturating_sub(self.before.len() as u64);
            self.push(EventKind::TtsrInjection { rules, discarded_bytes, records });
        }
    }

    /// Notes that the answer is complete.
    pub(crate) fn accepted(&mut self, answer: &Answer) {
        let from = self.events.len();
        self.base = self.before.len();
        self.events.extend(answer.accepted_events());
        self.accepted = from..self.events.len();
    }

    /// Adds an answer that the gateway ended. It replaces the events of an accepted answer that could not be sent. `kept`: the part that the
    /// client has.
    pub(crate) fn ended(&mut self, answer: &Answer, kept: &str, why: &str) {
        self.events.drain(std::mem::take(&mut self.accepted));
        self.cut(answer, kept, why);
    }

    /// Adds an incomplete answer, whose text begins with that of earlier attempts. `kept`: the part of this one that the client has.
    fn cut(&mut self, answer: &Answer, kept: &str, why: &str) {
        self.base = self.before.len();
        let shown = (self.base + kept.len()) as u64;
        let retained = if shown == 0 { Retained::Nothing } else { Retained::Start { bytes: shown } };
        self.events.extend(answer.cut_events(why, shown, (retained, false)));
        self.has_of_last(shown);
    }

    /// Notes the text that the client has of the last attempt, in place of the text of its answer.
    pub(crate) fn was_shown(&mut self, seen: &str) {
        let is_stopped = self.before.len() > self.base;
        let text = self.before[..self.base].to_owned() + seen;
        self.last().into_iter().for_each(|last| replace_text(last, &text));
        self.has_of_last(text.len() as u64);
        if is_stopped {
            self.before = text;
        }
    }

    /// Notes the text of the last answer, with that of earlier attempts, as far as the client has it unchanged.
    pub(crate) fn was_changed(&mut self, unchanged: String) {
        if let Some(EventKind::CognitionOut { shown, .. }) = self.last() {
            *shown = Some(unchanged);
        }
    }

    /// Notes how much of the last answer was shown, if it did not complete: the client has that much from here, not from the attempt.
    fn has_of_last(&mut self, bytes: u64) {
        if let Some(EventKind::CognitionOut { partial: Some(partial), .. }) = self.last() {
            partial.shown_bytes = bytes;
        }
    }

    fn last(&mut self) -> Option<&mut EventKind> {
        self.events.iter_mut().rev().find(|event| matches!(event, EventKind::CognitionOut { .. }))
    }

    /// Takes the events, without parts that are not kept.
    pub(crate) fn take(&mut self, keeping: Keeping) -> Vec<EventKind> {
        self.accepted = Range::default();
        let events = std::mem::take(&mut self.events).into_iter();
        events.filter_map(|event| kept(event, keeping)).collect()
    }
}

/// Replaces the text of an answer by the text that a reader was shown.
fn replace_text(event: &mut EventKind, seen: &str) {
    let EventKind::CognitionOut { text, keep, blocks, retained, .. } = event else { return };
    let mut left = seen.len() as u64;
    match retained {
        Retained::Start { bytes } if left > 0 => *bytes = left,
        Retained::Answer if left > 0 || blocks.iter().any(|block| block.kind.is_tool()) => {}
        _ => *retained = Retained::Nothing,
    }
    for block in blocks.iter_mut().filter(|block| block.kind == flow::StreamKind::Text) {
        block.bytes = std::mem::take(&mut left);
    }
    seen.clone_into(text);
    *keep = KeptText::Shown;
}

/// Removes the parts of an event that are not kept; returns `None` if nothing of it is kept.
fn kept(mut event: EventKind, keeping: Keeping) -> Option<EventKind> {
    // The text of an answer that was stopped or failed before any of it was shown is not kept at all.
    if let EventKind::CognitionOut { keep: KeptText::Original, retained, .. } = &mut event
        && keeping.answer
    {
        *retained = Retained::Nothing;
        replace_text(&mut event, "");
    }
    if let EventKind::CognitionOut { blocks, .. } = &mut event
        && keeping.calls
    {
        blocks.iter_mut().for_each(|block| block.arguments = block.arguments.as_ref().map(|_| String::new()));
    }
    Some(match event {
        EventKind::CognitionReasoning { .. } if keeping.thinking => return None,
        EventKind::RuleFired { found, action, first, again } => {
            let found = keeping.evidence_of(vec![found]).pop()?;
            EventKind::RuleFired { found, action, first, again }
        }
        EventKind::TtsrInjection { rules, discarded_bytes, mut records } => {
            for record in &mut records {
                let (rule, stream, evidence) = (record.rule.clone(), record.stream.clone(), record.evidence.clone());
                let found = keeping.evidence_of(vec![RuleMatch { rule, stream, evidence }]).pop();
                found.into_iter().for_each(|found| record.evidence = found.evidence);
            }
            EventKind::TtsrInjection { rules, discarded_bytes, records }
        }
        other => other,
    })
}
