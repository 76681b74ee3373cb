//! Images that an input names: `@shots/screen.png`. They go to the model with the input.

use std::ops::Range;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tidegate::chat::Attachment;
use tidegate::message::{Image, MAX_IMAGE_BYTES};

/// The endings of files with images that models take, and their media types.
const TYPES: [(&str, &str); 5] =
    [("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp")];

/// A path in an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention<'t> {
    /// Its bytes in the input, with the `@` and the quotes.
    pub(super) range: Range<usize>,
    pub(super) path: &'t str,
}

/// The paths that an input names with `@`, at the beginning of a word. One with spaces is in quotes: `@"a b.png"`.
pub(super) fn mentions(text: &str) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find('@').map(|next| at + next) {
        at = next + 1;
        if text[..next].chars().next_back().is_some_and(|before| !before.is_whitespace() && !"([{\"'".contains(before))
        {
            continue;
        }
        let rest = &text[at..];
        let quoted = rest.strip_prefix('"').map(|inner| (1, inner.find(['"', '\n']).unwrap_or(inner.len())));
        let (skipped, length) = quoted.unwrap_or((0, rest.find(char::is_whitespace).unwrap_or(rest.len())));
        let path = &rest[skipped..skipped + length];
        let closed = usize::from(skipped > 0 && rest[skipped + length..].starts_with('"'));
        let end = at + skipped + length + closed;
        found.push(Mention { range: next..end, path });
        at = end;
    }
    found
}

/// A path as it is written in an input.
pub(super) fn mention(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

/// The media type of an image by the ending of its name.
fn media_type(path: &str) -> Option<&'static str> {
    let ending = Path::new(path).extension()?.to_str()?;
    TYPES.iter().find(|(one, _)| one.eq_ignore_ascii_case(ending)).map(|(_, media_type)| *media_type)
}

/// The images that an input names, and that are there: the path of each and its size in bytes.
pub(super) fn named<'t>(text: &'t str, workspace: &Path) -> Vec<(&'t str, u64)> {
    let size = |path: &str| std::fs::metadata(workspace.join(path)).ok().filter(std::fs::Metadata::is_file);
    let mentions = mentions(text).into_iter().map(|one| trimmed(one.path)).filter(|path| media_type(path).is_some());
    mentions.filter_map(|path| Some((path, size(path)?.len()))).collect()
}

/// A path without the mark that ends the sentence around it.
fn trimmed(path: &str) -> &str {
    path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"'])
}

/// Reads an image of an input.
///
/// # Errors
/// It cannot be read, or no model takes it: a sentence for the user.
pub(super) fn read(path: &str, workspace: &Path) -> Result<Attachment, String> {
    let failed = |why: &dyn std::fmt::Display| format!("the image `{path}` cannot be attached: {why}");
    let file = workspace.join(path);
    let size = std::fs::metadata(&file).map_err(|error| failed(&error))?.len();
    if size > MAX_IMAGE_BYTES as u64 {
        return Err(failed(&format_args!("it has {size} bytes, and {MAX_IMAGE_BYTES} are allowed")));
    }
    let data = STANDARD.encode(std::fs::read(&file).map_err(|error| failed(&error))?);
    let media_type = media_type(path).unwrap_or_default();
    Image::new(media_type, data.as_str()).map_err(|error| failed(&error))?;
    Ok(Attachment::new(path, media_type, &data))
}

/// The path of an image that was pasted, or dropped on the terminal, as an input names it. Terminals quote such a path for a shell, or give it
/// as an address. `None`: something else was pasted, or there is no such file.
pub(super) fn pasted(text: &str, workspace: &Path) -> Option<String> {
    let text = text.trim();
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let path = match (text.strip_prefix("file://"), within('\'').or_else(|| within('"'))) {
        (Some(address), _) => decoded(address)?,
        (None, Some(inner)) => inner.to_owned(),
        (None, None) => unescaped(text),
    };
    let is_path = !path.contains(['\n', '"']) && media_type(&path).is_some();
    (is_path && workspace.join(&path).is_file()).then(|| mention(&path))
}

/// A word of a shell without its backslashes.
fn unescaped(word: &str) -> String {
    let mut chars = word.chars();
    std::iter::from_fn(|| match chars.next() {
        Some('\\') => chars.next(),
        next => next,
    })
    .collect()
}

/// The path of an address, of which `%` and two digits encode a byte.
fn decoded(address: &str) -> Option<String> {
    let path = address.strip_prefix("localhost").unwrap_or(address);
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The first bytes of a PNG file.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    #[test]
    fn paths_are_named_at_the_beginning_of_a_word() {
        let cases: [(&str, &[(&str, &str)]); 8] = [
            ("look at @a.png and @src/b.rs", &[("@a.png", "a.png"), ("@src/b.rs", "src/b.rs")]),
            ("me@example.png", &[]),
            ("@\"a b.png\" x", &[("@\"a b.png\"", "a b.png")]),
            ("@\"a b", &[("@\"a b", "a b")]),
            ("(@a.png)", &[("@a.png)", "a.png)")]),
            ("@", &[("@", "")]),
            ("@@a", &[("@@a", "@a")]),
            ("é\n@ü.png", &[("@ü.png", "ü.png")]),
        ];
        for (text, expected) in cases {
            let found: Vec<_> = mentions(text).into_iter().map(|one| (&text[one.range], one.path)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn images_that_are_there_are_read_and_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        std::fs::write(here.join("a b.PNG"), PNG).unwrap();
        std::fs::write(here.join("text.png"), "text").unwrap();
        std::fs::write(here.join("large.png"), vec![0; MAX_IMAGE_BYTES + 1]).unwrap();
        std::fs::create_dir(here.join("folder.png")).unwrap();
        let text = "see @\"a b.PNG\", @gone.png, @folder.png, @text.png, and @main.rs.";
        assert_eq!(named(text, here), [("a b.PNG", PNG.len() as u64), ("text.png", 4)]);
        let read = |path| read(path, here);
        assert_eq!(read("a b.PNG").unwrap().media_type.as_str(), "image/png");
        assert!(read("text.png").unwrap_err().contains("no image of the type image/png"));
        assert!(read("large.png").unwrap_err().contains("are allowed"));
        assert!(read("gone.png").unwrap_err().starts_with("the image `gone.png` cannot be attached: "));
    }

    #[test]
    fn the_path_of_an_image_that_was_dropped_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        std::fs::write(folder.path().join("a b.png"), PNG).unwrap();
        std::fs::write(folder.path().join("c.png"), PNG).unwrap();
        let cases = [
            (format!("{here}/c.png\n"), Some(format!("@{here}/c.png"))),
            ("c.png".to_owned(), Some("@c.png".to_owned())),
            (format!("'{here}/a b.png' "), Some(format!("@\"{here}/a b.png\""))),
            (format!("{here}/a\\ b.png"), Some(format!("@\"{here}/a b.png\""))),
            (format!("file://{here}/a%20b.png"), Some(format!("@\"{here}/a b.png\""))),
            (format!("file://localhost{here}/c.png"), Some(format!("@{here}/c.png"))),
            (format!("{here}/gone.png"), None),
            ("see c.png".to_owned(), None),
            ("c.png\nc.png".to_owned(), None),
            (String::new(), None),
        ];
        for (text, expected) in cases {
            assert_eq!(pasted(&text, folder.path()), expected, "{text}");
        }
    }
}
