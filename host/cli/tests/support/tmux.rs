//! The program at a terminal that tmux makes, with a person who types and reads the screen.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::{Place, TRUSTED};

/// How long something may take to be on the screen. No test depends on how long it does.
const LIMIT: Duration = Duration::from_secs(120);

/// What the line of a question lists as soon as keys answer it.
const KEYS: &str = "y: yes  n: no";

/// A terminal with a server of its own, which ends with this value.
pub(crate) struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Runs the program in a workspace, at a terminal of 100 columns and 40 rows. `variables`: of its environment, `NAME=VALUE`. When
    /// it has ended, the terminal shows `exit code N`.
    pub(crate) fn start(place: &Place, arguments: &[&str], variables: &[&str]) -> Self {
        Self::shell(place, arguments, variables, ("", ""))
    }

    /// The same from a shell that controls its jobs. When the program was stopped, the terminal shows `stopped N` and whether it reads
    /// whole lines, `+icanon`, and continues the program after the next line.
    pub(crate) fn start_as_job(place: &Place, arguments: &[&str]) -> Self {
        let stopped =
            "echo stopped $?; stty -a | grep -o '[ -]icanon' | tr ' ' +; stty sane; echo sane; read line; fg;";
        Self::shell(place, arguments, &[], ("set -m;", stopped))
    }

    /// Runs the program between commands of a shell.
    fn shell(place: &Place, arguments: &[&str], variables: &[&str], (before, after): (&str, &str)) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        // The server of a terminal before can still be on its way out at its own socket.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { socket: place.path(&format!("tmux-{number}.socket")) };
        let folder = |name: &str| place.path(name).display().to_string();
        let program = env!("CARGO_BIN_EXE_tidegate");
        let (cache, user, state) = (folder("cache"), folder("user"), folder("state"));
        let quoted: Vec<String> =
            variables.iter().chain(&[program, TRUSTED]).chain(arguments).map(|one| format!("'{one}'")).collect();
        let command = format!(
            "{before} cd '{}'; env -u NO_COLOR -u CLICOLOR_FORCE XDG_CACHE_HOME='{cache}' XDG_CONFIG_HOME='{user}' XDG_STATE_HOME='{state}' \
             SHELL=/bin/sh {}; {after} echo exit code $?; exec sleep 1000",
            folder("."),
            quoted.join(" ")
        );
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "sh", "-c", &command]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).env_remove("TMUX").output();
        let output = output.unwrap_or_else(|error| panic!("tmux makes the terminal of this test: {error}"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Kills the program as `kill -9` does.
    pub(crate) fn kill(&self) {
        self.signal("KILL");
    }

    /// Sends the program a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let shell = self.tmux(&["list-panes", "-F", "#{pane_pid}"]);
        let shell = shell.trim();
        let program = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        let killed = Command::new("kill").args(["-s", name, program.trim()]).status().unwrap();
        assert!(killed.success(), "{program:?}");
    }

    /// Types a text.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Presses a key, by the name that tmux gives it.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Presses keys at once: no time passes between them.
    pub(crate) fn press_all(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types a text and presses Enter.
    pub(crate) fn enter(&self, text: &str) {
        self.types(text);
        self.press("Enter");
    }

    /// Pastes a text, as a terminal does where a program has asked to be told what is pasted.
    pub(crate) fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]);
        self.tmux(&["paste-buffer", "-p", "-r"]);
    }

    pub(crate) fn resize(&self, columns: u32, rows: u32) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// What the terminal shows, with what has scrolled away.
    pub(crate) fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-2000"])
    }

    /// What is on the screen, without what has scrolled away.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// What is on the screen, with the escape sequences of its colours.
    pub(crate) fn colours(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// The character in the cell of the cursor.
    pub(crate) fn at_cursor(&self) -> String {
        self.tmux(&["display-message", "-p", "#{cursor_character}"]).trim().to_owned()
    }

    /// Waits until the terminal shows what is wanted, and returns what it shows then.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.wait(what, Self::text, wanted)
    }

    /// Waits until the screen is as is wanted, whatever has scrolled away, and returns it.
    pub(crate) fn screen_is(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.wait(what, Self::screen, wanted)
    }

    /// Waits until what is read of the terminal is as is wanted.
    pub(crate) fn wait(&self, what: &str, read: impl Fn(&Self) -> String, wanted: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let text = read(self);
            if wanted(&text) {
                return text;
            }
            assert!(begun.elapsed() < LIMIT, "{what} is not on the screen:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a text.
    pub(crate) fn shows(&self, text: &str) -> String {
        self.until(&format!("{text:?}"), |shown| shown.contains(text))
    }

    /// Answers a question by a key, when keys answer.
    pub(crate) fn answers(&self, key: &str) {
        self.screen_is("a question", |text| text.contains(KEYS));
        self.types(key);
    }

    /// Waits until a text is gone.
    pub(crate) fn drops(&self, text: &str) -> String {
        self.until(&format!("the screen without {text:?}"), |shown| !shown.contains(text))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The server can be gone already.
        drop(Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").env_remove("TMUX").output());
    }
}
