//! The program while it runs, and how it ends.

use std::io::Read;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::Place;

/// How long the program may take to end before a test fails. What it waits for in these tests takes longer, or has no end.
const PATIENCE: Duration = Duration::from_secs(200);

/// The program, with its output as it is read.
pub(crate) struct Started {
    pub(crate) child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// How it has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; `None`: a signal has killed it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

fn read(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        drop(from.read_to_end(&mut all));
        String::from_utf8(all).unwrap()
    })
}

impl Started {
    pub(crate) fn new(place: &Place, arguments: &[&str]) -> Self {
        Self::of(place.command(arguments).stdin(Stdio::null()).stdout(Stdio::piped()))
    }

    /// Standard output is read where it is a pipe.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().map(read), child.stderr.take().map(read));
        Self { child, stdout, stderr }
    }

    /// The same, with a standard output that nobody reads: it is with the caller.
    pub(crate) fn unread(command: &mut Command) -> (Self, ChildStdout) {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (output, stderr) = (child.stdout.take().unwrap(), child.stderr.take().map(read));
        (Self { child, stdout: None, stderr }, output)
    }

    pub(crate) fn signal(&self, name: &str) {
        let killed = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self, what: &str) -> Ended {
        let began = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if began.elapsed() > PATIENCE {
                drop(self.child.kill());
                let (out, err) = self.texts();
                panic!("{what}: it still runs, and has printed {out:?} and {err:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (out, err) = self.texts();
        println!("{what}: ended with {code:?} after {:?}", began.elapsed());
        Ended { code, out, err }
    }

    fn texts(&mut self) -> (String, String) {
        let text = |one: &mut Option<JoinHandle<String>>| one.take().map(|one| one.join().unwrap()).unwrap_or_default();
        (text(&mut self.stdout), text(&mut self.stderr))
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
