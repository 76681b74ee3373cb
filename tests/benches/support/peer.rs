//! A contender in a process of its own that takes its turn: it reads how often to do its work, and reports how long that took.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::guests::root;
use super::{Lane, scratch};

/// A process that answers each line with a number on its standard input with the nanoseconds that so many repetitions took.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the program and has it do its work once.
    ///
    /// # Errors
    /// It does not start, or ends before it has reported; its own words are on standard error.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        // A library in Rust that makes errors on its way would otherwise pay for their backtraces, which nobody reads.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start `{name}`: {error}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| format!("`{name}` has no pipes"))?;
        let mut peer = Self { child, input, output: BufReader::new(output) };
        peer.run(1).map_err(|error| format!("`{name}` fails: {error}"))?;
        Ok(peer)
    }

    /// Repeats the work and returns the time that it took.
    fn run(&mut self, times: u64) -> Result<Duration, String> {
        writeln!(self.input, "{times}").map_err(|error| error.to_string())?;
        let mut nanos = String::new();
        self.output.read_line(&mut nanos).map_err(|error| error.to_string())?;
        let nanos = nanos.trim();
        nanos.parse().map(Duration::from_nanos).map_err(|_| format!("it reports {nanos:?} instead of nanoseconds"))
    }

    /// Returns it as a contender.
    pub(crate) fn lane(&mut self, name: &str) -> Lane<'_> {
        Lane::timed(name, move |times| self.run(times).unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The child is ours and has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles a C program from the folder of the benches, with these further arguments for the compiler.
///
/// # Errors
/// There is no compiler, or the program does not compile: the first line of what the compiler prints.
pub(crate) fn compile(name: &str, arguments: &[&OsStr]) -> Result<PathBuf, String> {
    let program = scratch().join(name);
    let source = root().join("tests/benches").join(format!("{name}.c"));
    let built = Command::new("cc").arg("-O2").arg(source).args(arguments).arg("-o").arg(&program).output();
    match built {
        Ok(built) if built.status.success() => Ok(program),
        Ok(built) => {
            let words = String::from_utf8_lossy(&built.stderr);
            Err(words.lines().next().unwrap_or("`cc` fails without a message").to_owned())
        }
        Err(error) => Err(format!("cannot start `cc`: {error}")),
    }
}
