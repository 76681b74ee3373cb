//! What tools have in common about text: reading it, counting it, showing what changed.

use std::borrow::Cow;

use flow::ports::FileKind;
use similar::TextDiff;

use crate::Failure;
use crate::blocking::Access;
use crate::workspace::Inside;

pub(crate) mod line_ends;

/// The largest file that is read whole: 16 MiB. A larger one is for `shell`.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// The maximum length of a diff in bytes; a longer one is cut.
const MAX_DIFF_BYTES: usize = 64 << 10;

/// Lines shown around a change.
const DIFF_CONTEXT: usize = 3;

/// How the bytes of a file are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// By its byte order mark.
    Utf16,
    /// One that is not known, of which ASCII is a part.
    Other,
    /// It is not text.
    Binary,
}

impl Encoding {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let is_utf32 = bytes.starts_with(&[0xff, 0xfe, 0, 0]);
        if (bytes.starts_with(&[0xff, 0xfe]) && !is_utf32) || bytes.starts_with(&[0xfe, 0xff]) {
            return Self::Utf16;
        }
        // Like `grep` and `git`: a NUL byte near the beginning means binary.
        if bytes.iter().take(8192).any(|byte| *byte == 0) {
            return Self::Binary;
        }
        if std::str::from_utf8(bytes).is_ok() { Self::Utf8 } else { Self::Other }
    }
}

/// Reads a text file whole.
pub(crate) fn read(file: &Inside, access: &Access) -> Result<String, Failure> {
    let name = &file.shown();
    let failed = |error: std::io::Error| Failure(format!("`{name}` cannot be read: {error}"));
    let Some(status) = access.status(&file.absolute).map_err(failed)? else {
        return Err(Failure(format!("there is no file `{name}`; `find` or `list_dir` show what is there")));
    };
    match status.kind {
        FileKind::File => {}
        FileKind::Folder => return Err(Failure(format!("`{name}` is a folder; `list_dir` shows what is in it"))),
        // Opening a pipe or a device could wait for ever.
        _ => return Err(Failure(format!("`{name}` is not a regular file; only regular files are read"))),
    }
    let size = status.bytes;
    if size > MAX_FILE_BYTES {
        let most = MAX_FILE_BYTES;
        return Err(Failure(format!(
            "`{name}` has {size} bytes, more than the {most} that are read; `shell` can show a part of it"
        )));
    }
    let bytes = access.read(&file.absolute).map_err(failed)?;
    let other = match Encoding::of(&bytes) {
        Encoding::Utf8 => {
            return String::from_utf8(bytes).map_err(|error| Failure(format!("`{name}` is no text: {error}")));
        }
        Encoding::Binary => format!("is binary ({size} bytes); only text is read"),
        Encoding::Utf16 => {
            format!(
                "is UTF-16 text ({size} bytes), and only UTF-8 is read and written; convert it with `shell`, as by `iconv`"
            )
        }
        Encoding::Other => format!("is not UTF-8 text ({size} bytes); convert it with `shell` first"),
    };
    Err(Failure(format!("`{name}` {other}")))
}

/// The change as a human-readable unified diff; `None` if nothing changed. A long one is cut.
pub(crate) fn diff(name: &str, before: &str, after: &str) -> Option<String> {
    let whole = whole_diff(name, before, after)?;
    Some(cut(whole, MAX_DIFF_BYTES, "[the rest of the diff is omitted]"))
}

/// The change as a unified diff, however long; `None` where nothing changed.
pub(crate) fn whole_diff(name: &str, before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let (old, new) = (format!("a/{name}"), format!("b/{name}"));
    // A bound on the time a hostile pair of texts may take; the diff stays right, only less small.
    let mut config = TextDiff::configure();
    config.timeout(std::time::Duration::from_millis(200));
    Some(config.diff_lines(before, after).unified_diff().context_radius(DIFF_CONTEXT).header(&old, &new).to_string())
}

/// At most `most` bytes of `text`, cut at a line where there is one, with `said` after the cut.
pub(crate) fn cut(mut text: String, most: usize, said: &str) -> String {
    if text.len() <= most {
        return text;
    }
    let end = text.floor_char_boundary(most);
    let end = text[..end].rfind('\n').map_or(end, |line| line + 1);
    text.truncate(end);
    text.push_str(said);
    text
}

/// A name of a file as answers show it. One with a line end or another character that cannot be seen is quoted, with escapes.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    if name.chars().any(flow::is_hidden) { Cow::Owned(format!("{name:?}")) } else { Cow::Borrowed(name) }
}

/// `1 line`, `2 lines`.
pub(crate) fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}
