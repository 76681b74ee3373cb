//! Writes records of stream rules, and reads them back from a transcript when a session is resumed.

use flow::{Action, CallId, Evidence, RuleMatch, RuleRecord, StreamKind};
use serde_json::{Value, json};

use crate::ports::KeptRules;

/// Reads the rule records of a session's transcript: enough to resume it. All of them, oldest first; where the
/// session was resumed before, those of the runs one after the other.
///
/// Invalid records are skipped, each with a message in the second list.
///
/// ```
/// use serde_json::json;
/// use tidegate_turn::transcript::kept_rules;
/// let evidence = json!({"pattern": "x", "text": "x", "start": 0, "end": 1, "line": 1, "field": null, "path": null});
/// let record = json!({
///     "rule": "r", "hash": "00000000000000ff", "turn": 0, "stream": "text", "action": "interrupt",
///     "tokens_discarded": 3, "tokens_estimated": true, "evidence": evidence,
/// });
/// let (kept, problems) = kept_rules(&[
///     json!({"type": "ttsr_injection", "payload": {"rules": ["r"], "discarded_bytes": 9, "records": [record]}}),
///     json!({"type": "turn_finish", "payload": {"status": "completed"}}),
/// ]);
/// assert!(problems.is_empty());
/// assert_eq!((kept.records[0].hash, kept.completed_turns), (255, 1));
/// ```
pub fn kept_rules<'a>(records: impl IntoIterator<Item = &'a Value>) -> (KeptRules, Vec<String>) {
    let (mut kept, mut problems) = (KeptRules::default(), Vec::new());
    for record in records {
        let list = |key: &str| record["payload"][key].as_array().map_or(&[][..], Vec::as_slice);
        match record["type"].as_str() {
            Some("turn_finish") => kept.completed_turns += 1,
            Some("ttsr_injection") => {
                for one in list("records") {
                    match read(one) {
                        Ok(one) => kept.records.push(one),
                        Err(key) => problems.push(format!(
                            "record {} is skipped: `{key}` of a rule is missing or has the wrong type",
                            record["seq"]
                        )),
                    }
                }
            }
            Some("ttsr_rearmed") => {
                let gone: Vec<&str> = list("rules").iter().filter_map(Value::as_str).collect();
                kept.records.retain(|one| !gone.contains(&one.rule.as_str()));
            }
            _ => {}
        }
    }
    (kept, problems)
}

/// The payload of `rule_fired`.
pub(super) fn fired(found: &RuleMatch, action: Action, first: bool, again: bool) -> Value {
    let mut payload = json!({
        "rule": found.rule,
        "stream": found.stream.as_str(),
        "action": action.as_str(),
        "first": first,
        "again": again,
        "evidence": evidence(&found.evidence),
    });
    name_call(&mut payload, &found.stream);
    payload
}

fn evidence(evidence: &Evidence) -> Value {
    let mut value = json!({
        "pattern": evidence.pattern, "text": evidence.text, "start": evidence.start, "end": evidence.end,
        "line": evidence.line, "field": evidence.field, "path": evidence.path,
    });
    if evidence.unread {
        value["unread"] = json!(true);
    }
    value
}

fn name_call(payload: &mut Value, stream: &StreamKind) {
    if let StreamKind::Tool { call, name } = stream {
        payload["call_id"] = json!(call.as_str());
        payload["tool"] = json!(name);
    }
}

pub(super) fn write(record: &RuleRecord) -> Value {
    let mut payload = json!({
        "rule": record.rule,
        // Not every reader of JSON keeps 64 bits of a number.
        "hash": format!("{:016x}", record.hash),
        "turn": record.turn,
        "stream": record.stream.as_str(),
        "action": record.action.as_str(),
        "tokens_discarded": record.tokens_discarded,
        "tokens_estimated": record.tokens_estimated,
        "evidence": evidence(&record.evidence),
    });
    name_call(&mut payload, &record.stream);
    payload
}

/// Reads what [`write`] wrote; the error is the key that is missing or invalid.
fn read(record: &Value) -> Result<RuleRecord, &'static str> {
    let text = |key: &'static str| record[key].as_str().ok_or(key);
    let number = |key: &'static str| record[key].as_u64().ok_or(key);
    let found = &record["evidence"];
    let place = |key: &'static str| found[key].as_u64().ok_or(key);
    let words = |key: &'static str| found[key].as_str().map(str::to_owned);
    let call = || Ok::<_, &'static str>((CallId::new(text("call_id")?), text("tool")?.to_owned()));
    let stream = StreamKind::read(text("stream")?, call).ok_or("stream")??;
    Ok(RuleRecord {
        rule: text("rule")?.to_owned(),
        hash: u64::from_str_radix(text("hash")?, 16).map_err(|_| "hash")?,
        turn: number("turn")?,
        stream,
        evidence: Evidence {
            pattern: words("pattern").ok_or("pattern")?,
            text: words("text").ok_or("text")?,
            start: place("start")?,
            end: place("end")?,
            line: u32::try_from(place("line")?).map_err(|_| "line")?,
            field: words("field"),
            path: words("path"),
            unread: found["unread"].as_bool().unwrap_or(false),
        },
        action: Action::from_word(text("action")?).ok_or("action")?,
        tokens_discarded: number("tokens_discarded")?,
        tokens_estimated: record["tokens_estimated"].as_bool().ok_or("tokens_estimated")?,
    })
}
