//! `tidegate session show --rules`: the rules whose reminders are in the conversation of a recorded session.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::json;
use tidegate::rule::RuleRecord;
use tidegate::transcript::TranscriptStore;
use tidegate::{SessionId, record};

use crate::exit::{Exit, Failure};
use crate::print::shorten;
use crate::screen::clean::flat;
use crate::{say, screen};

/// Characters of the matched text that are printed.
const SHORT: usize = 60;

/// Prints them, in the order in which they were injected last.
pub(super) fn show(store: &TranscriptStore, id: &SessionId, json: bool) -> Result<Exit, Failure> {
    let records = store.read(id)?.records::<record::Record>();
    let records = records.map(|entry| Ok(entry?.record)).collect::<Result<Vec<_>, Failure>>()?;
    let (kept, problems) = record::kept_rules(&records);
    problems.iter().for_each(|problem| say::note(format_args!("warning: {}", flat(problem))));
    let mut out = screen::out();
    let last: BTreeMap<&str, usize> =
        kept.records.iter().enumerate().map(|(at, record)| (record.rule.as_str(), at)).collect();
    let injected = kept.records.iter().enumerate().filter(|(at, record)| last.get(record.rule.as_str()) == Some(at));
    let mut any = false;
    for (_, record) in injected {
        any = true;
        if json {
            screen::json(&as_json(record))?;
        } else {
            let (rule, stream) = (flat(&record.rule), flat(record.stream.as_str()));
            let text = shorten(&record.evidence.text, SHORT);
            writeln!(out, "{rule}  turn {}, {} on {stream}: {text:?}", record.turn + 1, record.action)?;
        }
    }
    if !any && !json {
        writeln!(out, "no reminder of a rule is in the conversation")?;
    }
    out.flush()?;
    Ok(Exit::Completed)
}

fn as_json(record: &RuleRecord) -> serde_json::Value {
    json!({
        "rule": record.rule,
        "turn": record.turn + 1,
        "stream": record.stream.as_str(),
        "action": record.action.as_str(),
        "matched": record.evidence.text,
    })
}
