//! Rules about commands: `tests/corpus/shell/pack.toml`, each line as the only argument of a call of `shell`.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use flow::{CallId, RuleMatch, StreamKind};
use rules::{Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, builtin, parse_rule_file};
use serde::Deserialize;
use serde_json::json;
use tidegate_rules as rules;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    ordinary: Vec<String>,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    rule: String,
    fires: Vec<String>,
    quiet: Vec<String>,
}

fn session(rules: Vec<Rule>) -> RuleSession {
    let (set, found) = RuleSet::build(rules, RuleSettings::default(), "/workspace");
    assert_eq!(found, []);
    RuleSession::new(Arc::clone(&set))
}

/// What fires in a call, its arguments cut into pieces of so many characters.
fn found(session: &RuleSession, tool: &str, arguments: &str, cut: usize) -> Vec<RuleMatch> {
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Tool { call: CallId::new("c"), name: tool.to_owned() });
    let mut matches = Vec::new();
    for piece in arguments.chars().collect::<Vec<_>>().chunks(cut) {
        matches.extend(gate.piece(0, &piece.iter().collect::<String>()).matches);
        while let Some(more) = gate.more(0) {
            matches.extend(more.matches);
        }
    }
    matches.extend(gate.block_end(0).matches);
    matches
}

fn names(session: &RuleSession, line: &str, cut: usize) -> Vec<String> {
    let arguments = json!({ "command": line }).to_string();
    found(session, "shell", &arguments, cut).into_iter().map(|found| found.rule).collect()
}

#[test]
fn the_pack_reads_commands_and_not_what_is_quoted() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/shell/pack.toml");
    let corpus: Corpus = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let session = session(builtin().0);
    let mut wrong = Vec::new();
    for Case { rule, fires, quiet } in &corpus.case {
        for (line, expected) in fires.iter().map(|line| (line, true)).chain(quiet.iter().map(|line| (line, false))) {
            for cut in [1, usize::MAX] {
                if names(&session, line, cut).contains(rule) != expected {
                    wrong.push(format!("{rule}: {line:?} {}", if expected { "does not fire" } else { "fires" }));
                    break;
                }
            }
        }
    }
    for line in &corpus.ordinary {
        let fired = names(&session, line, usize::MAX);
        if !fired.is_empty() {
            wrong.push(format!("{fired:?}: {line:?} fires"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let tested: BTreeSet<&str> = corpus.case.iter().map(|case| case.rule.as_str()).collect();
    let about_commands: BTreeSet<String> =
        builtin().0.into_iter().filter(|rule| rule.fields == ["commands"]).map(|rule| rule.name).collect();
    assert!(about_commands.iter().map(String::as_str).eq(tested), "{about_commands:?}");
    let lines: usize = corpus.case.iter().map(|case| case.fires.len() + case.quiet.len()).sum();
    assert!(lines >= 400 && corpus.ordinary.len() >= 90, "{lines} lines");
}

fn one(lines: &str) -> RuleSession {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "rules/own.md".into() };
    let (rule, found) = parse_rule_file("own", &source, &format!("+++\n{lines}\n+++\nNo."));
    assert_eq!(found, []);
    session(vec![rule.unwrap()])
}

#[test]
fn commands_are_those_of_shell_and_of_no_other_tool_or_argument() {
    let own = one("condition = '(?m)^rm[ ]'\nscope = \"tool\"\nfield = \"commands\"");
    let cases = [
        ("shell", json!({"command": "sudo rm x"}), 1),
        ("bash", json!({"command": "rm x"}), 1),
        ("Bash", json!({"script": "ls; rm x"}), 1),
        ("shell", json!({"command": "ls", "cwd": "rm x"}), 0),
        ("shell", json!({"nested": {"command": "rm x"}}), 0),
        ("write_file", json!({"command": "rm x"}), 0),
        // The argument of another tool that has this name.
        ("other", json!({"commands": "rm x"}), 1),
        ("shell", json!({"commands": "echo\nrm x"}), 1),
        ("shell", json!({"commands": "echo 'a\nrm x'"}), 0),
    ];
    for (tool, arguments, expected) in cases {
        let found = found(&own, tool, &arguments.to_string(), 3);
        assert_eq!(found.len(), expected, "{tool} {arguments}");
        assert!(found.iter().all(|found| found.evidence.field.as_deref() == Some("commands")));
    }
}

/// Command lines of which something is not read: a rule that would stop the call does not let it pass, and one that reminds has nothing
/// to say.
#[test]
fn a_guard_does_not_let_pass_a_command_line_that_is_not_read() {
    let front = |more: &str| format!("condition = '(?m)^rm[ ]'\nscope = 'tool:shell'\nfield = 'commands'\n{more}");
    let guard = one(&front("action = 'block'\nrepeat = 'always'"));
    let reminds = one(&front("interrupt = 'never'"));
    let text = one("condition = 'zz'\nscope = 'tool:shell'\nfield = 'command'\naction = 'block'");
    let pad = format!(": {}; sudo 'rm' -rf /", "a".repeat(33 << 10));
    let braces = format!("echo {}; 'rm' -rf /", "{".repeat(2000));
    let words = format!("echo {}; r'm' -rf /", "a ".repeat(11_000));
    let nested = (0..14).fold("r'm' -rf /".to_owned(), |inner, _| format!("eval {}", quoted(&inner)));
    for (what, line) in [
        ("length", &pad),
        ("braces", &braces),
        ("words", &words),
        ("nested", &nested),
        ("syntax", &"'rm' -rf / ; if (".to_owned()),
    ] {
        let arguments = json!({ "command": line }).to_string();
        for cut in [7, usize::MAX] {
            let found = found(&guard, "shell", &arguments, cut);
            assert_eq!(found.len(), 1, "{what}: {found:?}");
            let evidence = &found[0].evidence;
            assert!(!evidence.unread || evidence.text.contains("the command line: "), "{what}: {}", evidence.text);
        }
        assert_eq!(found(&text, "shell", &arguments, usize::MAX), [], "{what}");
        assert!(found(&reminds, "shell", &arguments, usize::MAX).iter().all(|one| !one.evidence.unread), "{what}");
    }
    for line in [
        "ls -la",
        "echo \"$(date)\"",
        "for f in *; do echo $f; done",
        "[[ -n $x ]] && ls",
        "cat <<'EOF' > a\nrm x\nEOF",
    ] {
        let found = found(&guard, "shell", &json!({ "command": line }).to_string(), usize::MAX);
        assert_eq!(found, [], "{line}");
    }
}

/// A name that is only known when the command runs, for a rule about the words after it and for one about the name alone.
#[test]
fn a_guard_does_not_let_pass_a_name_that_can_be_what_it_is_about() {
    let front =
        |condition: &str, more: &str| one(&format!("{condition}\nscope = 'tool:shell'\nfield = 'commands'\n{more}"));
    let block = "action = 'block'\nrepeat = 'always'";
    let force = front("condition = '(?m)^svc (?:\\S+ )*--force(?: |$)'", block);
    let name = front("condition = '(?m)^svc[ ]'", block);
    let both = front(
        "condition = '(?m)^svc (?:\\S+ )*--force'\nall = ['(?m)^cd /prod$']\nunless = '(?m)^DRY=1$'",
        "action = 'block'\nrepeat = 'once'",
    );
    let reminds = front("condition = '(?m)^svc (?:\\S+ )*--force(?: |$)'", "interrupt = 'never'");
    let interrupts = front("condition = '(?m)^svc (?:\\S+ )*--force(?: |$)'", "");
    for (rule, line, fires) in [
        (&force, "$X --force", true),
        (&force, "$X a --force b", true),
        (&force, "$X --forced", false),
        (&force, "$X", false),
        (&force, "sv? --force", true),
        (&force, "s$x --force", true),
        (&force, "t$x --force", false),
        (&force, "$x/other --force", false),
        (&force, "$x/svc --force", true),
        (&force, "X=other; $X --force", false),
        (&force, "X=svc; $X --force", true),
        (&force, "X=other; . ./x; $X --force", true),
        (&force, "$X '--force a'", false),
        (&force, "echo '$X --force'", false),
        (&force, "$ENV svc --force", true),
        // The name is all that it looks for.
        (&name, "$X y", false),
        (&name, "$(cat x) y", false),
        (&name, "sv$x y", true),
        (&name, "sv[a-z] y", true),
        (&name, "${x}c y", true),
        (&name, "${x}d y", false),
        (&name, "X=svc; $X y", true),
        (&both, "cd /prod && $X --force", true),
        (&both, "cd /test && $X --force", false),
        (&both, "cd /prod && DRY=1 $X --force", false),
        (&interrupts, "$X --force", true),
        (&reminds, "$X --force", false),
        (&reminds, "X=svc; $X --force", true),
    ] {
        let matches = found(rule, "shell", &json!({ "command": line }).to_string(), usize::MAX);
        assert_eq!(!matches.is_empty(), fires, "{line}: {matches:?}");
    }
    let matches = found(&force, "shell", &json!({"command": "cd a; \"$X\" --force"}).to_string(), usize::MAX);
    let told = force.tool_reminder(&matches);
    assert!(told.contains("the name of a command (`$X`) is only known when it runs"), "{told}");
    assert!(told.contains("with the names of commands written out") && !told.contains("--force"), "{told}");
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn the_commands_of_a_call_are_one_text() {
    let both = one(
        "all = ['(?m)^cd /prod$', '(?m)^make deploy$']\nunless = '(?m)^DRY=1$'\nscope = \"tool:shell\"\nfield = \"commands\"\n\
         repeat = \"once\"",
    );
    for (line, fires) in [
        ("cd /prod && make deploy", true),
        ("cd /prod", false),
        ("cd /prod && DRY=1 make deploy", false),
        ("cd /prod && echo 'make deploy'", false),
    ] {
        assert_eq!(!names(&both, line, 2).is_empty(), fires, "{line}");
    }
    let own = one("condition = '(?m)^rm \\S+$'\nscope = \"tool:shell\"\nfield = \"commands\"\ninterrupt = \"never\"");
    let matches = found(&own, "shell", &json!({"command": "ls; sudo rm 'a b'"}).to_string(), 5);
    assert_eq!(matches[0].evidence.text, "rm a␣b");
    let told = own.tool_reminder(&matches);
    assert!(told.contains("Found in a call of shell, argument commands: rm a␣b\n"), "{told}");
}
