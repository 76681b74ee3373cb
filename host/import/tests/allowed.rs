//! Allow lists that became look-around exclude what the scanner excludes, and nothing else: every secret of some rules is tried.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use flow::SourceFile;
use rules::RuleSet;
use tidegate_import::import;

use crate::support::{fires, in_force};

/// The rule of a set of one, in force.
fn rule(regex: &str, allowed: &str) -> Arc<RuleSet> {
    let set =
        format!("[[rules]]\nid = 'a'\nregex = '''{regex}'''\n[[rules.allowlists]]\nregexes = ['''{allowed}''']\n");
    let imported = import(&SourceFile::new("a.toml", set)).unwrap();
    let [one] = imported.rules.as_slice() else { panic!("{:?}", imported.skipped) };
    assert!(one.left_out.is_empty(), "{regex} {allowed}: {:?}", one.left_out);
    in_force(one)
}

/// All texts of so many of these characters.
fn texts(chars: &str, length: usize) -> Vec<String> {
    (0..length).fold(vec![String::new()], |all, _| {
        all.iter().flat_map(|text| chars.chars().map(move |c| format!("{text}{c}"))).collect()
    })
}

type IsAllowed = fn(&str) -> bool;

#[test]
fn every_secret_is_found_unless_it_is_allowed() {
    let same: IsAllowed = |secret| secret.chars().all(|c| c == 'a') || secret.chars().all(|c| c == 'b');
    let cases: [(&str, &str, &str, [&str; 2], IsAllowed); 11] = [
        ("k:([abc]{5});", "^(?:a+|b+)$", "abc", ["k:", ";"], same),
        // The flags of the expression are not those of the list.
        ("(?i)k:([a-c]{5})(?:;|$)", "^(?:a+|b+)$", "abB", ["K:", ""], same),
        ("(?i)k:([a-c]{5})(?:;|$)", "(?i)^(?:a+|b+)$", "abB", ["K:", ""], |secret| {
            ["aaaaa", "bbbbb"].contains(&secret.to_lowercase().as_str())
        }),
        ("k:([abc]{5});", "bc", "abc", ["k:", ";"], |secret| secret.contains("bc")),
        ("k:([abc]{5});", "cab$", "abc", ["k:", ";"], |secret| secret.ends_with("cab")),
        ("k:([abc]{5});", ".+ca$", "abc", ["k:", ";"], |secret| secret.ends_with("ca")),
        (r"\b(k[abc]{4})\b", ".+cb$", "abc", ["x ", " k"], |secret| secret.ends_with("cb")),
        (r"\b(k[abc]{4})\b", "^kab", "abc", ["x ", " k"], |secret| secret.starts_with("kab")),
        // Entries of which a part cannot be in the secret.
        ("k:([abc]{4});", "^a[_-]?b|ba$|^(?:c-|c)a", "abc", ["k:", ";"], |secret| {
            secret.starts_with("ab") || secret.ends_with("ba") || secret.starts_with("ca")
        }),
        // What follows the secret belongs to no entry of the list.
        ("k:([abc]{4})d", "^abc$|cd", "abc", ["k:", "d"], |_| false),
        ("k:([abc]{1,4});", "^ab$|cc", "abc", ["k:", ";"], |secret| secret == "ab" || secret.contains("cc")),
    ];
    for (regex, allowed, chars, [before, behind], is_allowed) in cases {
        let set = rule(regex, allowed);
        let is_word = regex.starts_with(r"\b");
        let lengths = if regex.contains("{1,4}") {
            1..=4
        } else if regex.contains("{5}") {
            5..=5
        } else {
            4..=4
        };
        let mut found = 0;
        for text in lengths.flat_map(|length| texts(chars, length)) {
            let secret = if is_word { format!("k{text}") } else { text };
            let answer = format!("{before}{secret}{behind}");
            assert_eq!(fires(&set, &answer), !is_allowed(&secret), "{regex} {allowed}: {answer}");
            found += usize::from(!is_allowed(&secret));
        }
        assert!(found > 20, "{regex} {allowed}: {found}");
    }
}
