//! Names of rule files.

use std::collections::HashSet;

/// The most bytes of a name.
const MAX_NAME: usize = 80;

/// Names that are taken. Case does not count: some file systems do not tell it apart.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// A name for a file, as near to `id` as file systems allow.
    pub(crate) fn take(&mut self, id: &str) -> String {
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c.to_ascii_lowercase() } else { '-' };
        let mut name: String = id.chars().map(plain).take(MAX_NAME).collect();
        while name.contains("--") {
            name = name.replace("--", "-");
        }
        let name = name.trim_matches(['-', '.']);
        let name = if name.is_empty() { "rule" } else { name };
        let mut numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut free = name.to_owned();
        while !self.0.insert(free.clone()) {
            free = numbered.next().unwrap_or_default();
        }
        free
    }
}
