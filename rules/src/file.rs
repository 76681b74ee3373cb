//! Rule files: Markdown with front matter. The front matter holds the keys of [`RuleSpec`], the rest is the body.

use std::ops::Range;

use crate::{Diagnostic, Rule, RuleSpec, Severity, Source};

/// Reads a rule file. `name` is the file's name without its extension. The diagnostics tell what was refused; their
/// spans are bytes of `text`.
pub fn parse_rule_file(name: &str, source: &Source, text: &str) -> (Option<Rule>, Vec<Diagnostic>) {
    let mut spec = match read_spec(name, source, text) {
        Ok(spec) => spec,
        Err(diagnostic) => return (None, vec![diagnostic]),
    };
    let mut warnings = Vec::new();
    if spec.name.is_some() || spec.body.is_some() {
        let message = "`name` and `body` are not read in a rule file";
        let help = "the name is the file's name, the body is what follows the front matter";
        warnings.push(Diagnostic::new(Severity::Error, name, source, message).help(help));
        return (None, warnings);
    }
    spec.body = Some(split(text).map_or(text, |parts| &text[parts.body]).to_owned());
    let (rule, found) = Rule::from_spec(name, source, &spec, Some(text));
    warnings.extend(found);
    (rule, warnings)
}

fn read_spec(name: &str, source: &Source, text: &str) -> Result<RuleSpec, Diagnostic> {
    let refuse = |message: String| Diagnostic::new(Severity::Error, name, source, message);
    let Some(parts) = split(text) else {
        let message = "the file has no front matter".to_owned();
        return Err(refuse(message)
            .help("begin it with a line `+++`, the keys in TOML, and a line `+++`")
            .at(Some(0..0)));
    };
    toml::from_str(&text[parts.front.clone()]).map_err(|error| {
        let span = error.span().map(|span| parts.front.start + span.start..parts.front.start + span.end);
        refuse(error.message().to_owned()).at(span)
    })
}

struct Parts {
    front: Range<usize>,
    body: Range<usize>,
}

/// Finds the front matter between two lines of `+++`; a byte order mark before it is passed over.
fn split(text: &str) -> Option<Parts> {
    let begin = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = text[begin..].split_inclusive('\n').scan(begin, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    let (start, first) = lines.next()?;
    if first.trim_end() != "+++" {
        return None;
    }
    let (end, fence) = lines.find(|(_, line)| line.trim_end() == "+++")?;
    Some(Parts { front: start + first.len()..end, body: end + fence.len()..text.len() })
}
