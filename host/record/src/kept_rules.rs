//! The rule records of a transcript: enough to resume the rules of a session.

use flow::ports::KeptRules;
use flow::{Action, CallId, Evidence, RuleRecord, StreamKind};

use super::{Body, Injected, Record};

/// Reads the rule records of a session's transcript: all of them, oldest first; where the session was resumed before, those of
/// the runs one after the other.
///
/// Invalid records are skipped, each with a message in the second list.
///
/// ```
/// use tidegate_record::{Record, kept_rules};
/// let line = |kind: &str, payload: &str| {
///     let place = r#""seq": 0, "ts": 0, "thread_id": "t", "turn": 1, "step": 1, "attempt": 1"#;
///     Record::read(format!(r#"{{{place}, "type": "{kind}", "payload": {payload}}}"#).as_bytes())
/// };
/// let injected = r#"{"rule": "r", "hash": "00000000000000ff", "turn": 0, "stream": "text", "action": "interrupt",
///     "tokens_discarded": 3, "tokens_estimated": true,
///     "evidence": {"pattern": "x", "text": "x", "start": 0, "end": 1, "line": 1}}"#;
/// let injection = line("ttsr_injection", &format!(r#"{{"rules": ["r"], "discarded_bytes": 9, "records": [{injected}]}}"#))?;
/// let finish = line("turn_finish", r#"{"status": "completed"}"#)?;
/// let (kept, problems) = kept_rules(&[injection, finish]);
/// assert!(problems.is_empty());
/// assert_eq!((kept.records[0].hash, kept.completed_turns), (255, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn kept_rules<'a>(records: impl IntoIterator<Item = &'a Record>) -> (KeptRules, Vec<String>) {
    let (mut kept, mut problems) = (KeptRules::default(), Vec::new());
    records.into_iter().for_each(|record| keep_rules(record, &mut kept, &mut problems));
    (kept, problems)
}

/// As [`kept_rules`], for one record after the other.
pub fn keep_rules(record: &Record, kept: &mut KeptRules, problems: &mut Vec<String>) {
    match &record.body {
        Body::TurnFinish(_) => kept.completed_turns += 1,
        Body::TtsrInjection(injection) => {
            for one in &injection.records {
                match read(one) {
                    Ok(one) => kept.records.push(one),
                    Err(key) => problems.push(format!(
                        "record {} is skipped: `{key}` of the rule `{}` is not valid",
                        record.seq, one.rule
                    )),
                }
            }
        }
        Body::TtsrRearmed(rearmed) => kept.records.retain(|one| !rearmed.rules.contains(&one.rule)),
        _ => {}
    }
}

/// The record of a reminder; the error is the key that is invalid.
fn read(record: &Injected) -> Result<RuleRecord, &'static str> {
    let call = || {
        let id = record.call_id.clone().ok_or("call_id")?;
        Ok::<_, &'static str>((CallId::new(id), record.tool.clone().ok_or("tool")?))
    };
    let evidence = record.evidence.clone();
    Ok(RuleRecord {
        rule: record.rule.clone(),
        hash: u64::from_str_radix(&record.hash, 16).map_err(|_| "hash")?,
        turn: record.turn,
        stream: StreamKind::read(&record.stream, call).ok_or("stream")??,
        evidence: Evidence {
            pattern: evidence.pattern,
            text: evidence.text,
            start: evidence.start,
            end: evidence.end,
            line: evidence.line,
            field: evidence.field,
            path: evidence.path,
            unread: evidence.unread.unwrap_or(false),
        },
        action: Action::from_word(&record.action).ok_or("action")?,
        tokens_discarded: record.tokens_discarded,
        tokens_estimated: record.tokens_estimated,
    })
}
