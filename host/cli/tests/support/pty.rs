//! The program at a pseudo-terminal, with a person who answers its questions.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::{Place, TRUSTED, outside};

/// The person types this at a question.
pub(crate) type Answer<'a> = &'a mut dyn FnMut(&str) -> &'static str;

/// How a page that is not the last one ends.
const MORE: &str = "lines; Enter: more, n: do not run it -- ";
/// How the other pages end.
const STOP: &str = "lines; Enter: more, n: stop -- ";
/// How a question begins and ends. Between them are the answers that not every question takes.
const RUN_IT: [&str; 2] = ["Run it? [y: yes, ", "n: no, or the reason for no] "];
const TRUST_IT: [&str; 2] = ["Trust it? [y: yes, ", "n: no] "];

impl Place {
    /// Runs the program at a terminal, in this workspace, as [`person`] does.
    pub(crate) fn at_terminal(&self, arguments: &[&str], answer: Answer<'_>) -> String {
        let folders = [
            ("XDG_CACHE_HOME", outside("cache")),
            ("XDG_CONFIG_HOME", outside("user")),
            ("XDG_STATE_HOME", outside("state")),
        ];
        let arguments: Vec<&str> = [TRUSTED].into_iter().chain(arguments.iter().copied()).collect();
        person(&self.path("."), &folders, &arguments, answer).0
    }
}

/// Runs the program in a folder at a terminal of 100 columns and 30 rows, made by the program `script`. `answer` gets what was printed
/// since the last answer, whenever the host waits for one, and says what is typed. Returns all that was printed, and the exit code.
pub(crate) fn person(
    folder: &Path,
    folders: &[(&str, PathBuf)],
    arguments: &[&str],
    answer: Answer<'_>,
) -> (String, i32) {
    let run = "stty rows 30 cols 100; exec \"$TIDEGATE\" \"$@\"";
    let quoted: Vec<String> = arguments.iter().map(|one| format!("'{one}'")).collect();
    let command = format!("set -- {}; {run}", quoted.join(" "));
    let mut child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder)
        .env("TIDEGATE", env!("CARGO_BIN_EXE_tidegate"))
        .envs(folders.iter().map(|(name, path)| (*name, path)))
        .env("TERM", "xterm-256color")
        .env_remove("VISUAL")
        .env("EDITOR", "sh ./editor")
        .env("SHELL", "/bin/sh")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("`script` of util-linux makes the terminal of this test: {error}"));
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (printed, chunks) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = output.read(&mut buffer) {
            drop(printed.send(buffer[..bytes].to_vec()));
        }
    });
    let (mut all, mut answered) = (Vec::new(), 0);
    loop {
        match chunks.recv_timeout(Duration::from_secs(60)) {
            Ok(chunk) => all.extend(chunk),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                drop(child.kill());
                panic!("it waits: {}", String::from_utf8_lossy(&all));
            }
        }
        let text = String::from_utf8_lossy(&all[answered..]).into_owned();
        if is_question(&text) {
            answered = all.len();
            input.write_all(answer(&text).as_bytes()).unwrap();
            input.flush().unwrap();
        }
    }
    reader.join().unwrap();
    let ended = child.wait().unwrap();
    (String::from_utf8(all).unwrap(), ended.code().unwrap())
}

/// Only a line that the host itself begins is a question; whatever else looks like one is not answered.
fn is_question(text: &str) -> bool {
    let last = super::plain(text.rsplit('\n').next().unwrap_or_default());
    let asks = |[begin, end]: [&str; 2]| last.contains(begin) && last.ends_with(end);
    // Before there is a text of the model, nothing else writes.
    let is_first = last.starts_with(TRUST_IT[0]) || last.starts_with("-- ");
    (last.starts_with('▌') && (last.ends_with(MORE) || asks(RUN_IT)))
        || (is_first && (last.ends_with(STOP) || asks(TRUST_IT)))
}
