//! The file with which another process, or a person, asks for a cancel: creating it is enough.

use std::path::Path;

use serde::Deserialize;

/// Who cancels, where the file does not say it.
pub(super) const BY: &str = "the file `cancel`";

/// Bytes of the file that are read.
const MAX_BYTES: u64 = 64 << 10;

/// Bytes of a reason that are kept.
const MAX_REASON: usize = 1 << 10;

/// What the file says; an empty one says nothing.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Who cancels, for the record.
    pub(super) by: Option<String>,
    /// Why the turn is cancelled, for the record.
    pub(super) reason: Option<String>,
}

/// Takes the file: it is removed. `None`: there is none, or it cannot be removed and would cancel every turn that follows.
pub(super) fn take(file: &Path) -> Option<Asked> {
    let about = file.symlink_metadata().ok()?;
    // Opening anything but a short file could wait for ever.
    let text = (about.is_file() && about.len() <= MAX_BYTES).then(|| std::fs::read_to_string(file).ok()).flatten();
    match std::fs::remove_file(file) {
        Ok(()) => Some(asked(text.as_deref().unwrap_or_default())),
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!(file = %file.display(), "a request to cancel cannot be removed: {error}");
            }
            None
        }
    }
}

/// Whatever the file contains, it asks for a cancel: what is not TOML of this form is the reason.
fn asked(text: &str) -> Asked {
    let plain = || Asked { by: None, reason: Some(text.trim().to_owned()) };
    let mut asked: Asked = toml::from_str(text).unwrap_or_else(|_| plain());
    if let Some(reason) = &mut asked.reason {
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::{Asked, asked};

    #[test]
    fn whatever_it_contains_asks_for_a_cancel() {
        let of = |by: Option<&str>, reason: Option<&str>| Asked {
            by: by.map(str::to_owned),
            reason: reason.map(str::to_owned),
        };
        let cases = [
            ("", of(None, None)),
            ("reason = \"too slow\"\nby = \"Ada\"", of(Some("Ada"), Some("too slow"))),
            ("it is too slow\n", of(None, Some("it is too slow"))),
            ("raeson = \"too slow\"", of(None, Some("raeson = \"too slow\""))),
        ];
        for (text, expected) in cases {
            assert_eq!(asked(text), expected, "{text:?}");
        }
        let long = asked(&"é".repeat(4_000)).reason.unwrap_or_default();
        assert_eq!(long.len(), 1_024);
    }
}
