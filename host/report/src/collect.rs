//! Collects a report from records, in one pass; every record finds its position in logarithmic time.

mod calls;

use std::collections::BTreeMap;
use std::ops::Range;

use record::{Body, ExtensionCallback, MessagePayload, Record, RuleFired};

use crate::report::{
    Answer, Attempt, Callback, Entry, Extension, Log, ModelName, Reasoning, Report, Sent, Step, Turn, What,
};

/// A position: turn, step, attempt; each 0 where there is none.
type Place = (u32, u32, u32);

/// The report so far, and what finds the positions in it.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    report: Report,
    turns: BTreeMap<u32, usize>,
    steps: BTreeMap<(u32, u32), usize>,
    attempts: BTreeMap<Place, usize>,
    /// The calls without a result, by id: where their entry is.
    open: BTreeMap<String, (Place, usize)>,
    /// The inputs of a turn that have not been seen in the conversation.
    inputs: Vec<String>,
    /// The matches of the attempt under way, for its answer.
    fired: (Place, Vec<RuleFired>),
}

impl Collector {
    pub(crate) fn finish(self) -> Report {
        self.report
    }

    /// Takes the next record.
    pub(crate) fn take(&mut self, record: Record) {
        let place = (record.turn, record.step, record.attempt);
        let report = &mut self.report;
        // The first records of a fork have its parent's id.
        if report.session != record.thread_id {
            report.session.clone_from(&record.thread_id);
        }
        report.records += 1;
        report.dropped += record.dropped;
        report.started_ms.get_or_insert(record.ts);
        report.ended_ms = report.ended_ms.max(Some(record.ts));
        if record.turn > 0 {
            let turn = self.turn(record.turn, record.ts);
            turn.ended_ms = turn.ended_ms.max(record.ts);
        }
        if let Some(what) = self.what(place, record.body) {
            self.log(place).entries.push(Entry { at_ms: record.ts, what });
        }
    }

    /// Takes a record's body; returns the entry that it becomes, where it becomes one of its own.
    fn what(&mut self, place: Place, body: Body) -> Option<What> {
        match body {
            Body::ThreadStarted(started) => {
                self.report.agent = Some(started.directive);
                self.report.workspace = started.workspace;
                self.model(started.provider, started.model);
                None
            }
            Body::ThreadResumed(ref resumed) => {
                self.model(resumed.provider.clone(), resumed.model.clone());
                notice(&body)
            }
            Body::TurnFinish(finish) => {
                self.inputs.clear();
                if place.0 > 0 {
                    self.turn(place.0, 0).finish = Some(finish);
                }
                None
            }
            Body::StepFinish(finish) => {
                if place.0 > 0 {
                    self.step(place).finish = Some(finish);
                }
                None
            }
            Body::InputReceived(input) => {
                self.inputs.push(input.text.clone());
                Some(What::Input(input))
            }
            Body::SteeringMessage(input) => {
                self.inputs.push(input.text.clone());
                Some(What::Steering(input))
            }
            Body::CognitionIn(message) => Some(self.sent(message)),
            Body::CustomMessage(message) => Some(What::Message(message)),
            Body::CognitionOut(record) => {
                let matches = self.matches(place, "text", &record.text);
                Some(What::Answer(Answer { record, matches }))
            }
            Body::CognitionReasoning(record) => {
                let matches = self.matches(place, "thinking", &record.text);
                Some(What::Reasoning(Reasoning { record, matches }))
            }
            Body::ToolConfirmationRequested(asked) => self.asked(place, asked),
            Body::ToolConfirmationResolved(decision) => self.decided(decision),
            Body::ToolCallStart(start) => self.started(place, start),
            Body::ToolCallProgress(progress) => self.progress(progress),
            Body::ToolCallResult(result) => self.result(result),
            Body::ErrorClassified(error) => Some(What::Error(error)),
            Body::RetryScheduled(retry) => Some(What::Retry(retry)),
            Body::RetrySucceeded(retried) => Some(What::Retried(retried)),
            Body::RuleFired(fired) => Some(self.fired(place, fired)),
            Body::RuleHoldReleased(released) => Some(What::HoldReleased(released)),
            Body::RuleHeld(held) => Some(What::Held(held)),
            Body::TtsrInjection(injection) => Some(What::Injection(injection)),
            Body::TtsrRearmed(rearmed) => Some(What::Rearmed(rearmed)),
            Body::HistoryReplaced(history) => Some(What::HistoryReplaced(history)),
            Body::ContextCompactionStart(start) => Some(What::CompactionStart(start)),
            Body::ContextCompactionEnd(end) => Some(What::CompactionEnd(end)),
            Body::ExtensionRegistered(one) => {
                self.extension(&one.extension_id, one.version);
                None
            }
            Body::ExtensionPrompt(prompt) => Some(What::Prompt(prompt)),
            Body::ExtensionCallback(report) => self.callback(place, report),
            Body::ExtensionTool(report) => (report.outcome != "done").then_some(What::ToolProblem(report)),
            Body::ExtensionBreaker(breaker) => Some(What::Breaker(breaker)),
            Body::ExtensionWithheld(withheld) => Some(What::Withheld(withheld)),
            Body::ExtensionLog(line) => Some(What::Log(line)),
            Body::Unknown { r#type, .. } => {
                *self.report.unknown.entry(r#type).or_default() += 1;
                None
            }
            other => notice(&other),
        }
    }

    fn sent(&mut self, message: MessagePayload) -> What {
        let own = message.author.is_none() && message.role == "user";
        let known = self.inputs.iter().position(|input| *input == message.text).filter(|_| own);
        let unchanged = known.map(|at| self.inputs.remove(at)).is_some();
        What::Sent(Sent { message, unchanged })
    }

    fn fired(&mut self, place: Place, fired: RuleFired) -> What {
        if self.fired.0 != place {
            self.fired = (place, Vec::new());
        }
        self.fired.1.push(fired.clone());
        What::Rule(fired)
    }

    fn model(&mut self, provider: String, model: String) {
        let name = ModelName { provider, model };
        if !self.report.models.contains(&name) {
            self.report.models.push(name);
        }
    }

    fn extension(&mut self, id: &str, version: String) {
        match self.report.extensions.iter_mut().find(|known| known.id == id) {
            Some(known) => known.version = version,
            None => self.report.extensions.push(Extension { id: id.to_owned(), version }),
        }
    }

    /// Where the rules of the attempt matched in a text.
    fn matches(&self, place: Place, stream: &str, text: &str) -> Vec<Range<usize>> {
        let fired = if self.fired.0 == place { self.fired.1.as_slice() } else { &[] };
        let matches = fired.iter().filter(|one| one.stream == stream).filter_map(|one| found(text, one));
        let mut matches: Vec<Range<usize>> = matches.collect();
        matches.sort_by_key(|range| (range.start, range.end));
        let mut end = 0;
        matches.retain(|range| {
            let apart = range.start >= end;
            end = end.max(range.end);
            apart
        });
        matches
    }

    /// Counts a call; one that did not do its work is an entry, too.
    fn callback(&mut self, place: Place, report: ExtensionCallback) -> Option<What> {
        let callbacks = &mut self.log(place).callbacks;
        let known =
            callbacks.iter().position(|one| one.extension == report.extension_id && one.callback == report.callback);
        let at = known.unwrap_or_else(|| {
            let (extension, callback) = (report.extension_id.clone(), report.callback.clone());
            callbacks.push(Callback { extension, callback, ..Callback::default() });
            callbacks.len() - 1
        });
        let one = &mut callbacks[at];
        one.calls += 1;
        one.changed += u64::from(report.outcome == "changed");
        one.failed += u64::from(report.outcome == "error");
        one.total_us += report.duration_us;
        one.max_us = one.max_us.max(report.duration_us);
        matches!(report.outcome.as_str(), "error" | "not_permitted" | "ignored")
            .then_some(What::CallbackProblem(report))
    }

    fn turn(&mut self, number: u32, ts: u64) -> &mut Turn {
        let turns = &mut self.report.turns;
        let at = *self.turns.entry(number).or_insert_with(|| {
            turns.push(Turn { number, started_ms: ts, ended_ms: ts, ..Turn::default() });
            turns.len() - 1
        });
        &mut turns[at]
    }

    fn step(&mut self, (turn, step, _): Place) -> &mut Step {
        let known = self.steps.get(&(turn, step)).copied();
        let at = known.unwrap_or_else(|| self.turn(turn, 0).steps.len());
        self.steps.insert((turn, step), at);
        let steps = &mut self.turn(turn, 0).steps;
        if at == steps.len() {
            steps.push(Step { number: step, ..Step::default() });
        }
        &mut steps[at]
    }

    fn log(&mut self, place: Place) -> &mut Log {
        match place {
            (0, ..) => &mut self.report.log,
            (turn, 0, _) => &mut self.turn(turn, 0).log,
            (_, _, 0) => &mut self.step(place).log,
            (.., number) => {
                let known = self.attempts.get(&place).copied();
                let at = known.unwrap_or_else(|| self.step(place).attempts.len());
                self.attempts.insert(place, at);
                let attempts = &mut self.step(place).attempts;
                if at == attempts.len() {
                    attempts.push(Attempt { number, ..Attempt::default() });
                }
                &mut attempts[at].log
            }
        }
    }
}

/// Where a text has what a rule found in it. An answer that continues another has its own positions, so the text itself decides.
fn found(text: &str, fired: &RuleFired) -> Option<Range<usize>> {
    let evidence = &fired.evidence;
    if evidence.text.is_empty() {
        return None;
    }
    let start = usize::try_from(evidence.start).unwrap_or(usize::MAX);
    let end = usize::try_from(evidence.end).unwrap_or(usize::MAX);
    // A secret is asterisks there, byte for byte.
    let is_hidden = |there: &str| !there.is_empty() && there.bytes().all(|byte| byte == b'*');
    let there = text.get(start..end).is_some_and(|there| there.starts_with(&evidence.text) || is_hidden(there));
    if there {
        return Some(start..end);
    }
    text.find(&evidence.text).map(|start| start..start + evidence.text.len())
}

/// What is shown of a record that has no form of its own in a report, if it says anything.
fn notice(body: &Body) -> Option<What> {
    Some(What::Notice(body.name().to_owned(), body.sentence()?.to_string()))
}
