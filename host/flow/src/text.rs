//! Functions on strings that several crates need: suggestions for a misspelt word, lexical paths, the bounds of globs.

/// The similarity from which on a word is suggested for another: Jaro-Winkler, where 1 is the same word.
const SIMILAR: f64 = 0.8;

/// The known word that is most similar to `word`, if one is similar. Letter case does not count.
pub fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let word = word.to_lowercase();
    let scored = known.into_iter().map(|name| (strsim::jaro_winkler(&word, &name.to_lowercase()), name));
    scored.filter(|(score, _)| *score >= SIMILAR).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Whether two names differ in one letter at most (added, left out, another one, or two that changed places), apart from letter case and
/// the separators `_`, `-`, `.` and space.
pub fn differs_by_one_letter(one: &str, other: &str) -> bool {
    let letters = |name: &str| name.to_lowercase().replace(['_', '-', '.', ' '], "");
    strsim::osa_distance(&letters(one), &letters(other)) <= 1
}

/// The path without `.`, `..` and doubled separators, as far as its text tells: never above the root, and a relative path
/// that leads up keeps its leading `..`. Empty for a path that leads nowhere, such as `.`.
pub fn normal_path(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => drop(parts.pop()),
            ("..", _) if rooted => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if rooted { format!("/{joined}") } else { joined }
}

/// The most bytes of a glob: what it compiles to stays far below the size at which compiling fails.
const MAX_GLOB_BYTES: usize = 4096;

/// The deepest nesting of braces in a glob: compiling a much deeper one overflows the stack.
const MAX_GLOB_DEPTH: u32 = 16;

/// Checks that a glob from a model or a file can be compiled without exhausting memory or stack.
///
/// # Errors
/// Why it must not be compiled, to be read after the glob itself.
pub fn check_glob(glob: &str) -> Result<(), String> {
    if glob.len() > MAX_GLOB_BYTES {
        return Err(format!("it has {} bytes, {MAX_GLOB_BYTES} are allowed", glob.len()));
    }
    let mut depth = 0_u32;
    for c in glob.chars() {
        depth = if c == '{' { depth + 1 } else { depth.saturating_sub(u32::from(c == '}')) };
        if depth > MAX_GLOB_DEPTH {
            return Err(format!("braces are nested deeper than {MAX_GLOB_DEPTH}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check_glob, nearest, normal_path};

    #[test]
    fn a_similar_word_is_suggested_whatever_its_case() {
        let known = ["condition", "conditions", "scope"];
        assert_eq!(nearest("Conditon", known), Some("condition"));
        assert_eq!((nearest("zebra", known), nearest("scope", [])), (None, None));
    }

    #[test]
    fn paths_are_resolved_by_their_text() {
        let paths =
            [("a/./b//../c", "a/c"), ("../a", "../a"), ("/../a", "/a"), (".", ""), ("./a/", "a"), ("a/../..", "..")];
        for (path, normal) in paths {
            assert_eq!(normal_path(path), normal, "{path}");
        }
    }

    #[test]
    fn globs_are_bounded_in_length_and_depth() {
        assert_eq!(check_glob("src/**/*.{rs,{ts,tsx}}"), Ok(()));
        assert!(check_glob(&"a".repeat(5_000)).is_err_and(|why| why.contains("4096 are allowed")));
        assert!(check_glob(&"{".repeat(17)).is_err_and(|why| why == "braces are nested deeper than 16"));
    }
}
