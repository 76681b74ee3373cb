//! `tidegate rules explain`.

use std::io::Write;

use serde_json::{Value, json};
use trial::{Catalogue, Explained, Explanation, explain};

use super::list::heading;
use super::{find, json as shapes};
use crate::args::RulesExplain;
use crate::exit::{Exit, Failure};
use crate::print::{shorten, tidy_path};
use crate::{screen, style};

/// Explains a rule.
///
/// JSON is the object of the rule in `rules list --json`, and with it:
/// ```json
/// {"name": "…", "shadows": [{"layer": "builtin", "path": "…"}],
///  "parts": [{"role": "condition", "pattern": "\\bas any\\b", "longest": 6, "matches_empty": false}],
///  "scopes": [{"scope": "tool(*.ts)", "tools": ["edit_file"], "empty": false}],
///  "values": [{"key": "repeat", "value": "once", "setting": "repeat_mode"}],
///  "longest_hold": 0, "told": {"kind": "reminder", "text": "…"},
///  "example_results": [{"fires": true, "stream": "tool:edit_file path=a.ts new_text", "text": "…", "holds": true}]}
/// ```
/// `setting` is `null` if the rule itself sets the value; `longest_hold` is `null` where there is no bound but that of
/// the settings; `told` is a `reminder`, a `body` (there is no example to render a reminder with), a `prompt` or `on_demand`
/// (the model reads it).
pub(super) fn run(catalogue: &Catalogue, args: &RulesExplain) -> Result<Exit, Failure> {
    let subject = find(catalogue, &args.rule)?;
    let explanation = explain(catalogue, &subject);
    let mut out = screen::out();
    if args.json {
        screen::json(&as_json(&explanation))?;
    } else {
        text(&mut out, &explanation)?;
    }
    Ok(Exit::Completed)
}

fn text(out: &mut impl Write, all: &Explanation) -> std::io::Result<()> {
    let entry = &all.entry;
    let rule = &entry.rule;
    heading(out, entry)?;
    line(out, "from", &tidy_path(&rule.source.to_string()))?;
    if entry.required {
        line(out, "required", "the host does not run without it")?;
    }
    for source in &all.shadows {
        line(out, "shadows", &tidy_path(&source.to_string()))?;
    }
    for part in &all.parts {
        let longest =
            part.longest.map_or_else(|| "no longest match".to_owned(), |bytes| format!("at most {bytes} bytes"));
        let empty = if part.matches_empty { ", matches the empty string" } else { "" };
        line(out, part.role, &format!("{}  ({longest}{empty})", part.pattern))?;
    }
    watches(out, all)?;
    for value in &all.values {
        let from = value.setting.map_or_else(|| "set by the rule".to_owned(), |name| format!("setting `{name}`"));
        line(out, value.key, &format!("{}  ({from})", value.value))?;
    }
    if let Some(promise) = &entry.promise {
        line(out, "promises", promise)?;
    }
    if rule.secret {
        line(out, "secret", "every match is acted on, and none is let through; its text is nowhere")?;
    }
    if !rule.fold.is_none() {
        line(out, "fold", &rule.fold.words().collect::<Vec<_>>().join(", "))?;
    }
    match all.longest_hold {
        Some(0) => {}
        Some(bytes) if !rule.fold.is_none() => {
            line(out, "holds", &format!("at most {bytes} bytes of folded text are held back"))?;
        }
        Some(bytes) => line(out, "holds", &format!("at most {bytes} bytes are held back"))?,
        None if rule.secret => line(out, "holds", "held back without a bound, up to the end of the answer")?,
        None => line(out, "holds", "held back without a bound of its own, up to `hold_max_bytes` or `hold_max_ms`")?,
    }
    examples(out, all)?;
    told(out, all)
}

fn watches(out: &mut impl Write, all: &Explanation) -> std::io::Result<()> {
    let rule = &all.entry.rule;
    for scope in all.scopes.iter().filter(|_| !all.parts.is_empty()) {
        let reach = match (scope.empty, scope.tools.is_empty()) {
            (true, _) => "no tool that is offered here".to_owned(),
            (false, true) => String::new(),
            (false, false) => scope.tools.join(", "),
        };
        let reach = if reach.is_empty() { reach } else { format!("  ({reach})") };
        line(out, "watches", &format!("{}{reach}", scope.scope))?;
    }
    let list =
        |globs: &[tidegate::rule::Glob]| globs.iter().map(tidegate::rule::Glob::as_str).collect::<Vec<_>>().join(", ");
    if !rule.globs.is_empty() {
        line(out, "files", &list(&rule.globs))?;
    }
    if !rule.fields.is_empty() {
        line(out, "fields", &rule.fields.join(", "))?;
    }
    if !rule.agents.is_empty() {
        line(out, "agents", &list(&rule.agents))?;
    }
    Ok(())
}

fn examples(out: &mut impl Write, all: &Explanation) -> std::io::Result<()> {
    for example in &all.examples {
        let says = if example.fires { "fires" } else { "does not fire" };
        let holds =
            if example.holds { style::out(style::GOOD, "holds") } else { style::out(style::BAD, "DOES NOT HOLD") };
        let text = shorten(example.text.trim_end(), 80);
        line(out, "example", &format!("{says} on {:?} ({}): {holds}", text, example.stream))?;
    }
    if all.examples.is_empty() && !all.parts.is_empty() {
        line(out, "example", "none")?;
    }
    Ok(())
}

fn told(out: &mut impl Write, all: &Explanation) -> std::io::Result<()> {
    let (head, text) = match &all.explained {
        Explained::Reminder(text) => ("reminder for its first example that fires:", text),
        Explained::Body(text) => ("reminder, after the evidence:", text),
        Explained::Prompt(text) => ("text in the system prompt:", text),
        Explained::OnDemand(text) => (
            "text that the model reads with `read_rule`; the system prompt has the name, the description and the files:",
            text,
        ),
    };
    writeln!(out, "  {head}")?;
    text.lines().try_for_each(|line| writeln!(out, "    {line}"))
}

fn line(out: &mut impl Write, key: &str, value: &str) -> std::io::Result<()> {
    writeln!(out, "  {key:<15}{value}")
}

fn as_json(all: &Explanation) -> Value {
    let mut value = shapes::entry(&all.entry);
    value["shadows"] = all.shadows.iter().map(shapes::source).collect();
    let part = |part: &trial::Part| json!({"role": part.role, "pattern": part.pattern, "longest": part.longest, "matches_empty": part.matches_empty});
    value["parts"] = all.parts.iter().map(part).collect();
    value["scopes"] =
        all.scopes.iter().map(|one| json!({"scope": one.scope, "tools": one.tools, "empty": one.empty})).collect();
    value["values"] =
        all.values.iter().map(|one| json!({"key": one.key, "value": one.value, "setting": one.setting})).collect();
    value["longest_hold"] = all.longest_hold.into();
    let (kind, text) = match &all.explained {
        Explained::Reminder(text) => ("reminder", text),
        Explained::Body(text) => ("body", text),
        Explained::Prompt(text) => ("prompt", text),
        Explained::OnDemand(text) => ("on_demand", text),
    };
    value["told"] = json!({"kind": kind, "text": text});
    let example = |one: &trial::ExampleResult| json!({"fires": one.fires, "stream": one.stream, "text": one.text, "holds": one.holds});
    value["example_results"] = all.examples.iter().map(example).collect();
    value
}
