//! Imported rules fire on the texts that the engine of their scanner matches.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use flow::SourceFile;
use regex::bytes::RegexBuilder;
use tidegate_import::{Hidden, RuleText, import};

use crate::support::{fires, in_force};

/// The rule of a gitleaks set, whose expressions are those of Go.
fn go(regex: &str) -> RuleText {
    one("a.toml", &format!("[[rules]]\nid = 'a'\nregex = '''{regex}'''\n"))
}

/// The rule of a set of TruffleHog 2, whose expressions are those of Python.
fn python(regex: &str) -> RuleText {
    one("a.json", &serde_json::json!({ "a": regex }).to_string())
}

fn one(file: &str, set: &str) -> RuleText {
    let mut imported = import(&SourceFile::new(file, set)).unwrap();
    assert!(imported.skipped.is_empty(), "{set}: {:?}", imported.skipped);
    imported.rules.pop().unwrap()
}

#[test]
fn a_rule_fires_on_what_its_scanner_finds() {
    for (rule, regex, found, others) in [
        (
            go as fn(&str) -> RuleText,
            r"foo=(?:q[^]\s]{20}|[0-9]{10})",
            &["foo=qabcdefghijklmnopqrstuvw", "foo=0123456789"][..],
            &["foo=qabcdefghijklmnopqrs]uvw"][..],
        ),
        (go, r"foo=[]a]{4}[0-9]{6}", &["foo=a]]a123456"], &["foo=abba123456"]),
        (go, r"foo=[a-z]{,8}[0-9]{10}", &["foo=a{,8}1234567890"], &["foo=abc1234567890"]),
        (go, r"foo=[a-z&&[0]{4}[0-9]{6}", &["foo=a&[0123456"], &["foo=ab.0123456"]),
        (
            python,
            r"kex=(?:[a-z]{,8}[0-9]{10}|zz[0-9]{9})",
            &["kex=abc1234567890", "kex=zz123456789"],
            &["kex=a{,8}1234567890"],
        ),
        (
            go,
            "https://hooks.a.example/T[A-Z0-9]{8}/[a-z]{4}",
            &["at https://hooks.a.example/TABCD1234/abcd"],
            &["https://hooks.a.example/T", "a/b"],
        ),
        (python, "/foo[0-9]{8}/i", &["a/foo01234567/i"], &["foo01234567", "FOO01234567"]),
        (python, "foo=[0-9]{8}$", &["foo=01234567", "foo=01234567\n"], &["foo=01234567\n\n", "foo=01234567 "]),
        (python, r"foo=[^]\s]{20}", &["foo=abcdefghijklmnopqrst"], &["foo=abcdefghij]klmnopqrst"]),
        (python, r"foo=[[:alpha:]{4}[0-9]{6}", &["foo=[:ah123456"], &["foo=bcde123456"]),
    ] {
        let set = in_force(&rule(regex));
        for text in found {
            assert!(fires(&set, text), "{regex} does not fire on {text}");
        }
        for text in others {
            assert!(!fires(&set, text), "{regex} fires on {text}");
        }
    }
}

#[test]
fn a_group_of_the_scanner_with_the_name_hide_hides_nothing_by_its_name() {
    for rule in [python(r"user[a-z]pass[0-9]{8}(?P<hide>;)"), python(r"(?:user(?<hide>[a-z])|pass)[0-9]{8};")] {
        assert_eq!(rule.hidden, Hidden::Match, "{}", rule.text);
        assert!(!rule.text.contains("hide>"), "{}", rule.text);
    }
}

/// Expressions of Go, and a text that each of them matches. Where the crate `regex` reads one otherwise, `OTHERWISE` has its spelling.
const EXPRESSIONS: &[(&str, &str)] = &[
    (r"foo=(?:q[^]\s]{5}|[0-9]{4})", "foo=qab-de"),
    (r"[]a-c]{3}:[^]]{2}x", "a]c:[[x"),
    (r"k[[:digit:][:space:]]{3}[[]x", "k1 2[x"),
    (r"(?i)key[\w.-]{0,4}[=:]\s?([a-f]{4})\b", "Key_a: abCd"),
    (r"a/b[0-9]{2}/c?d", "a/b01/cd"),
    (r"\b(ab|a)(b?c){2}(?:;|$)", "abbcc;"),
    ("<key=\"([^\"]{3,5})\">", "<key=\"abc\">"),
    (r"(?:x{2,3}|y+)-[^a-c0]", "yy-d"),
    (r"a{b}\{[}]", "a{b}{}"),
    (r"p[&~|-]{2}[a&&~]{2}q", "p&-~aq"),
    (r"(?s)begin.{2,4}?end", "begin\n-end"),
    (r"u:[^:@/]+@(?:h|[.])", "u:ab@."),
];

const OTHERWISE: [(&str, &str); 3] = [("{b}", r"\{b\}"), ("[[]", r"[\[]"), ("&&~", r"\&\&~")];

#[test]
fn a_rule_fires_where_another_engine_finds_a_match() {
    let mut number = 1_u64;
    // The generator of Knuth's MMIX.
    let mut below = |end: usize| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as usize % end
    };
    for (regex, text) in EXPRESSIONS {
        let plain = OTHERWISE.iter().fold((*regex).to_owned(), |text, (go, plain)| text.replace(go, plain));
        let other = RegexBuilder::new(&plain).unicode(false).build().unwrap();
        let set = in_force(&go(regex));
        let alphabet: Vec<char> = text.chars().chain("a]0 &[{;\n".chars()).collect();
        let (mut found, mut not) = (0, 0);
        for _ in 0..300 {
            let mut chars: Vec<char> = text.chars().collect();
            for _ in 0..below(3) {
                let (at, new) = (below(chars.len()), alphabet[below(alphabet.len())]);
                match below(3) {
                    0 => chars[at] = new,
                    1 => chars.insert(at, new),
                    _ => drop(chars.remove(at)),
                }
            }
            let text: String = chars.into_iter().collect();
            let matches = other.is_match(text.as_bytes());
            assert_eq!(fires(&set, &text), matches, "{regex}: {text:?}");
            *if matches { &mut found } else { &mut not } += 1;
        }
        assert!(found > 30 && not > 30, "{regex}: {found} of {}", found + not);
    }
}
