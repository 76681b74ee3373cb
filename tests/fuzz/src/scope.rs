//! The scope grammar and file globs: what a scope is written as in full reads as the same scope, and a path may be
//! written with `./` in front of it.

use rules::{Diagnostic, DiagnosticCode, Glob, Rule, RuleLayer, RuleOrigin, RuleSpec, Scope, Severity, Strings};

pub(crate) const WORDS: &[&str] = &[
    "text",
    "thinking",
    "tool",
    "toolcall",
    "tool:",
    "edit",
    "(*.rs)",
    "(*.{ts,tsx})",
    ",",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "../",
    "./",
    "//",
    "\\",
    "**/",
    "src/",
    "*",
    "?",
    "[!a]",
    "C:\\",
    "/work/",
];

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (scopes, path) = text.split_once('\n').unwrap_or((&text, "src/a.rs"));
    if let Ok(scope) = Scope::parse(scopes) {
        let written = scope.to_text();
        let again = Scope::parse(&written).unwrap_or_else(|error| panic!("{written:?} of {scopes:?}: {error}"));
        assert_eq!(again.to_text(), written);
        assert_eq!(again.takes_tool("edit"), scope.takes_tool("edit"));
    }
    let spec = RuleSpec {
        condition: Strings(vec!["x".into()]),
        scope: Strings(vec![scopes.to_owned()]),
        body: Some("b".into()),
        ..RuleSpec::default()
    };
    let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
    let (rule, found) = Rule::from_spec("r", &source, &spec, None);
    // A single error says itself that it disables the rule.
    let disables =
        |d: &Diagnostic| d.code == DiagnosticCode::RuleNoValidScope || d.message.ends_with("the rule is disabled");
    assert_eq!(rule.is_none(), found.iter().any(disables), "{scopes:?}: {found:?}");
    assert!(rule.is_some() || found.iter().any(|d| d.severity == Severity::Error));
    paths(scopes, path);
}

fn paths(glob: &str, path: &str) {
    let Ok(glob) = Glob::new(glob) else { return };
    for workspace in ["", "/work", "/", "C:\\work"] {
        let fits = glob.matches(path, workspace);
        let plain = !path.replace('\\', "/").split('/').any(|part| matches!(part, "" | "." | ".."));
        if plain && fits {
            assert!(glob.matches(&format!("./{path}"), workspace), "{glob:?} on ./{path:?} in {workspace:?}");
        }
        if plain && glob.matches(path, "/work") {
            assert!(glob.matches(&format!("x/../{path}"), "/work"), "{glob:?} on x/../{path:?}");
        }
    }
}
