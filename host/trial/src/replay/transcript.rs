//! A transcript as attempts: the records of one attempt, assembled into the model's answer and the actions taken.
//!
//! Where the record of an answer lists its blocks they are rebuilt exactly. In older ones they are not: then the texts
//! of an answer are one block and come before its calls, and the arguments of a call that was stopped are not known.

use std::collections::BTreeMap;

use flow::{CallId, Delta, EventKind, StreamKind};
use serde_json::Value;

use super::BadLine;
use super::attempt::{Attempt, Outcome, Past, PastFire, Step};
use super::lines::Lines;
use super::rebuild::{self, Piece};
use super::report::{Replay, Tokens, Where};

type Take<'t> = dyn FnMut(&str, Step, &mut Replay) + 't;

/// Types of records that other programs write about rules. Like those of [`EventKind::NAMES`] that are not read here, they say
/// nothing about what the model wrote or what rules did.
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
        let record = Record::of(&record, lines.number).map_err(|message| lines.wrong(message))?;
        let thread = threads.entry(record.thread.to_owned()).or_insert_with(|| Thread::new(&shown, record.thread));
        if let Some(gap) = thread.gap(&record) {
            report.notes.push(format!("{shown}, line {}: {gap}", lines.number));
        }
        if !thread.take(&record, report, take).map_err(|message| lines.wrong(message))? {
            *unknown.entry(record.kind.to_owned()).or_default() += 1;
        }
    }
    for (kind, count) in unknown {
        report.notes.push(format!("{shown}: {count} records of the unknown type `{kind}` were not read"));
    }
    threads.values_mut().for_each(|thread| thread.flush(None, report, take));
    Ok(())
}

/// A record, looked into.
struct Record<'a> {
    line: usize,
    thread: &'a str,
    kind: &'a str,
    seq: u64,
    at: (u32, u32, u32),
    payload: &'a Value,
}

impl<'a> Record<'a> {
    fn of(value: &'a Value, line: usize) -> Result<Self, String> {
        let text = |key: &str| value[key].as_str().ok_or_else(|| format!("is not a record: `{key}` is missing"));
        let number = |key: &str| {
            let number = value[key].as_u64().and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| format!("is not a record: `{key}` is missing"))
        };
        Ok(Self {
            line,
            thread: text("thread_id")?,
            kind: text("type")?,
            seq: value["seq"].as_u64().ok_or("is not a record: `seq` is missing")?,
            at: (number("turn")?, number("step")?, number("attempt")?),
            payload: value.get("payload").ok_or("is not a record: `payload` is missing")?,
        })
    }

    fn text(&self, key: &str) -> Result<&'a str, String> {
        self.payload[key].as_str().ok_or_else(|| format!("`{key}` of `{}` is missing", self.kind))
    }
}

/// One thread, read so far.
struct Thread {
    file: String,
    name: String,
    last_seq: Option<u64>,
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
        Self { file: file.to_owned(), name: name.to_owned(), last_seq: None, pending: None }
    }

    /// Says where records are missing.
    fn gap(&mut self, record: &Record<'_>) -> Option<String> {
        let (now, before) = (record.seq, self.last_seq.replace(record.seq)?);
        (now != before + 1).then(|| {
            format!("record {now} of thread `{}` follows {before}: the records in between are missing", self.name)
        })
    }

    /// Takes a record. `Ok(false)`: its type is not known.
    fn take(&mut self, record: &Record<'_>, report: &mut Replay, take: &mut Take<'_>) -> Result<bool, String> {
        match record.kind {
            "turn_start" => {
                self.flush(None, report, take);
                take(&self.name, Step::TurnStart, report);
            }
            "turn_finish" => {
                self.flush(None, report, take);
                take(&self.name, Step::TurnEnd, report);
            }
            "step_finish" => self.flush(record.payload["tokens"]["output_tokens"].as_u64(), report, take),
            "rule_fired" | "cognition_reasoning" | "cognition_out" | "tool_call_start" | "ttsr_injection" => {
                // An extension's answer in the model's place is not an attempt, and no rule watches it.
                if record.at.2 > 0 {
                    self.part(record, report, take)?;
                }
            }
            other => return Ok(EventKind::NAMES.contains(&other) || OTHERS.contains(&other)),
        }
        Ok(true)
    }

    /// A record that is part of an attempt.
    fn part(&mut self, record: &Record<'_>, report: &mut Replay, take: &mut Take<'_>) -> Result<(), String> {
        let begins = matches!(record.kind, "cognition_reasoning" | "cognition_out" | "rule_fired");
        let done = |pending: &Pending| {
            // An answer is over after its text: the provider restarted it, and the first is void.
            pending.at != record.at || (begins && pending.text.is_some())
        };
        if self.pending.as_ref().is_some_and(done) {
            self.flush(None, report, take);
        }
        let new = || Pending { line: record.line, at: record.at, ..Pending::default() };
        let pending = self.pending.get_or_insert_with(new);
        match record.kind {
            "rule_fired" => pending.fires.push(fired(record)?),
            "cognition_reasoning" => pending.thinking.push_str(record.text("text")?),
            "cognition_out" => {
                let whole = !record.payload["is_partial"].as_bool().unwrap_or(false);
                pending.text = Some((record.text("text")?.to_owned(), whole));
                pending.blocks = blocks(record, &pending.thinking)?;
            }
            "tool_call_start" => pending.calls.push(call(record)?),
            _ => pending.injected(record),
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
    fn injected(&mut self, record: &Record<'_>) {
        for one in record.payload["records"].as_array().into_iter().flatten() {
            let Some(count) = one["tokens_discarded"].as_u64() else { continue };
            let tokens = Tokens { count, estimated: one["tokens_estimated"].as_bool().unwrap_or(true) };
            let rule = one["rule"].as_str().unwrap_or_default();
            if let Some(fire) = self.fires.iter_mut().find(|fire| fire.rule == rule) {
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

fn fired(record: &Record<'_>) -> Result<PastFire, String> {
    let word = record.text("stream")?;
    let stream = StreamKind::read(word, || named_call(record)).ok_or_else(|| format!("`{word}` is not a stream"))??;
    Ok(PastFire {
        rule: record.text("rule")?.to_owned(),
        stream,
        action: record.text("action")?.to_owned(),
        end: record.payload["evidence"]["end"].as_u64(),
        tokens: None,
    })
}

/// The id and the tool of the call that a record is about.
fn named_call(record: &Record<'_>) -> Result<(CallId, String), String> {
    Ok((CallId::new(record.text("call_id")?), record.text("tool")?.to_owned()))
}

/// A call that was run.
fn call(record: &Record<'_>) -> Result<Piece, String> {
    let input = record.payload.get("input").ok_or("`input` of `tool_call_start` is missing")?;
    // Arguments that are not an object are kept unchanged.
    let raw = input.as_object().filter(|input| input.len() == 1).and_then(|input| input.get("raw")?.as_str());
    let text = raw.map_or_else(|| input.to_string(), str::to_owned);
    let (call, name) = named_call(record)?;
    let kind = StreamKind::Tool { call, name };
    Ok(Piece { kind, text, kept: 0, complete: true })
}

/// The blocks of an answer, as its record lists them: text and thinking by their bytes, calls with their arguments.
fn blocks(record: &Record<'_>, thinking: &str) -> Result<Option<Vec<Piece>>, String> {
    let Some(list) = record.payload.get("blocks") else { return Ok(None) };
    let wrong = || "`blocks` of `cognition_out` does not match its text".to_owned();
    let (mut text, mut thinking) = (record.text("text")?, thinking);
    let mut pieces = Vec::new();
    for block in list.as_array().ok_or_else(wrong)? {
        let complete = block["complete"].as_bool().ok_or_else(wrong)?;
        let cut = |from: &mut &str| {
            let bytes = block["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok())?;
            let (piece, rest) = from.split_at_checked(bytes)?;
            *from = rest;
            Some(piece.to_owned())
        };
        let word = |key: &str| block[key].as_str().map(str::to_owned).ok_or_else(wrong);
        let call = || Ok::<_, String>((CallId::new(word("call_id")?), word("tool")?));
        let kind = StreamKind::read(&word("stream")?, call).ok_or_else(wrong)??;
        let text = match &kind {
            StreamKind::Text => cut(&mut text),
            StreamKind::Thinking => cut(&mut thinking),
            StreamKind::Tool { .. } => Some(word("arguments")?),
        };
        let kept = block["prefix_bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        pieces.push(Piece { kind, text: text.ok_or_else(wrong)?, kept, complete });
    }
    Ok(Some(pieces))
}
