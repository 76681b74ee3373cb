//! Node as a contender: an extension as an async function in the host's own process (`handler.mjs`).

use std::process::Command;

use super::guests::root;
use super::json_files;
use super::peer::Peer;

/// How the handler gets its input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handover {
    /// It shares the host's objects.
    Reference,
    /// It gets a copy for each call, so that it cannot change what is the host's.
    Copy,
}

/// Starts a process whose work is one call of the handler of `callback`, which answers `input` with `answer`.
///
/// # Errors
/// Node is not installed, or the handler answers something else.
pub(crate) fn start(callback: &str, input: &str, answer: &str, handover: Handover) -> Result<Peer, String> {
    let (given, wanted) = json_files("node", input, answer);
    let mut command = Command::new("node");
    command.arg(root().join("tests/benches/handler.mjs")).arg(callback).args([given, wanted]);
    if handover == Handover::Copy {
        command.arg("copy");
    }
    Peer::start(&mut command)
}
