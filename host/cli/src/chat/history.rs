//! The file with the inputs of earlier chats: a JSON string a line, the oldest first.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;

/// The file is shortened when it is longer than this, in bytes.
const MOST: u64 = 1 << 20;

/// Where the inputs are; `None`: they are not kept, because the user has no home.
#[derive(Debug)]
pub(super) struct History(Option<PathBuf>);

impl History {
    /// The file of this user, in the folder for state.
    pub(super) fn of_user() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
        Self(state.map(|state| state.join("tidegate/chat_history.jsonl")))
    }

    /// No file: inputs are not kept.
    pub(super) fn nowhere() -> Self {
        Self(None)
    }

    /// The inputs. Where the file cannot be read, or a line is none of ours, there are fewer: they are a convenience.
    pub(super) fn read(&self) -> Vec<String> {
        let Some(file) = self.0.as_ref().and_then(|path| File::open(path).ok()) else { return Vec::new() };
        BufReader::new(file).lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect()
    }

    /// Adds an input.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(&self, input: &str) -> std::io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        if std::fs::metadata(path).is_ok_and(|file| file.len() > MOST) {
            let inputs = self.read();
            let recent: String = inputs[inputs.len() / 2..].iter().map(|input| line(input)).collect();
            std::fs::write(path, recent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)?.write_all(line(input).as_bytes())
    }
}

fn line(input: &str) -> String {
    format!("{}\n", serde_json::Value::from(input))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_several_lines_return_and_a_long_file_is_shortened() {
        let folder = tempfile::tempdir().unwrap();
        let history = History(Some(folder.path().join("a/history.jsonl")));
        assert_eq!(history.read(), Vec::<String>::new());
        history.add("one\ntwo").unwrap();
        history.add("\u{1b}x").unwrap();
        assert_eq!(history.read(), ["one\ntwo", "\u{1b}x"]);
        for _ in 0..3 {
            history.add(&"long".repeat(200_000)).unwrap();
        }
        let inputs = history.read();
        assert!(inputs.len() == 3 && !inputs.contains(&"one\ntwo".to_owned()), "{}", inputs.len());
        History(None).add("x").unwrap();
    }
}
