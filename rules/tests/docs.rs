//! The pages for rule authors and operators: every example loads, every table says what the code says.
//!
//! Tables between `<!-- NAME: … -->` and `<!-- end -->` are written by `TIDEGATE_BLESS=1`, and compared without it.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::{Path, PathBuf};

use flow::{CallId, StreamKind};
use rules::{
    InterruptMode, RepeatMode, Rule, RuleAction, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, RuleSpec,
    builtin, parse_rule_file,
};
use serde::Deserialize;
use tidegate_rules as rules;

const AUTHORS: &str = "README.md";
const OPERATORS: &str = "OPERATORS.md";
const DIALECT: &str = "DIALECT.md";

fn page(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// A fenced block of a page.
struct Fence {
    language: String,
    text: String,
    /// For people who look for it.
    place: String,
}

/// The fenced blocks of a page; one ends with at least as many backticks as it begins with.
fn fences(name: &str) -> Vec<Fence> {
    let mut out: Vec<Fence> = Vec::new();
    let mut open = 0;
    for (number, line) in page(name).1.lines().enumerate() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        let last = out.last_mut();
        match last.filter(|_| open > 0) {
            Some(_) if ticks >= open && line.len() == ticks => open = 0,
            Some(fence) => fence.text.extend([line, "\n"]),
            None if ticks >= 3 => {
                open = ticks;
                let (language, place) = (line[ticks..].to_owned(), format!("{name}:{}", number + 1));
                out.push(Fence { language, text: String::new(), place });
            }
            None => {}
        }
    }
    assert_eq!(open, 0, "{name} has a fence without an end");
    out
}

fn source() -> RuleOrigin {
    RuleOrigin { layer: RuleLayer::Project, path: "rules/no-print.md".into() }
}

fn rule_of(fence: &Fence) -> Rule {
    let (rule, found) = parse_rule_file("no-print", &source(), &fence.text);
    assert_eq!(found, [], "{}", fence.place);
    rule.unwrap_or_else(|| panic!("{} is no rule", fence.place))
}

#[test]
fn rule_files_of_the_pages_load_and_keep_their_examples() {
    let pages = [AUTHORS, OPERATORS].map(fences);
    let files: Vec<&Fence> = pages.iter().flatten().filter(|fence| fence.language == "markdown").collect();
    assert!(files.len() >= 3, "{} rule files were found", files.len());
    for fence in files {
        assert_eq!(rules::check_examples(&rule_of(fence)), [], "{}", fence.place);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    rule: Vec<RuleSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    rules: RuleSettings,
}

fn keys_of<T: for<'d> Deserialize<'d>>(fence: &Fence) -> T {
    toml::from_str(&fence.text).unwrap_or_else(|error| panic!("{}: {error}", fence.place))
}

fn load_spec(spec: &RuleSpec, place: &str) {
    let mut spec = spec.clone();
    spec.body.get_or_insert("What to do.".into());
    let (rule, found) = Rule::from_spec("r", &source(), &spec, None);
    assert_eq!(found, [], "{place}");
    assert!(rule.is_some(), "{place}");
}

#[test]
fn settings_and_keys_of_the_pages_load() {
    let mut read = 0;
    for fence in [AUTHORS, OPERATORS].iter().flat_map(|name| fences(name)).filter(|fence| fence.language == "toml") {
        let place = fence.place.as_str();
        match fence.text.as_str() {
            text if text.starts_with("[[rule]]") => {
                let manifest: Manifest = keys_of(&fence);
                manifest.rule.iter().for_each(|spec| load_spec(spec, place));
            }
            text if text.starts_with("[rules]") => {
                let host: Host = keys_of(&fence);
                assert_ne!(host.rules, RuleSettings::default(), "{place} sets nothing");
            }
            _ => load_spec(&keys_of(&fence), place),
        }
        read += 1;
    }
    assert!(read >= 3, "{read} blocks were found");
}

#[test]
fn other_fences_are_of_a_known_kind() {
    let known = ["markdown", "toml", "xml", "sh"];
    for fence in [AUTHORS, OPERATORS].iter().flat_map(|name| fences(name)) {
        assert!(known.contains(&fence.language.as_str()), "{}: nothing tests `{}`", fence.place, fence.language);
    }
}

#[test]
fn the_model_is_told_what_the_page_says() {
    let fences = fences(AUTHORS);
    let rule = rule_of(fences.iter().find(|fence| fence.language == "markdown").unwrap());
    let (mut stopping, mut blocking) = (rule.clone(), rule.clone());
    stopping.interrupt = Some(InterruptMode::Always);
    blocking.action = Some(RuleAction::Block);
    let told = [(stopping, true), (blocking, true), (rule, false)].map(|(rule, stopped)| told(rule, stopped));
    let shown: Vec<&str> =
        fences.iter().filter(|fence| fence.language == "xml").map(|fence| fence.text.trim_end()).collect();
    assert_eq!(shown, told);
}

/// What the model gets when the rule fires on a line in a written file.
fn told(rule: Rule, stopped: bool) -> String {
    let (set, _) = RuleSet::build(vec![rule], RuleSettings::default(), "/workspace");
    let session = RuleSession::new(set);
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Tool { call: CallId::new("1"), name: "write_file".into() });
    let arguments = serde_json::json!({"path": "app/load.py", "content": "def load():\n    print('loading')\n"});
    let matches = gate.piece(0, &arguments.to_string()).matches;
    assert_eq!(matches.len(), 1);
    if stopped { session.reminder(&matches) } else { session.tool_reminder(&matches) }
}

/// The rows of the first table below a heading, cell by cell.
fn table(name: &str, heading: &str) -> Vec<Vec<String>> {
    let text = page(name).1;
    let below = text.split_once(&format!("\n{heading}\n")).unwrap().1;
    let lines = below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

/// The names that a type takes as keys, out of what it says to one that it does not take.
fn names_of<T: for<'d> Deserialize<'d>>() -> Vec<String> {
    let error = toml::from_str::<T>("surely-not-a-key = 1").err().unwrap();
    let listed = error.message().split_once("expected one of").unwrap().1;
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn bare(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

#[test]
fn every_key_of_a_rule_is_told() {
    let text = page(AUTHORS).1;
    let section = text.split("\n## ").find(|part| part.starts_with("All keys")).unwrap();
    let names = names_of::<RuleSpec>();
    assert!(names.len() >= 20, "{names:?}");
    for name in &names {
        assert!(section.contains(&format!("`{name}`")), "`{name}` is not told");
    }
    for row in table(AUTHORS, "## All keys") {
        assert!(names.contains(&bare(&row[0])), "{} is no key", row[0]);
    }
}

#[test]
fn every_setting_is_told_with_its_default() {
    let folders = ["project_rules", "user_rules", "folders", "required_folders", "on_problem"];
    let rows = table(OPERATORS, "## Settings");
    let own: Vec<&Vec<String>> = rows.iter().filter(|row| !folders.contains(&bare(&row[0]).as_str())).collect();
    assert_eq!(rows.len(), own.len() + folders.len());
    let mut told: Vec<String> = own.iter().map(|row| bare(&row[0])).collect();
    told.sort();
    let mut names = names_of::<RuleSettings>();
    names.sort();
    assert_eq!(told, names);
    let text: Vec<String> = own.iter().map(|row| format!("{} = {}\n", bare(&row[0]), bare(&row[1]))).collect();
    assert_eq!(toml::from_str::<RuleSettings>(&text.concat()).unwrap(), RuleSettings::default());
}

/// Compares the text of a page between the marks of `name` with `wanted`, or writes it there.
fn hold_table(page_name: &str, name: &str, wanted: &str) {
    let (path, text) = page(page_name);
    let begin = text.find(&format!("<!-- {name}: ")).unwrap();
    let begin = begin + text[begin..].find('\n').unwrap() + 1;
    let end = begin + text[begin..].find("<!-- end -->").unwrap();
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, format!("{}{wanted}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    let (told, wanted): (Vec<&str>, Vec<&str>) = (text[begin..end].lines().collect(), wanted.lines().collect());
    let gone: Vec<&&str> = told.iter().filter(|row| !wanted.contains(row)).collect();
    let missing: Vec<&&str> = wanted.iter().filter(|row| !told.contains(row)).collect();
    let help = "`TIDEGATE_BLESS=1 cargo test -p tidegate-rules --test it docs::` writes it anew";
    assert_eq!(gone, missing, "the table `{name}` of {page_name} is not what is in force; {help}");
    assert_eq!(told, wanted, "the table `{name}` of {page_name} is in another order; {help}");
}

#[test]
fn the_pack_is_told_rule_by_rule() {
    let mut out = String::from("| rule | for | watches | what it is about | a match |\n|---|---|---|---|---|\n");
    for rule in builtin().0 {
        let scopes: Vec<String> = rule.scopes.iter().map(|scope| format!("`{}`", scope.to_text())).collect();
        let what = rule.description.as_deref().unwrap();
        let name = &rule.name;
        let row = [format!("[`{name}`](builtin/{name}.md)"), of_what(&rule).into(), scopes.join(", "), what.into()];
        out.push_str(&format!("| {} | {} |\n", row.join(" | "), does(&rule)));
    }
    hold_table(OPERATORS, "pack", &out);
}

/// What a rule is for, by its name and by what it watches.
fn of_what(rule: &Rule) -> &'static str {
    match rule.name.split('-').next().unwrap() {
        "rust" => "Rust",
        "ts" => "TypeScript",
        "js" => "TypeScript, JavaScript",
        "python" => "Python",
        "go" => "Go",
        _ if rule.scopes.iter().any(|scope| scope.to_text() == "text") => "prose",
        _ if rule.scopes.iter().any(|scope| scope.to_text() == "tool:shell") => "shell",
        _ => "any file",
    }
}

fn does(rule: &Rule) -> &'static str {
    match (rule.action, rule.interrupt, rule.repeat) {
        (None, Some(InterruptMode::Never), _) => "reminds",
        (Some(RuleAction::Block), _, Some(RepeatMode::Once)) => "blocks the call, once",
        (Some(RuleAction::Block), _, Some(RepeatMode::Always)) => "blocks the call, each time",
        other => panic!("{} does {other:?}, which the page has no words for", rule.name),
    }
}

#[derive(Deserialize)]
struct Dialect {
    dialect: Vec<Construct>,
}

/// What this page needs of an entry of `tests/corpus/rules/dialect.toml`.
#[derive(Deserialize)]
struct Construct {
    construct: String,
    means: Option<String>,
    condition: String,
    #[serde(default)]
    fires: Vec<(String, String)>,
    #[serde(default)]
    quiet: Vec<String>,
}

/// What ECMAScript makes of a construct cannot be asked here: it stays as it is in the page, for each construct one of
/// these.
const ELSEWHERE: [&str; 4] = ["same", "otherwise", "refused", "accepted"];

#[test]
fn the_dialect_is_told_construct_by_construct() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/rules/dialect.toml");
    let corpus: Dialect = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let known = table(DIALECT, "## Constructs");
    let mut out = String::from("| construct | here | ECMAScript | Rust `regex` |\n|---|---|---|---|\n");
    for entry in &corpus.dialect {
        let name = cell(&entry.construct);
        let elsewhere = known.iter().find(|row| row[0] == name).map_or("?", |row| row[2].as_str());
        let here = entry.means.clone().unwrap_or_else(|| refusal(entry));
        out.push_str(&format!("| {name} | {} | {elsewhere} | {} |\n", cell(&here), in_rust(entry)));
    }
    hold_table(DIALECT, "dialect", &out);
    for row in table(DIALECT, "## Constructs") {
        assert!(ELSEWHERE.contains(&row[2].as_str()), "{}: say in the page what ECMAScript's `RegExp` does", row[0]);
    }
}

/// Text as a cell of a table holds it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The diagnostic for it.
fn refusal(entry: &Construct) -> String {
    let spec = RuleSpec {
        condition: [entry.condition.as_str()].into_iter().collect(),
        body: Some("What to do.".into()),
        ..RuleSpec::default()
    };
    let (_, found) = Rule::from_spec("r", &source(), &spec, None);
    let help = found.iter().find_map(|one| one.help.clone());
    help.map_or_else(|| "refused".to_owned(), |help| format!("refused: {help}"))
}

/// What the engine of the `regex` crate makes of it, on the same texts.
fn in_rust(entry: &Construct) -> &'static str {
    let Ok(regex) = regex_automata::meta::Regex::new(&entry.condition) else { return "refused" };
    let agrees = entry.fires.iter().all(|(text, _)| regex.is_match(text))
        && !entry.quiet.iter().any(|text| regex.is_match(text));
    match (&entry.means, agrees) {
        (None, _) => "accepted",
        (Some(_), true) => "same",
        (Some(_), false) => "otherwise",
    }
}
