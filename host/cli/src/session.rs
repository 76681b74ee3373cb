//! `tidegate session`: recorded sessions.

pub(crate) mod choices;
mod decide;
mod export;
mod rules;
mod view;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate::config::StatePlace;
use tidegate::transcript::{
    ForkedState, Rebuild, TranscriptError, TranscriptStore, TranscriptSummary, UnreadableTranscript, last_finished_turn,
};
use tidegate::{Host, Operator, PluginId, SessionId, new_session_id, record};

pub(crate) use self::export::{explain, export, export_format};
use crate::args::{Common, SessionCommand};
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::screen::table::{self, Cell};
use crate::state::{now_ms, span};
use crate::{open, say, screen, style};

/// Characters of a title that `list` prints.
const TITLE: usize = 60;

/// Runs one of the commands.
pub(crate) async fn run(common: &Common, command: SessionCommand) -> Result<Exit, Failure> {
    let store = store(open::operator(common)?)?;
    match command {
        SessionCommand::List { json, all } => list(&store, (!all).then_some(&common.workspace), json),
        SessionCommand::Show { session, rules: true, json, .. } => rules::show(&store, &store.find(&session)?, json),
        SessionCommand::Show { session, turn, json, .. } => show(&store, &store.find(&session)?, turn, json),
        SessionCommand::Follow { session, json } => follow(&store, &store.find(&session)?, json),
        SessionCommand::Export { session, format, output } => {
            export(&store, &store.find(&session)?, format, output.as_deref())
        }
        SessionCommand::Fork { session, turn, id } => fork(common, &store, &store.find(&session)?, turn, id).await,
        SessionCommand::Cancel { session, reason } => cancel(&store, &store.find(&session)?, reason),
        SessionCommand::Approve { session, max } => decide::approve(&store, &store.find(&session)?, max.as_deref()),
        SessionCommand::Deny { session, reason } => decide::deny(&store, &store.find(&session)?, reason),
        SessionCommand::Repair { session } => repair(&store, &store.find(&session)?),
        SessionCommand::Rm { sessions } => remove(common, &store, &sessions).await,
    }
}

/// Sessions are recorded unless the operator has decided otherwise.
pub(crate) fn keep(operator: &mut Operator) {
    operator.transcript.enabled.get_or_insert(true);
}

fn store(mut operator: Operator) -> Result<TranscriptStore, Failure> {
    keep(&mut operator);
    Host::builder(operator).transcripts()?.ok_or_else(|| {
        Failure::setup("`enabled = false` under `[transcript]` of the operator's file: sessions are not recorded")
    })
}

/// Says where a session comes from that belongs to another workspace: its tools work in this one from now on.
pub(crate) fn warn_of_workspace(store: &TranscriptStore, id: &SessionId, here: &Path) -> Result<(), Failure> {
    let session = store.summary(id)?;
    if let Some(workspace) = session.workspace.as_ref().filter(|_| !session.is_of(here)) {
        let workspace = flat(workspace);
        say::note(format_args!(
            "warning: the session was started in {workspace}; its tools work in this folder from now on"
        ));
    }
    Ok(())
}

/// JSON: `{"sessions": [{"session", "title", "workspace", "created_ms", "last_ms", "last_type", "records", "bytes", "open_in",
/// "parent", "spawned_by"}], "problems": ["…"]}`; times are milliseconds since 1970.
pub(crate) fn list(store: &TranscriptStore, workspace: Option<&PathBuf>, json: bool) -> Result<Exit, Failure> {
    let list = store.list()?;
    let problems: Vec<String> = list.problems.iter().map(ToString::to_string).collect();
    let here = |one: &&TranscriptSummary| workspace.is_none_or(|workspace| one.is_of(workspace));
    let sessions: Vec<&TranscriptSummary> = list.sessions.iter().filter(here).collect();
    if json {
        let sessions: Vec<Value> = sessions.into_iter().map(summary).collect();
        screen::json(&json!({"sessions": sessions, "problems": problems}))?;
    } else {
        let is_one_here = |one: &UnreadableTranscript| workspace.is_none_or(|workspace| one.may_be_of(workspace));
        text(&sessions, list.sessions.len(), list.unreadable.iter().any(is_one_here))?;
        problems.iter().for_each(|problem| say::note(format_args!("warning: {problem}")));
    }
    Ok(if problems.is_empty() { Exit::Completed } else { Exit::Failed })
}

fn summary(one: &TranscriptSummary) -> Value {
    json!({
        "session": one.id.as_str(),
        "title": one.title,
        "workspace": one.workspace,
        "created_ms": one.header.created_ms,
        "last_ms": one.last.as_ref().map(|last| last.at_ms),
        "last_type": one.last.as_ref().map(|last| &last.kind),
        "records": one.records,
        "bytes": one.bytes,
        "open_in": one.owner,
        "spawned_by": one.header.spawned_by.as_ref().map(|by| json!({"session": by.thread_id, "call": by.call_id, "agent": by.agent})),
        "parent": one.header.parent.as_ref().map(|parent| json!({"session": parent.thread_id, "turn": parent.turn})),
    })
}

/// What a session waits for, by its last record.
fn waits_for(one: &TranscriptSummary) -> Option<&'static str> {
    match one.last.as_ref()?.kind.as_str() {
        "thread_suspended" if one.owner.is_none() => Some("suspended"),
        "limit_escalation_requested" => Some("waits for a decision about a limit"),
        "tool_confirmation_requested" => Some("waits for an answer about a call"),
        _ => None,
    }
}

/// What is special about a session.
fn notes(one: &TranscriptSummary) -> Vec<String> {
    let notes = [
        one.owner.as_ref().map(|owner| format!("open in {owner}")),
        waits_for(one).map(str::to_owned),
        one.header.spawned_by.as_ref().map(|by| format!("agent {} of {}", by.agent, by.thread_id)),
        one.header.parent.as_ref().map(|parent| format!("fork of {} at turn {}", parent.thread_id, parent.turn)),
    ];
    notes.into_iter().flatten().collect()
}

/// `all`: how many sessions there are, also of other workspaces. `unreadable`: one that may be of this cannot be read.
fn text(sessions: &[&TranscriptSummary], all: usize, unreadable: bool) -> std::io::Result<()> {
    let mut out = screen::out();
    if sessions.is_empty() && unreadable {
        writeln!(out, "no session of this workspace can be read")?;
        return out.flush();
    }
    if sessions.is_empty() {
        let others = if all > 0 { "; `--all` lists those of other workspaces" } else { "" };
        writeln!(out, "no session of this workspace is recorded; `tidegate run` records each{others}")?;
        return out.flush();
    }
    let now = now_ms();
    let row = |one: &&TranscriptSummary| {
        let last = one.last.as_ref().map_or(one.header.created_ms, |last| last.at_ms);
        let title: String = one.title.as_deref().unwrap_or("-").chars().take(TITLE).collect();
        let notes = notes(one).join(", ");
        vec![
            Cell(one.id.as_str().to_owned(), style::STRONG),
            Cell::from(format!("{} ago", span(now.saturating_sub(last)))),
            Cell::from(one.records.to_string()),
            Cell::from(title),
            Cell::from(notes),
        ]
    };
    let rows: Vec<Vec<Cell>> = sessions.iter().map(row).collect();
    for line in table::lines(&["SESSION", "LAST RECORD", "RECORDS", "FIRST INPUT", ""], &rows) {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn show(store: &TranscriptStore, id: &SessionId, turn: Option<u32>, json: bool) -> Result<Exit, Failure> {
    let mut out = screen::out();
    let mut any = false;
    for entry in store.read(id)?.records::<record::Record>() {
        let record = entry?.record;
        if turn.is_some_and(|turn| record.turn != turn) {
            continue;
        }
        any = true;
        if json { screen::json(&as_json(&record)?)? } else { view::print(&mut out, &record)? }
    }
    if let (Some(turn), false) = (turn, any) {
        return Err(Failure::setup(format_args!("the session has no turn {turn}")));
    }
    out.flush()?;
    Ok(Exit::Completed)
}

fn follow(store: &TranscriptStore, id: &SessionId, json: bool) -> Result<Exit, Failure> {
    let mut out = screen::out();
    for entry in store.read(id)?.records::<record::Record>().follow(|| true) {
        let record = entry?.record;
        if json {
            screen::json(&as_json(&record)?)?;
        } else {
            view::print(&mut out, &record)?;
        }
        out.flush()?;
    }
    Ok(Exit::Completed)
}

fn as_json(record: &record::Record) -> Result<Value, Failure> {
    serde_json::to_value(record).map_err(Failure::late)
}

async fn fork(
    common: &Common,
    store: &TranscriptStore,
    id: &SessionId,
    turn: Option<u32>,
    child: Option<String>,
) -> Result<Exit, Failure> {
    warn_of_workspace(store, id, &common.workspace)?;
    let child = fork_of(common, store, id, turn, child).await?;
    let mut out = screen::out();
    writeln!(out, "{}", flat(child.as_str()))?;
    out.flush()?;
    say::note(format_args!("continue with `tidegate run --resume {}`", flat(child.as_str())));
    Ok(Exit::Completed)
}

/// Makes a session that continues another one from the end of a turn, by default the last.
pub(crate) async fn fork_of(
    common: &Common,
    store: &TranscriptStore,
    id: &SessionId,
    turn: Option<u32>,
    child: Option<String>,
) -> Result<SessionId, Failure> {
    let turn = match turn {
        Some(turn) => turn,
        None => last_turn(store, id)?,
    };
    let child = match child {
        Some(id) => crate::state::session_id(&id)?,
        None => new_session_id(),
    };
    let mut operator = open::operator(common)?;
    keep(&mut operator);
    crate::state::keep(&mut operator);
    let state = Host::builder(operator).fork(id, turn, &child).await?;
    say::note(format_args!("forked {} at the end of turn {turn}", flat(id.as_str())));
    note_state(&state, turn);
    Ok(child)
}

/// Says what the plugins of a fork begin with.
fn note_state(state: &ForkedState, turn: u32) {
    let listed = |plugins: &[PluginId]| plugins.iter().map(PluginId::as_str).collect::<Vec<_>>().join(", ");
    match state {
        ForkedState::Copied(plugins) => say::note(format_args!("the state of {} is copied", listed(plugins))),
        ForkedState::Unknown { latest, plugins } => say::note(format_args!(
            "warning: the fork begins without the state of {}: it is stored as turn {latest} has left it, and not as turn {turn} has",
            listed(plugins)
        )),
        // There is nothing to say.
        _ => {}
    }
}

/// The last turn that has finished.
fn last_turn(store: &TranscriptStore, id: &SessionId) -> Result<u32, Failure> {
    last_finished_turn(store, id)?
        .ok_or_else(|| Failure::setup("no turn of the session has finished: there is nothing to fork"))
}

fn cancel(store: &TranscriptStore, id: &SessionId, reason: Option<String>) -> Result<Exit, Failure> {
    let TranscriptSummary { owner, last, .. } = store.summary(id)?;
    let Some(owner) = owner else {
        return Err(Failure::late(format_args!("the session `{}` is not open: nothing runs in it", flat(id.as_str()))));
    };
    if last.is_none_or(|last| last.kind == "turn_finish") {
        return Err(Failure::late(format_args!("no turn runs in the session `{}`", flat(id.as_str()))));
    }
    decide::cancel(store, id, reason)?;
    say::note(format_args!("asked {} to cancel the turn", flat(&owner)));
    Ok(Exit::Completed)
}

fn repair(store: &TranscriptStore, id: &SessionId) -> Result<Exit, Failure> {
    let repair = store.repair(id, Rebuild::check)?;
    let mut out = screen::out();
    let kept = say::count(repair.kept, "record", "records");
    writeln!(
        out,
        "{}: {kept} kept, {} removed",
        flat(id.as_str()),
        say::count(repair.dropped.len() as u64, "line", "lines")
    )?;
    for line in &repair.dropped {
        writeln!(out, "  line {} is removed: {}", line.line, flat(&line.reason))?;
    }
    if let Some(copy) = &repair.copy {
        writeln!(out, "  the damaged file is kept as {}", flat(&copy.display().to_string()))?;
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// Removes transcripts, and what plugins keep in the sessions: a later session with the same id would find it.
async fn remove(common: &Common, store: &TranscriptStore, sessions: &[String]) -> Result<Exit, Failure> {
    let mut ids = sessions.iter().map(|session| store.find(session)).collect::<Result<Vec<_>, TranscriptError>>()?;
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.as_str().to_owned()));
    let mut out = screen::out();
    let mut exit = Exit::Completed;
    for id in ids {
        let workspaces = workspaces(common, store, &id);
        // The transcript first: one that is open, or that a fork continues, is refused, and keeps its state.
        store.remove(&id)?;
        let (name, mut had_state) = (flat(id.as_str()), false);
        for common in workspaces {
            match remove_state(&common, &id).await {
                Ok(had) => had_state |= had,
                Err(failure) => {
                    let (why, workspace) = (flat(&failure.into_line()), flat(&common.workspace.display().to_string()));
                    say::note(format_args!(
                        "warning: what plugins keep for the session `{name}` was not removed: {why}; `tidegate state clear {name} --workspace {workspace}` removes it"
                    ));
                    exit = Exit::Failed;
                }
            }
        }
        writeln!(out, "{name} is removed{}", if had_state { ", with the state of its plugins" } else { "" })?;
    }
    out.flush()?;
    Ok(exit)
}

/// The workspaces whose settings say where the state of a session may be: this one, and the one that the session was started in.
fn workspaces(common: &Common, store: &TranscriptStore, id: &SessionId) -> Vec<Common> {
    let mut workspaces = vec![common.clone()];
    // A damaged transcript can be removed, too; it may not say where its session was.
    let elsewhere = store.summary(id).ok().filter(|session| !session.is_of(&common.workspace));
    let elsewhere = elsewhere.and_then(|session| session.workspace).map(PathBuf::from);
    // With `--config` all workspaces have the same settings.
    if let (Some(workspace), None) = (elsewhere.filter(|workspace| workspace.is_dir()), &common.config) {
        workspaces.push(Common { workspace, ..common.clone() });
    }
    workspaces
}

/// Returns whether there was any.
async fn remove_state(common: &Common, id: &SessionId) -> Result<bool, Failure> {
    let mut operator = open::operator_quietly(common)?;
    crate::state::keep(&mut operator);
    // A store in memory is that of a program that has ended, or of one that has the session open.
    if operator.state.place == StatePlace::Memory {
        return Ok(false);
    }
    Host::builder(operator).state_admin()?.clear(id, None).await.map_err(Failure::late)
}
