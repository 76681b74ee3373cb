//! Names of files for sessions, whose ids are any string.

use flow::SessionId;
use sha2::{Digest as _, Sha256};

/// The name of a session's files: readable as far as the id has plain characters, unique by the start of the id's digest.
pub(crate) fn encoded(session: &SessionId, separator: char) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let readable: String = session.as_str().chars().take(40).map(plain).collect();
    let digest = Sha256::digest(session.as_str());
    let digest: String = digest.iter().take(10).map(|byte| format!("{byte:02x}")).collect();
    format!("{readable}{separator}{digest}")
}

#[cfg(test)]
mod tests {
    use super::encoded;
    use flow::SessionId;

    #[test]
    fn names_of_files_are_plain_short_and_different() {
        let ids = ["a", "A", "a/b", "a_b", "", "../x", "ä", &"x".repeat(300), &"x".repeat(301)];
        let names: std::collections::BTreeSet<String> =
            ids.iter().map(|id| encoded(&SessionId::new(*id), '-')).collect();
        assert_eq!(names.len(), ids.len());
        for name in names {
            assert!(name.len() <= 61 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{name}");
        }
    }
}
