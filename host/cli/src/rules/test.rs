//! `tidegate rules test`.

use std::io::{Read, Write, stdin};
use std::path::Path;

use serde_json::{Value, json};
use trial::{Catalogue, Input, Probe, Subject, probe};

use super::{find, json as shapes};
use crate::args::RulesTest;
use crate::exit::{Exit, Failure};
use crate::print::shorten;
use crate::screen::clean::flat;
use crate::{say, screen, style};

/// What is tried has at most this many bytes.
const MAX_INPUT: u64 = 16 << 20;

/// What is printed of a command in a list, in characters.
const LINE: usize = 400;

/// Tries a rule.
///
/// JSON is one object; `match` is the match, also that of a rule which its state alone keeps from firing, and `why`
/// is the reason that keeps it from firing; `unknown_tool` is set if this host does not offer the tool that `--tool`
/// names, and `unknown_arguments` are those that its tool does not take. With `--file` there is a trial for each tool that writes:
/// ```json
/// {"rule": "ts-as-any", "fired": true, "unknown_tool": null, "unknown_arguments": [], "trials": [{"stream": "tool:edit_file", "fired": true, "action": "remind",
///   "match": {"stream": "tool", "tool": "edit_file", "field": "new_text", "path": "src/main.ts",
///     "pattern": "\\bas any\\b", "text": "as any", "start": 7, "end": 13, "line": 1},
///   "held": {"most_bytes": 0, "at_byte": 0, "when_fired_bytes": 0, "released_bytes": 0},
///   "commands": [], "same_however_cut": true, "why": [], "reminder": "…"}]}
/// ```
/// `commands` are the lists that the conditions of a rule about commands see, each with its argument:
/// `{"field": "command", "list": "rm -rf x\n"}`.
pub(super) fn run(catalogue: &Catalogue, workspace: &Path, args: &RulesTest) -> Result<Exit, Failure> {
    let subject = find(catalogue, &args.rule)?;
    let inputs = inputs(workspace, args)?;
    let unknown = args.tool.as_deref().and_then(|tool| catalogue.unknown_tool(tool)).map(|unknown| unknown.to_string());
    let wrong = inputs.iter().find_map(|input| catalogue.unknown_arguments(input));
    let trials: Vec<(Input, Probe)> =
        inputs.into_iter().map(|input| (input.clone(), probe(catalogue, &subject, &args.agent, &input))).collect();
    let fired = trials.iter().any(|(_, probe)| probe.fired.is_some());
    let mut out = screen::out();
    if args.json {
        let trials: Vec<Value> = trials.iter().map(|(input, probe)| as_json(input, probe)).collect();
        screen::json(&json!({
            "rule": subject.entry.rule.name, "fired": fired, "unknown_tool": unknown,
            "unknown_arguments": wrong.map(|wrong| wrong.unknown).unwrap_or_default(), "trials": trials,
        }))?;
    } else {
        if let Some(unknown) = &unknown {
            say::note(format_args!("{unknown} The rule is tested with such a call anyway."));
        }
        if let Some(wrong) = &wrong {
            say::note(format_args!("{wrong} The rule is tested with such a call anyway."));
        }
        trials.iter().try_for_each(|(input, probe)| text(&mut out, &subject, input, probe, args))?;
    }
    if trials.iter().any(|(_, probe)| !probe.same_however_cut) {
        return Err(Failure::late(
            "the rule behaved differently when fed character by character than when fed at once; please report this \
             rule and this input",
        ));
    }
    Ok(if fired == args.expect_none { Exit::Failed } else { Exit::Completed })
}

fn inputs(workspace: &Path, args: &RulesTest) -> Result<Vec<Input>, Failure> {
    if let Some(text) = &args.text {
        return Ok(vec![Input::Text(words(text)?)]);
    }
    if let Some(text) = &args.thinking {
        return Ok(vec![Input::Thinking(words(text)?)]);
    }
    if let Some(file) = &args.file {
        let place = workspace.join(file);
        let text =
            read(std::fs::File::open(&place).map(|file| file.take(MAX_INPUT + 1)), &place.display().to_string())?;
        let path = file.display().to_string().replace('\\', "/");
        return Ok(Input::written(&path, &text));
    }
    let tool = args.tool.as_deref().unwrap_or_default();
    let input = match &args.json_args {
        Some(json) => Input::json_call(tool, json),
        None => Input::call(tool, &args.arg),
    };
    Ok(vec![input.map_err(Failure::setup)?])
}

fn words(given: &str) -> Result<String, Failure> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    read(Ok(stdin().lock().take(MAX_INPUT + 1)), "standard input")
}

fn read(source: std::io::Result<impl Read>, what: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = source.and_then(|mut source| source.read_to_string(&mut text));
    match read {
        Err(error) => Err(Failure::setup(format_args!("cannot read {what}: {error}"))),
        Ok(bytes) if bytes as u64 > MAX_INPUT => {
            Err(Failure::setup(format_args!("{what} has more than {MAX_INPUT} bytes: try a part of it")))
        }
        Ok(_) => Ok(text),
    }
}

fn text(
    out: &mut impl Write,
    subject: &Subject,
    input: &Input,
    probe: &Probe,
    args: &RulesTest,
) -> std::io::Result<()> {
    let name = style::out(style::STRONG, &subject.entry.rule.name);
    let stream = input.stream();
    match (&probe.fired, &probe.would_fire) {
        (Some(_), _) => writeln!(out, "{name} {} on {stream}", style::out(style::BAD, "fires"))?,
        (None, _) => writeln!(out, "{name} {} on {stream}", style::out(style::GOOD, "does not fire"))?,
    }
    for why in &probe.why {
        writeln!(out, "  because {why}")?;
    }
    for (field, commands) in &probe.commands {
        writeln!(out, "  commands in `{field}`, as its conditions see them:")?;
        commands.lines().try_for_each(|line| writeln!(out, "    {}", shorten(&flat(line), LINE)))?;
    }
    if let Some(found) = probe.fired.as_ref().or(probe.would_fire.as_ref()) {
        let evidence = &found.evidence;
        if probe.fired.is_none() {
            writeln!(out, "  else it would fire:")?;
        }
        writeln!(out, "  found     {:?}", shorten(&evidence.text, 120))?;
        let field = evidence.field.as_ref().map(|field| format!(" of `{field}`")).unwrap_or_default();
        let path = evidence.path.as_ref().map(|path| format!(", file {path}")).unwrap_or_default();
        writeln!(out, "  where     line {}, bytes {}..{}{field}{path}", evidence.line, evidence.start, evidence.end)?;
        writeln!(out, "  pattern   {}", evidence.pattern)?;
    }
    if let Some(action) = probe.action {
        writeln!(out, "  action    {}", action.as_str())?;
    }
    let held = probe.held;
    if held.most > 0 || held.when_fired > 0 {
        let most = format!("at most {} bytes, after byte {}", held.most, held.at);
        let fired = if probe.fired.is_some() { format!("; {} when it fired", held.when_fired) } else { String::new() };
        let released =
            if held.released > 0 { format!("; {} released at `hold_max_bytes`", held.released) } else { String::new() };
        writeln!(out, "  held      {most}{fired}{released}")?;
    }
    if let Some(reminder) = probe.reminder.as_ref().filter(|_| args.verbose) {
        writeln!(out, "  reminder:")?;
        reminder.lines().try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    Ok(())
}

fn as_json(input: &Input, probe: &Probe) -> Value {
    json!({
        "stream": input.stream(),
        "fired": probe.fired.is_some(),
        "action": probe.action.map(tidegate::rule::Action::as_str),
        "match": probe.fired.as_ref().or(probe.would_fire.as_ref()).map(shapes::found),
        "held": {
            "most_bytes": probe.held.most,
            "at_byte": probe.held.at,
            "when_fired_bytes": probe.held.when_fired,
            "released_bytes": probe.held.released,
        },
        "commands": probe.commands.iter().map(|(field, list)| json!({"field": field, "list": list})).collect::<Vec<_>>(),
        "same_however_cut": probe.same_however_cut,
        "why": probe.why.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "reminder": probe.reminder,
    })
}
