//! What rules would have done in old sessions: recordings of wire bytes (`--record`) and transcripts
//! (`transcript.jsonl` of a session, `--output stream-json`), compared with what was done then.
//!
//! Each attempt goes through [`rules::RuleSession`] and [`rules::Gate`] as in a turn: repeat policies, gaps, budgets and the
//! ends of turns count. The recorded text is fixed: where a rule stops an answer now that continued then, the rest of
//! that answer is ignored, and the session continues with the next answer. A rule with `context = "rewind"` is
//! evaluated again on the kept prefix of a stopped answer.
//!
//! A recording contains the fired rules since version 2 of its format; without them nothing is compared. Where a turn
//! ended it does not say: a turn is over when an answer asks for no tool and no reminder comes after it.

mod attempt;
mod drive;
mod hidden;
mod lines;
mod rebuild;
mod recording;
mod report;
mod transcript;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::ToolSpec;
use providers::RecordingError;
use rules::{Bucket, Rule, RuleAction, RuleSet, RuleState};

use super::{Catalogue, Subject, changed};
use attempt::Step;
use drive::Driver;
use lines::Lines;
pub use report::{Agreement, Fire, Replay, RuleTally, Then, Tokens, Where};

/// Which rules are replayed, and how.
#[derive(Clone, Debug)]
pub struct Trial {
    set: Arc<RuleSet>,
    /// Not all rules of the host: what other rules did then is left out.
    partial: bool,
    /// Nothing stops an answer and nothing is used up.
    every: bool,
    /// `None`: as the transcript says.
    agent: Option<String>,
    specs: Arc<[ToolSpec]>,
    /// By number of the turn, from 1: the rules were edited before it.
    edited: Vec<(u64, Arc<RuleSet>)>,
}

/// A file cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file is a recording that cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A transcript, or a file that is neither.
    #[error(transparent)]
    Line(#[from] BadLine),
}

/// A file, or a line of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {message}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct BadLine {
    /// The path of the transcript.
    pub path: PathBuf,
    /// The line, from 1, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl Trial {
    /// All rules of the host, or where there are any only `chosen`, as the agent of this name, or else of the one that a transcript names:
    /// `main` where it names none. `every`: each block in
    /// which a rule matches counts, whatever was injected before; nothing interrupts.
    pub fn new(catalogue: &Catalogue, chosen: &[Subject], agent: Option<&str>, every: bool) -> Self {
        let partial = !chosen.is_empty();
        let mut settings = catalogue.settings().clone();
        let mut used: Vec<Rule> = if partial {
            // Asked for by name: a rule that is switched off is tried all the same.
            settings.enabled = true;
            settings.builtin_rules = true;
            settings.disabled_rules.clear();
            chosen.iter().map(|subject| changed(&subject.entry.rule, |rule| rule.enabled = true)).collect()
        } else {
            catalogue
                .set()
                .rules()
                .filter(|info| *info.state == RuleState::Active)
                .map(|info| info.rule.clone())
                .collect()
        };
        if every {
            for rule in &mut used {
                (rule.repeat, rule.action) = (Some(rules::RepeatMode::Always), Some(RuleAction::Remind));
            }
        }
        let (set, _) = RuleSet::build(used, settings, catalogue.set().workspace());
        let agent = agent.map(str::to_owned);
        Self { set, partial, every, agent, specs: Arc::clone(catalogue.specs()), edited: Vec::new() }
    }

    /// The rules of a session as it had them, with the tools that it had.
    pub fn of_session(set: Arc<RuleSet>, specs: Vec<ToolSpec>) -> Self {
        Self { set, partial: false, every: false, agent: None, specs: specs.into(), edited: Vec::new() }
    }

    /// The rules were edited before this turn of the session, counted from 1.
    #[must_use]
    pub fn edited_before(mut self, turn: u64, set: Arc<RuleSet>) -> Self {
        self.edited.push((turn, set));
        self
    }
}

impl Trial {
    /// Why some of the rules cannot fire on anything.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for info in self.set.rules().filter(|_| self.partial) {
            if info.rule.bucket != Bucket::Stream {
                notes.push(format!("rule `{}` has no condition, so it never fires", info.rule.name));
            } else if let RuleState::Unreachable(why) | RuleState::Shadowed(why) = info.state {
                notes.push(format!("rule `{}` is not used: {why}", info.rule.name));
            }
        }
        let active = |info: rules::RuleInfo<'_>| *info.state == RuleState::Active && info.rule.bucket == Bucket::Stream;
        if !self.set.rules().any(active) {
            notes.push("no rule is active: stream rules are disabled, or there are none".to_owned());
        }
        notes
    }
}

/// Replays files, each from its beginning; sessions in them share nothing.
///
/// # Errors
/// A file cannot be read, is neither a recording nor a transcript, or has a line that is wrong. Nothing is passed over:
/// an incomplete last line of a killed program is reported in the notes.
pub fn replay(trial: &Trial, files: &[PathBuf]) -> Result<Replay, ReplayError> {
    let mut report = Replay::new(trial);
    report.notes = trial.notes();
    for file in files {
        report.files += 1;
        one(trial, file, &mut report)?;
    }
    Ok(report.finish())
}

fn one(trial: &Trial, file: &Path, report: &mut Replay) -> Result<(), ReplayError> {
    let mut threads: HashMap<String, Driver<'_>> = HashMap::new();
    let mut take = |thread: &str, step: Step, report: &mut Replay| {
        let driver = threads.entry(thread.to_owned()).or_insert_with(|| Driver::new(trial));
        driver.take(step, report);
    };
    if lines::is_recording(file)? {
        return Ok(recording::read(file, report, &mut take)?);
    }
    Ok(transcript::read(Lines::open(file)?, report, &mut take)?)
}
