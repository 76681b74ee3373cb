//! Splits a list of globs in one string.

use super::InvalidScope;

/// The globs of a list. A comma or a semicolon separates them, and a blank where what precedes it is a glob of its own;
/// within `()`, `[]`, `{}` and quotes nothing does. Quotes around a whole glob are taken away.
pub(crate) fn split(text: &str) -> Result<Vec<String>, InvalidScope> {
    let mut out = Vec::new();
    for token in parts(text, |c| matches!(c, ',' | ';' | '\n')) {
        let token = token.trim();
        match quoted_words(token) {
            // A blank in quotes belongs to the name.
            Some(words) => out.extend(words.into_iter().map(|one| one.trim().to_owned())),
            None => out.extend(at_blanks(token.trim_matches(['"', '\'']).trim())?),
        }
    }
    out.retain(|glob| !glob.is_empty());
    Ok(out)
}

/// What is between the quotes, where a text is nothing but words in quotes with blanks between them: `"*.ts" "*.js"`.
pub(crate) fn quoted_words(text: &str) -> Option<Vec<&str>> {
    let words = parts(text, char::is_whitespace).into_iter().filter(|word| !word.is_empty());
    let unquoted = |word: &'_ str| -> Option<(usize, usize)> {
        let quote = word.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        (word.len() > 1 && word.find(quote) == Some(0) && word[1..].find(quote) == Some(word.len() - 2))
            .then_some((1, word.len() - 1))
    };
    words
        .map(|word| unquoted(word).map(|(from, to)| &word[from..to]))
        .collect::<Option<Vec<_>>>()
        .filter(|all| !all.is_empty())
}

/// The parts of `text` between separators that are not within brackets or quotes.
pub(crate) fn parts(text: &str, separates: impl Fn(char) -> bool) -> Vec<&str> {
    let (mut out, mut from, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) if depth == 0 && separates(c) => {
                out.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

/// `*.ts *.js` is a list, `My Notes/*.md` is not, and `a.json b.json` may be either.
fn at_blanks(text: &str) -> Result<Vec<String>, InvalidScope> {
    let words: Vec<&str> = parts(text, char::is_whitespace).into_iter().filter(|word| !word.is_empty()).collect();
    let mut out: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = out.last_mut().filter(|_| at > 0);
        match before {
            None => out.push((*word).to_owned()),
            Some(before) => match ends_a_glob(before, word) {
                Some(true) => out.push((*word).to_owned()),
                Some(false) => {
                    before.push(' ');
                    before.push_str(word);
                }
                None => {
                    let message =
                        format!("glob `{text}` contains a blank, which may separate two globs or be part of a name");
                    let help = "write a comma between two globs, or quotes around a name with a blank";
                    return Err(InvalidScope::new(message).help(help));
                }
            },
        }
    }
    Ok(out)
}

/// Whether a glob ends before a blank, with `next` after it. `None`: that cannot be known.
fn ends_a_glob(before: &str, next: &str) -> Option<bool> {
    let last = before.rsplit('/').next().unwrap_or_default();
    if last.is_empty() || last.contains(['*', '?', ']', '}', ')']) || next.starts_with('!') {
        return Some(true);
    }
    let begins = next.starts_with(['*', '/', '{']) || next.starts_with("./");
    (!begins && !last.contains('.')).then_some(false)
}
