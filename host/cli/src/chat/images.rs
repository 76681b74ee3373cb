//! Images that an input names: `@shots/screen.png`. They go to the model with the input.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tidegate::chat::Attachment;
use tidegate::message::{Image, MAX_IMAGE_BYTES};

/// The quotes around a path with spaces.
const QUOTES: [char; 2] = ['"', '\''];

/// A path in an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention<'t> {
    /// Its bytes in the input, with the `@` and the quotes.
    pub(super) range: Range<usize>,
    pub(super) path: &'t str,
    quotes: Quotes,
}

/// Whether a path is in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    None,
    /// The closing quote is not written yet.
    Open,
    Closed,
}

impl Mention<'_> {
    /// Returns whether text that is typed behind it belongs to it.
    pub(super) fn is_open(&self) -> bool {
        self.quotes != Quotes::Closed
    }
}

/// Returns the paths that an input names with `@` at the beginning of a word. Paths with spaces are in quotes: `@"a b.png"`, or `@'a
/// "b".png'`.
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
        let quote = rest.chars().next().filter(|first| QUOTES.contains(first));
        let (path, quotes) = match quote {
            Some(quote) => {
                let inner = &rest[1..];
                let end = inner.find([quote, '\n']).unwrap_or(inner.len());
                let is_closed = inner[end..].starts_with(quote);
                (&inner[..end], if is_closed { Quotes::Closed } else { Quotes::Open })
            }
            None => (&rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())], Quotes::None),
        };
        let marks = match quotes {
            Quotes::None => 0,
            Quotes::Open => 1,
            Quotes::Closed => 2,
        };
        let end = at + path.len() + marks;
        found.push(Mention { range: next..end, path, quotes });
        at = end;
    }
    found
}

/// Returns a path as it is written in an input; `None` if it has a line end, or both kinds of quotes and needs one.
pub(super) fn mention(path: &str) -> Option<String> {
    if !path.contains(char::is_whitespace) && !path.starts_with(QUOTES) {
        return Some(format!("@{path}"));
    }
    let quote = QUOTES.into_iter().find(|quote| !path.contains([*quote, '\n']))?;
    Some(format!("@{quote}{path}{quote}"))
}

/// Returns the paths of images that an input names, whether the files exist or not.
pub(super) fn paths(text: &str) -> Vec<String> {
    let paths =
        mentions(text).into_iter().map(|one| if one.quotes == Quotes::None { trimmed(one.path) } else { one.path });
    paths.filter(|path| Image::media_type_of(path).is_some()).map(str::to_owned).collect()
}

/// Returns those of the paths that exist, each with its size in bytes. Blocks.
pub(super) fn present(paths: &[String], workspace: &Path) -> Vec<(String, u64)> {
    let size = |path: &str| std::fs::metadata(workspace.join(path)).ok().filter(std::fs::Metadata::is_file);
    paths.iter().filter_map(|path| Some((path.clone(), size(path)?.len()))).collect()
}

/// Returns the existing images that an input names: the path of each and its size in bytes. Blocks.
pub(super) fn named(text: &str, workspace: &Path) -> Vec<(String, u64)> {
    present(&paths(text), workspace)
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
    if !std::fs::metadata(&file).map_err(|error| failed(&error))?.is_file() {
        return Err(failed(&"it is no file"));
    }
    // Independent of its size a moment ago.
    let mut bytes = Vec::new();
    let opened = File::open(&file).and_then(|file| file.take(MAX_IMAGE_BYTES as u64 + 1).read_to_end(&mut bytes));
    if opened.map_err(|error| failed(&error))? > MAX_IMAGE_BYTES {
        return Err(failed(&format_args!("it has more than the {MAX_IMAGE_BYTES} bytes that are allowed")));
    }
    let data = STANDARD.encode(bytes);
    let media_type = Image::media_type_of(path).unwrap_or_default();
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
    let named = mention(&path).filter(|_| !path.contains('\n') && Image::media_type_of(&path).is_some());
    named.filter(|_| workspace.join(&path).is_file())
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
        let cases: [(&str, &[(&str, &str)]); 10] = [
            ("look at @a.png and @src/b.rs", &[("@a.png", "a.png"), ("@src/b.rs", "src/b.rs")]),
            ("me@example.png", &[]),
            ("@\"a b.png\" x", &[("@\"a b.png\"", "a b.png")]),
            ("@\"a b", &[("@\"a b", "a b")]),
            ("@'a \"b\".png' x", &[("@'a \"b\".png'", "a \"b\".png")]),
            ("@a\"b.png", &[("@a\"b.png", "a\"b.png")]),
            ("(@a.png)", &[("@a.png)", "a.png)")]),
            ("@", &[("@", "")]),
            ("@@a", &[("@@a", "@a")]),
            ("é\n@ü.png", &[("@ü.png", "ü.png")]),
        ];
        for (text, expected) in cases {
            let found: Vec<_> = mentions(text).into_iter().map(|one| (&text[one.range], one.path)).collect();
            assert_eq!(found, expected, "{text}");
        }
        // The written form of a path names the path again.
        for path in ["a.png", "a b.png", "\"a\".png", "a \"b\".png", "it's.png", "it's a.png", "'a.png"] {
            let text = format!("see {} there", mention(path).unwrap());
            assert_eq!(mentions(&text)[0].path, path, "{text}");
        }
        assert_eq!((mention("a 'b' \"c\""), mention("a\nb")), (None, None));
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
        let found = named(text, here);
        assert_eq!(found, [("a b.PNG".to_owned(), PNG.len() as u64), ("text.png".to_owned(), 4)]);
        let read = |path| read(path, here);
        assert_eq!(read("a b.PNG").unwrap().media_type.as_str(), "image/png");
        assert!(read("text.png").unwrap_err().contains("no image of the type image/png"));
        assert!(read("large.png").unwrap_err().contains("it has more than the "));
        assert!(read("folder.png").unwrap_err().contains("it is no file"));
        assert!(read("gone.png").unwrap_err().starts_with("the image `gone.png` cannot be attached: "));
    }

    #[test]
    fn the_path_of_an_image_that_was_dropped_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        std::fs::write(folder.path().join("a b.png"), PNG).unwrap();
        std::fs::write(folder.path().join("c.png"), PNG).unwrap();
        std::fs::write(folder.path().join("d\"e.png"), PNG).unwrap();
        let cases = [
            (format!("{here}/c.png\n"), Some(format!("@{here}/c.png"))),
            ("c.png".to_owned(), Some("@c.png".to_owned())),
            (format!("'{here}/a b.png' "), Some(format!("@\"{here}/a b.png\""))),
            (format!("{here}/a\\ b.png"), Some(format!("@\"{here}/a b.png\""))),
            (format!("file://{here}/a%20b.png"), Some(format!("@\"{here}/a b.png\""))),
            (format!("file://localhost{here}/c.png"), Some(format!("@{here}/c.png"))),
            (format!("{here}/d\"e.png"), Some(format!("@{here}/d\"e.png"))),
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
