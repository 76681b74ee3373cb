//! What is written in the place of a glob and matches no path that a call can name: addresses, variables of editors, groups of regular
//! expressions, endings without a `*`, full-width signs; and what is wrong with a glob, in words for whoever wrote it.

use globset::ErrorKind;

/// The signs of globs, and their full-width forms, which are characters of a name.
const FULL_WIDTH: [(char, char); 8] =
    [('＊', '*'), ('／', '/'), ('＼', '/'), ('｛', '{'), ('｝', '}'), ('［', '['), ('］', ']'), ('｜', ',')];

/// Endings of files that nobody uses as the whole name of one.
const ENDINGS: [&str; 45] = [
    "c", "cc", "cjs", "cpp", "cs", "css", "csv", "cts", "dart", "go", "gradle", "h", "hpp", "html", "ini", "java",
    "js", "json", "jsx", "kt", "less", "lock", "lua", "md", "mdc", "mdx", "mjs", "mts", "php", "proto", "py", "rb",
    "rs", "scss", "sh", "sql", "svelte", "swift", "tf", "toml", "ts", "tsx", "txt", "vue", "yaml",
];

/// Why a text is no glob, for the end of a sentence, and what to write.
pub(super) fn syntax(text: &str) -> Option<(String, String)> {
    let instead = |glob: &str| format!("write `{glob}`");
    if let Some((scheme, rest)) = address(text) {
        let path = rest.trim_start_matches('/');
        let help = format!(
            "paths of files have no `{scheme}`: write `{path}` for a path in the workspace, `/{path}` for an absolute one"
        );
        return Some(("is an address".to_owned(), help));
    }
    if let Some((name, rest)) = variable(text) {
        let help = format!("globs begin in the workspace: {}", instead(rest));
        return Some((format!("contains `{name}`, which is not expanded"), help));
    }
    if let Some((sign, _)) = FULL_WIDTH.iter().find(|(sign, _)| text.contains(*sign)) {
        let plain = |c: char| FULL_WIDTH.iter().find(|(sign, _)| *sign == c).map_or(c, |(_, plain)| *plain);
        return Some((
            format!("contains the full-width sign `{sign}`"),
            instead(&text.chars().map(plain).collect::<String>()),
        ));
    }
    if let Some(fixed) = alternatives(text) {
        return Some(("has alternatives in `(…)`".to_owned(), instead(&fixed)));
    }
    if matches!(text, "true" | "false" | "null" | "yes" | "no") {
        let help = "write a glob, such as `src/**`; a rule for every file has `always_apply`".to_owned();
        return Some(("is a word and no glob".to_owned(), help));
    }
    let (folder, name) = text.rsplit_once('/').map_or(("", text), |(folder, name)| (folder, name));
    let ending = name.strip_prefix('.').filter(|ending| ENDINGS.contains(ending) || *ending == "yml")?;
    let slash = if folder.is_empty() { "" } else { "/" };
    Some((
        format!("matches nothing but a file of the name `.{ending}`"),
        instead(&format!("{folder}{slash}*.{ending}")),
    ))
}

/// The scheme of an address, and what follows it.
fn address(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://").or_else(|| text.strip_prefix("file:").map(|rest| ("file", rest)))?;
    let is_word =
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_word.then(|| (&text[..text.len() - rest.len()], rest))
}

/// A variable of an editor or of a shell at the beginning, and what follows it. `$slug.tsx` is a name.
fn variable(text: &str) -> Option<(&str, &str)> {
    let end = match text.strip_prefix('%') {
        Some(rest) => rest.find('%')? + 2,
        None if text.starts_with("${") => text.find('}')? + 1,
        None => ["$HOME", "$PWD", "$WORKSPACE"].into_iter().find(|name| text.starts_with(name))?.len(),
    };
    let rest = text[end..].trim_start_matches(['/', '\\']);
    Some((&text[..end], if rest.is_empty() { "**" } else { rest }))
}

/// A glob with `{a,b}` in the place of `(a|b)`, which is not one of the extended globs.
fn alternatives(text: &str) -> Option<String> {
    let open = text.match_indices('(').find(|(at, _)| !text[..*at].ends_with(['!', '?', '*', '+', '@']))?.0;
    let close = open + text[open..].find(')')?;
    let inside = &text[open + 1..close];
    let group = format!("{{{}}}", inside.replace('|', ","));
    inside.contains('|').then(|| format!("{}{group}{}", &text[..open], &text[close + 1..]))
}

/// Why a glob cannot be read, for the end of a sentence, and what to write.
pub(super) fn reason(kind: &ErrorKind) -> (String, &'static str) {
    let itself = "write the character itself in a class of its own: `[[]`, `[{]`, `[}]`";
    match kind {
        ErrorKind::UnclosedClass => ("has a `[` without a `]`".to_owned(), itself),
        ErrorKind::InvalidRange(from, to) => {
            (format!("has the range `{from}-{to}`, which is empty"), "write the lower character first")
        }
        ErrorKind::UnopenedAlternates => ("has a `}` without a `{`".to_owned(), itself),
        ErrorKind::UnclosedAlternates => ("has a `{` without a `}`".to_owned(), "close it, as in `*.{ts,tsx}`"),
        ErrorKind::DanglingEscape => ("ends with a backslash".to_owned(), "remove it, or write `/`"),
        _ => ("is too large, or is no glob".to_owned(), "write several shorter ones"),
    }
}
