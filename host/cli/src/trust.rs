//! `tidegate trust`, and the question whether the `tidegate.toml` of a workspace counts.

use std::io::Write as _;

use serde_json::{Value, json};
use tidegate::diagnostic::DiagnosticCode;
use tidegate::question::Preview;
use tidegate::trust::{SettingsReader, TrustRecord, TrustStore, WorkspaceSettings};

use crate::args::{Common, Trust};
use crate::ask::page::{self, Page};
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::screen::table::{self, Cell};
use crate::screen::terminal;
use crate::state::{now_ms, span};
use crate::{ask, open, print, say, screen, style};

/// What asks, as questions about tools name theirs.
const TITLE: &str = "tidegate.toml of this workspace";

/// The columns of what is not a terminal.
const UNWRAPPED: usize = 4_096;

/// Why it is asked about.
const REASON: &str = "it counts when you trust it: it came with the folder, and asks for more than a project decides";

/// The ways to go on.
const HELP: &str = "help: read it; then `tidegate trust` trusts it as it is now, or `--trust-workspace` lets it count in one run, for scripts; \
                    `--config FILE` uses another file in its place";

/// The settings of sessions in the workspace. Where its file is not trusted, the person at the terminal is asked.
///
/// # Errors
/// There is no terminal, or the answer is no: nothing may run.
pub(crate) async fn decided(common: &Common) -> Result<WorkspaceSettings, Failure> {
    let settings = open::reader(common).read(&common.workspace)?;
    open::note_other_file(common, &settings);
    let (Some(request), Some(preview)) = (settings.request(), settings.preview()) else { return Ok(settings) };
    if !terminal::is_interactive() {
        return Err(refused(&settings, &preview));
    }
    if !request.is_readable() {
        let file = shown_file(&settings);
        return Err(untrusted(format_args!("{file} is too long to be read in a question, so nothing was run\n{HELP}")));
    }
    let question = style::err(style::STRONG, "Trust it?");
    let prompt = format!("{question} [y: yes, i: go on without it, n: no] ");
    let answer = ask::about(&page_of(&settings, &preview), "stop", &prompt).await;
    match answer.as_deref() {
        Some("y" | "yes") => settings.trust().map_err(|error| untrusted(format_args!("{error}, so nothing was run"))),
        Some("i" | "ignore") => Ok(settings.without()),
        _ => Err(untrusted(format_args!("{} is not trusted, so nothing was run\n{HELP}", shown_file(&settings)))),
    }
}

/// Says that the file of the workspace is not used, where that is so.
pub(crate) fn note(settings: &WorkspaceSettings) {
    if let Some(request) = settings.request() {
        let keys: Vec<&str> = request.keys.iter().map(|key| key.name.as_str()).collect();
        say::note(format_args!(
            "note: {} is not trusted, and is not used: it asks for {}; `tidegate trust` shows and trusts it",
            shown_file(settings),
            flat(&keys.join(", "))
        ));
    }
}

fn shown_file(settings: &WorkspaceSettings) -> String {
    let file = settings.request().map(|request| request.file.display().to_string());
    print::tidy_path(&file.unwrap_or_default())
}

fn page_of<'p>(settings: &WorkspaceSettings, preview: &'p Preview) -> Page<'p> {
    let file = settings.request().map(|request| request.file.canonicalize().unwrap_or_else(|_| request.file.clone()));
    Page {
        tool: TITLE,
        reason: REASON,
        origin: file.map(|file| file.display().to_string()).unwrap_or_default(),
        notes: preview.notes.clone(),
        arguments: preview.arguments.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect(),
        diff: preview.diff.as_deref(),
    }
}

/// Lines that go to a file are not wrapped.
fn columns() -> usize {
    screen::note_columns().unwrap_or(UNWRAPPED)
}

/// The refusal where nobody can be asked.
fn refused(settings: &WorkspaceSettings, preview: &Preview) -> Failure {
    let file = shown_file(settings);
    let is_readable = settings.request().is_some_and(tidegate::trust::TrustRequest::is_readable);
    let asks = if is_readable {
        let rows = page::lines(&page_of(settings, preview), columns());
        rows.into_iter().skip(1).collect::<Vec<_>>().join("\n")
    } else {
        "  it is too long to be shown here".to_owned()
    };
    untrusted(format_args!("{file} is not trusted, so nothing was run\n{asks}\n{HELP}"))
}

fn untrusted(message: impl std::fmt::Display) -> Failure {
    Failure::setup(message).coded(Some(DiagnosticCode::ConfigUntrusted))
}

/// Runs the command.
pub(crate) fn run(common: &Common, args: &Trust) -> Result<Exit, Failure> {
    if args.list {
        return list(args.json);
    }
    if common.config.is_some() {
        return Err(Failure::setup("a file that is named with --config needs no trust: leave the flag out"));
    }
    if args.revoke {
        return revoke(common);
    }
    let settings = SettingsReader::new().read(&common.workspace)?;
    let mut out = screen::out();
    let Some(preview) = settings.preview() else {
        let what = if settings.has_own_file() {
            "the workspace's tidegate.toml counts already: there is nothing to decide"
        } else {
            "the workspace has no tidegate.toml: there is nothing to trust"
        };
        writeln!(out, "{what}")?;
        out.flush()?;
        return Ok(Exit::Completed);
    };
    page::lines(&page_of(&settings, &preview), columns()).iter().for_each(say::note);
    let file = shown_file(&settings);
    settings.trust().map_err(|error| Failure::setup(format_args!("{file} is not trusted: {error}")))?;
    writeln!(out, "{file} is trusted as it is now; `tidegate trust --revoke` ends that")?;
    out.flush()?;
    Ok(Exit::Completed)
}

fn revoke(common: &Common) -> Result<Exit, Failure> {
    let was = TrustStore::new().revoke(&common.workspace).map_err(Failure::setup)?;
    let mut out = screen::out();
    writeln!(out, "{}", if was { "the workspace is not trusted any more" } else { "the workspace was not trusted" })?;
    out.flush()?;
    Ok(Exit::Completed)
}

/// JSON: `{"workspaces": [{"workspace", "state", "decided_ms"}], "problems": ["…"]}`; states: `trusted`, `changed`, `gone` (the workspace has no
/// file any more), `unreadable`.
fn list(json: bool) -> Result<Exit, Failure> {
    let (records, problems) = TrustStore::new().list().map_err(Failure::setup)?;
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    if json {
        let one = |record: &TrustRecord| {
            let workspace = record.workspace.display().to_string();
            json!({"workspace": workspace, "state": state(record), "decided_ms": record.decided_ms})
        };
        let workspaces: Vec<Value> = records.iter().map(one).collect();
        screen::json(&json!({"workspaces": workspaces, "problems": problems}))?;
    } else {
        text(&records)?;
        problems.iter().for_each(|problem| say::note(format_args!("warning: {problem}")));
    }
    Ok(if problems.is_empty() { Exit::Completed } else { Exit::Failed })
}

fn text(records: &[TrustRecord]) -> std::io::Result<()> {
    let mut out = screen::out();
    if records.is_empty() {
        writeln!(out, "no workspace is trusted")?;
        return out.flush();
    }
    let row = |record: &TrustRecord| {
        let workspace = Cell(flat(&record.workspace.display().to_string()), style::STRONG);
        let decided = format!("{} ago", span(now_ms().saturating_sub(record.decided_ms)));
        vec![workspace, Cell::from(state(record)), Cell::from(decided)]
    };
    let rows: Vec<Vec<Cell>> = records.iter().map(row).collect();
    for line in table::lines(&["WORKSPACE", "STATE", "DECIDED"], &rows) {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn state(record: &TrustRecord) -> &'static str {
    match SettingsReader::new().read(&record.workspace) {
        Err(_) => "unreadable",
        Ok(settings) if settings.request().is_some() => "changed",
        Ok(settings) if settings.has_own_file() => "trusted",
        Ok(_) => "gone",
    }
}
