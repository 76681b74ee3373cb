//! `tidegate rules replay`.

use std::io::Write;

use serde_json::{Map, Value, json};
use tidegate::event::StreamKind;
use tidegate::rule::RuleMatch;
use trial::{Agreement, Catalogue, Fire, Replay, RuleTally, Subject, Then, Tokens, Trial, Where, replay};

use super::{count, find, json as shapes};
use crate::args::{FailOn, RulesReplay};
use crate::exit::{Exit, Failure};
use crate::print::shorten;
use crate::screen::table::{self, Cell};
use crate::{say, screen, style};

/// Matches of a rule that are shown without `--verbose`.
const SHOWN: usize = 5;

/// Replays recordings and transcripts.
///
/// JSON is one object; a match of then that does not fire now is in `then`. `attempts_unknown` counts the attempts of which
/// the files do not say what fired; their matches are `unknown`:
/// ```json
/// {"files": 1, "turns": 2, "attempts": 5, "attempts_unknown": 0,
///  "rules": [{"rule": "no-guess", "fires": 2, "interrupts": 1, "reminders": 1, "passes": 0,
///    "tokens_discarded": 12, "tokens_estimated": true, "agreement": {"same": 1, "only_now": 1}}],
///  "silent": ["ts-as-any"],
///  "fires": [{"rule": "no-guess", "file": "a.jsonl", "file_line": 9, "thread": null, "turn": 1, "step": 1, "attempt": 1,
///    "action": "interrupt", "agreement": "only_now", "tokens_discarded": 12, "tokens_estimated": true,
///    "match": {"stream": "text", "pattern": "…", "text": "…", "start": 3, "end": 9, "line": 1}}],
///  "then": [{"rule": "old", "file": "a.jsonl", "file_line": 20, "thread": "t", "turn": 2, "step": 1, "attempt": 1,
///    "stream": "text", "action": "interrupt", "agreement": "only_then"}],
///  "notes": ["a.jsonl, line 40: is truncated and was not read"]}
/// ```
pub(super) fn run(catalogue: &Catalogue, args: &RulesReplay) -> Result<Exit, Failure> {
    let chosen: Vec<Subject> = args.rule.iter().map(|rule| find(catalogue, rule)).collect::<Result<_, _>>()?;
    if args.every && args.fail_on == FailOn::Disagreement {
        return Err(Failure::setup(
            "--every compares nothing with the session: remove it, or choose another value of --fail-on",
        ));
    }
    let trial = Trial::new(catalogue, &chosen, args.agent.as_deref(), args.every);
    let report = replay(&trial, &args.files).map_err(Failure::setup)?;
    for note in &report.notes {
        say::note(format_args!("{} {note}", style::err(style::WARNING, "note:")));
    }
    let mut out = screen::out();
    if args.json {
        screen::json(&as_json(&report))?;
    } else {
        text(&mut out, &report, args)?;
    }
    let failed = match args.fail_on {
        FailOn::Never => false,
        FailOn::Fire => !report.fires.is_empty(),
        FailOn::Interrupt => report.interrupts() > 0,
        FailOn::Disagreement => report.differs(),
    };
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

fn text(out: &mut impl Write, report: &Replay, args: &RulesReplay) -> std::io::Result<()> {
    if !report.rules.is_empty() {
        let (head, rows) = table(report, args.every);
        for line in table::lines(&head, &rows) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    for tally in &report.rules {
        details(out, report, tally, args)?;
    }
    let read = format!(
        "{}, {}, {}",
        count(report.files as u64, "file", "files"),
        count(report.turns, "turn", "turns"),
        count(report.attempts, "attempt", "attempts")
    );
    let found = format!(
        "{}, {}, {} tokens discarded",
        count(report.fires.len() as u64, "match", "matches"),
        count(report.interrupts(), "interrupt", "interrupts"),
        report.tokens()
    );
    let silent = count(report.silent.len() as u64, "rule", "rules");
    writeln!(out, "{read}: {found}; {silent} silent")?;
    if !args.every {
        let verdict = if report.differs() {
            let all = [
                Agreement::Same,
                Agreement::OnlyNow,
                Agreement::OnlyThen,
                Agreement::OtherAction,
                Agreement::Unreached,
            ];
            let counts = all.map(|agreement| (report.count(agreement), agreement));
            let counts = counts.iter().filter(|(count, _)| *count > 0);
            let counts: Vec<String> =
                counts.map(|(count, agreement)| format!("{count} {}", words(*agreement))).collect();
            format!("{}: {}", style::out(style::WARNING, "now differs from then"), counts.join(", "))
        } else if report.unknown == 0 {
            style::out(style::GOOD, "now agrees with then")
        } else if report.unknown < report.attempts {
            let known = report.attempts - report.unknown;
            format!("now agrees with then in {}", count(known, "attempt", "attempts"))
        } else {
            style::out(style::WARNING, "nothing is known of then: now is not compared")
        };
        writeln!(out, "{verdict}{}", unsaid(report))?;
    }
    Ok(())
}

/// What could not be compared.
fn unsaid(report: &Replay) -> String {
    let parts = [
        (report.count(Agreement::Unknown), "of which recordings do not say whether they fired"),
        (report.count(Agreement::NotRecorded), "on what was not written down"),
    ];
    parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("; {count} {what}")).collect()
}

fn words(agreement: Agreement) -> String {
    agreement.as_str().replace('_', " ")
}

fn table(report: &Replay, every: bool) -> (Vec<&'static str>, Vec<Vec<Cell>>) {
    let mut head = vec!["RULE", "FIRES", "INTERRUPTS", "REMINDERS", "PASSES", "TOKENS"];
    if every {
        head.truncate(2);
    } else {
        head.push("NOW AND THEN");
    }
    let row = |tally: &RuleTally| {
        let agreement: Vec<String> =
            tally.agreement.iter().map(|(agreement, count)| format!("{count} {}", words(*agreement))).collect();
        let mut row = vec![
            Cell(name(tally).to_owned(), style::STRONG),
            tally.fires.to_string().into(),
            tally.interrupts.to_string().into(),
            tally.reminders.to_string().into(),
            tally.passes.to_string().into(),
            tally.tokens.to_string().into(),
            agreement.join(", ").into(),
        ];
        row.truncate(head.len());
        row
    };
    let rows = report.rules.iter().map(row).collect();
    (head, rows)
}

fn name(tally: &RuleTally) -> &str {
    if tally.rule.is_empty() { "(cut short)" } else { &tally.rule }
}

fn details(out: &mut impl Write, report: &Replay, tally: &RuleTally, args: &RulesReplay) -> std::io::Result<()> {
    writeln!(out, "{}", style::out(style::STRONG, name(tally)))?;
    let most = if args.verbose { usize::MAX } else { SHOWN };
    let fires: Vec<&Fire> = report.fires.iter().filter(|fire| fire.found.rule == tally.rule).collect();
    for fire in fires.iter().take(most) {
        let agreement = if args.every { String::new() } else { format!(", {}", words(fire.agreement)) };
        let tokens = fire.tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        let place = place(&fire.place);
        writeln!(out, "  {place}  {}{agreement}{tokens}  {}", fire.action.as_str(), found(&fire.found))?;
    }
    let then: Vec<&Then> =
        report.then.iter().filter(|then| then.rule.as_deref().unwrap_or_default() == tally.rule).collect();
    for then in then.iter().take(most) {
        let stream = then.stream.as_ref().map(|stream| format!("  {stream}")).unwrap_or_default();
        writeln!(out, "  {}  {}, {}{stream}", place(&then.place), then.action, words(then.agreement))?;
    }
    let hidden = fires.len().saturating_sub(most) + then.len().saturating_sub(most);
    if hidden > 0 {
        writeln!(out, "  and {hidden} more; --verbose shows them")?;
    }
    writeln!(out)
}

fn place(place: &Where) -> String {
    let Where { file, line, turn, step, attempt, .. } = place;
    format!("{file}:{line} turn {turn} step {step} attempt {attempt}")
}

fn found(found: &RuleMatch) -> String {
    let evidence = &found.evidence;
    let stream = match &found.stream {
        StreamKind::Tool { name, .. } => {
            let field = evidence.field.as_ref().map(|field| format!(" `{field}`")).unwrap_or_default();
            format!("tool:{name}{field}")
        }
        other => other.as_str().to_owned(),
    };
    format!("{stream} line {} byte {}: {:?}", evidence.line, evidence.start, shorten(&evidence.text, 60))
}

fn as_json(report: &Replay) -> Value {
    let rule = |name: &str| if name.is_empty() { Value::Null } else { name.into() };
    let tally = |tally: &RuleTally| {
        let agreement: Map<String, Value> =
            tally.agreement.iter().map(|(agreement, count)| (agreement.as_str().to_owned(), json!(count))).collect();
        json!({
            "rule": rule(&tally.rule),
            "fires": tally.fires,
            "interrupts": tally.interrupts,
            "reminders": tally.reminders,
            "passes": tally.passes,
            "tokens_discarded": tally.tokens.count,
            "tokens_estimated": tally.tokens.estimated,
            "agreement": agreement,
        })
    };
    let fire = |fire: &Fire| {
        let mut value = at(&fire.place);
        let Tokens { count, estimated } = fire.tokens.unwrap_or_default();
        value["rule"] = fire.found.rule.as_str().into();
        value["action"] = fire.action.as_str().into();
        value["agreement"] = fire.agreement.as_str().into();
        value["tokens_discarded"] = count.into();
        value["tokens_estimated"] = estimated.into();
        value["match"] = shapes::found(&fire.found);
        value
    };
    let then = |then: &Then| {
        let mut value = at(&then.place);
        value["rule"] = then.rule.clone().into();
        value["stream"] = then.stream.clone().into();
        value["action"] = then.action.as_str().into();
        value["agreement"] = then.agreement.as_str().into();
        value
    };
    json!({
        "files": report.files,
        "turns": report.turns,
        "attempts": report.attempts,
        "attempts_unknown": report.unknown,
        "rules": report.rules.iter().map(tally).collect::<Vec<_>>(),
        "silent": report.silent,
        "fires": report.fires.iter().map(fire).collect::<Vec<_>>(),
        "then": report.then.iter().map(then).collect::<Vec<_>>(),
        "notes": report.notes,
    })
}

fn at(place: &Where) -> Value {
    json!({
        "file": place.file,
        "file_line": place.line,
        "thread": place.thread,
        "turn": place.turn,
        "step": place.step,
        "attempt": place.attempt,
    })
}
