//! Hyperscan in its streaming mode, as a process of its own that takes its turn: the program next to the benches,
//! built with the C compiler where that and the library's header are there.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::Lane;
use super::guests::root;

/// What installs it on Debian.
const INSTALL: &str = "apt-get install gcc libhyperscan-dev";

/// Hyperscan over one set of patterns and one text.
pub(crate) struct Hyperscan {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Builds the program. Where that cannot be, says so and what is to be installed.
pub(crate) fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hyperscan");
    let source = root().join("tests/benches/hyperscan.c");
    let built = Command::new("cc").arg("-O2").arg(source).arg("-lhs").arg("-o").arg(&program).output();
    let trouble = match built {
        Ok(built) if built.status.success() => return Some(program),
        Ok(built) => String::from_utf8_lossy(&built.stderr).lines().next().unwrap_or("no message").to_owned(),
        Err(error) => format!("cannot start `cc`: {error}"),
    };
    println!("Hyperscan is not measured ({trouble}); `{INSTALL}` installs what is missing");
    None
}

impl Hyperscan {
    /// Compiles the patterns; `bytes` is the length of a delta.
    pub(crate) fn start(program: &Path, patterns: &[String], text: &str, bytes: usize) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (list, words) = (folder.join("hyperscan-patterns"), folder.join("hyperscan-text"));
        std::fs::write(&list, patterns.join("\n")).unwrap();
        std::fs::write(&words, text).unwrap();
        let mut command = Command::new(program);
        command.arg(list).arg(words).arg(bytes.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Hyperscan as a contender: one unit of work is the whole text.
    pub(crate) fn lane(&mut self) -> Lane<'_> {
        Lane::timed("Hyperscan", |times| {
            writeln!(self.input, "{times}").unwrap();
            let mut nanos = String::new();
            self.output.read_line(&mut nanos).unwrap();
            Duration::from_nanos(nanos.trim().parse().expect("Hyperscan says why on standard error"))
        })
    }
}

impl Drop for Hyperscan {
    fn drop(&mut self) {
        // It is ours, and has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
