//! The file with the inputs of earlier chats: a JSON string a line, the oldest first.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// The file is shortened when it is longer than this, in bytes.
const MOST: u64 = 1 << 20;

/// Where the inputs are; `None`: they are not kept, because the user has no home.
#[derive(Debug)]
pub(super) struct History(Option<PathBuf>);

impl History {
    /// The file of this user, in the folder for state.
    pub(super) fn of_user() -> Self {
        Self(tidegate::state::state_folder().map(|folder| folder.join("chat_history.jsonl")))
    }

    /// No file: inputs are not kept.
    pub(super) fn nowhere() -> Self {
        Self(None)
    }

    /// The inputs. Where the file cannot be read, or a line is none of ours, there are fewer: they are a convenience.
    pub(super) fn read(&self) -> Vec<String> {
        self.0.as_deref().map(read).unwrap_or_default()
    }

    /// Adds an input. Other chats can do so at the same time: nothing that they add is lost.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(&self, input: &str) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // A file of its own, because the one with the inputs is replaced.
        let lock = private().write(true).truncate(false).open(path.with_extension("lock"))?;
        lock.lock()?;
        if fs::metadata(path).is_ok_and(|file| file.len() > MOST) {
            shorten(path, folder)?;
        }
        private().append(true).open(path)?.write_all(line(input).as_bytes())
    }
}

/// How files are created that only the user can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn read(path: &Path) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    BufReader::new(file).lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect()
}

/// Keeps the newer half, under the lock. A reader has the old file or the new one, whole.
fn shorten(path: &Path, folder: &Path) -> io::Result<()> {
    let inputs = read(path);
    let mut recent = NamedTempFile::with_prefix_in(".chat_history-", folder)?;
    for input in &inputs[inputs.len() / 2..] {
        recent.write_all(line(input).as_bytes())?;
    }
    recent.as_file().sync_all()?;
    recent.persist(path)?;
    Ok(())
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

    #[test]
    fn chats_that_add_at_the_same_time_lose_nothing() {
        const EACH: usize = 40;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.jsonl");
        // It is shortened once or twice, by whichever chat comes first.
        let long = "long".repeat(10_000);
        let add = |chat: usize| {
            let history = History(Some(file.clone()));
            for number in 0..EACH {
                history.add(&format!("{chat} {number} {long}")).unwrap();
            }
        };
        std::thread::scope(|scope| [0, 1].map(|chat| scope.spawn(move || add(chat))).map(|one| one.join().unwrap()));
        let inputs = History(Some(file.clone())).read();
        assert!((13..30).contains(&inputs.len()), "{}", inputs.len());
        for chat in 0..2 {
            let numbers: Vec<usize> = inputs
                .iter()
                .filter_map(|input| input.strip_prefix(&format!("{chat} "))?.split(' ').next()?.parse().ok())
                .collect();
            let recent: Vec<usize> = (EACH - numbers.len()..EACH).collect();
            assert_eq!(numbers, recent, "what is kept has no gap");
        }
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&file).unwrap()) & 0o777, 0o600);
    }
}
