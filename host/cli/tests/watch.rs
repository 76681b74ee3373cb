//! `tidegate plugin build --watch`: each change of the source is built, and a failed build leaves the component that is there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Ends a test that hangs, and decides nothing else: builds of other tests keep cargo's lock of the folder that guests share for as long
/// as they all take.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Ends the program with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The lines of a stream, as they come.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if line.ok().is_none_or(|line| send.send(line).is_err()) {
                return;
            }
        }
    });
    lines
}

/// Waits for a line with these words.
fn until(lines: &Receiver<String>, words: &str) -> String {
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("no line with `{words}`: {error}"));
        if line.contains(words) {
            return line;
        }
    }
}

#[test]
fn each_change_is_built_and_a_failed_build_leaves_the_component() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    // Below this repository, whose guests share what they compile.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watched");
    drop(fs::remove_dir_all(&folder));
    let program = || Command::new(env!("CARGO_BIN_EXE_tidegate"));
    assert!(program().args(["plugin", "new"]).arg(&folder).output().unwrap().status.success());
    // The locked versions of a guest of ours: no look at the registry.
    let lock = fs::read_to_string(root.join("tests/guests/pass-through/Cargo.lock")).unwrap();
    fs::write(folder.join("Cargo.lock"), lock.replace("\"pass-through\"", "\"watched\"")).unwrap();

    let mut command = program();
    command.args(["plugin", "build", "--watch"]).arg(&folder);
    let mut child = Ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let (out, err) = (lines(child.0.stdout.take().unwrap()), lines(child.0.stderr.take().unwrap()));
    until(&out, "component.wasm");
    until(&err, "waiting for changes");
    let component = || fs::read(folder.join("component.wasm")).unwrap();
    let (first, source) = (component(), folder.join("src/lib.rs"));
    let text = fs::read_to_string(&source).unwrap();

    fs::write(&source, format!("{text}\nlet broken;\n")).unwrap();
    until(&err, "error");
    until(&err, "waiting for changes");
    assert_eq!(component(), first);

    fs::write(&source, text.replace("to_uppercase", "to_lowercase")).unwrap();
    until(&out, "component.wasm");
    until(&err, "waiting for changes");
    assert_ne!(component(), first);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_and_nothing_is_watched() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate")).args(["plugin", "build", "--watch", "nowhere"]).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.contains("no files in nowhere")), (Some(2), true), "{said}");
}
