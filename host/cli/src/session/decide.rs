//! `tidegate session approve` and `deny`: decisions about the limits of a session, for the process that has it open, or for the next one.

use serde_json::Value;
use tidegate::{SessionId, TranscriptStore, transcript};

use crate::exit::{Exit, Failure};
use crate::say;
use crate::screen::clean::flat;

/// Approves the open request, up to `max` or to what it proposes.
pub(super) fn approve(store: &TranscriptStore, id: &SessionId, max: Option<f64>) -> Result<Exit, Failure> {
    decide(store, id, true, max, None)
}

/// Denies the open request.
pub(super) fn deny(store: &TranscriptStore, id: &SessionId, reason: Option<String>) -> Result<Exit, Failure> {
    decide(store, id, false, None, reason)
}

/// Writes a decision about the open request for a higher limit. `max`: of an approval; `reason`: of a denial.
fn decide(
    store: &TranscriptStore,
    id: &SessionId,
    approves: bool,
    max: Option<f64>,
    reason: Option<String>,
) -> Result<Exit, Failure> {
    let name = flat(id.as_str());
    let (request, is_open) = open_request(store, id)?;
    if let Some(max) = max.filter(|max| !max.is_finite() || *max <= request.current_max) {
        let current = request.current_max;
        return Err(Failure::setup(format_args!(
            "{max} does not raise the limit of the session `{name}`, which is {current}"
        )));
    }
    let mut decision = toml_line("request", &request.approval_request_id) + &toml_line("by", "tidegate session");
    decision.extend(max.map(|max| format!("max = {max:?}\n")));
    decision.extend(reason.map(|reason| toml_line("reason", &reason)));
    let file = if approves { store.approve_file(id) } else { store.deny_file(id) };
    // Whole or not at all: the session looks for it all the time.
    let written = std::fs::write(file.with_extension("new"), decision);
    written
        .and_then(|()| std::fs::rename(file.with_extension("new"), &file))
        .map_err(|error| Failure::late(format_args!("{}: {error}", flat(&file.display().to_string()))))?;
    let what = if approves { "approved" } else { "denied" };
    let next = match (is_open, approves) {
        (true, _) => "the session is open and takes the decision now".to_owned(),
        (false, true) => format!("continue with `tidegate run --resume {name}`"),
        (false, false) => "the session stays suspended".to_owned(),
    };
    say::note(format_args!("{what}: {}; {next}", flat(&request.message)));
    Ok(Exit::Completed)
}

/// The request for a higher limit that nobody has decided about, and whether the session is open.
fn open_request(
    store: &TranscriptStore,
    id: &SessionId,
) -> Result<(transcript::LimitEscalationRequested, bool), Failure> {
    let mut open = None;
    for entry in store.read(id)?.records::<transcript::Record>() {
        match entry?.record.body {
            transcript::Body::LimitEscalationRequested(request) => open = Some(request),
            transcript::Body::LimitEscalationResolved(resolved) if resolved.decision != "timed_out" => open = None,
            _ => {}
        }
    }
    let is_open = store.list()?.sessions.into_iter().any(|one| one.id == *id && one.owner.is_some());
    let none =
        || Failure::late(format_args!("the session `{}` has no open request for a higher limit", flat(id.as_str())));
    Ok((open.ok_or_else(none)?, is_open))
}

/// A key of TOML with a string. Strings of JSON are strings of TOML.
fn toml_line(key: &str, text: &str) -> String {
    format!("{key} = {}\n", Value::from(text))
}
