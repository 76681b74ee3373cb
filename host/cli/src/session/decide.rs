//! `tidegate session approve`, `deny` and `cancel`: decisions about the limits of a session and its turn, for the process that has it open, or
//! for the next one.

use std::path::Path;

use serde_json::Value;
use tidegate::limit::Limit;
use tidegate::transcript::TranscriptStore;
use tidegate::{SessionId, record};

use crate::ask;
use crate::exit::{Exit, Failure};
use crate::say;
use crate::screen::clean::flat;

/// Who decides, for the record.
const BY: &str = "tidegate session";

/// Asks the process that has the session open to cancel its turn.
pub(super) fn cancel(store: &TranscriptStore, id: &SessionId, reason: Option<String>) -> Result<(), Failure> {
    let mut request = toml_line("by", BY);
    request.extend(reason.map(|reason| toml_line("reason", &reason)));
    hand_over(&store.cancel_file(id), &request)
}

/// Writes a file for the process that has the session open, whole or not at all: it looks for it all the time.
fn hand_over(file: &Path, content: &str) -> Result<(), Failure> {
    let written = std::fs::write(file.with_extension("new"), content);
    written
        .and_then(|()| std::fs::rename(file.with_extension("new"), file))
        .map_err(|error| Failure::late(format_args!("{}: {error}", flat(&file.display().to_string()))))
}

/// Approves the open request, up to `max` or to what it proposes.
pub(super) fn approve(store: &TranscriptStore, id: &SessionId, max: Option<&str>) -> Result<Exit, Failure> {
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
    max: Option<&str>,
    reason: Option<String>,
) -> Result<Exit, Failure> {
    let name = flat(id.as_str());
    let (request, is_open) = open_request(store, id)?;
    let limit = Limit::from_code(&request.limit_code);
    let is_count = !matches!(limit, Some(Limit::Spend | Limit::Duration));
    let max = max.map(|text| value(limit, text)).transpose()?;
    let is_wrong = |max: &f64| !max.is_finite() || *max <= request.current_max || (is_count && max.fract() != 0.0);
    if let Some(max) = max.filter(is_wrong) {
        let current = request.current_max;
        let what = if is_count { "a whole number" } else { "a number" };
        return Err(Failure::setup(format_args!(
            "{max} does not raise the limit of the session `{name}`, which is {current}: give {what} above it"
        )));
    }
    let mut decision = toml_line("request", &request.approval_request_id) + &toml_line("by", BY);
    if approves {
        // What was shown is what is approved, also where the session would propose another limit by then.
        decision.push_str(&format!("max = {:?}\n", max.unwrap_or(request.proposed_max)));
    }
    decision.extend(reason.map(|reason| toml_line("reason", &reason)));
    let (file, other) = (store.approve_file(id), store.deny_file(id));
    let (file, other) = if approves { (file, other) } else { (other, file) };
    // The later decision replaces an earlier one that nobody has taken.
    if let Err(error) = std::fs::remove_file(&other)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Failure::late(format_args!("{}: {error}", flat(&other.display().to_string()))));
    }
    hand_over(&file, &decision)?;
    let what = if approves { "approved" } else { "denied" };
    let next = match (is_open, approves) {
        (true, _) => "the session is open: it takes the decision now, or when it continues".to_owned(),
        (false, true) => format!("continue with `tidegate run --resume {name}`"),
        (false, false) => "the session stays suspended".to_owned(),
    };
    let about = limit.map(|limit| {
        let value = if approves { max.unwrap_or(request.proposed_max) } else { request.current_max };
        let (verb, value) = (if approves { "up to" } else { "it stays" }, limit.amount(value));
        format!("`{limit}`, {verb} {value}")
    });
    say::note(format_args!("{what}: {}; {next}", about.unwrap_or_else(|| flat(&request.message))));
    Ok(Exit::Completed)
}

/// Reads the value of `--max`.
fn value(limit: Option<Limit>, text: &str) -> Result<f64, Failure> {
    let number = || limit.map_or_else(|| text.parse().ok(), |limit| ask::amount(limit, text));
    number().ok_or_else(|| Failure::setup(format_args!("--max: {}", ask::no_amount(limit, text))))
}

/// The request for a higher limit that nobody has decided about, and whether the session is open.
fn open_request(store: &TranscriptStore, id: &SessionId) -> Result<(record::LimitEscalationRequested, bool), Failure> {
    let mut open = None;
    for entry in store.read(id)?.records::<record::Record>() {
        match entry?.record.body {
            record::Body::LimitEscalationRequested(request) => open = Some(request),
            // It has continued without an answer.
            record::Body::StepStart(_) => open = None,
            record::Body::LimitEscalationResolved(resolved)
                if resolved.decision != "timed_out" || resolved.limit_code == Limit::Spawns.code() =>
            {
                open = None;
            }
            _ => {}
        }
    }
    let is_open = store.summary(id)?.owner.is_some();
    let none =
        || Failure::late(format_args!("the session `{}` has no open request for a higher limit", flat(id.as_str())));
    Ok((open.ok_or_else(none)?, is_open))
}

/// A key of TOML with a string. Strings of JSON are strings of TOML.
fn toml_line(key: &str, text: &str) -> String {
    format!("{key} = {}\n", Value::from(text))
}
