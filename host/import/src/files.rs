//! Expressions for paths as globs, where a glob means exactly the same.

use regex_syntax::Parser;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The most globs of one expression.
const MOST: usize = 32;

/// The globs that match the paths which an expression is found in. `None`: there are none.
pub(crate) fn globs(text: &str) -> Option<Vec<String>> {
    let hir = Parser::new().parse(text).ok()?;
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let (last, parts) = parts.split_last()?;
    if *last.kind() != HirKind::Look(Look::End) {
        return None;
    }
    // Without a beginning, anything of the name may precede it.
    let (begin, parts) = match parts.split_first() {
        Some((first, rest)) if is_start_of_name(first) => ("", rest),
        _ => ("*", parts),
    };
    let mut out = vec![begin.to_owned()];
    for part in parts {
        out = joined(&out, &ends(part)?)?;
    }
    let names = out.iter().all(|glob| !glob.contains('/') && glob.len() > begin.len());
    names.then(|| out.into_iter().map(|glob| glob.replace("**", "*")).collect())
}

/// `(?:^|/)`, as the parser simplifies it.
fn is_start_of_name(hir: &Hir) -> bool {
    let inner = |one: &Hir| match one.kind() {
        HirKind::Look(Look::Start) => true,
        HirKind::Literal(literal) => &*literal.0 == b"/",
        _ => false,
    };
    matches!(hir.kind(), HirKind::Alternation(all) if all.len() == 2 && all.iter().all(inner))
}

/// Each beginning with each end; `None` where they are too many.
fn joined(begins: &[String], ends: &[String]) -> Option<Vec<String>> {
    let all = || begins.iter().flat_map(|begin| ends.iter().map(move |end| format!("{begin}{end}")));
    (begins.len().saturating_mul(ends.len()) <= MOST).then(|| all().collect())
}

/// The globs for a part of the expression, of which one has to match.
fn ends(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Empty => Some(vec![String::new()]),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@' | '+');
            text.chars().all(plain).then(|| vec![text.to_owned()])
        }
        HirKind::Class(class) => Some(vec![one_of(class)?]),
        HirKind::Capture(group) => ends(&group.sub),
        HirKind::Alternation(all) => all.iter().map(ends).collect::<Option<Vec<_>>>().map(|all| all.concat()),
        HirKind::Concat(parts) => {
            let mut out = vec![String::new()];
            for part in parts {
                out = joined(&out, &ends(part)?)?;
            }
            Some(out)
        }
        HirKind::Repetition(one) if one.max == Some(1) => Some([vec![String::new()], ends(&one.sub)?].concat()),
        HirKind::Repetition(one) if one.max.is_none() && one.min <= 1 && is_no_slash(&one.sub) => {
            Some(vec![if one.min == 1 { "?*".to_owned() } else { "*".to_owned() }])
        }
        HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// `[^/]`, with which a name goes on.
fn is_no_slash(hir: &Hir) -> bool {
    let HirKind::Class(Class::Unicode(class)) = hir.kind() else { return false };
    let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
    ranges == [('\0', '.'), ('0', char::MAX)]
}

/// A few letters or digits in brackets.
fn one_of(class: &Class) -> Option<String> {
    let Class::Unicode(class) = class else { return None };
    let mut all: Vec<char> = class.iter().flat_map(|range| range.start()..=range.end()).take(40).collect();
    // Folding adds letters such as the sign for Kelvin, which no name of a file has in place of a `k`.
    all.retain(char::is_ascii);
    let small = (1..=36).contains(&all.len()) && all.iter().all(char::is_ascii_alphanumeric);
    small.then(|| format!("[{}]", all.iter().rev().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::globs;

    #[test]
    fn globs_that_mean_the_same() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            (r"(?i)\.php$", Some(&["*.[pP][hH][pP]"])),
            (r"\.(?:tf|hcl)$", Some(&["*.tf", "*.hcl"])),
            (r"\.ya?ml$", Some(&["*.yml", "*.yaml"])),
            (r"nuget\.config$", Some(&["*nuget.config"])),
            (r"(?:^|\/)[^\/]+\.p(?:12|fx)$", Some(&["?*.p12", "?*.pfx"])),
            (r"(?:^|/)\.npmrc$", Some(&[".npmrc"])),
            (r"\.py", None),
            (r"(?:^|/)vendor/.*$", None),
            (r"^src/a\.rs$", None),
            (r".*\.tf$", None),
            (&format!("({})$", "(?:a0|b0)".repeat(24)), None),
        ];
        for (text, wanted) in cases {
            let wanted = wanted.map(|all| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
            assert_eq!(globs(text), wanted, "{text}");
        }
    }
}
