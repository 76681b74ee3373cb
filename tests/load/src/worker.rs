//! One session: turns whose output, events and state are checked; it is closed and opened again from time to time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tidegate::event::{CallbackOutcome, CallbackReport};
use tidegate::plugin::CallbackKind;
use tidegate::{Event, EventKind, HostError, Session, SessionId, TurnStatus};

use crate::place::Place;
use crate::plan::Plan;
use crate::recorded::Recorded;
use crate::tally::{CANARY, Count, Tally};

/// Turns that a session has at least, however busy the machine is.
const LEAST: u64 = 3;
/// Turns until the session is closed and opened again. Without that, its conversation would grow without end.
const TURNS: u64 = 20;
/// What a turn says on a busy machine of changes that it does not wait for: they are there in a later turn.
const SLOW: [&str; 2] = ["loading changed plugins takes more than", "reading the rule folders took more than"];
/// How long a session waits for a server that restarts.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a session did, and what is therefore stored.
pub(crate) struct Done {
    pub(crate) id: SessionId,
    pub(crate) canary: String,
    /// The turns that the plugin has counted, as far as a text showed it.
    pub(crate) counted: u64,
    /// Later turns whose texts did not show it, because a callback of them failed: each may have been counted before that.
    pub(crate) unseen: u64,
}

impl Done {
    /// Returns whether the plugin can have counted this many turns, of which `more` are later than the last text.
    pub(crate) fn agrees(&self, turns: u64, more: u64) -> bool {
        (self.counted + more..=self.counted + more + self.unseen).contains(&turns)
    }
}

struct Worker {
    done: Done,
    tally: Arc<Tally>,
    texts: [String; 3],
    /// Turns that began with other versions of plugins than the turn before.
    renewed: u64,
    /// The last turn reported that its state is not saved. A later turn saves it, as long as the session is open.
    is_unsaved: bool,
}

/// Runs a session until `end`, and where plugins are reloaded, until it has seen that.
pub(crate) async fn work(number: u32, plan: Plan, place: Arc<Place>, tally: Arc<Tally>, end: Instant) -> Result<Done> {
    let canary = format!("{CANARY}{number}-of-{}.", number.wrapping_mul(2_654_435_761));
    let texts = texts(&canary);
    let done = Done { id: SessionId::new(format!("load-{number}")), canary, counted: 0, unseen: 0 };
    let mut worker = Worker { done, tally, texts, renewed: 0, is_unsaved: false };
    let mut turns = 0;
    let is_over = |turns, worker: &Worker| {
        let has_renewed = plan.reload.is_none() || worker.renewed > 0;
        turns >= LEAST && Instant::now() >= end && has_renewed && !worker.is_unsaved
    };
    while !is_over(turns, &worker) {
        let session = worker.open(&place).await?;
        let first = turns;
        while turns < first + TURNS || worker.is_unsaved {
            worker.turn(&session).await?;
            turns += 1;
            if is_over(turns, &worker) {
                break;
            }
        }
        session.close();
        session.closed().await;
    }
    Ok(worker.done)
}

/// The answers of a session: what plugins keep, show and redact, and one that a rule interrupts.
fn texts(canary: &str) -> [String; 3] {
    let plain = format!(
        "Some words, and password = \"hunter2hunter2\" among them.\n<note>mine is {canary}</note>\n\
         own:\n!state-get own\n:own\nturns:\n!state-add turns 1\n:turns\nThe end.\n"
    );
    let fenced = format!("```rust\nfn main() {{}} // <note>not a note</note>\n```\n{plain}");
    let stopped = format!("Now, as an AI language model, I have no wishes.\n{plain}");
    [plain, fenced, stopped]
}

impl Worker {
    async fn open(&self, place: &Place) -> Result<Session> {
        let began = Instant::now();
        loop {
            let model = Recorded::new(&self.done.canary, &self.texts, Arc::clone(&self.tally));
            match place.session(&self.done.id, model).await {
                Ok(session) => {
                    self.tally.add(Count::Opened);
                    return Ok(session);
                }
                Err(HostError::State(error)) if began.elapsed() < PATIENCE && self.tally.outage().1 > 0 => {
                    // Away, or just back with the lease of a session whose end it did not hear of.
                    tracing::debug!("{error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => bail!("the session {} cannot be opened: {error}", self.done.id),
            }
        }
    }

    async fn turn(&mut self, session: &Session) -> Result<()> {
        let before = self.tally.outage();
        let mut turn =
            session.prompt(format!("!state-must-set own {}\nGo on with {}", self.done.canary, self.done.canary));
        let mut events = Vec::new();
        while let Some(event) = turn.next().await {
            events.push(event);
        }
        let report = turn.report().await;
        let after = self.tally.outage();
        let disturbed = before.0 || before != after;
        self.tally.add(Count::Turn);
        if report.status != TurnStatus::Completed {
            self.tally.problem(format!("a turn ended as {:?}", report.status));
        }
        self.tally.look_for_secrets("the output", &report.text, &self.done.canary);
        let without_state = self.check_events(&events, disturbed);
        self.check_text(&report.text, without_state);
        Ok(())
    }

    /// What the plugin has kept is what it shows.
    fn check_text(&mut self, text: &str, without_state: bool) {
        let part = |name: &str| {
            let (_, rest) = text.split_once(&format!("{name}:\n"))?;
            rest.split_once(&format!(":{name}\n")).map(|(part, _)| part.to_owned())
        };
        let own = part("own") == Some(format!("Some({:?})", self.done.canary));
        let turns = part("turns").and_then(|turns| turns.parse().ok());
        let seen = turns.filter(|turns| self.done.agrees(*turns, 1));
        match seen {
            Some(turns) => (self.done.counted, self.done.unseen) = (turns, 0),
            None => self.done.unseen += 1,
        }
        if !(own && seen.is_some() || without_state) {
            let Done { id, counted, unseen, .. } = &self.done;
            let kept = if own { "its own" } else { "another or none" };
            self.tally.problem(format!(
                "{id}: the value is {kept}, {turns:?} turns are shown after {counted} (and up to {unseen})"
            ));
        }
        if text.contains("hunter2") && !without_state {
            self.tally.problem("a password was shown".to_owned());
        }
    }

    /// Returns whether a callback could not be called because the state could not be read.
    fn check_events(&mut self, events: &[Event], disturbed: bool) -> bool {
        let mut without_state = false;
        self.is_unsaved = false;
        for event in events {
            self.tally.look_for_secrets("an event", &format!("{:?}", event.kind), &self.done.canary);
            match &event.kind {
                EventKind::ExtensionCallback(report) => without_state |= self.check_report(report, disturbed),
                EventKind::ExtensionRegistered { .. } if event.place.turn > 1 => {
                    self.renewed += 1;
                    self.tally.add(Count::Renewed);
                }
                EventKind::RuleFired { .. } => self.tally.add(Count::Discarded),
                EventKind::Notice { message } if message.contains("is not saved") && disturbed => {
                    self.is_unsaved = true;
                    self.tally.add(Count::Unsaved);
                }
                EventKind::Notice { message } if SLOW.iter().any(|slow| message.starts_with(slow)) => {
                    self.tally.add(Count::Late);
                }
                EventKind::Notice { message } => self.tally.problem(format!("a notice: {message}")),
                EventKind::ExtensionWithheld { .. } if disturbed => {}
                // A breaker that opened in an outage, as in `check_report`.
                EventKind::ExtensionWithheld { reason, .. }
                    if self.tally.is_recovering() && reason.contains("tried again in") => {}
                EventKind::ExtensionWithheld { plugin, reason, .. } => {
                    self.tally.problem(format!("{plugin} withheld something: {reason}"));
                }
                _ => {}
            }
        }
        without_state
    }

    fn check_report(&self, report: &CallbackReport, disturbed: bool) -> bool {
        let CallbackReport { plugin, callback, outcome, .. } = report;
        match outcome {
            CallbackOutcome::Passed | CallbackOutcome::Changed => self.tally.add(Count::Callback),
            CallbackOutcome::Skipped(why) if is_unused(why, *callback) => {}
            // A breaker that opened in an outage stays open for a while after it. What opened it was a failure, which is judged by itself.
            CallbackOutcome::NotPermitted(_) if self.tally.is_recovering() => {
                self.tally.add(Count::WithoutState);
                return true;
            }
            // Without its state an instance that is new cannot be called.
            CallbackOutcome::Failed(_) if disturbed => {
                self.tally.add(Count::WithoutState);
                return true;
            }
            other => self.tally.problem(format!("{callback:?} of {plugin}: {other:?}")),
        }
        false
    }
}

/// The callback had nothing to do in the turn.
fn is_unused(why: &str, callback: CallbackKind) -> bool {
    match callback {
        CallbackKind::Tag => why.contains("there was no tag") || why.contains("replaced the section"),
        CallbackKind::TtsrTriggered => why == "no stream rule fired",
        CallbackKind::ToolCall => why == "the model called no tool",
        CallbackKind::ToolResult => why == "no call of a tool has run",
        CallbackKind::InputMessages | CallbackKind::PlainText | CallbackKind::LlmOutput => false,
    }
}
