//! Real text for the benches, and rules that watch it: deterministic, and of the kind that models write.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use rules::{Rule, RuleLayer, RuleOrigin, RuleSet, RuleSettings, RuleSpec, Strings};

use super::guests::root;

/// Code that models write too often, as patterns. `@` is replaced by a name of [`NAMES`].
const SHAPES: [&str; 30] = [
    r"\b@\.(?:unwrap_all|expectOne)\s*\(",
    r"\bconsole\.@\s*\(",
    r#"(?i)\b@_(?:key|token|secret)\s*[:=]\s*["'][A-Za-z0-9/+_-]{16,}["']"#,
    r#"\bimport\s+[^;\n]{0,80}\bfrom\s+["']@["']"#,
    r"(?m)^\s*from\s+@\s+import\s+\*",
    r"\b(?:TODO|FIXME)\(@\)",
    r"\bnew\s+@Factory\s*\(",
    r"<@\b[^>\n]{0,200}\bonclick\s*=",
    r"\bgit\s+@\s+--force\b",
    r"\$\{?@_PASSWORD\b",
    r"\bas\s+any\s+as\s+@\b",
    r"\bstatic\s+mut\s+@\b",
    r"(?m)^\s*except\s+@Error\s*:\s*\n\s*pass\b",
    r#"\bprintln!\(\s*"[^"\n]{0,40}\{@:\?\}"#,
    r"\bsetTimeout\(\s*@\s*,\s*0\s*\)",
    r"(?i)\bselect\s+\*\s+from\s+@\b",
    r"\brm\s+-[rRf]{1,3}\s+/@\b",
    r"\bchmod\s+(?:-R\s+)?777\s+@\b",
    r"\bcurl\s+[^|\n]{0,120}\|\s*(?:sudo\s+)?@sh\b",
    r"\b@\s*===?\s*NaN\b",
    r"(?m)^#\[allow\(@\)\]$",
    r"\bdocument\.@\.innerHTML\s*=",
    r"\bunsafe\s+fn\s+@\b",
    r"\bThread\.sleep\(@\b",
    r"(?i)\bpassword\s*=\s*@\.plain\b",
    r"\bfunc\s+@\([^)\n]{0,100}\)\s+interface\{\}",
    r"\b@\.clone\(\)\.clone\(\)",
    r"\bprocess\.env\.@\b\s*!",
    r"\blocalhost:\d{2,5}/@\b",
    r"(?m)^\s*@\s*=\s*eval\(compile\(",
];

/// Words that code is full of, so that many matches begin and none ends.
const NAMES: [&str; 20] = [
    "result", "self", "value", "text", "event", "session", "plugin", "message", "string", "parser", "config", "error",
    "state", "token", "model", "output", "input", "buffer", "stream", "path",
];

/// The first `count` patterns: every shape with the first name, then with the second, and so on; from the 601st on, with
/// two names joined.
pub(crate) fn patterns(count: usize) -> Vec<String> {
    let name = |number: usize| match number / NAMES.len() {
        0 => NAMES[number].to_owned(),
        more => format!("{}_{}", NAMES[number % NAMES.len()], NAMES[(number + more * 7) % NAMES.len()]),
    };
    (0..count).map(|at| SHAPES[at % SHAPES.len()].replace('@', &name(at / SHAPES.len()))).collect()
}

/// A set of rules that watch prose, one for each pattern; a match of any of them stops the model.
pub(crate) fn rule_set(patterns: &[String]) -> Arc<RuleSet> {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "bench".into() };
    let rule = |(number, pattern): (usize, &String)| -> Rule {
        let spec = RuleSpec {
            body: Some("Write it another way.".into()),
            condition: Strings(vec![pattern.clone()]),
            scope: Strings(vec!["text".into()]),
            ..RuleSpec::default()
        };
        let (rule, found) = Rule::from_spec(&format!("rule-{number}"), &source, &spec, None);
        // Some real conditions have warnings, such as of a word boundary that says nothing.
        rule.unwrap_or_else(|| panic!("{pattern}: {found:?}"))
    };
    let rules = patterns.iter().enumerate().map(rule).collect();
    let (set, found) = RuleSet::build(rules, RuleSettings::default(), "/workspace");
    assert!(found.is_empty(), "{found:?}");
    set
}

/// The patterns as the `regex` crate knows them, ASCII as ours are.
pub(crate) fn regexes(patterns: &[String]) -> Vec<Regex> {
    patterns.iter().map(|pattern| RegexBuilder::new(pattern).unicode(false).build().unwrap()).collect()
}

/// `bytes` bytes of text: this repository's own sources and pages, over and over where they are not enough; without the
/// built-in rules, whose examples are what rules forbid. Pieces of ten
/// lines are taken from everywhere in turn, so that a short text is of the same kind as a long one. ASCII, so that it can be
/// cut anywhere.
pub(crate) fn text(bytes: usize) -> String {
    let mut all = String::new();
    for folder in ["host", "rules", "sdk"] {
        collect(&root().join(folder), &mut all);
    }
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    let blocks: Vec<&[&str]> = lines.chunks(10).collect();
    assert!(blocks.len() > STRIDE, "the sources are there: {} bytes", all.len());
    let mut text = String::with_capacity(bytes + 10_000);
    let mut at = 0;
    while text.len() < bytes {
        text.extend(blocks[at].iter().copied());
        at = (at + STRIDE) % blocks.len();
    }
    text.truncate(bytes);
    text
}

/// How many blocks are passed over; a prime number, so that every block has its turn.
const STRIDE: usize = 389;

fn collect(folder: &Path, text: &mut String) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let kind = path.extension().and_then(|kind| kind.to_str());
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target" && name != "builtin") {
            collect(&path, text);
        } else if matches!(kind, Some("rs" | "md" | "wit")) {
            let file = fs::read_to_string(&path).unwrap();
            text.extend(file.chars().map(|c| if c.is_ascii() { c } else { '?' }));
        }
    }
}

/// The text in chunks of four bytes.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    pieces_of(text, 4)
}

/// The text in chunks of so many bytes.
pub(crate) fn pieces_of(text: &str, bytes: usize) -> Vec<&str> {
    text.as_bytes().chunks(bytes).map(|piece| std::str::from_utf8(piece).unwrap()).collect()
}
