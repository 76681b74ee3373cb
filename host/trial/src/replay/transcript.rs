//! A transcript as attempts: the records of one attempt, assembled into the model's answer and the actions taken.
//!
//! Where the record of an answer lists its blocks they are rebuilt exactly. In older ones they are not: then the texts
//! of an answer are one block and come before its calls, and the arguments of a call that was stopped are not known.

use std::collections::BTreeMap;

use flow::{CallId, Delta, Evidence, RuleMatch, StreamKind};
use record::{Body, CognitionOut, Injected, Record, RuleFired, ToolCallStart};
use serde::Deserialize as _;

use super::BadLine;
use super::attempt::{Attempt, Outcome, Past, PastFire, Step};
use super::lines::Lines;
use super::rebuild::{self, Piece};
use super::report::{Replay, Tokens, Where};

type Take<'t> = dyn FnMut(&str, Step, &mut Replay) + 't;

/// Types of records that other programs write about rules. Like the other known types that are not read here, they say nothing
/// about what the model wrote or what rules did.
const OTHERS: [&str; 3] = ["rule_metrics", "rulebook_read", "ttsr_triggered"];

/// Reads a transcript and gives its steps, thread by thread.
pub(super) fn read(mut lines: Lines, report: &mut Replay, take: &mut Take<'_>) -> Result<(), BadLine> {
    let shown = lines.path.display().to_string();
    let mut threads: BTreeMap<String, Thread> = BTreeMap::new();
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(line) = lines.next()? {
        let record = match line {
            Ok(record) => record,
            Err(number) => {
                report.notes.push(format!("{shown}, line {number}: is truncated and was not read"));
                break;
            }
        };
        if lines.number == 1 && record.get("format").is_some() {
            let known = record::VERSION;
            if record["version"].as_u64().is_none_or(|version| version > u64::from(known)) {
                let message = format!("has the format version {}, and this program knows {known}", record["version"]);
                return Err(lines.wrong(message));
            }
            if !record["parent"].is_null() {
                report.notes.push(format!(
                    "{shown}: is a fork; the turns that it shares with its parent are in the parent's file"
                ));
            }
            continue;
        }
        let record = Record::deserialize(record).map_err(|error| lines.wrong(format!("is not a record: {error}")))?;
        let thread = threads.entry(record.thread_id.clone()).or_insert_with_key(|name| Thread::new(&shown, name));
        if let Some(gap) = thread.gap(&record) {
            report.notes.push(format!("{shown}, line {}: {gap}", lines.number));
        }
        thread.line = lines.number;
        if let Body::Unknown { r#type, .. } = &record.body
            && !OTHERS.contains(&r#type.as_str())
        {
            *unknown.entry(r#type.clone()).or_default() += 1;
        }
        thread.take(record, report, take).map_err(|message| lines.wrong(message))?;
    }
    for (kind, count) in unknown {
        report.notes.push(format!("{shown}: {count} records of the unknown type `{kind}` were not read"));
    }
    threads.values_mut().for_each(|thread| thread.flush(None, report, take));
    let hidden: usize = threads.values().map(|thread| thread.hidden).sum();
    if hidden > 0 {
        report.notes.push(format!(
            "{shown}: it does not have the text of {hidden} matches, which rules about secrets hid; they are replayed as they are recorded"
        ));
    }
    Ok(())
}

/// One thread, read so far.
struct Thread {
    file: String,
    name: String,
    last_seq: Option<u64>,
    /// The line at hand, from 1.
    line: usize,
    /// Matches that are recorded without their text.
    hidden: usize,
    pending: Option<Pending>,
}

/// An attempt whose records are being read.
#[derive(Default)]
struct Pending {
    line: usize,
    at: (u32, u32, u32),
    thinking: String,
    /// The text, and whether the answer came to its end.
    text: Option<(String, bool)>,
    /// As the answer's record lists them; `None` where it does not.
    blocks: Option<Vec<Piece>>,
    /// Calls that were run.
    calls: Vec<Piece>,
    fires: Vec<PastFire>,
}

impl Thread {
    fn new(file: &str, name: &str) -> Self {
        Self { file: file.to_owned(), name: name.to_owned(), last_seq: None, line: 0, hidden: 0, pending: None }
    }

    /// Says where records are missing.
    fn gap(&mut self, record: &Record) -> Option<String> {
        let (now, before) = (record.seq, self.last_seq.replace(record.seq)?);
        (now != before + 1).then(|| {
            format!("record {now} of thread `{}` follows {before}: the records in between are missing", self.name)
        })
    }

    /// Takes a record.
    fn take(&mut self, record: Record, report: &mut Replay, take: &mut Take<'_>) -> Result<(), String> {
        let at = (record.turn, record.step, record.attempt);
        match record.body {
            Body::ThreadStarted(started) => take(&self.name, Step::Agent(started.directive), report),
            Body::TurnStart(_) => {
                self.flush(None, report, take);
                take(&self.name, Step::TurnStart, report);
            }
            Body::TurnFinish(_) => {
                self.flush(None, report, take);
                take(&self.name, Step::TurnEnd, report);
            }
            Body::StepFinish(finish) => self.flush(finish.tokens.output_tokens, report, take),
            // An extension's answer in the model's place is not an attempt, and no rule watches it.
            body if at.2 > 0 => self.part(at, body, report, take)?,
            _ => {}
        }
        Ok(())
    }

    /// A record that can be part of an attempt.
    fn part(
        &mut self,
        at: (u32, u32, u32),
        body: Body,
        report: &mut Replay,
        take: &mut Take<'_>,
    ) -> Result<(), String> {
        let begins = matches!(body, Body::CognitionReasoning(_) | Body::CognitionOut(_) | Body::RuleFired(_));
        if !begins && !matches!(body, Body::ToolCallStart(_) | Body::TtsrInjection(_)) {
            return Ok(());
        }
        let done = |pending: &Pending| {
            // An answer is over after its text: the provider restarted it, and the first is void.
            pending.at != at || (begins && pending.text.is_some())
        };
        if self.pending.as_ref().is_some_and(done) {
            self.flush(None, report, take);
        }
        let new = || Pending { line: self.line, at, ..Pending::default() };
        let pending = self.pending.get_or_insert_with(new);
        match body {
            Body::RuleFired(found) => pending.fires.push(fired(found)?),
            Body::CognitionReasoning(reasoning) => pending.thinking.push_str(&reasoning.text),
            Body::CognitionOut(out) => {
                pending.blocks = blocks(&out, &pending.thinking)?;
                pending.text = Some((out.text, !out.is_partial));
            }
            Body::ToolCallStart(start) => pending.calls.push(call(start)),
            Body::TtsrInjection(injection) => pending.injected(&injection.records),
            _ => {}
        }
        Ok(())
    }

    /// The attempt under way is complete: gives it. `tokens` are those of all attempts of its step.
    fn flush(&mut self, tokens: Option<u64>, report: &mut Replay, take: &mut Take<'_>) {
        let Some(pending) = self.pending.take() else { return };
        let (turn, step, attempt) = pending.at;
        let place =
            Where { file: self.file.clone(), line: pending.line, thread: Some(self.name.clone()), turn, step, attempt };
        let outcome = pending.outcome();
        let first = attempt == 1 && outcome == Outcome::Complete;
        let (deltas, prefix, past) = pending.deltas();
        self.hidden += past.iter().filter(|fire| fire.hidden.is_some()).count();
        let (output_tokens, past) = (tokens.filter(|_| first), Past::Fired(past));
        let attempt = Attempt { place, deltas, prefix, outcome, output_tokens, past };
        take(&self.name, Step::Attempt(Box::new(attempt)), report);
    }
}

impl Pending {
    fn outcome(&self) -> Outcome {
        let stopped = self.fires.iter().any(PastFire::stops);
        match &self.text {
            Some((_, true)) => Outcome::Complete,
            _ if stopped => Outcome::Stopped,
            _ => Outcome::Broken,
        }
    }

    /// The tokens discarded, rule by rule, if recorded.
    fn injected(&mut self, records: &[Injected]) {
        for one in records {
            let tokens = Tokens { count: one.tokens_discarded, estimated: one.tokens_estimated };
            if let Some(fire) = self.fires.iter_mut().find(|fire| fire.rule == one.rule) {
                fire.tokens = Some(tokens);
            }
        }
    }

    /// What the model sent, the text that it continued from, and what fired then.
    fn deltas(mut self) -> (Vec<Delta>, String, Vec<PastFire>) {
        let outcome = self.outcome();
        let exact = self.blocks.is_some();
        let blocks = self.blocks.take().unwrap_or_else(|| self.guessed());
        let stopped = outcome == Outcome::Stopped;
        let last: Vec<&PastFire> = self.fires.iter().filter(|fire| stopped && fire.stops()).collect();
        let (deltas, prefix) = rebuild::deltas(blocks, outcome == Outcome::Complete, &last);
        if !exact {
            self.fires.iter_mut().for_each(|fire| fire.end = None);
        }
        (deltas, prefix, self.fires)
    }

    /// The blocks of an answer with a record that does not list them: its reasoning, its text, its calls.
    fn guessed(&mut self) -> Vec<Piece> {
        let complete = self.outcome() == Outcome::Complete;
        let text = self.text.take().map(|(text, _)| text).unwrap_or_default();
        let thought = complete || !text.is_empty();
        let thinking = (StreamKind::Thinking, thought, std::mem::take(&mut self.thinking));
        let prose = [thinking, (StreamKind::Text, complete, text)].into_iter().filter(|(_, _, text)| !text.is_empty());
        let pieces = prose.map(|(kind, complete, text)| Piece { kind, text, kept: 0, complete });
        pieces.chain(std::mem::take(&mut self.calls)).collect()
    }
}

fn fired(found: RuleFired) -> Result<PastFire, String> {
    let word = &found.stream;
    let call = || {
        Ok::<_, String>((
            CallId::new(found.call_id.as_deref().ok_or("`call_id` is missing")?),
            found.tool.clone().ok_or("`tool` is missing")?,
        ))
    };
    let stream = StreamKind::read(word, call).ok_or_else(|| format!("`{word}` is not a stream"))??;
    let end = Some(found.evidence.end);
    let hidden = hidden(&found, &stream).map(Box::new);
    Ok(PastFire { rule: found.rule, stream, action: found.action, end, tokens: None, hidden })
}

/// The match, where the record does not have its text.
fn hidden(found: &RuleFired, stream: &StreamKind) -> Option<RuleMatch> {
    let evidence = &found.evidence;
    let is_hidden = evidence.text == Evidence::HIDDEN && !evidence.unread.unwrap_or(false);
    is_hidden.then(|| RuleMatch {
        rule: found.rule.clone(),
        stream: stream.clone(),
        evidence: Evidence {
            pattern: evidence.pattern.clone(),
            text: evidence.text.clone(),
            start: evidence.start,
            end: evidence.end,
            line: evidence.line,
            field: evidence.field.clone(),
            path: evidence.path.clone(),
            unread: false,
        },
    })
}

/// A call that was run.
fn call(start: ToolCallStart) -> Piece {
    // Arguments that are not an object are kept unchanged.
    let raw = start.input.as_object().filter(|input| input.len() == 1).and_then(|input| input.get("raw")?.as_str());
    let text = raw.map_or_else(|| start.input.to_string(), str::to_owned);
    let kind = StreamKind::Tool { call: CallId::new(start.call_id), name: start.tool };
    Piece { kind, text, kept: 0, complete: true }
}

/// The blocks of an answer, as its record lists them: text and thinking by their bytes, calls with their arguments.
fn blocks(out: &CognitionOut, thinking: &str) -> Result<Option<Vec<Piece>>, String> {
    let Some(list) = &out.blocks else { return Ok(None) };
    let wrong = || "`blocks` of `cognition_out` does not match its text".to_owned();
    let (mut text, mut thinking) = (out.text.as_str(), thinking);
    let mut pieces = Vec::new();
    for block in list {
        let cut = |from: &mut &str| {
            let (piece, rest) = from.split_at_checked(usize::try_from(block.bytes?).ok()?)?;
            *from = rest;
            Some(piece.to_owned())
        };
        let call = || {
            let id = block.call_id.as_deref().ok_or_else(wrong)?;
            Ok::<_, String>((CallId::new(id), block.tool.clone().ok_or_else(wrong)?))
        };
        let kind = StreamKind::read(&block.stream, call).ok_or_else(wrong)??;
        let text = match &kind {
            StreamKind::Text => cut(&mut text),
            StreamKind::Thinking => cut(&mut thinking),
            StreamKind::Tool { .. } => block.arguments.clone(),
        };
        let kept = block.prefix_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        pieces.push(Piece { kind, text: text.ok_or_else(wrong)?, kept, complete: block.complete });
    }
    Ok(Some(pieces))
}
