//! Translates a glob into the plain syntax that `globset` compiles.

use flow::text::check_glob;

use super::{InvalidScope, build, list::parts};
use crate::conditions::shown;

/// A glob in plain syntax.
#[derive(Clone, Debug, Default)]
pub(super) struct Forms {
    /// One of them has to match a way to write the path.
    pub(super) any: Vec<globset::Glob>,
    /// Or one of them the absolute path.
    pub(super) absolute: Vec<globset::Glob>,
    /// None of them may match: what `!(…)` leaves out.
    pub(super) except: Vec<globset::Glob>,
    /// It begins in the workspace: the name of a file alone does not match.
    pub(super) anchored: bool,
    /// It begins with `..`.
    pub(super) leads_out: bool,
}

/// The most values that a range such as `{1..20}` is written out to.
const MAX_RANGE: u32 = 100;

/// Reads a glob without `!` before it.
pub(super) fn forms(text: &str) -> Result<Forms, InvalidScope> {
    let shown = &shown(text);
    check_glob(text).map_err(|why| InvalidScope::new(format!("glob `{shown}` is invalid: {why}")))?;
    refuse_other_syntax(text, shown)?;
    let text = braces(&escapes(text))?;
    let anchored = text.starts_with('/') || text.starts_with("./");
    let is_absolute = text.starts_with('/') && text.len() > 1;
    let mut forms = Forms { anchored, ..Forms::default() };
    let (wanted, left_out) = extended(&text)?;
    for one in &wanted {
        let path = components(one, shown)?;
        forms.leads_out |= path.starts_with("../");
        forms.any.extend(compiled(&path, shown)?);
        if is_absolute {
            forms.absolute.extend(compiled(&format!("/{path}"), shown)?);
        }
    }
    for one in &left_out {
        forms.except.extend(compiled(&components(one, shown)?, shown)?);
    }
    Ok(forms)
}

/// What is no glob, and would match nothing.
fn refuse_other_syntax(text: &str, shown: &str) -> Result<(), InvalidScope> {
    let refused = |why: &str, help: &str| Err(InvalidScope::new(format!("glob `{shown}` {why}")).help(help));
    let typographic = |c: char| matches!(c, '`' | '“' | '”' | '„' | '‘' | '’' | '«' | '»');
    if text.trim().is_empty() {
        let help = "write a glob after the `!`, such as `!*.test.ts`";
        return Err(InvalidScope::new("a glob is missing after `!`").help(help));
    }
    if text.starts_with(typographic) || text.ends_with(typographic) {
        return refused("has quotes that are not straight around it", "remove them, or write straight quotes, \"…\"");
    }
    if text.starts_with('!') && !text.starts_with("!(") {
        return refused("begins with `!` where nothing can be left out", "write `!` in a list of globs only");
    }
    if text == "~" || text.starts_with("~/") {
        return refused("begins with `~`, which is not expanded", "write the absolute path, or `**/` in place of `~/`");
    }
    let is_regex = text.starts_with('^')
        || text.ends_with('$')
        || text.contains(".*\\.")
        || text.contains("(?")
        || text.strip_prefix("\\.").is_some_and(|rest| !rest.contains(['/', '\\']))
        || (text.ends_with(')') && text.contains("\\.("));
    if is_regex {
        return refused("is a regular expression", "write a glob, such as `*.ts` or `src/**`");
    }
    if parts(text, |c| c == '|').len() > 1 {
        return refused("contains `|`", "write a comma between two globs, or `{a,b}`");
    }
    match super::foreign::syntax(text) {
        Some((why, help)) => refused(&why, &help),
        None => Ok(()),
    }
}

/// A backslash separates folders, or takes a bracket literally where its partner has one, too: `\[slug\]`.
fn escapes(text: &str) -> String {
    let mut out = text.to_owned();
    for (open, close) in [('[', ']'), ('{', '}'), ('(', ')')] {
        let (first, last) = (format!("\\{open}"), format!("\\{close}"));
        if out.contains(&first) && out.contains(&last) {
            out = out.replace(&first, &format!("[{open}]")).replace(&last, &format!("[{close}]"));
        }
    }
    out.replace('\\', "/")
}

/// Blanks next to the commas in braces are not part of names, and ranges are written out.
fn braces(text: &str) -> Result<String, InvalidScope> {
    let (mut out, mut depth, mut rest) = (String::new(), 0_usize, text);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '{' => {
                depth += 1;
                let inside =
                    after.find(['{', '}']).filter(|end| after[*end..].starts_with('}')).map(|end| &after[..end]);
                if let Some(written) = inside.and_then(ends).map(|(first, last)| range(first, last)) {
                    out.push('{');
                    out.push_str(&written.ok_or_else(|| {
                        InvalidScope::new(format!("glob `{}` contains a range that is not valid", shown(text)))
                            .help(format!("write its values, at most {MAX_RANGE}, with commas: `{{1,2,3}}`"))
                    })?);
                    rest = &after[inside.map_or(0, str::len)..];
                    continue;
                }
                rest = after.trim_start();
            }
            '}' => {
                depth = depth.saturating_sub(1);
                out.truncate(out.trim_end().len());
                rest = after;
            }
            ',' if depth > 0 => {
                out.truncate(out.trim_end().len());
                rest = after.trim_start();
            }
            _ => rest = after,
        }
        out.push(c);
    }
    Ok(out)
}

/// The ends of a range; a path with `..` in it is none.
fn ends(inside: &str) -> Option<(&str, &str)> {
    inside.split_once("..").filter(|_| !inside.contains([',', '/', '*']))
}

/// `1..3` as `1,2,3`.
fn range(first: &str, last: &str) -> Option<String> {
    let letter = |text: &str| text.chars().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
    let number = |text: &str| text.parse::<u32>().ok();
    let width = if first.starts_with('0') { first.len() } else { 0 };
    let values: Vec<String> = match (letter(first), letter(last), number(first), number(last)) {
        (Some(first), Some(last), ..) => (first..=last).map(String::from).collect(),
        (.., Some(first), Some(last)) if last.saturating_sub(first) < MAX_RANGE => {
            (first..=last).map(|value| format!("{value:0width$}")).collect()
        }
        _ => Vec::new(),
    };
    (!values.is_empty()).then(|| values.join(","))
}

/// Extended globs: `@(a|b)` is `{a,b}`, `?(a)` is `{,a}`, and `!(a)` is any name but `a`. Returns what has to match, and what
/// must not.
fn extended(text: &str) -> Result<(Vec<String>, Vec<String>), InvalidScope> {
    let Some((at, kind)) = first_group(text) else { return Ok((vec![text.to_owned()], Vec::new())) };
    let refused = |why: &str, help: &str| Err(InvalidScope::new(format!("glob `{}` {why}", shown(text))).help(help));
    let open = at + 1;
    let Some(end) = closing(&text[open..]).map(|end| open + end) else {
        return refused("has no closing `)`", "close the group");
    };
    let (before, inside, after) = (&text[..at], &text[open + 1..end], &text[end + 1..]);
    let all = parts(inside, |c| c == '|').join(",");
    let wild = |part: Option<&str>| part.is_some_and(|part| part.contains(['*', '?', '!']));
    match kind {
        '@' => extended(&format!("{before}{{{all}}}{after}")),
        '?' => extended(&format!("{before}{{,{all}}}{after}")),
        '!' if wild(before.rsplit('/').next()) || wild(after.split('/').next()) => refused(
            "has a wildcard next to `!(…)` in one name",
            "write two globs: what is meant, and `!` before what is not",
        ),
        '!' => {
            let (wanted, mut left_out) = extended(&format!("{before}*{after}"))?;
            let (names, more) = extended(&format!("{before}{{{all}}}{after}"))?;
            left_out.extend(names.into_iter().chain(more));
            Ok((wanted, left_out))
        }
        _ => refused(
            &format!("repeats a group with `{kind}(…)`, which is not supported"),
            "write `*` for any characters, or the names that are meant in braces: `{a,aa}`",
        ),
    }
}

/// The first `!(`, `?(`, `*(`, `+(` or `@(`, outside of classes.
fn first_group(text: &str) -> Option<(usize, char)> {
    let mut class = false;
    let mut before = None;
    for (at, c) in text.char_indices() {
        match c {
            '[' => class = true,
            ']' => class = false,
            '(' if !class => {
                if let Some((at, kind)) = before.filter(|(_, kind)| "!?*+@".contains(*kind)) {
                    return Some((at, kind));
                }
            }
            _ => {}
        }
        before = Some((at, c));
    }
    None
}

/// The position of the bracket that closes the group at the beginning of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth - 1,
            _ => depth,
        };
        (depth == 0).then_some(at)
    })
}

/// The path from the workspace on: without `.` and doubled separators, a folder with all that is below it.
fn components(text: &str, shown: &str) -> Result<String, InvalidScope> {
    let mut out: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if out.last().is_none_or(|last| *last == "..") => out.push(part),
            ".." if out.last().is_some_and(|last| last.contains(['*', '?', '[', '{'])) => {
                let message = format!("glob `{shown}` has `..` behind a wildcard");
                return Err(InvalidScope::new(message).help("write the path without `..`"));
            }
            ".." => drop(out.pop()),
            part => out.push(part),
        }
    }
    if text.ends_with('/') || out.is_empty() {
        out.push("**");
    }
    Ok(out.join("/"))
}

/// The glob, with what it means in addition: the same with its brackets taken literally, and what is below it where it names
/// a folder.
fn compiled(path: &str, shown: &str) -> Result<Vec<globset::Glob>, InvalidScope> {
    let as_classes = build(path);
    let mut out = Vec::new();
    if path.contains('[') {
        let literal: String = path
            .chars()
            .map(|c| match c {
                '[' => "[[]".to_owned(),
                ']' => "[]]".to_owned(),
                c => c.to_string(),
            })
            .collect();
        let closed = path.matches('[').count() == path.matches(']').count();
        out.extend(build(&literal).ok().filter(|_| closed));
    }
    match as_classes {
        Ok(glob) => out.push(glob),
        // A class that is none is a name with brackets.
        Err(_) if !out.is_empty() => {}
        Err(error) => {
            let (why, help) = super::foreign::reason(error.kind());
            return Err(InvalidScope::new(format!("glob `{shown}` {why}")).help(help));
        }
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if !name.contains(['*', '?']) {
        let below: Vec<_> = out.iter().filter_map(|glob| build(&format!("{}/**", glob.glob())).ok()).collect();
        out.extend(below);
    }
    Ok(out)
}
