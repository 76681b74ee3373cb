//! `tidegate state`: what plugins keep for sessions.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tidegate::config::StatePlace;
use tidegate::plugin::PluginSummary;
use tidegate::state::{SessionSummary, ShownSession, StateAdmin, StateEntry, StateLifetime, swept_state};
use tidegate::{Host, Operator, PluginId, SessionId};

use crate::args::{Common, StateCommand};
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::screen::table::{self, Cell};
use crate::{open, say, screen, style};

/// The longest id of a session, in bytes.
const MAX_ID: usize = 128;
/// Characters of a value that `show` prints.
const SHOWN: usize = 60;

/// Runs one of the commands.
pub(crate) async fn run(common: &Common, command: StateCommand) -> Result<Exit, Failure> {
    let mut operator = open::operator(common)?;
    keep(&mut operator);
    if operator.state.place == StatePlace::Memory {
        return Err(Failure::setup(
            "`backend = \"memory\"` under `[state]` keeps nothing after the program ends; set `disk` or `redis`",
        ));
    }
    let admin = Host::builder(operator).state_admin()?;
    match command {
        StateCommand::List { json } => list(&*admin, json).await,
        StateCommand::Show { session, json } => show(&*admin, &session_id(&session)?, json).await,
        StateCommand::Clear { session, of } => clear(&*admin, &session_id(&session)?, of.as_deref()).await,
    }
}

/// State is kept on disk where the operator has not decided: these commands are about sessions that outlive the program.
pub(crate) fn keep(operator: &mut Operator) {
    if operator.state.place == StatePlace::Unset {
        operator.state.place = StatePlace::Disk(None);
    }
}

/// Checks the id of a session.
pub(crate) fn session_id(text: &str) -> Result<SessionId, Failure> {
    let wrong = if text.trim().is_empty() {
        "is empty"
    } else if text.len() > MAX_ID {
        "is longer than 128 bytes"
    } else if text.chars().any(char::is_control) {
        "contains a control character"
    } else {
        return Ok(SessionId::new(text));
    };
    Err(Failure::setup(format_args!("the id of the session {wrong}")))
}

/// JSON: `{"sessions": [{"session", "last_turn_ms", "expires_ms", "open_in", "plugins": [{"id", "keys", "bytes",
/// "state_version", "absent_since_ms"}]}], "problems": ["…"]}`; times are milliseconds since 1970.
async fn list(admin: &dyn StateAdmin, json: bool) -> Result<Exit, Failure> {
    // Expired sessions are invisible; this frees what they occupy.
    let swept = admin.remove_expired().await;
    let list = admin.sessions().await.map_err(Failure::late)?;
    if let Some(line) = swept.as_ref().ok().and_then(|swept| swept_state(*swept)) {
        say::note(format_args!("note: {line}"));
    }
    let problems: Vec<String> = list.problems.iter().chain(swept.as_ref().err()).map(ToString::to_string).collect();
    if json {
        let sessions: Vec<Value> = list.sessions.iter().map(summary).collect();
        screen::json(&json!({"sessions": sessions, "problems": problems}))?;
    } else {
        if !list.sessions.is_empty() || problems.is_empty() {
            text(&list.sessions)?;
        }
        problems.iter().for_each(|problem| say::note(format_args!("warning: {problem}")));
    }
    Ok(if problems.is_empty() { Exit::Completed } else { Exit::Failed })
}

fn summary(one: &SessionSummary) -> Value {
    let plugin = |plugin: &PluginSummary| json!({"id": plugin.plugin.as_str(), "keys": plugin.keys, "bytes": plugin.bytes, "state_version": plugin.version, "absent_since_ms": plugin.absent_since_ms});
    json!({
        "session": one.session.as_str(),
        "last_turn_ms": one.active_ms,
        "expires_ms": one.expires_ms,
        "open_in": one.owner,
        "plugins": one.plugins.iter().map(plugin).collect::<Vec<_>>(),
    })
}

fn text(sessions: &[SessionSummary]) -> std::io::Result<()> {
    let mut out = screen::out();
    if sessions.is_empty() {
        writeln!(out, "no session has stored state; plugins keep it in the sessions of `tidegate run`")?;
        return out.flush();
    }
    let now = now_ms();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for one in sessions {
        let expires = format!("in {}", span(one.expires_ms.saturating_sub(now)));
        let open = one.owner.clone().unwrap_or_default();
        let last = format!("{} ago", span(now.saturating_sub(one.active_ms)));
        let row = |plugin: String, keys: u64, bytes: u64, version: Option<u32>| {
            let session = Cell(one.session.as_str().to_owned(), style::STRONG);
            let version = version.map_or_else(|| "-".to_owned(), |version| version.to_string());
            let cells = [plugin, keys.to_string(), format!("{bytes} B"), version];
            let times = [&last, &expires, &open].map(String::clone);
            std::iter::once(session).chain(cells.into_iter().chain(times).map(Cell::from)).collect()
        };
        if one.plugins.is_empty() {
            rows.push(row("-".to_owned(), 0, 0, None));
        }
        let name = |of: &PluginSummary| match of.absent_since_ms {
            Some(since) => format!("{} (not configured for {})", of.plugin, span(now.saturating_sub(since))),
            None => of.plugin.to_string(),
        };
        rows.extend(one.plugins.iter().map(|of| row(name(of), of.keys, of.bytes, of.version)));
    }
    let head = ["SESSION", "PLUGIN", "KEYS", "SIZE", "STATE VERSION", "LAST TURN", "EXPIRES", "OPEN IN"];
    for line in table::lines(&head, &rows) {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// JSON: the session as `state list` has it, each plugin with `"entries": [{"key", "text" or "bytes", "expires_ms"}]`; a value
/// that is not UTF-8 is a list of bytes.
async fn show(admin: &dyn StateAdmin, session: &SessionId, json: bool) -> Result<Exit, Failure> {
    let Some(shown) = admin.show(session).await.map_err(Failure::late)? else {
        return Err(Failure::late(format_args!(
            "nothing is stored for the session `{}`; `tidegate state list` prints the sessions",
            flat(session.as_str())
        )));
    };
    if json {
        screen::json(&shown_json(&shown))?;
        return Ok(Exit::Completed);
    }
    let mut out = screen::out();
    for (plugin, state) in &shown.states {
        let keys = say::count(state.entries.len() as u64, "key", "keys");
        let version = state.version.map(|version| format!(", state_version {version}")).unwrap_or_default();
        writeln!(out, "{}  {keys}{version}", style::out(style::STRONG, plugin.as_str()))?;
        for entry in &state.entries {
            writeln!(out, "  {}  {}  ({})", flat(&entry.key), value(entry), kept(entry))?;
        }
    }
    out.flush()?;
    Ok(Exit::Completed)
}

fn shown_json(shown: &ShownSession) -> Value {
    let entry = |entry: &StateEntry| {
        let mut object = json!({"key": entry.key, "expires_ms": entry.expires_ms});
        match std::str::from_utf8(&entry.value) {
            Ok(text) => object["text"] = text.into(),
            Err(_) => object["bytes"] = entry.value.to_vec().into(),
        }
        object
    };
    let mut object = summary(&shown.summary);
    let plugins = shown.states.iter().map(|(plugin, state)| {
        let entries: Vec<Value> = state.entries.iter().map(entry).collect();
        json!({"id": plugin.as_str(), "state_version": state.version, "entries": entries})
    });
    object["plugins"] = plugins.collect();
    object
}

/// The start of a value, where it is text.
fn value(entry: &StateEntry) -> String {
    let Ok(text) = std::str::from_utf8(&entry.value) else { return format!("{} bytes", entry.value.len()) };
    let start: String = text.chars().take(SHOWN).collect();
    let cut = if start.len() < text.len() { "…" } else { "" };
    format!("{}{cut}", flat(&start))
}

fn kept(entry: &StateEntry) -> String {
    match (entry.lifetime, entry.expires_ms) {
        (StateLifetime::Session, _) | (_, None) => "kept with the session".to_owned(),
        (_, Some(at)) => format!("expires in {}", span(at.saturating_sub(now_ms()))),
    }
}

async fn clear(admin: &dyn StateAdmin, session: &SessionId, of: Option<&str>) -> Result<Exit, Failure> {
    let plugin = of.map(str::parse::<PluginId>).transpose();
    let plugin = plugin.map_err(|error| Failure::setup(format_args!("--of: {error}")))?;
    let id = flat(session.as_str());
    if let Some(plugin) = &plugin {
        known(admin, session, plugin).await?;
    }
    let cleared = admin.clear(session, plugin.as_ref()).await.map_err(Failure::late)?;
    if !cleared {
        return Err(Failure::late(format_args!("nothing is stored for the session `{id}`")));
    }
    say::note(match &plugin {
        Some(plugin) => format!("deleted the state of {plugin} in the session `{id}`"),
        None => format!("deleted the state of the session `{id}`"),
    });
    Ok(Exit::Completed)
}

/// Refuses a plugin that keeps nothing in the session: its id is probably misspelt.
async fn known(admin: &dyn StateAdmin, session: &SessionId, plugin: &PluginId) -> Result<(), Failure> {
    // What cannot be read can still be cleared.
    let Ok(Some(shown)) = admin.show(session).await else { return Ok(()) };
    let ids: Vec<&str> = shown.states.iter().map(|(id, _)| id.as_str()).collect();
    if ids.contains(&plugin.as_str()) {
        return Ok(());
    }
    let has = if ids.is_empty() { "no plugin does".to_owned() } else { format!("these do: {}", ids.join(", ")) };
    Err(Failure::late(format_args!("{plugin} keeps nothing in the session `{}`; {has}", flat(session.as_str()))))
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time in its largest unit.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
